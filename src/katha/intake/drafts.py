"""What a text's parser found, and the story record that it makes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from katha.intake.names import Names, word_set, words

_ENDS = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u0964:][\"'\u2019\u201d)\]\u300d\u300f]*$")
_SHOWN = 70


@dataclass
class Passage:
    """A paragraph of the story, or one shot of it. begins: a scene begins with it. prompt: how it is to be drawn."""

    text: str
    place: str = ""
    time: str = ""
    outdoors: bool = False
    number: str = ""
    begins: bool = False
    characters: list[str] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    prompt: str = ""


@dataclass
class TextDraft:
    """A text as read. shots: each passage is one panel. left_out: what is not read, a sentence each."""

    kind: str
    title: str = ""
    passages: list[Passage] = field(default_factory=list)
    looks: dict[str, str] = field(default_factory=dict)
    shots: bool = False
    left_out: list[str] = field(default_factory=list)

    def cast(self, names: Names | None, more: list[str] | None = None) -> None:
        """Take the cast of a parser's names."""
        for name in [*(names.cast if names is not None else []), *(more or [])]:
            self.looks.setdefault(name, names.looks.get(name, "") if names is not None else "")

    def leave(self, what: str, items: list[str], why: str) -> None:
        """Note what is not read: how many of what, the first of them, and why."""
        items = [" ".join(item.split()) for item in items if item.strip()]
        if items:
            shown = items[0] if len(items[0]) <= _SHOWN else f"{items[0][:_SHOWN].rsplit(' ', 1)[0]} ..."
            more = f" and {len(items) - 1} more" if len(items) > 1 else ""
            self.left_out.append(f"Not read: {what} ({shown!r}{more}): {why}.")

    @property
    def text(self) -> str:
        """The story's words."""
        return "\n\n".join(one.text for one in self.passages)


@dataclass
class Plain:
    """A text without its markup, its title, and what is not read, a sentence each."""

    text: str
    title: str = ""
    left_out: list[str] = field(default_factory=list)


def sentence(text: str) -> str:
    """Return a text in one line, with a capital, that ends as a sentence."""
    told = " ".join(text.split()).strip(" -\u2013\u2014|*")
    told = told.rstrip(",;:") if not _ENDS.search(told) or told.endswith(":") else told
    if not told:
        return ""
    ended = told if _ENDS.search(told) else f"{told}."
    return f"{ended[:1].upper()}{ended[1:]}"


def speech(who: str, said: str, how: str = "", *, past: bool = True) -> str:
    """Return direct speech as a story tells it: 'Nora whispered, "Give me that key."'."""
    quoted = " ".join(said.replace('"', "'").replace("\u201c", "'").replace("\u201d", "'").split())
    if not any(one.isalnum() for one in quoted):
        return ""
    quoted = quoted if _ENDS.search(quoted) else f"{quoted}."
    verb = words()["spoken"].get(how.lower().strip(" ."), "said")
    return f'{who[:1].upper()}{who[1:]} {verb}, "{quoted[:1].upper()}{quoted[1:]}"'


_INSIDE = re.compile(
    r"^\s*(?P<kind>(?:INT\.?\s*/\s*EXT|EXT\.?\s*/\s*INT|INT|EXT|EST|I\s*/\s*E|E\s*/\s*I|INTERIOR|EXTERIOR|INT\u00c9RIEUR|EXT\u00c9RIEUR|"
    r"INNEN|AUSSEN|AU\u1e9eEN)\b[.:,\s-]*)",
    re.IGNORECASE,
)
_PARTS = re.compile(
    r"\s+[-\u2013\u2014]+\s+|\s*[\u2013\u2014]+\s*|\s*--+\s*|,\s+|\s*;\s*|\s*\|\s*|\s*\.\s+|(?<=\w)\s+-(?=\S)|(?<=\S)-\s+"
)
_BRACKET = re.compile(r"\(([^()]*)\)")


