"""Which sense of a word a story means, by the words that stand around it, and what a prompt says instead.

`senses.yaml` has two tables. `words` lists for each ambiguous word its senses with what tells them: words of the same
sentence, words of the story, and patterns of words beside it. The sense for which most speaks counts; where nothing
speaks in a sentence, the word means what it meant in the sentence of the story that tells it best. `themes` lists words
that mean something else in stories about chess or football.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from katha.intake.names import names_that_are_words
from katha.jsonio import shipped_table
from katha_sketch.english.words import Words, load_words
from katha_sketch.vocabulary.inflect import plural, singular, third

__all__ = ["about", "lives_from", "said_plainly", "sense_of"]

_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")
"""Where a sentence ends, roughly."""
_TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|[,.;:!?\"\u201c\u201d()\u2013\u2014]")
_DETERMINERS = frozenset(
    re.findall(r"\w+", "the a an this that these those his her its their my our your some any no each every")
)
_OBJECTS = _DETERMINERS - {"that"} | frozenset(re.findall(r"\w+", "it him them me us up down out off away back"))
"""What stands behind a verb, and not behind a noun."""
_SUBJECTS = frozenset(
    re.findall(r"\w+", "he she it they we you i who to not never will can could would should must did does do")
)
_LINKS = frozenset(
    re.findall(
        r"\w+",
        "of in on at with to from by for into onto over under through across behind beside and but or as than while who"
        " which that when where he she they it",
    )
)
"""What never stands between a word and an adjective, a verb or an article of its own."""
_PERSONS = frozenset({"me", "him", "her", "us", "them", "you"})
_DOERS = frozenset({"person", "being", "animal"})
_MANY = frozenset({"children", "men", "women", "people"})
_LIVING = ("person", "animal", "being", "kin", "male", "female", "child", "old", "adult", "group", "titles")
_SOLID = frozenset(
    {"thing", "animal", "food", "person", "plant", "vehicle", "building", "clothing", "furniture", "structure", "body"}
)
"""Kinds of nouns that stand before another to say which it is."""
_THINGS = frozenset({"thing", "clothing", "furniture", "body", "food", "plant"})
"""Kinds of things that are told more exactly than "a thing"."""
_BESIDE, _NEAR, _AROUND, _TALE, _MOST = 10.0, 3.0, 1.0, 1.0, 3.0
"""What speaks for a sense: a pattern around the word, a word of the sentence, one of the text around it, one of the
story, and as many of the story as count."""
_WINDOW = 160
"""So many letters before and behind a sentence are around it."""
_GAP = 3
_OTHER = "*"
"""Said instead: what the word is a part of."""


@dataclass(frozen=True)
class _Token:
    """One word of a text with the base forms that it can have."""

    text: str
    forms: frozenset[str]
    start: int
    end: int
    title: bool


_Part = frozenset[str] | None
"""One place of a pattern: the words that it can have, None for the word that the pattern is about."""


@dataclass(frozen=True)
class _Meaning:
    """One sense of a word: what is said instead, and what tells it."""

    said: str
    near: frozenset[str]
    tale: frozenset[str]
    like: tuple[tuple[tuple[_Part, bool], ...], ...]
    kind: str
    usual: bool
    single: bool

    @property
    def close(self) -> frozenset[str]:
        """The words right before it that tell it: "violin" of "violin+~"."""
        pairs = (pair for pattern in self.like for pair in pairwise(pattern))
        return frozenset(word for (part, tight), (after, _) in pairs if tight and after is None for word in part or ())


@dataclass(frozen=True)
class _Theme:
    """Words that mean something else where one of `cues` is found."""

    cues: re.Pattern[str]
    near: bool
    said: Mapping[str, str]
    kind: str
    shows: str
    beside: re.Pattern[str] | None

    def instead(self, text: str) -> str:
        """Return the text with what the words mean here."""
        for word, phrase in self.said.items():
            text = _instead(text, word, phrase)
        return text


def about(words: Words, text: str) -> Words:
    """Return the tables for a text: a knight is a thing in a story about chess."""
    meant = _meant_in(text)
    other: dict[str, str] = {}
    for word in _named_in(text):
        meaning = _meaning(word, "", text)
        thing = meaning is not None and meaning.kind == "thing" and words.sort(word) in _THINGS
        if meaning is not None and meaning.kind and not thing:
            other[word] = meaning.kind
    for at, theme in enumerate(_tables()[0]):
        if at in meant:
            for word in theme.said:
                if theme.kind and word not in _tables()[1] and (not theme.near or at in _first_meant(text, word)):
                    other.setdefault(word, theme.kind)
    return _with(words, tuple(sorted(other.items()))) if other else words


def said_plainly(text: str, sentence: str, story: str) -> str:
    """Return a text whose words say what they mean in this sentence of this story: "pushes the chess queen"."""
    for word in _named_in(text):
        if word.capitalize() in names_that_are_words(story):
            continue  # "Ray opened the door"
        own, value = _best(word, _tables()[1][word], text, "", "")
        meaning = own if value >= _BESIDE else _meaning(word, sentence, story)
        if meaning is not None and meaning.said != word:
            text = _instead(text, word, meaning.said, meaning.near | meaning.tale, meaning.close)
    return _by_theme(_done(text), sentence, story)


def sense_of(word: str, sentence: str, story: str) -> str | None:
    """Return what a word of the table means in this sentence of this story, None where nothing tells it."""
    meaning = _meaning(word, sentence, story) if word in _tables()[1] else None
    return meaning.said if meaning is not None else None


def lives_from(sentence: str, story: str) -> list[str]:
    """Return the things that a story lives from and a sentence does without naming them: "chessboard"."""
    meant = _meant_in(story)
    return [
        theme.shows
        for at, theme in enumerate(_tables()[0])
        if theme.beside is not None and at in meant and theme.beside.search(sentence.lower())
    ]


# Words by what stands around them.


@lru_cache(maxsize=4096)
def _meaning(word: str, sentence: str, story: str) -> _Meaning | None:
    """The sense of a word in a sentence: the one for which most speaks there, else where the story tells it best. Of
    what is carried on into a sentence without the word, the sentences that have it say first what it is."""
    meanings = _tables()[1][word]
    if _only_many(word, sentence):
        meanings = tuple(one for one in meanings if not one.single)
    if not meanings:
        return None
    at = story.find(sentence) if sentence else -1
    around = story[max(0, at - _WINDOW) : at + len(sentence) + _WINDOW] if at >= 0 else ""
    best, value = _best(word, meanings, sentence, around, story)
    if value >= _NEAR and (not sentence or _has(sentence, word)):
        return best
    told = [(abs(start - max(at, 0)), *_best(word, meanings, one, "", "")) for start, one in _sentences(story, word)]
    firm = [(-strength if at < 0 else far, other) for far, other, strength in told if strength >= _NEAR]
    if firm:
        return min(firm, key=lambda pair: pair[0])[1]
    return best if value > 0 else next((one for one in meanings if one.usual), None)


def _only_many(word: str, sentence: str) -> bool:
    """Whether a sentence has a word in the plural alone: a car has one boot, and a ship one wheel."""
    texts = {token.text for token in _tokens(sentence)}
    return word not in texts and plural(word) in texts


def _has(sentence: str, word: str) -> bool:
    """Whether a sentence has a word, in whatever form."""
    return any(word in token.forms for token in _tokens(sentence))


def _best(
    word: str, meanings: Sequence[_Meaning], sentence: str, around: str, story: str
) -> tuple[_Meaning | None, float]:
    """The sense for which most speaks, the first of equals, and how much that is."""
    scores = [_score(word, one, sentence, around, story) for one in meanings]
    value = max(scores)
    return (meanings[scores.index(value)], value) if value > 0 else (None, 0.0)


def _score(word: str, meaning: _Meaning, sentence: str, around: str, story: str) -> float:
    tokens = _tokens(sentence)
    value = _BESIDE * any(_stands(pattern, tokens, word) for pattern in meaning.like)
    here = _cues(meaning.near | meaning.tale, sentence)
    value += _NEAR * len(here)
    value += _AROUND * len(_cues(meaning.near, around) - here)
    return value + min(_MOST, _TALE * len(_cues(meaning.tale, story) - here))


def _cues(cues: frozenset[str], text: str) -> frozenset[str]:
    """Which of the cues a text has."""
    return (cues & _forms_in(text)) if cues else cues


@lru_cache(maxsize=1024)
def _forms_in(text: str) -> frozenset[str]:
    """The base forms of the words of a text, and of each two that stand together ("space_suit")."""
    tokens = _tokens(text)
    pairs = (f"{one.text}_{form}" for one, other in pairwise(tokens) for form in other.forms)
    return frozenset(form for token in tokens for form in token.forms) | frozenset(pairs)


def _stands(pattern: Sequence[tuple[_Part, bool]], tokens: Sequence[_Token], word: str) -> bool:
    """Whether a pattern is found in a sentence."""
    return any(_goes_on(pattern, tokens, at, word) for at in range(len(tokens)))


def _goes_on(pattern: Sequence[tuple[_Part, bool]], tokens: Sequence[_Token], at: int, word: str) -> bool:
    (part, tight), rest = pattern[0], pattern[1:]
    if at >= len(tokens) or not (_is(tokens, at, word) if part is None else part & tokens[at].forms):
        return False
    if not rest:
        return True
    for after in range(at + 1, min(len(tokens), at + 2 + (0 if tight else _GAP))):
        if _goes_on(rest, tokens, after, word):
            return True
        if (
            (after > at + 1 and tokens[after].text in _DETERMINERS and tokens[after - 1].text not in _PERSONS)
            or tokens[after].text in _LINKS
            or not tokens[after].text[0].isalpha()
        ):
            return False
    return False


def _is(tokens: Sequence[_Token], at: int, word: str) -> bool:
    """Whether a token is the noun `word`, and no verb ("the king seals the letter"); with "to" before it, the verb."""
    if word.startswith("to "):
        before = tokens[at - 1].text if at else ""
        return word[3:] in tokens[at].forms and before not in _DETERMINERS and not before.endswith("'s")
    many = _is_plural(tokens[at].text, word)
    if tokens[at].text != word and (tokens[at].text != plural(word) or tokens[at].text in _tables()[1]):
        return False  # her glasses are no glass
    return not _does(tokens, at, many)


def _is_plural(text: str, word: str) -> bool:
    """Whether a form of a word is a plural, or a verb: "steps" of "step", and the word "steps" itself."""
    return text != word or (word.endswith("s") and word[:-1] in _tables()[1])


def _does(tokens: Sequence[_Token], at: int, many: bool) -> bool:
    """Whether a word is a verb by what stands beside it: the king seals the letter, and breaks its seal."""
    before = tokens[at - 1] if at and tokens[at - 1].text[0].isalpha() else None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if before is not None and (before.text in _DETERMINERS or before.text.endswith(("'s", "\u2019s", "s'"))):
        return False  # pulls the plug out
    if after is not None and after.text in _OBJECTS:
        return True
    if before is None:
        return False
    plural = (before.text.endswith("s") and not before.text.endswith("ss")) or before.text in _MANY
    doer = any(load_words().sort(form) in _DOERS for form in before.forms if form) and many != plural
    return before.text in _SUBJECTS or (before.title and many and load_words().numbers.get(before.text) is None) or doer


def _sentences(story: str, word: str) -> Iterator[tuple[int, str]]:
    """The sentences of a story that have a word, each with where it begins."""
    start = 0
    for one in _split(story):
        found = story.find(one, start)
        start = found + len(one)
        tokens = _tokens(one)
        if any(_is(tokens, at, word) and not _joined(tokens, at) for at in range(len(tokens))):
            yield found, one


@lru_cache(maxsize=64)
def _split(story: str) -> tuple[str, ...]:
    return tuple(one for one in _ENDS.split(story) if one.strip())


def _named_in(text: str) -> list[str]:
    """The words of the table that a text has as nouns of their own, no parts of other names ("a glass bottle")."""
    tokens, table = _tokens(text), _tables()[1]
    found = ((at, word) for at, token in enumerate(tokens) for word in token.forms if word in table)
    return list(dict.fromkeys(word for at, word in found if _is(tokens, at, word)))


def _joined(tokens: Sequence[_Token], at: int) -> bool:
    """Whether a noun only says which kind of thing the next word is: a glass bottle."""
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if after is None:
        return False
    forms = after.forms if tokens[at].text in _plain() else {after.text}
    return any(load_words().sort(form) in _SOLID for form in forms if len(form) > 2)


def _instead(
    text: str, word: str, phrase: str, cues: frozenset[str] = frozenset(), close: frozenset[str] = frozenset()
) -> str:
    """A text with a phrase for a word, wherever it is that noun and not named more closely."""
    tokens, own = _tokens(text), phrase.split()
    for at in range(len(tokens) - 1, -1, -1):
        if not _is(tokens, at, word) or _joined(tokens, at):
            continue
        first, last = at, at
        ahead = [token.text for token in tokens[max(0, at - len(own) + 1) : at]]
        told = re.search(rf"\b{re.escape(own[-1])} of (?:the|a|an|some)? ?$", text[: tokens[at].start], re.IGNORECASE)
        if (len(own) > 1 and ahead == own[:-1] and own[-1] == word) or _whole(tokens, at) in _wholes() or told:
            continue  # it says so already
        behind = [token.text for token in tokens[at + 1 : at + 5]]
        if own[0] == word and behind[:1] == own[1:2]:
            continue  # a deck of cards
        many, named = _is_plural(tokens[at].text, word), {*own} - _LINKS - _DETERMINERS
        before = tokens[at - 1] if at else None
        if before is not None and before.forms & named and not many:
            first = at - 1
        elif before is not None and load_words().sort(before.text) in _SOLID and before.text not in _plain():
            if not before.forms & close and (many or not before.forms & cues):
                continue  # a piggy bank, a tennis court; the doorbell rings
            first = at - 1
        if phrase == _OTHER:
            text = _without(text, tokens, at)
            continue
        if own[0] in _LINKS:
            text = _elsewhere(text, tokens, at, phrase)
            continue
        if behind[:1] == ["of"]:
            last = next((at + 1 + n for n, one in enumerate(behind) if n and tokens[at + 1 + n].forms & named), at)
        put = plural(phrase) if many else phrase
        head, rest = text[: tokens[first].start], text[tokens[last].end :]
        head = re.sub(r"\b([Aa])n?( (?:[\w-]+ )?)$", _article(put), head) if not many else head
        text = head + (put[:1].upper() + put[1:] if tokens[first].title and not head.strip() else put) + rest
    return text


def _article(phrase: str) -> Any:
    """What an article becomes that stands right before a phrase: "an iron bar"."""

    def put(found: re.Match[str]) -> str:
        if re.search(r"[^s]s$", phrase):
            return f"{'S' if found[1] == 'A' else 's'}ome{found[2]}"
        if found[2] != " ":
            return found[0]  # an old bar
        return found[1] + ("n " if phrase[0] in "aeio" else " ")

    return put


@lru_cache(maxsize=4096)
def _tokens(text: str) -> tuple[_Token, ...]:
    return tuple(
        _Token(one[0].lower(), _forms(one[0].lower()), one.start(), one.end(), one[0][0].isupper())
        for one in _TOKEN.finditer(text)
    )


@lru_cache(maxsize=16384)
def _forms(word: str) -> frozenset[str]:
    """A word's own form and what it can be a form of: "stopped" of "stop", "knives" of "knife"."""
    whole = word.replace("\u2019", "'")
    word = re.sub(r"'s$|'$", "", whole)
    found = {whole, word, _irregular().get(word, word), singular(word), *word.split("-")}
    for ending, bases in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: -len(ending)]
            found |= {stem + base for base in bases}
            if ending in ("ed", "ing") and len(stem) > 2 and stem[-1] == stem[-2]:
                found.add(stem[:-1])
    return frozenset(found)


