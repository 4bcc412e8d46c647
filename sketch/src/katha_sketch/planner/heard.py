"""What one sentence of a story tells of where it is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from katha_sketch.english.senses import said_plainly
from katha_sketch.english.types import Event, Place, Role
from katha_sketch.english.words import load_words
from katha_sketch.planner.acts import planning
from katha_sketch.planner.moments import Story
from katha_sketch.planner.settings import (
    Setting,
    flown_over,
    meant,
    mentioned,
    named,
    opened_by,
    plain,
    settings,
    stood_in,
    words_of,
)

__all__ = [
    "ARRIVED", "ELSEWHERE", "GONE", "HEARD", "PASSED", "ROOM", "SAID", "STEP",
    "Heard", "Key", "Said", "acts_there", "goes_with", "heard", "nameless", "said_in", "setting_of", "story_words",
    "under_way",
]  # fmt: skip

SAID, HEARD, _HOMEWARD = 6.0, 3.0, 2.0
"""What it brings that somebody is said to be there, that a thing is, and that somebody goes home."""
STEP, _PARAGRAPH, GONE, _WENT, ROOM, ARRIVED, ELSEWHERE = 5.0, 4.0, 3.0, 2.5, 2.5, 1.5, 0.5
"""What it costs to be elsewhere: at any time, in a new paragraph, after somebody went, when somebody goes or time
passes, from room to room, where the text says so, and after "meanwhile"."""
_STOOD, _MENTIONED = 3.0, 1.5
"""What a place brings that only stands behind "in" or "at", and one that is named at all."""
_MEANWHILE = re.compile(
    r"^(?:meanwhile|elsewhere|far away|at home|back (?:at|in)|across town|on the other side)\b", re.I
)
_PLACED = r"\b(?:in|on|at|aboard|inside|of) (?:the|a|an|his|her|their|its|my|our) ((?:[\w'-]+ ){0,2}[\w'-]+)"
_ANY_ROOM = re.compile(r"^(?:the|a|this|that|his|her|their|my|our)? ?(?:(?:back|next|other|adjoining|same) )?room$")
_BESIDE = re.compile(
    r"^(?:outside|behind|opposite|near|past|around|round|(?:in|at|to) (?:the )?(?:front|outside|back|rear) of)\b"
)
"""Where somebody stands beside a building and not in it."""
_FIRST_BESIDE = re.compile(
    r"(?:outside|opposite|behind|in front of|at the back of) (?:the|a|an|his|her|their|my|our) ([\w'-]+)\b"
)
_CAB = re.compile(r"\bcab of (?:the|an?|his|her) (?:\w+ )?(?:engine|train|locomotive)\b")
_CAPITAL = re.compile(r"\b[A-Z][\w-]+")
_BRAND = re.compile(r"\b([Tt]he|[Aa]n?) (?:[A-Z][\w'-]+ )+(?=[a-z\u00e0-\u00ff])")
"""A name before what it is the name of."""
_ADDRESS = re.compile(
    r"\b(?:[A-Z][\w'-]+ )+(?=(?:Lane|Road|Street|Avenue|Hill|Row|Close|Drive|Crescent|Terrace|Alley|Gardens)\b)"
)
"""What a street is called, which tells no place: no mill is in Mill Lane."""
_OWNERS = re.compile(r"['\u2019]s? ")
PASSED = ("stairs", "stair", "staircase")
"""What people go through, and are seldom at."""


@dataclass(frozen=True)
class Said:
    """A place that no table has, in the text's own words."""

    noun: str


Key = Setting | Said


@dataclass
class Heard:
    """What one sentence tells: what speaks for each place, which one it says in which words, what going there costs."""

    speaks: defaultdict[Key, float] = field(default_factory=lambda: defaultdict(float))
    said: Key | None = None
    noun: str = ""
    words: str = ""
    step: float = STEP
    firm: bool = False
    reached: bool = False
    named: Mapping[Setting, float] = field(default_factory=dict)

    def names(self, key: Key) -> bool:
        """Return whether it says or names a place."""
        return self.said == key or key in self.named


@lru_cache(maxsize=4)
def story_words(story: Story) -> frozenset[str]:
    """The words of a whole story that tell places."""
    return words_of(" ".join(said_in(story, at) for at in range(len(story.reading.sentences))), _verbs(story))


def _verbs(story: Story) -> frozenset[str]:
    return _done(story.reading.events)


def _done(events: Sequence[Event]) -> frozenset[str]:
    """The verbs of events, alone and with what it is done to: who brushes teeth is in a bathroom."""
    told = [event for event in events if event.speech is None]
    pairs = (f"{event.verb} {role.head.lower()}" for event in told for role in event.all("patient"))
    return frozenset((*(event.verb for event in told), *pairs))


