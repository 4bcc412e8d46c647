"""The deeds that one sentence tells one after the other, and which of them no single picture can show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from katha.configs import load_config
from katha.text import Event, Reading, Sentence, Teller

__all__ = ["Beat", "acts_of", "inner", "is_gone", "planning", "words_of", "worn"]

_AND = re.compile(r"(?:[\s,;:\u2013\u2014-]|\b(?:and|but|so)\b)*$", re.IGNORECASE)
"""What joins a clause to the one before it, at the end of that."""
_COMMA, _COMMA_AND = re.compile(r",\s*$"), re.compile(r",\s+and\s*$")
_LEAD = re.compile(r"^(?:and\s+|[,;:]\s*)+", re.IGNORECASE)
_ARTICLE = re.compile(r"^an?\s+", re.IGNORECASE)
_ENDS = (".", "!", "?", '."', '!"', '?"', ".\u201d", "!\u201d", "?\u201d")
_OPEN, _CLOSE = "\u201c", "\u201d"


def planning(part: str) -> Any:
    """Return a part of `configs/planning.yaml`, where it is explained."""
    return load_config("planning.yaml")[part]


class Told(Protocol):
    """What is asked of a story here (`moments.Story`)."""

    reading: Reading
    teller: Teller

    def is_act(self, event: Event) -> bool: ...
    def doers(self, event: Event) -> Sequence[str]: ...
    def people(self, event: Event) -> Sequence[str]: ...


@dataclass(frozen=True)
class Beat:
    """One sentence of the story, or one act of it, with the events that a picture can show, and their weights.

    start, end: its words in the text. shared: the subject that stands before them, in an earlier act of the sentence.
    joints: where in them further clauses begin that share the subject.
    """

    sentence: Sentence
    events: tuple[Event, ...]
    weights: tuple[float, ...]
    start: int
    end: int
    shared: str = ""
    joints: tuple[int, ...] = ()

    @property
    def best(self) -> float:
        """What its best event is worth; 0 where it has none."""
        return max(self.weights, default=0.0)

    @property
    def whole(self) -> bool:
        """Whether it is all of its sentence."""
        return (self.start, self.end) == (self.sentence.start, self.sentence.end)

    def holds(self, event: Event) -> bool:
        """Return whether it tells an event."""
        return event.sentence == self.sentence.index and (self.whole or self.start <= event.start < self.end)


def acts_of(story: Told, beat: Beat) -> list[Beat]:
    """Return what of a sentence needs a picture each: acts of which no picture shows two, in order; the sentence
    itself where one picture does."""
    joints = sorted({(one.joint, one.shared) for one in story.reading.of(beat.sentence.index) if _opens(one)})
    bounds = [(beat.start, beat.shared), *joints, (beat.end, "")]
    parts = [_part(beat, start, end, shared) for (start, shared), (end, _) in pairwise(bounds) if end > start]
    if any(_unbalanced(story.reading.text[part.start : part.end]) for part in parts):
        return [beat]
    found = [parts[0]]
    for part in parts[1:]:
        if _apart(story, found[-1], part):
            found.append(part)
        else:
            found[-1] = _joined(found[-1], part)
    most = int(planning("acts")["most"])
    while len(found) > most or (len(found) > 1 and main_act(story, found[-1]) is None):
        at = min(range(1, len(found)), key=lambda at: min(found[at - 1].best, found[at].best))
        at = at if len(found) > most else len(found) - 1
        found[at - 1 : at + 1] = [_joined(found[at - 1], found[at])]
    return found


def _opens(event: Event) -> bool:
    return event.joint >= 0 and event.speech is None


def _part(beat: Beat, start: int, end: int, shared: str) -> Beat:
    own = [(one, weight) for one, weight in zip(beat.events, beat.weights, strict=True) if start <= one.start < end]
    return Beat(beat.sentence, tuple(one for one, _ in own), tuple(weight for _, weight in own), start, end, shared)


def _joined(one: Beat, two: Beat) -> Beat:
    joints = (*one.joints, *([two.start] if two.shared else []), *two.joints)
    events, weights = one.events + two.events, one.weights + two.weights
    return Beat(one.sentence, events, weights, one.start, two.end, one.shared, joints)


def _unbalanced(text: str) -> bool:
    return text.count('"') % 2 == 1 or text.count(_OPEN) != text.count(_CLOSE)


def main_act(story: Told, beat: Beat) -> Event | None:
    """Return the deed for which a part of a sentence deserves a picture of its own: the one that is worth most."""
    ranked = [(weight, -at, one) for at, (one, weight) in enumerate(zip(beat.events, beat.weights, strict=True))
              if story.is_act(one)]  # fmt: skip
    return max(ranked, key=lambda item: item[:2])[2] if ranked else None


def _apart(story: Told, before: Beat, after: Beat) -> bool:
    """Whether what two parts of a sentence tell cannot be seen at once: both are acts, and of the same people or on one
    another, or of more than two. Going somewhere is seen with what is done there."""
    first, second = main_act(story, before), main_act(story, after)
    if first is None or second is None or first.verb == second.verb:
        return False
    if first.verb in planning("acts")["leading"] and not first.who("patient"):
        return False
    if {*first.who("goal")} & {*second.who("patient", "place", "goal")}:
        return False  # "ran to the door and opened it"
    doers = [set(story.doers(one)) for one in (first, second)]
    if not all(doers):
        return False
    many = {frozenset(story.doers(one)) for one in before.events if story.is_act(one)} - {frozenset(doers[1])}
    return bool(doers[0] & doers[1]) or bool(doers[1] & set(story.people(first))) or len(many) > 1


def words_of(story: Told, beats: Iterable[Beat]) -> str:
    """Return what parts of the story tell, in its own words: sentences as they are, an act of one as a sentence with
    the subject that it shares ("Farid read out the names.")."""
    runs: list[Beat] = []
    for beat in {(one.start, one.end): one for one in beats}.values():
        if runs and runs[-1].end == beat.start and runs[-1].sentence is beat.sentence:
            runs[-1] = _joined(runs[-1], beat)
        else:
            runs.append(beat)
    return " ".join(_sentence(story.reading.text, beat) for beat in runs)


def _sentence(text: str, beat: Beat) -> str:
    if beat.whole:
        return beat.sentence.text
    told, cut = text[beat.start : beat.end], beat.end < beat.sentence.end
    if beat.joints:  # "stood up, opened the drawer," and no more, or the last two of three
        last = beat.joints[-1] - beat.start
        comma = _COMMA if cut else _COMMA_AND
        told = (comma.sub(" and ", told[:last]) if cut or len(beat.joints) == 1 else told[:last]) + told[last:]
    told = " ".join(told.split())
    if cut:
        told = _AND.sub("", told)
        told = told if told.endswith(_ENDS) else f"{told}."
    told = f"{_ARTICLE.sub('the ', beat.shared)} {told}" if beat.shared else _LEAD.sub("", told)
    return told[:1].upper() + told[1:]


_GARMENTS = frozenset(("glasses", "spectacles", "sunglasses", "helmet", "mask", "crown", "veil"))
"""What is worn and no clothing by WordNet."""


def is_gone(event: Event) -> bool:
    """Whether an event tells that somebody or something is not there any more."""
    table: Any = load_config("planning.yaml")
    state = event.verb in ("be", "have") and bool({*event.state} & {*table["gone_states"]})
    return state or event.verb in table["gone_verbs"]


def inner(story: Told, events: Sequence[Event]) -> list[Event]:
    """Return what others do whom these events find, see or speak of: she who sits in the seat that he discovers."""
    shown = {event.id for event in events}
    found: list[Event] = []
    for event in events:
        for one in story.reading.of(event.sentence):
            others = {*story.doers(one)} - {*story.doers(event)}
            told = one.within == event.id and one.id not in shown and one.happens and story.teller.shows(one)
            if told and others and not is_gone(one) and story.teller.people(one.who("agent", "patient")):
                found.append(one)
    return found


def worn(story: Told, main: Event, cast: Sequence[str]) -> list[str]:
    """Return what those in a picture have put on before it and not taken off since: "Walter wears the glasses."."""
    table: Any = load_config("planning.yaml")["dressing"]
    on: dict[tuple[str, str], Event] = {}
    for event in (one for one in story.reading.events if one.id < main.id and one.happens and one.speech is None):
        for thing in event.who("patient"):
            entity = story.reading.entity(thing)
            if entity.sort != "clothing" and entity.noun not in _GARMENTS:
                continue
            if event.predicate in table["puts"] or event.verb in table["puts"]:
                on |= {(key, thing): event for key in story.teller.people(event.who("agent"))}
            elif event.predicate in table["takes"] or event.verb in table["takes"]:
                on = {pair: one for pair, one in on.items() if pair[1] != thing}
    taking = {*main.who("patient")}
    told: list[str] = []
    for who, thing in on:
        if who in cast and thing not in taking:
            name, entity = story.teller.name(who), story.reading.entity(thing)
            bare = entity.name.rsplit("'s ", 1)[-1]
            bare = bare if bare.startswith("the ") else f"the {bare}"
            told.append(f"{name[:1].upper()}{name[1:]} wears {bare}.")
    return told