_ENDINGS = (("ies", ("y",)), ("ied", ("y",)), ("ves", ("f", "fe")), ("es", ("",)), ("s", ("",)), ("ed", ("", "e")),
            ("ing", ("", "e")))  # fmt: skip


@lru_cache(maxsize=1)
def _irregular() -> Mapping[str, str]:
    rows: Mapping[str, str] = shipped_table("katha_sketch.english", "senses.yaml")["irregular"]
    return {form: base for base, listed in rows.items() for form in listed.split()}


def _without(text: str, tokens: Sequence[_Token], at: int) -> str:
    """A text that names a thing without the part of it at a place: at the wall, not at the foot of the wall."""
    if at + 2 >= len(tokens) or tokens[at + 1].text != "of":
        return text
    own = at and tokens[at - 1].text in _DETERMINERS
    start = tokens[at - 1].start if own else tokens[at].start
    rest = text[tokens[at + 2].start :]
    return text[:start] + rest if start else rest[:1].upper() + rest[1:]


def _elsewhere(text: str, tokens: Sequence[_Token], at: int, phrase: str) -> str:
    """A text with another preposition and what stands behind it: under a tree, not in the shade."""
    first = at - 1 if at and tokens[at - 1].text in _DETERMINERS else at
    if first == 0 or tokens[first - 1].text not in _LINKS:
        return text
    of = " " not in phrase and at + 1 < len(tokens) and tokens[at + 1].text == "of"
    return text[: tokens[first - 1].start] + phrase + text[tokens[at + of].end :]


