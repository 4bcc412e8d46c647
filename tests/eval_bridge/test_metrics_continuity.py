"""Continuity read off plans by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from metric_boards import make_board, make_context

from katha.eval_bridge.metrics import measure_board
from katha.eval_bridge.metrics.continuity import Continuity
from katha.schema import Panel, Plan


def plan(*panels: tuple[str, str, str, str]) -> Plan:
    """Return a plan of prompt, place, size and angle a panel, all with the fox."""
    made = [
        Panel(index=at, prompt=prompt, place=place, shot_size=size, shot_angle=angle, characters=["fox"])
        for at, (prompt, place, size, angle) in enumerate(panels, 1)
    ]
    return Plan(story_id="fox", planner="hand", panels=made)


@pytest.mark.parametrize(
    ("panels", "direction", "size"),
    [
        ((("A fox walking to the left.", "wood", "wide", "low"), ("Fox facing left.", "wood", "medium", "low")), 1, 1),
        ((("A fox facing left.", "wood", "wide", "low"), ("Fox facing right.", "wood", "close-up", "low")), 0, 0),
        ((("A fox facing left.", "wood", "wide", "low"), ("Fox facing left.", "wood", "wide", "low")), 1, 0),
        ((("A fox facing left.", "wood", "wide", "low"), ("Fox facing left.", "wood", "wide", "high")), 1, 1),
        ((("A fox facing left.", "wood", "wide", "low"), ("Fox facing right.", "inn", "wide", "low")), None, None),
        ((("A fox.", "wood", "", ""), ("A fox.", "wood", "", "")), None, None),
    ],
)
def test_cuts(
    tmp_path: Path, panels: tuple[tuple[str, str, str, str], ...], direction: int | None, size: int | None
) -> None:
    board = make_board(["one", "two"], plan=plan(*panels))
    found = {value.part: value.value for value in measure_board(Continuity(), board, make_context(tmp_path))}
    assert found == {"direction": direction, "shot_size": size}


def test_without_a_plan_there_is_no_continuity(tmp_path: Path) -> None:
    found = list(measure_board(Continuity(), make_board(), make_context(tmp_path)))
    assert [value.reason for value in found] == ["the board has no plan"] * 2
