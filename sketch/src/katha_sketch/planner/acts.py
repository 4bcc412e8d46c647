"""The deeds that one sentence tells one after the other, and which of them no single picture can show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

from katha_sketch.data import load_config
from katha_sketch.english import Event, Reading, Sentence, Teller
from katha_sketch.english.types import Role

__all__ = ["Beat", "Told", "acts_of", "planning", "words_of"]

_AND = re.compile(r"(?:[\s,;:\u2013\u2014-]|\b(?:and|but|so|or)\b)*$", re.IGNORECASE)
"""What joins a clause to the one before it, at the end of that."""
_QUOTE_COMMA = re.compile(r",([\"\u201d])$")
_COMMA, _COMMA_AND = re.compile(r",\s*$"), re.compile(r",\s+and\s*$")
_WORD = re.compile(r"[\w'-]+")
_OF_WHAT = frozenset(("that", "which", "who", "whom", "whose", "whether", "how", "why", "what"))
_WHEN = frozenset(("where", "when", "if", "as", "while", "because", "since", "until", "unless", "although", "though"))
"""What opens a clause of another one; a main clause only behind a clause of its own ("when I look up, I have ...")."""
_LEAD = re.compile(r"^(?:\s*(?:and|but|or)\s+|\s*[,;:]\s*)+", re.IGNORECASE)
_BEFORE_SUBJECT = re.compile(r"(?:,|;)\s+(?:(?:and|but|so|then)\s+)?$", re.IGNORECASE)
_PHRASE = re.compile(r"(?:on|in|at|by|after|before|with|from|for|to|behind|under|above|over)\b", re.IGNORECASE)
"""What opens a clause that has a subject of its own: "and on the third try the motor started"."""
_ARTICLE = re.compile(r"^an?\s+", re.IGNORECASE)
_DESCRIBED = re.compile(
    r"((?:[\w'\u2019-]+\s+){0,3}?[\w'\u2019-]+),?\s+(?:in|with|on|at|from|behind|beside|near|under|by|after|before|above|across|inside|among|without|who|which|that|named|called)\s.*$",
    re.I | re.S,
)
"""What describes whom a subject names."""
_BEFORE_VERB = re.compile(
    r"(?:,|,?\s+and|,?\s+but|,?\s+then)\s+(?:(?:then|soon|finally|[a-z]+ly)\s+)?(?:(?:began|started|tried|managed)\s+to\s+)?$",
    re.IGNORECASE,
)
"""What stands before the verb of a clause that leaves its subject out."""
_ENDS = (".", "!", "?", '."', '!"', '?"', ".\u201d", "!\u201d", "?\u201d")
_OPEN, _CLOSE = "\u201c", "\u201d"


def planning(part: str) -> Any:
    """Return a part of `sketch/src/katha_sketch/data/planning.yaml`, where it is explained."""
    return load_config("planning.yaml")[part]


class Told(Protocol):
    """What is asked of a story here (`moments.Story`)."""

    reading: Reading
    teller: Teller

    def is_act(self, event: Event) -> bool: ...
    def doers(self, event: Event) -> Sequence[str]: ...
    def people(self, event: Event) -> Sequence[str]: ...
    def passes(self, sentence: int) -> bool: ...


@dataclass(frozen=True)
class Beat:
    """One sentence of the story, or one act of it, with the events that a picture can show, and their weights.

    start, end: its words in the text. shared: the subject that stands before them, in an earlier act of the sentence.
    joints: where in them further clauses begin that share the subject. slight: whether it is words of a long sentence
    that tell too little for a picture.
    """

    sentence: Sentence
    events: tuple[Event, ...]
    weights: tuple[float, ...]
    start: int
    end: int
    shared: str = ""
    joints: tuple[int, ...] = ()
    slight: bool = False

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
    joints = sorted(_joints(story, story.reading.of(beat.sentence.index)).items())
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
    while len(found) > most or (len(found) > 1 and not _deserves(story, found[-1])):
        at = min(range(1, len(found)), key=lambda at: min(found[at - 1].best, found[at].best))
        at = at if len(found) > most else len(found) - 1
        found[at - 1 : at + 1] = [_joined(found[at - 1], found[at])]
    return [one for act in found for one in _told_apart(story, act, parts)]


def _goes_on(story: Told, before: Event, event: Event) -> int | None:
    """Where a clause begins that leaves out the subject of the one before it; None where it is no clause."""
    lead = story.reading.text[before.start : event.start]
    word, joined = _WORD.match(story.reading.text, event.start), _BEFORE_VERB.search(lead)
    if word is None or joined is None or not joined.start():
        return None
    finite = word[0].lower() != event.verb and not word[0].lower().endswith("ing")
    opened = _LEAD.match(joined[0])
    start = before.start + joined.start() + (opened.end() if opened is not None else 0)
    return start if finite or lead.rstrip().endswith(" to") else None


def _begins_anew(story: Told, before: Event, doer: Role) -> int | None:
    """Where a clause with a subject of its own begins, behind a comma."""
    text, opens = story.reading.text, story.reading.sentences[before.sentence].start
    first = _WORD.search(text, max(opens, text.rfind(",", opens, before.start) + 1))
    if first is None or first[0].lower() in _WHEN | _OF_WHAT or first.start() > before.start:
        return None  # "While the class crowded round, she stirred the sand" is one clause of another
    start = text.rfind(doer.text, before.start, doer.start + len(doer.text))
    lead = text[before.start : start] if start > before.start else ""
    return start if _BEFORE_SUBJECT.search(lead) else None


def _is_main(story: Told, event: Event) -> bool:
    """Whether a joined clause is part of no other one, as in "that it was small and that she should look"."""
    opened = _WORD.match(story.reading.text, event.joint)
    word = opened[0].lower() if opened is not None else ""
    first = min(one.start for one in story.reading.of(event.sentence) if one.start >= event.joint)
    return word not in _OF_WHAT and not (word in _WHEN and first == event.start)


def _deserves(story: Told, part: Beat) -> bool:
    return main_act(story, part) is not None or _can_stand_alone(story, part)


def _told_apart(story: Told, act: Beat, parts: Sequence[Beat]) -> list[Beat]:
    """An act, or, where it has many words and only some of its parts tell what a picture shows, these and, `slight`,
    the others: the caption of a picture tells what it shows."""
    own = [part for part in parts if act.start <= part.start < act.end]
    seen = [_can_stand_alone(story, part) for part in own]
    if len(story.reading.text[act.start : act.end].split()) <= int(planning("acts")["caption"]) or not any(seen):
        return [act]
    found: list[Beat] = []
    for part, tells in zip(own, seen, strict=True):
        part = replace(part, slight=not tells)
        if found and found[-1].slight == part.slight:
            found[-1] = replace(_joined(found[-1], part), slight=part.slight)
        else:
            found.append(part)
    return found if len(found) > 1 else [act]


def _joints(story: Told, events: Sequence[Event]) -> dict[int, str]:
    """Where a clause begins that is joined to the one before it, and the subject that it leaves out; the reading's
    own joints, and what it took for no joint ("came down, reached through the banister and lifted the lid")."""
    found = {one.joint: one.shared for one in events if one.joint >= 0 and one.speech is None and _is_main(story, one)}
    for before, event in pairwise(events):
        told = all(
            one.happens and not one.aside and one.within is None and one.speech is None for one in (before, event)
        )
        agents = [one.all("agent")[:1] for one in (before, event)]
        if event.joint >= 0 or not told or not all(agents):
            continue
        (first,), (second,) = agents
        if first.entity == second.entity is not None and (start := _goes_on(story, before, event)) is not None:
            found.setdefault(start, second.text)
        elif first.entity != second.entity and (start := _begins_anew(story, before, second)) is not None:
            found.setdefault(start, "")
    text = story.reading.text
    return {
        at: shared
        for at, shared in found.items()
        if (text[at].isalnum() or text[at] in '"\u201c') and not (shared and _PHRASE.match(text, at))
    }


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
    another, or of more than two. Going somewhere is seen with what is done there. What is told in many words has more
    to show than one picture holds."""
    first, second = main_act(story, before), main_act(story, after)
    if first is not None and second is not None and {*first.who("goal")} & {*second.who("patient", "place", "goal")}:
        return False  # "ran to the door and opened it"
    if _is_long(story, before, after):
        return all(_can_stand_alone(story, part) for part in (before, after))
    if first is None or second is None or first.verb == second.verb:
        return False
    if first.verb in planning("acts")["leading"] and not first.who("patient"):
        return False
    doers = [set(story.doers(one)) for one in (first, second)]
    if not all(doers):
        return False
    many = {frozenset(story.doers(one)) for one in before.events if story.is_act(one)} - {frozenset(doers[1])}
    return bool(doers[0] & doers[1]) or bool(doers[1] & set(story.people(first))) or len(many) > 1


