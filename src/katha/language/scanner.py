"""Chunks, and the pass over a sentence's words that the readers of verbs and noun phrases share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from katha.language.lexicon import Sense, Vocabulary
from katha.language.tokens import Word

__all__ = ["Chunk", "ChunkType", "Noun", "Phrase", "Scanner", "Verb"]

ChunkType = Literal[
    "noun", "verb", "feeling", "look", "prep", "and", "comma", "sub", "rel", "to", "end", "mood", "label"
]


_CROWNS = {"king": ("crowned",), "queen": ("crowned",)}


@dataclass(frozen=True)
class Noun:
    """A noun phrase. `kind` is character, prop, setting, time, weather, pronoun, referring, name or known (no concept).

    `owner` is the noun phrase of a possessor ("the lion's paw"), `labels` are modifiers that tell apart ("town mouse"),
    `possessor` the pronoun of a possessor ("his tail": "he").
    """

    kind: str
    concept: str | None
    word: str
    plural: bool = False
    count: int = 1
    attributes: tuple[str, ...] = ()
    emotion: str | None = None
    labels: tuple[str, ...] = ()
    definite: bool = False
    fresh: bool = False
    none: bool = False
    owner: Noun | None = None
    name: str | None = None
    possessor: str | None = None


@dataclass(frozen=True)
class Verb:
    """A verb group. `action` is None for verbs that are not drawn; `emotion` is what the verb tells of
    its subject, `stirs` what it makes its object feel ("frightened")."""

    lemma: str
    action: str | None
    emotion: str | None
    form: str
    stirs: str | None = None
    passive: bool = False
    negated: bool = False
    modal: bool = False
    copula: bool = False


@dataclass(frozen=True)
class Chunk:
    """One chunk: its type, its word(s), and the noun phrase, verb group or concept it holds."""

    type: ChunkType
    text: str
    speech: bool
    noun: Noun | None = None
    verb: Verb | None = None
    concept: str | None = None


@dataclass
class Phrase:
    """The noun phrase under construction."""

    open: bool = False
    count: int = 1
    plural: bool = False
    definite: bool = False
    fresh: bool = False
    none: bool = False
    attributes: list[str] = field(default_factory=list)
    emotion: str | None = None
    labels: list[str] = field(default_factory=list)
    owner: Noun | None = None
    possessor: str | None = None
    heads: list[Sense] = field(default_factory=list)


class Scanner:
    """The words of one sentence, the position in them, the chunks so far and the noun phrase under construction."""

    def __init__(self, words: Sequence[Word], vocabulary: Vocabulary, names: frozenset[str]) -> None:
        self.words = words
        self.vocabulary = vocabulary
        self.grammar = vocabulary.grammar
        self.names = names
        self.chunks: list[Chunk] = []
        self.unread: list[str] = []
        self.phrase = Phrase()
        self.at = 0

    def _span(self, length: int, at: int | None = None) -> str:
        start = self.at if at is None else at
        return " ".join(word.lower for word in self.words[start : start + length])

    def _match(self, test: Callable[[str], bool], at: int | None = None) -> int:
        """The length in words of the longest phrase at `at` that passes `test`, 0 if none."""
        start = self.at if at is None else at
        if start >= len(self.words):
            return 0
        longest = self.vocabulary.longest.get(self.words[start].lower, 1)
        for length in range(min(longest, len(self.words) - start), 0, -1):
            if test(self._span(length, start)):
                return length
        return 0

    def _senses(self, at: int) -> tuple[int, tuple[Sense, ...]]:
        length = self._match(self.vocabulary.senses.__contains__, at)
        return (length, self.vocabulary.senses[self._span(length, at)]) if length else (0, ())

    def _emit(self, kind: ChunkType, length: int, **parts: object) -> None:
        speech = self.words[min(self.at, len(self.words) - 1)].speech
        text = " ".join(word.text for word in self.words[self.at : self.at + length])
        self.chunks.append(Chunk(kind, text, speech, **parts))  # type: ignore[arg-type]
        self.at += length

    def _after(self, kind: str) -> bool:
        return bool(self.chunks) and self.chunks[-1].type == kind

    def _after_noun(self) -> bool:
        return bool(self.chunks) and self.chunks[-1].type == "noun"

    def _noun_before_and(self) -> bool:
        return len(self.chunks) > 1 and self.chunks[-2].type == "noun"

    def _is_adverb(self, at: int) -> bool:
        length, senses = self._senses(at)
        if not length:
            return self._span(1, at).endswith("ly") and len(self._span(1, at)) > 4
        return bool(senses) and all(sense.part == "adverb" for sense in senses)

    def _noun_ahead(self, at: int) -> bool:
        """Whether a noun phrase goes on at `at` (a noun or an adjective before one)."""
        if at >= len(self.words) or not self.words[at].text[0].isalnum():
            return False
        if self.words[at].text in self.names:
            return False
        word = self._span(1, at)
        if self.grammar.has("determiners", word) or word in self.grammar.numbers:
            return word not in {"the", "a", "an"}
        if self.grammar.has("be", word) or self.grammar.has("modals", word) or self.grammar.has("prepositions", word):
            return False
        if word in self.grammar.pronouns or self.grammar.has("auxiliaries", word):
            return False
        _, senses = self._senses(at)
        parts = {sense.part for sense in senses}
        if not parts:
            return not word.endswith("ly") and not self.grammar.has("conjunctions", word)
        if "noun" in parts or "feeling" in parts:
            return True
        return "adjective" in parts and self._noun_ahead(at + 1)

    def _close(self) -> None:
        """Finish the noun phrase under construction, if it has a head."""
        phrase, heads = self.phrase, self.phrase.heads
        if not heads:
            self.phrase = Phrase()
            return
        head, title = heads[-1], self._title()
        if title is not None:
            head, phrase = title, replace(phrase, attributes=[*phrase.attributes, *_CROWNS.get(heads[-1].id or "", ())])
        others = heads[:-1] if title is None else heads[-1:]
        labels = (*phrase.labels, *(sense.lemma for sense in others))
        plural = head.plural or phrase.plural
        noun = Noun(
            kind=head.kind,
            concept=head.id,
            word=head.lemma,
            plural=plural,
            count=max(phrase.count, 3 if plural and phrase.count < 2 else 1),
            attributes=tuple(dict.fromkeys(phrase.attributes)),
            emotion=phrase.emotion,
            labels=labels if head.kind == "character" else (),
            definite=phrase.definite,
            fresh=phrase.fresh,
            none=phrase.none,
            owner=phrase.owner,
            possessor=phrase.possessor,
        )
        first = heads[0]
        if title is None and head.kind == "known" and len(heads) > 1 and first.kind == "character":
            noun = replace(noun, owner=Noun("character", first.id, first.lemma, definite=True))
        elif head.kind == "known" and len(heads) > 1 and first.kind in {"setting", "prop"}:
            noun = replace(noun, kind=first.kind, concept=first.id, word=first.lemma)
        speech = self.words[min(self.at, len(self.words)) - 1].speech
        self.phrase = Phrase()
        self.chunks.append(Chunk("noun", head.lemma, speech, noun=noun))

    def _title(self) -> Sense | None:
        """The animal of "the elephant king", where the last word only says what it is among its kind."""
        heads = self.phrase.heads
        if len(heads) < 2 or heads[0].kind != "character" or not self.grammar.has("titles", heads[-1].lemma):
            return None
        return None if heads[0].id in self.grammar.words["people"] else heads[0]
