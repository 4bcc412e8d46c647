"""The recorded boards in `examples/recorded` are drawn again from their models' replies, with the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.renderers.vector.checks import identity
from katha.renderers.vector.svg import own_part, read_svg

RECORDED = sorted((Path(__file__).parents[2] / "examples" / "recorded").glob("*/board.katha"))


def test_there_are_recorded_boards() -> None:
    assert RECORDED


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.parent.name)
def test_a_recorded_board_is_drawn_again(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    (story,) = (path for path in recording.parent.iterdir() if path.stem == "story")
    out = tmp_path / "out"
    words = ["run", str(story), "--replay", str(recording), "--out", str(out)]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    shipped = json.loads((recording.parent / "storyboard.json").read_text(encoding="utf-8"))
    board = json.loads((out / "storyboard.json").read_text(encoding="utf-8"))
    assert [frame["sha256"] for frame in board["frames"]] == [frame["sha256"] for frame in shipped["frames"]]
    cast = read_svg((out / "cast.svg").read_text(encoding="utf-8"), most_bytes=100_000)
    used: dict[str, set[str]] = {}
    for frame in board["frames"]:
        own = read_svg(own_part((out / frame["source"]).read_bytes(), cast), most_bytes=100_000)
        for parts in identity(own, cast).values():
            for part in parts:
                used.setdefault(part.id, set()).add(part.sha256)
    assert used
    assert all(len(hashes) == 1 for hashes in used.values()), "a part of the cast differs between frames"
