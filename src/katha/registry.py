"""One registry for renderers, planners, judges and metrics, and the options that a person gives them as `key=value`.

A plug-in is named `NAME` or `NAME:ARGUMENT` (`openai:gpt-5`, `recorded:answers.jsonl`); the argument is handed to its
class as the one positional parameter. A class path may have one, too: `package.module:Class:ARGUMENT`.

Everything else that a person may set is an option, and nothing has to be declared twice: `steps: int = 50` is set by
`--renderer-option steps=4` where it is a keyword-only parameter of the plug-in's class, or a field of the record that
the class names as its `options_class`. An option that is annotated as a tuple or list is taken as often as it is given.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints, runtime_checkable

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from katha.errors import KathaError, UnknownPluginError, UsageError, first_line

Family = Literal[
    "renderers", "planners", "judges", "similarities", "readers", "matchers", "metrics", "encoders", "detectors"
]
Factory = Callable[..., Any]
F = TypeVar("F", bound=Factory)
OWN_PLUGINS = "See docs/howto/add-your-own.md."
"""Where to read what a plug-in has to have."""
ALLOW_CODE = "KATHA_ALLOW_CODE"
"""The environment variable of class paths (`package.module:Class`, with blanks) that files may name."""
_LISTS = (tuple, list, frozenset, set)
_EMPTY = inspect.Parameter.empty
_CLASS_PATH = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)(?::(.*))?", re.DOTALL)


@runtime_checkable
class DeclaresOptions(Protocol):
    """A plug-in's class that takes its options as one record, `options=options_class(steps=4)`.

    `options_class` is a dataclass with keyword-only fields; the fields are the options, and what the record refuses is
    refused with its own sentence.
    """

    options_class: ClassVar[type[Any]]


def read_options(given: Iterable[str] | str) -> dict[str, str | list[str]]:
    """Return `key=value` strings (or one line of them) as a mapping; a key that is given again makes a list.

    Raises:
        UsageError: one has no `=` or no key.
    """
    found: dict[str, str | list[str]] = {}
    for item in shlex.split(given) if isinstance(given, str) else given:
        key, equals, value = item.partition("=") if isinstance(item, str) else ("", "", "")
        name = key.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise UsageError(f"The option {str(item)[:200]!r} is not KEY=VALUE.", hint="For example steps=4.")
        before = found.get(name)
        found[name] = value if before is None else [*([before] if isinstance(before, str) else before), value]
    return found


def option_names(factory: Factory) -> dict[str, str]:
    """Return the options of a plug-in's class, each with its annotation and default in words."""
    return {name: _described(parameter) for name, parameter in _options(factory).items()}


def fit_options(factory: Factory, given: Mapping[str, object], what: str) -> dict[str, object]:
    """Return `given` with each value converted to its option's annotation.

    Raises:
        UsageError: there is no such option, or its value does not fit; `what` names the plug-in.
    """
    known, hints = _options(factory), _hints(factory)
    fitted: dict[str, object] = {}
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"The {what} has no option {name!r}.", hint=_suggest(name, list(known)) or "It has none.")
        fitted[name] = _fit(value, hints.get(name, _EMPTY), f"The option {name!r} of the {what}")
    return fitted


def _options(factory: Factory) -> dict[str, inspect.Parameter]:
    taker = factory.options_class if isinstance(factory, DeclaresOptions) else factory
    try:
        parameters = inspect.signature(taker).parameters.values()
    except (TypeError, ValueError) as error:
        raise UnknownPluginError(f"{str(factory)[:200]!r} is nothing that a plug-in is made by.") from error
    return {item.name: item for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY}


def _hints(factory: Factory) -> dict[str, Any]:
    """Return the annotations as types; those that cannot be resolved at run time are left out."""
    if isinstance(factory, DeclaresOptions):
        return get_type_hints(factory.options_class)
    target: Any = factory.__init__ if inspect.isclass(factory) else factory
    try:
        return get_type_hints(target)
    except Exception:  # an annotation is an expression of the plug-in's own
        return {}


def _fit(value: object, hint: Any, where: str) -> object:
    if hint is _EMPTY:
        return value
    if get_origin(hint) in _LISTS and not isinstance(value, (list, tuple)):
        value = [value]
    try:
        return TypeAdapter[object](hint, config=ConfigDict(strict=False)).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where} cannot be {value!r}: {reason}.") from error
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise UsageError(f"{where} cannot be set from outside.") from error


