"""One registry for renderers, planners and judges, and the options that a person gives them as `key=value`."""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Literal, TypeVar, get_origin, get_type_hints

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from katha.errors import KathaError, UnknownPluginError, UsageError

# ---
# Options of plug-ins: what a person writes as `key=value`, fitted to the keyword-only parameters of a class.
#
# `NAME:ARGUMENT` hands the argument to the one positional parameter; everything else that a person may set is a
# keyword-only parameter with an annotation. `steps: int = 50` is set by `--renderer-option steps=4`; a parameter
# annotated as a tuple or list takes the option as often as it is given. Nothing has to be declared twice.


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


# ---
# One registry for renderers, planners and judges: entry points, a decorator, and `package.module:Class` names.
#
# A plug-in is named `NAME` or `NAME:ARGUMENT` (`openai:gpt-5`, `recorded:answers.jsonl`); the argument is handed to
# its class as the one positional parameter. A class path may have one, too: `package.module:Class:ARGUMENT`.


Family = Literal["renderers", "planners", "judges", "similarities"]
Factory = Callable[..., Any]
F = TypeVar("F", bound=Factory)
_CLASS_PATH = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)(?::(.*))?", re.DOTALL)


class Registry:
    """The plug-ins of one family. Nothing is imported before it is asked for."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._local: dict[str, Factory] = {}
        self.what = "similarity" if family == "similarities" else family.removesuffix("s")

    def register(self, name: str) -> Callable[[F], F]:
        """Decorator: make a class known in this process under `name`."""

        def add(factory: F) -> F:
            self._local[name] = factory
            return factory

        return add

    def names(self) -> list[str]:
        """Every known name, sorted."""
        return sorted({*self._local, *self._entry_points()})

    def load(self, spec: str) -> tuple[Factory, str | None]:
        """The class behind `spec`, and the argument after its colon.

        Raises:
            UnknownPluginError: no plug-in of that name, or its module cannot be imported.
        """
        name, _, argument = spec.partition(":")
        if name in self._local:
            return self._local[name], argument or None
        entry = self._entry_points().get(name)
        if entry is None:
            path = _CLASS_PATH.fullmatch(spec)
            if path is not None and ("." in name or find_spec(name) is not None):
                return self._import(path[1]), path[2] or None
            raise UnknownPluginError(f"No {self.what} is called {name!r}.", hint=self._suggest(name))
        return self._load_entry(entry), argument or None

    def configure(self, spec: str, options: Mapping[str, Any]) -> Any:
        """Make the plug-in behind `spec` with options that a person gave (`--renderer-option steps=4`).

        Raises:
            UnknownPluginError: there is none. UsageError: an option that it does not have, or of the wrong kind.
        """
        factory, _ = self.load(spec)
        return self.create(spec, **fit_options(factory, options, f"{self.what} {spec!r}"))

    def create(self, spec: str, **options: Any) -> Any:
        """Make the plug-in behind `spec`; `options` are keyword parameters of its class.

        Raises:
            UnknownPluginError: there is none, or it does not take these parameters.
        """
        factory, argument = self.load(spec)
        try:
            return factory(argument, **options) if argument is not None else factory(**options)
        except TypeError as error:
            raise UnknownPluginError(f"{self.what} {spec!r} cannot be made: {error}.") from error

    def _entry_points(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=f"katha.{self.family}")}

    def _load_entry(self, entry: EntryPoint) -> Factory:
        try:
            loaded: Factory = entry.load()
        except KathaError:
            raise
        except (ImportError, AttributeError) as error:
            raise UnknownPluginError(f"The {self.what} {entry.name!r} cannot be imported: {error}.") from error
        return loaded

    def _import(self, path: str) -> Factory:
        module, _, attribute = path.partition(":")
        try:
            loaded: Factory = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UnknownPluginError(f"The {self.what} {path!r} cannot be imported: {error}.") from error
        return loaded

    def _suggest(self, name: str) -> str:
        close = get_close_matches(name, self.names(), n=1)
        near = f"Did you mean {close[0]!r}? " if close else ""
        return f"{near}Known: {', '.join(self.names())}; or name a class as package.module:Class."


_REGISTRIES: dict[Family, Registry] = {
    "renderers": Registry("renderers"),
    "planners": Registry("planners"),
    "judges": Registry("judges"),
    "similarities": Registry("similarities"),
}


def default_registry(family: Family) -> Registry:
    """The process's registry of `family`."""
    return _REGISTRIES[family]


def register_renderer(name: str) -> Callable[[F], F]:
    """Make a renderer known in this process under a name.

    Args:
        name: What it is called in settings and on the command line.

    Returns:
        A decorator for the class (see `katha.protocols.Renderer`).

    Raises:
        TypeError: It is used without a name.

    Example:
        >>> @register_renderer("blocks")
        ... class BlockRenderer: ...
    """
    return default_registry("renderers").register(_named(name))


def register_planner(name: str) -> Callable[[F], F]:
    """Make a planner known in this process under a name.

    Args:
        name: What it is called in settings and on the command line.

    Returns:
        A decorator for the class (see `katha.protocols.Planner`).

    Raises:
        TypeError: It is used without a name.

    Example:
        >>> @register_planner("haiku")
        ... class HaikuPlanner: ...
    """
    return default_registry("planners").register(_named(name))


def register_judge(name: str) -> Callable[[F], F]:
    """Make a judge known in this process under a name.

    Args:
        name: What it is called in settings and on the command line.

    Returns:
        A decorator for the class (see `katha.protocols.Judge`).

    Raises:
        TypeError: It is used without a name.

    Example:
        >>> @register_judge("careful")
        ... class CarefulJudge: ...
    """
    return default_registry("judges").register(_named(name))


def _named(name: str) -> str:
    # `@register_judge` without its brackets would register the class as a name and replace it by a function.
    if not isinstance(name, str):
        raise TypeError('Give the plug-in a name: @register_renderer("NAME").')
    return name
