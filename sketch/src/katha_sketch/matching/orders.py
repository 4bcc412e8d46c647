"""What comes first in a short answer: "A before B", "from A to B". A rough guess from form alone, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from katha_sketch.matching.lemmas import Word, lexicon, read_words

__all__ = ["Moment", "Order", "moment_of", "order_of"]

_DETERMINERS = frozenset(
    ("the", "a", "an", "his", "her", "its", "their", "some", "two", "three", "another", "all", "every", "each", "both")
)
_PLACES = frozenset(
    (
        *("in", "on", "at", "to", "of", "for", "from", "with", "by", "after", "before", "when", "once", "as", "under"),
        *("near", "over", "into", "against", "toward", "towards", "between", "right", "just", "around", "during"),
        *("without", "through", "onto", "upon", "until", "off", "across", "behind", "beside", "above", "below"),
        *("underneath", "beneath", "inside", "outside", "within", "along", "among"),
    )
)
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


def _verb_form(word: Word) -> bool:
    """Whether a content word looks like a verb where one is due."""
    ending = word.surface.endswith(("s", "ed", "ing")) and not word.surface.endswith(("ss", "ness"))
    return word.content and (ending or word.surface in lexicon().irregular)


def _states(words: Sequence[Word], at: int) -> bool:
    """Whether the "to" at `at` joins two states: "from fear to relief", "scared to happy"."""
    surfaces = [word.surface for word in words]
    if "from" in surfaces[:at]:
        return True
    sides = [surfaces[:at], surfaces[at + 1 :]]
    return all(0 < len(side) <= _SHORT_SIDE and not set(side) & (_DETERMINERS | _PLACES) for side in sides) and all(
        not _verb_form(word) or word.surface.endswith("ed") for word in words[:at]
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
