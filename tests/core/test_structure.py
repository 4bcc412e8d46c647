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
        found, places = structure.figures(structure.CORE, tmp_path)
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
        two="def two() -> None:\n    from katha import one\n    from katha_sketch.english import read_story\n",
        typed="from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import katha.again\n",
        again="import katha.typed\n",
        first="class Asked: ...\n\n\nclass _Own: ...\n",
        second="class Asked: ...\n\n\nclass _Own: ...\n",
        knotted="def knotted(a: int) -> int:\n" + "    a += 1 if a else 2\n" * 25 + "    return a\n",
    )
    assert found["functions over 60 lines"].value == 1
    assert found["parameters at most"].value == 13
    assert found["functions not annotated"].value == 1
    assert found["dict[str, Any]"].value == 1
    assert found["imports of katha inside functions"].value == 1
    assert found["import cycles, lazy ones included"].value == 2
    assert found["imports of the stand-in"].value == 1
    assert found["most complex function"].value == 26
    assert found["public class names defined twice"].value == 1
    assert {name for name, figure in found.items() if figure.exceeded} == {
        *("functions over 60 lines", "parameters p90", "parameters at most", "functions not annotated"),
        *("dict[str, Any] per 1,000 lines", "import cycles, lazy ones included"),
        *("imports of the stand-in", "most complex function", "public class names defined twice"),
    }
    assert places == [
        "src/katha/knotted.py:1 knotted: complexity 26",
        "src/katha/long.py:1 long: 61 lines",
        "src/katha/two.py:3 imports the stand-in",
        "src/katha/wide.py:1 wide: 13 parameters",
        "import cycle: katha.again, katha.typed",
        "import cycle: katha.one, katha.two",
        "class Asked is defined twice: src/katha/first.py:1, src/katha/second.py:1",
    ]


def test_generated_options_are_not_counted(tree: Tree) -> None:
    wide = ", ".join(f"p{at}: int" for at in range(13))
    found, places = tree(options=f"def options({wide}) -> None:  {structure.GENERATED}\n    ...\n")
    assert (found["parameters at most"].value, places) == (1, [])


def test_the_command_tells_a_limit_that_is_exceeded(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = tree(long="def long() -> None:\n" + "    print()\n" * 60)
    monkeypatch.setattr(structure, "figures", lambda house: (list(measured[0].values()), measured[1]))
    monkeypatch.setattr("sys.argv", ["structure"])
    assert structure.main() == 1
    said = capsys.readouterr().out
    assert "at most 0: exceeded\n" in said
    assert said.endswith("src/katha/long.py:1 long: 61 lines\n")
    monkeypatch.setattr("sys.argv", ["structure", "--json"])
    assert structure.main() == 1
    assert json.loads(capsys.readouterr().out)["katha"]["functions over 60 lines"] == 1


@pytest.mark.parametrize("house", [structure.CORE, structure.SKETCH], ids=lambda house: house.name)
def test_the_repository_keeps_its_structure(house: structure.House) -> None:
    found, places = structure.figures(house)
    figures = {figure.name: figure for figure in found}
    assert figures["lines"].value > 10_000
    assert [f"{one.name}: {one.value:g}, at most {one.most:g}" for one in found if one.exceeded] == [], "\n".join(
        places
    )
