"""Options of plug-ins: what a person writes as `key=value`, fitted to the keyword-only parameters of a class.

`NAME:ARGUMENT` hands the argument to the one positional parameter; everything else that a person may set is a
keyword-only parameter with an annotation. `steps: int = 50` is set by `--renderer-option steps=4`; a parameter
annotated as a tuple or list takes the option as often as it is given. Nothing has to be declared twice.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, get_origin, get_type_hints

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from katha.errors import UsageError

__all__ = ["fit_options", "option_names", "read_options"]

_LISTS = (tuple, list, frozenset, set)


def read_options(given: Iterable[str] | str) -> dict[str, Any]:
    """`key=value` strings (or one line of them) as a mapping; a key that is given again makes a list.

    Raises:
        UsageError: one has no `=` or no key.
    """
    found: dict[str, Any] = {}
    for item in shlex.split(given) if isinstance(given, str) else given:
        key, equals, value = item.partition("=")
        name = key.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise UsageError(f"The option {item!r} is not KEY=VALUE.", hint="For example steps=4.")
        if name in found:
            before = found[name]
            found[name] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            found[name] = value
    return found


def option_names(factory: Callable[..., Any]) -> dict[str, str]:
    """The options of a plug-in's class, each with its annotation and default in words."""
    return {name: _described(parameter) for name, parameter in _options(factory).items()}


def fit_options(factory: Callable[..., Any], given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """`given` as keyword arguments of `factory`, each value converted to its parameter's annotation.

    Raises:
        UsageError: there is no such option, or its value does not fit; `what` names the plug-in.
    """
    known, hints = _options(factory), _hints(factory)
    fitted: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"The {what} has no option {name!r}.", hint=_suggest(name, list(known)))
        fitted[name] = _fit(value, hints.get(name, inspect.Parameter.empty), f"The option {name!r} of the {what}")
    return fitted


def _options(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(factory).parameters.values()
    return {item.name: item for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY}


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    """The annotations as types; those that cannot be resolved at run time are left out."""
    target: Any = factory.__init__ if inspect.isclass(factory) else factory
    try:
        return get_type_hints(target)
    except NameError:
        return {}


def _fit(value: Any, hint: Any, where: str) -> Any:
    if hint is inspect.Parameter.empty:
        return value
    if get_origin(hint) in _LISTS and not isinstance(value, (list, tuple)):
        value = [value]
    try:
        return TypeAdapter(hint, config=ConfigDict(strict=False)).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where} cannot be {value!r}: {reason}.") from error
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise UsageError(f"{where} cannot be set from outside.") from error


def _described(parameter: inspect.Parameter) -> str:
    shown = (
        parameter.annotation
        if isinstance(parameter.annotation, str)
        else inspect.formatannotation(parameter.annotation)
    )
    empty = inspect.Parameter.empty
    kind = "" if parameter.annotation is empty else shown
    return kind if parameter.default is empty else f"{kind} = {parameter.default!r}".strip()


def _suggest(name: str, known: list[str]) -> str:
    if not known:
        return "It has none."
    close = get_close_matches(name, known, n=1)
    return (f"Did you mean {close[0]!r}? " if close else "") + f"Known: {', '.join(known)}."
