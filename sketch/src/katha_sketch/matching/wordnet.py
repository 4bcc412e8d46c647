"""What words mean beside one another: synonyms, wider and derived words, opposites, from WordNet's common words."""

from __future__ import annotations

import gzip
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from katha.jsonio import shipped_table
from katha_sketch.english.nearness import similarity
from katha_sketch.english.words import load_words
from katha_sketch.matching.families import families
from katha_sketch.matching.lemmas import lexicon
from katha_sketch.vocabulary.inflect import singular

if TYPE_CHECKING:
    from spacy.tokens import Token

Lemma = tuple[str, str]
"""Part of speech (n, v, a, r) and word; a verb with its particle is one word ("doze_off")."""
_EQUAL = frozenset("$&\\=")
"""Relations between senses that may stand for one another: verb group, similar adjective, adjective of an adverb."""
PARTS = {"NOUN": "n", "PROPN": "n", "VERB": "v", "AUX": "v", "ADJ": "a", "ADV": "r", "NUM": "a", "INTJ": "n", "X": "n"}
"""The parser's parts of speech that content words have, with WordNet's letter."""
_ENDINGS = ["-", "s-", "es-", "ies-y", "ied-y", "ed-", "ed-e", "ing-", "ing-e"]


@dataclass(frozen=True)
class WordNet:
    """The table: the senses of words (the most frequent first), relations of senses, derived and opposite words.

    deeds: nouns of what somebody does or undergoes, which carry the meaning after a verb like "have" ("has a look").
    gloss: the telling words of what a word means.
    """

    senses: dict[Lemma, tuple[str, ...]]
    equal: dict[str, tuple[str, ...]]
    wider: dict[str, tuple[str, ...]]
    derived: dict[Lemma, tuple[str, ...]]
    opposite: dict[str, tuple[str, ...]]
    deeds: frozenset[str]
    gloss: dict[Lemma, tuple[str, ...]]


@dataclass(frozen=True)
class Usage:
    """The word lists of usage.yaml.

    group: words and idioms with the names of their groups. idioms: a verb and the last word of its idiom, to the idiom.
    sets: closed classes by name. opposites: both ways. apart: words of which one excludes another, with their kind.
    sides: prepositions that may stand for one another, by number.
    sayings: turns of phrase and the plain words for them. excepted: what excepts something, and what is kept of it.
    nearness: how near is near enough.
    """

    group: dict[str, frozenset[str]]
    idioms: dict[tuple[str, str], str]
    sets: dict[str, frozenset[str]]
    opposites: frozenset[tuple[str, str]]
    apart: dict[str, int]
    sides: dict[str, frozenset[int]]
    sayings: tuple[tuple[re.Pattern[str], str], ...]
    excepted: tuple[tuple[re.Pattern[str], str], ...]
    nearness: dict[str, float]


@cache
def wordnet() -> WordNet:
    """Return the table, read once (a quarter of a second)."""
    packed = files("katha_sketch.matching").joinpath("wordnet.txt.gz").read_bytes()
    senses: dict[Lemma, tuple[str, ...]] = {}
    equal: dict[str, list[str]] = defaultdict(list)
    wider: dict[str, list[str]] = defaultdict(list)
    opposite: dict[str, list[str]] = defaultdict(list)
    derived: dict[Lemma, list[str]] = defaultdict(list)
    deeds: frozenset[str] = frozenset()
    gloss: dict[Lemma, tuple[str, ...]] = {}
    for line in gzip.decompress(packed).decode().splitlines()[1:]:
        code, first, second, *rest = line.split()
        if code == "w":
            senses[first, second] = tuple(rest)
        elif code == "s":
            (equal if second in _EQUAL else wider)[first] += rest
        elif code == "d":
            derived[first, second].append(rest[3])
        elif code == "g":
            gloss[first, second] = tuple(rest)
        elif code == "e":
            deeds = frozenset((first, second, *rest))
        else:
            opposite[rest[0]].append(rest[3])
    frozen = [{key: tuple(value) for key, value in table.items()} for table in (equal, wider, opposite)]
    made = {key: tuple(value) for key, value in derived.items()}
    return WordNet(senses, frozen[0], frozen[1], made, frozen[2], deeds, gloss)


