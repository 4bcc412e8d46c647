"""What a preset proposes and this machine has: packages, weights, keys, servers of its own.

Nothing is loaded or fetched; asked is only a server of one's own that the environment names, which models it serves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from katha.agents.context import load_plugins, make_planner, make_renderer
from katha.config import Settings, resolve, usual_preset
from katha.errors import KathaError, UsageError
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.matching.rules import make_decider
from katha.installing import stand_in_line
from katha.models.served import ENGINES, address_variable

_FIRST_PART = re.compile(r" where |, ")
_MAKERS: Mapping[str, tuple[str, Callable[[Any], object]]] = {
    "planner": ("planner", lambda named: make_planner(Settings(planner=named))),
    "renderer": ("renderer", lambda named: make_renderer(Settings(renderer=named))),
    "judges": ("judge", lambda named: _make_judges(Settings(judges=named).judges)),
    "matching": ("matching rule", make_decider),
}


def _unnamed(one: Any) -> str | None:
    """Return the variable that would name the server of a proposal; None where it has one, or needs none."""
    provider = str(one).partition(":")[0]
    variable = address_variable(provider) if provider in ENGINES else None
    return variable if variable is not None and not os.environ.get(variable) else None


def _make_judges(named: Sequence[str]) -> None:
    """Make the judges. One behind vLLM or SGLang is there where the environment says where, and the server has it."""
    variable = next(filter(None, map(_unnamed, named)), None)
    if variable is not None:
        raise UsageError("No server is named.", hint=f"Set {variable}.")
    for spec, judge in make_judges(named):
        if spec.partition(":")[0] in ENGINES:
            judge.spec()


def choose_here(name: str, proposed: Sequence[Any]) -> Any:
    """Return the first of what a preset proposes for the setting `name` that this machine has; None is the default's.

    Raises:
        UsageError: it has none of them; the hint says what to add for each.
    """
    what, make = _MAKERS.get(name, (name, lambda named: None))
    lacking: list[str] = []
    for one in _named_first(proposed):
        meant = one if one is not None else usual_preset()[1].get(name)
        if meant is None:
            lacking.append(f"the stand-in: {stand_in_line()}")
            continue
        try:
            make(meant)
            return one
        except KathaError as error:
            lacking.append(f"{_named(meant)}: {_FIRST_PART.split(error.hint or error.message)[0].rstrip('.')}")
    raise UsageError(
        f"The preset proposes a {what}, and this machine has none of those.",
        hint=f"Add one ({'; '.join(lacking)}), or name another with --{what}.",
    )


def choose_countable(name: str, proposed: Sequence[Any]) -> Any:
    """Return what `choose_here` does, and the first where this machine has none: for what only counts and prices."""
    try:
        return choose_here(name, proposed)
    except UsageError:
        return _named_first(proposed)[0]


def _named_first(proposed: Sequence[Any]) -> list[Any]:
    """Return the proposals in order; servers that nobody has named are the last that a person would add."""
    return sorted(proposed, key=lambda one: _unnamed(one) is not None)


def _named(one: Any) -> str:
    return one if isinstance(one, str) else ", ".join(map(str, one))


def lacks(preset: str) -> tuple[Settings, str]:
    """Return the settings of a preset as this machine would run them, and the first thing that it lacks ("": none)."""
    try:
        config = resolve({}, preset=preset, environment={}, choose=choose_here)
        load_plugins(config)
    except KathaError as error:
        return resolve({}, preset=preset, environment={}, choose=choose_countable), " ".join(
            filter(None, (error.message, error.hint))
        )
    return config, ""
