"""The places of `data/places.yaml`: what each is called, and how well a sentence's words fit it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from katha_sketch.data import load_config
from katha_sketch.english.words import load_words
from katha_sketch.vocabulary.inflect import singular

__all__ = [
    "Setting",
    "flown_over",
    "is_indoors",
    "meant",
    "mentioned",
    "named",
    "opened_by",
    "plain",
    "settings",
    "stood_in",
    "words_of",
]

_WORD = re.compile(r"[a-zà-ÿ][a-zà-ÿ'-]*")
_QUOTED = re.compile(r'["\u201c][^"\u201d]*["\u201d]?')
_STOPS = re.compile(r"[,.;:!?\u2013\u2014]+")
_SHOWN = re.compile(
    r"\b(?:painting|picture|photograph|photo|drawing|poster|story|stories|book|dream|film|map|portrait|song|letter)s?"
    r" (?:of|about|from) [^,.;!?]*"
    r"|\b(?:draw(?:s|n|ing)?|drew|paint(?:s|ed|ing)?|sketch(?:es|ed|ing)?|colou?r(?:s|ed|ing)?|remembered"
    r"|dream(?:s|t|ed|ing)? (?:of|about)|(?:read|sang|sing|told \w+|talked|spoke|wrote|heard) about)"
    r" (?:in )?(?:(?:a|an|the|his|her|their) )?(?:\w+ )?\w+"
    r"|\b(?:on|in) (?:the|this|that|his|her|their|my|our|every|each) (?:\w+ )?"
    r"(?:sheet|page|picture|photograph|photo|painting|drawing|postcard|poster|map|screen|stamp)s?\b[^,.;!?]*"
)
"""What is only painted, told or dreamt of is not there."""
_LIKENED = re.compile(r"\b(?:like|as [\w-]+ as) (?:(?:a|an|the|some) )?(?:[\w-]+ ){0,2}[\w-]+")
"""Neither is what something is likened to."""
_NOT_THERE = re.compile(
    r"\b(?:to|from|towards?|for|about|like|past|after|before|phoned|called|left|near)"
    r" (?:(?:the|a|an|his|her|their|its|my|our) )?(?:\w+ )?$"
)
"""What stands before a place where nobody is yet, or any more."""
_GRADES: Mapping[str, float] = {"sure": 3.0, "tells": 1.8, "says": 1.8, "fits": 1.0}
_TRADE, _NAME, _MOST = 1.5, 1.5, 6.0
"""What a word brings that is hardly found elsewhere, one of which two tell the place, one that fits; a trade at most
(a baker in a boat is in no bakery), the name of the place told by the way; and most that a sentence's words bring."""
_TRAIN = re.compile(r"\bthe \d{1,2}[:.]\d\d\b")
"""A train by its time: "the 7:42 to the city"."""
_LINE = re.compile(
    r"\bthe (?:number )?\d{1,3}[a-z]?(?= (?:is|was|has|had|to|from|came|comes|stopped|stops|pulled|pulls|turned|turns"
    r"|rattled|arrived|arrives|never|into|home|rolled|lurched|swung|went|goes|drove|did|does)\b)"
    r"|(?:(?<=\bon )|(?<=\boff ))the (?:number )?\d{1,3}"
    r"(?= ?[,.;:!?]| (?:and|when|every|home|again|that|which|because)\b)"
)
"""A bus by its number: "the 47 is full", "on the 12 home"."""
_OWN = 1.2
"""What a word brings at least that belongs to a place."""
_KNOWN = 0.4
"""What is left of a word that an earlier sentence had: a story of shoes need not be told in a shoe shop."""
_SHARED = 0.4
"""What a word brings is divided by this power of the number of places that list it."""
_WHO = ("person", "group", "being")