def _whole(tokens: Sequence[_Token], at: int) -> str:
    return " ".join(token.text for token in tokens[max(0, at - 2) : at + 1])


@lru_cache(maxsize=1)
def _wholes() -> frozenset[str]:
    """What is named by what it is of: "deck of cards"."""
    return frozenset(one.said for senses in _tables()[1].values() for one in senses if " of " in one.said)


@lru_cache(maxsize=1)
def _plain() -> frozenset[str]:
    return frozenset(str(shipped_table("katha_sketch.english", "senses.yaml")["plain"]).split())


# Verbs by what stands around them in a prompt.


def _done(text: str) -> str:
    """A text whose verbs say what is done: "the train arrives" for "the train rolls in"."""
    for one in dict.fromkeys(form for token in _tokens(text) for form in token.forms if form in _verbs()):
        verb = f"to {one}"
        for meaning in _verbs()[one]:
            for pattern in meaning.like:
                tokens = _tokens(text)
                if _stands(pattern, tokens, verb):
                    text = _doing(text, tokens, verb, meaning.said, pattern)
    return text


def _doing(text: str, tokens: Sequence[_Token], verb: str, said: str, pattern: Sequence[tuple[_Part, bool]]) -> str:
    """A text with another verb, in the same form, for a verb and what the pattern has right behind it."""
    own = next(n for n, (part, _) in enumerate(pattern) if part is None)
    behind = []
    for (_, tight), (part, _) in pairwise(pattern[own:]):
        if not tight:
            break
        behind.append(part or frozenset())
    for at in range(len(tokens) - 1, -1, -1):
        after = tokens[at + 1 : at + 1 + len(behind)]
        present = tokens[at].text not in _irregular() and not tokens[at].text.endswith("ed")
        fits = (
            present
            and len(after) == len(behind)
            and all(part & one.forms for part, one in zip(behind, after, strict=True))
        )
        if not fits or not _is(tokens, at, verb) or (own == 0 and not _goes_on(pattern, tokens, at, verb)):
            continue
        last = at + len(behind)
        text = text[: tokens[at].start] + _formed(said, tokens[at].text) + text[tokens[last].end :]
    return text


