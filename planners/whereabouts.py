"""Where each picture is: the places that fit a story's sentences best, as one way through all of them.

Each sentence speaks for some places, by what it says and by the things in it. To be elsewhere than a sentence before
costs something, little where the text says that somebody goes there or that time passes. The cheapest way says where
every sentence is: a place that is told late holds from the beginning, and one that is only spoken of moves nobody.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise

from katha.planners.acts import planning
from katha.planners.conditions import conditions, worded
from katha.planners.moments import Moment, Story
from katha.planners.settings import Setting, meant, named, opened_by, plain, settings, stood_in, words_of
from katha.text.senses import said_plainly
from katha.text.types import Event, Place, Role
from katha.text.words import load_words

__all__ = ["places_of"]


_SAID, _HEARD, _LIKE, _OUTSIDE, _TITLE = 6.0, 3.0, 5.0, 4.0, 0.15
"""What it brings that somebody is said to be there, that a thing is, that the place is part of another, that it is
outside or inside; and the share for every sentence of what the title brings."""
_STEP, _PARAGRAPH, _GONE, _WENT, _ROOM, _ARRIVED, _ELSEWHERE = 5.0, 4.0, 3.0, 2.5, 2.5, 1.5, 0.5
"""What it costs to be elsewhere: at any time, in a new paragraph, after somebody went, when somebody goes or time
passes, from room to room, where the text says so, and after "meanwhile"."""
_CONTRADICTED = 1.5
_STOOD = 3.0
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
_CERTAIN, _LIKELY, _VAGUE = 2.8, 2.0, 3
"""So much tells a place where the text does not say it, or the best one where nothing tells another; so many things
that any room has, a room."""
_MEANWHILE = re.compile(
    r"^(?:meanwhile|elsewhere|far away|at home|back (?:at|in)|across town|on the other side)\b", re.I
)
_PLACED = r"\b(?:in|on|at|aboard|inside|of) (?:the|a|an|his|her|their|its|my|our) ((?:[\w'-]+ ){0,2}[\w'-]+)"
_ANY_ROOM = re.compile(r"^(?:the|a|this|that|his|her|their|my|our)? ?(?:(?:back|next|other|adjoining|same) )?room$")
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
_BESIDE = re.compile(
    r"^(?:outside|behind|opposite|near|past|around|round|(?:in|at|to) (?:the )?(?:front|outside|back|rear) of)\b"
)
"""Where somebody stands beside a building and not in it."""
_OWNERS = re.compile(r"['\u2019]s? ")
_PASSED = ("stairs", "stair", "staircase")
"""What people go through, and are seldom at."""


@dataclass(frozen=True)
class _Said:
    """A place that no table has, in the text's own words."""

    noun: str


_Key = Setting | _Said


@dataclass
class _Sentence:
    """What one sentence tells: what speaks for each place, which one it says in which words, what going there costs."""

    speaks: defaultdict[_Key, float] = field(default_factory=lambda: defaultdict(float))
    said: _Key | None = None
    noun: str = ""
    words: str = ""
    step: float = _STEP
    firm: bool = False
    reached: bool = False


def places_of(moments: Sequence[Moment]) -> list[str]:
    """Return the place of each picture, "" where nothing tells it."""
    return [_place(moment) for moment in moments]


def _place(moment: Moment) -> str:
    story, at = moment.story, moment.main.sentence
    place, found = story.reading.sentences[at].place, _way(story)
    later = place is not None and place.since == at and story.comes_later(place, moment.main)
    later = (later or _is_ahead(moment, found)) and opened_by(_plainly(story, at)) is None
    stands = found[at - 1 if at and later else at]
    if place is not None and place.since == at and not later and (aside := _apart(moment, place)) is not None:
        return aside
    if place is not None and place.since == at and (way := _under_way(moment.main, place)) is not None:
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
    key = _setting(place)
    if not goes or not who or key is None or not event.happens or _acts_there(story, event, who):
        return None
    return None if _goes_with(story, who, event.sentence) else story.teller.place(place)


