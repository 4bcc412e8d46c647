"""Where and when each picture is, and what its place is in: the places that fit a story best, as one way through it.

Each sentence speaks for some places, by what it says and by the things in it. To be elsewhere than a sentence before
costs something, little where the text says that somebody goes there or that time passes. The cheapest way says where
every sentence is: a place that is told late holds from the beginning, and one that is only spoken of moves nobody.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise

from katha_sketch.english.types import Event, Place
from katha_sketch.english.words import load_words
from katha_sketch.planner.acts import planning
from katha_sketch.planner.heard import (
    ARRIVED,
    ELSEWHERE,
    GONE,
    HEARD,
    PASSED,
    ROOM,
    SAID,
    STEP,
    Heard,
    Key,
    Said,
    acts_there,
    goes_with,
    heard,
    nameless,
    said_in,
    setting_of,
    story_words,
    under_way,
)
from katha_sketch.planner.moments import Moment, Story
from katha_sketch.planner.settings import Setting, named, opened_by, plain, settings, stood_in, words_of

__all__ = ["conditions", "hours_of", "main_places", "places_of", "usual_place", "worded"]


_LIKE, _OUTSIDE, _TITLE = 5.0, 4.0, 0.15
"""What it brings that a place is part of another, that it is outside or inside; and the share for every sentence of
what the title brings."""
_CONTRADICTED = 1.5
"""What speaks against all other places where the text names one."""
_NOT_YET, _HARDLY = 3.0, 1.2
"""What speaks against a place to which somebody comes later, and the least that tells where they were before."""
_FROM_SURE = 7.0
"""What it costs to leave a place that the text names for one that it never does."""
_TITLED, _TITLE_ALONE = 1.4, 0.4
"""The least that a word of the title has to tell, and some sentence as well."""
_UNSAID = 4.5
"""The least that it costs where only things and people tell the place that they went to."""
_ENOUGH, _KNOWN = 2.0, 3.5
"""A place for which less speaks in all sentences is none; one for which as much does has furniture of homes too."""
_MAIN = 10.0
"""What the likely main places of a story bring in all its sentences together, by how likely they are."""
_GUESS, _STRONG, _DENSE = 0.45, 5.0, 1.1
"""A place that the text nowhere names is shown if it is as likely to be the main one, or if some sentence says as much
for it, or all together as much each; else a picture is where those of whom the story tells usually are, or nowhere,
since what contradicts the text is worse."""
_OWN_WORDS, _LIKELY = 3, 0.2
"""It is shown as well if so many words of the story belong there and it is as likely to be the main one."""
_YARDS = ("yard", "courtyard")
_BY_SIDE = {
    "outside": True,
    "outdoors": True,
    "inside": False,
    "indoors": False,
    "upstairs": False,
    "downstairs": False,
}
"""Words that tell only whether somebody is under the sky."""


def places_of(moments: Sequence[Moment]) -> list[str]:
    """Return the place of each picture, "" where nothing tells it."""
    return [_place(moment) for moment in moments]


def _place(moment: Moment) -> str:
    story, at = moment.story, moment.main.sentence
    place, found = story.reading.sentences[at].place, _way(story)
    later = place is not None and place.since == at and story.comes_later(place, moment.main)
    later = (later or _is_ahead(moment, found)) and opened_by(said_in(story, at)) is None
    stands = found[at - 1 if at and later else at]
    if place is not None and place.since == at and not later and (aside := _apart(moment, place)) is not None:
        return aside
    if place is not None and place.since == at and (way := under_way(moment.main, place)) is not None:
        return worded(way, _states(story)[at])
    return worded(stands, _states(story)[at])


def _is_ahead(moment: Moment, way: Sequence[str]) -> bool:
    """Whether a later act of the main event's sentence goes to the place where the sentence ends: "They sent him a
    photograph and went to eat at the station"."""
    story, at = moment.story, moment.main.sentence
    if not at or way[at] == way[at - 1] or not way[at]:
        return False
    noun, sentence = way[at].split()[-1], story.reading.sentences[at]
    where = story.reading.text.find(noun, sentence.start, sentence.end)
    own = next((act for act in story.acts[at] if act.holds(moment.main)), None)
    return own is not None and where >= own.end


def _apart(moment: Moment, place: Place) -> str | None:
    """Where one alone of the story goes who does not take it along: "He ran and jumped into the lake"."""
    story, event = moment.story, moment.main
    goes = any(
        role.entity == place.entity is not None and role.preposition in ("into", "in", "onto")
        for role in event.all("goal")
    )
    who = story.teller.people(event.who("agent"))
    key = setting_of(place)
    if not goes or not who or key is None or not event.happens or acts_there(story, event, who):
        return None
    return None if goes_with(story, who, event.sentence) else story.teller.place(place)


