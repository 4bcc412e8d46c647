"""Paraphrases as data: what stories tell most in other words, turned into plain words before an answer is parsed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from katha.jsonio import shipped_table
from katha_sketch.matching.lemmas import lexicon

_SUBJECTS = {"his": "he", "her": "she", "their": "they", "its": "it", "him": "he", "them": "they", "the": "they"}
_NOUN = r"(?:(?:the|a|an|his|her|their|its|my) (?:\w+ )?\w+|[A-Z]\w+)"
_SLOTS = {
    "{his}": r"(?P<his{n}>(?i:his|her|their|its|my|our|your)|(?:[Tt]he \w+|[A-Z]\w+)'s|(?i:the))",
    "{him}": rf"(?P<him{{n}}>him|her|them|it|each other|one another|{_NOUN})",
}
_NOT = "(?i:do not|does not|did not|not|never)"
_SELVES = "(?i:himself|herself|itself|themselves)"
_ANYBODY = "(?i:he|she|it|they)"


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    raw: Mapping[str, Mapping[str, str]] = shipped_table("katha_sketch.matching", "families.yaml")
    return raw


@cache
def _irregular() -> Mapping[str, str]:
    """Irregular forms of verbs with their bases."""
    return {**lexicon().irregular, **_table()["irregular"]}


@lru_cache(maxsize=4096)
def forms(verb: str) -> tuple[str, str, str, str]:
    """Return a verb with its third person, past and -ing form."""
    if verb in ("be", "have", "do"):
        base, third, past, gerund = _table()["forms"][verb].split(",")[:4]
        return base, third, past, gerund
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb
    stem += verb[-1] if re.fullmatch(r"[^aeiou]*[aeiou][bdgklmnprt]", verb) else ""
    hard_y = re.search(r"[^aeiou]y$", verb)
    third = (
        f"{verb[:-1]}ies" if hard_y else f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"
    )
    past = next((form for form, base in _irregular().items() if base == verb and form not in (third, f"{stem}ing")), "")
    regular = f"{verb[:-1]}ied" if hard_y else f"{verb}d" if verb.endswith("e") else f"{stem}ed"
    gerund = f"{verb[:-2]}ying" if verb.endswith("ie") else f"{verb}ing" if verb.endswith("ee") else f"{stem}ing"
    return verb, third, past if past and not past.endswith("ing") else regular, gerund


@lru_cache(maxsize=4096)
def _any_form(verb: str) -> str:
    """A pattern for every form of a verb."""
    if verb in _table()["forms"]:
        return _table()["forms"][verb].replace(",", "|")
    irregular = [form for form, base in _irregular().items() if base == verb]
    return "|".join(dict.fromkeys((*forms(verb), *irregular)))


@dataclass(frozen=True)
class Phrase:
    """A phrase, and the plain words for it.

    kind: of a deed, of a thing, an adverb, or "led": whose state it is stands in the phrase ("his heart sinks").
    words: those that a text has to have.
    """

    said: str
    plain: str
    kind: str

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that every text with the phrase has."""
        lead, *tokens = self.said.split(" ")
        tokens = tokens if self.kind == "deed" else [lead, *tokens]
        after_not = 0 if lead in ("not", "never") else -1
        fixed = [
            t for n, t in enumerate(tokens) if t not in _SLOTS and not re.search(r"[~*/]|self$", t) and n != after_not
        ]
        return frozenset(word for word in fixed if word not in ("he", "it", "not"))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern that finds the phrase in any of its forms."""
        tokens = self.said.split(" ")
        made = ""
        for n, token in enumerate(tokens):
            if token == "*":
                made += r"(?: [\w'-]+){0,2}?"
                continue
            verbal = (
                token.startswith("~") or (self.kind == "deed" and n == 0) or (n == 1 and tokens[0] in ("not", "never"))
            )
            choices = token.removeprefix("~").split("/")
            if token in _SLOTS:
                part = _SLOTS[token].replace("{n}", str(n))
            elif choices[0].endswith("self"):
                part = _SELVES
            elif token == "he" or (token == "it" and n):
                part = _ANYBODY
            elif n == 0 and token == "not":
                part = _NOT
            else:
                part = "(?i:" + "|".join(_any_form(each) if verbal else re.escape(each) for each in choices) + ")"
            made += f" {part}" if n else part
        return re.compile(rf"\b{made}\b")

    def put(self, found: re.Match[str]) -> str:
        """Return the plain words for what was found, in its tense and about the same one."""
        first, _, rest = self.plain.partition(" ")
        if self.kind == "thing" or first == "the":
            return self.plain
        if self.kind == "adverb":
            return rest if first == "be" else found[0]
        slots = {name[:3]: word for name, word in reversed(found.groupdict().items()) if word}
        acted = slots.get("him", "")
        if self.kind == "led":
            whose = (slots.get("his") or acted or "their").removesuffix("'s")
            return f"{_SUBJECTS.get(whose.lower(), whose)} {_in_form(first, 'did')} {rest}".rstrip()
        verb = f"{_in_form(first, found[0].partition(' ')[0].lower())} {rest}".rstrip()
        return f"{verb} {acted}" if acted and first != "be" else verb


def _in_form(verb: str, like: str) -> str:
    """A verb in the form of another word."""
    if verb in ("cannot", "not", "every", "all", "each"):
        return verb
    base, third, past, gerund = forms(verb)
    if like.endswith("ing") and len(like) > 4:
        return gerund
    if like in _table()["lists"]["helpers"].split() or (
        like in _irregular() and like not in ("is", "are", "has", "goes")
    ):
        return past
    if like in ("is", "are", "has") or (like.endswith("s") and not like.endswith("ss")):
        return third
    return past if like.endswith("ed") else base


@dataclass(frozen=True)
class Families:
    """Words with the names of their families, and phrases by a word that they have."""

    group: Mapping[str, frozenset[str]]
    phrases: Mapping[str, tuple[Phrase, ...]]


@cache
def families() -> Families:
    """Return the families, read once."""
    leads, adverbs = (_table()["lists"][name].split() for name in ("leads", "adverbs"))
    group: dict[str, set[str]] = defaultdict(set)
    phrases: dict[str, Phrase] = {}
    by_word: dict[str, list[Phrase]] = defaultdict(list)
    for section in ("deeds", "things"):
        for plain, line in _table()[section].items():
            name = plain.removeprefix("be ").replace(" ", "_")
            group[name].add(name)
            for said in map(str.strip, line.split(",")):
                lead = said.partition(" ")[0]
                kind = "led" if lead == "{his}" or lead in leads else "adverb" if lead in adverbs else "deed"
                if lead == said or said in _table()[section]:
                    group[said.removeprefix("be ").replace(" ", "_")].add(name)
                else:
                    phrases.setdefault(said, Phrase(said, plain, "thing" if section == "things" else kind))
    for phrase in phrases.values():
        by_word[max(phrase.words, key=lambda word: (len(word), word), default="")].append(phrase)
    frozen = {word: frozenset(names) for word, names in group.items()}
    return Families(frozen, {word: tuple(found) for word, found in by_word.items()})


_SHORT = {"can't": "cannot", "won't": "will not", "shan't": "shall not"}


@lru_cache(maxsize=16384)
def in_plain_words(text: str) -> str:
    """Return a text with its turns of phrase in plain words."""
    made = re.sub(r"\b(?:ca|wo|sha)n't\b", lambda found: _SHORT[found[0].lower()], text, flags=re.IGNORECASE)
    made = re.sub(r"n't\b", " not", made)
    words = set(re.findall(r"[\w'-]+", made.lower()))
    known = families().phrases
    for phrase in sorted((p for word in ("", *words) for p in known.get(word, ()) if p.words <= words), key=_first):
        made = phrase.pattern.sub(phrase.put, made)
    return made


def _first(phrase: Phrase) -> tuple[int, str]:
    """Longer phrases first."""
    return -len(phrase.said), phrase.said
