"""The benchmark of damage: what is taken from a board costs answers, and a figure that is dropped is gone."""

from __future__ import annotations

from pathlib import Path

from benchmarks.damage import DAMAGES, _dropped, _figures, _read, losses
from katha.app.drawing import run_story
from katha.app.reports.page import load_run
from katha.pictures import decode

STORIES = {
    "kite": "Ben flew a kite in the park. The wind took the kite. Ben cried. A girl climbed the tree and gave Ben the "
    "kite. Ben smiled.",
    "soup": "Ada cooked soup in the kitchen. She burned her hand and shouted. Her brother poured water on it. "
    "Ada thanked him. They ate.",
}


def test_damage_costs_answers_and_a_dropped_figure_is_gone(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in STORIES]
    for folder, text in zip(folders, STORIES.values(), strict=True):
        run_story(text, out=folder)
    whole, *rest = losses(folders)
    assert [one.damage for one in rest] == [*DAMAGES]
    by = {one.damage: one for one in rest}
    assert whole.right > 0
    assert all(abs(one.right + one.loss - whole.right) < 1e-6 for one in rest)
    assert by["blank"].right < whole.right
    assert by["first frame only"].loss > 0
    board, other = (_read(load_run(folder), folder) for folder in folders)
    without = _dropped(board, other)
    drawn = [bool(_figures(svg)) for svg in board.layered]
    changed = [decode(one).tobytes() != decode(two).tobytes() for one, two in zip(board.frames, without, strict=True)]
    assert any(changed)
    assert not any(now and not figures for now, figures in zip(changed, drawn, strict=True))
