"""What a language model wrote, checked, and made into a plan."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from katha.errors import PlanError
from katha.jsonio import loads
from katha.planners.base import WIDE, WORD
from katha.planners.moments import scene_texts
from katha.planners.narrated import cut, raw_sentences
from katha.schema import DIMENSIONS, MORAL_LABELS, Dimension, Link, StoryRecord, TransitionType

SIZES = ("close-up", "medium", "wide")
ANGLES = ("eye level", "low angle", "high angle")
TIMES = ("morning", "day", "evening", "night", "unclear")
_MOST_CHARACTERS = 12


@dataclass(frozen=True)
class Shape:
    """How much is asked for: panels, transitions, and the numbers of the first and last sentence (None: scenes)."""

    panels: int
    transitions: int
    sentences: tuple[int, int] | None = None


def _text(most: int, least: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most}


def _list(items: Mapping[str, Any], least: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": dict(items), "minItems": least, "maxItems": most}


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


def _enum(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _panel(shape: Shape, parts: Collection[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if shape.sentences is not None:
        first, last = shape.sentences
        fields["first_sentence"] = {"type": "integer", "minimum": first, "maximum": last}
    if "place" in parts:
        fields |= {"place": _text(60), "time_of_day": _enum(*TIMES)}
    if "links" in parts:
        fields["links"] = _list(_object({"phrase": _text(60), "visible": _text(80)}), 0, 3)
    if "shots" in parts:
        fields |= {"shot_size": _enum(*SIZES), "shot_angle": _enum(*ANGLES)}
    if "sheets" in parts:
        fields["characters"] = _list(_text(40), 0, 6)
    return _object(fields | {"must_show": _list(_text(80), 1, 4), "prompt": _text(400)})


def _transition(parts: Collection[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "transition_type": _enum(*get_args(TransitionType)),
        "action": _text(160),
        "causality": _text(200),
        "intention": _text(160),
        "emotion": _text(160),
        "consequence": _text(160),
        "moral_target": {"anyOf": [_enum(*MORAL_LABELS), {"type": "null"}]},
    }
    if "questions" in parts:
        asked = {"dimension": _enum(*DIMENSIONS), "question": _text(160), "answer": _text(100)}
        fields["questions"] = _list(_object({**asked, "accepted": _list(_text(100), 1, 4)}), 0, 4)
    return _object(fields)


def reply_schema(shape: Shape, parts: Collection[str]) -> dict[str, Any]:
    """Return what is asked for, in the order of thinking it out: who, what is seen, what changes, what is asked."""
    fields: dict[str, Any] = {"tells_events": {"type": "boolean"}}
    if "sheets" in parts:
        sheet = _object({"name": _text(40), "kind": _text(40), "appearance": _text(120)})
        fields["characters"] = _list(sheet, 0, _MOST_CHARACTERS)
    fields["panels"] = _list(_panel(shape, parts), shape.panels, shape.panels)
    fields["transitions"] = _list(_transition(parts), shape.transitions, shape.transitions)
    return _object(fields)


_PRONOUN = re.compile(r"\b(he|she|they|him|them|his|hers|their|theirs|it|its|himself|herself|itself)\b", re.IGNORECASE)
_HER = re.compile(r"\bher\b", re.IGNORECASE)
_WRITTEN = re.compile(
    r"\b(?:speech|thought) (?:bubble|balloon)s?\b|\b(?:sign|banner|label|text|caption|subtitle)s? (?:that )?"
    r"(?:says?|reads?|saying|reading)\b|\bwith (?:the )?(?:text|words|caption|letters)\b",
    re.IGNORECASE,
)
_STEM = 4
_SMALL = frozenset(("the", "and", "der", "die", "das", "les", "los", "las", "una", "ein", "eine"))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DraftCharacter(_Strict):
    """A character as the model describes it."""

    name: str
    kind: str
    appearance: str


class DraftPanel(_Strict):
    """A panel as the model describes it; what a switch turned off is left out."""

    prompt: str
    must_show: list[str]
    first_sentence: int | None = None
    place: str = ""
    time_of_day: str = ""
    links: list[Link] = []
    shot_size: str = ""
    shot_angle: str = ""
    characters: list[str] = []


class DraftQuestion(_Strict):
    """A question of a transition."""

    dimension: Dimension
    question: str
    answer: str
    accepted: list[str]


class DraftTransition(_Strict):
    """The six fields of a transition, and its questions."""

    transition_type: TransitionType
    action: str
    causality: str
    intention: str
    emotion: str
    consequence: str
    moral_target: str | None = None
    questions: list[DraftQuestion] = []


class Draft(_Strict):
    """The whole reply."""

    tells_events: bool
    characters: list[DraftCharacter] = []
    panels: list[DraftPanel]
    transitions: list[DraftTransition]


def read_draft(text: str) -> tuple[Draft | None, list[str]]:
    """Return the reply as records, or why it is none: prose, half a JSON, a field missing or of another kind."""
    fenced = re.fullmatch(r"\s*```(?:json)?\s*(\{.*\})\s*```\s*", text, re.DOTALL)
    try:
        value = loads(fenced[1] if fenced else text.strip())
    except (ValueError, RecursionError) as error:
        return None, [f"It is not one whole JSON object: {error}."]
    try:
        return Draft.model_validate(value), []
    except ValidationError as error:
        found = [f"Field {'.'.join(map(str, item['loc'])) or 'reply'}: {item['msg']}." for item in error.errors()]
        return None, found[:8]


def draft_problems(
    draft: Draft, shape: Shape, parts: Collection[str], text: str, known: Sequence[str] = ()
) -> Iterator[str]:
    """Yield everything that makes a draft unusable, one sentence each. text: the story. known: names drawn before."""
    if len(draft.panels) != shape.panels:
        yield f"There are {len(draft.panels)} panels; there must be {shape.panels}."
    if len(draft.transitions) != shape.transitions:
        yield f"There are {len(draft.transitions)} transitions; there must be {shape.transitions}."
    yield from _order(draft, shape)
    names = {item.name for item in draft.characters} | set(known)
    if len({item.name for item in draft.characters}) != len(draft.characters):
        yield "A character is listed twice."
    for item in draft.characters:
        if item.name not in known and not _told(item.name, text):
            yield f"The character {item.name!r} is not in the story."
        if not _latin(item.appearance) or not _latin(item.kind):
            yield f"The appearance and kind of {item.name!r} must be in English."
    for number, panel in enumerate(draft.panels, 1):
        yield from _panel_problems(f"Panel {number}", panel, names if "sheets" in parts else panel.characters)
    for number, transition in enumerate(draft.transitions, 1):
        for field in ("action", "causality", "consequence"):
            if not getattr(transition, field).strip():
                yield f"Transition {number}: {field} is empty."


def _order(draft: Draft, shape: Shape) -> Iterator[str]:
    """Check that scenes begin in the order of the text, the first with its first sentence: so no sentence is lost."""
    if shape.sentences is None:
        return
    first, last = shape.sentences
    numbers = [panel.first_sentence for panel in draft.panels if panel.first_sentence is not None]
    if len(numbers) < len(draft.panels):
        yield "A panel has no first_sentence."
        return
    held = last - first + 1 < shape.panels
    rising = all(a <= b if held else a < b for a, b in pairwise(numbers))
    if numbers and (numbers[0] != first or numbers[-1] > last or not rising):
        yield f"first_sentence must rise from {first} to at most {last}; it is {numbers}."


def _panel_problems(where: str, panel: DraftPanel, names: Collection[str]) -> Iterator[str]:
    if not panel.prompt.strip():
        yield f"{where}: the prompt is empty."
    pronoun = _PRONOUN.search(panel.prompt) or _HER.search(panel.prompt)
    if pronoun:
        yield f"{where}: the prompt says {pronoun[0]!r}; name the character or thing."
    if _WRITTEN.search(panel.prompt):
        yield f"{where}: the prompt asks for words in the picture."
    if not _latin(panel.prompt):
        yield f"{where}: the prompt must be in English."
    strangers = [name for name in panel.characters if name not in names]
    if strangers:
        yield f"{where}: {strangers[0]!r} is not among the characters."


def _latin(text: str) -> bool:
    """Return whether most letters are Latin: a prompt in another script was not translated."""
    letters = [letter for letter in text if letter.isalpha()]
    return not letters or sum(letter.isascii() for letter in letters) >= 0.7 * len(letters)


def _told(name: str, text: str) -> bool:
    """Return whether the story names `name`: a word of it, whatever its ending; whole where words are not spaced."""
    if any(ord(letter) >= WIDE for letter in name):
        return name in text
    told = {word.lower()[:_STEM] for word in WORD.findall(text)}
    words = [word.lower() for word in WORD.findall(name)]
    content = [word for word in words if word not in _SMALL and len(word) > 2] or words
    return any(word[:_STEM] in told for word in content)


_MOST_PANELS = 6
_MOST_LETTERS = 30_000
"""Of a window's text: about 5,000 words."""