def _described(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation
    shown = "" if kind is _EMPTY else kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return shown if parameter.default is _EMPTY else f"{shown} = {parameter.default!r}".strip()


def _suggest(name: str, known: Sequence[str]) -> str:
    """Return which of `known` was meant, and all of them; nothing where there are none."""
    close = get_close_matches(name, known, n=1)
    return (f"Did you mean {close[0]!r}? " if close else "") + (f"Known: {', '.join(known)}." if known else "")


class Registry:
    """The plug-ins of one family: entry points, decorated classes, class paths. Nothing is imported unasked."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._local: dict[str, Factory] = {}
        self.what = "similarity" if family == "similarities" else family.removesuffix("s")

    def register(self, name: str) -> Callable[[F], F]:
        """Make the decorated class known in this process under a name.

        Args:
            name: What it is called in settings and on the command line.

        Returns:
            A decorator for the class (see `katha.protocols`).

        Raises:
            TypeError: It is used without a name.

        Example:
            >>> @katha.register_renderer("blocks")
            ... class BlockRenderer: ...
        """
        # `@register_judge` without its brackets would register the class as a name and replace it by a function.
        if not isinstance(name, str):
            raise TypeError('Give the plug-in a name: @register_renderer("NAME").')

        def add(factory: F) -> F:
            self._local[name] = factory
            return factory

        return add

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        return sorted({*self._local, *self._entry_points()})

    def packages(self) -> list[str]:
        """Return the top packages of the installed plug-ins, sorted."""
        return sorted({entry.module.partition(".")[0] for entry in self._entry_points().values()})

    def load(self, spec: str) -> tuple[Factory, str | None]:
        """Return the class behind `spec`, and the argument after its colon.

        Raises:
            UnknownPluginError: no plug-in of that name, or its module cannot be imported.
        """
        name, _, argument = spec.partition(":")
        if name in self._local:
            return self._local[name], argument or None
        if (entry := self._entry_points().get(name)) is not None:
            return self._import(entry), argument or None
        path = _CLASS_PATH.fullmatch(spec)
        if path is not None and ("." in name or find_spec(name) is not None):
            return self._import(EntryPoint(path[1], path[1], "")), path[2] or None
        known = _suggest(name, self.names()).removesuffix(".")
        raise UnknownPluginError(
            f"No {self.what} is called {name[:80]!r}.", hint=f"{known}; or name a class as package.module:Class."
        )

    def configure(self, spec: str, options: Mapping[str, object]) -> Any:
        """Make the plug-in behind `spec` with options that a person gave (`--renderer-option steps=4`).

        Raises:
            UnknownPluginError: there is none. UsageError: an option that it does not have, or of the wrong kind.
        """
        factory, _ = self.load(spec)
        return self.create(spec, **fit_options(factory, options, f"{self.what} {spec!r}"))

    def create(self, spec: str, **options: Any) -> Any:
        """Make the plug-in behind `spec`; `options` are values of the options' own types.

        Raises:
            UnknownPluginError: there is none, it lacks a method, or it does not take these options.
        """
        factory, argument = self.load(spec)
        lacking = sorted(getattr(factory, "__abstractmethods__", ()))
        if lacking:
            raise UnknownPluginError(
                f"The {self.what} {spec!r} is none: it has no {' and no '.join(lacking)}.", hint=OWN_PLUGINS
            )
        try:
            given = {"options": factory.options_class(**options)} if isinstance(factory, DeclaresOptions) else options
            return factory(argument, **given) if argument is not None else factory(**given)
        except KathaError:
            raise
        except (Exception, SystemExit) as error:
            told = str(error) if isinstance(error, TypeError) else _cause(error)
            raise UnknownPluginError(f"The {self.what} {spec!r} cannot be made: {told.rstrip('.')}.") from error

    def _entry_points(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in offered(self.family)}

    def _import(self, entry: EntryPoint) -> Factory:
        try:
            loaded: Factory = entry.load()
        except (Exception, SystemExit) as error:
            told = str(error) if isinstance(error, (ImportError, AttributeError)) else _cause(error)
            raise UnknownPluginError(
                f"The {self.what} {entry.name!r} cannot be imported: {told.rstrip('.')}."
            ) from error
        if not callable(loaded):
            raise UnknownPluginError(f"The {self.what} {entry.name!r} is a {type(loaded).__name__}, not a class.")
        return loaded

    def refuse_code(self, spec: str, where: str) -> None:
        """Refuse code that data names: what a file says is imported only if the person says so, too.

        Raises:
            UsageError: `spec` is a class path that is neither an installed plug-in nor named in KATHA_ALLOW_CODE.
        """
        path, name = _CLASS_PATH.fullmatch(spec), spec.partition(":")[0]
        if path is None or name in self._local or name in self._entry_points():
            return
        if path[1] not in os.environ.get(ALLOW_CODE, "").split():
            raise UsageError(
                f"{where} names the {self.what} {spec!r}: code is not run because a file names it.",
                hint=f"If you trust it, set {ALLOW_CODE}={path[1]!r}, or give it an entry point.",
            )


def offered(group: str) -> Sequence[EntryPoint]:
    """Return what installed packages offer as `katha.GROUP`; nothing of it is imported."""
    return tuple(_installed(*sys.path).get(f"katha.{group}", ()))


@lru_cache(maxsize=1)
def _installed(*path: str) -> Mapping[str, EntryPoints]:
    """Return what the packages on `path`, which is `sys.path`, offer; a file of each is read, so it is done once."""
    found = entry_points()
    return {group: found.select(group=group) for group in found.groups if group.startswith("katha.")}


def _cause(error: BaseException) -> str:
    """Return what an error of a plug-in's own says in one line."""
    if isinstance(error, SystemExit):
        return f"it would end the program (SystemExit {error.code!r})"
    return f"{type(error).__name__}: {first_line(error)[:500]}"


_REGISTRIES: dict[Family, Registry] = {family: Registry(family) for family in get_args(Family)}


def default_registry(family: Family) -> Registry:
    """Return the process's registry of `family`."""
    return _REGISTRIES[family]


register_renderer = default_registry("renderers").register
"""Make a renderer (see `katha.protocols.Renderer`) known in this process under a name: `Registry.register`."""
register_planner = default_registry("planners").register
"""Make a planner (see `katha.protocols.Planner`) known in this process under a name: `Registry.register`."""
register_judge = default_registry("judges").register
"""Make a judge (see `katha.protocols.Judge`) known in this process under a name: `Registry.register`."""
register_matcher = default_registry("matchers").register
"""Make a matcher (see `katha.eval_bridge.matching.match.WordRule`) known in this process under a name."""
register_metric = default_registry("metrics").register
"""Make a metric (see `katha.eval_bridge.metrics.Metric`) known in this process under a name: `Registry.register`."""
