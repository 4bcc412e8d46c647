"""Where each picture is: what the text says; else what its own words tell; else where the story goes on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from katha.configs import load_config
from katha.planners.moments import Moment
from katha.text.words import load_words

__all__ = ["Setting", "places_of", "settings"]

_WORD = re.compile(r"[a-zà-ÿ][a-zà-ÿ'-]*")
_QUOTED = re.compile(r'["\u201c][^"\u201d]*["\u201d]')
_SURE, _FITS, _STORY = 3.0, 1.0, 0.25
"""What a word that is hardly found elsewhere, one that fits, and one elsewhere in the story bring."""
_ENOUGH, _HOME = 2.0, 3
"""How many fitting words say where a picture is, beside a sure one elsewhere; how many words make a story's home."""
_NEXT_DOOR = re.compile(r"^the (?:(?:back|next|other|adjoining) )?room$")
_WHO = ("person", "group", "being")
_ELSEWHERE = re.compile(
    r"^(?:meanwhile|elsewhere|far away|at home|back (?:at|in)|across town|on the other side)\b", re.I
)


@dataclass(frozen=True)
class Setting:
    """One place of places.yaml with the words that tell it."""

    place: str
    sure: frozenset[str]
    fits: frozenset[str]
    like: frozenset[str]
    home: bool
    yard: str = ""

    @property
    def noun(self) -> str:
        """The place without its article."""
        return self.place.removeprefix("the ")

    def score(self, words: frozenset[str]) -> float:
        """Return how well words fit."""
        return _SURE * len(words & self.sure) + _FITS * len(words & self.fits)


@cache
def settings() -> tuple[Setting, ...]:
    """Return every place of places.yaml, in its order."""
    rows: Mapping[str, Mapping[str, str]] = load_config("places.yaml")
    return tuple(
        Setting(
            place,
            _listed(row, "sure"),
            _listed(row, "fits"),
            _listed(row, "like"),
            bool(row.get("home")),
            str(row.get("yard", "")),
        )
        for place, row in rows.items()
        if place != "public"
    )


@cache
def _public() -> frozenset[str]:
    return frozenset(str(load_config("places.yaml")["public"]).replace("_", " ").split())


def _listed(row: Mapping[str, str], part: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in str(row.get(part, "")).split())


def places_of(moments: Sequence[Moment]) -> list[str]:
    """Return the place of each picture, "" where nothing tells it.

    A place that its own sentence names stays. One that was only carried on gives way to words that are found elsewhere
    only (a stove is in no train). Without any, the words of the picture and of the whole story tell, then the place
    before, as long as nobody leaves it.
    """
    told = [_words(" ".join(one.text for one in moment.story.reading.sentences), moment) for moment in moments[:1]]
    story = told[0] if told else frozenset()
    home = _home(story)
    found: list[str] = []
    for moment in moments:
        before = found[-1] if found else ""
        found.append(_place(moment, before, story, home))
    return found


def _place(moment: Moment, before: str, story: frozenset[str], home: Setting | None) -> str:
    said, fresh = moment.place(), _fresh(moment)
    if said and not fresh and home is not None and not home.home and _passed_by(said, home, story):
        said = ""
    known = said or (before if not _left(moment) else "")
    own = _words(_text(moment), moment)
    # Who has a trade takes it everywhere: a baker in a boat is in no bakery.
    own = frozenset(word for word in own if load_words().sort(word) not in _WHO) if known or home else own
    best, score = _best(own, story)
    if _NEXT_DOOR.search(said) and before and not _is_home(before):
        said = before  # the back room of a shop
    if said and (fresh or best is None):
        return _refined(said, home)
    sure = best is not None and bool(own & best.sure)
    if best is not None and best.home and home is not None and not home.home:
        best = home if own & best.sure & home.like or (sure and not known) else best
    if said and home is not None and home.home and home.score(own) and not _agree(home, said) and not _is_public(said):
        here = best is not None and best is not home and score > home.score(own)
        return best.place if here and best is not None and sure else home.place
    if said:
        firm = best is None or not sure or _agree(best, said) or score < _SURE + _FITS or not _beside(best, said)
        return _refined(said, home) if best is None or firm else best.place
    told = best is not None and (sure or (score >= _ENOUGH and bool(story & best.sure or _is_home(known))))
    if best is not None and told and (not known or (_beside(best, known) and (best.home or score >= _SURE + _FITS))):
        return best.place
    stays = before and not _ELSEWHERE.match(moment.here.text) and not _left(moment)
    if stays:
        return before
    return home.place if home is not None else ""