def _formed(said: str, form: str) -> str:
    """A verb with its particle in the form of another: "blows out" like "puts"."""
    first, _, rest = said.partition(" ")
    if form.endswith("ing"):
        first = f"{first.removesuffix('e') if not first.endswith('ee') else first}ing"
    elif form.endswith("s") and not form.endswith("ss"):
        first = third(first)
    return f"{first} {rest}" if rest else first


@lru_cache(maxsize=1)
def _verbs() -> Mapping[str, tuple[_Meaning, ...]]:
    rows = shipped_table("katha_sketch.english", "senses.yaml")["verbs"]
    return {word: tuple(_meant(said, told) for said, told in senses.items()) for word, senses in rows.items()}


# Words by what a story is about.


def _by_theme(text: str, sentence: str, story: str) -> str:
    """The first theme whose cues are found counts; a word without cues beside it means what it meant when the story
    first had it: the crane that lifted a beam is that crane when it turns."""
    done = set(_tables()[1])
    near, far = _meant_in(sentence), _meant_in(story)
    for later in (False, True):
        for at, theme in enumerate(_tables()[0]):
            fresh = {word: phrase for word, phrase in theme.said.items() if word not in done}
            if later:
                fresh = {word: phrase for word, phrase in fresh.items() if at in _first_meant(story, word)}
            if fresh and at in (far if later or not theme.near else near):
                text = replace(theme, said=fresh).instead(text)
                done |= set(fresh)
    return text


