"""Verb groups: auxiliaries, negation and passives, and whether a form is a verb at all here."""

from __future__ import annotations

from collections.abc import Sequence

from katha.language.lexicon import Sense
from katha.language.scanner import Scanner, Verb

__all__ = ["VerbReader"]

_SUFFERED = frozenset(
    {"carry", "take", "chase", "eat", "free", "bite", "fight", "hug", "give", "throw", "pull", "push"}
)


class VerbReader(Scanner):
    """Reads the verb group at the position, if there is one."""

    def _verb_group(self) -> bool:
        at, negated, modal, has_be, has_have, helper = self.at, False, False, False, False, False
        while at < len(self.words):
            word = self._span(1, at)
            if self.grammar.has("be", word) and not (word == "'s" and at == self.at and not self._after_noun()):
                has_be = helper = True
            elif self.grammar.has("modals", word):
                modal = helper = True
            elif self.grammar.has("auxiliaries", word) and (helper or self._helps(at)):
                has_have, helper = has_have or word.startswith("ha"), True
            elif (length := self._match(lambda text: self.grammar.has("negations", text), at)) and word != "without":
                if not helper and word in {"nor", "neither"}:
                    return False
                negated, at = True, at + length
                continue
            elif helper and self._is_adverb(at):
                at += max(self._senses(at)[0], 1)
                continue
            else:
                break
            at += 1
        return self._main_verb(at, negated, modal, has_be, has_have, helper)

    def _helps(self, at: int) -> bool:
        """Whether the auxiliary at `at` is followed by a verb, so that it is not the main verb itself."""
        following = at + 1
        while following < len(self.words) and (
            self._is_adverb(following) or self.grammar.has("negations", self._span(1, following))
        ):
            following += 1
        if following >= len(self.words):
            return False
        if self.grammar.has("be", self._span(1, following)):
            return True
        forms = {sense.form for sense in self._senses(following)[1] if sense.part in {"verb", "passive"}}
        word = self._span(1, at)
        if word in {"do", "does", "did"}:
            return "base" in forms
        return bool(forms & {"participle", "ing"})

    def _main_verb(self, at: int, negated: bool, modal: bool, be: bool, have: bool, helper: bool) -> bool:
        length, senses = self._senses(at) if at < len(self.words) else (0, ())
        if not helper and self._span(length, at) in {"till", "like"} and not self._after("to"):
            return False  # "till at last", "like a brother": not what a farmer does, nor what he is fond of
        verbs = [sense for sense in senses if sense.part == "verb"]
        passives = [sense for sense in senses if sense.part == "passive"]
        participle = [sense for sense in [*passives, *verbs] if sense.form in {"participle"}]
        if be and participle and not any(sense.form == "ing" for sense in verbs):
            self._close()
            self._put_verb(at, length, participle, passive=True, negated=negated, modal=modal)
            return True
        if not helper and not self.phrase.labels and self._reduced(at, length, passives, verbs):
            self._close()
            self._put_verb(at, length, participle or passives, passive=True, negated=negated, modal=modal)
            return True
        wanted = [sense for sense in verbs if self._fits(sense, be, have, modal)] if helper else verbs
        if wanted and (helper or self._verb_here(at, length, senses)):
            self._close()
            self._put_verb(at, length, wanted, passive=False, negated=negated, modal=modal)
            return True
        if not helper and passives and not self.phrase.open:
            self._close()
            self._put_verb(at, length, passives, passive=True, negated=negated, modal=modal)
            return True
        if be or helper or negated:
            return self._copula(at, negated, modal, be or helper)
        return False

    def _reduced(self, at: int, length: int, passives: Sequence[Sense], verbs: Sequence[Sense]) -> bool:
        """Whether a bare participle is passive: "a lion trapped in a net", "a mouse chased by a cat"."""
        if self.phrase.open and not self.phrase.heads:
            return False
        if not (self._after_noun() or self._after("look") or self._after("comma") or self.phrase.heads):
            return False
        following = self._span(1, at + length) if at + length < len(self.words) else ""
        suffers = any(sense.id in _SUFFERED and sense.form == "participle" for sense in verbs)
        return bool(passives and following in {"in", "by", "under", "inside"}) or (suffers and following == "by")

    @staticmethod
    def _fits(sense: Sense, be: bool, have: bool, modal: bool) -> bool:
        if be:
            return sense.form == "ing"
        if have:
            return sense.form == "participle"
        return sense.form == "base"

    def _copula(self, at: int, negated: bool, modal: bool, helper: bool) -> bool:
        if not helper:
            return False
        self._close()
        verb = Verb("be", None, None, "past", negated=negated, modal=modal, copula=True)
        self._emit("verb", max(at - self.at, 1), verb=verb)
        return True

    def _put_verb(
        self, at: int, length: int, senses: Sequence[Sense], *, passive: bool, negated: bool, modal: bool
    ) -> None:
        action = next((sense for sense in senses if sense.kind == "action"), None)
        emotion = next((sense.id for sense in senses if sense.kind == "emotion"), None)
        best = action or senses[0]
        forms = {sense.form for sense in senses if sense.kind == best.kind}
        form = best.form if not (best.form == "participle" and "past" in forms) else "past"
        drawn = action.id if action is not None else None
        if self._span(2, at + length) == "no more":  # "quarrelled no more"
            length, negated = length + 2, True
        stirs = next((sense.id for sense in senses if sense.kind == "stirs"), None)
        verb = Verb(best.lemma, drawn, emotion, form, stirs, passive=passive, negated=negated, modal=modal)
        self._emit("verb", at + length - self.at, verb=verb)

    def _verb_here(self, at: int, length: int, senses: Sequence[Sense]) -> bool:
        """Choose between a verb and a noun or adjective reading of the same form, from what stands before it."""
        others = [sense for sense in senses if sense.part in {"noun", "adjective", "feeling"}]
        verbs = [sense for sense in senses if sense.part == "verb"]
        forms = {sense.form for sense in verbs}
        after_to = bool(self.chunks) and self.chunks[-1].type == "to" and not self.phrase.open
        if after_to:
            return "base" in forms
        if self.phrase.open:
            if self.phrase.heads and not others:
                return True
            if self.phrase.heads:
                return bool(forms & {"third", "past"}) and not self._noun_ahead(at + length)
            return False
        if not others:
            return not (forms <= {"base"} and self._after("prep"))
        if self._after("prep"):
            return False
        return (
            self._after_noun()
            or self._after("look")
            or self._after("rel")
            or (self._after("comma") and "past" in forms and self._span(1, at + length) in {"a", "an", "the"})
            or (self._after("and") and not self._noun_before_and())
        )
