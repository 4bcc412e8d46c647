"""What a phrase claims, in the classes that the reader of pictures has: who does what to whom, how it feels, where.

A phrase (an option, a clause of a question, a sentence of the story) is read by `english`; its words are looked up
in the reader's own tables. What they do not know stays open: somebody unknown may be anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from katha_sketch.data import load_config
from katha_sketch.english import Entity, Event, Reading, Role, read_story
from katha_sketch.english.words import load_words as text_words
from katha_sketch.reader.words import Words, load_words

__all__ = ["LIVING", "Claim", "Statement", "Term", "claim_of", "deed_of", "read_statement", "same_claim", "term_of"]

_BEFORE = re.compile(r"\s*,?\s*\b(before|after|and then|then)\b\s+", re.IGNORECASE)
_CHANGE = re.compile(
    r"^(.*?)\b(?:changes?|turns?|goes)(?: their| his| her| its)?(?: \w+)? from (?:being |feeling )?([\w ]+?) to "
    r"(?:being |feeling )?([\w ]+?)\W*$",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|an?|some|this|that|his|her|its|their|my|our|your)\s+", re.IGNORECASE)
_TARGETS = ("patient", "recipient", "goal", "companion", "instrument", "place", "source", "topic")


@dataclass(frozen=True)
class Term:
    """Somebody or something that a phrase names.

    names: what it is called, in lower case and without article. looks: the reader's classes that it can be; empty for
    one of whom the words tell no looks. living: whether it can be a character. proper: a name of its own.
    """

    names: frozenset[str]
    looks: frozenset[str] = frozenset()
    living: bool = False
    proper: bool = False

    def same(self, other: Term) -> bool:
        """Whether both can be one: by name, else by what they look like."""
        if self.names & other.names:
            return True
        return not (self.proper and other.proper) and bool(self.looks & other.looks)


@dataclass(frozen=True)
class Claim:
    """One event of a phrase: who, the reader's deed, the mood, to whom or what, where. None for what it leaves open.
    `also` are the others that take part."""

    actor: Term | None = None
    deed: str | None = None
    mood: str | None = None
    target: Term | None = None
    place: str | None = None
    negated: bool = False
    also: tuple[Term, ...] = ()

    @property
    def tells(self) -> bool:
        """Whether it says more than that somebody is there."""
        return self.deed is not None or self.mood is not None


@dataclass(frozen=True)
class Statement:
    """A phrase as read: its claims in the order in which they happen, all that it names, and a change of feeling (the
    moods before and after)."""

    claims: tuple[Claim, ...] = ()
    terms: tuple[Term, ...] = ()
    places: tuple[str, ...] = ()
    change: tuple[str | None, str | None] | None = None

    @property
    def living(self) -> tuple[Term, ...]:
        """The characters that it names."""
        return tuple(term for term in self.terms if term.living)

    @property
    def things(self) -> tuple[Term, ...]:
        """The things that it names."""
        return tuple(term for term in self.terms if not term.living)


def same_claim(one: Claim, other: Claim) -> bool:
    """Return whether two claims say the same; what one leaves out may be anything."""
    for mine, theirs in ((one.actor, other.actor), (one.target, other.target)):
        if mine is not None and theirs is not None and not mine.same(theirs):
            return False
    return (one.deed, one.mood, one.negated) == (other.deed, other.mood, other.negated)


@lru_cache(maxsize=4096)
def read_statement(text: str) -> Statement:
    """Return what a phrase claims. "X before Y" is two claims in that order, "X after Y" in the other."""
    changed = _CHANGE.match(text)
    if changed is not None:
        words = load_words()
        moods = [words.mood(part.lower().split(), part.lower().split()[-1]) for part in changed.group(2, 3)]
        who = term_of(changed.group(1))
        return Statement((), (who,) if who is not None else (), (), (moods[0], moods[1]))
    parts = _BEFORE.split(text, maxsplit=1)
    if len(parts) == 3 and parts[0] and parts[2]:
        # Both sides alike, whichever of them begins the sentence.
        read = [_read(f"{part[:1].upper()}{part[1:]}") for part in (parts[0], parts[2])]
        if all(one.claims for one in read):
            first, second = read[::-1] if parts[1].lower() == "after" else read
            return Statement(
                (*first.claims, *second.claims), (*first.terms, *second.terms), (*first.places, *second.places)
            )
    return _bare(text) or _read(text)


def _bare(text: str) -> Statement | None:
    """Return what a lone word claims that no sentence holds: a mood ("Proud") or a noun ("Boy"); None for any other."""
    word = text.strip(" .,;:!?\"'").lower()
    if not word.isalpha():
        return None
    mood = load_words().mood((word,), text_words().feelings.get(word))
    if mood is not None:
        return Statement((Claim(None, mood=mood),))
    looks = load_words().looks(word)
    living = any(key.startswith("character/") for key in looks)
    return Statement(terms=(Term(frozenset({word}), looks, living, False),)) if looks else None


@lru_cache(maxsize=1024)
def term_of(phrase: str) -> Term | None:
    """Return whom or what a noun phrase names ("the old woman", "Lena"); None for no words."""
    bare = _ARTICLE.sub("", phrase.strip(" ?.,;:\"'"))
    if not bare:
        return None
    found = _read(f"{phrase.strip(' ?.,;:')} stands.")
    if found.living:
        return found.living[0]
    looks = load_words().looks(bare)
    proper = bare[:1].isupper()
    return Term(frozenset({bare.lower()}), looks, proper or any(key.startswith("character/") for key in looks), proper)


def _read(text: str) -> Statement:
    clean = text.strip()
    if not re.search(r"[A-Za-z]{2}", clean):
        return Statement()
    reading = read_story(clean if clean[-1] in ".!?\"'" else f"{clean}.")
    if not reading.events and clean[-1].isalpha():
        # A clause whose verb could be a noun ("The schoolboys cheer") is a clause with an adverb behind it.
        reading = read_story(f"{clean} there.")
    claims = [claim for event in reading.events if (claim := claim_of(reading, event)) is not None]
    merged = list(_merged(claims))
    terms = tuple(term_for(reading, entity) for entity in reading.entities if _named(entity))
    places = tuple(
        place for entity in reading.entities if entity.kind == "place" and (place := load_words().place(entity.name))
    )
    return Statement(_full(merged, _taking_part(reading, terms)), terms, places)


def _taking_part(reading: Reading, terms: Sequence[Term]) -> list[Term]:
    """Those who and what a phrase shows: not whose something is, and no group beside its members."""
    groups = {_ARTICLE.sub("", entity.name).lower() for entity in reading.entities if entity.members}
    text = " ".join(sentence.text for sentence in reading.sentences).lower()
    owners = {name for term in terms for name in term.names if f"{name}'s" in text or f"{name}\u2019s" in text}
    return [term for term in terms if not term.names & (groups | owners)]


def _full(claims: Sequence[Claim], terms: Sequence[Term]) -> tuple[Claim, ...]:
    """Claims in which all that the phrase names has a part: what has none is there, by the last of them."""
    had = {term for one in claims for term in (one.actor, one.target, *one.also) if term is not None}
    rest = tuple(term for term in terms if (term.looks or term.living) and not any(term.same(one) for one in had))
    if not claims:
        return (Claim(also=rest),) if rest else ()
    return (*claims[:-1], replace(claims[-1], also=(*claims[-1].also, *rest)))


def _merged(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Claims that tell something; a bare one only where there is no other."""
    told = [claim for claim in claims if claim.tells]
    yield from told or claims[:1]


