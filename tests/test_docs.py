"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
_NAMES = {"__start__": "start", "__end__": "finish"}


def test_the_graph_drawn_in_the_architecture_is_the_graph_that_runs() -> None:
    from katha.agents import build_graph

    edges = {
        (_NAMES.get(edge.source, edge.source), _NAMES.get(edge.target, edge.target))
        for edge in build_graph().get_graph().edges
    }
    drawn = re.search(r"```mermaid\n(.*?)```", (DOCS / "architecture.md").read_text(encoding="utf-8"), flags=re.S)
    assert drawn is not None
    found = re.findall(r"(\w+)(?:\(\[\w+\]\))? -[-.].*?> (\w+)", drawn[1])
    assert set(found) == edges


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_every_link_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if not link.startswith("http") and not (path.parent / link).exists()]
    assert missing == []


def test_the_table_of_renderers_names_them_all() -> None:
    from katha.registry import default_registry

    table = (DOCS / "renderers.md").read_text(encoding="utf-8").split("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \|", table, flags=re.M)
    assert sorted(rows) == default_registry("renderers").names()
