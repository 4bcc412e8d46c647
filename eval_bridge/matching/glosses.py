"""Words told by their descriptions: "the building full of old exhibits" for a museum, by WordNet's glosses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache

from katha.eval_bridge.matching.wordnet import Lemma, ancestors, apart, is_somebody, opposed, same, usage, wordnet

ENOUGH = 8.0
"""How telling the words of a gloss have to be together: those of many glosses tell little."""


@cache
def _weights() -> dict[str, float]:
    """How much a word tells: the logarithm of how seldom it is in a gloss."""
    glosses = wordnet().gloss
    counts = Counter(word for gloss in glosses.values() for word in gloss)
    return {word: math.log(len(glosses) / count) for word, count in counts.items()}


@lru_cache(maxsize=65536)
def _tells(word: Lemma, of: Lemma) -> float:
    """How much a word tells of another: its weight if it, or a synonym, is in the other's gloss."""
    net = wordnet()
    if any(word[1] in usage().sets[name] for name in ("vague", "wide", "light")):
        return 0.0
    found = (
        _weights()[each]
        for each in net.gloss.get(of, ())
        if each == word[1] or ((word[0], each) in net.senses and same(word, (word[0], each)))
    )
    return max(found, default=0.0)


def explains(said: Lemma, wanted: Lemma, beside: Sequence[Lemma], others: Sequence[Lemma]) -> bool:
    """Whether `said` is part of a description of the word wanted, or means it together with other words wanted.

    beside: what else is said. others: what else is wanted.
    """
    net, above = wordnet(), ancestors(wanted) | usage().sets["vague"] if wanted[0] == "n" else frozenset()
    if said[1] in above and any(each[1] not in above and _tells(each, wanted) for each in beside):
        return True
    if said not in net.gloss or is_somebody(wanted[1]) or apart(said, wanted) or opposed(said, wanted):
        return False
    return bool(_tells(wanted, said)) and sum(_tells(each, said) for each in dict.fromkeys(others)) >= ENOUGH