def claim_of(reading: Reading, event: Event) -> Claim | None:
    """Return what one event claims in the reader's classes; None for what no picture shows (speech, wishes)."""
    if event.standing in ("said", "imagined") or event.modality in ("may", "will"):
        return None
    words, agents = load_words(), _several(reading, event.who("agent"))
    actor = agents[0] if agents else None
    state = [word for text in event.state for word in text.lower().split()]
    mood = words.mood(state, event.feeling)
    deed = deed_of(reading, event, state)
    if actor is None and event.passive and event.who("patient"):
        agents = _several(reading, event.who("patient"))
        actor = agents[0] if agents else None
    if mood is not None and deed == "stand":
        deed = None
    parts = _parts(reading, event, actor)
    seen = next((term for term in parts if term.looks or term.living), None)
    said = [part for role in event.all("place", "goal", "source") for part in (role.text, role.head)]
    place = next((found for part in said if (found := words.place(part))), None)
    also = (*agents[1:], *(term for term in parts if term is not seen and term not in agents))
    # Who cannot lift a box is seen to strain at it.
    denied = event.negated and not (event.modality == "can" and deed is not None)
    return Claim(actor, deed, mood, seen, place, denied, also)


def _parts(reading: Reading, event: Event, actor: Term | None) -> list[Term]:
    """Those done to, the nearest first: whom, with whom, with what, where."""
    found: list[Term] = []
    for name in _TARGETS:
        for role in event.all(name):  # type: ignore[arg-type]
            if role.entity is None or role.entity in event.who("agent"):
                continue
            term = _term(reading, role.entity)
            if term is not None and term != actor and (term.looks or not load_words().place(role.text)):
                found.append(term)
    return found


