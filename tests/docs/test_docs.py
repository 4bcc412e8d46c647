"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_NAMES = {"__start__": "start", "__end__": "finish"}


def test_the_graph_drawn_in_the_architecture_is_the_graph_that_runs() -> None:
    from katha.agents.graph import build_graph

    edges = {
        (_NAMES.get(edge.source, edge.source), _NAMES.get(edge.target, edge.target))
        for edge in build_graph().get_graph().edges
    }
    drawn = re.search(r"```mermaid\n(.*?)```", (DOCS / "architecture.md").read_text(encoding="utf-8"), flags=re.S)
    assert drawn is not None
    found = re.findall(r"(\w+)(?:\(\[\w+\]\))? -[-.].*?> (\w+)", drawn[1])
    assert set(found) == edges


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_every_link_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if not link.startswith("http") and not (path.parent / link).exists()]
    assert missing == []


ROOT = DOCS.parent
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not {".venv", ".links", "out", "CHANGELOG.md"} & set(path.relative_to(ROOT).parts)
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_of_the_repository_that_is_named_is_there(path: Path) -> None:
    """A path in code marks that begins with one of the repository's folders."""
    folders = {entry.name for entry in ROOT.iterdir() if entry.is_dir() and entry.name not in ("out", "docs")}
    named = re.findall(r"`([\w./-]+/[\w./-]*)`", path.read_text(encoding="utf-8"))
    assert [name for name in named if name.split("/")[0] in folders and not (ROOT / name).exists()] == []


def test_the_table_of_renderers_names_them_all() -> None:
    from importlib.metadata import entry_points

    table = (DOCS / "renderers.md").read_text(encoding="utf-8").split("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \|", table, flags=re.M)
    assert sorted(rows) == sorted(entry_points(group="katha.renderers").names)


def _table(page: str, head: str) -> dict[str, list[str]]:
    """The rows under the table head `head`, by their first cell."""
    text = (DOCS / page).read_text(encoding="utf-8")
    rows = text[text.index(head) :].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_the_planners_page_says_what_each_planner_may_see() -> None:
    from katha.planners.base import LadderPlanner
    from katha.registry import default_registry

    registry = default_registry("planners")
    kinds = {name: registry.load(name)[0] for name in registry.names()}
    told = {
        name: tuple(re.findall(r"`(\w+)`", row[0])) for name, row in _table("planners.md", "| planner | sees").items()
    }
    assert told == {
        name: kind.sees for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, LadderPlanner)
    }


def test_the_planners_page_knows_every_switch_and_measure() -> None:
    from katha.planners.base import ABOUT
    from katha.planners.quality import MEASURES

    assert {name: row[0] for name, row in _table("gemma-st.md", "| switch |").items()} == dict(ABOUT)
    assert {name: row[0] for name, row in _table("planners.md", "| measure |").items()} == dict(MEASURES)
