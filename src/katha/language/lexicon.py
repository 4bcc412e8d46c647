"""The closed vocabulary: concepts from the YAML files, and every surface form that the reader knows.

Every form is made once at load by inflecting forward, so looking a word up never guesses a stem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from katha.errors import UsageError
from katha.jsonio import sha256_hex
from katha.language.inflect import Inflector
from katha.language.types import Concept, ConceptKind

__all__ = ["Grammar", "Say", "Sense", "Vocabulary", "load_vocabulary", "vocabulary_sha256"]

_FILES: tuple[tuple[str, ConceptKind | None], ...] = (
    ("characters", "character"),
    ("props", "prop"),
    ("settings", "setting"),
    ("emotions", "emotion"),
    ("actions", "action"),
    ("attributes", "attribute"),
    ("surroundings", None),
    ("morals", "moral"),
)
_NOUN_KINDS = frozenset({"character", "prop", "setting", "time", "weather"})


@dataclass(frozen=True)
class Sense:
    """One meaning of a surface form. `part` is noun, verb, adjective, adverb or passive; `form` is a verb's form."""

    kind: str
    id: str | None
    part: str
    lemma: str
    form: str = ""
    plural: bool = False


@dataclass(frozen=True)
class Say:
    """How an action is said in a prompt: a verb phrase in base form and the preposition before its target."""

    verb: str
    preposition: str


@dataclass(frozen=True)
class Grammar:
    """The closed classes of English, from grammar.yaml."""

    words: Mapping[str, frozenset[str]]
    pronouns: Mapping[str, Mapping[str, Any]]
    numbers: Mapping[str, int]
    hypernyms: Mapping[str, frozenset[str]]
    kin: tuple[frozenset[str], ...]
    transitive: Mapping[str, str]
    inflector: Inflector

    def has(self, group: str, word: str) -> bool:
        """Whether `word` belongs to the closed class `group`."""
        return word in self.words[group]


@dataclass(frozen=True)
class Vocabulary:
    """Concepts by kind and id, the senses of every surface form, and the grammar.

    `says` is how an action is said, `leads` what stands before a setting, time or weather ("by", "in the"), `cues` the
    evidence for each moral.
    """

    grammar: Grammar
    senses: Mapping[str, tuple[Sense, ...]]
    longest: Mapping[str, int]
    says: Mapping[str, Say]
    leads: Mapping[str, str]
    cues: Mapping[str, Mapping[str, Any]]
    _concepts: Mapping[str, Mapping[str, Concept]]
    _finder: dict[str, dict[str, str]] = field(default_factory=dict)

    def concepts(self, kind: ConceptKind) -> tuple[Concept, ...]:
        """Every concept of `kind`, in the order of its file."""
        return tuple(self._concepts[kind].values())

    def get(self, kind: ConceptKind, concept: str) -> Concept:
        """The concept of that kind and id.

        Raises:
            KeyError: there is none.
        """
        return self._concepts[kind][concept]

    def find(self, text: str, kind: ConceptKind) -> str | None:
        """The id of the concept of `kind` that `text` names in any of its forms, or None."""
        wanted = text.lower().strip()
        if wanted in self._concepts[kind]:
            return wanted
        found = (sense.id for sense in self.senses.get(wanted, ()) if sense.kind == kind)
        return next(found, None)

    def known(self, text: str, part: str) -> bool:
        """Whether `text` has a sense of that part of speech."""
        return any(sense.part == part for sense in self.senses.get(text, ()))


class _Senses:
    """Collects senses, each once, in order of importance."""

    def __init__(self, inflector: Inflector) -> None:
        self._inflector = inflector
        self.table: dict[str, list[Sense]] = {}

    def add(self, surface: str, sense: Sense) -> None:
        entries = self.table.setdefault(surface, [])
        if sense not in entries:
            entries.append(sense)

    def noun(self, word: str, kind: str, concept: str | None) -> None:
        self.add(word, Sense(kind, concept, "noun", word))
        self.add(self._inflector.plural(word), Sense(kind, concept, "noun", word, plural=True))

    def verb(self, phrase: str, kind: str, concept: str | None) -> None:
        if phrase.startswith("be "):
            self._passive(phrase[3:], kind, concept)
            return
        for form in self._inflector.verb_forms(phrase):
            self.add(form.surface, Sense(kind, concept, "verb", phrase, form.form))

    def _passive(self, participle: str, kind: str, concept: str | None) -> None:
        self.add(participle, Sense(kind, concept, "passive", participle, "participle"))

    def plain(self, word: str, kind: str, concept: str | None, part: str) -> None:
        self.add(word, Sense(kind, concept, part, word))


def _read(name: str) -> dict[str, Any]:
    text = files("katha.language.vocabulary").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    value = yaml.load(text, Loader=loader)
    if not isinstance(value, dict):
        raise UsageError(f"Vocabulary file {name!r} must be a mapping of concepts.")
    return value


