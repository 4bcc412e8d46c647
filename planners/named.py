"""What the words of a picture name beside its events: clothes, what somebody holds, what else lies or stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from katha.planners.acts import Beat, Told, planning
from katha.planners.lasting import is_gone
from katha.text import Entity, Event
from katha.text.words import load_words

__all__ = ["company", "had", "in_play", "standing_by", "things_by"]

_QUOTED = re.compile(r'["\u201c][^"\u201d]*["\u201d]?')
_LIKENED = re.compile(
    r"(?:\b(?:like|than|as \w+ as|without|no|not|neither|nor|instead of|called|named|if|would|could|should|never)\b"
    r"|n't\b)[^,.;:!?]*$"
)
"""What stands before a word that names nothing to see: of a likeness, of what is not there or was before."""
_PUT_ON = re.compile(r"\b(?:in|wearing)\s+(?:(?:an?|the|his|her|their|my|our)\s+)?(?:[\w'-]+\s+){0,3}$", re.IGNORECASE)
_HELD = re.compile(r"\b(?:with|holding|carrying)\s+(?:(?:an?|the|his|her|their|my|our)\s+)?(?:[\w'-]+\s+){0,3}$")
_IN_HAND = re.compile(
    r"\s+(?:in|under|over|on|between|around|round)\s+(?:his|her|its|their|my|our|the|each|one|both)\s+(?:\w+\s+)?"
    r"(?:hands?|arms?|paws?|mouth|beak|shoulders?|back|knees|lap|teeth|claws?|fists?|fingers)\b"
)
_BEFORE = re.compile(r"([\w'-]+)[\s,]+(?:in|wearing|with|holding|carrying)\s+(?:[\w'-]+\s+){0,4}$")
_PRONOUNS = frozenset(("us", "them", "him", "her", "me", "you"))


@dataclass(frozen=True)
class _Named:
    """A thing that words name, and where in the text its noun stands."""

    entity: Entity
    start: int
    end: int


def _words(story: Told, beats: Sequence[Beat]) -> str:
    """The story's text with nothing but the words of some of its parts, without what is said in quotes."""
    text = story.reading.text
    plain = _QUOTED.sub(lambda one: " " * len(one[0]), text)
    kept = [" "] * len(text)
    for beat in beats:
        kept[beat.start : beat.end] = plain[beat.start : beat.end]
    return "".join(kept)


def _things(story: Told, beats: Sequence[Beat]) -> Iterator[_Named]:
    """The things that the words of a picture name and that are there, in the order of the text."""
    told = _words(story, beats)
    sentences = {beat.sentence.index for beat in beats}
    events = [event for at in sentences for event in story.reading.of(at)]
    real = {role.entity for event in events if _is_there(event) for role in event.roles}
    unreal = {role.entity for event in events for role in event.roles} - real
    found: list[_Named] = []
    for entity in story.reading.entities:
        if not sentences & {*entity.sentences} or not _can_be_seen(entity) or entity.id in story.teller.names:
            continue
        if entity.id in unreal:
            continue
        stem = re.escape(entity.noun[:-1] if entity.noun[-1] in "yef" else entity.noun)
        for one in re.finditer(rf"\b{stem}(?:y|e|f|s|es|ies|ves|fe)?\b", told, re.IGNORECASE):
            lead = re.split(r"[.!?]\s", told[: one.start()])[-1]
            if not _LIKENED.search(lead):
                found.append(_Named(entity, one.start(), one.end()))
                break
    yield from sorted(found, key=lambda one: one.start)


def _is_there(event: Event) -> bool:
    return event.happens and event.speech is None


def _can_be_seen(entity: Entity) -> bool:
    """Whether a picture can show it as a thing by itself."""
    table: Any = planning("named")
    if not entity.noun or entity.members or entity.noun in table["never"] or load_words().has("parts", entity.noun):
        return False
    sort = entity.sort or load_words().sort(entity.noun)
    return entity.kind in table["kinds"] and sort not in table["never_sorts"] and not entity.character


def things_by(story: Told, beats: Sequence[Beat], told: str) -> list[str]:
    """Return what else the words of a picture name, unless `told` has it: "the small paper bags" of a drawer."""
    found = [one.entity for one in _things(story, beats) if not re.search(rf"\b{re.escape(one.entity.noun)}", told)]
    return [_bare(one) for one in dict.fromkeys(found)][: int(planning("named")["most"])]


def in_play(story: Told, sentence: int, told: str) -> list[str]:
    """Return the thing that the story is about right before and after a sentence that does not name it, unless `told`
    has it: the piano on the stairs, the letter that was opened."""
    if story.passes(sentence):
        return []
    found = [
        (len(one.sentences), _bare(one))
        for one in story.reading.entities
        if {sentence - 1, sentence + 1} <= {*one.sentences} and sentence not in one.sentences
        and len(one.sentences) >= int(planning("named")["in_play"]) and one.id not in story.teller.names
        and _can_be_seen(one) and not re.search(rf"\b{re.escape(one.noun)}", told)
    ]  # fmt: skip
    return [max(found)[1]] if found else []


