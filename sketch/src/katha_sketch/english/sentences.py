"""A text cut into sentences as a reader counts them, and into the smaller pieces that the parser is given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from katha_sketch.english.words import load_words

__all__ = ["BULLET", "Piece", "clean", "pieces_of", "points_of", "turns_of"]

_QUOTES = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "\u00a0": " ", "\t": " "}
)
_SINGLE = re.compile(r"(?<![\w'])'(?=[A-Z\w])((?:(?<=\w)'(?=\w)|[^'\n])+?[,.!?…—-])'(?!\w)")
_END = re.compile(r"[.!?…]+[\"')\]]*(?=\s|$)")
_BLANK = re.compile(r"\n\s*\n+")
_MOST_FRAME = 5
_MARKS = (
    (re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)"), ""),
    (re.compile(r"\[([^\]\n]+)\]\([^)\n]*\)"), r"\1"),
    (re.compile(r"^ {0,3}(?:#{1,6} .*|[-*_=]{3,} *|```.*)$", re.MULTILINE), ""),
    (re.compile(r"^ {0,3}> ?", re.MULTILINE), ""),
    (re.compile(r"(?<!\w)(\*\*\*|\*\*|__|\*|_|`)(?=\S)([^\n]+?)(?<=\S)\1(?!\w)"), r"\2"),
)
"""Of Markdown: pictures, links, headings with rules and fences, quotations, emphasis; and what stays of each."""
_DATELINE = re.compile(r"^[A-Z][A-Z .,'-]+ \([A-Z][\w ]+\) [-–—]+ (?=[A-Z])")
BULLET = re.compile(r"^\s*(?:[-*+•–]|\d+[.)]|\[[ xX]?\])\s+(?=\S)")
_TURN = re.compile(
    r"^(?:[\[(]?\d[\d:./, ]*(?:[ap]m)?[\])]?\s*[-–]?\s*)?(?P<who>[A-Z][\w .'’-]{0,24}?)\s*"
    r"(?:[\[(]?\d{1,2}:\d{2}[\])]?)?:\s+(?P<said>\S.*)$"
)
"""A line of a conversation: "[10:32] Anna: Hi!"."""
_SMILEY = re.compile(r"\s*(?:[:;]-?[)(DPp]|<3|[\U0001f300-\U0001faff\u2600-\u27bf]+)(?=\s|$)")
_FEWEST_TURNS, _MOST_LOWER, _FEWEST_SHOUTED = 3, 0.1, 8


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


def turns_of(text: str) -> list[tuple[str, str]]:
    """Return who says what where a text is the record of a conversation, line by line; nothing for any other."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    found = [match for line in lines if (match := _TURN.match(line)) is not None]
    names = {match["who"] for match in found}
    alternate = 1 < len(names) <= len(found) / 1.5
    if len(found) < _FEWEST_TURNS or len(found) < 0.8 * len(lines) or not alternate:
        return []
    return [(match["who"], _SMILEY.sub("", match["said"]).strip()) for match in found]


def points_of(text: str) -> list[str]:
    """Return the lines of a text, those of its list without their marks and ended as sentences."""
    lines = text.split("\n")
    if sum(bool(BULLET.match(line)) for line in lines) <= 1:
        return lines
    bare = [(BULLET.sub("", line).strip(), bool(BULLET.match(line))) for line in lines]
    ended = [line if line[-1:] in tuple('.!?:"') else f"{line}." for line, _ in bare]
    return [f"\n{whole}\n" if marked else line for whole, (line, marked) in zip(ended, bare, strict=True)]


def _as_prose(text: str) -> str:
    """The text without Markdown, marks of lists, a dateline and shouting; a conversation as direct speech."""
    for pattern, kept in _MARKS if "\n" in text or "*" in text or "`" in text else ():
        text = pattern.sub(kept, text)
    turns = turns_of(text)
    if turns:
        names, told = [who for who, _ in turns], []
        for at, (who, said) in enumerate(turns):
            other = next(one for one in (*reversed(names[:at]), *names[at:]) if one != who)
            end = "" if said[-1:] in tuple(".!?…") else "."
            told.append(f'{who} said to {other}, "{said[:1].upper()}{said[1:]}{end}"')
        return "\n\n".join(told)
    text = _DATELINE.sub("", "\n".join(points_of(text)).strip())
    letters = [letter for letter in text if letter.isalpha()]
    small = sum(letter.islower() for letter in letters)
    shouted = len(text.split()) >= _FEWEST_SHOUTED and small <= _MOST_LOWER * len(letters)
    whispered = len(text.split()) >= _FEWEST_SHOUTED and small == len(letters)
    return _quietly(text) if shouted or whispered else text


def _quietly(text: str) -> str:
    """A text in capitals as it is usually written. A name is known by how it opens a sentence: before a verb, and never
    with an article."""
    words, low = load_words(), text.lower()
    tokens = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?|[.!?\"\n]", low)
    verbs = words.sets["past_forms"] | words.sets["say_past"] | words.sets["auxiliaries"]
    opening = {
        one
        for before, one, after in zip([".", *tokens], tokens, [*tokens[1:], "."], strict=False)
        if before in '.!?"\n' and one.isalpha()
        if after in verbs or (after not in words.sets["english"] and words.sort(after) not in ("person", "animal"))
    }
    after_article = {one for before, one in pairwise(tokens) if words.has("articles", before)}
    known = words.sets["english"] | words.sets["time_adverbs"] | words.sets["indefinite_pronouns"] | after_article
    names = {one for one in opening - known if not one.endswith("s") and not words.has("kin", one)}
    told = re.sub(r"[^\W\d_]+", lambda found: found[0].capitalize() if found[0] in names else found[0], low)
    told = re.sub(r"\bi\b", "I", told)
    return re.sub(r"(^|[.!?]\s+|\"|\n)([^\W\d_])", lambda found: found[1] + found[2].upper(), told)


def clean(text: str) -> str:
    """Return the text as prose with straight double quotes, one blank between words, and one empty line between
    paragraphs; what Markdown, a list, a conversation or capitals add is gone."""
    plain = _as_prose(text.replace("\r\n", "\n").replace("\r", "\n").translate(_QUOTES).strip("\ufeff").strip())
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
        apart = match[0] in (".", "!", "?") and not inside and len(last) > 1  # a text without capitals
        if (rest[0].islower() and not apart) or (closes and _frame_follows(rest)):
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