def said_in(story: Story, at: int) -> str:
    """A sentence whose words say what they mean: the bar of a tune is no bar."""
    text = story.reading.sentences[at].text
    return nameless(story, said_plainly(text, text, story.reading.text))


def nameless(story: Story, text: str) -> str:
    """Return a text without the words of names, which tell no place: Comet, Mrs. Park, the Blue Whale café."""
    return _names(story).sub("One", _BRAND.sub(r"\1 ", _ADDRESS.sub("", text)))


@lru_cache(maxsize=4)
def _names(story: Story) -> re.Pattern[str]:
    """The words of the names of those in a story; a captain is one by title as well, unless it is a dog's name."""
    words = {
        word
        for one in story.reading.entities
        if one.named and one.character
        for word in _CAPITAL.findall(" ".join((one.name, *one.aliases)))
        if word not in one.titles and not _tells_who(word.lower(), one.sort)
    }
    called = r"(?<=\bcalled |.\bnamed )(?:[A-Z][\w'-]+ ?)+"
    return re.compile("|".join([called, *(rf"\b{re.escape(word)}\b" for word in sorted(words))]))


def _tells_who(word: str, sort: str) -> bool:
    """Whether a word of somebody's name says who they are: Grandma, Captain Flint."""
    return load_words().sort(word) == "person" and sort in ("person", "")


def heard(story: Story, at: int, known: set[str]) -> Heard:
    """What a sentence tells of where it is; its words are `known` then."""
    sentence, told = story.reading.sentences[at], Heard()
    verbs = _done(story.reading.of(at))
    text = said_in(story, at)
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
        told.speaks[described] = max(told.speaks[described], SAID)
    if told.said is None and (own := _runs(story, at)) is not None:
        told.said, told.noun, told.firm = own, own.place.removeprefix("the "), True
        told.speaks[own] = max(told.speaks[own], SAID)
    if told.said is None and _at_home(story, at) and (home := named("home")) is not None:
        told.said, told.noun, told.firm = home, "home", True
        told.speaks[home] = max(told.speaks[home], SAID)
    if told.said is None and (goal := _reached(story, at)) is not None:
        told.said, told.noun, told.firm, told.reached = goal, goal.place.removeprefix("the "), True, at > 0
        told.speaks[goal] = max(told.speaks[goal], SAID)
    if (vehicle := _driven(story, at)) is not None and not told.firm:
        told.said, told.noun, told.words, told.firm = vehicle, vehicle.place.removeprefix("the "), "", True
        told.speaks[vehicle] = max(told.speaks[vehicle], SAID)
    if told.said is None and _drives(story, at) and (car := named("car")) is not None:
        told.said, told.noun = car, "car"
        told.speaks[car] += HEARD
    if told.said is None and (left := next((one for one in story.reading.of(at) if _alights(one)), None)) is not None:
        _alight(told, left)
    if told.said is None and (before := _FIRST_BESIDE.match(plain(text).lstrip())) is not None:
        building = named(before[1])
        _stand(told, named(building.outside) if building is not None and not building.open else None)
    first = opened_by(text, story_words(story))
    if told.said in (None, first) and first is not None and not told.firm:
        told.said, told.firm = first, True
        told.speaks[first] = max(told.speaks[first], SAID)
    elif told.said is None and (below := flown_over(text)) is not None:
        told.said = below
        told.speaks[below] += HEARD
    elif (
        told.said is None
        and not (named_one or _is_shut(story, at))
        and (other := stood_in(text, story_words(story))) is not None
    ):
        told.said = other
        told.speaks[other] += _STOOD
    told.named = mentioned(text, story_words(story))
    for one, share in told.named.items():
        told.speaks[one] += _MENTIONED * share
    return told


def _is_shut(story: Story, at: int) -> bool:
    return any(event.verb == "be" and {*event.state} & {*planning("shift")["closed"]} for event in story.reading.of(at))


def _described(story: Story, at: int) -> Setting | None:
    """The place that a sentence says how it is: "the laundromat was empty"."""
    told = plain(story.reading.sentences[at].text)
    for event in story.reading.of(at):
        if event.verb == "be" and event.happens and {*event.state} & {*planning("shift")["described"]}:
            for role in event.all("agent"):
                place = named(role.head)
                if place is not None and role.head not in ("house", "home") and role.head.lower() in told:
                    return place
    return None


def _runs(story: Story, at: int) -> Setting | None:
    """The place of work that is somebody's: "Mr Kim runs a laundry"."""
    for event in story.reading.of(at):
        plainly = event.speech is None and event.within is None
        if plainly and event.verb in planning("shift")["running"] and story.people(event):
            found = [named(role.head) for role in event.all("patient")]
            return next((one for one in found if one is not None and not one.home), None)
    return None