def set_heading(heading: str, names: Names | None = None) -> tuple[str, str, bool]:
    """Return place, time of day and whether it is outdoors of a heading: "INT. PIP'S KITCHEN - NIGHT (1950)"."""
    inside = _INSIDE.match(heading)
    rest = heading[inside.end() :] if inside is not None else heading
    outdoors = inside is not None and inside["kind"].strip().upper().startswith(("EX", "AU"))
    brackets, rest = _BRACKET.findall(rest), _BRACKET.sub(" ", rest)
    parts = [part.strip(" .-#*_") for part in _PARTS.split(rest) if part.strip(" .-#*_")]
    time, kept = "", list[str]()
    for part in [*parts, *brackets]:
        plain = (
            re.sub(r"^(?:the|at|in the|early|late)\s+(?=\w)", "", part.lower()) if part in brackets else part.lower()
        )
        found = _time(plain)
        if found or plain in word_set("no_times"):
            time = time or found
        elif part in parts:
            kept.append(part)
    place = ", ".join(kept) if len(kept) < 3 else ", ".join(kept[:2])
    lower = " ".join(re.sub(r"[\[\]#*_~<>|\"]", " ", place).split()).lower()
    for name in names.cast if names is not None else ():
        lower = re.sub(rf"(?<!\w){re.escape(name.lower())}(?!\w)", name, lower)
    return re.sub(r"^(?:an?|the|in|at|inside|outside)\s+(?:the\s+|an?\s+)?(?=\w)", "", lower), time, outdoors


def _time(text: str) -> str:
    """Return the time of day that a part of a heading names, "" for none."""
    times = words()["times"]
    if text in times:
        return str(times[text])
    stripped = text.strip("()[]").split("/")[0].strip()
    if stripped in times:
        return str(times[stripped])
    tokens = stripped.split()
    if (
        1 < len(tokens) <= 4
        and (tokens[-1] in times or tokens[0] in times)
        and not any(one.isdigit() for one in stripped)
    ):
        found = tokens[-1] if tokens[-1] in times else tokens[0]
        extra = [
            one
            for one in tokens
            if one not in (found, "early", "late", "the", "next", "that", "same", "later", "in", "at")
        ]
        return "" if extra else str(times[found])
    return ""


def plain_marks(text: str) -> str:
    """Return a line without emphasis and other marks of markup."""
    told = re.sub(r"(?<!\w)(\*{1,3}|_{1,3}|`+)(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text, flags=re.DOTALL)
    told = re.sub(r"!\[[^\]\n]*\]\([^)\n]*\)", "", told)
    told = re.sub(r"\[([^\]\n]+)\]\([^)\n]*\)", r"\1", told)
    return re.sub(r"\*+|(?<!\w)_+|_+(?!\w)|\\(?=[*_#\[\]])", "", told)


def record_values(draft: TextDraft, story_id: str, title: str) -> dict[str, Any]:
    """Return the fields of the story record that a draft makes."""
    passages = [one for one in draft.passages if one.text.strip()]
    cast = [{"name": name, "look": look} for name, look in draft.looks.items()]
    values: dict[str, Any] = {
        "story_id": story_id,
        "title": draft.title or title,
        "story_text": (" " if draft.shots else "\n\n").join(one.text for one in passages),
    }
    structure: dict[str, Any] = {"kind": draft.kind, "cast": cast}
    if draft.shots:
        values["scenes"] = [
            {
                "story_id": story_id,
                "scene_index": at,
                "scene_text": one.text,
                "characters": one.characters,
                "objects": one.objects,
                "place": one.place,
                "time_of_day": one.time,
                "generation_prompt": one.prompt,
            }
            for at, one in enumerate(passages, 1)
        ]
    else:
        structure["scenes"] = [
            {
                "paragraph": at,
                "place": one.place,
                "time_of_day": one.time,
                "outdoors": one.outdoors,
                "number": one.number,
            }
            for at, one in enumerate(passages)
            if one.begins and (one.place or one.time or one.number)
        ]
    if structure["cast"] or structure.get("scenes") or draft.shots or draft.kind != "story":
        values["structure"] = structure
    return values
