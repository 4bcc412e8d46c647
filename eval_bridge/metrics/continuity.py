"""Continuity of screen direction and shot size, read off the plan alone: no picture is looked at and nothing is asked.

The rules are those of continuity editing (Bordwell and Thompson, Film Art, ch. 6). Within one place with a character in
both shots, the direction in which things face or move stays (the 180 degree rule), and a cut changes the size by some
steps but not from one end to the other, or keeps it where the angle changes: the same size from the same angle jumps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured
from katha.schema import Panel
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

_LADDER: Mapping[str, int] = {
    "extreme close-up": 0,
    "close-up": 1,
    "medium close-up": 2,
    "medium": 3,
    "medium wide": 4,
    "full": 4,
    "wide": 5,
    "long": 5,
    "extreme wide": 6,
    "establishing": 6,
}
_MOST_STEPS = 3
_LOOKS = r"(?:facing|looking|walking|running|moving|going|turned|turning|riding|flying|heading|pointing)"
_LEFT = re.compile(rf"\b{_LOOKS}(?: to(?:wards?)?)?(?: the)? left\b|\bright[- ]to[- ]left\b", re.IGNORECASE)
_RIGHT = re.compile(rf"\b{_LOOKS}(?: to(?:wards?)?)?(?: the)? right\b|\bleft[- ]to[- ]right\b", re.IGNORECASE)


class Continuity:
    """Screen direction and shot size that stay legible from shot to shot, by the plan's own words."""

    card: ClassVar[MetricCard] = MetricCard(
        name="continuity",
        title="Continuity of direction and size",
        paper="continuity editing, after Bordwell and Thompson, Film Art, ch. 6; no paper's measure",
        formula="share of cuts within a place, with a character in both, that keep direction; that change size legibly",
        level="frame",
        parts=(
            MetricPart(name="direction", about="cuts that keep the screen direction", average="micro"),
            MetricPart(name="shot_size", about="cuts whose sizes are neither equal nor extremes", average="micro"),
        ),
        needs=("plan",),
        licence="no code, model or data of others",
        cost="nothing: only the plan is read",
        vector="plans by hand, tests/eval_bridge/test_metrics_continuity.py",
    )

    def spec(self) -> Mapping[str, Any]:
        """Name and version."""
        return {"name": "continuity", "version": 1}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield 1 or 0 a cut, as the later frame's; cuts about which the plan says nothing have no value."""
        if board.plan is None:
            raise Unmeasured("the board has no plan")
        panels = {panel.index: panel for panel in board.plan.panels}
        shots = [(at, panels.get(frame.scene)) for at, frame in enumerate(board.frames, 1) if frame.scene is not None]
        known = [(at, panel) for at, panel in shots if panel is not None]
        if len(known) < 2:
            raise Unmeasured("fewer than two frames have a panel in the plan")
        found = list(_cuts(known))
        for part, nothing in (
            ("direction", "no two neighbouring shots of a place say where things face"),
            ("shot_size", "no two neighbouring shots of a place say their size"),
        ):
            values = [(at, kept) for name, at, kept in found if name == part]
            if not values:
                yield board.value(part, None, reason=nothing)
            for at, kept in values:
                yield board.value(part, float(kept), frame=at)


def _cuts(shots: Sequence[tuple[int, Panel]]) -> Iterator[tuple[str, int, bool]]:
    """Yield part, later frame and whether the cut keeps its rule."""
    for (_, first), (at, second) in pairwise(shots):
        if not _same_place(first, second) or not set(first.characters) & set(second.characters):
            continue
        before, after = _direction(first), _direction(second)
        if before and after:
            yield "direction", at, before == after
        sizes = [_LADDER.get(panel.shot_size.strip().lower()) for panel in (first, second)]
        if sizes[0] is not None and sizes[1] is not None:
            steps = abs(sizes[0] - sizes[1])
            turned = bool(first.shot_angle and second.shot_angle) and first.shot_angle != second.shot_angle
            yield "shot_size", at, turned if steps == 0 else steps <= _MOST_STEPS


def _same_place(first: Panel, second: Panel) -> bool:
    return bool(first.place.strip()) and first.place.strip().casefold() == second.place.strip().casefold()


def _direction(panel: Panel) -> str:
    """Return `left` or `right` where the panel's words say one of the two, else nothing."""
    text = f"{panel.prompt} {panel.caption}"
    said = {name for name, words in (("left", _LEFT), ("right", _RIGHT)) if words.search(text)}
    return said.pop() if len(said) == 1 else ""
