"""Every figure of the README and the documentation is made of an archive in this tree, or says of which day it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchmarks import research

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIGURE = re.compile(
    r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?: (?:and|to) \d[\d,]*(?:\.\d+)?)?%"  # a share
    r"|(?<![\w.])[+-]?\d+(?:\.\d+)? points\b"
    r"|\b[\d,]{2,} of [\d,]{2,}\b"
    r"|\(-?\d+\.\d+ to -?\d+\.\d+\)"  # an interval
)
DAY = re.compile(r"\b2026-\d\d-\d\d\b|\]\((?:\.\./)*research/[a-z-]+\.md|\bthis tree\b")
"""A day, or a link to the page of research that has it."""
BLOCK = re.compile(r"<!-- research: ([a-z-]+) -->.*?<!-- research: end -->", flags=re.S)
RULES: Mapping[str, set[str]] = {
    "ablations.md": {"80%", "10 points", "95%", "5%"},
    "benchmarks.md": {"5%", "2.5%"},
    "concepts/stg.md": {"40 points", "95%"},
    "glossary.md": {"95%"},
    "howto/compare.md": {"5%"},
    "howto/your-own-questions.md": {"10 points"},
    "planners.md": {"80%"},
    "gemma-st.md": {"60%"},
    "matching.md": {"95%"},
    "evaluators.md": {"95%"},
    "scores.md": {"5%", "95%", "40%", "10 points", "80%"},
    "robustness.md": {"30%"},
}
"""What a page sets itself or explains by an example, and nobody measured."""


def undated(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each line with figures that no day goes with: in its paragraph or row, or before it under its heading."""
    text = re.sub(r"```.*?```", "", BLOCK.sub("", text), flags=re.S)
    told = False
    for block in re.split(r"\n\s*\n", text):
        told = told and not block.startswith("#")
        table = block.lstrip().startswith("|")
        for line in block.splitlines():
            found = FIGURE.findall(re.sub(r"`[^`]*`|\"[^\"]*\"", "", line))
            if found and not told and not DAY.search(line if table else block):
                yield line, found
        told = told or DAY.search(block) is not None


def folder_of(path: Path) -> str:
    return str(path.parent.relative_to(ROOT)) if path.parent != ROOT else ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_figure_says_of_which_day_it_is(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    if path.parent.name == "research":  # the page's first words say it for all of it
        opening = page.split("\n## ")[0]
        assert DAY.search(opening) or path.name == "index.md" or list(undated(page)) == []
        return
    rules = RULES.get(str(path.relative_to(ROOT / "docs")) if path.name != "README.md" else "", set())
    lost = {line[:160]: own for line, found in undated(page) if (own := [item for item in found if item not in rules])}
    assert lost == {}


def test_the_readme_has_no_figure_beside_the_newest_table() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert BLOCK.findall(page) == ["newest"]
    rest = re.sub(r"```.*?```|`[^`]*`|\"[^\"]*\"", "", BLOCK.sub("", page), flags=re.S)
    assert FIGURE.findall(rest) == []


@pytest.mark.parametrize("path", research.PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_pages_say_what_comes_out_of_the_archives(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in's own pairs take a minute and a half: its own tests hold their numbers."""
    page = path.read_text(encoding="utf-8")
    kept = {found[1]: found[0] for found in BLOCK.finditer(page)}
    words = re.sub(r"<!-- [^>]* -->", "", kept.get("matching-words", "")).strip()
    monkeypatch.setitem(research.BLOCKS, "matching-words", lambda: words)
    assert research.written(page, folder_of(path)) == page


def test_every_block_stands_in_a_page() -> None:
    told = {name for path in research.PAGES for name in BLOCK.findall(path.read_text(encoding="utf-8"))}
    assert told == set(research.BLOCKS)


def test_a_figure_without_a_day_is_found() -> None:
    assert [found for _, found in undated("# A\n\nOf 40 boards 81.9% are read, 3.4 points more (1.2 to 5.6).")] == [
        ["81.9%", "3.4 points", "(1.2 to 5.6)"]
    ]
    assert list(undated("# A\n\nOf 2026-11-28.\n\n81.9% are read.")) == []
    assert [line for line, _ in undated("# A\n\nOf 2026-11-28.\n\n# B\n\n81.9% are read.")] == ["81.9% are read."]


def test_a_page_that_says_something_else_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- research: repair -->\n\n30 of 30 right.\n\n<!-- research: end -->\n", encoding="utf-8")
    monkeypatch.setattr(research, "PAGES", (page,))
    monkeypatch.setattr(research, "ROOT", tmp_path)
    with pytest.raises(SystemExit):
        research.main(["--check"])
    research.main([])
    assert "17 of 30" in page.read_text(encoding="utf-8")
    research.main(["--check"])


SHORT = [
    *(f"docs/{name}.md" for name in ("protocol", "matching", "scores", "tables", "evaluators", "eval-folder")),
    *(f"docs/{name}.md" for name in ("judgments", "ablations", "tuning", "judges", "open-judges", "planners")),
    *(f"docs/{name}.md" for name in ("gemma-st", "cluster", "size-a-job", "shared-store", "renderers-diffusion")),
    *(f"docs/{name}.md" for name in ("renderers-services", "renderers-folder", "renderers-your-own")),
    "sketch/docs/sketch.md",
]


@pytest.mark.parametrize("name", SHORT)
def test_a_page_of_the_reference_is_short_enough_to_read(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").split()) <= 2_000
