"""Where and when: the panel's own words first, then what holds in the text, then what the words name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from katha.protocols import FrameRequest
from katha_sketch.drawing.pictograms import find_noun
from katha_sketch.drawing.places import place_data, states_in, states_of_places
from katha_sketch.drawing.scenes.making import QUOTED
from katha_sketch.drawing.scenes.record import SceneThing
from katha_sketch.drawing.scenes.senses import in_table, is_heap, noun_of, place_of, platform_of, time_of
from katha_sketch.english.types import Event, Reading, Sentence
from katha_sketch.english.words import load_words

__all__ = ["Where"]

_PLACED = re.compile(r"\b(?:in|on|at|inside|into|through|to|across|from|near) ((?:[\w'-]+ ){0,3}[\w'-]+)\b")

_SEEN = r"\b(?:look|star|gaz|point|glanc|howl|wav)(?:e|s|es|ed|ing)?(?: up| out| down| back| over)?"
_PART_OF = re.compile(r"\b([a-z]+) (?:door|floor|wall|steps|stairs|counter|ceiling|shelf|shelves|roof|window)\b")
"""What names the place that it is a part of: a cellar door, the kitchen counter."""
_ON_BANK = re.compile(r"\b(?:on|onto|along|up) (?:the|a|its|his|her|their) (?:\w+ )?bank\b")
_IN_WEATHER = re.compile(r"\b(?:in|through|during|into) (?:the|a|an) ((?:heavy )?\w+)\b", re.IGNORECASE)
_TIMES = {"morning": "dawn", "day": "day", "evening": "dusk", "night": "night"}


@dataclass(frozen=True)
class Where:
    """What says where a moment is; a place without a stage is added to `things`, an unknown one to `missing`."""

    request: FrameRequest
    prompt: str
    reading: Reading | None
    things: dict[str, SceneThing]
    roads: set[str]
    missing: list[str]

    def setting(self, events: Sequence[Event]) -> str | None:
        """The panel's place, else what holds in the reading, else what the words name."""
        found = self._setting(events)
        return "river" if found == "bank" and self._ashore(events) else found

    def _ashore(self, events: Sequence[Event]) -> bool:
        """Whether a bank is a river's: who is on it, swims to it or is no person has no money there."""
        people = self.reading is None or any(one.kind in ("person", "group") for one in self.reading.entities)
        wet = any(in_table("ashore", event.verb) for event in events)
        return wet or not people or _ON_BANK.search(self.prompt.lower()) is not None

    def _setting(self, events: Sequence[Event]) -> str | None:
        if self.request.place:
            found = place_of(self.request.place)
            if found is not None:
                return self._on_deck(self._outside(found), events)
            if noun_of(self.request.place) is None:
                self.missing.append(self.request.place)
        if self.reading is None:
            return place_of(self.prompt)
        shown = {thing.word.lower() for thing in self.things.values() if thing.kind == "vehicle" and thing.held_by}
        shown |= {self.reading.entity(key).noun for event in events for key in event.who("agent")}
        held = [sentence.place for sentence in reversed(self.reading.sentences) if sentence.place is not None]
        for place in held:
            if is_heap(place.noun, self.prompt.lower()) or self._only_seen(place.noun):
                continue
            toy = f"toy {place.noun}" in place.text
            thing = toy or find_noun(" ".join(place.text.split()[-2:])) is not None  # an iron bar is no bar
            found = place_of(place.text) or (None if thing else place_of(place.noun))
            if place.noun not in self.roads | shown and found is not None:
                return found
        for event in events:
            for role in event.all("place", "goal", "source"):
                found = place_of(role.head)
                if (
                    found is not None
                    and role.head not in self.roads | shown
                    and not is_heap(role.head, self.prompt.lower())
                    and not self._only_seen(role.head)
                    and not (role.entity and role.entity in self.things)
                ):
                    return found
        bare = [sentence for sentence in self.reading.sentences if not sentence.events]
        named = next((found for found in (place_of(_placed(sentence.text)) for sentence in bare) if found), None)
        named = named or self._lexical() or self._by_part()
        if named is None and held and held[0].sort in ("building", "land", "water") and held[0].noun not in self.roads:
            self._unknown_place(held[0].noun)
        return named

    def _on_deck(self, place: str, events: Sequence[Event]) -> str:
        """The ship's deck for people who do at sea what nobody does in the water."""
        people = {one.id for one in self.reading.entities if one.kind in ("person", "group")} if self.reading else set()
        done = [event.verb for event in events if people & set(event.who("agent"))]
        return (
            "ship_deck"
            if place == "open_sea" and done and not any(in_table("on_deck", verb) for verb in done)
            else place
        )

    def _outside(self, place: str) -> str:
        """Where a vehicle is seen from that is drawn itself: who misses the train is not in its carriage."""
        shown = {thing.word.lower() for thing in self.things.values() if thing.kind == "vehicle"}
        for event in self.reading.events if self.reading is not None else ():
            acting = [self.reading.entity(key) for key in event.who("agent")] if self.reading is not None else []
            # A part of it that has no picture (a compartment) is seen from inside.
            things = [one for one in acting if one.kind not in ("person", "group", "animal")]
            shown |= {
                one.name.lower() for one in things if place_of(one.noun) != place or find_noun(one.noun) is not None
            }
        missed = any(place_of(word) == place for word in shown) and not self.roads
        return platform_of(place) if missed else place

    def _lexical(self) -> str | None:
        """The place after a preposition that the parse gave to something else: "played the violin on the stage"."""
        drawn = {thing.word.lower() for thing in self.things.values()}
        for found in _PLACED.finditer(QUOTED.sub("", self.prompt).lower()):
            words = found.group(1).split()
            for size in range(1, len(words) + 1):
                phrase = " ".join(words[:size])
                if find_noun(" ".join(words[size - 1 : size + 1])) is not None and size < len(words):
                    continue  # the bus of "at the bus stop"
                heap = is_heap(words[size - 1], self.prompt.lower())
                if (
                    place_of(phrase) is not None
                    and words[size - 1] not in drawn
                    and not (heap or self._only_seen(words[size - 1]))
                ):
                    return place_of(phrase)
        return None

    def _only_seen(self, noun: str) -> bool:
        """Whether somebody looks or points at a place, so that nobody is there: who looks at the moon is not on it."""
        pattern = rf"{_SEEN} (?:at|to|towards?) (?:[\w'-]+ ){{1,3}}{re.escape(noun)}\b"
        return re.search(pattern, self.prompt, re.IGNORECASE) is not None

    def _by_part(self) -> str | None:
        """The room that a part of it names ("opened the cellar door"), where nothing else says where one is."""
        text = QUOTED.sub("", self.prompt).lower()
        rooms = [place_of(found.group(1)) for found in _PART_OF.finditer(text) if find_noun(found.group(1)) is None]
        return next((room for room in rooms if room and place_data(room).indoors and room != "living_room"), None)

    def _unknown_place(self, noun: str) -> None:
        """A place that has no stage: its picture stands behind, or its word is kept."""
        entry = find_noun(noun)
        if entry is None:
            if not in_table("skip", noun):
                self.missing.append(noun)
        elif noun not in {thing.word for thing in self.things.values()}:
            self.things[f"place {noun}"] = SceneThing(
                f"place {noun}", noun, entry.pictogram, entry.kind, entry.cm, entry.stands
            )

    def _bare_text(self) -> str:
        sentences: Sequence[Sentence] = self.reading.sentences if self.reading else ()
        return " ".join(one.text for one in sentences if not one.events)

    def time(self) -> str | None:
        if self.request.time_of_day:
            found = time_of(self.request.time_of_day)
            if found is None:
                self.missing.append(self.request.time_of_day)
            return found
        held = [one.time for one in reversed(self.reading.sentences) if one.time] if self.reading else []
        return _TIMES.get(held[0]) if held else time_of(self._bare_text())

    def weather(self) -> str | None:
        held = [one.weather for one in reversed(self.reading.sentences) if one.weather] if self.reading else []
        if held:
            return held[0]
        said = " ".join(found.group(1) for found in _IN_WEATHER.finditer(self.prompt))
        words = re.findall(r"[a-z]+", f"{said} {self._bare_text()} {self.request.place}".lower())
        return next((found for found in (load_words().group("weather", word) for word in words) if found), None)

    def states(self) -> tuple[str, ...]:
        """What the whole place is in: water, darkness; as the panel's place or an event of the prompt tells it."""
        found = dict.fromkeys((*states_in(self.request.place), *self._told_states()))
        return tuple(found)

    def _told_states(self) -> Iterator[str]:
        """What events tell of a place or of all its lamps: "The lights went out."."""
        for event in self.reading.events if self.reading is not None else ():
            if event.standing != "told" or event.negated:
                continue
            words = {word for text in event.state for word in text.lower().split()} | {event.verb, event.predicate}
            heads = {role.head.lower() for role in event.roles}
            for name, row in states_of_places().items():
                spelt = {word.replace(" ", "_") for word in words}
                if spelt & row.told and (heads & row.of or any(place_of(head) is not None for head in heads)):
                    yield name

    def winter(self) -> bool:
        return self.reading is not None and any(one.season == "winter" for one in self.reading.sentences)


def _placed(text: str) -> str:
    """The part of a fragment that can name a place: "In the forest by day." ends before the time."""
    return re.split(r"\b(?:by day|at night|at dawn|at dusk|in the (?:morning|evening))\b", text.lower())[0]