@dataclass(frozen=True)
class Setting:
    """One place of places.yaml with the words that tell it."""

    place: str
    names: frozenset[str]
    like: frozenset[str]
    home: bool = False
    open: bool = False
    yard: str = ""
    instead: str = ""
    outside: str = "the street"
    also: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    usual: float = 0.5
    weights: Mapping[str, float] = field(default_factory=dict, compare=False)

    def known_as(self, text: str) -> bool:
        """Return whether a phrase calls it by a name that pictures do not know."""
        return any(text.lower().endswith(name) for name in self.called)

    def may_be(self, words: frozenset[str]) -> bool:
        """Return whether a story with these words can be there that never says so: a stage needs a performance."""
        return not self.needs or bool(self.needs & words)

    def fit(self, words: frozenset[str]) -> float:
        """Return how well the words of a story fit, each counted once."""
        return sum(self.weights[word] for word in words & self.weights.keys())

    def owns(self, words: frozenset[str]) -> int:
        """Return how many words of a story belong there more than elsewhere."""
        return sum(self.weights[word] >= _OWN for word in words & self.weights.keys())

    def score(self, words: frozenset[str], known: Collection[str] = ()) -> float:
        """Return how well the words of a sentence fit; those that are `known` from earlier ones tell little."""
        told = words & self.weights.keys()
        return min(_MOST, sum(self.weights[word] * (_KNOWN if word in known else 1.0) for word in told))


@cache
def settings() -> tuple[Setting, ...]:
    """Return every place of places.yaml, in its order."""
    graded = {place: dict(_graded(row)) for place, row in _rows().items()}
    listed = Counter(word for words in graded.values() for word in words)
    alone = Counter(word for words in graded.values() for word, grade in words.items() if grade == _GRADES["sure"])
    return tuple(
        Setting(
            place,
            _listed(row, "names"),
            _listed(row, "like"),
            bool(row.get("home")),
            bool(row.get("open")),
            str(row.get("yard", "")),
            str(row.get("instead", "")),
            str(row.get("outside", "the street")),
            _listed(row, "also"),
            _listed(row, "called"),
            frozenset(map(_spelt, _listed(row, "needs"))),
            float(row.get("usual", 0.5)),
            _weights(
                graded[place], (_listed(row, "names") | _listed(row, "called")) - _table("doubtful"), listed, alone
            ),
        )
        for place, row in _rows().items()
    )


def _weights(
    graded: Mapping[str, float], names: frozenset[str], listed: Mapping[str, int], alone: Mapping[str, int]
) -> Mapping[str, float]:
    """What each word of a place brings: less where other places list it as well, unless it is sure here only."""
    found = dict.fromkeys(map(_spelt, names), _NAME)
    for word, grade in graded.items():
        if grade == _GRADES["sure"]:
            trade = load_words().sort(word.split()[-1]) in _WHO
            value = min(grade, _TRADE if trade else grade) / alone[word] ** _SHARED
        else:
            value = grade / listed[word] ** _SHARED
        found[word] = found.get(word, 0.0) + value if grade == _GRADES["sure"] else max(found.get(word, 0.0), value)
    return found