def _split_id(kind: ConceptKind | None, key: str) -> tuple[ConceptKind, str]:
    if kind is not None:
        return kind, key
    prefix, _, name = key.partition("/")
    return prefix, name  # type: ignore[return-value]


def _entries() -> Iterator[tuple[ConceptKind, str, dict[str, Any]]]:
    for name, file_kind in _FILES:
        for key, value in _read(name).items():
            kind, concept = _split_id(file_kind, str(key))
            yield kind, concept, value


def _add_words(senses: _Senses, kind: str, concept: str, entry: Mapping[str, Any]) -> None:
    words: Sequence[str] = entry.get("words", ())
    if kind == "action":
        for word in words:
            senses.verb(word, kind, concept)
    elif kind in _NOUN_KINDS:
        for word in words:
            senses.noun(word, kind, concept)
    elif kind in {"emotion", "attribute", "shot"}:
        for word in words:
            senses.plain(word, kind, concept, "adjective")
    for word in entry.get("adjectives", ()):
        senses.plain(word, kind, concept, "adjective")
    for word in entry.get("adverbs", ()):
        senses.plain(word, kind, concept, "adverb")
    for word in entry.get("nouns", ()):
        senses.plain(word, kind, concept, "feeling")
    for word in entry.get("verbs", ()):
        senses.verb(word, kind, concept)
    for word in entry.get("stirs", ()):
        senses.verb(word, "stirs", concept)


def _grammar(data: Mapping[str, Any]) -> Grammar:
    inflector = Inflector(
        data["irregular_plurals"],
        {verb: (forms[0], forms[1]) for verb, forms in data["irregular_verbs"].items()},
        frozenset(data["double_consonant"]),
    )
    kin = tuple(frozenset(family) for family in data["kin"])
    words = {key: frozenset(map(str, value)) for key, value in data.items() if isinstance(value, list) and key != "kin"}
    hypernyms = {word: frozenset(kinds) for word, kinds in data["hypernyms"].items()}
    return Grammar(words, data["pronouns"], data["numbers"], hypernyms, kin, data["transitive"], inflector)


def _add_known(senses: _Senses, data: Mapping[str, Sequence[str]]) -> None:
    for word in data["verbs"]:
        senses.verb(word, "known", None)
    for word in data["nouns"]:
        senses.noun(word, "known", None)
    for word in data["referring"]:
        senses.noun(word, "referring", None)
    for part, group in (("adjective", "adjectives"), ("adverb", "adverbs")):
        for word in data[group]:
            senses.plain(word, "known", None, part)


def _add_variants(senses: _Senses, variants: Mapping[str, Sequence[str]]) -> None:
    for surface, (verb, form) in variants.items():
        for sense in [sense for sense in senses.table.get(verb, ()) if sense.part == "verb"]:
            senses.add(surface, replace(sense, form=form))
            if form == "past":
                senses.add(surface, replace(sense, form="participle"))


def _longest(surfaces: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for surface in surfaces:
        first = surface.split(" ", 1)[0]
        found[first] = max(found.get(first, 1), surface.count(" ") + 1)
    return found


@cache
def vocabulary_sha256() -> str:
    """The hash of every vocabulary file: it changes whenever a text could be read differently."""
    folder = files("katha.language.vocabulary")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return sha256_hex(b"\0".join(folder.joinpath(name).read_bytes() for name in names))


@cache
def load_vocabulary() -> Vocabulary:
    """The vocabulary that ships with katha, read once a process."""
    closed_classes = _read("grammar")
    grammar = _grammar(closed_classes)
    senses = _Senses(grammar.inflector)
    concepts: dict[str, dict[str, Concept]] = {}
    says: dict[str, Say] = {}
    leads: dict[str, str] = {}
    cues: dict[str, Mapping[str, Any]] = {}
    for kind, concept, entry in _entries():
        words = tuple(map(str, entry.get("words", ())))
        concepts.setdefault(kind, {})[concept] = Concept(concept, kind, words, entry.get("draw", {}))
        _add_words(senses, kind, concept, entry)
        if kind == "action":
            says[concept] = Say(*entry.get("say", (words[0], "")))
        elif kind in {"setting", "time", "weather"}:
            leads[concept] = " ".join(entry.get("say", ("in",))).strip()
        if kind == "moral":
            cues[concept] = entry
    _add_known(senses, _read("known"))
    _add_variants(senses, closed_classes["variants"])
    closed = [word for group in ("prepositions", "subordinators", "negations") for word in grammar.words[group]]
    longest = _longest([*senses.table, *closed, *grammar.numbers])
    return Vocabulary(
        grammar, {key: tuple(value) for key, value in senses.table.items()}, longest, says, leads, cues, concepts
    )
