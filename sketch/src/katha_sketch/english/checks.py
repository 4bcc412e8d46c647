"""What kind of text somebody gives: a story, or a poem, recipe, list, another language, nothing to see.

Each outcome has one sentence for a person; `usable` says whether reading may go on. Scripts and other forms are made
into prose before (`katha.intake`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from katha_sketch.english.reading import Scene, read_story
from katha_sketch.english.sentences import BULLET, clean, turns_of
from katha_sketch.english.types import InputKind, Reading, TextCheck
from katha_sketch.english.words import load_words

__all__ = ["check_input", "check_words", "read_text"]

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_AMOUNT = re.compile(
    r"\b(?:\d+|\d+/\d+|½|¼|half a|a|one|two|three)\s*"
    r"(?:g|kg|ml|l|cl|dl|oz|cups?|tbsp|tsp|tablespoons?|teaspoons?|grams?|pinch|cloves?)\b",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.!?…][\"')\]]*$")
_MARKUP = re.compile(
    r"\A\s*(?:<!doctype|<html|<\?xml|\{\\rtf)|</(?:p|div|body|span|li|h[1-6]|td|tr|script)>", re.IGNORECASE
)
_CODE = re.compile(
    r"^(?:def \w+\(|class \w+[(:{]|import [\w.]+;?$|from [\w.]+ import |#include|"
    r"(?:const|let|var) \w+ ?=|function \w*\(|(?:public|private|static) \w+ \w+|return [\w+*/ .()-]+;?$|pass$)"
    r"|.*(?:[{}]|\);)$"
)
_FEWEST_MARKS, _FEWEST_CODE = 3, 0.5
_LONG = 3_000
_LEAST_VERSE = 3
_FEWEST_WORDS = 2
_FEWEST_ENGLISH, _FEWEST_ENGLISH_FEW, _LEAST_LATIN = 0.15, 0.1, 0.7
_FEW_WORDS, _FEWEST_LETTERS, _FEWEST_FOREIGN, _PART = 12, 6, 3, 12
_PAST_LATIN = "\u0250"  # "Élise" is a Latin word
_QUOTED = re.compile(r"[\"“„«][^\"“”»\n]*[\"”»]")
_NOT_ENGLISH = "{} does not read as English, the only language read here; translate it, or choose another planner."
_ONLY = ("empty", "code", "language", "recipe", "no_event")
_SAID: Mapping[InputKind, str] = {
    "story": "",
    "empty": "There is no story here yet; tell in a few sentences who does what.",
    "code": "This is HTML or program code, not a story; give what it tells as plain text.",
    "language": _NOT_ENGLISH,
    "recipe": "This is a recipe, not a story; tell who cooks, and what happens.",
    "conversation": "This is a conversation: who speaks is drawn, not what they speak of.",
    "list": "This is a list: each of its points is read as a sentence of a story.",
    "poem": "This is a poem: it is read as a story, and what tells no event is not drawn.",
    "no_event": "Nothing happens in this text that a picture could show; say who does what, and where.",
    "one_sentence": "This is one sentence: it is drawn as it is, and more sentences give more pictures.",
    "long": "This text has about {} words: it is planned in parts, and a text for each chapter shows more of it.",
}
"""What a person is told of each kind of text; those of `_ONLY` are not read on."""
_NO_STORY = "This is a list, not a story; join its points into sentences that tell what happens."
_ORDERS = "These are instructions, not a story; tell who follows them, and what happens."


def check_input(text: str, *, script: bool = False) -> TextCheck:
    """Say what kind of text this is. script: it is one, whose lines have hardly an article."""
    words, lines = _WORD.findall(text), _lines(text)
    plain = check_words(text, script=script)
    if plain is not None:
        return plain
    shape = _shape(lines, text)
    if shape is not None and not shape.usable:
        return shape
    reading = read_story(text)
    orders = _orders(reading)
    if orders is not None:
        return orders
    if shape is not None and shape.kind in ("list", "poem") and not _tells(reading, shape):
        verse = shape.kind == "poem" and len(words) >= _LEAST_VERSE * len(lines)
        return _is("no_event") if verse else TextCheck("list", _NO_STORY, usable=False)
    if not any(event.visible for event in reading.events) and not reading.speeches:
        return _is("no_event")
    if shape is not None:
        return shape
    if len(reading.sentences) == 1:
        return _is("one_sentence")
    return _is("long", f"{len(words):,}") if len(words) > _LONG else _is("story")


def _is(kind: InputKind, *words: str) -> TextCheck:
    """A kind of text with what is said of it."""
    return TextCheck(kind, _SAID[kind].format(*words), kind not in _ONLY)


def _tells(reading: Reading, shape: TextCheck) -> bool:
    """Whether the lines of a list tell what somebody does, most of them (of a poem in short lines: any)."""
    verse = shape.kind == "poem"  # "Roses are red"
    seen = [
        event for event in reading.events if event.visible and event.who("agent") and not (verse and event.verb == "be")
    ]
    shown = [any(event.sentence == one.index for event in seen) for one in reading.sentences]
    return sum(shown) >= (1 if verse else 0.6 * len(shown))


def check_words(text: str, *, script: bool = False) -> TextCheck | None:
    """Say of a text what its words and lines alone tell, before it is read: that it is empty, code, or in another
    language; None where it has to be read."""
    words = _WORD.findall(text)
    if len(words) < _FEWEST_WORDS:
        return _is("empty")
    if _is_code(text):
        return _is("code")
    strange = _strange(text, words, script=script)
    return _is("language", strange) if strange is not None else None


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def read_text(text: str, scenes: tuple[Scene, ...] = (), *, script: bool = False) -> tuple[TextCheck, Reading | None]:
    """Read a text of any kind that can be read: what it is, and the reading, None where it cannot be used.

    scenes: of a script, where its headings stand (`katha.intake` reads them). script: it is one.
    """
    check = check_input(text, script=script)
    return (check, read_story(text, scenes)) if check.usable else (check, None)


def _orders(reading: Reading) -> TextCheck | None:
    """A recipe without amounts, or other instructions: most sentences begin with an order to nobody."""
    first = [next(iter(reading.of(one.index)), None) for one in reading.sentences]
    told = [event for event in first if event is not None and event.speech is None and not event.all("agent")]
    ordered = [event for event in told if reading.surface(event) == event.verb and not event.passive]
    if len(ordered) < max(3, 0.6 * len(first)):
        return None
    table = load_words()
    food = [role for event in ordered for role in event.all("patient", "instrument") if table.is_a("food", role.head)]
    if food:
        return _is("recipe")
    return TextCheck("list", _ORDERS, usable=False)


def _is_code(text: str) -> bool:
    """Whether a text is a page of HTML, or half of its lines are a page's or a program's."""
    marks, lines = _MARKUP.findall(text), _lines(text)
    coded = sum(bool(_CODE.match(line)) for line in lines)
    begins = bool(marks) and not marks[0].startswith("</")
    return begins or max(len(marks), coded) >= max(_FEWEST_MARKS, _FEWEST_CODE * len(lines))


def _strange(text: str, words: list[str], *, script: bool) -> str | None:
    """What of a text is not English: "This text" or "A part of this text (...)", None of an English one."""
    lower = [word.lower() for word in words]
    latin = sum(all(one < _PAST_LATIN for one in word) for word in lower) / len(lower)
    few = len(lower) < _FEW_WORDS
    closed = sum(load_words().has("english", word) for word in lower) / len(lower)
    known = sum(bool(load_words().sort(word) or load_words().sort(word.removesuffix("s"))) for word in lower) / len(
        lower
    )
    english = closed >= (_FEWEST_ENGLISH_FEW if few else _FEWEST_ENGLISH) or (few and known >= _LEAST_LATIN)
    plain = latin >= _LEAST_LATIN and (script or english)
    if not plain or _is_foreign(text):
        return "This text"
    part = ""
    for sentence in re.split(r"(?<=[.!?…。！？])\s*|\n", clean(_QUOTED.sub(" ", text))):
        part = f"{part} {sentence}".strip()
        if _is_foreign(sentence) or _is_foreign(part):
            return f'A part of this text ("{" ".join(part.split()[:6])} ...")'
        part = "" if len(part.split()) >= _PART else part
    return None


def _is_foreign(text: str) -> bool:
    """Whether a text has more closed words of other languages than of English, or another script."""
    letters, words, table = [one for one in text if one.isalpha()], _WORD.findall(text.lower()), load_words()
    if len(letters) >= _FEWEST_LETTERS and sum(not one.isascii() for one in letters) > len(letters) / 2:
        return True
    foreign = sum(table.has("foreign", word) for word in words)
    accented = any(not word.isascii() and word in text for word in words)  # no name: "corrió"
    enough = foreign >= (_FEWEST_FOREIGN - 2 * (accented and len(words) >= _FEWEST_LETTERS - 1))
    return enough and foreign > sum(table.has("english", word) for word in words)


def _shape(lines: list[str], text: str) -> TextCheck | None:
    """A recipe, conversation, list or poem by its lines."""
    amounts = len(_AMOUNT.findall(text))
    if amounts >= 3 and (
        amounts >= 5 or re.search(r"\b(?:ingredients|method|serves|preheat|oven)\b", text, re.IGNORECASE)
    ):
        return _is("recipe")
    if len(lines) < 3:
        return None
    marked = sum(bool(BULLET.match(line)) for line in lines)
    short = sum(len(_WORD.findall(line)) <= 4 and not _ENDS.search(line) for line in lines)
    if turns_of(text):
        return _is("conversation")
    if marked >= 0.7 * len(lines):
        return _is("list")
    if short >= 0.8 * len(lines):
        return _is("poem")
    counts = [len(_WORD.findall(line)) for line in lines]
    verse = sum(2 <= count <= 11 for count in counts) >= 0.9 * len(lines)
    open_ended = sum(not _ENDS.search(line) for line in lines)
    capital = sum(line[0].isupper() or line[0] in "\"'“" for line in lines)
    if len(lines) >= 4 and verse and open_ended >= 0.4 * len(lines) and capital >= 0.6 * len(lines):
        return _is("poem")
    return None