@lru_cache(maxsize=4)
def _states(story: Story) -> list[tuple[str, ...]]:
    return list(conditions(story, _way(story)))


@lru_cache(maxsize=4)
def _way(story: Story) -> list[str]:
    """The place of each sentence of a story."""
    known: set[str] = set()
    told = [heard(story, at, known) for at in range(len(story.reading.sentences))]
    return _in_words(told, _by_rules(story, told))


def _by_rules(story: Story, told: Sequence[Heard]) -> list[Key | None]:
    """The place of each sentence that fits best what the words of all of them tell."""
    title = words_of(nameless(story, story.title))
    firm = any(one.firm for one in told)
    for setting in settings() if title else ():
        value = max((setting.weights.get(word, 0.0) for word in title), default=0.0)
        shown = not firm or any(sentence.speaks.get(setting, 0.0) >= _TITLED for sentence in told)
        if value >= _TITLED and shown:
            for sentence in told:
                sentence.speaks[setting] += (_TITLE if firm else _TITLE_ALONE) * value
    for one, after in pairwise(told):
        if one.noun in PASSED:
            after.step = min(after.step, ARRIVED)
        elif one.firm and after.step == GONE:
            after.step = STEP  # they went, and the text says where
    _go_on(told)
    _arrive(story, told)
    share = main_places(story, told)
    for sentence in told:
        for setting, value in share.items():
            sentence.speaks[setting] += _MAIN * value / len(told)
    keys: list[Key] = [key for key in _total(told) if any(one.said == key for one in told)]
    keys += [key for key in (*share, *_before(told)) if key not in keys]
    for at, one in enumerate(told):
        for earlier in told[:at] if one.reached else ():
            if earlier.said != one.said and one.said is not None:
                earlier.speaks[one.said] -= _NOT_YET
    keys.sort(key=lambda key: settings().index(key) if isinstance(key, Setting) else len(settings()))
    if not keys:
        return [None] * len(told)
    for one in told:
        for key in keys if one.firm else ():
            one.speaks[key] -= (key != one.said) * _CONTRADICTED
    certain = {one.said for one in told if one.said is not None and (one.firm or one.speaks[one.said] >= HEARD)}
    best = {key: told[0].speaks.get(key, 0.0) for key in keys}
    back: list[Mapping[Key, Key]] = []
    for one in told[1:]:
        came = {key: max(keys, key=partial(_to, best, key, one, certain)) for key in keys}
        best = {key: best[old] - _cost(old, key, one, certain) + one.speaks.get(key, 0.0) for key, old in came.items()}
        back.append(came)
    way = [max(keys, key=lambda key: best[key])]
    for steps in reversed(back):
        way.append(steps[way[-1]])
    way.reverse()
    known_by = {key for one, key in zip(told, way, strict=True) if one.speaks[key] >= _STRONG}
    known_by |= {key for key in way if isinstance(key, Said) or share.get(key, 0.0) >= _GUESS}
    words = story_words(story)
    known_by |= {key for key in way if isinstance(key, Setting) and key.fit(words) >= _DENSE * len(told)}
    known_by |= {
        key
        for key in way
        if isinstance(key, Setting) and share.get(key, 0.0) >= _LIKELY and key.owns(words) >= _OWN_WORDS
    }
    usual = usual_place(story)
    known_by |= {key for key in way if any(one.names(key) for one in told)}
    return [key if key in known_by else usual for key in way]


def _arrive(story: Story, told: Sequence[Heard]) -> None:
    """Let those who ride or drive somewhere be there in the next sentence, and mark where somebody comes to a place."""
    for at, one in enumerate(told):
        goal = _destination(story, at) if one.firm and isinstance(one.said, Setting) else None
        after = told[at + 1] if at + 1 < len(told) else None
        if goal is not None and goal[0] != one.said and after is not None and after.said is None:
            after.said, after.words, after.firm, after.step = *goal, True, ARRIVED
            after.speaks[goal[0]] += SAID
        elif goal is not None and goal[0] == one.said:
            one.reached = True
        elif one.noun == "home" and not one.firm:
            one.reached = at > 0  # who goes home was elsewhere before