@lru_cache(maxsize=4)
def _states(story: Story) -> list[tuple[str, ...]]:
    return list(conditions(story, _way(story)))


@lru_cache(maxsize=4)
def _way(story: Story) -> list[str]:
    """The place of each sentence of a story."""
    known: set[str] = set()
    told = [_sentence(story, at, known) for at in range(len(story.reading.sentences))]
    title = words_of(story.title)
    firm = any(one.firm for one in told)
    for setting in settings() if title else ():
        value = max((setting.weights.get(word, 0.0) for word in title), default=0.0)
        shown = not firm or any(sentence.speaks.get(setting, 0.0) >= _TITLED for sentence in told)
        if value >= _TITLED and shown:
            for sentence in told:
                sentence.speaks[setting] += (_TITLE if firm else _TITLE_ALONE) * value
    for one, after in pairwise(told):
        if one.noun in _PASSED:
            after.step = min(after.step, _ARRIVED)
        elif one.firm and after.step == _GONE:
            after.step = _STEP  # they went, and the text says where
    _go_on(told)
    _arrive(story, told)
    total = _total(told)
    said = _words(story)
    keys = [key for key in total if total[key] >= _ENOUGH and _told(key, told, said)]
    keys = keys or _any_room(said) or _likeliest(said)
    keys += [key for key in _before(told) if key not in keys]
    for at, one in enumerate(told):
        for earlier in told[:at] if one.reached else ():
            if earlier.said != one.said and one.said is not None:
                earlier.speaks[one.said] -= _NOT_YET
    keys.sort(key=lambda key: settings().index(key) if isinstance(key, Setting) else len(settings()))
    if not keys:
        return [""] * len(told)
    for one in told:
        for key in keys if one.firm else ():
            one.speaks[key] -= (key != one.said) * _CONTRADICTED
    sure = {one.said for one in told if one.said is not None and (one.firm or one.speaks[one.said] >= _HEARD)}
    best = {key: told[0].speaks.get(key, 0.0) for key in keys}
    back: list[Mapping[_Key, _Key]] = []
    for one in told[1:]:
        came = {key: max(keys, key=partial(_to, best, key, one, sure)) for key in keys}
        best = {key: best[old] - _cost(old, key, one, sure) + one.speaks.get(key, 0.0) for key, old in came.items()}
        back.append(came)
    way = [max(keys, key=lambda key: best[key])]
    for steps in reversed(back):
        way.append(steps[way[-1]])
    return _in_words(told, way[::-1])


def _arrive(story: Story, told: Sequence[_Sentence]) -> None:
    """Let those who ride or drive somewhere be there in the next sentence, and mark where somebody comes to a place."""
    for at, one in enumerate(told):
        goal = _destination(story, at) if one.firm and isinstance(one.said, Setting) else None
        after = told[at + 1] if at + 1 < len(told) else None
        if goal is not None and goal[0] != one.said and after is not None and after.said is None:
            after.said, after.words, after.firm, after.step = *goal, True, _ARRIVED
            after.speaks[goal[0]] += _SAID
        elif goal is not None and goal[0] == one.said:
            one.reached = True


def _destination(story: Story, at: int) -> tuple[_Key, str] | None:
    """The place to which somebody goes in a sentence, and its words."""
    for event in story.reading.of(at):
        goes = load_words().has("motion", event.verb) or event.verb in planning("shift")["on_way"]
        for role in event.all("goal") if goes and event.happens and event.speech is None else ():
            known = any(story.reading.entity(key).sentences[0] < at for key in story.teller.people(event.who("agent")))
            if known and (role.preposition in ("to", "into") or role.head == "home"):
                key = named(role.text) or (_Said(role.head) if load_words().has("place", role.head) else None)
                if key is not None:
                    return key, story.teller.filler(role, story.teller.doers(event))
    return None


