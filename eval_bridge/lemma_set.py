"""The rule `lemma-set`: does an answer say what one of the accepted answers says, in other words?

An answer is right when some accepted answer's content words are all in it (by stem and synonym group), and

- it denies nothing that the accepted answer does not deny, and the other way round;
- the clause that holds them is about somebody whom the question or an accepted answer allows as its subject: with
  another subject the roles are exchanged;
- the verb has the same voice ("is mocked" is not "mocks");
- an accepted noun phrase is what the answer names, not something that its verb acts on;
- nothing else in it is the opposite of what was accepted.

Deterministic, without a model. The order of rejection gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from katha.eval_bridge.lemmas import Word, lexicon, read_words

__all__ = ["same_meaning"]

_BE = frozenset(("is", "are", "was", "were", "be", "been", "being", "gets", "get", "got"))
_AUXILIARY = _BE | {"do", "does", "did", "has", "have", "had", "will", "would", "can", "could", "must", "feels", "feel"}
_DETERMINERS = frozenset(("the", "a", "an", "his", "her", "its", "their", "some", "two", "three", "another"))
_SUBJECT_PRONOUNS = frozenset(("he", "she", "it", "they"))
_LEADS = frozenset(("so", "because", "that", "then", "and", "but", "while", "when", "as"))
_OBJECTS = frozenset(("him", "it", "them", "me", "us"))
_HE, _SHE = frozenset(("he", "him")), frozenset(("she",))
_BREAKS = frozenset(("and", "but", "while", "whereas", "so", "then", "because", "as", "when"))
_PLACES = frozenset(
    (
        *("in", "on", "at", "to", "of", "for", "from", "with", "by", "after", "before", "when", "once", "as", "under"),
        *("near", "over", "into", "against", "toward", "between", "right", "just", "around", "during", "without"),
    )
)
_POSSESSOR = re.compile(r"\w+['\u2019]s?\s")
_ASKING = frozenset(("what", "why", "how", "which", "who", "where", "whom", "whose"))


@dataclass(frozen=True)
class _Clause:
    """A stretch of an answer with one subject. `subject` holds the stems of its explicit subject, if it has one."""

    words: tuple[Word, ...]
    subject: frozenset[str]
    pronoun: str
    verb_at: int

    @property
    def content(self) -> frozenset[str]:
        return frozenset(word.stem for word in self.words if word.content)


def _is_verb(word: Word, after_noun: bool) -> bool:
    """A rough guess from the form alone, for a word that follows a noun or pronoun."""
    if word.surface in _AUXILIARY:
        return True
    ending = word.surface.endswith(("s", "ed", "ing")) and not word.surface.endswith(("ss", "ness"))
    return after_noun and word.content and (ending or word.surface in lexicon().irregular)


def _subject(words: Sequence[Word]) -> tuple[frozenset[str], str, int]:
    """The explicit subject's stems (its head last in the text), the subject pronoun, where the verb is (-1: nowhere).

    A subject without determiner counts only before a form of "be"; "taps the drum and bites it" has none.
    """
    start = next((at for at, word in enumerate(words) if word.surface not in _LEADS), 0)
    if words and words[start].surface in _SUBJECT_PRONOUNS:
        return frozenset(), words[start].surface, start + 1 if len(words) > start + 1 else -1
    determined = bool(words) and words[start].surface in _DETERMINERS
    nouns: list[str] = []
    for at, word in enumerate(words):
        if at < start:
            continue
        follows = words[at + 1].surface if at + 1 < len(words) else ""
        if word.surface in _DETERMINERS or word.surface == "and":
            if nouns and not determined and word.surface != "and":
                break
            continue
        acting = word.content and determined and follows in _DETERMINERS | _OBJECTS
        joined = len(nouns) == at and word.content and (word.surface.endswith("ing") or follows in _OBJECTS)
        if nouns and (word.surface in _BE or joined or (determined and (_is_verb(word, True) or acting))):
            return frozenset(nouns), "", at
        if word.surface in _PLACES or word.mark:
            after = [place for place in range(at, len(words)) if words[place].surface in _BE]
            return (frozenset(nouns), "", after[0]) if after and nouns else (frozenset(), "", -1)
        if word.content:
            nouns.append(word.stem)
    return frozenset(), "", -1


def _pieces(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Stretches between marks and conjunctions; "the X and the Y are" stays together."""
    piece: list[Word] = []
    for at, word in enumerate(words):
        follows = words[at + 1].surface if at + 1 < len(words) else ""
        starts = word.surface in _BREAKS and (
            follows in _DETERMINERS | {"he", "she", "it", "they"} or word.surface not in ("and", "as")
        )
        joined = word.surface == "and" and not any(_is_verb(item, True) for item in piece[1:])
        if word.mark or (starts and not joined):
            if piece:
                yield piece
            piece = []
        else:
            piece.append(word)
    if piece:
        yield piece


