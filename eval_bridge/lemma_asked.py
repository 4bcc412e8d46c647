"""What an answer is held against: the accepted answers as read, and what the question allows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from katha.eval_bridge.lemma_clauses import AUXILIARY, PLACES, Clause, Order, order_of, read_clause
from katha.eval_bridge.lemmas import read_words

__all__ = ["Accepted", "Asked", "read_accepted", "read_asked"]

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
    for word in words[start + 1 :]:
        if word.surface in _ASKING:
            continue
        if found and word.surface in PLACES | AUXILIARY:
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
    they are one and the same person by several names.
    """

    topic: frozenset[str]
    allowed: frozenset[str]
    pronouns: frozenset[str]
    words: frozenset[str]
    same: frozenset[str]


def read_asked(items: Sequence[Accepted], question: str) -> Asked:
    """What `question` and its accepted answers allow."""
    none: frozenset[str] = frozenset()
    agents = none.union(*(item.clause.subject for item in items))
    patients = none.union(*(item.clause.patient for item in items))
    doers = none.union(*(item.clause.subject for item in items if _names_doer(item.clause)))
    pronouns = frozenset(item.clause.pronoun for item in items if item.clause.pronoun)
    words = frozenset(word.stem for word in read_words(question) if word.content)
    topic = _topic(question)
    return Asked(topic, topic | agents, pronouns, words, doers - words - patients)


def _names_doer(clause: Clause) -> bool:
    """Whether the subject is one noun before a verb that more follows ("the man cuts it", not "its dull feathers")."""
    return len(clause.subject) == 1 and 0 <= clause.verb_at < len(clause.words) - 1