def _before(told: Sequence[_Sentence]) -> list[_Key]:
    """The place that fits best the sentences before the first one to which somebody comes from elsewhere."""
    first = next((at for at, one in enumerate(told) if one.firm), len(told))
    if first == len(told) or not first or not told[first].reached:
        return []
    total = _total(told[:first])
    best = max(total, key=lambda key: total[key], default=None)
    return [best] if best is not None and total[best] >= _HARDLY else []


def _told(key: _Key, told: Sequence[_Sentence], said: frozenset[str]) -> bool:
    """Whether more than a few words that would fit elsewhere too speak for a place."""
    if isinstance(key, _Said) or any(one.said == key for one in told):
        return True
    return key.fit(said) >= _CERTAIN


def _likeliest(said: frozenset[str]) -> list[_Key]:
    """The place that fits a story best of which nothing else tells one."""
    best = max(settings(), key=lambda one: one.fit(said))
    return [best] if best.fit(said) >= _LIKELY else []


def _any_room(said: frozenset[str]) -> list[_Key]:
    """The place of a story that tells none, and of things that any room has."""
    return [one for one in settings() if len(said & one.vague) >= _VAGUE]


@lru_cache(maxsize=4)
def _words(story: Story) -> frozenset[str]:
    """The words of a whole story that tell places."""
    return words_of(" ".join(_plainly(story, at) for at in range(len(story.reading.sentences))), _verbs(story))


def _verbs(story: Story) -> frozenset[str]:
    return frozenset(event.verb for event in story.reading.events if event.speech is None)


def _to(best: Mapping[_Key, float], new: _Key, at: _Sentence, sure: Collection[_Key], old: _Key) -> tuple[float, bool]:
    """How good a way is that comes from `old`; of equals who goes late has stayed as long as could be."""
    return best[old] - _cost(old, new, at, sure), old != new


def _cost(old: _Key, new: _Key, at: _Sentence, sure: Collection[_Key]) -> float:
    """What it costs to be in another place than a sentence before. sure: where the story says that somebody is."""
    if old == new:
        return 0.0
    if old in sure and new not in sure and at.said != new:
        return _FROM_SURE
    if at.said == new and at.noun in _PASSED and isinstance(old, Setting) and not old.open:
        return _STEP  # who comes down the stairs comes to where the story is
    rooms = isinstance(old, Setting) and isinstance(new, Setting) and old.home and new.home
    step = at.step if at.said == new or at.step == _ELSEWHERE else max(at.step, _UNSAID)
    return min(step, _ARRIVED if at.said == new and at.firm else _STEP, _ROOM if rooms and at.said == new else _STEP)


def _in_words(told: Sequence[_Sentence], way: Sequence[_Key]) -> list[str]:
    """The places as the text words them: in its last words for each, as long as the story is there."""
    found, last = list[str](), dict[_Key, str]()
    for one, key in zip(told, way, strict=True):
        if one.said == key and one.words:
            last[key] = one.words
        found.append(last.get(key, key.place if isinstance(key, Setting) else f"the {key.noun}"))
    return found


def _total(told: Sequence[_Sentence]) -> dict[_Key, float]:
    """What speaks for each place in all sentences."""
    total: dict[_Key, float] = defaultdict(float)
    for one in told:
        for key, value in one.speaks.items():
            total[key] += value
    return total


def _go_on(told: Sequence[_Sentence]) -> None:
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
            one.speaks[one.said] -= _HEARD
            if yard is not None:
                one.said, one.words = yard, ""


def _plainly(story: Story, at: int) -> str:
    """A sentence whose words say what they mean: the bar of a tune is no bar."""
    text = story.reading.sentences[at].text
    return said_plainly(text, text, story.reading.text)


