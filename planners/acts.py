"""The deeds that one sentence tells one after the other, which of them no single picture can show, and what of earlier
ones lasts in it: clothes put on, a broken cup, who lies in bed or is stuck in a net.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

from katha.configs import load_config
from katha.text import Event, Reading, Sentence, Teller
from katha.text.types import Role
from katha.text.words import load_words

__all__ = ["Beat", "acts_of", "held_fast", "inner", "is_gone", "planning", "still_so", "words_of", "worn"]

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
