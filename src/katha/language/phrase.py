"""A question or an answer option to what it claims: concepts, who does what to whom when, and changes of feeling."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from katha.language.cast import Cast, Member
from katha.language.chunks import Chunk, Noun, chunk_words
from katha.language.clauses import Fact, read_facts
from katha.language.lexicon import Vocabulary, load_vocabulary
from katha.language.meaning import Happening, happenings
from katha.language.tokens import split_sentences

__all__ = ["PhraseEvent", "PhraseReading", "read_phrase"]

_EARLIER = frozenset({"after", "once", "as soon as"})
_LATER = frozenset({"before", "until", "till"})
_THEN = re.compile(r"\b(?:then|finally|afterwards?)\b", re.IGNORECASE)
_BECOMING = frozenset({"become", "turn", "grow", "get", "feel"})


@dataclass(frozen=True)
class PhraseEvent:
    """One claim: `actor` does `action` to `target`, or feels `emotion`. Ids of the vocabulary; None is unsaid."""

    actor: str | None = None
    action: str | None = None
    target: str | None = None
    emotion: str | None = None
    negated: bool = False


@dataclass(frozen=True)
class PhraseReading:
    """What a short text claims.

    concepts: ids by kind (character, prop, setting, time, weather, action, emotion, attribute, moral), in order of
        mention, each once.
    events: who does what to whom. In order of time when the text says the order ("after X, Y" and "Y before X" are
        told apart from "X, then Y"); otherwise as told. A bare verb phrase ("gnaws the rope") has no actor.
    change: the feeling before and after ("from afraid to happy", "becomes grateful": (None, "grateful")), else None.
    negated: whether the first claim, or the only feeling, is denied ("did not eat", "is no longer afraid").
    order: which word gave the order ("before", "after", "then"), None if the text gives none.
    unread: content words that the vocabulary does not know.
    """

    concepts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    events: tuple[PhraseEvent, ...] = ()
    change: tuple[str | None, str | None] | None = None
    negated: bool = False
    order: Literal["before", "after", "then"] | None = None
    unread: tuple[str, ...] = ()

    def has(self, kind: str, concept: str) -> bool:
        """Whether the text names that concept."""
        return concept in self.concepts.get(kind, ())


class _Reader:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.cast = Cast(vocabulary.grammar)
        self.concepts: dict[str, list[str]] = {}
        self.feelings: list[tuple[str, str]] = []
        self.events: list[PhraseEvent] = []
        self.becoming = False
        self.denied = False

    def _name(self, kind: str, concept: str | None) -> None:
        if concept is not None and concept not in self.concepts.setdefault(kind, []):
            self.concepts[kind].append(concept)

    def chunks(self, chunks: Sequence[Chunk]) -> None:
        """Collect the concepts named, and the feelings with the preposition before each."""
        before = ""
        for chunk in chunks:
            if chunk.noun is not None:
                self._noun(chunk.noun)
            if chunk.verb is not None:
                self._name("action", chunk.verb.action)
                self.becoming = self.becoming or chunk.verb.lemma in _BECOMING
                for feeling in (chunk.verb.emotion, chunk.verb.stirs):
                    self._feel(feeling, "")
            if chunk.type == "feeling":
                denied = before in {"no", "without"}
                self.denied = self.denied or denied
                self._feel(chunk.concept, "from" if denied else before)
            elif chunk.type == "look":
                self._name("attribute", chunk.concept)
            before = chunk.text.lower() if chunk.type in {"prep", "to"} else ""
            if chunk.verb is not None and chunk.verb.copula and chunk.verb.negated:
                before = "no"

    def _feel(self, feeling: str | None, before: str) -> None:
        if feeling is not None:
            self._name("emotion", feeling)
            self.feelings.append((before, feeling))

    def _noun(self, noun: Noun) -> None:
        if noun.owner is not None:
            self._noun(noun.owner)
        self._name(noun.kind, noun.concept)
        for look in noun.attributes:
            self._name("attribute", look)
        self._feel(noun.emotion, "")

    def fact(self, fact: Fact) -> list[PhraseEvent]:
        """The claims of one clause."""
        found: list[PhraseEvent] = []
        subjects = [m for noun in fact.subjects for m in self._members(noun, [])]
        if subjects:
            self.cast.subject = subjects
        for happening in happenings(fact, self.vocabulary, loose=True) if not fact.wished else ():
            found.extend(self._happening(happening, subjects))
        for noun in fact.nouns():
            self.cast.thing = noun.concept if noun.kind == "prop" else self.cast.thing
        return found

    def _happening(self, happening: Happening, subjects: list[Member]) -> list[PhraseEvent]:
        own = all(any(actor is noun for noun in happening.fact.subjects) for actor in happening.actors)
        actors = subjects if own else [m for noun in happening.actors for m in self._members(noun, subjects)]
        target = self._target(happening.target, actors)
        kinds: list[str | None] = [member.concept for member in actors] if happening.actors else [None]
        return [
            PhraseEvent(actor, happening.action, target, happening.emotion, happening.negated)
            for actor in kinds or [None]
        ]

    def _members(self, noun: Noun, others: list[Member]) -> list[Member]:
        while noun.kind == "known" and noun.owner is not None:
            noun = noun.owner
        return self.cast.meet(noun, others=others)

    def _target(self, noun: Noun | None, actors: list[Member]) -> str | None:
        if noun is None or noun.kind == "prop":
            return noun.concept if noun is not None else None
        if noun.kind == "pronoun" and noun.word == "it" and self.cast.thing is not None:
            return self.cast.thing
        found = self._members(noun, actors)
        return found[0].concept if found else None

    def change(self) -> tuple[str | None, str | None] | None:
        """The feeling before and after, from "from", "to", "no longer" and the order of mention."""
        if not self.feelings:
            return None
        start = next((feeling for before, feeling in self.feelings if before == "from"), None)
        end = next((feeling for before, feeling in reversed(self.feelings) if before in {"to", "into"}), None)
        rest = [feeling for before, feeling in self.feelings if before not in {"from", "to", "into"}]
        if start is None and end is not None and rest:
            start = rest[0]
        if end is None and rest:
            end = rest[-1]
        if start is None and len(rest) > 1 and rest[0] != end:
            start = rest[0]
        if start is None and end is not None and not self.becoming and len(self.feelings) == 1:
            return (None, end)
        return (start, end)


def _ordered(
    facts: Sequence[tuple[Fact, list[PhraseEvent]]], text: str
) -> tuple[list[PhraseEvent], Literal["before", "after", "then"] | None]:
    """The events in order of time, and the word that told the order."""
    told = [(fact.connective, events) for fact, events in facts]
    plain = [event for word, events in told if word not in _EARLIER | _LATER for event in events]
    earlier = [event for word, events in told if word in _EARLIER for event in events]
    later = [event for word, events in told if word in _LATER for event in events]
    if later:
        return [*earlier, *plain, *later], "before"
    if earlier:
        return [*earlier, *plain], "after"
    return plain, "then" if _THEN.search(text) else None


@lru_cache(maxsize=4096)
def read_phrase(text: str) -> PhraseReading:
    """What the question, answer or option `text` claims (see `PhraseReading`); never fails on unknown words."""
    vocabulary = load_vocabulary()
    reader = _Reader(vocabulary)
    facts: list[tuple[Fact, list[PhraseEvent]]] = []
    unread: list[str] = []
    for sentence in split_sentences(text):
        chunks, unknown = chunk_words(sentence.words, vocabulary)
        unread.extend(unknown)
        reader.chunks(chunks)
        facts.extend((fact, reader.fact(fact)) for fact in read_facts(chunks, vocabulary.grammar))
    events, order = _ordered(facts, text)
    moral = vocabulary.find(text.strip(" ."), "moral")
    if moral is not None:
        reader.concepts["moral"] = [moral]
    negated = events[0].negated if events else reader.denied
    return PhraseReading(
        {kind: tuple(ids) for kind, ids in reader.concepts.items()},
        tuple(events),
        reader.change(),
        negated or reader.denied,
        order,
        tuple(dict.fromkeys(unread)),
    )
