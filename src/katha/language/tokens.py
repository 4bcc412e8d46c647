"""Text to sentences and words. Words inside quotation marks are marked as speech."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Sentence", "Word", "split_sentences"]

_PIECES = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*|\d+|'(?:s|re|m|ll|d|ve|t)\b|n't\b|[.!?;:,\"()\u2014-]|--|'")
_CONTRACTION = re.compile(r"\b([A-Za-z]+)n't\b")
_TABLE = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": ",", "\u2014": ","})
_ABBREVIATION = re.compile(r"\b(Mr|Mrs|Dr|St)\.")
_STOPS = frozenset(".!?")


@dataclass(frozen=True)
class Word:
    """One word or punctuation mark. `lower` is its lower-case form; `speech` holds inside quotation marks."""

    text: str
    lower: str
    speech: bool


@dataclass(frozen=True)
class Sentence:
    """One sentence: its text as written and its words."""

    text: str
    words: tuple[Word, ...]


def _ends(pieces: list[re.Match[str]], at: int, in_quote: bool) -> bool:
    """Whether a sentence ends after the piece at index `at`."""
    piece = pieces[at].group()
    if piece in _STOPS:
        return not in_quote
    following = pieces[at + 1].group() if at + 1 < len(pieces) else ""
    closed = piece == '"' and not in_quote and at > 0 and pieces[at - 1].group() in _STOPS
    return closed and (not following or following[0].isupper() or following == '"')


def split_sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of `text`. Speech stays with the sentence that reports it ("..." he said.)."""
    clean = _ABBREVIATION.sub(r"\1", text.translate(_TABLE))
    clean = re.sub(r"\bcan't\b", "can n't", re.sub(r"\bwon't\b", "will n't", clean))
    clean = _CONTRACTION.sub(r"\1 n't", clean)
    sentences: list[Sentence] = []
    for paragraph in re.split(r"\n\s*\n", clean):
        sentences.extend(_paragraph(paragraph))
    return tuple(sentences)


def _paragraph(text: str) -> list[Sentence]:
    pieces = list(_PIECES.finditer(text))
    found: list[Sentence] = []
    words: list[Word] = []
    in_quote = False
    start = 0
    for at, piece in enumerate(pieces):
        token = piece.group()
        if token == '"':
            in_quote = not in_quote
        words.append(Word(token, token.lower(), in_quote or token == '"'))
        if _ends(pieces, at, in_quote):
            found.append(_sentence(text[start : piece.end()], words))
            start, words = piece.end(), []
    if any(word.text[0].isalnum() for word in words):
        found.append(_sentence(text[start:], words))
    return [sentence for sentence in found if sentence.words]


def _sentence(text: str, words: list[Word]) -> Sentence:
    return Sentence(" ".join(text.split()), tuple(words))
