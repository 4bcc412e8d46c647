"""A short text (a question's answer, a prompt, a line of an annotation) as concepts of the vocabulary and claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from katha_sketch.english.reading import read_story
from katha_sketch.english.types import Event, Reading, Role
from katha_sketch.vocabulary import ConceptKind, Sense, Vocabulary, load_vocabulary

__all__ = ["Claim", "Phrase", "bare", "read_phrase"]

_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_ARTICLE = re.compile(r"^(?:the|an?|his|her|its|their|my|our|your|this|that|these|those|another|\w+'s) ", re.IGNORECASE)
_ORDERS: tuple[tuple[re.Pattern[str], bool], ...] = (
    (re.compile(r"^(?:after|once|as soon as) (?P<first>[^,]+), (?P<second>.+)$", re.IGNORECASE), True),
    (re.compile(r"^(?:before|until) (?P<second>[^,]+), (?P<first>.+)$", re.IGNORECASE), False),
    (re.compile(r"^(?P<first>.+?) (?:before|until) (?P<second>.+)$", re.IGNORECASE), False),
    (re.compile(r"^(?P<second>.+?) (?:after|as soon as) (?P<first>.+)$", re.IGNORECASE), True),
)
_THEN = re.compile(r"\b(?:then|finally|afterwards?)\b", re.IGNORECASE)
_BECOMING = frozenset(("become", "turn", "grow", "get", "feel"))
_LONGEST = 4
_TARGETS = ("recipient", "patient", "goal", "companion", "topic", "source", "instrument", "place")
_BEFORE = frozenset(("from", "to", "into", "no", "without", "not", "longer"))


@dataclass(frozen=True)
class Claim:
    """One claim: `actor` does `action` to `target`, or feels `emotion`. Ids of the vocabulary; None is unsaid."""

    actor: str | None = None
    action: str | None = None
    target: str | None = None
    emotion: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class Phrase:
    """What a short text claims.

    concepts: ids by kind, in order of mention, each once.
    events: who does what to whom, in order of time where the text says the order ("after X, Y", "Y before X"), else as
        told. A bare verb phrase ("gnaws the rope") has no actor.
    change: the feeling before and after ("from afraid to happy", "becomes grateful": (None, "grateful")), else None.
    order: which word gave the order, None if the text gives none.
    """

    concepts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    events: tuple[Claim, ...] = ()
    change: tuple[str | None, str | None] | None = None
    order: Literal["before", "after", "then"] | None = None


def bare(phrase: str) -> str:
    """Return a noun phrase without its article."""
    return _ARTICLE.sub("", phrase.strip())


@lru_cache(maxsize=4096)
def read_phrase(text: str) -> Phrase:
    """Return what the question, answer, prompt or option `text` claims; never fails on unknown words."""
    clean = " ".join(text.split()).rstrip(" .;,")
    if not clean:
        return Phrase()
    vocabulary = load_vocabulary()
    for pattern, earlier in _ORDERS:
        found = pattern.match(clean)
        if found is not None and "." not in clean:
            first, second = read_phrase(found["first"]), read_phrase(found["second"])
            if first.events and second.events:
                return _joined(first, second, "after" if earlier else "before")
    reading, led = _read(clean, vocabulary)
    named = _named(reading, vocabulary, led)
    events = tuple(
        claim
        for event in reading.events
        if event.standing == "told"
        for claim in _claims(event, reading, vocabulary, led)
    )
    moral = vocabulary.find(clean, "moral")
    concepts: dict[str, list[str]] = {"moral": [moral]} if moral is not None else {}
    for _, kind, concept in named:
        if concept not in concepts.setdefault(kind, []):
            concepts[kind].append(concept)
    becoming = any(event.verb in _BECOMING for event in reading.events)
    return Phrase(
        {kind: tuple(ids) for kind, ids in concepts.items()},
        events,
        _change(named, becoming),
        "then" if _THEN.search(clean) else None,
    )


def _joined(first: Phrase, second: Phrase, order: Literal["before", "after"]) -> Phrase:
    kinds = dict.fromkeys((*first.concepts, *second.concepts))
    concepts = {
        kind: tuple(dict.fromkeys((*first.concepts.get(kind, ()), *second.concepts.get(kind, ())))) for kind in kinds
    }
    return Phrase(concepts, (*first.events, *second.events), None, order)


def _read(text: str, vocabulary: Vocabulary) -> tuple[Reading, int]:
    """The text as a sentence, and how many letters were put before it: a bare verb phrase has somebody do it."""
    plain = text if text[-1] in ".!?\"'" else f"{text}."
    first = text.split()[0].lower()
    senses = vocabulary.senses.get(first, ())
    if any(sense.part == "verb" for sense in senses) and not any(sense.part == "noun" for sense in senses):
        led = f"She {plain[:1].lower()}{plain[1:]}"
        return read_story(led), len("She ")
    return read_story(f"{plain[:1].upper()}{plain[1:]}"), 0


def _surfaces(reading: Reading, vocabulary: Vocabulary, led: int) -> Iterator[tuple[str, tuple[Sense, ...]]]:
    """The words of a text, those that name something together, with what they can mean there."""
    tokens = [(match.group().lower(), match.start()) for match in _WORD.finditer(reading.text) if match.start() >= led]
    verbs = {event.start for event in reading.events}
    at = 0
    while at < len(tokens):
        doing = tokens[at][1] in verbs
        for size in range(min(_LONGEST, len(tokens) - at), 0, -1):
            surface = " ".join(word for word, _ in tokens[at : at + size]).removesuffix("'s")
            senses = vocabulary.senses.get(surface, ())
            fitting = tuple(sense for sense in senses if (sense.part in ("verb", "passive")) == doing) or senses
            if fitting or size == 1:
                yield surface, fitting
                at += size
                break


def _named(reading: Reading, vocabulary: Vocabulary, led: int) -> list[tuple[str, ConceptKind, str]]:
    """What a text names: the word before each, its kind, its id."""
    found: list[tuple[str, ConceptKind, str]] = []
    last = ("", "")
    for surface, senses in _surfaces(reading, vocabulary, led):
        before = next((word for word in last[::-1] if word in _BEFORE), "")
        kinds: dict[ConceptKind, str] = {}
        for sense in senses:
            kinds.setdefault(sense.kind, sense.id)
        found += [(before, kind, concept) for kind, concept in kinds.items()]
        last = (last[1], surface)
    return found


def _change(named: Sequence[tuple[str, str, str]], becoming: bool) -> tuple[str | None, str | None] | None:
    """The feeling before and after, from "from", "to", "no longer" and the order of mention."""
    feelings = [(before, concept) for before, kind, concept in named if kind == "emotion"]
    if not feelings:
        return None
    early = ("from", "no", "without", "longer", "not")
    start = next((feeling for before, feeling in feelings if before in early), None)
    end = next((feeling for before, feeling in reversed(feelings) if before in ("to", "into")), None)
    rest = [feeling for before, feeling in feelings if before not in (*early, "to", "into")]
    if end is None and rest:
        end = rest[-1]
    if start is None and rest and rest[0] != end:
        start = rest[0]
    return (start, end)


def _concept(role: Role, reading: Reading, vocabulary: Vocabulary) -> str | None:
    """The character or thing of the vocabulary that fills a role."""
    entity = reading.entity(role.entity) if role.entity is not None else None
    names = [bare(role.text), role.head]
    if entity is not None:
        names += [bare(entity.name), *(bare(alias) for alias in entity.aliases), entity.noun]
    kinds: tuple[ConceptKind, ...] = ("character", "prop")
    return next((found for name in names for kind in kinds if name and (found := vocabulary.find(name, kind))), None)


def _claims(event: Event, reading: Reading, vocabulary: Vocabulary, led: int) -> Iterator[Claim]:
    """What one clause claims: a deed for each doer, and a feeling."""
    agents = [role for role in event.all("agent") if role.start >= led]
    held = next((word for word in (*event.state, reading.surface(event)) if _passive(word, vocabulary)), None)
    action = _action(event, vocabulary)
    if held is not None and (event.passive or event.verb == "be"):
        action = _passive(held, vocabulary)
        agents = agents if event.verb == "be" else list(event.all("patient"))
    targets = [role for name in _TARGETS for role in event.all(name) if role not in agents]  # type: ignore[arg-type]
    target = next((found for role in targets if (found := _concept(role, reading, vocabulary))), None)
    words = (*event.state, *event.manner, *([event.verb] if _verb(event.verb, vocabulary) else ()))
    emotion = next((found for word in words if (found := vocabulary.find(word, "emotion"))), None)
    actors = [_concept(role, reading, vocabulary) for role in agents]
    for actor in dict.fromkeys(actors or [None]):
        if action is not None or emotion is not None or actor is not None:
            yield Claim(actor, action, target, emotion, event.negated)


def _verb(word: str, vocabulary: Vocabulary) -> bool:
    """Whether a verb tells a feeling of whoever does it ("rejoice")."""
    return any(sense.kind == "emotion" and sense.part == "verb" for sense in vocabulary.senses.get(word, ()))


def _passive(word: str, vocabulary: Vocabulary) -> str | None:
    return next((sense.id for sense in vocabulary.senses.get(word, ()) if sense.part == "passive"), None)


def _action(event: Event, vocabulary: Vocabulary) -> str | None:
    """The deed of the vocabulary that a verb names, with its particle or preposition first."""
    spelt = [event.predicate, *(f"{event.verb} {role.preposition}" for role in event.roles if role.preposition)]
    if event.verb == "be":
        return None
    return next((found for text in (*spelt, event.verb) if (found := vocabulary.find(text, "action"))), None)
