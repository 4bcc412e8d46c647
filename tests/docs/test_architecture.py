"""The picture of the rooms is that of the imports, and packages import what their docstrings say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from docs.make_architecture import FLOORS, PICTURE, drawn, imports_of, picture

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
ROOMS = {room for floor in FLOORS for room in floor} - {""}
TOLD = ("app", "experiments", "agents", "compass", "planners", "renderers", "eval_bridge")
GROUND = ("composing", "intake", "models", "schema")


def _docstring(package: str) -> str:
    folder = ROOT / "src" / "katha" / package if package in GROUND else ROOT / package
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""


def test_the_picture_is_that_of_the_imports() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "python -m docs.make_architecture"
    floor_of = {room: number for number, floor in enumerate(FLOORS) for room in floor}
    assert all(floor_of[other] > floor_of[room] for room, others in drawn().items() for other in others)


@pytest.mark.parametrize("package", [*TOLD, *GROUND, "configs"])
def test_a_package_imports_what_its_docstring_says(package: str) -> None:
    told = re.search(r"^Imports: (.*?)\.$", _docstring(package), re.S | re.M)
    assert told, f"The docstring of {package} has no line that begins with 'Imports:'."
    assert set(re.findall(r"`(\w+)`", told[1])) == imports_of().get(package, frozenset()) & ROOMS


@pytest.mark.parametrize("package", TOLD)
def test_a_package_says_what_it_holds_and_what_does_not_belong_there(package: str) -> None:
    first, _, rest = _docstring(package).partition("\n\n")
    assert first.endswith(".")
    assert len(re.sub(r"Imports: .*?\.\n", "", rest, flags=re.S).strip()) > 40


def test_every_module_of_the_way_of_a_story_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## The way of a story")[2].partition("\n## ")[0]
    named = re.findall(r"^\d+\. \[`[\w/.]+`\]\(\.\./([\w/]+\.py)\)", text, re.M)
    assert 10 <= len(named) <= 15
    assert all((ROOT / path).is_file() for path in named)