def _reached(story: Story, at: int) -> Setting | None:
    """The place that people reach or enter in a sentence: "By sunset they had reached the lake"."""
    for event in story.reading.of(at):
        plainly = event.happens and event.speech is None and event.within is None
        if plainly and event.verb in planning("shift")["reaching"] and story.teller.people(event.who("agent")):
            found = [meant(named(role.text), role.head, story_words(story)) for role in event.all("patient", "goal")]
            return next((one for one in found if one is not None and one.place not in ("the sky",)), None)
    return None


def _drives(story: Story, at: int) -> bool:
    """Whether somebody drives in a sentence that names no vehicle: "She drove with her head out of the window"."""
    events = [event for event in story.reading.of(at) if event.verb == "drive" and event.happens and not event.perfect]
    return any(event.speech is None and not event.aside and story.teller.people(event.who("agent")) for event in events)


def _at_home(story: Story, at: int) -> bool:
    """Whether something happens at home, in whatever clause of a sentence: "and at home the tooth was gone"."""
    return any(
        role.head == "home"
        and role.preposition == "at"
        and event.happens
        and not event.perfect
        and event.verb not in planning("shift")["keeping"]
        for event in story.reading.of(at)
        for role in event.all("place")
        if event.speech is None
    )


def _driven(story: Story, at: int) -> Setting | None:
    """The vehicle that somebody drives in a sentence: "Mr Okoro drives it every day"."""
    for event in story.reading.of(at):
        somebody = event.happens and not event.perfect and story.teller.people(event.who("agent"))
        if somebody and event.speech is None and event.verb in planning("shift")["steering"]:
            for role in event.all("patient", "instrument", "place"):
                entity = story.reading.entity(role.entity) if role.entity is not None else None
                noun = entity.noun if entity is not None else role.head
                if noun and load_words().sort(noun) == "vehicle" and (found := named(noun)) is not None:
                    return found
    return None


def _hear(story: Story, place: Place, told: Heard) -> None:
    """Take the place that a sentence names, where it can be one."""
    shift, text = planning("shift"), plain(story.reading.sentences[place.since].text)
    if (inner := _within(story, place, text)) is not None:
        told.said, told.noun, told.firm = inner, inner.place.removeprefix("the "), True
        told.speaks[inner] += SAID
        return
    if _ADDRESS.match(place.text):
        return
    key = meant(setting_of(place), place.noun, story_words(story))
    if key is None and _is_named(story, place):
        return  # a town by its name tells no picture
    thing = key is None and (place.noun in shift["nowhere"] or named(place.noun) is not None)  # wall bars are no bar
    if thing or _ANY_ROOM.match(place.text.lower()):
        return
    if not (load_words().has("place", place.noun) or place.sort in shift["places"] or key is not None):
        return
    hidden = place.noun not in text and place.text.lower() not in text
    if hidden and (place.entity or place.preposition in ("from", "of")):
        return  # it is only painted, or spoken of
    owner = story.reading.entity(place.entity).owner if place.entity else None
    if re.search(rf"\bfrom {re.escape(place.noun)} to {re.escape(place.noun)}\b", text):
        return
    if _is_of_others(text, place.noun):
        return
    if _on_way(text, place.noun) or (place.entity and story.reading.entity(place.entity).character):
        return
    if owner is not None and story.reading.entity(owner).kind == "thing":
        return  # a chess piece's square
    there = _is_there(story, place)
    if there is None:
        return
    if (_gets_off(story, place) or _BESIDE.search(f"{place.preposition} {place.text.lower()}")) and _is_building(place):
        _stand(told, named(_outside(place)))
        return
    if (
        place.preposition in shift["beside"]
        and key is not None
        and key.outside != "the street"
        and place.sort == "vehicle"
    ):
        _stand(told, named(key.outside))  # who runs along a train is not in it
        return
    told.said, told.noun = key if key is not None else Said(place.noun), place.noun
    along = place.preposition in planning("shift")["along"] and (key is None or key.open)
    passed = place.noun in PASSED or along or (key is None and load_words().has("prep_by", place.preposition))
    told.firm = not passed and there
    home = place.text.lower() == "home"
    told.firm = told.firm and not (home and not _is_home(story, place.since))  # who goes home may be drawn on the way
    told.speaks[told.said] += SAID if told.firm else _HOMEWARD if home else HEARD
    if place.noun in PASSED:
        told.speaks[told.said] = HEARD
    own = key is None or place.text.lower().endswith(place.noun)
    own = own and key == setting_of(place) and not (isinstance(key, Setting) and key.known_as(place.text))
    told.words = _own_words(story, place) if own else ""


