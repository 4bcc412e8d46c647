"""What stands under the labels of shots and the heads of columns, as sentences, people and places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from katha.intake.drafts import Passage, TextDraft, plain_marks, sentence, set_heading, speech
from katha.intake.names import Names, bare, word_set, words
from katha.intake.screenplays import aged, is_look

# What a plan may have; a longer list is a text and no shot list.
_MOST_PANELS = 200
NOBODY = frozenset(
    ("", "none", "nobody", "-", "n/a", "na", "no one", "nc", "no characters", "empty", "\u2013", "\u2014", "null", "x")
)
BULLET = re.compile(r"^\s*(?:[-*+\u2022\u2013]|\d+[.)])\s+(?=\S)")
LABEL = re.compile(
    r"^\s*(?P<label>[A-Za-z#][\w /.'&#-]{0,30}?)\s*(?P<how>\([^()\n]*\))?\s*(?::|\uff1a|"
    r"\s[-\u2013\u2014]\s|=(?!=))\s*(?P<said>.*)$"
)
NUMBER = (
    r"(?:\d+[A-Za-z]?(?:\s*(?:/|of)\s*\d+)?|[ivxlc]+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"first|second|third|fourth|fifth|final|last)"
)
MARKER = re.compile(
    rf"^\s*(?:#+\s*)?[\[(<*=_\-\s]*(?P<what>scene|shot|panel|frame|page|beat|sequence|act|part|image|picture|storyboard|clip|cut|episode|step|spread)"
    rf"\s*(?:no\.?|number|#)?\s*(?P<number>{NUMBER})\b[\])>*=_]*(?:\s*\([^)]*\))?\s*(?P<mark>[:.,\u2013\u2014|-]*)\s*(?P<rest>.*?)\s*[\])>*=_-]*$",
    re.IGNORECASE,
)
CAMERA = re.compile(
    r"^\s*(?:(?:extreme|very|medium|wide|full|long|big|over[- ]the[- ]shoulder|ots|two|establishing|"
    r"low|high|bird'?s[- ]eye|aerial|"
    r"tracking|dutch|worm'?s[- ]eye|cowboy|master|insert|reaction|pov|splash|inset|silent|large|small|"
    r"tall|same|angle|tight|point of view|"
    r"eye[- ]level|overhead|static|slow|handheld|half|half-page|full-page|close|ext|int|day|night)[- ]*)*"
    r"(?:close[- ]?up|closeup|shot|view|angle|page|panel|image|cu|ws|ms|ls|mcu|ecu|els|pov|splash|ots|"
    r"zoom(?: in| out)?|pan|insert|wide|close)"
    r"(?:\s*\([^)]*\))?\s*(?:[.:;,\u2013\u2014-]+\s*|$)",
    re.IGNORECASE,
)


@cache
def _labels() -> Mapping[str, str]:
    return {str(label).lower(): kind for kind, some in words()["labels"].items() for label in some}


def label_kind(text: str) -> str | None:
    """Return what stands under a label or the head of a column: "place", "action"; None where that is not known."""
    plain = " ".join(re.sub(r"[*_`#\[\]]+(?=\w|\s|$)|[_]", " ", text).lower().split()).strip(" .:*_")
    plain = plain or text.strip().lower()
    found = _labels().get(plain) or _labels().get(re.sub(r"\s*\([^)]*\)", "", plain).strip())
    return found or _labels().get(re.sub(r"\s*(?:no\.?|number|#|\d+|[ivx]+)$", "", plain).strip())


def people(text: str, names: Names) -> list[str]:
    """Return the people of a list: "Mia (12), the Old Man & Tom"."""
    plain = re.sub(r"\([^)]*\)", lambda found: found[0].replace(",", "\0"), plain_marks(text))
    found: list[str] = []
    for part in re.split(r"\s*(?:,|;|&|/|\+|\n|\band\b)\s*", plain):
        look = re.search(r"\(([^)]*)\)", part)
        name = bare(re.sub(r"\([^)]*\)", " ", part))
        if name.lower() in NOBODY or len(name.split()) > 5 or name.lower() in word_set("narrators"):
            continue
        told = names.add(name, look[1].replace("\0", ",") if look and is_look(look[1]) else "")
        if told and told not in found:
            found.append(told)
    return found


def spoken(text: str, present: Sequence[str], names: Names) -> list[str]:
    """Return the sentences of a field of dialogue: 'MIA: "Hi!"' or words alone, where one is there to say them."""
    told: list[str] = []
    for line in re.split(r"\n|(?<=[.!?\"])\s*/\s*|<br\s*/?>", text):
        found = re.match(
            r"^\s*(?P<who>[^\W\d_][\w .'\u2019-]{0,30}?)\s*(?:\((?P<how>[^)]*)\))?\s*:\s*(?P<said>.+)$", line
        )
        said = (found["said"] if found else line).strip().strip('"\u201c\u201d ')
        if said.lower().strip("()[] .") in NOBODY or not any(one.isalnum() for one in said):
            continue
        if found is not None and found["who"].lower() in word_set("narrators"):
            told.append(sentence(said))
        elif found is not None and found["who"].lower() not in word_set("sounds"):
            told.append(speech(names.add(found["who"]) or "somebody", said, found["how"] or ""))
        elif found is None and present:
            told.append(speech(present[0], said))
        elif found is None:
            told.append(f'"{said}"')
    return [one for one in told if one]


def passage_of(fields: Mapping[str, Sequence[str]], names: Names) -> Passage:
    """Return a shot or scene of its fields, by what stands under each label."""
    title = " ".join(fields.get("title", ()))
    slug = title if re.match(r"^\s*(?:INT|EXT|EST|I/E)\b", title, re.IGNORECASE) else ""
    heading = " - ".join([*fields.get("place", ()), *fields.get("time", ())]) or slug
    place, time, outdoors = (
        set_heading(f"{' '.join(fields.get('inside', ()))} {heading}".strip(), names) if heading else ("", "", False)
    )
    present = people(", ".join(fields.get("characters", ())), names)
    acts = [action_of(text, present, names) for text in fields.get("action", ())]
    prompt = " ".join(fields.get("prompt", ())).strip()
    if not any(acts) and prompt:
        acts = [action_of(prompt, present, names)]
    said = [one for text in fields.get("dialogue", ()) for one in spoken(text, present, names)]
    narrated = [
        sentence(plain_marks(text).strip('"\u201c\u201d '))
        for text in fields.get("narration", ())
        if text.lower() not in NOBODY
    ]
    parts = [one for one in (*acts, *said, *narrated) if one]
    if not parts and title and not slug:
        parts = [sentence(title)]
    objects = [
        bare(one)
        for text in fields.get("objects", ())
        for one in re.split(r"[,;]", text)
        if bare(one).lower() not in NOBODY
    ]
    number = " ".join(fields.get("number", ()))[:20]
    return Passage(" ".join(parts), place, time, outdoors, number, True, present, objects, prompt)


def action_of(text: str, present: Sequence[str], names: Names) -> str:
    """Return what a field of a shot shows, in sentences: without the camera, and with a subject."""
    plain = " ".join(plain_marks(re.sub(r"<br\s*/?>", " ", text)).split())
    plain = CAMERA.sub("", plain)
    told = aged(names.told(re.sub(r"\[([^\]]*)\]", r"\1", plain)), names)
    first = told.split(maxsplit=1)[0] if told else ""
    verb = re.fullmatch(r"[a-z]+(?:s|es)|[A-Z][a-z]+(?:es|[^s'u]s)", first) is not None and present
    if verb and first.lower() not in (
        "this",
        "his",
        "its",
        "is",
        "as",
        "was",
        "has",
        "across",
        "always",
        "sometimes",
        "besides",
    ):
        who = " and ".join(present) if first[:1].islower() and len(present) == 1 else present[0]
        told = f"{who[:1].upper()}{who[1:]} {first.lower()}{told[len(first) :]}"
    return sentence(told)


def finished(draft: TextDraft, names: Names) -> TextDraft:
    """Return a draft of shots with its cast; too few or too many for panels are a story of scenes."""
    draft.passages = [one for one in draft.passages if one.text.strip()]
    draft.cast(names)
    draft.shots = draft.shots and 1 < len(draft.passages) <= _MOST_PANELS
    return draft
