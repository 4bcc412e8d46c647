"""A text cut into sentences as a reader counts them, and into the smaller pieces that the parser is given."""

from __future__ import annotations

import re
from dataclasses import dataclass

from katha.text.words import load_words

__all__ = ["Piece", "clean", "pieces_of"]

_QUOTES = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "\u00a0": " ", "\t": " "}
)
_SINGLE = re.compile(r"(?<![\w'])'(?=[A-Z\w])((?:(?<=\w)'(?=\w)|[^'\n])+?[,.!?…—-])'(?!\w)")
_END = re.compile(r"[.!?…]+[\"')\]]*(?=\s|$)")
_BLANK = re.compile(r"\n\s*\n+")
_MOST_FRAME = 5


@dataclass(frozen=True)
class Piece:
    """What is parsed at once: a sentence, or one of several in one pair of quotes.

    start: where it stands in the cleaned text. quoted: spans of it that stand in quotes. open: its quotes began in the
    piece before.
    """

    text: str
    start: int
    sentence: int
    paragraph: int
    quoted: tuple[tuple[int, int], ...] = ()
    open: bool = False


def clean(text: str) -> str:
    """Return the text with straight double quotes, one blank between words, and one empty line between paragraphs."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").translate(_QUOTES).strip("\ufeff")
    if '"' not in plain:
        plain = _SINGLE.sub(r'"\1"', plain)
    parts = _BLANK.split(plain.strip())
    if len(parts) == 1 and "\n" in plain:
        lines = [line.strip() for line in plain.strip().split("\n")]
        if sum(bool(re.search(r"[.!?…\"')]$", line)) for line in lines) >= 0.8 * len(lines):
            parts = lines
    return "\n\n".join(" ".join(part.split()) for part in parts if part.strip())


def _frame_follows(rest: str) -> bool:
    """Whether a new word in capitals begins who said it: '"Stop!" Ben shouted.'"""
    short = re.sub(r"\b([A-Z][a-z]{1,3})\.(?= [A-Z])", r"\1", rest[:80])
    head = re.split(r"[,.;:!?\"]", short, maxsplit=1)[0].split()[: _MOST_FRAME + 1]
    said = load_words().sets["say_past"]
    at = next((index for index, word in enumerate(head) if word.lower() in said), None)
    return at is not None and at > 0 and not any(word.lower() in ("and", "then") for word in head[:at])


def _breaks(paragraph: str) -> list[tuple[int, bool]]:
    """Where pieces end, and whether the sentence goes on there (inside quotes)."""
    found: list[tuple[int, bool]] = []
    abbreviations = load_words().sets["abbreviations"]
    for match in _END.finditer(paragraph):
        end = match.end()
        rest = paragraph[end:].lstrip()
        if not rest:
            break
        last = paragraph[max(0, match.start() - 12) : match.start()].rsplit(" ", 1)[-1].strip('"(')
        initial = len(last) == 1 and last.isupper() and last != "I"
        if match[0] == "." and (last.lower() in abbreviations or initial):
            continue
        inside = paragraph.count('"', 0, end) % 2 == 1
        closes = '"' in match[0] and not inside
        if rest[0].islower() or (closes and _frame_follows(rest)):
            continue
        found.append((end, inside))
    found.append((len(paragraph), False))
    return found


def _quoted(text: str, inside: bool) -> tuple[tuple[int, int], ...]:
    marks = [at for at, letter in enumerate(text) if letter == '"']
    if inside:
        marks.insert(0, -1)
    if len(marks) % 2:
        marks.append(len(text))
    return tuple((marks[at] + 1, marks[at + 1]) for at in range(0, len(marks), 2))


def pieces_of(text: str) -> list[Piece]:
    """Return the pieces of a cleaned text, in order."""
    pieces: list[Piece] = []
    sentence = at = 0
    for number, paragraph in enumerate(text.split("\n\n")):
        begin, inside = 0, False
        for end, goes_on in _breaks(paragraph):
            raw = paragraph[begin:end]
            blank = len(raw) - len(raw.lstrip())
            if raw.strip():
                spans = _quoted(raw.strip(), inside)
                pieces.append(Piece(raw.strip(), at + begin + blank, sentence, number, spans, inside))
                sentence += not goes_on
            begin, inside = end, goes_on
        at += len(paragraph) + 2
    return pieces