@lru_cache(maxsize=64)
def _meant_in(text: str) -> frozenset[int]:
    """The themes, by their places, whose cues a text holds: one look at a long story, however many pictures it has."""
    lower = text.lower()
    return frozenset(at for at, theme in enumerate(_tables()[0]) if theme.cues.search(lower))


@lru_cache(maxsize=512)
def _first_meant(text: str, word: str) -> frozenset[int]:
    """The themes whose cues stand in the first sentence of a text that has a word."""
    named = re.compile(rf"\b{re.escape(word)}(?:e?s)?\b")
    first = next((one for one in _ENDS.split(text.lower()) if named.search(one)), "")
    return _meant_in(first) if first else frozenset()


def _with(words: Words, other: tuple[tuple[str, str], ...]) -> Words:
    changed = dict(other)
    things = {word for word, kind in other if kind == "thing"}
    sets = {**words.sets, "place": words.sets["place"] - things}
    sets |= {name: listed - changed.keys() for name, listed in words.sets.items() if name.split(".")[0] in _LIVING}
    groups = {name: {word: part for word, part in rows.items() if word not in changed or name not in _LIVING}
              for name, rows in words.groups.items()}  # fmt: skip
    sexes = {word: sex for word, sex in words.sexes.items() if word not in changed}
    ages = {word: age for word, age in words.ages.items() if word not in changed}
    return replace(words, sets=sets, groups=groups, sorts={**words.sorts, **changed}, sexes=sexes, ages=ages)