def _named(entity: Entity) -> bool:
    return entity.kind not in ("abstract", "place") or bool(load_words().looks(entity.noun))


def _several(reading: Reading, keys: Sequence[str]) -> list[Term]:
    """Those that share a part in an event, each by itself."""
    each = [member for key in keys for member in (reading.entity(key).members or (key,))]
    return [term for key in each if (term := _term(reading, key)) is not None]


def _term(reading: Reading, key: str) -> Term | None:
    entity = reading.entity(key)
    if entity.members:
        entity = reading.entity(entity.members[0])
    return term_for(reading, entity) if entity.kind != "abstract" else None


def term_for(reading: Reading, entity: Entity) -> Term:
    """Return an entity of a text as the reader could see it."""
    words = load_words()
    names = {_ARTICLE.sub("", name).lower() for name in (entity.name, *entity.aliases) if name}
    looks = words.looks(_ARTICLE.sub("", entity.name), entity.noun)
    people = {f"character/{name}" for name in words.people}
    plain = {f"character/{name}" for name in words.bases.values()}
    if entity.kind in ("person", "group") and (not looks or looks <= plain):
        looks = (_by_nature(entity) | words.looks(*entity.titles)) or looks
    living = entity.kind in LIVING or entity.character or bool(looks & people)
    return Term(frozenset(names), looks, living, entity.named)


def _by_nature(entity: Entity) -> frozenset[str]:
    """What somebody of whom a text tells sex or age can look like; a name alone tells no age."""
    sex = entity.sex or (_sex_of(entity.name) if entity.named else None)
    age = entity.age if entity.age in ("child", "old") else ""
    ages = (age, "child") if entity.named and not age else (age,)
    sexes = (sex,) if sex is not None else ("male", "female") if age == "child" else ()
    found = (load_words().bases.get(f"{one} {other}") for one in sexes for other in ages)
    return frozenset(f"character/{name}" for name in found if name is not None)


@cache
def _given_names() -> Mapping[str, str]:
    rows = load_config("names.yaml").items()
    return {name: sex for sex, listed in rows for name in listed.split()}


def _sex_of(name: str) -> str | None:
    """The sex of most people who have a given name; None for one that says nothing of it."""
    return next((found for word in name.lower().split() if (found := _given_names().get(word)) is not None), None)


LIVING = frozenset({"person", "animal", "being", "group"})
_FELT = frozenset({"be", "feel", "become", "seem"})
_BECOMING = frozenset({*_FELT, "get", "lie", "fall", "keep", "grow", "turn", "look", "sound", "stay"})
"""What a state goes with ("grew thin" is no gardening)."""
_STATED = frozenset({*_FELT, "grow", "turn", "look", "sound"})
_PLACING = frozenset({"put", "set", "lay", "turn", "hold"})
_ENTERING = frozenset({"walk", "go", "come", "step"})
_ONTO = frozenset({"over", "on", "onto", "around", "round", "about"})
_GOING = frozenset({
    "fly", "land", "escape", "flee", "cross", "deliver", "go", "come", "chase", "travel", "follow", "race",
    "arrive", "return", "leave", "run", "rush", "hurry", "move",
})  # fmt: skip
_LEGS = frozenset({"walk", "run", "fly", "swim", "dance", "sit", "sleep", "wait", "swing", "play", "sneeze"})
"""Deeds of the whole body that nobody does to what they hold."""
_HANDY = frozenset({"hand", "table"})
_FLOATING = frozenset({"water", "ground", "table"})
"""What floats on water; what is light or in the sky floats in the air."""
_STRADDLED, _PET = 135.0, 60.0
"""Heights in centimetres: a vehicle lower than the first is sat on, an animal lower than the second is carried."""


def deed_of(reading: Reading, event: Event, state: Sequence[str]) -> str | None:
    """Return the reader's class of an event's deed; None for one that is not known. state: what is said of the doer."""
    return _Clause(reading, event, state).deed()


