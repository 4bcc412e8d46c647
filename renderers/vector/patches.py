"""What a model answers: whole drawings, patches of what it drew before, frames one after another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Patched", "apply_patches", "find_drawings", "find_svg", "put_together", "split_frames"]

_MARK = re.compile(r"^[ \t]*(<{5,9}[ \t]*SEARCH|={5,9}|>{5,9}[ \t]*REPLACE)[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)
_SVG_TAG = re.compile(r"""<!--.*?-->|</svg\s*>|<svg\b(?:[^<>"']|"[^"<]*"|'[^'<]*')*>""", re.DOTALL)
_FRAME = re.compile(r"^[ \t#*_`]*FRAME[ \t]+(\d{1,4})[ \t]*[:.*_`]*[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)
_FINE = re.compile(r"\bfine\b", re.IGNORECASE)
_QUOTED = 80
Box = tuple[float, float, float, float]
"""Left, top, width and height of a drawing."""
_ID = re.compile(r"""\bid=["']([^"']+)["']""")


@dataclass(frozen=True)
class Patched:
    """A source after the patches of a reply: how many were put in, why others were not, whether it was called fine."""

    source: str
    applied: int = 0
    problems: tuple[str, ...] = ()
    fine: bool = False


def apply_patches(source: str, reply: str) -> Patched:
    """Return the source with the SEARCH and REPLACE blocks of a reply put in, in order, each where it fits once."""
    applied, problems = 0, []
    blocks = list(_blocks(reply))
    for old, new in blocks:
        if new is None:
            problems.append(f"The block that begins with {_first(old)} has no end: write it again as a whole.")
            continue
        place = _found(source, old)
        if isinstance(place, str):
            problems.append(f"The SEARCH part that begins with {_first(old)} {place}")
            continue
        source = source[: place[0]] + new + source[place[1] :]
        applied += 1
    return Patched(source, applied, tuple(problems), not blocks and bool(_FINE.search(reply)))


def find_svg(reply: str) -> str | None:
    """Return the last complete <svg> element of a reply, fenced or not; none that reaches across patches."""
    return next(reversed(find_drawings(reply)), None)


def find_drawings(reply: str) -> list[str]:
    """Return the complete <svg> elements of a reply, fenced or not, in order; none that reaches across patches."""
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    for tag in _SVG_TAG.finditer(reply):
        if tag[0].startswith("<!--"):
            continue
        if not tag[0].startswith("</"):
            if tag[0].endswith("/>"):
                spans.append(tag.span())
            else:
                opened.append(tag.start())
        elif opened:
            start = opened.pop()
            spans = [span for span in spans if span[0] < start]
            spans.append((start, tag.end()))
    whole = [reply[start:end] for start, end in spans]
    return [text for text in whole if not _MARK.search(text)]


def split_frames(reply: str) -> dict[int, str]:
    """Return what a reply says under each header FRAME 3, by number."""
    heads = list(_FRAME.finditer(reply))
    found: dict[int, str] = {}
    for head, after in zip(heads, [*heads[1:], None], strict=False):
        text = reply[head.end() : after.start() if after is not None else len(reply)].strip()
        number = int(head[1])
        found[number] = f"{found[number]}\n{text}" if number in found else text
    return found


def put_together(sheets: Sequence[tuple[str, Box]]) -> str:
    """Return cast sheets, each with its box, as one below the other; an id that an earlier one has gets a number."""
    taken: set[str] = set()
    made, below, width = [], 0.0, max(box[2] for _, box in sheets)
    for number, (source, (left, top, _, height)) in enumerate(sheets, 1):
        opened = next(tag for tag in _SVG_TAG.finditer(source) if tag[0].startswith("<svg"))
        inner = source[opened.end() : source.rindex("</svg")].strip("\n")
        known = set(_ID.findall(inner))
        for name in known & taken:
            inner = re.sub(rf"""(\bid=["']|#){re.escape(name)}(?=["')])""", rf"\g<1>{name}-{number}", inner)
        taken |= known
        made.append(f'<g transform="translate({-left:g} {below - top:g})">\n{inner}\n</g>')
        below += height
    body = "\n".join(made)
    return f'<svg viewBox="0 0 {width:g} {below:g}">\n{body}\n</svg>'


def _blocks(reply: str) -> Iterator[tuple[str, str | None]]:
    """Yield what each block looks for and what it puts there; None where the block has no end."""
    old: str | None = None
    start, divided = 0, False
    for mark in _MARK.finditer(reply):
        kind = mark[1].lstrip()[0]
        if kind == "<":
            if old is not None or start:
                yield _lines(reply[start : mark.start()]) if old is None else old, None
            old, start, divided = None, mark.end(), False
        elif kind == "=" and start and not divided:
            old, start, divided = _lines(reply[start : mark.start()]), mark.end(), True
        elif kind == ">" and divided and old is not None:
            yield old, _lines(reply[start : mark.start()])
            old, start, divided = None, 0, False
    if start:
        yield old if old is not None else _lines(reply[start:]), None


def _lines(text: str) -> str:
    """Return the lines between two marks, without the breaks beside these."""
    return text.replace("\r\n", "\n").removeprefix("\n").removesuffix("\n")


def _found(source: str, old: str) -> tuple[int, int] | str:
    """Return where a text stands in the source: as it is, else with other spaces; or why it cannot be told."""
    if not old.strip():
        return "is empty: copy the lines that are to change."
    times = source.count(old)
    if times == 1:
        start = source.index(old)
        return start, start + len(old)
    if times == 0:
        places = [found.span() for found in _loosely(old).finditer(source)]
        if len(places) == 1:
            return places[0]
        times = len(places)
    if times == 0:
        return "is not in the code: copy it letter by letter."
    return f"is there {times} times: copy more lines, so that it is there once."


def _loosely(old: str) -> re.Pattern[str]:
    """Return a pattern of a text in which spaces and line breaks are alike, and may be absent between tags."""
    words = re.sub(r">\s*<", "> <", old).split()
    parts = [re.escape(words[0])]
    for before, word in pairwise(words):
        between = r"\s*" if before.endswith(">") and word.startswith("<") else r"\s+"
        parts.append(between + re.escape(word))
    return re.compile("".join(parts))


def _first(text: str) -> str:
    """Return the first line of a text, quoted."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f'"{line[:_QUOTED]}"'
