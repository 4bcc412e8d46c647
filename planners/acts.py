"""The deeds that one sentence tells one after the other, which of them no single picture can show, and what of earlier
ones lasts in it: clothes put on, a broken cup, who lies in bed or is stuck in a net.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from katha.configs import load_config
from katha.text import Event, Reading, Sentence, Teller
from katha.text.words import load_words

__all__ = ["Beat", "acts_of", "held_fast", "inner", "is_gone", "planning", "still_so", "words_of", "worn"]

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
    def passes(self, sentence: int) -> bool: ...


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


def still_so(story: Told, shown: Sequence[Event], before: int, told: str) -> list[str]:
    """Return what the sentences before number `before` made of somebody or something `shown` and nobody has undone
    ("The cup is broken."), unless `told` has it; who got wet is dry when time has passed."""
    table = planning("lasting")
    found: dict[str, str] = {}
    for event in (one for one in story.reading.events if one.sentence < before):
        keys = {*event.who("patient")} or {*event.who("agent")}
        if event.verb in table["undone"]:
            found = {key: state for key, state in found.items() if key not in keys}
        if not event.happens or event.speech is not None:
            continue
        thing = not any(story.reading.entity(key).character for key in keys)
        says = next((one for one in event.state if one in {*table["states"], *table["a_while"]}), None)
        state = (table["becomes"].get(event.verb) if thing else None) or says
        found |= dict.fromkeys(event.who("agent") if event.verb == "be" else sorted(keys), state) if state else {}
        if state in table["a_while"] and any(story.passes(at) for at in range(event.sentence + 1, before + 1)):
            found = {key: state for key, state in found.items() if key not in keys}
    seen = dict.fromkeys(role.entity for event in shown for role in event.roles if role.entity in found)
    for key in seen:
        name, state = story.teller.name(str(key)), found[str(key)]
        if story.reading.entity(str(key)).count == 1 and state not in told:
            return [f"{name[:1].upper()}{name[1:]} is {state}."]
    return []


def held_fast(story: Told, shown: Sequence[Event], cast: Sequence[str], before: Event) -> list[str]:
    """Return where those of the `cast` still are whom a deed before the event `before` has laid, seated or caught
    somewhere: "Marek lies in his hospital bed."; not of those whose place a `shown` deed tells."""
    stays: dict[str, str] = {}
    stuck: dict[str, str] = {}
    for event in story.reading.events[: before.id]:
        if event.speech is not None or event.standing != "told":
            continue
        if story.passes(event.sentence):
            stays = {}
        taken = {*event.who("patient"), *(story.reading.entity(one).owner for one in event.who("patient"))}
        freed = taken if event.verb in planning("held_fast")["frees"] else set()
        freed |= {*event.who("agent")} if {*event.state} & {*planning("held_fast")["free"]} else set()
        if event.happens and freed:
            stuck = {key: says for key, says in stuck.items() if key not in freed}
        elif event.happens and _moves(event):
            stays = {
                key: says for key, says in stays.items() if key not in taken | {*event.who("agent")} or key in stuck
            }
            if event.verb in planning("held_fast")["escapes"]:
                stuck = {key: says for key, says in stuck.items() if key not in event.who("agent")}
        for key, says, captive in _begun(story, event):
            (stuck if captive else stays)[key] = says
    at = story.reading.sentences[before.sentence].place
    moved = at is not None and at.since == before.sentence
    told = []
    for key in cast:
        where = stays.get(key) or stuck.get(key)  # who is stuck in a tree is in the tree
        if where and (key in stuck or not moved) and not _placed(key, shown):
            name = story.teller.name(key)
            told.append(f"{name[:1].upper()}{name[1:]} {where}.")
    return told


def _moves(event: Event) -> bool:
    """Whether somebody gets up or goes, or is taken somewhere."""
    rises = planning("held_fast")["rises"]
    return event.verb in rises or event.predicate in rises or load_words().has("motion", event.verb)


def _placed(key: str, shown: Sequence[Event]) -> bool:
    """Whether a deed that is shown says where somebody is, or has them on the move or freed."""
    own = [event for event in shown if key in (*event.who("agent"), *event.who("patient"))]
    frees = planning("held_fast")["frees"]
    return any(_moves(one) or one.verb in frees or one.all("place", "goal", "source") for one in own)


def _begun(story: Told, event: Event) -> Iterator[tuple[str, str, bool]]:
    """Who is laid, seated or caught by an event, how a picture says where, and whether they are captive there."""
    if event.negated or event.perfect:
        return
    said = {event.verb, event.predicate.replace(" ", "_"), *event.state}
    for row in planning("held_fast")["places"].values():
        for role in event.all("place", "goal", "patient"):
            leads = {*row["verbs"].split(), *(row["states"].split() if event.verb in ("be", "get") else ())} & said
            if role.role == "patient":  # "climbed the tree"
                leads = {event.verb} & {row.get("of")}
            elif role.preposition not in row["prepositions"].split():
                continue
            where = story.teller.filler(role, story.teller.doers(event))
            if not leads or not where or role.head not in row["nouns"].split():
                continue
            keys = (event.who("patient") if row["captive"] else ()) or event.who("agent")
            owners = [story.reading.entity(key).owner for key in keys] if row["captive"] else []  # her sleeve: she
            for key in story.teller.people((*keys, *(one for one in owners if one is not None))):
                if story.reading.entity(key).count == 1:
                    yield key, f"{row['says']} {where}", bool(row["captive"])
