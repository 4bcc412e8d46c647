"""Pictures whose names can be read in two orders: every command with a folder of them asks, and tells it."""

from __future__ import annotations

from pathlib import Path

import pytest
from evals import picture
from study_material import records
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.imports import put_files
from katha.errors import InputFileError, UsageError
from katha.jsonio import canonical

PLAIN, TWO = (
    tuple(f"shot{at}_take{at % 2 + 1}.png" for at in range(1, 6)),
    tuple(f"{at}_{6 - at}.png" for at in range(1, 6)),
)


@pytest.fixture
def stories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "stories.jsonl").write_bytes(canonical(records()[0].model_dump(mode="json")) + b"\n")
    return str(tmp_path / "stories.jsonl")


def boards(folder: Path, names: tuple[str, ...]) -> str:
    place = folder / "boards" / records()[0].story_id
    place.mkdir(parents=True)
    for at, name in enumerate(names, 1):
        (place / name).write_bytes(picture(at))
    return str(folder / "boards")


def commands(stories: str, given: str, out: Path) -> dict[str, list[str]]:
    return {
        "eval": ["eval", stories, "--boards", given, "--judge", "openai:toy", "--dry-run", "--out", str(out)],
        "metrics": ["metrics", given, "--stories", stories, "--metric", "continuity", "--out", str(out)],
        "people": ["people", "pack", stories, "--boards", given, "--out", str(out), "--design", "within"],
    }


@pytest.mark.parametrize("verb", ["eval", "metrics", "people"])
def test_the_order_is_told_before_anything_is_done(verb: str, stories: str, tmp_path: Path) -> None:
    given = boards(tmp_path, PLAIN)
    told = CliRunner().invoke(app, commands(stories, given, tmp_path / "out")[verb])
    assert "Order of boards" in told.stderr
    assert "1 shot1_take2.png, 2 shot2_take1.png" in told.stderr


@pytest.mark.parametrize("verb", ["eval", "metrics", "people"])
def test_two_readings_are_refused_and_chosen(verb: str, stories: str, tmp_path: Path) -> None:
    given = boards(tmp_path, TWO)
    words = commands(stories, given, tmp_path / "out")[verb]
    refused = CliRunner().invoke(app, words)
    said = refused.output + refused.stderr + str(refused.exception)
    assert "two orders" in said
    assert "--order" in said
    told = CliRunner().invoke(app, [*words, "--order", "second"])
    assert "1 5_1.png, 2 4_2.png" in told.stderr
    assert "two orders" not in told.output + told.stderr


def test_a_run_s_own_boards_have_no_order(stories: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    words = ["metrics", str(tmp_path / "run"), "--order", "first", "--out", str(tmp_path / "out")]
    assert "--order is of pictures in plain folders" in str(CliRunner().invoke(app, words).exception)


def test_files_that_are_brought_are_numbered_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    given = [(name, picture(at)) for at, name in enumerate(TWO, 1)]
    with pytest.raises(InputFileError, match="two orders"):
        put_files(tmp_path / "a", given)
    place = put_files(tmp_path / "b", given, "second")
    kept = [(place / f"frame_{at:03d}.png").read_bytes() for at in range(1, 6)]
    assert kept == [data for _, data in reversed(given)]
    with pytest.raises(UsageError, match="Not every picture"):
        put_files(tmp_path / "c", given, "shot")
