"""Clauses of short answers: who acts, who is acted on, and what comes first. A rough guess from form alone.

No tagger and no model: determiners, pronouns, forms of "be", prepositions and endings decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from katha_sketch.matching.lemmas import Word, lexicon, read_words
from katha_sketch.vocabulary.inflect import is_plural

BE = frozenset(("is", "are", "was", "were", "be", "been", "being", "gets", "get", "got", "becomes", "become", "became"))
AUXILIARY = BE | {
    *("do", "does", "did", "has", "have", "had", "will", "would", "can", "could", "must", "feels", "feel", "felt"),
    *("may", "might", "should", "shall"),
}
DETERMINERS = frozenset(
    ("the", "a", "an", "his", "her", "its", "their", "some", "two", "three", "another", "all", "every", "each", "both")
)
PLACES = frozenset(
    (
        *("in", "on", "at", "to", "of", "for", "from", "with", "by", "after", "before", "when", "once", "as", "under"),
        *("near", "over", "into", "against", "toward", "towards", "between", "right", "just", "around", "during"),
        *("without", "through", "onto", "upon", "until", "off", "across", "behind", "beside", "above", "below"),
        *("underneath", "beneath", "inside", "outside", "within", "along", "among"),
    )
)
_SUBJECT_PRONOUNS = frozenset(("he", "she", "it", "they"))
_OBJECT_PRONOUNS = frozenset(("him", "her", "it", "them", "me", "us"))
_LEADS = frozenset(("so", "because", "that", "then", "and", "but", "while", "when", "as", "first", "thanks", "since"))
_BREAKS = frozenset(("and", "but", "while", "whereas", "so", "then", "because", "as", "when"))
_ADVERBS = frozenset(("not", "never", "very", "all", "also", "still", "finally", "almost", "just", "now", "again"))


@dataclass(frozen=True)
class Clause:
    """A stretch of an answer with one subject, its nouns by stem.

    subject, object: as the words stand; pronoun, object_pronoun: where one stands instead. agent, patient: who acts
    and who is acted on, a passive turned round. verb_at: the place of the (first) verb, -1 where none was found.
    """

    words: tuple[Word, ...]
    subject: frozenset[str] = frozenset()
    pronoun: str = ""
    verb_at: int = -1
    passive: bool = False
    agent: frozenset[str] = frozenset()
    patient: frozenset[str] = frozenset()
    object_pronoun: bool = False

    @property
    def content(self) -> frozenset[str]:
        """The stems of the content words."""
        return frozenset(word.stem for word in self.words if word.content)

    @property
    def bare_participle(self) -> str:
        """The stem of a participle that stands alone for a passive ("left on the ground"); empty without one."""
        open_end = _next(self.words, 0) not in DETERMINERS | _OBJECT_PRONOUNS
        return self.words[0].stem if self.words and open_end and _participle(self.words[0]) else ""

    @property
    def agent_pronoun(self) -> str:
        """The pronoun that stands for who acts."""
        return "" if self.passive else self.pronoun

    @property
    def patient_pronoun(self) -> bool:
        """Whether a pronoun stands for who is acted on."""
        return bool(self.pronoun) if self.passive else self.object_pronoun


def verb_form(word: Word) -> bool:
    """Whether a content word looks like a verb where one is due."""
    ending = word.surface.endswith(("s", "ed", "ing")) and not word.surface.endswith(("ss", "ness"))
    return word.content and (ending or word.surface in lexicon().irregular)


def _next(words: Sequence[Word], at: int) -> str:
    return words[at + 1].surface if at + 1 < len(words) else ""


def _find_verb(words: Sequence[Word]) -> tuple[frozenset[str], str, int]:
    """The explicit subject's stems, the subject pronoun, and where the verb is (-1: nowhere)."""
    start = next((at for at, word in enumerate(words) if word.surface not in _LEADS), len(words))
    if start >= len(words):
        return frozenset(), "", -1
    first = words[start]
    if first.surface in _SUBJECT_PRONOUNS:
        return frozenset(), first.surface, start + 1 if len(words) > start + 1 else -1
    bare = first.content and not (first.surface in lexicon().irregular and not first.surface.endswith("s"))
    gerund = first.surface == "by" and _next(words, start).endswith("ing")
    led = gerund or first.surface == "to"
    if led or (verb_form(first) and _next(words, start) in DETERMINERS | _OBJECT_PRONOUNS | PLACES):
        return frozenset(), "", start + led
    if bare and not verb_form(first) and start + 1 < len(words) and verb_form(words[start + 1]):
        return frozenset((first.stem,)), "", start + 1
    return _after_nouns(words, start)


def _after_nouns(words: Sequence[Word], start: int) -> tuple[frozenset[str], str, int]:
    """The verb behind a noun phrase. Without a determiner only a form of "be" shows that the phrase is a subject."""
    determined = words[start].surface in DETERMINERS
    nouns: list[str] = []
    for at in range(start, len(words)):
        word, follows = words[at], _next(words, at)
        if word.surface in DETERMINERS or word.surface == "and":
            if nouns and not determined and word.surface != "and":
                break
            continue
        joined = len(nouns) == at and word.content and (word.surface.endswith("ing") or follows in _OBJECT_PRONOUNS)
        plural = len(nouns) > 0 and words[at - 1].content and is_plural(words[at - 1].surface)
        acting = word.content and determined and (plural or follows in DETERMINERS | _OBJECT_PRONOUNS)
        spoken = determined and (verb_form(word) or acting or word.surface in AUXILIARY or word.negator)
        if nouns and (word.surface in AUXILIARY or joined or spoken):
            return frozenset(nouns), "", at
        if word.surface in PLACES:
            late = [place for place in range(at, len(words)) if words[place].surface in BE]
            return (frozenset(nouns), "", late[0]) if late and nouns else (frozenset(), "", -1)
        if word.content:
            nouns.append(word.stem)
    return frozenset(), "", -1


