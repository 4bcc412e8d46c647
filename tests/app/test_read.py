"""`katha read`: what a file is read as; the terminal's letters; frame rates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.day_one import keys_set
from katha.app.exports.board import ExportOptions

SCRIPT = (
    "Title: Tea\nAuthor: A. Nobody\n\nINT. KITCHEN - NIGHT #4#\n\nIDA (70, red hat) pours tea.\n\n"
    "IDA\nDrink!\n\nCUT TO:\n"
)


def test_it_says_kind_scenes_cast_words_and_what_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "tea.fountain"
    path.write_text(SCRIPT, "utf-16")
    told = CliRunner().invoke(app, ["read", str(path)])
    assert told.exit_code == 0
    for word in (
        "Tea (tea)",
        "Fountain script, utf-16",
        "Ida (70, red hat)",
        "kitchen, night [4]",
        "A. Nobody",
        "CUT TO",
    ):
        assert word in told.output
    row = json.loads(CliRunner().invoke(app, ["read", str(path), "--json"]).output)["stories"][0]
    assert (row["kind"], row["encoding"], row["cast"]) == (
        "Fountain script",
        "utf-16",
        [{"name": "Ida", "look": "70, red hat"}],
    )
    assert row["scenes"][0]["place"] == "kitchen"
    assert row["text"] == '70-year-old Ida pours tea.\n\nIda said, "Drink!"'


def test_a_code_page_is_read_where_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes("Zoë opened the café. A dog ran in.".encode("cp1252"))
    refused = CliRunner().invoke(app, ["read", str(path)])
    assert refused.exit_code == 1 or refused.exception is not None
    told = CliRunner().invoke(app, ["read", str(path), "--encoding", "cp1252", "--text"])
    assert told.output == "Zoë opened the café. A dog ran in.\n"
    wrong = CliRunner().invoke(app, ["read", str(path), "--encoding", "no-such"])
    assert "no encoding" in str(wrong.exception)


def test_a_folder_and_shots_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Shot,Description\n1,A fox runs\n2,A crow sings\n", "utf-8")
    told = CliRunner().invoke(app, ["read", str(tmp_path / "a.csv")])
    assert "shots     1. A fox runs." in told.output
    (tmp_path / "b.txt").write_text("A fox ran. It sat.", "utf-8")
    (tmp_path / "c.md").write_text("# T\n\nA hen ran. It sat.", "utf-8")
    both = CliRunner().invoke(app, ["read", str(tmp_path), "--json"])
    assert [row["story_id"] for row in json.loads(both.output)["stories"]] == ["b", "c"]


def test_a_story_is_printed_in_utf_8_whatever_the_code_page(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_text("Zoë found a fish 🐟. The dog barked.", "utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "COLUMNS": "200"}
    code = (
        "import sys; sys.argv = ['katha', 'read', sys.argv[1], '--text']; from katha.app.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], env=environment, capture_output=True, check=True)
    assert done.stdout.decode("utf-8").strip() == "Zoë found a fish 🐟. The dog barked."


@pytest.mark.parametrize(
    ("told", "rate"),
    [
        ("23.976", (24000, 1001)),
        (29.97, (30000, 1001)),
        ("24000/1001", (24000, 1001)),
        (25, (25, 1)),
        ("12.5", (25, 2)),
    ],
)
def test_a_frame_rate_is_a_fraction(told: object, rate: tuple[int, int]) -> None:
    assert ExportOptions(fps=told).fps == Fraction(*rate)  # type: ignore[arg-type]


@pytest.mark.parametrize("told", ["fast", "0", "500", "1/0"])
def test_no_frame_rate_is_refused(told: str) -> None:
    with pytest.raises(ValidationError):
        ExportOptions(fps=told)  # type: ignore[arg-type]


def test_a_word_that_stands_for_no_key_is_no_key() -> None:
    assert not list(keys_set({"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "EMPTY"}))
    assert [name for name, _ in keys_set({"OPENAI_API_KEY": "sk-real"})] == ["OPENAI_API_KEY"]
