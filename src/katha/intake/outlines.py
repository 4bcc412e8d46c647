"""Outlines, beat sheets and lists: points at several levels, whose marks and headings are no words of the story."""

from __future__ import annotations

import re

from katha.intake.drafts import Passage, TextDraft, plain_marks, sentence, set_heading
from katha.intake.names import Names, word_set
from katha.intake.prose import title_page

_POINT = re.compile(
    r"^(?P<blank>\s*)(?P<mark>(?:[IVX]{1,5}|[A-Za-z]|\d{1,3}|[ivx]{1,5})[.)]|\([A-Za-z0-9ivx]{1,3}\)|\d+(?:\.\d+)+\.?|[-*+\u2022\u2013\u25aa\u25e6\u25cb\u25cf>\u2192])"
    r"\s+(?P<text>\S.*)$"
)
_BEAT = re.compile(
    r"^\s*(?:(?:[-*+\u2022]|\d{1,2}[.)])\s+)?(?P<label>[A-Za-z][\w \u00e9',&/-]{0,40}?)"
    r"\s*(?:\([^()]*\)|\[[^\[\]]*\])?\s*(?::|\s[-\u2013\u2014]\s)\s*(?P<said>.*)$"
)
_GROUP = re.compile(
    r"^\W*(?:act|part|chapter|scene|beat|section|sequence|step|day|week|stage|book|episode|volume|"
    r"canto|story beat|plot point)\s+"
    r"(?:\d+[a-z]?|[ivxlc]+|one|two|three|four|five|six|seven|eight|nine|ten|first|second|third)\b\s*(?:\([^)]*\))?\s*"
    r"(?P<mark>[:.\u2013\u2014-]*)\s*(?P<rest>.*)$",
    re.IGNORECASE,
)
# Headings are short; a longer line is a sentence without a full stop.
_LONGEST_HEAD = 7


def is_beat(label: str) -> bool:
    """Return whether words name a beat ("Inciting incident")."""
    plain = re.sub(r"^the\s+", "", " ".join(label.lower().split()).strip(" .*_"))
    plain = re.sub(r"^(?:\d+[.)]?|act \w+)\s*[:-]?\s*", "", plain).strip()
    return plain in word_set("beats")


def looks_like_outline(text: str) -> bool:
    """Return whether a text names two beats or more, or has points in letters, Roman numbers or at two levels."""
    lines = [plain_marks(line) for line in text.split("\n") if line.strip()]
    beats = sum((found := _BEAT.match(line)) is not None and is_beat(found["label"]) for line in lines)
    alone = sum(is_beat(line.strip(" :#-")) for line in lines)
    groups = sum((found := _GROUP.match(line)) is not None and bool(found["mark"] and found["rest"]) for line in lines)
    if beats + alone >= 2 or (groups >= 2 and groups + 1 >= 0.4 * len(lines)):
        return True
    points = [found for line in text.split("\n") if (found := _POINT.match(line))]
    if len(points) < 0.6 * len(lines) or len(points) < 2:
        return False
    kinds = {_kind(found["mark"]) for found in points}
    return (
        len(kinds) > 1
        or bool(kinds & {"letter", "roman", "nested", "bracket"})
        or len({len(found["blank"]) for found in points}) > 1
    )


def _kind(mark: str) -> str:
    bare = mark.strip(".()")
    if re.fullmatch(r"\d+(?:\.\d+)+", bare):
        return "nested"
    if bare.isdigit():
        return "number"
    if re.fullmatch(r"[IVX]+|[ivx]+", bare):
        return "roman"
    return "bullet" if not bare.isalpha() else "letter"


def read_outline(text: str) -> TextDraft:
    """Return an outline or a beat sheet as a story: each point a paragraph, headings left out."""
    from katha.intake.screenplays import aged

    front, body = title_page(text)
    names, draft = Names(body), TextDraft("outline", front.get("title", ""))
    heads: list[str] = [f"{key}: {said}" for key, said in front.items() if key != "title"]
    lines = [line for line in body.split("\n") if line.strip()]
    places: tuple[str, str, bool] = ("", "", False)
    beats = 0
    begins, told_any = False, False
    for at, line in enumerate(lines):
        head, told, beat = _point(line)
        beats += beat
        parent = _is_parent(lines, at, told)
        if head:
            heads.append(head)
            begins = True
        if parent:
            heads.append(told)
            places, begins = set_heading(told), True
            if not (places[1] or re.match(r"^\s*(?:INT|EXT|EST|I/E)\b", told, re.IGNORECASE)):
                places = ("", "", False)
        elif not told_any and at == 0 and not beat and _POINT.match(line) is None and _is_title(told):
            draft.title = draft.title or told.strip(" :#*")
        elif told.strip():
            told_any = True
            text_ = sentence(aged(names.told(told), names))
            draft.passages.append(Passage(text_, *places, begins=begins))
            begins = False
    draft.kind = "beat sheet" if beats > 1 else "outline"
    draft.cast(names)
    draft.leave("headings", heads, "they name parts of the story")
    return draft


def _is_title(told: str) -> bool:
    return len(told.split()) <= 10 and not re.search(r"[.!?]$", told)


def _point(line: str) -> tuple[str, str, int]:
    """Return the heading of a line, what it tells, and whether it names a beat."""
    plain = plain_marks(re.sub(r"^\s*#+\s*", "", line))
    point = _POINT.match(plain)
    told = point["text"] if point is not None else plain.strip()
    nested = _POINT.match(told)
    told = nested["text"] if nested is not None and _kind(nested["mark"]) != "letter" else told
    group = _GROUP.match(told)
    if group is not None:
        rest = group["rest"].strip()
        head = told[: group.start("rest")].strip(" :.-\u2013\u2014")
        inner = _BEAT.match(rest)
        if inner is not None and is_beat(inner["label"]):
            return f"{head}: {inner['label']}", inner["said"].strip(), 1
        if not rest or (not re.search(r"[.!?]$", rest) and len(rest.split()) < 4):
            return told, "", 0
        return head, rest, 1
    if is_beat(told.strip(" :")):
        return told, "", 1
    beat = _BEAT.match(told)
    if beat is not None and is_beat(beat["label"]):
        return beat["label"], beat["said"].strip(), 1
    return "", told, 0


def _is_parent(lines: list[str], at: int, told: str) -> bool:
    """Return whether a line is a heading: short, without an end, and points of a deeper level stand below it."""
    here = _POINT.match(lines[at])
    if lines[at].lstrip().startswith("#") and told:
        return True
    below = _POINT.match(lines[at + 1]) if at + 1 < len(lines) else None
    if below is None or not told or re.search(r"[.!?]$", told) or len(told.split()) > _LONGEST_HEAD:
        return False
    if here is None:
        return told.endswith(":") or at > 0
    deeper = len(below["blank"]) > len(here["blank"])
    other = _kind(below["mark"]) != _kind(here["mark"]) and _kind(here["mark"]) in ("roman", "number", "letter")
    longer = below["mark"].count(".") > here["mark"].count(".") and _kind(below["mark"]) == "nested"
    rises = _kind(here["mark"]) == "letter" and _kind(below["mark"]) == "roman"
    return (deeper or (other and not rises) or longer) and not (_kind(here["mark"]) == "bullet" and not deeper)
