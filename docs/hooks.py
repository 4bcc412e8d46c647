"""Hooks of MkDocs: pages made while the site is built.

- `reference/cli.md` gets every verb with its options, read from the Typer application.
- Documents outside `docs/` (`ADDED`) become pages of the site.
- A link to a file that is not a page (`../configs/boards.yaml`) becomes plain text.
- A Mermaid flowchart becomes an SVG drawing, so that no reader's browser has to fetch a script for it.
"""

from __future__ import annotations

import html
import importlib
import logging
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

APP = "katha.app.cli.main:app"
ROOT = Path(__file__).parents[1]
ADDED = {
    "project/contributing.md": "CONTRIBUTING.md",
    "project/changelog.md": "CHANGELOG.md",
    "reference/reader-card.md": "sketch/src/katha_sketch/reader/CARD.md",
    "sketch/index.md": "sketch/README.md",
    "sketch/docs/sketch.md": "sketch/docs/sketch.md",
    "sketch/docs/reading.md": "sketch/docs/reading.md",
}
PICTURES = "sketch/docs/images"
_LOG = logging.getLogger("mkdocs.hooks.katha")  # MkDocs counts its warnings: with --strict the build fails
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_MERMAID = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents outside `docs/` as pages, and their pictures."""
    from mkdocs.structure.files import File

    for page, source in ADDED.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for picture in sorted((ROOT / PICTURES).rglob("*.png")):
        name = picture.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the command line, turn links into the site's and draw flowcharts."""
    uri = page.file.src_uri
    if uri == "reference/cli.md":
        markdown += "\n".join(command_line())
    source = ADDED.get(uri, f"docs/{uri}")
    markdown = _LINK.sub(lambda link: _site_link(link, source, uri), markdown)
    return _MERMAID.sub(lambda block: flowchart(block[1]), markdown)


def _site_link(link: re.Match[str], source: str, uri: str) -> str:
    """The link as the page `uri` has to write it; `source` is the document it stands in, from the repository's root."""
    text, target, anchor = link[1], link[2], link[3] or ""
    if "://" in target or target.startswith("mailto:"):
        return link[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    pages = {document: page for page, document in ADDED.items()}
    page = pages.get(path) or path.removeprefix("docs/")
    if page == path:
        if not (ROOT / path).exists():
            _LOG.warning("%s links to %r, and there is no such file.", source, target)
        return text
    return f"[{text}]({posixpath.relpath(page, posixpath.dirname(uri) or '.')}{anchor})"


# --- the command line


def command_line() -> Iterator[str]:
    """Lines of Markdown: one section a verb, with its usage, its arguments and its options."""
    from typer.main import get_command

    module, _, name = APP.partition(":")
    root = get_command(getattr(importlib.import_module(module), name))
    for verb, command in sorted(root.commands.items()):  # type: ignore[attr-defined]
        yield from _command(f"katha {verb}", command, 2)


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} {name}\n"
    yield re.sub(r"\n(?!\n)", " ", (command.help or "").replace("\b", "")).strip()
    if hasattr(command, "commands"):
        for verb, inner in command.commands.items():
            yield from _command(f"{name} {verb}", inner, level + 1)
        return
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    needed = " ".join(item.name.upper() for item in arguments)
    yield f"\n```text\n{name} {needed} [OPTIONS]\n```\n"
    yield "| option | what it does |\n|---|---|"
    for item in command.params:
        yield f"| {_names(item)} | {_about(item)} |"


def _names(item: Any) -> str:
    if item.param_type_name == "argument":
        return f"`{item.name.upper()}`"
    return ", ".join(f"`{name}`" for name in (*item.opts, *item.secondary_opts))


def _about(item: Any) -> str:
    """Return what an argument or option is for, with what has to be known beside it."""
    several = item.multiple and "several" not in (item.help or "").lower()
    notes = [_default(item), "may be given several times" if several else "", "required" if item.required else ""]
    said = "; ".join(note for note in notes if note)
    about = html.escape((item.help or "").strip(), quote=False).replace("|", "\\|").replace("\n", " ")
    return f"{about} *({said})*" if said else about


def _default(item: Any) -> str:
    value = item.default
    if value is None or isinstance(value, bool) or callable(value) or item.required or value in ((), []):
        return ""
    return f"default `{getattr(value, 'value', value)}`"


# --- flowcharts