def _sentence(story: Story, at: int, known: set[str]) -> _Sentence:
    """What a sentence tells of where it is; its words are `known` then."""
    sentence, told = story.reading.sentences[at], _Sentence()
    verbs = frozenset(event.verb for event in story.reading.of(at) if event.speech is None)
    text = _plainly(story, at)
    words = words_of(text, verbs)
    for one in settings():
        if value := one.score(words, known):
            told.speaks[one] += value
    known |= words
    told.step = _step(story, at)
    named_one = sentence.place is not None and sentence.place.since == at
    if named_one and sentence.place is not None:
        _hear(story, sentence.place, told)
    if told.said is None and (described := _described(story, at)) is not None:
        told.said, told.noun, told.firm = described, described.place.removeprefix("the "), True
        told.speaks[described] = max(told.speaks[described], _SAID)
    if told.said is None and _at_home(story, at) and (home := named("home")) is not None:
        told.said, told.noun, told.firm = home, "home", True
        told.speaks[home] = max(told.speaks[home], _SAID)
    if (vehicle := _driven(story, at)) is not None and not told.firm:
        told.said, told.noun, told.words, told.firm = vehicle, vehicle.place.removeprefix("the "), "", True
        told.speaks[vehicle] = max(told.speaks[vehicle], _SAID)
    if told.said is None and _drives(story, at) and (car := named("car")) is not None:
        told.said, told.noun = car, "car"
        told.speaks[car] += _HEARD
    if told.said is None and (left := next((one for one in story.reading.of(at) if _alights(one)), None)) is not None:
        _alight(told, left)
    first = opened_by(text, _words(story))
    if told.said in (None, first) and first is not None and not told.firm:
        told.said, told.firm = first, True
        told.speaks[first] = max(told.speaks[first], _SAID)
    elif (
        told.said is None
        and not (named_one or _is_shut(story, at))
        and (other := stood_in(text, _words(story))) is not None
    ):
        told.said = other
        told.speaks[other] += _STOOD
    return told


def _is_shut(story: Story, at: int) -> bool:
    return any(event.verb == "be" and {*event.state} & {*planning("shift")["closed"]} for event in story.reading.of(at))


def _described(story: Story, at: int) -> Setting | None:
    """The place that a sentence says how it is: "the laundromat was empty"."""
    for event in story.reading.of(at):
        if event.verb == "be" and event.happens and {*event.state} & {*planning("shift")["described"]}:
            for role in event.all("agent"):
                place = named(role.head)
                if place is not None and role.head not in ("house", "home"):
                    return place
    return None


def _drives(story: Story, at: int) -> bool:
    """Whether somebody drives in a sentence that names no vehicle: "She drove with her head out of the window"."""
    events = [event for event in story.reading.of(at) if event.verb == "drive" and event.happens]
    return any(event.speech is None and story.teller.people(event.who("agent")) for event in events)


def _at_home(story: Story, at: int) -> bool:
    """Whether something happens at home, in whatever clause of a sentence: "and at home the tooth was gone"."""
    return any(
        role.head == "home"
        and role.preposition == "at"
        and event.happens
        and event.verb not in planning("shift")["keeping"]
        for event in story.reading.of(at)
        for role in event.all("place")
        if event.speech is None
    )


def _driven(story: Story, at: int) -> Setting | None:
    """The vehicle that somebody drives in a sentence: "Mr Okoro drives it every day"."""
    for event in story.reading.of(at):
        if event.happens and event.speech is None and event.verb in planning("shift")["steering"]:
            for role in event.all("patient", "instrument", "place"):
                entity = story.reading.entity(role.entity) if role.entity is not None else None
                noun = entity.noun if entity is not None else role.head
                if noun and load_words().sort(noun) == "vehicle" and (found := named(noun)) is not None:
                    return found
    return None


