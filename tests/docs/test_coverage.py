"""The page of what the papers have: every table once, and no command or flag that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from katha.app.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "research" / "coverage.md"
TABLES = {
    "KathaTrace (KathaBench-25K)": [*map(str, range(1, 76)), "L.4"],
    "VinaBench": [*map(str, range(1, 6)), *(f"S{at}" for at in range(1, 15))],
    "ViStoryBench": [f"S{at}" for at in range(1, 10)],
    "VCMS": [*map(str, range(1, 15))],
    "Narrative scene illustration": [*map(str, range(1, 21))],
}


def rows(title: str) -> list[list[str]]:
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    return [row for row in cells if row[0] != "table" and set(row[0]) != {"-"}]


@pytest.mark.parametrize("title", TABLES)
def test_every_table_of_a_paper_stands_once(title: str) -> None:
    found = rows(title)
    named = [name for row in found for name in row[0].replace(" ", "").split(",")]
    assert sorted(named) == sorted(TABLES[title])
    states = {row[3].split(":")[0].split(",")[0].split(";")[0].split(" (")[0].split(" where")[0] for row in found}
    assert {state.split(" for ")[0] for state in states} <= {"whole", "in part", "not done", "data"}
    assert [row[0] for row in found if row[3].startswith("in part") and ":" not in row[3]] == []
    assert [row[0] for row in found if row[3].startswith("whole") and not row[2]] == []


def test_its_commands_and_flags_exist() -> None:
    for told in re.findall(r"`katha ([a-z][^`]*)`", PAGE.read_text(encoding="utf-8")):
        verb, *words = told.split()
        command = get_command(app).resolve_command(None, [verb])[1]  # type: ignore[attr-defined,arg-type]
        while words and not words[0].startswith("-") and hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        flags = {name for parameter in command.params for name in parameter.opts}
        assert [word for word in words if word.startswith("--") and word not in flags] == [], told