@lru_cache(maxsize=8192)
def _clauses(text: str) -> tuple[_Clause, ...]:
    return tuple(_Clause(tuple(piece), *_subject(piece)) for piece in _pieces(read_words(text)))


@lru_cache(maxsize=4096)
def _topic(question: str) -> frozenset[str]:
    """The stems of what the question asks about: its first noun phrase (both, in "between the king and the maid")."""
    words = [word for word in read_words(_POSSESSOR.sub(" ", question)) if not word.mark]
    start = next((at for at, word in enumerate(words) if word.surface in _AUXILIARY), None)
    happens = next((at for at, word in enumerate(words) if word.surface.startswith("happen")), None)
    if happens is not None and happens + 1 < len(words) and words[happens + 1].surface in ("to", "between", "with"):
        start = happens + 1
    if start is None:
        start = 0
    found: list[str] = []
    for word in words[start + 1 :]:
        if word.surface in _ASKING:
            continue
        if found and word.surface in _PLACES | _AUXILIARY:
            break
        if word.content:
            found.append(word.stem)
    return frozenset(found)


@dataclass(frozen=True)
class _Accepted:
    content: frozenset[str]
    negators: frozenset[str]
    clause: _Clause


@lru_cache(maxsize=2048)
def _accepted(texts: tuple[str, ...]) -> tuple[_Accepted, ...]:
    made = []
    for text in texts:
        words = tuple(word for word in read_words(text) if not word.mark)
        negative = frozenset(word.stem for word in words if word.negator)
        content = frozenset(word.stem for word in words if word.content and not word.negator) or negative
        clause = _Clause(words, *_subject(words))
        if content:
            made.append(_Accepted(content, negative, clause))
    return tuple(made)


def _passive(words: Sequence[Word], wanted: frozenset[str]) -> bool | None:
    """Voice of the first wanted word that looks like a verb form: True, False, or None if it does not tell."""
    for at, word in enumerate(words):
        if word.stem not in wanted or not word.content:
            continue
        before = {item.surface for item in words[max(0, at - 3) : at]}
        irregular = word.surface in lexicon().irregular and not word.surface.endswith("s")
        participle = word.surface.endswith(("ed", "en", "wn")) or irregular
        if participle and (before & _BE or at == 0):
            return True
        third = word.surface.endswith("s") and not word.surface.endswith("ss")
        if third and at and words[at - 1].surface not in _DETERMINERS and not participle:
            return False
    return None


def _foreign(clause: _Clause, allowed: frozenset[str], pronouns: frozenset[str], asked: frozenset[str]) -> bool:
    """Whether the clause is about somebody else: none of its subject is allowed, or it is another asked-about one."""
    if clause.subject:
        return not clause.subject & allowed or bool((clause.subject - allowed) & asked)
    other = {"he": _SHE, "she": _HE}.get(clause.pronoun, frozenset())
    return bool(other & pronouns) and clause.pronoun not in pronouns


