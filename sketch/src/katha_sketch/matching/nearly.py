"""Answers in words that are only near those of the accepted ones ("lifts him back onto his legs" for "turns him over").

Nearness (`english.nearness`) proves nothing alone: "finds" is near "loses". So it decides only where no more is
amiss than that words are missing, after the parse has been asked the same questions as ever, with near words for the
missing ones: who acts, what is denied, how many. What says that all stays as it was, or does not happen, is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product

from katha_sketch.english.nearness import rarity, similarity
from katha_sketch.matching.statements import Statement, Word
from katha_sketch.matching.trial import EXCHANGED, NAMED, NOT_SAID, SUBJECTS, Accepted, Trial
from katha_sketch.matching.wordnet import Lemma, apart, entails, opposed, sisters, usage, verb_form

_WORD = re.compile(r"[a-z]+")
_KINDS = ("negators", "staying")
BEST = 3
"""How many accepted answers are asked; the best of them counts as much as their mean."""

FEW = 2
"""How many words of their own short accepted answers have."""


@lru_cache(maxsize=65536)
def near(said: Lemma, wanted: Lemma) -> float:
    """Return how well a word stands for another, from 0 to 1; words that exclude one another do not."""
    if said[1] == wanted[1]:
        return 1.0
    if said[1] not in usage().sets["hollow"] and entails(said, wanted):
        return 1.0
    idle = any(said[1] in usage().sets[name] for name in ("vague", "wide", "anyone", "light", "hollow"))
    if idle or apart(said, wanted) or opposed(said, wanted):
        return 0.0
    found = max(similarity(said[1], wanted[1]) or 0.0, 0.0)
    return min(found, usage().nearness["sisters"]) if sisters(said, wanted) else found


def _nearest(word: Word, words: Iterable[Word]) -> float:
    """How well one of the words stands for an accepted one."""
    return max((near(other.lemma, word.lemma) for other in words), default=0.0)


class _NearTrial(Trial):
    """A trial in which a word may also be said by one that is near it."""

    def pair(self, needed: Sequence[Word]) -> list[tuple[Word, Word]]:
        pairs, enough = super().pair(needed), usage().nearness["named" if self.asked.asks in NAMED else "pair"]
        met, used = ({word.at for word in words} for words in zip(*pairs, strict=True)) if pairs else (set(), set())
        ranked = sorted(
            (-value, word.at, other.at)
            for word in needed
            for other in self.said.words
            if word.at not in met and other.at not in used and not self._hedged(other, word)
            and (value := near(other.lemma, word.lemma)) > enough
        )  # fmt: skip
        for _, at, there in ranked:
            word, other = self.wanted.word(at), self.said.word(there)
            if word is not None and other is not None and at not in met and there not in used:
                pairs.append((word, other))
                met.add(at)
                used.add(there)
        return pairs

    def share(self) -> tuple[float, str | None]:
        """Return how much of the accepted answer is said, by rarity, and what speaks against it."""
        needed = self.needed()
        pairs = self.pair(needed)
        told = [word for word, _ in pairs]
        fresh = [word for word in needed if not self.asked.has(word.lemma)] or needed
        weights = [rarity(word.lemma[1]) for word in fresh]
        values = [self._value(word, told, pairs) for word in fresh]
        whole = sum(weights)
        share = sum(value * weight for value, weight in zip(values, weights, strict=True)) / whole if whole else 0.0
        if any(
            self.crossed(SUBJECTS.get(one.other_pronoun, ""), two)
            for one, two in product(self.wanted.frames, self.said.frames)
        ):
            return share, EXCHANGED
        amiss = self._names_another(fresh, pairs) or self._unnamed(fresh, pairs) or self._misses_all(fresh)
        return share, self.problem(pairs) or (NOT_SAID if amiss else None)

    def by_chance(self, share: float) -> bool:
        """Return whether the words of a short accepted answer may only be met by chance.

        Most of them have to be said, or something near a word that tells what is the case ("he is beside the drum").
        """
        fresh, least = [word for word in self.needed() if not self.asked.has(word.lemma)], usage().nearness
        if len(fresh) > FEW or share >= least["sure"]:
            return False
        if share < least["few"]:
            return True
        telling = [word for word in fresh if word.part in ("verb", "state", "head")]
        return bool(telling) and all(self._said_for(word) < least["telling"] for word in telling)

    def _unnamed(self, fresh: Sequence[Word], pairs: Sequence[tuple[Word, Word]]) -> bool:
        """Whether "something" is said where the accepted answer names what it is."""
        met = {word.at for word, _ in pairs}
        missing = any(
            word.lemma[0] == "n" and word.part in ("head", "other", "adjunct") and word.at not in met for word in fresh
        )
        own = usage().sets["unnamed"] - set(_WORD.findall(self.wanted.given.lower()))
        return missing and not own.isdisjoint(_WORD.findall(self.said.given.lower()))

    def _misses_all(self, fresh: Sequence[Word]) -> bool:
        """Whether nothing near is said for what every accepted answer has."""
        return any(
            _nearest(word, self.said.words) < usage().nearness["all"]
            for word in fresh
            if word.lemma[0] == "n" and self.known.shares(word.lemma)
        )

    def _names_another(self, fresh: Sequence[Word], pairs: Sequence[tuple[Word, Word]]) -> bool:
        """Whether something else is named than what is asked for ("who", "what")."""
        if self.asked.asks not in NAMED:
            return False
        heads = [word for word in self.said.words if word.part == "head"]
        met = {found.at for _, found in pairs}
        if heads and met.isdisjoint(word.at for word in heads):
            return True
        named = [(word, heads or self.said.words, "named") for word in fresh if word.part == "head"]
        beside = [word for word in fresh if word.part == "modifier" and word.lemma[0] == "n"]
        named += [(word, self.said.words, "beside") for word in beside]
        return any(_nearest(word, words) < usage().nearness[name] for word, words, name in named)

    def _value(self, word: Word, told: Sequence[Word], pairs: Sequence[tuple[Word, Word]]) -> float:
        if word.part in ("agent", "other") and self.spared(word, told, pairs):
            return 1.0
        return self._said_for(word)

    def _said_for(self, word: Word) -> float:
        """How well an accepted word is said by a word that may stand for it."""
        return _nearest(word, (other for other in self.said.words if not self._hedged(other, word)))


def _kinds(text: str) -> set[str]:
    """Which kinds of words that keep something from happening a text has."""
    found = set(_WORD.findall(text.lower().replace("n't", " not")))
    found |= {base for word in found if (base := verb_form(word))}
    return {kind for kind in _KINDS if not found.isdisjoint(usage().sets[kind])}


@lru_cache(maxsize=16384)
def _denies(one: str, two: str) -> bool:
    """Whether words of the families of two words are opposites: "wreck" is a breaking, "repair" a mending."""
    names = [[word, *(name.removesuffix("*") for name in usage().group.get(word, ()))] for word in (one, two)]
    return any(pair in usage().opposites for pair in product(*names))


def _reversed(said: Statement, known: Accepted) -> bool:
    """Whether an answer has what excludes a word of an accepted one ("blue" for "pink"), and not that word as well."""
    own = {word.lemma[1] for word in said.words}
    return any(
        opposed(word.lemma, other) or apart(word.lemma, other) or _denies(word.lemma[1], other[1])
        for word in said.words
        for other in known.words
        if word.part != "modifier" and other[1] not in own
    )


def share_said(said: Statement, known: Accepted) -> tuple[float, Statement | None]:
    """Return how much of the accepted answers is said in near words, and the one of which most is."""
    kinds = set().union(*(_kinds(item.given) for item in known.items))
    if not _kinds(said.given) <= kinds or _reversed(said, known):
        return 0.0, None
    shares = [(*_NearTrial(item, said, known).share(), item) for item in known.items]
    best = sorted([(share, item) for share, problem, item in shares if problem is None], key=lambda each: -each[0])
    exchanged = max((share for share, problem, _ in shares if problem == EXCHANGED), default=0.0)
    if not best or exchanged > best[0][0]:
        return 0.0, None
    mean = sum(share for share, _ in best[:BEST]) / len(best[:BEST])
    return (best[0][0] + mean) / 2, best[0][1]


def nearly_says(said: Statement, known: Accepted) -> Statement | None:
    """Return the accepted answer that an answer says in near words, None if it says none."""
    share, item = share_said(said, known)
    if item is None or share <= usage().nearness["enough"]:
        return None
    return None if _NearTrial(item, said, known).by_chance(share) else item
