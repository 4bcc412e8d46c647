"""The state of the machine, JSON only: images are named by hash, answers are in the log, plug-ins in the context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

__all__ = ["BridgeTask", "CritiqueTask", "RenderTask", "RunState", "add", "merge"]


def merge(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """Reducer: keys of parallel branches side by side, in sorted order; a key written again is replaced."""
    return dict(sorted({**(old or {}), **new}.items()))


def add(old: Mapping[str, float] | None, new: Mapping[str, float]) -> dict[str, float]:
    """Reducer: numbers added up by key."""
    total = dict(old or {})
    for key, value in new.items():
        total[key] = total.get(key, 0) + value
    return total


class RunState(TypedDict, total=False):
    """What passes between the nodes and is kept in `graph.sqlite`."""

    plan_sha256: str
    """The hash of the plan in use (`plan.json`)."""

    boards: Annotated[dict[str, dict[str, Any]], merge]
    """Every board drawn, by candidate name (`candidate:SEED`, `bridge:SEED`), as `Board` dumps."""

    scored: Annotated[dict[str, dict[str, Any]], merge]
    """Every board measured, by the same names, as `Candidate` dumps."""

    selected: str
    """The name of the base board that goes on."""

    weakest: dict[str, Any] | None
    """Where a frame goes in: `pair`, `score`, `reason`; None when nothing is to be inserted."""

    note: str
    """Why nothing is inserted, when nothing is."""

    bridge_prompt: str | None
    """The prompt that a reviewing person wrote, if any."""

    choice: dict[str, Any] | None
    """The reviewing person's choice: `action`, `candidate`, `prompt`."""

    rounds: int
    """How many frames were accepted so far."""

    decision: dict[str, Any]
    """The outcome, as a `Decision` dump."""

    timings: Annotated[dict[str, float], add]
    """Seconds spent by stage, over all processes of this run."""


class RenderTask(TypedDict):
    """One branch of `render`: a seed's board."""

    seed: int


class BridgeTask(TypedDict):
    """One branch of `bridge`: the selected board with a frame drawn from `seed` inserted."""

    seed: int
    board: dict[str, Any]
    pair: tuple[int, int]
    prompt: str | None


class CritiqueTask(TypedDict):
    """One branch of `critique`: the board of that name."""

    name: str
    board: dict[str, Any]