def _beside(best: Setting, known: str) -> bool:
    """Whether words can tell that a place is left which nobody is told to leave: a home's rooms for one another, any
    other place for one that is no home."""
    return not best.home or _is_home(known) or _agree(best, known)


def _is_home(place: str) -> bool:
    words = frozenset(_WORD.findall(place.lower()))
    rooms = frozenset(word for one in settings() if one.home for word in one.noun.split())
    return bool(
        words & (rooms | {"home", "house", "flat", "apartment", "hall", "corridor", "stairs", "landing"})
    ) and not _is_public(place)


def _best(own: frozenset[str], story: frozenset[str]) -> tuple[Setting | None, float]:
    """The place that a picture's own words fit best; the rest of the story tells between equals."""
    ranked = [(one.score(own), _STORY * one.score(story), -at, one) for at, one in enumerate(settings())]
    score, _, _, best = max((item for item in ranked if item[0]), key=lambda item: (item[0] + item[1], item[2]),
                            default=(0.0, 0.0, 0, None))  # fmt: skip
    return best, score


def _home(story: frozenset[str]) -> Setting | None:
    """The place in which a story is at home: that of most of its words, where they are several."""
    ranked = [(one.score(story), -at, one) for at, one in enumerate(settings())
              if len(story & (one.sure | one.fits)) >= _HOME + (not story & one.sure)]  # fmt: skip
    return max(ranked, key=lambda item: item[:2])[2] if ranked else None


def _passed_by(said: str, home: Setting, story: frozenset[str]) -> bool:
    """Whether a place that was named once is less what the story is about than its home (forgotten on a bus)."""
    own = next((one for one in settings() if _agree(one, said)), None)
    words = frozenset(_WORD.findall(said.lower()))
    return (
        not _agree(home, said) and not words & home.like and (own is None or own.score(story) < home.score(story) / 2)
    )


def _refined(said: str, home: Setting | None) -> str:
    """A place that any house has, in the one that the story is about: a hospital's corridor."""
    words = _WORD.findall(said.lower())
    if home is not None and home.yard and words and words[-1] in ("yard", "courtyard"):
        return home.yard  # a school's yard is no farm's
    return home.place if home is not None and words and words[-1] in home.like else said


def _is_public(place: str) -> bool:
    """Whether a place is none of a home, so that a sofa in it makes it no living room."""
    return bool(frozenset(_WORD.findall(place.lower())) & _public())


def _agree(best: Setting, said: str) -> bool:
    """Whether a place that was said can be the one that words tell: the same noun, or one that it goes on in."""
    words = frozenset(_WORD.findall(said.lower()))
    return bool(words & (frozenset(best.noun.split()) | best.like | best.sure | best.fits))


def _fresh(moment: Moment) -> bool:
    """Whether the picture's own sentences name the place."""
    place = moment.story.place_of(moment.main)
    return place is not None and place.since >= min(event.sentence for event in moment.events)


def _left(moment: Moment) -> bool:
    """Whether somebody leaves for elsewhere, or a day passes, in the sentences of this part up to the picture."""
    story = moment.story
    first = moment.beats[0].sentence.index
    return any(story.passes(at) or story.goes_on(at) for at in range(first, moment.here.index + 1))


def _text(moment: Moment) -> str:
    sentences = moment.story.reading.sentences
    return " ".join(sentences[at].text for at in sorted({event.sentence for event in moment.events}))


def _words(text: str, moment: Moment) -> frozenset[str]:
    """The words of a text with nouns in the singular and the events' verbs in base form, alone and by twos."""
    plain: list[str] = _WORD.findall(_QUOTED.sub(" ", text.lower()))
    bare = [_singular(word) for word in plain]
    verbs = {event.verb for event in moment.story.reading.events if event.text and event.text.lower() in text.lower()}
    twos = {f"{one} {two}" for one, two in pairwise(bare)}
    return frozenset({*bare, *plain, *twos, *verbs})


def _singular(word: str) -> str:
    for ending, instead in (("ies", "y"), ("ves", "f"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("'s", "")):
        if word.endswith(ending):
            return word[: -len(ending)] + instead
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