def _destination(story: Story, at: int) -> tuple[Key, str] | None:
    """The place to which somebody goes in a sentence, and its words."""
    for event in story.reading.of(at):
        goes = load_words().has("motion", event.verb) or event.verb in planning("shift")["on_way"]
        for role in event.all("goal") if goes and event.happens and event.speech is None else ():
            known = any(story.reading.entity(key).sentences[0] < at for key in story.teller.people(event.who("agent")))
            if known and (role.preposition in ("to", "into") or role.head == "home"):
                key = named(role.text) or (Said(role.head) if load_words().has("place", role.head) else None)
                if key is not None:
                    return key, story.teller.filler(role, story.teller.doers(event))
    return None


def _before(told: Sequence[Heard]) -> list[Key]:
    """The place that fits best the sentences before the first one to which somebody comes from elsewhere."""
    first = next((at for at, one in enumerate(told) if one.firm or one.reached), len(told))
    if first == len(told) or not first or not told[first].reached:
        return []
    total = _total(told[:first])
    best = max(total, key=lambda key: total[key], default=None)
    if best is not None and total[best] >= _HARDLY:
        return [best]
    street = named("street") if told[first].noun == "home" else None
    return [street] if street is not None else []


def _to(best: Mapping[Key, float], new: Key, at: Heard, sure: Collection[Key], old: Key) -> tuple[float, bool]:
    """How good a way is that comes from `old`; of equals who goes late has stayed as long as could be."""
    return best[old] - _cost(old, new, at, sure), old != new


def _cost(old: Key, new: Key, at: Heard, sure: Collection[Key]) -> float:
    """What it costs to be in another place than a sentence before. sure: where the story says that somebody is."""
    if old == new:
        return 0.0
    if old in sure and new not in sure and at.said != new:
        return _FROM_SURE
    if at.said == new and at.noun in PASSED and isinstance(old, Setting) and not old.open:
        return STEP  # who comes down the stairs comes to where the story is
    rooms = isinstance(old, Setting) and isinstance(new, Setting) and old.home and new.home
    step = at.step if at.said == new or at.step == ELSEWHERE else max(at.step, _UNSAID)
    return min(step, ARRIVED if at.said == new and at.firm else STEP, ROOM if rooms and at.said == new else STEP)


def _in_words(told: Sequence[Heard], way: Sequence[Key | None]) -> list[str]:
    """The places as the text words them: in its last words for each, as long as the story is there."""
    found, last = list[str](), dict[Key, str]()
    for one, key in zip(told, way, strict=True):
        if key is None:
            found.append("")
            continue
        if one.said == key and one.words:
            last[key] = one.words
        found.append(last.get(key, key.place if isinstance(key, Setting) else f"the {key.noun}"))
    return found


def _total(told: Sequence[Heard]) -> dict[Key, float]:
    """What speaks for each place in all sentences."""
    total: dict[Key, float] = defaultdict(float)
    for one in told:
        for key, value in one.speaks.items():
            total[key] += value
    return total


def _go_on(told: Sequence[Heard]) -> None:
    """Let a place that others have too speak for the one of which the story tells: a corridor for the hospital, a yard
    for the school's; and what is only outside or inside for all such places of the story."""
    total = _total(told)
    for whole in [key for key in total if isinstance(key, Setting) and key.instead and total[key] >= _KNOWN]:
        for one in told:
            room = named(whole.instead)
            if room is not None and one.said != room and room in one.speaks:
                one.speaks[whole] += one.speaks.pop(room)
    for one in told:
        fitting = [key for key in total if isinstance(key, Setting) and key != one.said and total[key] >= _ENOUGH]
        beside = [key for key in fitting if key.open == _BY_SIDE.get(one.noun)]
        for key in beside:
            one.speaks[key] += _OUTSIDE
        if beside and one.said is not None:
            one.speaks[one.said] = 0.0
        own = isinstance(one.said, Setting) and one.noun not in one.said.names  # a hotel room is no room of a ward
        part_of = max(
            (key for key in fitting if one.noun in key.like and not own), key=lambda key: total[key], default=None
        )
        yard = next((named(key.yard) for key in fitting if key.yard), None) if one.noun in _YARDS else None
        if one.said is not None and (part := yard or part_of) is not None:
            one.speaks[part] += _LIKE
            one.speaks[one.said] -= HEARD
            one.said, one.words = part, ""


_ARTICLE = re.compile(r"^((?:the|a|an|his|her|their|its|my|our|[\w.' -]+?s?['\u2019]s?) )?(.*)$")