def _graded(row: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """The words of a place with their grades; what is said there stands in quotes."""
    for part in ("fits", "tells", "sure"):
        yield from ((_spelt(word), _GRADES[part]) for word in _listed(row, part))
    yield from ((f'"{said}"', _GRADES["says"]) for said in _says(row))


def _says(row: Mapping[str, str]) -> Iterator[str]:
    return (said.strip() for said in str(row.get("says", "")).split("|") if said.strip())


@cache
def _rows() -> Mapping[str, Mapping[str, str]]:
    return {place: row for place, row in load_config("places.yaml").items() if isinstance(row, Mapping)}


@cache
def _table(name: str) -> frozenset[str]:
    return frozenset(str(load_config("places.yaml")[name]).split())


@cache
def _strays() -> re.Pattern[str]:
    return re.compile("|".join(rf"\b{one.strip()}\b" for one in str(load_config("places.yaml")["strays"]).split(" | ")))


@cache
def _sayings() -> frozenset[str]:
    return frozenset(said for row in _rows().values() for said in _says(row))


def _listed(row: Mapping[str, str], part: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in str(row.get(part, "")).split())


def _spelt(word: str) -> str:
    """A word of the table as `words_of` has it: of several words each in the singular."""
    return " ".join(map(_singular, word.split())) if " " in word else word


def plain(text: str) -> str:
    """Return a sentence in small letters without what is said, what pictures and stories are of, what something is
    likened to, and what only sounds like a place."""
    return _strays().sub(" ", _LIKENED.sub(" ", _SHOWN.sub(" ", _QUOTED.sub(" ", _LINE.sub("the bus", text.lower())))))


def _spoken(text: str) -> Iterator[str]:
    """What is said in a sentence that is said in some places, in quotes: several words anywhere, one alone only."""
    for quote in _QUOTED.findall(text.lower()):
        pieces = [" ".join(_WORD.findall(piece)) for piece in _STOPS.split(quote)]
        whole = f" {' '.join(pieces)} "
        yield from (f'"{one}"' for one in _sayings() if one in pieces or (" " in one and f" {one} " in whole))


@cache
def _names() -> Mapping[str, Setting]:
    """The first place of each name."""
    found: dict[str, Setting] = {}
    for one in settings():
        for name in (one.place.removeprefix("the "), *sorted(one.names), *sorted(one.called)):
            found.setdefault(name, one)
    return found


def named(text: str) -> Setting | None:
    """Return the place that a phrase names ("the old football pitch"); the last words of it go before the first."""
    words = [_singular(word) for word in _WORD.findall(text.lower())]
    spelt = _WORD.findall(text.lower())
    for size in (3, 2, 1):
        for at in range(len(words) - size, -1, -1):
            for some in (spelt, words):
                found = _names().get(" ".join(some[at : at + size]))
                if found is not None and not (size == 1 and at and _belongs_elsewhere(words[at - 1], words[at], found)):
                    return found
    return None


def _belongs_elsewhere(before: str, word: str, place: Setting) -> bool:
    """Whether a word with the one before it is a thing of other places: wall bars are in no bar."""
    both = f"{before} {word}"
    return both not in place.weights and any(both in one.weights for one in settings())


def is_indoors(place: str) -> bool:
    """Return whether it neither rains nor snows in a place: a room, and no car, whose windows show the weather."""
    found = named(place) if place else None
    return found is not None and not found.open and "car" not in found.place


def meant(place: Setting | None, noun: str, said: frozenset[str]) -> Setting | None:
    """Return the place that a noun of several meanings has in a story with the words `said`: the one that it is called
    by, or one that fits much better: the landing of a ferry is on no stairs."""
    told = said - {noun}
    others = [one for one in settings() if noun in one.also and one != place]
    best = max(others, key=lambda one: one.fit(told), default=None)
    known = place.fit(told) if place is not None else 0.0
    return best if best is not None and best.fit(told) > max(known, _KNOWN_BY) + _BETTER else place


_KNOWN_BY, _BETTER = 1.5, 0.5
"""How well another place that a noun can mean has to fit, and how much better than the one that is called so."""
_AT_FIRST = re.compile(
    r"(?:(?:out|back|down|up|over|high|deep) )?(?:at|in|on|aboard|inside|upon) "
    r"(?:the (?:far )?(?:middle|end|edge|back|front|top|bottom|foot|side|corner|centre|heart|mouth|rear) of )?"
    r"(?:(?:the|a|an|his|her|their|its|my|our) )?"
    r"([\w'-]+(?: [\w'-]+)?(?: [\w'-]+)?)"
)


_LEADING = re.compile(r"^(?:the|a|an|his|her|their|its|my|our) ")
_DETERMINER = re.compile(r"(?:^| )(?:the|a|an|his|her|their|its|my|our)\b")
_INSIDE = re.compile(r"\b(?:in|inside|aboard|at|on|upon) (?:the|a|an|his|her|their|its|my|our) ([\w'-]+(?: [\w'-]+)?)")
_OF_SOMEBODY = re.compile(r"\b(?:a|an) (?:[\w-]+ ){1,2}$")
"""What a phrase says of somebody who is new: "a teenager in a canoe knocked"."""
_AIMED = re.compile(
    r"\b(?:look|point|star|gaz|glanc|aim|laugh|shout|smil|wav|bark|nod|peer|squint)(?:e|s|es|ed|ing)? $"
)
"""Verbs before "at" of who is not there."""


def opened_by(text: str, said: frozenset[str] = frozenset()) -> Setting | None:
    """Return the place with which a sentence begins: "On the bus home there was nothing to look at". said: the words
    of the whole story."""
    return _in_phrase(_AT_FIRST.match(plain(text).lstrip()), said)


def stood_in(text: str, said: frozenset[str] = frozenset()) -> Setting | None:
    """Return the place that a sentence names behind "in", "at" or "on": "the two men met in a taxi rank". said: the
    words of the whole story."""
    told = plain(text)
    phrases = (
        found
        for found in _INSIDE.finditer(told)
        if not (_AIMED.search(told[: found.start()]) or _OF_SOMEBODY.search(told[: found.start()]))
    )
    return next((one for found in phrases if (one := _in_phrase(found, said)) is not None), None)


_FLIGHT = re.compile(
    r"\b(?:float|fly|flies|flew|flying|sail|drift|hover|soar|glid|circl)\w* (?:\w+ )?(?:over|above|across) "
    r"(?:the|a|an|his|her|their|its|my|our) ([\w'-]+(?: [\w'-]+)?)"
)


def flown_over(text: str) -> Setting | None:
    """Return the place over which something flies or floats."""
    return _in_phrase(_FLIGHT.search(plain(text)), frozenset())


def _in_phrase(found: re.Match[str] | None, said: frozenset[str], group: int = 1) -> Setting | None:
    """The first place in the words behind a preposition."""
    told = _LEADING.sub("", found[group]) if found is not None else ""
    words = _DETERMINER.split(told)[0].split()
    if words[:1] == ["way"]:
        return None  # who is on the way home is not there
    spans = [(at, size) for at in range(len(words)) for size in (2, 1) if at + size <= len(words)]
    worn = {at for at, word in enumerate(words) if load_words().sort(_singular(word)) == "clothing"}
    spans = [(at, size) for at, size in spans if at + size not in worn]  # who is in a school uniform
    names = (" ".join(words[at : at + size]) for at, size in spans)
    return next((meant(one, name, said) for name in names if (one := _names().get(name))), None)


_MENTIONS: Mapping[str, float] = {
    **dict.fromkeys(("in", "inside", "into", "onto", "on", "at", "aboard", "through", "reached", "entered"), 1.0),
    **dict.fromkeys(
        ("across", "along", "down", "up", "over", "around", "round", "behind", "beside", "by", "near"), 0.5
    ),
    **dict.fromkeys(("outside", "under", "from", "of", "off", "to", "towards", "left"), 0.5),
}
"""How much what stands before a place speaks for being there."""
_MENTION = re.compile(
    rf"\b({'|'.join(_MENTIONS)}) (?=((?:(?:the|a|an|his|her|their|its|my|our) )?[\w'-]+(?: [\w'-]+)?(?: [\w'-]+)?))"
)


def mentioned(text: str, said: frozenset[str]) -> Mapping[Setting, float]:
    """Return the places that a sentence names behind a preposition, and how much each speaks for being there."""
    found: dict[Setting, float] = {}
    for one in _MENTION.finditer(plain(text)):
        place = _in_phrase(one, said, 2)
        if place is not None:
            found[place] = max(found.get(place, 0.0), _MENTIONS[one[1]])
    return found


def words_of(text: str, verbs: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the words that tell a place: nouns in the singular, `verbs` in base form, alone and by twos; without the
    names of places to or from which something goes."""
    said = _TRAIN.sub("the train", plain(text))
    spelt = [
        found
        for found in _WORD.finditer(said)
        if _singular(found[0]) not in verbs
        and not (_singular(found[0]) in _names() and _NOT_THERE.search(said[: found.start()]))
    ]
    bare = [_singular(found[0]) for found in spelt]
    twos = {f"{one} {two}" for one, two in pairwise(bare)}
    # What is told as a whole is not told by its parts: a wedding cake is no cake, and a snow plough is on no field.
    whole = Counter(part for two in twos & _compounds() for part in two.split())
    single = {word for word, times in Counter(bare).items() if times > whole[word]}
    single |= {found[0] for found in spelt if _singular(found[0]) in single}
    done = {pair for verb in verbs if (pair := _pair(verb)) in _compounds()}
    return frozenset({*single, *twos, *(verbs & _table("does")), *done, *_spoken(text)})


def _pair(done: str) -> str:
    """A verb with what it is done to, as tables have it: "brush teeth" is "brush tooth"."""
    return " ".join(map(_singular, done.split())) if " " in done else ""


@cache
def _compounds() -> frozenset[str]:
    return frozenset(word for one in settings() for word in one.weights if word.count(" ") == 1)


def _singular(word: str) -> str:
    """Return a word in the singular, without the ending of an owner."""
    return word[:-2] if word.endswith("'s") else singular(word)