def _pattern(listed: str) -> re.Pattern[str]:
    """Any of some words, also in the plural, the past or as "-ing"."""
    words = "|".join(re.escape(word.replace("_", " ")) for word in listed.split())
    return re.compile(rf"\b(?:{words})(?:e?s|e?d|ing)?\b")


@lru_cache(maxsize=1)
def _tables() -> tuple[tuple[_Theme, ...], Mapping[str, tuple[_Meaning, ...]]]:
    """The themes, and the senses of each ambiguous word."""
    rows = shipped_table("katha_sketch.english", "senses.yaml")
    themes = tuple(
        _Theme(
            _pattern(row["cues"]),
            bool(row.get("near")),
            row["said"],
            str(row.get("kind", "")),
            str(row.get("shows", "")),
            _pattern(row["with"]) if "with" in row else None,
        )
        for row in rows["themes"]
    )
    words = {
        word: tuple(_meant(said, told or {}) for said, told in senses.items()) for word, senses in rows["words"].items()
    }
    return themes, words


def _meant(said: str, row: Mapping[str, Any]) -> _Meaning:
    listed = {part: frozenset(str(row.get(part, "")).split()) for part in ("near", "tale")}
    like = tuple(_like(one) for one in str(row.get("like", "")).split(", ") if one)
    return _Meaning(
        said,
        listed["near"],
        listed["tale"],
        like,
        str(row.get("kind", "")),
        bool(row.get("usual")),
        bool(row.get("single")),
    )


def _like(pattern: str) -> tuple[tuple[_Part, bool], ...]:
    """A pattern's places; "+" joins what stands side by side: "knock on ~", "~ of boat|ship", "violin+~"."""
    found: list[tuple[_Part, bool]] = []
    for group in pattern.split():
        parts = group.split("+")
        for n, part in enumerate(parts):
            found.append((None if part == "~" else frozenset(part.split("|")), n < len(parts) - 1))
    return tuple(found)