@cache
def usage() -> Usage:
    """Return the word lists, read once."""
    raw = dict(shipped_table("katha_sketch.matching", "usage.yaml"))
    nearness = raw.pop("nearness")
    group: dict[str, set[str]] = defaultdict(set)
    idioms: dict[tuple[str, str], str] = {}
    for line in raw["groups"]:
        words = [word.strip().replace(" ", "_") for word in line.split(",")]
        for word in words:
            for form in {word, (verb_form(word) or word) if word.endswith("ed") else word}:
                group[form].add(words[0])
            if "_" in word:
                verb, _, last = word.partition("_")
                idioms[verb, last.rpartition("_")[2]] = word
    for word, names in families().group.items():
        for form in {word, (verb_form(word) or word) if word.endswith("ed") else word}:
            group[form] |= {f"{name}*" for name in names}
    pairs = {tuple(pair.split()) for pair in raw["opposites"]}
    opposites = {(a, b) for a, b in pairs} | {(b, a) for a, b in pairs}
    sets = {name: frozenset(str(words).split()) for name, words in raw.items() if not isinstance(words, list)}
    apart = {word: kind for kind, words in enumerate(raw["apart"], 1) for word in words.split()}
    sides = {
        word: frozenset(n for n, words in enumerate(raw["sides"]) if word in words.split())
        for word in " ".join(raw["sides"]).split()
    }
    sayings, excepted = (
        tuple((re.compile(each, re.IGNORECASE), str(plain)) for each, plain in raw[name])
        for name in ("sayings", "excepted")
    )
    named = {key: frozenset(names) for key, names in group.items()}
    return Usage(named, idioms, sets, frozenset(opposites), apart, sides, sayings, excepted, nearness)


@lru_cache(maxsize=16384)
def verb_form(word: str) -> str | None:
    """Return the base of a word that can be a verb form, None if it cannot."""
    senses, table = wordnet().senses, lexicon().irregular
    if word in table:
        return table[word]
    for ending, _, instead in (each.partition("-") for each in _ENDINGS):
        base = word.removesuffix(ending) + instead if word.endswith(ending) else ""
        if len(base) > 2 and ("v", base) in senses:
            return base
        doubled = len(base) > 3 and base[-1] == base[-2]
        if doubled and ("v", base[:-1]) in senses:
            return base[:-1]
    return None


def _senses(lemma: Lemma) -> tuple[str, ...]:
    """The senses of a word; of a verb with an unknown particle, those of the verb."""
    known, (pos, word) = wordnet().senses, lemma
    return known.get(lemma) or (known.get((pos, word.partition("_")[0]), ()) if pos == "v" else ())


@lru_cache(maxsize=16384)
def concepts(lemma: Lemma) -> frozenset[str]:
    """Return what a word may mean: its senses, those equal to them, those of derived words, its groups, its feeling."""
    net, word = wordnet(), lemma[1]
    own = _senses(lemma)
    made = {f"={word}", *own, *(f"#{name}" for name in usage().group.get(word, ()))}
    made.update(other for sense in own[:3] for other in net.equal.get(sense, ()))
    made.update(net.derived.get(lemma, ()))
    base = verb_form(word) if lemma[0] == "a" and word not in ("free", "open") else None
    if base and base != word and ("a", base) not in net.senses:
        made |= {f"={base}", *_senses(("v", base))[:4], *(f"#{name}" for name in usage().group.get(base, ()))}
    verb, _, particle = word.partition("_")
    if particle in ("up", "down", "away", "off", "out", "over", "back") and load_words().has("motion", verb):
        made |= {f"={verb}", *_senses(("v", verb))[:3], *(f"#{name}" for name in usage().group.get(verb, ()))}
    feeling = load_words().feelings.get(word)
    return frozenset(made | ({f"!{feeling}"} if feeling else set()))


@lru_cache(maxsize=16384)
def _above(lemma: Lemma) -> frozenset[str]:
    """What a word is a kind of: one step up from its first senses."""
    found = set(_up(_senses(lemma)[:3]))
    if lemma[0] == "n":
        found |= set(_up(found & set(_up(_senses(lemma)[:1]))))
    return frozenset(found)


@lru_cache(maxsize=16384)
def ancestors(lemma: Lemma) -> frozenset[str]:
    """Return the nouns for what a noun is a kind of, up to five steps above its first two senses."""
    found: set[str] = set()
    senses = set(_senses(lemma)[:2])
    for _ in range(5):
        senses = set(_up(senses))
        found |= senses
    return frozenset(word for sense in found for word in _nouns().get(sense, ()))


@cache
def _nouns() -> dict[str, list[str]]:
    """The nouns of each sense."""
    found: dict[str, list[str]] = defaultdict(list)
    for (pos, word), senses in wordnet().senses.items():
        for sense in senses if pos == "n" else ():
            found[sense].append(word)
    return found


def _up(senses: Iterable[str]) -> Iterator[str]:
    wider = wordnet().wider
    return (other for sense in senses for other in wider.get(sense, ()))


def sex(noun: str) -> str:
    """Return "male" or "female" for a noun that says so, "" for another."""
    words = load_words()
    return next((name for name in ("male", "female") if words.has(name, noun) or words.has(f"kin.{name}", noun)), "")


def is_somebody(noun: str) -> bool:
    """Return whether a noun is a person, an animal, a being or a group of them."""
    words = load_words()
    return words.sort(noun) in ("person", "animal", "being", "group") or words.has("kin", noun)


