"""What is in a picture beside its events: what lasts of earlier deeds (clothes put on, a broken cup, who sits at the
table, what somebody carries), and what its words name (what somebody holds, what else lies or stands there)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from katha_sketch.data import load_config
from katha_sketch.english import Entity, Event
from katha_sketch.english.words import load_words
from katha_sketch.planner.acts import Beat, Told, planning

__all__ = [
    "carried",
    "had",
    "held_fast",
    "inner",
    "is_gone",
    "standing_by",
    "still_so",
    "things_by",
    "worn",
]

_WHOLE = re.compile(
    r"snap\w* (?:tight|shut|open|back|to|at|his|her|a (?:photo|picture))|crack\w* (?:a (?:joke|smile)|up)"
    r"|(?:tears?|tore) (?:off|along|down|up|open)",
    re.IGNORECASE,
)
"""What sounds like breaking and breaks nothing."""
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
        broken = (
            table["becomes"].get(event.verb) if thing and not _WHOLE.match(story.reading.text, event.start) else None
        )
        state = broken or says
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
    held: dict[tuple[str, bool], _Hold] = {}
    for event in story.reading.events[: before.id]:
        if event.speech is not None or event.standing != "told":
            continue
        if story.passes(event.sentence):
            held = {key: one for key, one in held.items() if one.captive}
        stuck = {who for who, captive in held if captive}  # who is stuck in a tree is in the tree
        held = {
            key: one
            for key, one in held.items()
            if not _is_released(story, event, key[0], one) or (key[0] in stuck and not one.captive)
        }
        held |= {(who, one.captive): one for who, one in _begun(story, event).items()}
    at = story.reading.sentences[before.sentence].place
    told = []
    for key in cast:
        stuck_there = held.get((key, True))
        hold = held.get((key, False)) or stuck_there
        moved = at is not None and hold is not None and at.since > hold.since and at.noun not in hold.where
        if any(_is_free(one, key) for one in shown):
            continue
        if hold is not None and (stuck_there is not None or not moved) and not _placed(key, shown):
            name = story.teller.name(key)
            told.append(f"{name[:1].upper()}{name[1:]} {hold.where}.")
    return told


@dataclass(frozen=True)
class _Hold:
    """Where somebody is held, as a picture says it, since which sentence; whether they are captive there, or ride."""

    where: str
    since: int
    captive: bool
    rides: bool


def _is_free(event: Event, key: str) -> bool:
    """Whether an event tells that somebody is free."""
    return event.happens and key in event.who("agent") and bool({*event.state} & {*planning("held_fast")["free"]})


def _is_released(story: Told, event: Event, key: str, hold: _Hold) -> bool:
    """Whether an event ends that somebody is held somewhere."""
    table = planning("held_fast")
    if not event.happens:
        return False
    taken = {*event.who("patient"), *(story.reading.entity(one).owner for one in event.who("patient"))}
    own = key in event.who("agent")
    if hold.captive:
        opened = any(story.reading.entity(one).noun in hold.where.split() for one in event.who("patient"))
        freed = event.verb in table["frees"] and (key in taken or opened)
        return freed or _is_free(event, key) or (own and event.verb in table["escapes"])
    if hold.rides:
        return own and (event.verb in table["alights"] or event.predicate in table["alights"])
    return _moves(event) and (own or key in taken)


def _moves(event: Event) -> bool:
    """Whether somebody gets up or goes, or is taken somewhere."""
    rises = planning("held_fast")["rises"]
    return event.verb in rises or event.predicate in rises or load_words().has("motion", event.verb)


def _placed(key: str, shown: Sequence[Event]) -> bool:
    """Whether a deed that is shown says where somebody is, or has them on the move or freed."""
    own = [event for event in shown if key in (*event.who("agent"), *event.who("patient"))]
    frees = planning("held_fast")["frees"]
    return any(_moves(one) or one.verb in frees or one.all("place", "goal", "source") for one in own)


def _at(preposition: str, row: Any) -> str:
    """The preposition of where somebody is whom a deed has brought there: "climbed into the tree" and is in it."""
    first = row["prepositions"].split()[0]
    return {"into": "in", "onto": "on", "up": "on", "": "on" if first == "up" else first}.get(preposition, preposition)


def _begun(story: Told, event: Event) -> dict[str, _Hold]:
    """Who is laid, seated, caught or mounted by an event, and where."""
    found: dict[str, _Hold] = {}
    if event.negated or event.perfect:
        return found
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
                    posture = "sits" if event.verb in ("sit", "perch", "settle") else row["says"]
                    says = f"{posture} {_at(role.preposition, row)} {where}"
                    found[key] = _Hold(says, event.sentence, bool(row["captive"]), bool(row.get("rides")))
    return found


def carried(story: Told, main: Event, cast: Sequence[str]) -> list[str]:
    """Return what those in a picture have in their hands since an earlier deed: "Ann holds the box."; nothing where the
    main deed needs the hands, or tells of the thing."""
    table = planning("carrying")
    held: dict[str, tuple[str, int]] = {}
    for event in story.reading.events[: main.id]:
        if event.speech is not None or not event.happens or event.perfect or event.modality:
            continue
        if story.passes(event.sentence):
            held = {}
        things = {*event.who("patient")}
        busy = {*story.doers(event)} if _needs_hands(story, event) else set()  # who does something else puts it down
        held = {who: one for who, one in held.items() if one[0] not in things and who not in busy | things}
        for who, key in _taken(story, event):
            held[who] = (key, event.sentence)
    seen = {role.entity for role in main.roles}
    told = []
    for who in cast:
        what, since = held.get(who, ("", 0))
        in_use = who in story.doers(main) and _needs_hands(story, main)
        late = main.sentence - since > int(table["sentences"])
        if what and what not in seen and not (in_use or late):
            name, what = story.teller.name(who), story.teller.name(what)
            told.append(f"{name[:1].upper()}{name[1:]} holds {what}.")
    return told


def _needs_hands(story: Told, event: Event) -> bool:
    """Whether who does something has no hand free for what they carry: they do more than go, look or speak."""
    table = planning("carrying")
    free = event.verb in {*table["free"], *planning("verbs")["talk"]} or event.predicate in table["free"]
    things = [key for key in event.who("patient") if not story.reading.entity(key).character]
    return bool(things) and event.verb not in table["seeing"] if free else True


def _taken(story: Told, event: Event) -> list[tuple[str, str]]:
    """Who has what in the hands after an event: who takes it, who goes or stands somewhere with it."""
    table, said = planning("carrying"), {event.verb, event.predicate}
    what = event.who("patient") if said & {*table["takes"]} else ()
    if said & {*table["free"]} and not event.who("patient"):
        what = event.who("instrument", "companion")
    people, things = story.teller.people(event.who("agent")), [story.reading.entity(key) for key in what]
    alone = [key for key in people if story.reading.entity(key).count == 1]
    return [(key, things[0].id) for key in alone if len(things) == 1 and _can_be_carried(story, things[0])]


def _can_be_carried(story: Told, thing: Entity) -> bool:
    """Whether something is one thing that hands hold."""
    sorts = {thing.sort, load_words().sort(thing.noun)}
    fits = (
        thing.kind == "thing" and thing.count == 1 and bool(thing.noun) and not sorts & {*planning("carrying")["never"]}
    )
    fits = fits and thing.noun not in planning("carrying")["things"]
    return fits and not thing.character and not load_words().has("parts", thing.noun)


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
        for one in re.finditer(rf"\b{_stem(entity.noun)}(?:y|e|f|s|es|ies|ves|fe)?\b", told, re.IGNORECASE):
            lead = re.split(r"[.!?]\s", told[: one.start()])[-1]
            if not _LIKENED.search(lead):
                found.append(_Named(entity, one.start(), one.end()))
                break
    yield from sorted(found, key=lambda one: one.start)


def _stem(noun: str) -> str:
    """What the forms of a noun begin with, as a pattern."""
    return re.escape(noun[:-1] if noun[-1] in "yef" else noun)


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


def _is_clothing(entity: Entity) -> bool:
    return "clothing" in (entity.sort, load_words().sort(entity.noun)) or entity.noun in planning("named")["worn"]


def _bare(entity: Entity) -> str:
    name = entity.name.rsplit("'s ", 1)[-1]
    name = re.sub(r"^(?:the|an?|some|his|her|their|its|my|our)\s+", "", name, flags=re.IGNORECASE)
    return name if entity.noun.lower() in name.lower() else entity.noun


def had(story: Told, beats: Sequence[Beat], cast: Sequence[str], told: str) -> list[str]:
    """Return what those in a picture wear and hold by its words ("a woman in a cap"), nothing that `told` has."""
    text, found = _words(story, beats), list[str]()
    for thing in _things(story, beats):
        lead, rest = text[: thing.start], text[thing.end :]
        worn = _is_clothing(thing.entity) and (_PUT_ON.search(lead) or _HELD.search(lead))
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


def _is_somebody(story: Told, entity: Entity) -> bool:
    """Whether a name is of somebody who does anything or is "he" or "she" anywhere, and not of a town or a day."""
    if not entity.named or entity.noun or entity.titles or entity.kin or entity.narrator or entity.sex is not None:
        return True
    spoke = any(speech.speaker == entity.id for speech in story.reading.speeches)
    told = (event for event in story.reading.events if event.speech is None)
    return spoke or any(entity.id in event.who("agent", "recipient", "companion") for event in told)


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
                if key not in cast and _is_somebody(story, story.reading.entity(key)):
                    found.setdefault(key, story.teller.sentence(event) if does else by)
    return list(found.items())[: int(planning("named")["people"])]