def _participle(word: Word) -> bool:
    irregular = word.surface in lexicon().irregular and not word.surface.endswith("s")
    return word.content and (word.surface.endswith(("ed", "en", "wn")) or irregular)


def _phrase(words: Sequence[Word], start: int) -> frozenset[str]:
    """The content words from `start` to the next preposition, conjunction or auxiliary."""
    found: list[str] = []
    for word in words[start:]:
        if word.surface in PLACES | AUXILIARY | _BREAKS:
            break
        if word.content:
            found.append(word.stem)
    return frozenset(found)


@lru_cache(maxsize=16384)
def read_clause(words: tuple[Word, ...]) -> Clause:
    """Subject, verb and object of `words`, which hold no marks."""
    subject, pronoun, verb = _find_verb(words)
    if verb < 0 or verb >= len(words):
        return Clause(words, subject, pronoun)
    main = verb
    while main + 1 < len(words) and (words[main].surface in AUXILIARY | _ADVERBS or words[main].negator):
        main += 1
    helped = any(word.surface in BE for word in words[verb:main])
    passive = helped and _participle(words[main])
    if passive:
        by = next((at for at in range(main + 1, len(words)) if words[at].surface == "by"), -1)
        agent = _phrase(words, by + 1) if by >= 0 else frozenset()
        return Clause(words, subject, pronoun, verb, True, agent, subject)
    after = _next(words, main)
    object_pronoun = after in _OBJECT_PRONOUNS and not (after == "her" and _is_noun(words, main + 2))
    patient = frozenset() if object_pronoun else _phrase(words, main + 1)
    return Clause(words, subject, pronoun, verb, False, subject, patient, object_pronoun)


def _is_noun(words: Sequence[Word], at: int) -> bool:
    return at < len(words) and words[at].content


def _pieces(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Stretches between marks and conjunctions; "the X and the Y are" stays together, a lone "not" goes on."""
    piece: list[Word] = []
    for at, word in enumerate(words):
        follows = _next(words, at)
        starts = word.surface in _BREAKS and (
            follows in DETERMINERS | _SUBJECT_PRONOUNS or word.surface not in ("and", "as")
        )
        joined = word.surface == "and" and not any(item.surface in AUXILIARY or verb_form(item) for item in piece[1:])
        if word.mark or (starts and not joined):
            if any(item.content and not item.negator for item in piece):
                yield piece
                piece = []
            else:
                piece = [item for item in piece if item.negator]
        else:
            piece.append(word)
    if piece:
        yield piece


@lru_cache(maxsize=8192)
def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of `text` in order."""
    return tuple(read_clause(tuple(piece)) for piece in _pieces(read_words(text)))


_THEN = frozenset(("then", "afterwards", "later", "finally"))
_ORDERING = _THEN | {"before", "after", "first", "once", "following", "follows", "followed"}
_SHORT_SIDE = 2

Order = tuple[frozenset[str], frozenset[str]]
Moment = tuple[str, frozenset[str]]


@lru_cache(maxsize=8192)
def order_of(text: str) -> Order | None:
    """What comes first and what comes next, where `text` puts two things in order; None where it does not."""
    words = read_words(text)
    surfaces = [word.surface for word in words]
    for at, surface in enumerate(surfaces):
        if surface == "before" or surface in _THEN or surfaces[at : at + 2] == ["followed", "by"]:
            found = _sides(words, at)
        elif surface in ("after", "once", "follows"):
            found = _sides(words, at, turned=True)
        elif surface == "to" and _states(words, at):
            found = _sides(words, at)
        else:
            continue
        if found is not None:
            return found
    return None


def moment_of(words: Sequence[Word]) -> Moment | None:
    """The first "before" or "after" of `words`, and the content that follows it up to a mark; None without one."""
    at = next((place for place, word in enumerate(words) if word.surface in ("before", "after")), None)
    if at is None:
        return None
    following = takewhile(lambda word: not word.mark, words[at + 1 :])
    return words[at].surface, frozenset(word.stem for word in following if word.content)


def _states(words: Sequence[Word], at: int) -> bool:
    """Whether the "to" at `at` joins two states: "from fear to relief", "scared to happy"."""
    surfaces = [word.surface for word in words]
    if "from" in surfaces[:at]:
        return True
    sides = [surfaces[:at], surfaces[at + 1 :]]
    return all(0 < len(side) <= _SHORT_SIDE and not set(side) & (DETERMINERS | PLACES) for side in sides) and all(
        not verb_form(word) or word.surface.endswith("ed") for word in words[:at]
    )


def _sides(words: Sequence[Word], at: int, *, turned: bool = False) -> Order | None:
    """The content before and after the word at `at`; a leading "before X, Y" stands for "Y before X"."""
    left, right = words[:at], words[at + 1 :]
    if not _contents(left):
        comma = next((place for place, word in enumerate(right) if word.mark), None)
        if comma is None:
            return None
        left, right = right[comma:], right[:comma]
    first, second = _contents(left), _contents(right)
    if not first or not second:
        return None
    return (second, first) if turned else (first, second)


def _contents(words: Sequence[Word]) -> frozenset[str]:
    return frozenset(word.stem for word in words if word.content and word.surface not in _ORDERING)
