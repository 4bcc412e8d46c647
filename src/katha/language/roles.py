"""Noun phrases to their roles in a clause: subject, object, what stands with a preposition, apposition."""

from __future__ import annotations

from dataclasses import replace

from katha.language.chunks import Chunk, Noun
from katha.language.facts import Clauses, Fact

__all__ = ["NounRoles"]

_NOMINATIVE = frozenset({"he", "she", "they", "we", "i"})
"""Never an object: they begin a clause ("as she spoke she tossed her head")."""


class NounRoles(Clauses):
    """Gives each noun phrase its place in a fact, or begins a fact with it."""

    def _noun(self, at: int, chunk: Chunk) -> None:
        noun = chunk.noun
        assert noun is not None
        before = self._type(at - 1)
        fact = self.fact
        if self.antecedent is not None and before != "rel":
            self.antecedent = None
        if before == "rel" and self.antecedent is not None:
            self._relative_object(chunk, noun)
        elif self.prep == "of" and fact is not None and self._is_frame(fact):
            fact.subjects = [noun]
        elif self.prep is not None and fact is not None and before in {"prep", "label"}:
            fact.around.append((self.prep, noun))
        elif before == "prep":
            self._start(chunk, []).around.append((self.prep or "", noun))
        elif fact is None:
            self._start(chunk, [noun])
        elif self.inverted:
            fact.subjects, self.inverted = [noun], False
            self.outer = [noun]
        elif fact.verb is None:
            self._before_verb(at, chunk, noun, fact)
        elif noun.word in _NOMINATIVE and self._verb_follows(at):
            self.unreal = self._believes(fact) and before == "verb" and not fact.connective
            self._start(chunk, [noun])
        elif before in {"and", "comma"} or (before == "mood"):
            self._joined(at, chunk, noun, fact)
        elif before == "noun" and self._verb_follows(at) and self._is_whole(fact):
            self._start(chunk, [noun])
        else:
            fact.objects.append(noun)
        self.latest = noun
        if before != "prep":
            self.prep = None

    def _is_frame(self, fact: Fact) -> bool:
        """Whether the clause so far is only "an illustration of", "a close-up of" and the like."""
        bare = fact.verb is None and not fact.around and not fact.objects
        return bare and all(self.grammar.has("frames", noun.word) for noun in fact.subjects)

    def _before_verb(self, at: int, chunk: Chunk, noun: Noun, fact: Fact) -> None:
        named = fact.subjects and "name" in {noun.kind, fact.subjects[-1].kind}
        if named and self._type(at - 1) != "and":
            self._appose(fact, noun)
        elif fact.subjects and noun.kind == "pronoun" and self._type(at - 1) in {"and", "comma"}:
            self._start(chunk, [noun])
        elif fact.around and self._type(at - 1) == "comma" and not fact.subjects:
            fact.subjects.append(noun)
            self._take_feeling(fact)
        elif self._type(at - 1) in {"comma", "and"} and fact.around and not self._verb_follows(at):
            self._start(chunk, [noun])
        else:
            fact.subjects.append(noun)
            self._take_feeling(fact)

    def _is_whole(self, fact: Fact) -> bool:
        """Whether a clause has what it needs: the next noun begins another ("while he slept by a fire a cat came")."""
        if fact.objects and fact.verb is not None and fact.verb.action is not None:
            return True
        return bool(fact.objects or fact.around) and (bool(fact.connective) or not fact.subjects)

    def _take_feeling(self, fact: Fact) -> None:
        if self.feeling is not None:
            fact.emotion, self.feeling = fact.emotion or self.feeling, None

    @staticmethod
    def _appose(fact: Fact, noun: Noun) -> None:
        """ "Meera, a girl" and "the donkey Moti": one noun phrase with a name."""
        last = fact.subjects[-1]
        named, plain = (noun, last) if noun.kind == "name" else (last, noun)
        if plain.kind == "character" and plain.name is None:
            fact.subjects[-1] = replace(plain, name=named.name, definite=True)
        else:
            fact.subjects.append(noun)

    def _joined(self, at: int, chunk: Chunk, noun: Noun, fact: Fact) -> None:
        if self._verb_follows(at):
            self._start(chunk, [noun])
        elif fact.around and not fact.objects:
            fact.around.append((fact.around[-1][0], noun))
        elif noun.kind == "setting" or not fact.objects:
            self._start(chunk, [noun])
        else:
            fact.objects.append(noun)

    def _relative_object(self, chunk: Chunk, noun: Noun) -> None:
        antecedent, self.antecedent = self.antecedent, None
        self.main = self.main or self.fact
        fact = self._start(chunk, [noun])
        fact.relative = True
        if antecedent is not None:
            fact.objects.append(antecedent)