def _hear(story: Story, place: Place, told: _Sentence) -> None:
    """Take the place that a sentence names, where it can be one."""
    shift, text = planning("shift"), plain(story.reading.sentences[place.since].text)
    if (inner := _within(story, place, text)) is not None:
        told.said, told.noun, told.firm = inner, inner.place.removeprefix("the "), True
        told.speaks[inner] += _SAID
        return
    key = meant(_setting(place), place.noun, _words(story))
    if key is None and _is_named(story, place):
        return  # a town by its name tells no picture
    thing = key is None and (place.noun in shift["nowhere"] or named(place.noun) is not None)  # wall bars are no bar
    if thing or _ANY_ROOM.match(place.text.lower()):
        return
    if not (load_words().has("place", place.noun) or place.sort in shift["places"] or key is not None):
        return
    if place.entity and place.noun not in text and place.text.lower() not in text:
        return  # it is only painted, or spoken of
    owner = story.reading.entity(place.entity).owner if place.entity else None
    if re.search(rf"\bfrom {re.escape(place.noun)} to {re.escape(place.noun)}\b", text):
        return
    if _on_way(text, place.noun) or (place.entity and story.reading.entity(place.entity).character):
        return
    if owner is not None and story.reading.entity(owner).kind == "thing":
        return  # a chess piece's square
    there = _is_there(story, place)
    if there is None:
        return
    if _BESIDE.search(f"{place.preposition} {place.text.lower()}") and _is_building(place):
        _stand(told, named(_outside(place)))
        return
    told.said, told.noun = key if key is not None else _Said(place.noun), place.noun
    along = place.preposition in planning("shift")["along"] and (key is None or key.open)
    passed = place.noun in _PASSED or along or (key is None and load_words().has("prep_by", place.preposition))
    told.firm = not passed and there
    home = place.text.lower() == "home"
    told.firm = told.firm and not (home and not _is_home(story, place.since))  # who goes home may be drawn on the way
    told.speaks[told.said] += _SAID if told.firm else _ENOUGH if home else _HEARD
    if place.noun in _PASSED:
        told.speaks[told.said] = _HEARD
    own = key is None or place.text.lower().endswith(place.noun)
    own = own and key == _setting(place) and not (isinstance(key, Setting) and key.known_as(place.text))
    told.words = _own_words(story, place) if own else ""


def _own_words(story: Story, place: Place) -> str:
    """A place as the text words it; whose it is is said of one by name alone."""
    words = story.teller.place(place)
    several = " and " in words or "narrator" in words
    bare = _OWNERS.split(words)[-1].removeprefix("the ")
    return f"the {bare}" if several else words


def _is_home(story: Story, at: int) -> bool:
    """Whether somebody gets or is home in a sentence, and does not only go there."""
    return any(
        event.verb in planning("shift")["arriving"] and role.head == "home" and event.happens
        for event in story.reading.of(at)
        for role in event.all("goal", "place")
    )


def _within(story: Story, place: Place, text: str) -> Setting | None:
    """The place inside a wider one: "in my hotel in Lisbon", "on a research vessel in the Southern Ocean"."""
    key = _setting(place)
    if key is not None and not key.open:
        return None
    found = re.search(
        rf"{_PLACED} (?:in|on|at|near|outside|off|by) (?:the |a |an |our |my )?{re.escape(_bare(place))}\b", text
    )
    words = found[1].split() if found is not None else []
    inside = next((one for at in range(len(words)) if (one := named(" ".join(words[at:]))) is not None), None)
    return inside if inside is not None and (not inside.open or inside.outside != "the street") else None


def _bare(place: Place) -> str:
    return re.sub(r"^(?:the|a|an|his|her|their|its|my|our) ", "", place.text.lower())


def _is_named(story: Story, place: Place) -> bool:
    """Whether a place is a town, a country or a sea of which the text tells the name alone."""
    sentence = story.reading.sentences[place.since].text
    at = sentence.find(place.text)
    bare = place.text.removeprefix("the ").removeprefix("The ")
    return at > 0 and bare[:1].isupper() and not load_words().has("place", place.noun.lower())


