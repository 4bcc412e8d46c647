"""Plain text: what stands around a story (a byline, chapter headings, "The End") is taken off and named."""

from __future__ import annotations

import re

from katha.intake.drafts import Plain
from katha.intake.names import word_set

_KEY = re.compile(r"^\s{0,3}([A-Za-z][A-Za-z /]{1,24}?)\s*:\s*(.*)$")
_BYLINE = re.compile(
    r"^\s*(?:(?:written|retold|adapted|illustrated|translated|told)\s+)?(?:and \w+ )?by\s+[A-Z][\w.'\u2019 ,&-]{1,60}$",
    re.IGNORECASE,
)
_CHAPTER = re.compile(
    r"^\W*(?:chapter|part|book|act|canto|section)\s+(?:\d+|[ivxlc]+|one|two|three|four|five|six|seven|"
    r"eight|nine|ten|eleven|twelve|the \w+)\b"
    r"\s*(?:[:.\u2013\u2014-]+\s*.{0,80})?$",
    re.IGNORECASE,
)
_BREAK = re.compile(r"^\s*(?:[*#~=_.\u2022\u25c6\u2042-]\s*){3,}$|^\s*[\u2042\u2767]\s*$")
_END = re.compile(r"^\W*(?:the\s+end|fin|finis|end)\W*$", re.IGNORECASE)
# In words: titles, bylines ("a tale by ... and ..."), and how many lines of a head are looked at.
_LONGEST_HEAD, _LONGEST_BYLINE, _HEAD_LINES = 6, 9, 2
_TAG = re.compile(r"</?(?:b|i|u|em|strong|br|p|span|font|small|sup|sub)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_PAGE = re.compile(r"^\s*(?:-+\s*)?(?:page\s+)?\d{1,4}(?:\s*(?:of|/)\s*\d{1,4})?(?:\s*-+)?\s*$", re.IGNORECASE)


_OPENING = re.compile(
    r"\A\s*(?:sure|certainly|of course|absolutely|great|okay|ok|here(?:'s| is| are)|below is)\b"
    r"[^\n]{0,200}[:!.]\s*\n\s*\n?",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"\n\s*\n(?:let me know|would you like|i hope|feel free|do you want|"
    r"if you(?:'d| would) like|want me to)\b[^\n]*\s*\Z",
    re.IGNORECASE,
)


_FENCED = re.compile(r"\A\s*(?P<fence>`{3,}|~{3,})[\w+-]*[ \t]*\n(?P<inside>.*?)\n[ \t]*(?P=fence)\s*\Z", re.DOTALL)


def without_chatter(text: str) -> tuple[str, list[str]]:
    """Return a text without what a language model says before and after it ("Sure! Here is the story:"), and that."""
    left: list[str] = []
    for pattern in (_OPENING, _CLOSING):
        found = pattern.search(text)
        told = found[0].strip() if found is not None else ""
        if found is not None and len(found[0]) < len(text) / 2 and (told.endswith(":") or pattern is _CLOSING):
            left.append(told)
            text = text.replace(found[0], "\n\n" if pattern is _CLOSING else "", 1)
    fenced = _FENCED.match(text)
    text = fenced["inside"] if fenced is not None and fenced["fence"] not in fenced["inside"] else text
    return text, [f"Not read: {one!r}: it is about the text." for one in left]


def _is_short(line: str) -> bool:
    return len(line.split()) <= _LONGEST_HEAD and not re.search(r"[.!?][\"'\u201d\u2019]?$", line)


def _around(lines: list[str], at: int, *, early: bool) -> int:
    """Return how many lines from this one on are no sentences: a chapter's heading, a byline, a page's number."""
    line = lines[at]
    below, after = (lines[at + step].strip() if at + step < len(lines) else "" for step in (1, 2))
    opens = at == 0 or not lines[at - 1].strip()
    if not line.strip():
        return 0
    if opens and not below and any(form.match(line) for form in (_CHAPTER, _END, _BREAK, _PAGE)):
        return 1
    if opens and not after and _CHAPTER.match(line) and _is_short(below):
        return 2
    byline = early and _BYLINE.match(line) and len(line.split()) <= _LONGEST_BYLINE and not line.strip().endswith(".")
    return 1 if byline else 0


def title_page(text: str) -> tuple[dict[str, str], str]:
    """Return the keys of a title page with what they say, and the text below it; nothing where it has none."""
    found: dict[str, str] = {}
    lines = text.lstrip("\n").split("\n")
    key, taken = "", 0
    for line in lines:
        match = _KEY.match(line)
        if match is not None and match[1].lower() in word_set("title_page"):
            key = match[1].lower()
            found[key] = match[2].strip()
        elif key and line.strip() and re.match(r"^(?:\s{2,}|\t)", line):
            found[key] = f"{found[key]} {line.strip()}".strip()
        else:
            break
        taken += 1
    if not found or list(found) in (["notes"], ["date"], ["by"], ["version"]):
        return {}, text
    return found, "\n".join(lines[taken:])


def read_prose(text: str) -> Plain:
    """Return a story without what is no sentence of it."""
    front, body = title_page(text)
    left: list[str] = [f"{key}: {said}" for key, said in front.items() if key != "title"]
    lines = body.split("\n")
    kept: list[str] = []
    at = 0
    while at < len(lines):
        count = _around(lines, at, early=sum(bool(one.strip()) for one in kept) <= _HEAD_LINES)
        left += [line.strip() for line in lines[at : at + count] if re.search(r"\w", line)]
        kept += [] if count else [lines[at]]
        at += max(1, count)
    told = "\n".join(kept) if len(kept) < len(lines) or front else text
    told = re.sub(r"\n{3,}", "\n\n", told) if len(kept) < len(lines) or front else told
    told = _TAG.sub("", re.sub(r"(?<=\w) & (?=\w)", " and ", told))
    said = [f"Not read: {len(left)} lines around the story (the first: {left[0][:60]!r})."] if left else []
    return Plain(told.strip("\n"), front.get("title", ""), said)
