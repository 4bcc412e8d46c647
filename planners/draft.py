"""What a language model wrote, as records, and everything that is wrong with it: what it is repaired by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pydantic import BaseModel, ConfigDict, ValidationError

from katha.jsonio import loads
from katha.planners.reply_schema import Shape
from katha.planners.switches import Switches
from katha.schema import Dimension, Link, TransitionType

__all__ = ["Draft", "DraftPanel", "DraftTransition", "draft_problems", "read_draft"]

_PRONOUN = re.compile(r"\b(he|she|they|him|them|his|hers|their|theirs|it|its|himself|herself|itself)\b", re.IGNORECASE)
_HER = re.compile(r"\bher\b", re.IGNORECASE)
_WRITTEN = re.compile(
    r"\b(?:speech|thought) (?:bubble|balloon)s?\b|\b(?:sign|banner|label|text|caption|subtitle)s? (?:that )?"
    r"(?:says?|reads?|saying|reading)\b|\bwith (?:the )?(?:text|words|caption|letters)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_STEM = 4
_WIDE = 0x2E80
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
    """The reply as records, or why it is none: prose, half a JSON, a field that is missing or of another kind."""
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
    draft: Draft, shape: Shape, switches: Switches, text: str, known: Sequence[str] = ()
) -> Iterator[str]:
    """Everything that makes a draft unusable, one sentence each. text: the story. known: names drawn before."""
    yield from _counts(draft, shape)
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
        yield from _panel_problems(number, panel, names, switches)
    for number, transition in enumerate(draft.transitions, 1):
        for field in ("action", "causality", "consequence"):
            if not getattr(transition, field).strip():
                yield f"Transition {number}: {field} is empty."


def _counts(draft: Draft, shape: Shape) -> Iterator[str]:
    if len(draft.panels) != shape.panels:
        yield f"There are {len(draft.panels)} panels; there must be {shape.panels}."
    if len(draft.transitions) != shape.transitions:
        yield f"There are {len(draft.transitions)} transitions; there must be {shape.transitions}."


def _order(draft: Draft, shape: Shape) -> Iterator[str]:
    """Scenes begin in the order of the text, the first with its first sentence: so no sentence is lost."""
    if shape.sentences is None:
        return
    first, last = shape.sentences
    starts = [panel.first_sentence for panel in draft.panels]
    if any(start is None for start in starts):
        yield "A panel has no first_sentence."
        return
    numbers = [start for start in starts if start is not None]
    held = last - first + 1 < shape.panels
    rising = all(a <= b if held else a < b for a, b in pairwise(numbers))
    if numbers and (numbers[0] != first or numbers[-1] > last or not rising):
        yield f"first_sentence must rise from {first} to at most {last}; it is {numbers}."


def _panel_problems(number: int, panel: DraftPanel, names: set[str], switches: Switches) -> Iterator[str]:
    where = f"Panel {number}"
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
    if switches.sheets and strangers:
        yield f"{where}: {strangers[0]!r} is not among the characters."


def _latin(text: str) -> bool:
    """Whether most letters are Latin: a prompt in another script was not translated."""
    letters = [letter for letter in text if letter.isalpha()]
    return not letters or sum(letter.isascii() for letter in letters) >= 0.7 * len(letters)


def _told(name: str, text: str) -> bool:
    """Whether the story names `name`: one of its words, whatever its ending; whole where words are not spaced."""
    if any(ord(letter) >= _WIDE for letter in name):
        return name in text
    told = {word.lower()[:_STEM] for word in _WORD.findall(text)}
    words = [word.lower() for word in _WORD.findall(name)]
    content = [word for word in words if word not in _SMALL and len(word) > 2] or words
    return any(word[:_STEM] in told for word in content)