def _setting(place: Place) -> Setting | None:
    """The place of the table that a text's place is; its noun counts alone where the text has another word for it."""
    told = any(word.startswith(place.noun) for word in place.text.lower().split())
    return named(place.text) or (None if told else named(place.noun))


def _stand(told: _Sentence, there: Setting | None) -> None:
    """Take what is outside of a place for where a sentence is."""
    if there is not None:
        told.said, told.noun, told.firm = there, there.place.removeprefix("the "), True
        told.speaks[there] += _SAID


def _on_way(text: str, noun: str) -> bool:
    """Whether a place is only gone to: "on the way to school"."""
    phrase = rf"\bway (?:(?:back |home )?(?:to|from|into|towards) (?:\w+ )?)?{re.escape(noun)}\b"
    return re.search(phrase, text) is not None


def _is_there(story: Story, place: Place) -> bool | None:
    """Whether somebody is told to be in a place, and not only a thing; None where the story stays with others."""
    for event in story.reading.of(place.since):
        for role in event.roles:
            if role.entity == place.entity is not None or role.head == place.noun:
                who = story.teller.people(event.who("agent", "patient"))
                described = role.role == "agent" and event.verb == "be"
                if described and {*event.state} & {*planning("shift")["closed"]}:
                    return None  # nobody is in a shop that is closed
                goes = bool(who) and role.role != "agent"
                if goes and event.verb in planning("shift")["keeping"] and event.who("patient"):
                    return None  # what somebody has in a truck is there, and not they
                arrives = (event.verb == "be" and not event.existential) or place.sort == "vehicle"
                if goes and arrives and _are_elsewhere(story, who, place.since):
                    return None
                if goes and not (_acts_there(story, event, who) or _goes_with(story, who, place.since)):
                    return None if role.role == "goal" else False  # where others stand may be where all are
                if goes or event.existential or described:
                    return True
                if event.within is not None and not who:
                    return None  # "watched the plane land in the field"
    stands = [role.role for event in story.reading.of(place.since) for role in event.roles if role.head == place.noun]
    return None if stands == ["agent"] else place.entity is None


def _are_elsewhere(story: Story, who: Sequence[str], at: int) -> bool:
    """Whether those of whom it is told for the first time where they are are not in the next sentence: "The doctor was
    in the valley", and the story is not."""
    if not at or any(story.reading.entity(key).sentences[0] < at for key in who):
        return False
    cast = (
        {key for event in story.reading.of(at + 1) for key in story.people(event)}
        if at + 1 < len(story.beats)
        else set()
    )
    return bool(cast) and not cast & set(who)


def _under_way(event: Event, place: Place) -> str | None:
    """Where those are who ride, drive or walk to what one enters: on the way that is told, or before it."""
    goal = next((one for one in event.all("goal") if one.entity == place.entity or one.head == place.noun), None)
    if goal is None or goal.preposition in ("into", "in", "inside") or not _is_building(place):
        return None
    if event.verb not in planning("shift")["on_way"]:
        return None
    for one in event.all("goal", "place"):
        if one.preposition in planning("shift")["along"] and load_words().has("place", one.head):
            return f"the {one.head}"
    return _outside(place)


def _is_building(place: Place) -> bool:
    """Whether a place is what one stands before or is inside of: a shop, and no room of a home."""
    key = _setting(place)
    of_home = key is not None and key.home and place.noun not in planning("shift")["houses"]
    room = of_home or place.noun.endswith("room")
    return place.sort in ("building", "group") and not room and (key is None or not key.open)


def _outside(place: Place) -> str:
    """Where somebody is who is outside a building."""
    key = _setting(place)
    return key.outside if key is not None else "the street"


def _acts_there(story: Story, went: Event, who: Sequence[str]) -> bool:
    """Whether who goes does something afterwards in the same sentence: "rode to the bakery and bought a cake"."""
    later = [one for one in story.reading.of(went.sentence) if one.id > went.id and one.within is None and one.happens]
    return any({*one.who("agent")} & {*who} and one.speech is None and not one.all("goal") for one in later)