def names_somebody(token: Token) -> bool:
    """Return whether a parsed word is a name or a noun for somebody."""
    return token.pos_ == "PROPN" or is_somebody(lemma_of(token)[1])


def lemma_of(token: Token) -> Lemma:
    """Return a parsed word's part of speech and lemma, as WordNet knows them."""
    pos = PARTS.get(token.pos_, "n")
    word = token.lower_ if token.pos_ == "PROPN" else str(token.lemma_.lower())
    if pos == "v" and token.tag_ in ("VBD", "VBN"):
        word = lexicon().irregular.get(token.lower_, word)
    known = wordnet().senses
    if (pos, word) not in known:
        others = [each for each in "nvar" if (each, word) in known]
        if pos == "v" and not others and token.tag_ == "VBG" and is_somebody(token.lower_):
            return "n", str(token.lower_)  # "duckling" is no form of a verb
        if not others and pos == "n" and ("n", singular(word)) in known:
            word = singular(word)
        elif others:
            pos = others[0]
    return pos, load_words().lemmas.get(word, word)


@lru_cache(maxsize=65536)
def same(one: Lemma, two: Lemma) -> bool:
    """Whether two words may say the same."""
    if one[1] == two[1]:
        return True
    if {sex(one[1]), sex(two[1])} == {"male", "female"} or apart(one, two) or opposed(one, two):
        return False
    feelings = load_words().feelings
    moods = feelings.get(one[1]), feelings.get(two[1])
    if None not in moods and moods[0] != moods[1]:
        return _grouped(one[1], two[1])
    return not concepts(one).isdisjoint(concepts(two))


@lru_cache(maxsize=65536)
def entails(said: Lemma, wanted: Lemma) -> bool:
    """Whether `said` may stand where `wanted` is asked for: the same, or a kind of it ("gobble" for "eat")."""
    if (said[1], wanted[1]) in usage().opposites:
        return False
    if said[1] in usage().sets["wide"] and said[1] != wanted[1]:
        return _grouped(said[1], wanted[1])
    if said[0] == wanted[0] == "v" and (unlike(said, wanted) or _stays_out(said[1], wanted[1])):
        return False
    if same(said, wanted):
        return True
    if {sex(said[1]), sex(wanted[1])} == {"male", "female"}:
        return False
    return wanted[1] not in usage().sets["wide"] and not _above(said).isdisjoint(_senses(wanted)[:3])


def _grouped(one: str, two: str) -> bool:
    """Whether two words stand in one group of the table of usage."""
    return not usage().group.get(one, frozenset()).isdisjoint(usage().group.get(two, ()))


@lru_cache(maxsize=65536)
def unlike(one: Lemma, two: Lemma) -> bool:
    """Whether two words that some rare sense may join are far from one another in use: "see" and "join"."""
    found = None if _grouped(one[1], two[1]) or one[1] == two[1] else similarity(one[1], two[1])
    return found is not None and found < usage().nearness["unlike"]


def _stays_out(said: str, wanted: str) -> bool:
    """Whether a verb does not say that it goes back where the one wanted does: "take" for "bring back"."""
    return wanted.endswith("_back") and not said.endswith("_back") and not _grouped(said, wanted)


def sisters(one: Lemma, two: Lemma) -> bool:
    """Whether two nouns are of one kind and not the same: a fox and a wolf."""
    return one[0] == two[0] == "n" and one[1] != two[1] and not _above(one).isdisjoint(_above(two))


def apart(one: Lemma, two: Lemma) -> bool:
    """Whether two words are different ones of a kind: two colours, two days."""
    kinds = usage().apart
    return one[1] != two[1] and kinds.get(one[1], 0) == kinds.get(two[1], -1)


@lru_cache(maxsize=65536)
def opposed(one: Lemma, two: Lemma) -> bool:
    """Whether two words are opposites."""
    if (one[1].partition("_")[0], two[1].partition("_")[0]) in usage().opposites:
        return True
    if two[1] in _denials(one[1]) or one[1] in _denials(two[1]):
        return True
    net = wordnet()
    first = {other for sense in (*_senses(one)[:3], *_equals(one)) for other in net.opposite.get(sense, ())}
    return not first.isdisjoint((*_senses(two)[:3], *_equals(two)))


def _denials(word: str) -> tuple[str, ...]:
    """What a word denies by its prefix: "ungrateful"."""
    return tuple(word.removeprefix(prefix) for prefix in ("un", "in", "im", "dis") if word.startswith(prefix))


def _equals(lemma: Lemma) -> tuple[str, ...]:
    equal = wordnet().equal
    return tuple(other for sense in _senses(lemma)[:2] for other in equal.get(sense, ()) if lemma[0] == "a")


# Words told by their descriptions: "the building full of old exhibits" for a museum.

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