def _denied(words: Sequence[Word], content: frozenset[str]) -> frozenset[str]:
    """The negators that bear on `content`: "no" and "without" only on the two content words that follow."""
    found = set()
    for at, word in enumerate(words):
        if not word.negator:
            continue
        following = [item.stem for item in words[at + 1 :] if item.content][:2]
        if word.stem not in lexicon().local or set(following) & content:
            found.add(word.stem)
    return frozenset(found)


def _opposed(extra: frozenset[str], content: frozenset[str]) -> bool:
    pairs = lexicon().opposites
    return any((one, two) in pairs for one in extra for two in content)


@dataclass(frozen=True)
class _Asked:
    """What the question allows: subjects, subject pronouns, and every content word in it."""

    allowed: frozenset[str]
    pronouns: frozenset[str]
    words: frozenset[str]


def _why_not(clause: _Clause, item: _Accepted, asked: _Asked) -> str | None:
    """What keeps `clause`, which holds all of the accepted words, from saying the same; None if nothing does."""
    if _denied(clause.words, item.content) != item.negators:
        return "negation"
    if _foreign(clause, asked.allowed | item.content, asked.pronouns, asked.words):
        return "another subject"
    places = [at for at, word in enumerate(clause.words) if word.stem in item.content]
    if _exchanged(clause, item):
        return "roles exchanged"
    voices = _passive(clause.words, item.content), _passive(item.clause.words, item.content)
    if (None not in voices and voices[0] != voices[1]) or (voices[1] and not voices[0]):
        return "another voice"
    acting = clause.verb_at >= 0 and clause.words[clause.verb_at].surface not in _BE
    if acting and item.clause.verb_at < 0 and _is_noun_phrase(item) and places and places[-1] > clause.verb_at:
        return "named as something else's object"
    if _opposed(clause.content - item.content, item.content):
        return "the opposite is said as well"
    return None


def _exchanged(clause: _Clause, item: _Accepted) -> bool:
    """Whether the accepted doer is not among the clause's doers, or the clause's doer is who is acted on."""
    if clause.verb_at < 0:
        return False
    before = {word.stem for word in clause.words[: clause.verb_at]}
    said = {word.stem for word in clause.words}
    acts = item.clause.verb_at >= 0 or item.clause.words[0].surface == "to"
    acted_on = clause.subject & (item.content - item.clause.subject) if acts else frozenset()
    return bool((item.clause.subject & said) - before) or bool(acted_on)


def _is_noun_phrase(item: _Accepted) -> bool:
    return bool(item.clause.words) and item.clause.words[0].surface in _DETERMINERS


def _asked(items: Sequence[_Accepted], question: str) -> _Asked:
    subjects = frozenset().union(*(item.clause.subject for item in items)) if items else frozenset()
    pronouns = frozenset(item.clause.pronoun for item in items if item.clause.pronoun)
    words = frozenset(word.stem for word in read_words(question) if word.content)
    return _Asked(_topic(question) | subjects, pronouns, words)


def same_meaning(answer: str, accepted: Sequence[str], question: str) -> tuple[bool, str]:
    """Whether `answer` says the same as one of `accepted`, and the reason in one phrase."""
    items, clauses = _accepted(tuple(accepted)), _clauses(answer)
    asked = _asked(items, question)
    spoken = tuple(word for word in read_words(answer) if not word.mark)
    everything = _Clause(spoken, *_subject(spoken))
    reason = "no accepted answer is said"
    for item in items:
        if not item.content <= everything.content | _negative(spoken) or item.content <= asked.words:
            continue
        holders = [clause for clause in clauses if item.content <= clause.content] or [everything]
        for clause in holders:
            problem = _why_not(clause, item, asked)
            inherits = not clause.subject and not clause.pronoun and clauses[0].subject
            if problem is None and inherits and _foreign(clauses[0], asked.allowed, asked.pronouns, asked.words):
                problem = "another subject"
            if problem is None:
                return True, f"says {' '.join(word.surface for word in item.clause.words)!r}"
            reason = problem
    return False, reason


def _negative(words: Sequence[Word]) -> frozenset[str]:
    return frozenset(word.stem for word in words if word.negator)