def _goes_with(story: Story, who: Sequence[str], at: int) -> bool:
    """Whether the story goes with who goes somewhere, and does not stay with those who were beside them, or with who
    tells it."""
    went = any(event.all("goal") and {*event.who("agent")} & {*who} for event in story.reading.of(at))
    events = story.reading.events
    if any(story.reading.entity(key).count != 1 for key in who):
        return True
    if (
        went
        and (mine := _next_of_narrator(story, at)) is not None
        and not any(story.reading.entity(key).narrator for key in who)
    ):
        return bool(mine & set(who))
    known = {key for event in events if event.sentence < at for key in story.people(event)} - set(who)
    cast = {key for event in events if event.sentence == at + 1 for key in story.people(event)}
    return not cast & known or bool(cast & set(who))


def _next_of_narrator(story: Story, at: int) -> set[str] | None:
    """Who is in the next sentence, of the three after one, in which who tells the story does something."""
    for later in range(at + 1, min(at + 4, len(story.reading.sentences))):
        told = [event for event in story.reading.of(later) if event.happens and event.speech is None]
        if any(story.reading.entity(key).narrator for event in told for key in event.who("agent")):
            return {key for event in told for key in story.people(event)}
    return None


def _step(story: Story, at: int) -> float:
    """What it costs to be elsewhere than in the sentence before."""
    sentences = story.reading.sentences
    if _MEANWHILE.match(sentences[at].text):
        return _ELSEWHERE
    later = at and sentences[at].time != sentences[at - 1].time
    if later or story.passes(at) or story.goes_on(at) or _goes(story, at):
        return _WENT
    if at and (story.goes_on(at - 1) or _goes(story, at - 1)):
        return _GONE
    return _PARAGRAPH if at and sentences[at].paragraph != sentences[at - 1].paragraph else _STEP


def _goes(story: Story, at: int) -> bool:
    """Whether somebody goes out, away, home or back in a sentence."""
    for event in story.reading.of(at):
        who = story.teller.people(event.who("agent"))
        if who and _leads_away(event) and (event.all("goal") or _goes_with(story, who, at)):
            return True
    return False


def _alights(event: Event) -> bool:
    """Whether somebody gets off or out of what they were in (the text need not say what it was), or waits for it."""
    roles = _left(event)
    if event.verb in planning("shift")["awaiting"] and event.happens:
        return bool(roles)
    if not event.happens or event.verb not in planning("shift")["alighting"] or not (roles or event.verb == "get"):
        return False
    off = event.particle in ("off", "out") or any(role.preposition in ("off", "out") for role in roles)
    return off and all(load_words().sort(role.head) == "vehicle" for role in roles)


def _left(event: Event) -> tuple[Role, ...]:
    """What somebody gets off or out of, or waits for."""
    if event.verb in planning("shift")["awaiting"]:
        return tuple(role for role in event.roles if load_words().sort(role.head) == "vehicle" and role.role != "agent")
    told = event.all("source", "goal", "patient")
    return tuple(role for role in told if event.particle in ("off", "out") or role.preposition in ("off", "out"))


def _alight(told: _Sentence, event: Event) -> None:
    """Take for where a sentence is what lies outside the vehicle that somebody leaves."""
    vehicle = next((found for role in _left(event) if (found := named(role.head)) is not None), None)
    if vehicle is not None:
        _stand(told, named(vehicle.outside))
    else:
        told.said, told.noun = _Said("outside"), "outside"


def _leads_away(event: Event) -> bool:
    if not event.happens or event.perfect:
        return False
    if event.verb in planning("errands") and event.purpose:
        return True  # "went to eat noodles"
    away = event.particle in ("out", "away", "off", "home", "back", "in") or bool(event.all("goal"))
    return load_words().has("motion", event.verb) and away
