"""What is compared: methods, each a name and the settings that it has of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from katha.agents.context import fitting_options
from katha.compass.modes import load_mode
from katha.config import Settings, refuse_code
from katha.errors import UsageError
from katha.eval_bridge.scoring.outcomes import ENSEMBLE
from katha.jsonio import digest, read_yaml

_FIELDS = {"planner", "planner_options", "renderer", "renderer_options", "bridge_renderer", "bridge_renderer_options"}
_FIELDS |= {"guide", "guide_options", "mode", "size", "memory"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+:/-]{0,63}")


@dataclass(frozen=True)
class Method:
    """One way to make a board: `config` differs from the other methods' in planner, renderer or mode only."""

    name: str
    config: Settings

    @property
    def slug(self) -> str:
        """The name as part of a path."""
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.name)[:40]}-{digest(self.name)[:6]}"

    @property
    def repairs(self) -> bool:
        """Return whether the mode measures boards with steering questions, so that only the reporting ones may be
        shown."""
        mode = load_mode(self.config.mode)
        return mode.insert != "none" or mode.select == "best"


def cross_methods(
    config: Settings,
    planners: Sequence[str] = (),
    renderers: Sequence[str] = (),
    modes: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> list[Method]:
    """Return every planner with every renderer in every mode; what is not given is `config`'s. A name says what varies.

    options: of the renderers; each gets those that it has.

    Raises:
        UsageError: fewer than two methods, or two that are the same; or an option that none of the renderers has.
    """
    asked = (planners or (config.planner,), renderers or (config.renderer,), modes or (config.mode,))
    fitting = fitting_options(asked[1], options or {})
    made = []
    for planner, renderer, mode in product(*asked):
        parts = [_short(part) for part, tried in zip((planner, renderer, mode), asked, strict=True) if len(tried) > 1]
        changed = config.with_plugins(planner=planner, renderer=renderer, renderer_options=fitting[renderer], mode=mode)
        made.append(Method(" + ".join(parts) or _short(renderer), changed))
    return _checked(made)


def read_methods(path: Path, config: Settings) -> list[Method]:
    """Return the methods that a YAML file lists: a name each, and what they have of their own.

    Raises:
        UsageError: the file is no such list; the row and the field are named.
    """
    rows = read_yaml(path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("name") for row in rows):
        raise UsageError(f"{str(path)!r} must be a list of methods with a name each.", hint="See docs/renderers.md.")
    return _checked([_read(path, place, row, config) for place, row in enumerate(rows, 1)])


def _read(path: Path, place: int, row: Mapping[str, Any], config: Settings) -> Method:
    where = f"{str(path)!r}, method {place} ({row['name']!r})"
    values = {key: value for key, value in row.items() if key != "name"}
    strange = sorted(set(values) - _FIELDS)
    if strange:
        known = ", ".join(sorted(_FIELDS))
        raise UsageError(f"{where} has the unknown field {strange[0]!r}.", hint=f"Known: name, {known}.")
    refuse_code(values, where, received=True)
    try:
        return Method(str(row["name"]), config.with_plugins(**values))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}, {field!r}: {first['msg'].removeprefix('Value error, ')}.") from error


def _short(spec: str) -> str:
    """Return a plug-in's name for people: a path becomes its last part."""
    name, colon, argument = spec.partition(":")
    short = argument.rstrip("/").rpartition("/")[2] if "/" in argument else argument
    return re.sub(r"[^A-Za-z0-9 ._+:/-]+", "-", f"{name}{colon}{short}")[:48]


def _checked(methods: Iterable[Method]) -> list[Method]:
    found = list(methods)
    names = [method.name for method in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"Two methods are called {twice[0]!r}.", hint="Give each its own name with --methods FILE.")
    bad = next((name for name in names if not _NAME.fullmatch(name) or name == ENSEMBLE), None)
    if bad is not None:
        raise UsageError(f"{bad!r} cannot name a method.", hint="Use letters, digits, blanks and . _ + : / -.")
    if len(found) < 2:
        raise UsageError("There is one method only, so nothing to compare.", hint="Give --renderer or --planner twice.")
    for method in found:
        load_mode(method.config.mode)
    return found