_NODE = r"(\w+)(?:\(\[(\w+)\]\))?"
_EDGE = re.compile(rf"{_NODE}\s+(?:-->|-\.->|-\.\s(.+?)\s\.->)\s+{_NODE}")
_HALF, _HIGH, _STEP, _CENTRE = 82, 15, 66, 235


def flowchart(source: str) -> str:
    """An SVG of a flowchart in Mermaid's notation: the nodes in one column, the other ways at its sides."""
    names: dict[str, str] = {}
    edges: list[tuple[str, str, str]] = []
    for first, first_text, label, second, second_text in _EDGE.findall(source):
        names[first] = first_text or names.get(first, first)
        names[second] = second_text or names.get(second, second)
        edges.append((first, second, label))
    order = _order(list(names), [(first, second) for first, second, _ in edges])
    place = {name: nth * _STEP + 24 for nth, name in enumerate(order)}
    drawn = [_box(names[name], name, y) for name, y in place.items()]
    lanes = {"right": _HALF + 20, "left": _HALF + 20}
    for first, second, label in sorted(edges, key=lambda edge: abs(place[edge[0]] - place[edge[1]])):
        start, end = place[first], place[second]
        if end - start == _STEP:
            drawn.append(_straight(start, end, label))
            continue
        side = "right" if end > start else "left"
        words = _lines(label)
        lanes[side] = max(lanes[side] + 14, _HALF + 18 + 7 * max(map(len, words), default=0))
        drawn.append(_around(start, end, words, lanes[side] if side == "right" else -lanes[side]))
    width, height = _CENTRE + lanes["right"] + 12, len(order) * _STEP
    body = "".join(drawn)
    return (
        f'<svg class="flowchart" viewBox="0 0 {width} {height}" style="max-width: {width}px" role="img" '
        f'aria-label="{html.escape(" to ".join(order))}"><defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
        f'markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>{body}</svg>'
    )


def _order(names: list[str], edges: list[tuple[str, str]]) -> list[str]:
    """The nodes from the first on, each after all that lead to it but for ways back (depth first, reversed)."""
    done: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        seen.add(name)
        for first, second in edges:
            if first == name and second not in seen:
                visit(second)
        done.append(name)

    visit(names[0])
    return done[::-1]


def _box(text: str, name: str, y: int) -> str:
    shape = _HIGH if text != name else 4
    return (
        f'<rect x="{_CENTRE - _HALF}" y="{y - _HIGH}" width="{2 * _HALF}" height="{2 * _HIGH}" rx="{shape}"/>'
        f'<text class="node" x="{_CENTRE}" y="{y + 5}">{html.escape(text)}</text>'
    )


def _lines(label: str) -> list[str]:
    """The label in one line, or in two where it is long: after its comma, or in its middle."""
    if len(label) <= 18:
        return [label] if label else []
    if ", " in label:
        return [part + "," * (nth == 0) for nth, part in enumerate(label.split(", ", 1))]
    blanks = [nth for nth, letter in enumerate(label) if letter == " "]
    middle = min(blanks, key=lambda nth: abs(nth - len(label) / 2))
    return [label[:middle], label[middle + 1 :]]


def _text(words: list[str], x: int, y: int, anchor: str) -> str:
    return "".join(
        f'<text x="{x}" y="{y + 13 * nth}" text-anchor="{anchor}">{html.escape(line)}</text>'
        for nth, line in enumerate(words)
    )


def _straight(start: int, end: int, label: str) -> str:
    words = _lines(label)
    middle = (start + end) // 2 + 4 - 6 * (len(words) - 1)
    return f'<path d="M{_CENTRE} {start + _HIGH}V{end - _HIGH}"/>' + _text(words, _CENTRE + 9, middle, "start")


def _around(start: int, end: int, words: list[str], lane: int) -> str:
    """A way past other nodes, right of the column for a positive lane; its words stand where it begins."""
    side, turn = (1, 8) if lane > 0 else (-1, -8)
    down = 8 if end > start else -8
    edge, x = _CENTRE + side * _HALF, _CENTRE + lane
    begin, stop = start + (4 if end > start else -4), end - (4 if end > start else -4)
    path = (
        f"M{edge} {begin}H{x - turn}Q{x} {begin} {x} {begin + down}V{stop - down}Q{x} {stop} {x - turn} {stop}H{edge}"
    )
    anchor = "start" if side > 0 else "end"
    return f'<path d="{path}"/>' + _text(words, edge + 6 * side, begin - 5 - 13 * (len(words) - 1), anchor)