def _own_words(story: Story, place: Place) -> str:
    """A place as the text words it; whose it is is said of one by name alone."""
    words = story.teller.place(place)
    several = any(word in words for word in (" and ", "narrator")) or bool(re.search(r" of .*['\u2019]s? ", words))
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
    key = setting_of(place)
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


def setting_of(place: Place) -> Setting | None:
    """The place of the table that a text's place is; its noun counts alone where the text has another word for it."""
    if _CAB.search(place.text.lower()):
        return named("train")
    part, _, whole = place.text.lower().partition(" of ")
    if whole and part.endswith(place.noun) and (inner := named(part)) is not None:
        wider = named(whole)  # the cellar of a house is the cellar, and the bridge of a ship the ship
        return wider if wider is not None and place.noun in wider.like | wider.also else inner
    told = any(word.startswith(place.noun) for word in place.text.lower().split())
    return named(place.text) or (None if told else named(place.noun))


def _stand(told: Heard, there: Setting | None) -> None:
    """Take what is outside of a place for where a sentence is."""
    if there is not None:
        told.said, told.noun, told.firm = there, there.place.removeprefix("the "), True
        told.speaks[there] += SAID


def _on_way(text: str, noun: str) -> bool:
    """Whether a place is only gone to: "on the way to school"."""
    phrase = rf"\bway (?:(?:back |home )?(?:to|from|into|towards) (?:\w+ )?)?{re.escape(noun)}\b"
    return re.search(phrase, text) is not None


def _is_of_others(text: str, noun: str) -> bool:
    """Whether a place only says which people are meant, or is the one that they have left: "the children of his
    street", "ten minutes after leaving the hotel"."""
    own = r"(?:(?:the|a|an|his|her|their|its|my|our) )?(?:\w+ )?"
    who = "children|boys|girls|people|men|women|elders|inhabitants|owner|mayor|king|queen"
    return re.search(rf"\b(?:(?:{who}) of|leaving) {own}{re.escape(noun)}\b", text) is not None


def _gets_off(story: Story, place: Place) -> bool:
    """Whether somebody gets off what they rode at a building: they are before it."""
    return any(
        event.verb in planning("shift")["alighting"] and event.particle == "off" and role.preposition == "at"
        for event in story.reading.of(place.since)
        for role in event.roles
        if role.head == place.noun
    )


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
                if goes and not (acts_there(story, event, who) or goes_with(story, who, place.since)):
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


def under_way(event: Event, place: Place) -> str | None:
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
    key = setting_of(place)
    of_home = key is not None and key.home and place.noun not in planning("shift")["houses"]
    room = of_home or place.noun.endswith("room")
    return place.sort in ("building", "group") and not room and (key is None or not key.open)


def _outside(place: Place) -> str:
    """Where somebody is who is outside a building."""
    key = setting_of(place)
    return key.outside if key is not None else "the street"


def acts_there(story: Story, went: Event, who: Sequence[str]) -> bool:
    """Whether who goes does something afterwards in the same sentence: "rode to the bakery and bought a cake"."""
    later = [one for one in story.reading.of(went.sentence) if one.id > went.id and one.within is None and one.happens]
    return any({*one.who("agent")} & {*who} and one.speech is None and not one.all("goal") for one in later)


def goes_with(story: Story, who: Sequence[str], at: int) -> bool:
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
        return ELSEWHERE
    later = at and sentences[at].time != sentences[at - 1].time
    if later or story.passes(at) or story.goes_on(at) or _goes(story, at):
        return _WENT
    if at and (story.goes_on(at - 1) or _goes(story, at - 1)):
        return GONE
    return _PARAGRAPH if at and sentences[at].paragraph != sentences[at - 1].paragraph else STEP


def _goes(story: Story, at: int) -> bool:
    """Whether somebody goes out, away, home or back in a sentence."""
    for event in story.reading.of(at):
        who = story.teller.people(event.who("agent"))
        if who and _leads_away(event) and (event.all("goal") or goes_with(story, who, at)):
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


def _alight(told: Heard, event: Event) -> None:
    """Take for where a sentence is what lies outside the vehicle that somebody leaves."""
    vehicle = next((found for role in _left(event) if (found := named(role.head)) is not None), None)
    if vehicle is not None:
        _stand(told, named(vehicle.outside))
    else:
        told.said, told.noun = Said("outside"), "outside"


def _leads_away(event: Event) -> bool:
    if not event.happens or event.perfect:
        return False
    if event.verb in planning("errands") and event.purpose:
        return True  # "went to eat noodles"
    away = event.particle in ("out", "away", "off", "home", "back", "in") or bool(event.all("goal"))
    return load_words().has("motion", event.verb) and away
