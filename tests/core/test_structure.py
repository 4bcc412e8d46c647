"""The figures of the code's structure: what the measure finds in a small tree, and what the repository keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import structure

Tree = Callable[..., tuple[dict[str, structure.Figure], list[str]]]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Measure a library that is made of the given files."""

    def make(**files: str) -> tuple[dict[str, structure.Figure], list[str]]:
        for name, text in {"__init__": "", "plain": "def one(a: int) -> int:\n    return a\n", **files}.items():
            path = tmp_path / "src" / "katha" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found, places = structure.figures(tmp_path)
        return {figure.name: figure for figure in found}, places

    return make


def test_a_tree_that_keeps_the_limits(tree: Tree) -> None:
    found, places = tree()
    assert places == []
    assert not any(figure.exceeded for figure in found.values())
    known = {"lines": 2, "files": 2, "longest function, lines": 2, "parameters at most": 1}
    assert {name: found[name].value for name in known} == known


def test_what_exceeds_a_limit_is_found_and_named(tree: Tree) -> None:
    found, places = tree(
        long="def long() -> None:\n" + "    print()\n" * 60,
        wide="def wide(" + ", ".join(f"p{at}: int" for at in range(13)) + ") -> None: ...\n",
        loose="from typing import Any\n\n\ndef loose(given) -> dict[str, Any]:\n    return given\n",
        one="import katha.two\n",
        two="def two() -> None:\n    from katha import one\n",
    )
    assert found["functions over 60 lines"].value == 1
    assert found["parameters at most"].value == 13
    assert found["functions not annotated"].value == 1
    assert found["dict[str, Any]"].value == 1
    assert found["imports of katha inside functions"].value == 1
    assert found["import cycles, lazy ones included"].value == 1
    assert {name for name, figure in found.items() if figure.exceeded} == {
        *("functions over 60 lines", "parameters p90", "parameters at most", "functions not annotated"),
        *("dict[str, Any] per 1,000 lines", "import cycles, lazy ones included"),
    }
    assert places == [
        "src/katha/long.py:1 long: 61 lines",
        "src/katha/wide.py:1 wide: 13 parameters",
        "import cycle: katha.one, katha.two",
    ]


def test_generated_options_are_not_counted(tree: Tree) -> None:
    wide = ", ".join(f"p{at}: int" for at in range(13))
    found, places = tree(options=f"def options({wide}) -> None:  {structure.GENERATED}\n    ...\n")
    assert (found["parameters at most"].value, places) == (1, [])


def test_the_command_tells_a_limit_that_is_exceeded(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = tree(long="def long() -> None:\n" + "    print()\n" * 60)
    monkeypatch.setattr(structure, "figures", lambda: (list(measured[0].values()), measured[1]))
    monkeypatch.setattr("sys.argv", ["structure"])
    assert structure.main() == 1
    said = capsys.readouterr().out
    assert "at most 0: exceeded\n" in said
    assert said.endswith("src/katha/long.py:1 long: 61 lines\n")
    monkeypatch.setattr("sys.argv", ["structure", "--json"])
    assert structure.main() == 1
    assert json.loads(capsys.readouterr().out)["functions over 60 lines"] == 1


KEPT = (
    *("parameters p90", "functions not annotated", "imports of katha inside functions"),
    "import cycles, lazy ones included",
)
"""The limits that the repository keeps: none may be exceeded again."""


def test_the_repository_keeps_its_structure() -> None:
    found, places = structure.figures()
    figures = {figure.name: figure for figure in found}
    assert figures["lines"].value > 10_000
    # Over the 200 that are aimed at: vector, composing and recordings came before the stand-in moves out.
    assert figures["files"].value <= 340
    assert [str(figures[name]) for name in KEPT if figures[name].exceeded] == [], "\n".join(places)
