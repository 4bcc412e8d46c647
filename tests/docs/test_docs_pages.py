"""The tutorials and how-to pages, followed literally; and what every document says of commands is so.

On these pages a block ```sh is run, and a block with `title="FILE"` is written to FILE before the next one is. Blocks
of other languages (```bash, ```text) need keys, models or people and are only read: their verbs and options must exist.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from docs.make_transcripts import BLOCK, follow, transcripts

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TESTED_ELSEWHERE = {"add-your-own", "python-api"}  # below, and in tests/app/test_public_api.py
WITHOUT_MAKE = {"windows", "macos"}
"""Pages for systems that this is not: their lines are read."""
FOLLOWED = [
    page
    for page in (*sorted(DOCS.glob("tutorial/*.md")), *sorted(DOCS.glob("howto/*.md")))
    if page.stem not in TESTED_ELSEWHERE
]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
OUTPUTS = {
    "add-your-own": ["out/captions/report.html", "out/captions/table.json"],
    "first-board": ["out/lion/report.html", "out/lion.png", "out/fox/report.html", "out/birthday/report.html"],
    "interchange": ["hub/eval.yaml", "hub/README.md"],
    "judge-your-boards": ["out/eval/report.html", "out/both/report.html"],
    "picture-book": ["lantern.png", "lantern.pdf", "lantern.epub", "lantern.otioz", "lantern.gif"],
    "plug-in-a-renderer": ["out/keyhole.png", "out/compare/report.html", "katha-keyhole/katha_keyhole.py"],
}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache under all pages, in whichever worker: most of them begin with the same story."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "pages_cache"


def check(page: Path, folder: Path, cache: Path) -> int:
    """Do what `page` says; the number of blocks that were run. What they print is what the page shows."""
    ran = list(follow(page, folder, cache))
    outputs, shown = dict(ran), transcripts(page.read_text(encoding="utf-8"))
    assert [(run, outputs[run]) for run, _ in shown] == shown, "run python -m docs.make_transcripts"
    for output in OUTPUTS.get(page.stem, []):
        assert (folder / "work" / output).is_file(), output
    return len(ran)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.stem)
def test_a_page_can_be_followed_literally(page: Path, tmp_path: Path, cache: Path) -> None:
    run = check(page, tmp_path, cache)
    assert run > 0 or page.stem in {
        "index",
        "release",
        "container",
        "desk",
        "desk-pictures",
        "judge-with-a-model",
        "mcp",
        "measure-your-renderer",
        *WITHOUT_MAKE,
    }


def test_no_page_promises_an_install_or_a_bridge_that_there_is_not() -> None:
    for page in DOCUMENTS:
        assert not re.search(r"pip install [\"']?katha\b", page.read_text(encoding="utf-8")), f"{page}: on no index"
    told = dict(transcripts((DOCS / "tutorial" / "first-board.md").read_text(encoding="utf-8")))
    output = next(output for run, output in told.items() if "lion_and_mouse.txt" in run)
    frames = re.search(r"full +\d+ of (\d+) pictures", output)
    assert frames is not None
    wanted = f"{frames[1]} frames, and no bridge" if "Not inserted" in output else f"{frames[1]} frames, one a bridge"
    (shown,) = re.findall(r"!\[(.*?)\]\(images/lion_and_mouse.png\)", (DOCS / "index.md").read_text(encoding="utf-8"))
    assert wanted in shown


def test_the_worked_examples_are_short_and_do_what_their_page_says(tmp_path: Path, cache: Path) -> None:
    page = DOCS / "howto" / "add-your-own.md"
    examples = {title: text for _, title, text in BLOCK.findall(page.read_text(encoding="utf-8")) if title}
    judge, mode = examples["overlap.py"], examples["captions.yaml"]
    renderer, matcher = examples["discs.py"], examples["most_words.py"]
    section = examples["prompts.html.j2"] + examples["prompts_section.py"]
    assert max(len(text.splitlines()) for text in (judge, mode, section, renderer, matcher)) < 30
    check(page, tmp_path, cache)
    out = tmp_path / "work" / "out"
    answered = [json.loads(line)["judge"] for line in (out / "overlap" / "answers.jsonl").read_text().splitlines()]
    assert answered.count("overlap:Overlap") == answered.count("sketch-reader") > 0
    rows = [row["mode"] for row in json.loads((out / "captions" / "table.json").read_text())["rows"]]
    assert rows == ["base", "caption_bridge", "careful_captions"]
    frames = json.loads((out / "discs" / "storyboard.json").read_text())["frames"]
    assert len(frames) == 5
    assert len({frame["sha256"] for frame in frames}) > 1  # frames with the same cast are the same
    assert json.loads((out / "most_words.json").read_text())["matching"] == "most-words"
    report = (out / "overlap" / "report.html").read_text(encoding="utf-8")
    sections = re.findall(r'<section id="(\w+)"', report)
    assert sections[-2:] == ["prompts", "repeat"]
    assert re.findall(r'<a href="#(\w+)">', report.partition("<nav")[2].partition("</nav>")[0])[-2:] == sections[-2:]


def test_every_line_of_day_one_would_run(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `--dry-run`, which checks all settings: neither weights, nor a key, nor a card is here."""
    from typer.testing import CliRunner

    from katha.app.cli.main import app

    monkeypatch.setenv("KATHA_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    records = [
        json.loads((ROOT / "examples" / f"{name}.json").read_text()) for name in ("lion_and_mouse", "fox_and_crow")
    ]
    (tmp_path / "stories.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    pages = [(DOCS / "howto" / f"{name}.md").read_text(encoding="utf-8") for name in ("day-one", "a-card")]
    lines = [line for page in pages for line in told(page) if " " in line]
    drawing = [line for line in lines if line.split()[0] in ("run", "ablate", "compare")]
    assert len(drawing) > 8
    for line in drawing:
        words = shlex.split(line, comments=True)
        done = CliRunner().invoke(app, [*words, *(() if "--dry-run" in words else ("--dry-run",))])
        assert done.exit_code == 0, f"katha {line}\n{done.output}\n{done.exception}"


def test_day_one_begins_with_a_first_board_that_is_read_in_two_minutes() -> None:
    first, _, rest = (DOCS / "howto" / "day-one.md").read_text(encoding="utf-8").partition("That is all.")
    assert len(first.split()) < 300
    assert "katha run examples/lion_and_mouse.txt --out out/lion-drawn" in first
    assert len(rest.split()) < 700


def told(text: str) -> list[str]:
    """Every `katha ...` command of a document: lines of its blocks, and what stands in backquotes."""
    blocks = "\n".join(block[2] for block in BLOCK.findall(text)).replace("\\\n", " ")
    lines = re.findall(r"^(?:\S+=\S+ )*(?:\S*/)?katha ([^\n]+)", blocks, flags=re.MULTILINE)
    return lines + re.findall(r"`katha ([^`]+)`", BLOCK.sub("", text))


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_every_verb_and_option_of_a_document_exists(path: Path) -> None:
    from typer.main import get_command

    from katha.app.cli.main import app

    root = get_command(app)
    for line in told(path.read_text(encoding="utf-8")):
        command: Any = root
        words = line.split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        known = {name for item in command.params for name in (*item.opts, *item.secondary_opts)} | {"--help", "--debug"}
        assert not words or command is not root or words[0].startswith("--"), f"katha {line}"
        assert [word for word in re.findall(r"(?<![\w-])--[\w-]+", line) if word not in known] == [], f"katha {line}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_every_make_target_of_a_document_exists(path: Path) -> None:
    targets = re.findall(r"(?:^|`)make ([a-z]+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    rules = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(set(targets) - set(rules)) == []


def test_the_glossary_has_the_words_that_the_reports_use() -> None:
    terms = re.findall(r"^([A-Z][^\n]*)\n:   ", (DOCS / "glossary.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for word in ("STG", "Recoverability", "Text ceiling", "Valid question", "Common-valid", "Steering and reporting"):
        assert any(word in term for term in terms), word
    for word in ("Bridge", "Coverage", "Copy penalty", "lock", "Raw", "Filtered", "Ambiguity rate", "Typed failure"):
        assert any(word in term for term in terms), word


def test_the_columns_of_a_comparison_are_those_that_are_printed() -> None:
    printed = transcripts((DOCS / "tutorial" / "plug-in-a-renderer.md").read_text(encoding="utf-8"))
    (head,) = {line for _, text in printed for line in text.splitlines() if line.split()[:1] == ["method"]}
    page = (DOCS / "howto" / "compare.md").read_text(encoding="utf-8").partition("## Read the table")[2]
    told = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.M)))
    assert set(head.replace("95% interval", "").split()) - {"method"} == set(told)