class _Clause:
    """One event with the tables beside it."""

    def __init__(self, reading: Reading, event: Event, state: Sequence[str]) -> None:
        self.reading, self.event, self.state = reading, event, state
        self.words: Words = load_words()
        self.verb = self.words.irregular.get(event.verb, event.verb)
        self.doers = event.who("agent") or event.who("patient")
        if event.verb == "lay" and event.who("patient"):
            self.verb = "put"  # not the past of "lie"

    def deed(self) -> str | None:
        """The deed by what is done, and where it is done."""
        found = self._done()
        if found is None:
            return None
        roles = self.event.all("goal", "place", "source", "instrument")
        if found == "climb":
            roles = (*roles, *self.event.all("patient"))
        told = [word for one in roles for word in (f"{one.preposition} {one.head}", one.head)]
        return self.words.at_place(found, [*told, *self.event.state, *self.event.manner]) or found

    def _done(self) -> str | None:
        event, words = self.event, self.words
        if self.verb == "put" and (worn := self._worn()) is not None:
            return worn
        if (dressed := self._dressed()) is not None:
            return dressed
        if self.verb in _BECOMING and event.state:
            named = words.state(self.state)
            if named is not None or self.verb in _STATED:
                return named
        if event.verb in _FELT:
            return words.state(self.state)
        lifeless = self.doers and not any(self._alive(key) for key in self.doers)
        if lifeless and event.phase != "stop" and (own := words.lifeless_deed(event.predicate, self.verb)) is not None:
            return "fly" if own == "swim" and self._light() else own
        if self.verb in words.on_foot and self._human(self.doers):
            return words.on_foot[self.verb]
        if (hindered := self._hindered()) is not None:
            return hindered
        if event.passive and not event.who("agent"):
            done = self.reading.surface(event)
            named = words.verbs.get(f"be {done}") or words.state(self.state)
            return named or words.state((self.verb, f"{self.verb}ed", done))
        return self._active()

    def _active(self) -> str | None:
        """What somebody does, by whom or what it is done to and with."""
        event, words, verb = self.event, self.words, self.verb
        patients = event.all("patient")
        whereto = [role for role in event.all("goal") if role.entity is None or not self._alive(role.entity)]
        about = [word for role in patients or (*event.all("recipient"), *whereto) for word in self._sorts(role)]
        special = words.on_object(event.predicate, about)
        if special is None and not event.particle:
            special = words.on_object(verb, about)
        if special == "pocket" and self._touched():
            special = "pat"
        if verb == "have" and special is None:
            return "hold" if patients else None
        if not event.all("patient", "goal", "recipient") and event.predicate in words.alone:
            return words.alone[event.predicate]
        means = [role.head for role in event.all("instrument", "place", "companion", "source")]
        meant = self._riding() or words.by_tool(verb, means) or special
        found = meant or next((words.verbs[one] for one in (*self._phrases(), verb) if one in words.verbs), None)
        if meant is None and (found is None or found in _LEGS) and self._handled():
            return "handle"  # who skims a stone or shuffles cards goes nowhere
        return found

    def _phrases(self) -> Iterator[str]:
        """The verb with what belongs to it, the closest first."""
        event, verb = self.event, self.verb
        patients = event.all("patient")
        yield from (f"{verb} {word}" for word in event.state)  # "shook her awake"
        where = [role for role in event.all("place", "goal") if not self._aside(role)]
        yield from (f"{verb} {role.head}" for role in (*event.all("patient", "companion"), *where))
        if event.particle and not (event.particle == "away" and patients):
            prepositions = [role.preposition for role in event.all("goal", "source", "place") if role.preposition]
            yield from (f"{verb} {event.particle} {one}" for one in prepositions)
            yield f"{verb} {event.particle}"
        lacks = [role for role in event.all("source") if role.entity is not None and not self._alive(role.entity)]
        if verb in _PLACING or (patients and (verb != "take" or lacks)):
            return  # "put it on the shelf" is not "put it on"
        told = [role.preposition for role in event.roles if role.preposition and self._meets(role)]
        for preposition in sorted(told, key=lambda one: one != "through"):
            if not (verb in _ENTERING and preposition == "in"):  # "walked in the rain" is not "walked in"
                yield f"{verb} {preposition}"

    def _worn(self) -> str | None:
        """The deed of who puts something on the own head or feet."""
        owners = [self.reading.entity(role.entity) for role in self.event.all("goal", "place") if role.entity]
        own = any(one.sort == "body" and (one.owner is None or one.owner in self.event.who("agent")) for one in owners)
        about = [word for role in self.event.all("patient") for word in self._sorts(role)]
        return self.words.on_object("put on", about) if own else None

    def _dressed(self) -> str | None:
        """The deed of who throws or ties a garment over a body."""
        garments = [role for role in self.event.all("patient") if self._kind(role) == "clothing"]
        if not garments or self.verb not in self.words.dressing:
            return None
        spots = [role for role in self.event.all("goal", "place") if role.preposition in _ONTO and role.entity]
        bodies = [one for role in spots if (one := self.reading.entity(str(role.entity))).sort == "body" or _lives(one)]
        if not bodies:
            return None
        wearers = {one.owner or one.id for one in bodies} | set(self.event.who("recipient"))
        return "wear" if wearers <= set(self.event.who("agent")) else "fit"

    def _hindered(self) -> str | None:
        """The deed of who cannot, tries in vain or stops."""
        event = self.event
        if event.phase == "stop":
            return self.words.stopped.get(self.verb)
        if event.modality == "try" or (event.negated and event.modality == "can"):
            found = self.words.failed.get(self.verb)
            return found if event.negated or found == "strain" else None
        return None

    def _light(self) -> bool:
        """Whether the first of the doers floats in the air rather than on water."""
        kind, _, stands = self.words.thing(self.reading.entity(self.doers[0]).noun)
        return bool(kind) and (stands not in _FLOATING or kind in ("toy", "plant", "sky"))

    def _riding(self) -> str | None:
        """Going somewhere on or in something: "chased him on her bicycle", "went by car"."""
        if self.verb not in _GOING:
            return None
        for role in self.event.all("place", "instrument", "companion"):
            kind, height, _ = self.words.thing(role.head)
            if role.preposition in ("on", "by", "in") and kind == "vehicle":
                return "ride" if height < _STRADDLED else "drive"
            if role.preposition == "on" and kind == "animal":
                return "ride"
        return None

    def _sorts(self, role: Role) -> list[str]:
        """The words by which a verb's meaning depends on a thing or somebody: its noun, whose body it is, its kind."""
        found = [role.head]
        if role.entity is None:
            kind = self._kind(role)
            return [*found, kind] if kind else found
        if role.entity in self.event.who("agent"):
            return [*found, "self"]
        entity = self.reading.entity(role.entity)
        owner = entity.owner if _is_body(entity) else None
        if owner is not None and owner in self.event.who("agent"):
            return [*found, "own_body"]
        if owner is not None and self._alive(owner):
            found = ["other_body", *found]
        if self._alive(role.entity):
            kind, height, _ = self.words.thing(entity.noun)
            return [*found, *(("pet",) if kind == "animal" and height <= _PET else ()), "living"]
        found += [entity.noun] if entity.noun and entity.noun != role.head else []
        kind = self._kind(role) or self.words.thing(entity.noun)[0]
        return [*found, kind] if kind else [*found, entity.sort] if entity.sort else found

    def _kind(self, role: Role) -> str:
        return self.words.thing(role.head)[0]

    def _aside(self, role: Role) -> bool:
        """Whether a place is a part of somebody that makes no other verb: to hold something behind the back is not to
        hold back."""
        body = role.entity is not None and _is_body(self.reading.entity(role.entity))
        return body and (role.head == "back" or bool(self.event.all("instrument")))

    def _meets(self, role: Role) -> bool:
        """Whether a preposition makes another verb: one rows with a friend at home, and with oars at sea."""
        return role.preposition != "with" or role.entity is None or self._alive(role.entity)

    def _touched(self) -> bool:
        """Whether a hand is laid on somebody else."""
        parts = [self.reading.entity(role.entity) for role in self.event.all("goal", "place") if role.entity]
        owners = {one.owner for one in parts if one.owner is not None} - set(self.event.who("agent"))
        return bool(owners) or any(_lives(one) for one in parts)

    def _handled(self) -> bool:
        """Whether something that hands can hold is what is done something to."""
        things = [
            role for role in self.event.all("patient") if role.entity is not None and not self._alive(role.entity)
        ]
        return any(self.words.thing(role.head)[2] in _HANDY for role in things)

    def _alive(self, key: str) -> bool:
        return _lives(self.reading.entity(key))

    def _human(self, keys: Iterable[str]) -> bool:
        kinds = [self.reading.entity(key).kind for key in keys]
        return bool(kinds) and all(kind in ("person", "group") for kind in kinds)


def _lives(entity: Entity) -> bool:
    return entity.kind in LIVING


def _is_body(entity: Entity) -> bool:
    own = entity.owner is not None and text_words().has("parts", entity.noun)
    return own or entity.sort in ("body", "abstract")
