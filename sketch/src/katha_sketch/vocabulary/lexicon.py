"""Concepts from the YAML files, and every surface form that names one.

Every form is made once at load by inflecting forward, so looking a word up never guesses a stem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from katha.jsonio import shipped_table
from katha_sketch.vocabulary.inflect import Inflector, plural

__all__ = ["Concept", "ConceptKind", "Say", "Sense", "Vocabulary", "load_vocabulary"]

ConceptKind = Literal["character", "prop", "emotion", "action", "attribute", "moral"]

_FILES: tuple[tuple[str, ConceptKind], ...] = (
    ("characters", "character"),
    ("props", "prop"),
    ("emotions", "emotion"),
    ("actions", "action"),
    ("attributes", "attribute"),
    ("morals", "moral"),
)


@dataclass(frozen=True)
class Concept:
    """One entry of the vocabulary: an id unique in its kind, the words for it, and how it is drawn."""

    id: str
    kind: ConceptKind
    words: tuple[str, ...]
    draw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sense:
    """One meaning of a surface form. `part` is noun, verb, adjective, adverb, feeling or passive."""

    kind: ConceptKind
    id: str
    part: str
    plural: bool = False


@dataclass(frozen=True)
class Say:
    """How an action is said in a sentence: a verb phrase in base form and the preposition before its target."""

    verb: str
    preposition: str


@dataclass(frozen=True)
class Vocabulary:
    """Concepts by kind and id, and the senses of every surface form.

    `says` is how an action is said, `cues` the evidence for each moral, `words` the closed classes of grammar.yaml,
    `numbers` the words that count.
    """

    inflector: Inflector
    words: Mapping[str, frozenset[str]]
    numbers: Mapping[str, int]
    senses: Mapping[str, tuple[Sense, ...]]
    says: Mapping[str, Say]
    cues: Mapping[str, Mapping[str, Any]]
    _concepts: Mapping[str, Mapping[str, Concept]]

    def concepts(self, kind: ConceptKind) -> tuple[Concept, ...]:
        """Return every concept of `kind`, in the order of its file."""
        return tuple(self._concepts[kind].values())

    def get(self, kind: ConceptKind, concept: str) -> Concept:
        """Return the concept of that kind and id.

        Raises:
            KeyError: there is none.
        """
        return self._concepts[kind][concept]

    def find(self, text: str, kind: ConceptKind) -> str | None:
        """Return the id of the concept of `kind` that `text` names in any of its forms, or None."""
        wanted = text.lower().strip()
        if wanted in self._concepts[kind]:
            return wanted
        found = (sense.id for sense in self.senses.get(wanted, ()) if sense.kind == kind)
        return next(found, None)

    def has(self, group: str, word: str) -> bool:
        """Return whether `word` belongs to a closed class of grammar.yaml."""
        return word in self.words[group]


class _Senses:
    """Collects senses, each once, in order of importance."""

    def __init__(self, inflector: Inflector) -> None:
        self._inflector = inflector
        self.table: dict[str, list[Sense]] = {}

    def add(self, surface: str, sense: Sense) -> None:
        entries = self.table.setdefault(surface, [])
        if sense not in entries:
            entries.append(sense)

    def entry(self, kind: ConceptKind, concept: str, row: Mapping[str, Any]) -> None:
        """Add every form of one entry."""
        words: Sequence[str] = row.get("words", ())
        if kind in ("character", "prop"):
            for word in words:
                self.add(word, Sense(kind, concept, "noun"))
                self.add(plural(word), Sense(kind, concept, "noun", plural=True))
        for verb in (*(words if kind == "action" else ()), *row.get("verbs", ()), *row.get("stirs", ())):
            self._verb(verb, kind, concept)
        adjectives = words if kind in ("emotion", "attribute") else ()
        for part, listed in (
            ("adjective", adjectives),
            ("adverb", row.get("adverbs", ())),
            ("feeling", row.get("nouns", ())),
        ):
            for word in listed:
                self.add(word, Sense(kind, concept, part))

    def _verb(self, phrase: str, kind: ConceptKind, concept: str) -> None:
        if phrase.startswith("be "):
            self.add(phrase[3:], Sense(kind, concept, "passive"))
            return
        for form in self._inflector.verb_forms(phrase):
            self.add(form.surface, Sense(kind, concept, "verb"))


def _read(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = shipped_table("katha_sketch.vocabulary", f"{name}.yaml")
    return found


@cache
def load_vocabulary() -> Vocabulary:
    """Return the vocabulary that ships with katha, read once a process."""
    grammar = _read("grammar")
    verbs = {verb: (forms[0], forms[1]) for verb, forms in grammar["irregular_verbs"].items()}
    inflector = Inflector(verbs, frozenset(grammar["double_consonant"]))
    senses = _Senses(inflector)
    concepts: dict[str, dict[str, Concept]] = {}
    says: dict[str, Say] = {}
    cues: dict[str, Mapping[str, Any]] = {}
    for name, kind in _FILES:
        for key, row in _read(name).items():
            words = tuple(map(str, row.get("words", ())))
            concepts.setdefault(kind, {})[key] = Concept(key, kind, words, row.get("draw", {}))
            senses.entry(kind, key, row)
            if kind == "action":
                says[key] = Say(*row.get("say", (words[0], "")))
            elif kind == "moral":
                cues[key] = row
    closed = {key: frozenset(map(str, value)) for key, value in grammar.items() if isinstance(value, list)}
    table = {key: tuple(value) for key, value in senses.table.items()}
    return Vocabulary(inflector, closed, grammar["numbers"], table, says, cues, concepts)
