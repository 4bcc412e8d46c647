"""The site that `make docs` builds: strictly, without a network, and with pages that ask nothing of one."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_asks_nothing_of_the_network(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        html = page.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|img|iframe)[^>]*src=\"(?:https?:)?//[^\"]*", html) == [], page
        assert re.findall(r"<link[^>]*rel=\"(?:stylesheet|preconnect)\"[^>]*href=\"(?:https?:)?//", html) == [], page


def test_the_command_line_page_has_every_verb_and_option(site: Path) -> None:
    from typer.main import get_command

    from katha.app.cli.main import app

    page = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    root = get_command(app)
    assert len(root.commands) > 10  # type: ignore[attr-defined]
    for verb, command in root.commands.items():  # type: ignore[attr-defined]
        for name, inner in getattr(command, "commands", {"": command}).items():
            title = f"katha {verb} {name}".strip()
            section = page.partition(f">{title}<a")[2].partition("<h2")[0]
            assert section, title
            for option in (name for item in inner.params for name in item.opts if name.startswith("--")):
                assert f">{option}</code>" in section, f"{title} {option}"


def article(site: Path, page: str) -> str:
    """What a page says, without the navigation around it."""
    return (site / page).read_text(encoding="utf-8").partition("<article")[2].partition("</article")[0]


def test_documents_outside_the_folder_are_pages_with_links_that_lead_on(site: Path) -> None:
    assert 'href="../tutorial/plug-in-a-renderer.html"' in article(site, "project/contributing.html")
    assert 'href="../shared-attention.html"' in article(site, "project/changelog.html")
    assert 'href="../../reference/reader-card.html"' in article(site, "sketch/docs/sketch.html")
    assert 'href="project/contributing.html"' in article(site, "index.html")


def test_a_link_to_a_file_that_is_no_page_is_text(site: Path) -> None:
    said = article(site, "howto/ablate.html")
    assert "<code>configs/suites/</code>" in said
    assert "configs/suites" not in "".join(re.findall(r'href="[^"]*"', said))


def test_no_document_is_left_out_of_the_navigation(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    for document in (ROOT / "docs").rglob("*.md"):
        name = document.relative_to(ROOT / "docs").with_suffix(".html")
        assert f'href="{name}"' in page, name


def test_a_flowchart_is_drawn_with_every_node_every_label_and_ways_back(hooks: ModuleType, site: Path) -> None:
    svg = hooks.flowchart(
        "start([begin]) --> a\na -. if so .-> b\na --> c\nb --> c\nc -. once more .-> a\nc --> finish([end])"
    )
    assert re.findall(r'class="node"[^>]*>(\w+)<', svg) == ["begin", "a", "b", "c", "end"]
    assert "if so" in svg
    assert "once more" in svg
    assert svg.count("<path d=") == 6 + 1  # six ways and the arrow's tip
    machine = (site / "architecture.html").read_text(encoding="utf-8")
    assert "critique_bridges" in machine.partition('<svg class="flowchart"')[2].partition("</svg>")[0]
    assert "mermaid" not in machine