def _is_long(story: Told, before: Beat, after: Beat) -> bool:
    """Whether two parts together are more words than the caption of one picture should have."""
    return len(story.reading.text[before.start : after.end].split()) > int(planning("acts")["long"])


def _can_stand_alone(story: Told, part: Beat) -> bool:
    """Whether a part of a sentence tells enough to see for a picture of its own."""
    words = len(story.reading.text[part.start : part.end].split()) + bool(part.shared)
    pairs = zip(part.events, part.weights, strict=True)
    best = max((weight for one, weight in pairs if _is_seen_alone(one)), default=0.0)
    return words >= int(planning("acts")["least"]) and best >= float(planning("acts")["alone"])


def _is_seen_alone(event: Event) -> bool:
    """Whether an event is no age, no going and no posture that says nothing of where and what."""
    table = planning("acts")
    if not event.happens or event.perfect or event.within is not None:
        return False
    told = any(role.role != "agent" for role in event.roles)
    if event.verb == "be":
        return event.existential or bool(event.all("place", "goal"))
    bare = event.verb in {*table["leading"], *planning("verbs")["state"]}
    return told or not bare


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
        told = _QUOTE_COMMA.sub(r".\1", _AND.sub("", told))
        told = told if told.endswith(_ENDS) else f"{told}."
    told = f"{_shortened(beat.shared)} {told}" if beat.shared else _LEAD.sub("", told)
    return told[:1].upper() + told[1:]


def _shortened(subject: str) -> str:
    """A subject that a sentence before has named in full: "the boy" of "a boy in a torn jacket"."""
    found = _DESCRIBED.match(subject)
    return _ARTICLE.sub("the ", found[1] if found is not None else subject)
