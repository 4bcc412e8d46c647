"""Stories that somebody has read, sentence by sentence (`stories/*.txt` beside this file), and what they teach.

A story begins with "# " and its title; the next line is its cast ("cast: Ann=girl; owl=owl; narrator=man"); then a line
for each sentence: its words, the place of a picture of it, who is seen in it, and which things, between " ## ".
"it=ball" says what a pronoun means, "+ball" what is there without a word for it; "-" stands for nobody and nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from katha_sketch.english.context import SINCE, Spot, kind_of
from katha_sketch.english.reading import namings

__all__ = ["FOLDER", "NOWHERE", "Lesson", "Line", "Told", "aligned", "lesson", "stems", "told"]

FOLDER = Path(__file__).parent / "stories"
NOWHERE = ("plain", "unknown", "-")
_MALE = frozenset(("man", "boy", "old man", "king", "prince"))
_FEMALE = frozenset(("woman", "girl", "old woman", "queen", "princess"))
_MANY = frozenset(("crowd", "people", "children", "team", "family", "class", "crew", "guests", "villagers", "audience"))
_SMALL = frozenset(
    {
        "the",
        "a",
        "an",
        "of",
        "his",
        "her",
        "their",
        "my",
        "our",
        "old",
        "young",
        "little",
        "big",
        "mr",
        "mrs",
        "ms",
        "dr",
    }
)
_WORD = re.compile(r"[a-z]+")
_OF = re.compile(r"\s+(?:of|with|in|on|from|for)\s+")


@dataclass(frozen=True)
class Line:
    """A sentence as read: where a picture of it plays, who is seen in it, which things, and what its pronouns mean."""

    text: str
    place: str
    who: tuple[str, ...]
    things: tuple[str, ...]
    meant: Mapping[str, str]


@dataclass(frozen=True)
class Told:
    """A story as read. cast: who is in it, and what each would be drawn as."""

    name: str
    title: str
    cast: Mapping[str, str]
    lines: tuple[Line, ...]

    def text(self, chance: random.Random) -> str:
        """Return the story with a paragraph every few sentences."""
        parts, run = list[str](), 0
        for line in self.lines:
            new = run >= chance.choice((3, 4, 5))
            parts += ["\n\n" if new else " ", line.text]
            run = 0 if new else run + 1
        return f"{self.title}\n\n{''.join(parts[1:])}\n"


@dataclass
class Lesson:
    """What a story teaches the network.

    Attributes:
        antecedents: of a pronoun's naming: the earlier namings, and which of them name what it means.
        shown: naming, sentence, and whether a picture of the sentence shows what it names.
        places: of each sentence, "" where there is none, None where nobody has said.
    """

    name: str
    text: str
    title: str
    sentences: list[tuple[int, int]]
    spots: list[Spot]
    antecedents: list[tuple[int, list[int], list[bool]]] = field(default_factory=list)
    shown: list[tuple[int, int, bool]] = field(default_factory=list)
    places: list[str | None] = field(default_factory=list)


def told(folder: Path = FOLDER) -> Iterator[Told]:
    """Yield the stories of a folder in the order of its files."""
    for path in sorted(folder.glob("*.txt")):
        for number, block in enumerate(re.split(r"\n\s*\n", path.read_text("utf-8").strip())):
            head, cast, *lines = [line for line in block.split("\n") if line.strip()]
            people = (one.split("=", 1) for one in cast.partition(":")[2].split(";") if "=" in one)
            kinds = {name.strip(): kind.strip().lower() for name, kind in people}
            yield Told(f"{path.stem}:{number}", head.lstrip("# ").strip(), kinds, tuple(map(_line, lines)))


def _line(line: str) -> Line:
    text, place, who, things = [part.strip() for part in re.split(r"\s##(?:\s|$)", f"{line} ## ## ## ")][:4]
    named = [one.partition("=") for one in _parts(things) if "=" in one]
    meant = {pronoun.strip().lower(): thing.strip() for pronoun, _, thing in named}
    bare = (one.rpartition("=")[2].lstrip("+ ").strip() for one in _parts(things))
    return Line(text, place.lower(), tuple(_parts(who)), tuple(one for one in bare if one), meant)


def _parts(text: str) -> list[str]:
    return [] if text == "-" else [part.strip() for part in re.split(r"[,;]", text) if part.strip()]


def stems(text: str) -> set[str]:
    """The words of a text without plural endings; titles and sizes tell nobody from another."""
    found = {_singular(word) for word in _WORD.findall(text.lower().replace("'s", "").replace("_", " "))}
    return found - _SMALL or found


def _singular(word: str) -> str:
    for ending, less, more in (("men", 3, "man"), ("ies", 3, "y"), ("ses", 2, ""), ("xes", 2, ""), ("hes", 2, "")):
        if word.endswith(ending) and len(word) > 4:
            return word[:-less] + more
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _head(text: str) -> str:
    words = _WORD.findall(_OF.split(text.strip())[0].lower())
    return _singular(words[-1]) if words else ""


Meant = tuple[str, str] | None
"""Somebody of the cast ("who", name), a thing ("what", noun), or nobody knows."""


def lesson(story: Told, chance: random.Random) -> Lesson:
    """Return what a story teaches, with the namings that the reading finds in it."""
    title, text, sentences, named = namings(story.text(chance))
    mentions = [one for _, one in named]
    lines = aligned(story.lines, [text[begin:end] for begin, end in sentences])
    found = Lesson(story.name, text, title, list(sentences), [])
    meant = list[Meant]()
    for start, one in named:
        found.spots.append(Spot(start, one.sentence, one.role, kind_of(one.pronoun, named=bool(one.name))))
        line = lines[one.sentence]
        own = _pronoun(one.pronoun, one.role, story.cast, line) if one.pronoun and not one.quoted else None
        meant.append(own if one.pronoun else _noun(one.name, one.noun, story.cast))
    found.places = [None if line is None else "" if line.place in NOWHERE else line.place for line in lines]
    for at, spot in enumerate(found.spots):
        if mentions[at].pronoun in ("he", "she", "it", "they") and meant[at] is not None:
            among = [one for one in range(at) if spot.sentence - found.spots[one].sentence <= SINCE]
            among = [one for one in among if mentions[one].pronoun not in ("i", "you", "we")]
            right = [meant[one] == meant[at] for one in among]
            found.antecedents += [(at, among, right)] if any(right) else []
        for sentence in range(spot.sentence, min(len(lines), spot.sentence + SINCE + 1)):
            seen = _seen(meant[at], lines[sentence])
            found.shown += [] if seen is None else [(at, sentence, seen)]
    return found


def aligned(lines: Sequence[Line], sentences: Sequence[str]) -> list[Line | None]:
    """The line of each sentence as the reading cuts them."""
    flat = [re.sub(r"\W", "", line.text.lower()) for line in lines]
    found, at = list[Line | None](), 0
    for sentence in sentences:
        own = re.sub(r"\W", "", sentence.lower())
        near = [one for one in range(at, len(lines)) if own and (own in flat[one] or flat[one] in own)]
        at = near[0] if near else at
        found.append(lines[at] if near else None)
    return found


def _noun(name: str, noun: str, cast: Mapping[str, str]) -> Meant:
    own = stems(name or noun) if name or noun else set()
    for who in cast:
        if own & stems(who) and (name or _head(who) in own):
            return ("who", who)
    alike = [who for who, kind in cast.items() if not name and _head(kind) in own]
    if len(alike) == 1:
        return ("who", alike[0])
    return ("what", _singular(noun.lower())) if noun else None


def _pronoun(pronoun: str, role: str, cast: Mapping[str, str], line: Line | None) -> Meant:
    """Whom or what a pronoun means, where only one of those that are seen can be meant."""
    if pronoun == "i" and "narrator" in cast:
        return ("who", "narrator")
    seen = [who for who in line.who if who in cast and who != "narrator"] if line is not None else []
    if line is None or pronoun not in ("he", "she", "it", "they"):
        return None
    if pronoun in ("he", "she"):
        others = _FEMALE if pronoun == "he" else _MALE
        fit = [who for who in seen if cast[who] not in others | _MANY]
        return ("who", fit[0]) if len(fit) == 1 else None
    told = next((line.meant[one] for one in {"it": ("it",), "they": ("they", "them", "their")}[pronoun]
                 if one in line.meant), None)  # fmt: skip
    if told is not None:
        who = next((one for one in cast if stems(one) & stems(told)), None)
        return ("who", who) if who is not None else ("what", _head(told))
    if pronoun == "it":
        fit = [who for who in seen if cast[who] not in _MALE | _FEMALE | _MANY and not _is_many(cast[who])]
        return ("who", fit[0]) if len(fit) == 1 and not line.things else None
    fit = [who for who in seen if cast[who] in _MANY or _is_many(cast[who])]
    return ("who", fit[0]) if len(fit) == 1 and role == "agent" else None


def _is_many(kind: str) -> bool:
    return kind.endswith("s") and not kind.endswith("ss")


def _seen(what: Meant, line: Line | None) -> bool | None:
    """Whether a picture of a sentence shows something; None where it cannot be told ("glass" of a "glass door")."""
    if what is None or line is None:
        return None
    words = {_head(thing) for thing in line.things}
    if what[0] == "who":
        return what[1] in line.who
    beside = set[str]().union(*map(stems, line.things))
    return None if what[1] in beside - words else what[1] in words
