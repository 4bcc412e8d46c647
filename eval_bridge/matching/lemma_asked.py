"""What an answer is held against: the accepted answers as read, and what the question allows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from katha.eval_bridge.matching.lemma_clauses import AUXILIARY, DETERMINERS, PLACES, Clause, read_clause
from katha.eval_bridge.matching.lemma_order import Order, moment_of, order_of
from katha.eval_bridge.matching.lemmas import lexicon, read_words

_POSSESSOR = re.compile(r"\w+['\u2019]s?\s")
_ASKING = frozenset(("what", "why", "how", "which", "who", "where", "whom", "whose"))


@lru_cache(maxsize=4096)
def _topic(question: str) -> frozenset[str]:
    """The stems of what the question asks about: its first noun phrase (both, in "between the king and the maid")."""
    words = [word for word in read_words(_POSSESSOR.sub(" ", question)) if not word.mark]
    start = next((at for at, word in enumerate(words) if word.surface in AUXILIARY), None)
    happens = next((at for at, word in enumerate(words) if word.surface.startswith("happen")), None)
    if happens is not None and happens + 1 < len(words) and words[happens + 1].surface in ("to", "between", "with"):
        start = happens + 1
    if start is None:
        start = 0
    found: list[str] = []
    for before, word in pairwise(words[start:]):
        if word.surface in _ASKING:
            continue
        another = word.surface in DETERMINERS and before.surface != "and"
        if found and (another or word.surface in PLACES | AUXILIARY):
            break
        if word.content:
            found.append(word.stem)
    return frozenset(found)


@dataclass(frozen=True)
class Accepted:
    """One accepted answer: its content, what it denies, its clause, and the order that it states."""

    content: frozenset[str]
    negators: frozenset[str]
    clause: Clause
    order: Order | None

    @property
    def text(self) -> str:
        """Its words without marks."""
        return " ".join(word.surface for word in self.clause.words)


@lru_cache(maxsize=2048)
def read_accepted(texts: tuple[str, ...]) -> tuple[Accepted, ...]:
    """The accepted answers as read; those without a content word are left out."""
    made = []
    for text in texts:
        words = tuple(word for word in read_words(text) if not word.mark)
        negative = frozenset(word.stem for word in words if word.negator)
        content = frozenset(word.stem for word in words if word.content and not word.negator) or negative
        if content:
            made.append(Accepted(content, negative, read_clause(words), order_of(text)))
    return tuple(made)


@dataclass(frozen=True)
class Asked:
    """What the question allows: who may act, subject pronouns, and every content word in it.

    same: doers of accepted answers whom neither the question nor an accepted answer knows in another part, so that
    they are one and the same person by several names. unfit: who cannot be the one that acts: a woman where the
    accepted answers say "he" alone, and the one asked about where they say that another of the question does what "he"
    does. moment: before or after what the question asks.
    """

    topic: frozenset[str]
    allowed: frozenset[str]
    pronouns: frozenset[str]
    words: frozenset[str]
    same: frozenset[str]
    unfit: frozenset[str]
    moment: tuple[str, frozenset[str]] | None


def read_asked(items: Sequence[Accepted], question: str) -> Asked:
    """What `question` and its accepted answers allow."""
    none: frozenset[str] = frozenset()
    agents = none.union(*(item.clause.subject for item in items))
    patients = none.union(*(item.clause.patient for item in items))
    doers = none.union(*(item.clause.subject for item in items if _names_doer(item.clause)))
    pronouns = frozenset(item.clause.pronoun for item in items if item.clause.pronoun)
    words = frozenset(word.stem for word in read_words(question) if word.content)
    topic = _topic(question)
    others = {"he": "she", "she": "he"}
    strange = [lexicon().genders[others[word]] for word in pronouns & others.keys() if others[word] not in pronouns]
    spoken = {_verb(item.clause) for item in items if item.clause.pronoun} - {""}
    named = words & none.union(*(item.clause.subject for item in items if _verb(item.clause) in spoken))
    moment = moment_of(read_words(question))
    unfit = none.union(*strange, topic if named and not named & topic else none) - agents
    anyone = lexicon().anyone - words - none.union(*(item.content for item in items))
    return Asked(topic, topic | agents | anyone, pronouns, words, doers - words - patients, unfit, moment)


def _verb(clause: Clause) -> str:
    return clause.words[clause.verb_at].stem if 0 <= clause.verb_at < len(clause.words) else ""


def _names_doer(clause: Clause) -> bool:
    """Whether the subject is one noun before a verb that more follows ("the man cuts it", not "its dull feathers")."""
    return len(clause.subject) == 1 and 0 <= clause.verb_at < len(clause.words) - 1