@dataclass(frozen=True)
class _Condition:
    """One row of `place_states`, as sketch/src/katha_sketch/data/planning.yaml explains it."""

    word: str
    states: frozenset[str]
    of: frozenset[str]
    verbs: frozenset[str]
    ends: frozenset[str]
    by: re.Pattern[str] | None
    clears: re.Pattern[str] | None
    never: frozenset[str]

    def begins(self, events: Sequence[Event], text: str) -> bool:
        """Whether a sentence tells it."""
        told = self.by is not None and self.by.search(text) is not None
        return told or any(self._told(event) for event in events)

    def stops(self, events: Sequence[Event], text: str) -> bool:
        """Whether a sentence tells its end."""
        if self.clears is not None and self.clears.search(text) is not None:
            return True
        return any(_verb(event) in self.ends and bool(_heads(event) & self.of) for event in events)

    def _told(self, event: Event) -> bool:
        if _verb(event) in self.verbs and _heads(event) & self.of:
            return True
        where = {role.head.lower() for role in event.all("agent")}
        place = any(load_words().has("place", head) or head in ("everything", "floor") for head in where)
        return place and bool({state.lower() for state in event.state} & self.states)


@cache
def _conditions() -> tuple[_Condition, ...]:
    rows: Mapping[str, Mapping[str, Sequence[str]]] = planning("place_states")
    return tuple(
        _Condition(
            word,
            frozenset(row.get("states", ())),
            frozenset(row.get("of", ())),
            frozenset(row.get("verbs", ())),
            frozenset(row.get("ends", ())),
            _any_of(row.get("by", ())),
            _any_of(row.get("clears", ())),
            frozenset(row.get("never", ())),
        )
        for word, row in rows.items()
    )


def _any_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return _one_of(patterns) if patterns else None


def _one_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b")


def _verb(event: Event) -> str:
    return f"{event.verb}_{event.particle}" if event.particle else event.verb


def _heads(event: Event) -> set[str]:
    return {role.head.lower() for role in event.all("agent", "patient")}


def conditions(story: Story, way: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield for each sentence what its place of `way` is in, until it ends, time passes or another place comes."""
    held: list[str] = []
    for at, sentence in enumerate(story.reading.sentences):
        if at and (way[at] != way[at - 1] or story.passes(at)):
            held = []
        told = [event for event in story.reading.of(at) if event.happens and event.speech is None]
        events = [event for event in told if event.within is None and not event.aside]
        # What is only told of ("he told me about the winter when the snow buried the box") is not here.
        spoken = any(event.verb in planning("verbs")["talk"] for event in told)
        text = "" if spoken else plain(sentence.text)
        for one in _conditions():
            if one.stops(events, text):
                held = [word for word in held if word != one.word]
            elif one.begins(events, text) and one.word not in held and not one.never & set(way[at].split()):
                held = [*held, one.word]
        yield tuple(held)


def worded(place: str, words: Collection[str]) -> str:
    """Return a place with what it is in: "the dark, flooded cellar"."""
    new = [word for word in words if word not in place.lower()]
    found = _ARTICLE.match(place)
    if not place or not new or found is None:
        return place
    return f"{found[1] or ''}{', '.join(new)} {found[2]}"


_BACK = "night"
"""What was so before it is told as well; a sunset was not."""


@lru_cache(maxsize=4)
def hours_of(story: Story) -> list[str]:
    """Return the time of day of each sentence, "" where nothing tells it.

    Where the text says none, stars or a night train tell it until time passes or another is said, and before as well
    as far as no time has passed.
    """
    sentences = story.reading.sentences
    title = _hint(story.title)
    found: list[str] = []
    shown: list[bool] = []
    held = title
    for sentence in sentences:
        if story.passes(sentence.index):
            held = title
        hint = _hint(sentence.text)
        held = hint or held
        found.append(sentence.time or held)
        shown.append(sentence.time is None and bool(held))
        if sentence.time is not None:
            held = ""
    for at in range(len(sentences) - 2, -1, -1):
        if not found[at] and shown[at + 1] and found[at + 1] == _BACK and not story.passes(at + 1):
            found[at], shown[at] = found[at + 1], True
    return found


def _hint(text: str) -> str:
    """The time of day that the things of a text tell, "" for none."""
    said = text.lower()
    told = plain(text)
    return next((hour for hour, (things, words) in _tables().items() if things.search(told) or words.search(said)), "")


@cache
def _tables() -> dict[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    return {hour: (_one_of(row["things"]), _one_of(row["spoken"])) for hour, row in planning("hours").items()}


_WORDS, _BEST_WORD, _BY_TITLE, _COMMON, _USUAL, _NEVER = 0.9, 1.0, 1.0, 1.3, 0.8, 10.0
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
    by_words = _WORDS * sum(values) + _BEST_WORD * max(values, default=0.0) + _BY_TITLE * by_title
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