@dataclass(frozen=True)
class Window:
    """One part of a story. sentences: its raw pieces (a plain text). scenes: its scenes' texts (a record).

    panels: its panels' indices, from 1. joined: whether a transition leads into it from the window before.
    """

    sentences: tuple[str, ...]
    first_sentence: int
    scenes: tuple[str, ...]
    panels: range
    joined: bool

    @property
    def text(self) -> str:
        """What a model may know of this part."""
        return "".join(self.sentences) or "\n".join(self.scenes)

    @property
    def shape(self) -> Shape:
        """How much is asked for."""
        last = self.first_sentence + len(self.sentences) - 1
        transitions = len(self.panels) - 1 + self.joined
        return Shape(len(self.panels), transitions, None if self.scenes else (self.first_sentence, last))


def windows_of(story: StoryRecord, panels: int) -> list[Window]:
    """Return the windows of a story, each with its share of the panels.

    Raises:
        PlanError: a plain text has fewer sentences than panels.
    """
    found: list[Window] = []
    if story.scenes:
        texts = scene_texts(story)
        for at in range(0, panels, _MOST_PANELS):
            last = min(at + _MOST_PANELS, panels)
            found.append(Window((), 1, tuple(texts[at : at + _MOST_PANELS]), range(at + 1, last + 1), at > 0))
        return found
    sentences = raw_sentences(story.story_text)
    if len(sentences) < panels:
        raise PlanError(
            f"Story {story.story_id!r} has {len(sentences)} sentences, too few for {panels} panels.",
            hint=f"Use --panels {max(2, len(sentences))}, or tell more.",
        )
    size = sum(map(len, sentences))
    count = min(panels, max(-(-panels // _MOST_PANELS), -(-size // _MOST_LETTERS)))
    shares = [len(part) for part in cut(["x"] * panels, count)]
    sentence = panel = 1
    for part, share in zip(_shared(sentences, shares), shares, strict=True):
        found.append(Window(tuple(part), sentence, (), range(panel, panel + share), sentence > 1))
        sentence, panel = sentence + len(part), panel + share
    return found


def _shared(sentences: Sequence[str], shares: Sequence[int]) -> list[list[str]]:
    """Return the sentences in as many parts as there are shares, each with at least as many sentences as panels."""
    parts = cut(sentences, len(shares))
    if any(len(part) < share for part, share in zip(parts, shares, strict=True)):
        pieces = cut(["x"] * len(sentences), len(shares))
        parts = [list(sentences[start:stop]) for start, stop in pairwise([0, *accumulate(map(len, pieces))])]
    return parts
