"""Which places are likely the main one of a story, by all that it tells: a scored choice over every setting."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from katha.planners.acts import planning
from katha.planners.heard import Heard, nameless, story_words
from katha.planners.moments import Story
from katha.planners.settings import Setting, named, settings, stood_in, words_of

__all__ = ["main_places", "usual_place"]

_WORDS, _BEST_WORD, _TITLE, _COMMON, _USUAL, _NEVER = 0.9, 1.0, 1.0, 1.3, 0.8, 10.0
"""What counts for a place: the words of the story that fit it, the best of them, the best word of the title, how common
it is in stories (the logarithm of `usual` in places.yaml), that those of whom the story tells are usually there; and
against it, that the story has none of the words that it needs."""
_FIRM, _SAID, _NAMED, _TWICE = 4.0, 2.0, 2.0, 2.0
"""What each sentence counts that says that somebody is there, that says it of something, and that names it; at most
twice."""
_LATE, _LATE_PART = 0.6, 0.4
"""From which part of a story on a place that was never told before is where it ends, and how much of it counts."""
_IN_TITLE, _FITTING = 2.5, 3.0
"""What it brings that the title says what is there ("The Calf in the Kitchen"), and how well the story's words have to
fit the place then: a ghost from the attic haunts other rooms."""
_INSIDE = re.compile(r"\b(?:in|inside|aboard|on) (?:the|a|an)\b")
_HEAT, _MOST, _LEAST = 1.5, 8, 0.03
"""How flat the choice is, how many places are left of it, and how likely each has to be."""
_OUT = 1.6
"""So much speaks against a family's being at home of whom nothing else tells where they are."""


def main_places(story: Story, told: Sequence[Heard]) -> Mapping[Setting, float]:
    """Return the likeliest main places of a story and how likely each is, the best first."""
    said, title = story_words(story), words_of(nameless(story, story.title))
    entitled = stood_in(nameless(story, story.title), said) if _INSIDE.search(story.title) else None
    usual = usual_place(story)
    rank = {one: _rank(one, told, said, title) + _USUAL * (one == usual) for one in settings()}
    if entitled is not None and entitled.fit(said) >= _FITTING:
        rank[entitled] += _IN_TITLE
    top = max(rank.values())
    odds = {one: math.exp((value - top) / _HEAT) for one, value in rank.items()}
    whole = sum(odds.values())
    best = sorted(odds, key=lambda one: -odds[one])[:_MOST]
    return {one: odds[one] / whole for one in best if odds[one] >= _LEAST * whole}


def _rank(place: Setting, told: Sequence[Heard], said: frozenset[str], title: frozenset[str]) -> float:
    values = [place.weights[word] for word in said & place.weights.keys()]
    by_title = max((place.weights[word] for word in title & place.weights.keys()), default=0.0)
    by_words = _WORDS * sum(values) + _BEST_WORD * max(values, default=0.0) + _TITLE * by_title
    there = [one for one in told if one.said == place]
    by_text = _FIRM * min(_TWICE, sum(one.firm for one in there)) + _SAID * min(_TWICE, len(there))
    by_name = _NAMED * min(_TWICE, sum(one.named.get(place, 0.0) for one in told))
    first = next((at for at, one in enumerate(told) if one.names(place)), 0)
    part = _LATE_PART if first >= _LATE * len(told) else 1.0
    never = _NEVER * (not there and not place.may_be(said))
    return by_words + part * (by_text + by_name) + _COMMON * math.log(place.usual) - never


def _is_open(place: str) -> bool:
    found = named(place)
    return found is not None and found.open


def usual_place(story: Story) -> Setting | None:
    """Where those of whom a story tells usually are: foxes in the forest if they are half of all, a family at home
    unless more speaks for being outside."""
    who = [one for one in story.reading.entities if one.character and (one.noun or one.named) and not one.members]
    rows: Mapping[str, Sequence[str]] = planning("usual_places")
    many = {
        place: sum(one.noun in row and not (one.owner and _is_open(place)) for one in who)
        for place, row in rows.items()
    }
    place = max(many, key=lambda one: many[one])
    found = named(place) if many[place] else None
    said = story_words(story)
    outside = max((one.fit(said) for one in settings() if one.open), default=0.0)
    if found is None or (outside >= _OUT if found.home else 2 * many[place] < len(who)):
        return None
    return found
