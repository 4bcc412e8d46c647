"""What a phrase claims, in the classes that the reader of pictures has: who does what to whom, how it feels, where.

A phrase (an option, a clause of a question, a sentence of the story) is read by `katha.text`; its words are looked up
in the reader's own tables. What they do not know stays open: somebody unknown may be anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from katha.configs import load_config
from katha.eval_bridge.judges.meant import LIVING, deed_of
from katha.eval_bridge.reader.words import load_words
from katha.text import Entity, Event, Reading, read_story
from katha.text.words import load_words as text_words

__all__ = ["Claim", "Statement", "Term", "claim_of", "read_statement", "same_claim", "term_of"]

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
