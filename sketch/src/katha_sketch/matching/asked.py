"""What a question asks for, and about whom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from katha_sketch.english.clauses import conjuncts
from katha_sketch.english.parsing import load_parser
from katha_sketch.english.words import load_words
from katha_sketch.matching.wordnet import PARTS, Lemma, lemma_of, names_somebody, same, unlike

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Asking = Literal["agent", "other", "deed", "event", "state", "why", "how", "number", "order", "what"]
"""agent: who does it. other: whom or what. deed: what somebody does. event: what happens. state: how somebody feels."""
_ORDERING = frozenset(("first", "before", "after", "order", "change", "changes"))


@dataclass(frozen=True)
class Asked:
    """What a question asks for, and about whom.

    topic: whom or what it is about. others: every other noun. verb: its own, None for "do", "feel" and "happen".
    people: those of topic and others who are somebody. names: those that are names. ordered: it asks what comes first,
    before or after. acted: the pronoun that its verb acts on ("ask them"). received: it asks for whom something is.
    """

    asks: Asking
    topic: tuple[Lemma, ...]
    others: tuple[Lemma, ...]
    verb: Lemma | None
    words: tuple[Lemma, ...]
    people: tuple[Lemma, ...]
    names: tuple[Lemma, ...]
    ordered: bool
    acted: str = ""
    received: bool = False

    def has(self, lemma: Lemma) -> bool:
        """Whether the question says this word or one that means the same."""
        alike = lemma[0] != "v"  # "learn" asks for no "find"
        return any(
            lemma[1] == word[1] or (alike and lemma[0] == word[0] and same(lemma, word) and not unlike(lemma, word))
            for word in self.words
        )


@lru_cache(maxsize=2048)
def read_question(question: str) -> Asked:
    """Return what a question asks, and about whom."""
    text = " ".join(question.replace("\u2019", "'").split())
    (doc,) = load_parser().parse([text])
    low = re.findall(r"[a-z']+", text.lower())
    root = next((token for token in doc if token.dep_ == "ROOT"), doc[0])
    content = [
        token for token in doc if token.pos_ in PARTS and token.pos_ != "AUX" and token.tag_ not in ("WRB", "WP", "WDT")
    ]
    happens = any(token.lemma_ in ("happen", "become") for token in doc)
    topic = _topic(doc, root, low, happens=happens)
    nouns = [token for token in content if token.pos_ in ("NOUN", "PROPN")]
    misread = root in nouns and any(child.lemma_ == "do" and child.dep_ == "aux" for child in root.children)
    if misread:  # "Why did the owl scold him?" read as an owl scold
        nouns.remove(root)
        topic = [child for child in root.lefts if child.dep_ == "compound"]
    others = [token for token in nouns if token not in topic]
    verb = lemma_of(root) if root.pos_ == "VERB" and not happens and root.lemma_ not in ("do", "feel") else None
    verb = ("v", root.lower_) if misread else verb
    return Asked(
        _asks(low, doc, happens),
        tuple(map(lemma_of, topic)),
        tuple(map(lemma_of, others)),
        verb,
        tuple(lemma_of(token) for token in content if token.lemma_ not in ("do", "feel", "happen")),
        tuple(lemma_of(token) for token in nouns if names_somebody(token)),
        tuple(lemma_of(token) for token in nouns if token.pos_ == "PROPN"),
        bool(_ORDERING.intersection(low)),
        next((each.lower_ for each in root.children if each.dep_ in ("dobj", "dative") and each.pos_ == "PRON"), ""),
        _received(low),
    )


def _topic(doc: Doc, root: Token, low: Sequence[str], *, happens: bool) -> list[Token]:
    """Whom or what a question is about: its subject, or to whom it happens."""
    subjects = [token for token in root.children if token.dep_ in ("nsubj", "nsubjpass")]
    topic = [noun for token in subjects for noun in conjuncts(token) if noun.tag_ not in ("WP", "WDT")]
    if happens:
        after = [
            token for token in doc if token.dep_ == "pobj" and token.head.lower_ in ("to", "between", "with", "of")
        ]
        topic = conjuncts(after[0]) if after else topic
    if not topic and (happens or not subjects):
        topic = [
            token for token in doc if token.dep_ in ("nsubj", "nsubjpass", "attr") and token.pos_ in ("NOUN", "PROPN")
        ][:1]
    if not topic and low[1:2] and low[1] in ("do", "does", "did"):
        topic = [token for token in doc if token.pos_ in ("NOUN", "PROPN")][:1]
    topic = list(dict.fromkeys(topic))
    vague = ("", "abstract", "time", "feeling")
    if topic and not any(
        token.pos_ == "PROPN" or load_words().sort(lemma_of(token)[1]) not in vague for token in topic
    ):
        # "How does the visit end for the cat?" is about the cat.
        people = [token for token in doc if token.pos_ in ("NOUN", "PROPN") and names_somebody(token)]
        topic += people if happens or low[0] == "how" else []
    return topic


def _received(low: Sequence[str]) -> bool:
    """Whether a question asks for whom or to whom something is ("Who are the apples for?")."""
    return bool(low) and low[0] in ("who", "whom") and low[-1] in ("for", "to", "from")


def _asks(low: Sequence[str], doc: Doc, happens: bool) -> Asking:
    first = low[0] if low else ""
    if "first" in low and "or" in low:
        return "order"
    if "feel" in low or "feels" in low or "feeling" in low:
        return "state"
    if "many" in low[:2] or "much" in low[:2]:
        return "number"
    if first == "why":
        return "why"
    if happens:
        return "event"
    if "do" in low[1:] or "does" in low[2:]:
        return "deed" if first in ("what", "how") and _does(doc) else "other"
    if first == "who":
        acted = low[1:2] in (["does"], ["did"]) or _received(low)
        acted = acted or any(token.dep_ == "nsubjpass" and not token.i for token in doc)
        return "other" if acted else "agent"
    return "how" if first == "how" else "other" if first in ("what", "whom", "which", "where") else "what"


def _does(doc: Doc) -> bool:
    """Whether "do" is the question's own verb: "What does she do with it?" """
    return any(token.lemma_ == "do" and (token.pos_ == "VERB" or token.dep_ == "ROOT") for token in doc)