def _bare(entity: Entity) -> str:
    name = entity.name.rsplit("'s ", 1)[-1]
    name = re.sub(r"^(?:the|an?|some|his|her|their|its|my|our)\s+", "", name, flags=re.IGNORECASE)
    return name if entity.noun.lower() in name.lower() else entity.noun


def had(story: Told, beats: Sequence[Beat], cast: Sequence[str], told: str) -> list[str]:
    """Return what those in a picture wear and hold by its words ("a woman in a cap"), nothing that `told` has."""
    text, found = _words(story, beats), list[str]()
    for thing in _things(story, beats):
        lead, rest = text[: thing.start], text[thing.end :]
        sorts = {thing.entity.sort, load_words().sort(thing.entity.noun)}
        clothes = "clothing" in sorts or thing.entity.noun in planning("named")["worn"]
        worn = clothes and (_PUT_ON.search(lead) or _HELD.search(lead))
        verb = "wears" if worn else "holds" if _HELD.search(lead) and _IN_HAND.match(rest) else ""
        if re.search(rf"\b{'wears [^.]*' * bool(worn)}{re.escape(thing.entity.noun)}", told):
            continue
        who = _whose(story, thing, lead, cast) if verb else None
        if who is not None:
            name = story.teller.name(who)
            many = story.reading.entity(who).count != 1
            does = verb[:-1] if many else verb
            found.append(f"{name[:1].upper()}{name[1:]} {does} the {_bare(thing.entity)}.")
    return found


def _whose(story: Told, thing: _Named, lead: str, cast: Sequence[str]) -> str | None:
    """Whose a thing is that somebody is "in" or "with": of the one right before that, else of who does the deed."""
    near = _BEFORE.search(lead)
    last = near[1] if near is not None else ""
    events = [event for event in story.reading.events if event.start < thing.start]
    for event in story.reading.events:
        for role in event.roles:
            people = story.teller.people((role.entity,)) if role.entity is not None else []
            if near is not None and role.start == near.start(1) and people:
                return people[0] if people[0] in cast else None
    words = load_words()
    if is_so := [one for one in events[-3:] if last in one.state]:  # "is a huge girl with yellow gloves"
        return next((key for key in story.teller.people(is_so[-1].who("agent")) if key in cast), None)
    if last.lower() in _PRONOUNS or last[:1].isupper() or words.sort(last.lower()) in ("person", "being", "animal"):
        return None
    doers = [key for event in reversed(events[-2:]) for key in story.teller.people(event.who("agent"))]
    return next((key for key in doers if key in cast), None)


def company(story: Told, main: Event, cast: Sequence[str]) -> list[tuple[str, str]]:
    """Return who is still with the one person of a picture, with them right before and after it: "X stands by.";
    nobody where they may have gone or time has passed."""
    at, sentences = main.sentence, story.reading.sentences
    if len(cast) != 1 or not 0 < at < len(sentences) - 1 or story.passes(at) or story.passes(at + 1) or is_gone(main):
        return []
    places = {place.noun if place is not None else "" for place in (one.place for one in sentences[at - 1 : at + 2])}
    before, after = ({key for event in story.reading.of(one) if _is_there(event) and not event.perfect
                      for key in story.people(event)} for one in (at - 1, at + 1))  # fmt: skip
    there = [key for key in sorted(before & after) if key not in cast]
    if (
        len(places) > 1
        or len(there) != 1
        or not {*cast} & (before | after)
        or story.reading.entity(there[0]).count != 1
    ):
        return []
    name = story.teller.name(there[0])
    return [(there[0], f"{name[:1].upper()}{name[1:]} stands by.")]


def standing_by(story: Told, beats: Sequence[Beat], cast: Sequence[str]) -> list[tuple[str, str]]:
    """Return who else takes part in what the words of a picture tell, and what they do there: the guests who watch."""
    found: dict[str, str] = {}
    for beat in beats:
        for event in story.reading.of(beat.sentence.index):
            if not beat.holds(event) or not _is_there(event) or event.perfect or is_gone(event):
                continue
            doers = story.teller.people(event.who("agent"))
            for key in (*doers, *story.teller.people(event.who("patient", "recipient", "companion"))):
                name = story.teller.name(key)
                by = f"{name[:1].upper()}{name[1:]} {'stand' if story.reading.entity(key).count != 1 else 'stands'} by."
                does = key in doers and {*story.people(event)} <= {*cast, key} and story.teller.shows(event)
                if key not in cast:
                    found.setdefault(key, story.teller.sentence(event) if does else by)
    return list(found.items())[: int(planning("named")["people"])]
