"""Facts, and the state of the walk over a sentence's chunks that the readers of roles and verbs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from katha.language.chunks import Chunk, Noun, Verb
from katha.language.lexicon import Grammar

__all__ = ["Clauses", "Fact"]


@dataclass
class Fact:
    """One clause. `subjects` may be props; `around` holds the noun phrases with their prepositions.

    `wished` marks what is only wanted, asked, planned or said in an infinitive; `speech` what stands in quotes,
    `quoting` the verb that stands next to a quotation ("..." cried the dove).
    """

    subjects: list[Noun] = field(default_factory=list)
    verb: Verb | None = None
    objects: list[Noun] = field(default_factory=list)
    around: list[tuple[str, Noun]] = field(default_factory=list)
    emotion: str | None = None
    looks: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    connective: str = ""
    speech: bool = False
    wished: bool = False
    relative: bool = False
    quoting: bool = False

    def nouns(self) -> list[Noun]:
        """Every noun phrase of the clause, in order of role."""
        return [*self.subjects, *self.objects, *(noun for _, noun in self.around)]


class Clauses:
    """The chunks of one sentence, the facts so far, and the fact under construction."""

    def __init__(self, chunks: Sequence[Chunk], grammar: Grammar) -> None:
        self.chunks = chunks
        self.grammar = grammar
        self.facts: list[Fact] = []
        self.fact: Fact | None = None
        self.main: Fact | None = None
        self.outer: list[Noun] = []
        self.prep: str | None = None
        self.antecedent: Noun | None = None
        self.inverted = False
        self.connective = ""
        self.feeling: str | None = None
        self.in_quote = False
        self.unreal = False
        self.latest: Noun | None = None

    def _finish(self) -> None:
        self.fact = self.main = None
        self.prep = self.antecedent = None
        self.inverted = False

    def _start(self, chunk: Chunk, subjects: Sequence[Noun]) -> Fact:
        fact = Fact(subjects=list(subjects), speech=chunk.speech, connective=self.connective)
        self.connective = ""
        fact.wished, self.unreal = self.unreal, False
        if self.feeling is not None and subjects:
            fact.emotion, self.feeling = self.feeling, None
        self.facts.append(fact)
        self.fact = fact
        self.inverted = False
        return fact

    def _type(self, at: int) -> str:
        return self.chunks[at].type if 0 <= at < len(self.chunks) else ""

    def _verb_follows(self, at: int) -> bool:
        """Whether the noun at `at` is the subject of a finite verb further on in its clause."""
        position = at + 1
        while position < len(self.chunks):
            kind = self.chunks[position].type
            if kind == "verb":
                verb = self.chunks[position].verb
                return verb is not None and (verb.form != "ing" or verb.copula)
            if kind == "rel":
                return True
            if kind in {"end", "sub", "mood", "to"} or (kind == "comma" and self._type(position + 1) != "noun"):
                return False
            position += 1
        return False

    def _last_noun(self, fact: Fact) -> Noun | None:
        if any(self.latest is noun for noun in [*fact.objects, *(noun for _, noun in fact.around)]):
            return self.latest
        nouns = [*fact.objects, *(noun for _, noun in fact.around)] or fact.subjects
        if fact.around and fact.objects:
            return fact.around[-1][1]
        return nouns[-1] if nouns else None

    def _believes(self, fact: Fact | None) -> bool:
        """Whether what follows is only thought or told."""
        verb = fact.verb if fact is not None else None
        if verb is None:
            return False
        return verb.action in {"talk", "shout"} or self.grammar.has("belief_verbs", verb.lemma)
