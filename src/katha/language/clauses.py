"""Chunks to facts: who does what to whom with what where, before anybody knows who "he" is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from katha.language.chunks import Chunk, Noun, Verb
from katha.language.facts import Fact
from katha.language.lexicon import Grammar
from katha.language.roles import NounRoles

__all__ = ["Fact", "read_facts"]

_HEARERS = frozenset({"pronoun", "character", "referring", "name"})
_SAYING = frozenset({"talk", "shout", "beg", "laugh", "think", "cry"})


class _Builder(NounRoles):
    """Walks the chunks of one sentence and fills one fact after another."""

    def run(self) -> list[Fact]:
        for at, chunk in enumerate(self.chunks):
            getattr(self, f"_{chunk.type}")(at, chunk)
        self._finish()
        return self.facts

    def _verb(self, at: int, chunk: Chunk) -> None:
        verb = chunk.verb
        assert verb is not None
        before = self._type(at - 1)
        self.prep = None
        if self._resulting(verb):
            return
        if before == "rel" and self.antecedent is not None:
            self.main = self.main or self.fact
            fact = self._start(chunk, [self.antecedent])
            fact.relative, self.antecedent = True, None
        elif self.main is not None and self.main.verb is None and self.fact is not self.main and before != "and":
            fact = self.fact = self.main
            self.main = None
        elif self.fact is None:
            fact = self._start(chunk, self.outer)
            self.inverted = self._is_inverted(at, verb)
        elif self.fact.verb is None and before == "noun" and verb.form == "ing" and self.fact.around:
            fact = self._further(at, chunk, verb, self.fact)
        elif self.fact.verb is None and (self.fact.subjects or not self.outer):
            fact = self.fact
        else:
            believed = self._believes(self.fact) and before not in {"and", "comma"}
            fact = self._further(at, chunk, verb, self.fact)
            fact.wished = fact.wished or believed
        fact.verb = verb
        fact.quoting = not chunk.speech and self._beside_quote(at)
        reduced = before == "noun" and verb.form == "ing" and not verb.copula  # "the birds flying"
        if not chunk.speech and fact.subjects and not (fact.relative or reduced):
            self.outer = list(fact.subjects)

    def _resulting(self, verb: Verb) -> bool:
        """Whether `verb` only completes "set the mouse free": the doer of that is the one who sets."""
        fact = self.fact
        if fact is None or fact.verb is None or verb.action != "free" or verb.form != "base" or not fact.objects:
            return False
        if fact.verb.lemma not in {"set", "let"}:
            return False
        fact.verb = replace(fact.verb, lemma="set free", action=verb.action)
        return True

    def _beside_quote(self, at: int) -> bool:
        near = [self._type(at + step) for step in (-1, 1)]
        beyond = [self._type(at + 2 * step) for step, kind in zip((-1, 1), near, strict=True) if kind == "comma"]
        return "mood" in [*near, *beyond]

    def _is_inverted(self, at: int, verb: Verb) -> bool:
        """ "..." begged the mouse: the subject follows a verb of saying."""
        if self._type(at + 1) != "noun":
            return False
        after_quote = self._type(at - 1) == "mood" or (self._type(at - 1) == "comma" and self._type(at - 2) == "mood")
        saying = verb.action in _SAYING or verb.lemma in {"reply", "answer"}
        return after_quote and saying and self._type(at + 2) != "verb"

    def _further(self, at: int, chunk: Chunk, verb: Verb, fact: Fact) -> Fact:
        """A further verb: infinitive, participle, or coordinated with the one before."""
        before = self._type(at - 1)
        subjects = list(fact.subjects)
        last = self._last_noun(fact)
        old = fact.verb
        controlled = [noun for noun in fact.objects if noun.kind in {"character", "pronoun", "referring", "name"}]
        if before == "to":
            follower = self._start(chunk, controlled[-1:] if controlled and self._controls(old) else subjects)
            real = old is not None and self.grammar.has("phase_verbs", old.lemma)
            real = real and all(noun.word != "nothing" for noun in fact.objects)  # "had nothing to eat"
            follower.wished = fact.wished or not real or (old is not None and old.negated)
            return follower
        aside = old is not None and old.form == "ing" and not old.copula and not fact.relative
        if before == "and" and verb.form in {"past", "third"} and aside and self.outer:
            return self._start(chunk, self.outer)  # "saw the birds flying and wanted to fly"
        if before in {"noun", "look"} and last is not None and (verb.form in {"ing", "base"} or verb.passive):
            subjects = [last]
        if verb.form == "ing" and before in {"verb", "and"} and self.grammar.has("hearing_verbs", self._heard(old)):
            return self._start(chunk, [])  # "they heard growling": somebody else's
        if before in {"and", "comma"} and verb.form == "base" and fact.wished:
            follower = self._start(chunk, subjects)
            follower.wished = True
            return follower
        return self._start(chunk, subjects)

    def _heard(self, verb: Verb | None) -> str:
        """The verb of hearing that a further participle belongs to, if any."""
        earlier = self.facts[-2].verb if len(self.facts) > 1 else None
        heard = verb is not None and verb.form == "ing" and not self._has_doer() and earlier is not None
        return earlier.lemma if heard and earlier is not None else verb.lemma if verb is not None else ""

    def _has_doer(self) -> bool:
        """Whether somebody does what the clause under construction tells."""
        return self.fact is not None and bool(self.fact.subjects)

    def _reports(self, at: int) -> bool:
        """Whether "that" begins what is thought or told: it follows the verb, or the hearer ("told the judge that")."""
        noun = self.chunks[at - 1].noun if at else None
        return self._type(at - 1) == "verb" or (
            noun is not None and noun.kind in _HEARERS and self._believes(self.fact)
        )

    def _controls(self, verb: Verb | None) -> bool:
        return verb is not None and self.grammar.has("control_verbs", verb.lemma)

    def _feeling(self, at: int, chunk: Chunk) -> None:
        fact = self.fact
        self.prep = None
        if fact is None or (fact.verb is None and not fact.subjects):
            self.feeling = chunk.concept
        elif fact.verb is not None and self.grammar.has("making_verbs", fact.verb.lemma) and fact.objects:
            made = self._start(chunk, [fact.objects[-1]])
            made.emotion = chunk.concept
        elif fact.verb is not None and fact.verb.negated and fact.verb.copula:
            return
        else:
            fact.emotion = fact.emotion or chunk.concept

    def _look(self, at: int, chunk: Chunk) -> None:
        fact, look = self.fact, chunk.concept
        if fact is None or look is None:
            return
        if self._type(at - 1) in {"noun", "look"}:
            self._mark_last(fact, look)
        elif fact.verb is not None and fact.verb.copula:
            fact.looks.append(look)
        elif fact.subjects and fact.verb is None:
            fact.subjects[0] = replace(fact.subjects[0], attributes=(*fact.subjects[0].attributes, look))

    @staticmethod
    def _mark_last(fact: Fact, look: str) -> None:
        def marked(noun: Noun) -> Noun:
            return replace(noun, attributes=(*noun.attributes, look))

        if fact.around:
            preposition, noun = fact.around[-1]
            fact.around[-1] = (preposition, marked(noun))
        elif fact.objects:
            fact.objects[-1] = marked(fact.objects[-1])
        elif fact.subjects:
            fact.subjects[-1] = marked(fact.subjects[-1])

    def _prep(self, at: int, chunk: Chunk) -> None:
        self.prep = chunk.text.lower()

    def _and(self, at: int, chunk: Chunk) -> None:
        self.prep = None

    _comma = _and
    _to = _and

    def _sub(self, at: int, chunk: Chunk) -> None:
        keep = self.fact.subjects if self.fact is not None else []
        self._finish()
        self.connective = chunk.text.lower()
        if self._type(at + 1) == "verb" and keep:
            self.outer = list(keep)

    def _rel(self, at: int, chunk: Chunk) -> None:
        if chunk.text.lower() == "that" and self._type(at + 1) == "noun" and self._reports(at):
            self.unreal = self._believes(self.fact)  # "thought that he had eaten": a clause of its own
            self.fact = self.antecedent = None
            return
        if self.fact is not None:
            self.antecedent = self._last_noun(self.fact)
        if self._type(at + 1) not in {"verb", "noun"}:
            self.antecedent = None

    def _end(self, at: int, chunk: Chunk) -> None:
        self._finish()

    def _mood(self, at: int, chunk: Chunk) -> None:
        self.in_quote = not self.in_quote
        if self.in_quote or self._type(at + 1) in {"noun", "verb", "end", ""}:
            self._finish()

    def _label(self, at: int, chunk: Chunk) -> None:
        if chunk.concept is not None:
            fact = self.fact or self._start(chunk, [])
            fact.labels.append(chunk.concept)


def read_facts(chunks: Sequence[Chunk], grammar: Grammar) -> list[Fact]:
    """The facts of one sentence, in the order in which they are told."""
    return _Builder(chunks, grammar).run()
