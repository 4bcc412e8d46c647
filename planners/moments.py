"""Parts of a story, and the one moment of each that can be drawn: what is told, who is there, how they feel, where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from katha.configs import load_config
from katha.schema import Character, StoryRecord
from katha.text import Entity, Event, Place, Reading, Sentence, Teller
from katha.text.words import load_words

__all__ = ["Beat", "Moment", "Story", "scene_texts", "sheet_of"]


def planning(part: str) -> Any:
    """Return a part of `configs/planning.yaml`, where it is explained."""
    return load_config("planning.yaml")[part]


def scene_texts(story: StoryRecord) -> list[str]:
    """Return the scenes' texts, each ending as a sentence."""
    texts = [scene.scene_text for scene in story.scenes]
    return [text if text.endswith((".", "!", "?", '"')) else f"{text}." for text in texts]


# What an event is worth.


@dataclass(frozen=True)
class Beat:
    """One sentence of the story with the events of it that a picture can show, the best first by `weights`."""

    sentence: Sentence
    events: tuple[Event, ...]
    weights: tuple[float, ...]

    @property
    def best(self) -> float:
        """What its best event is worth; 0 where it has none."""
        return max(self.weights, default=0.0)


class Story:
    """A reading with names, beats, and the worth of every event."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.teller = Teller(reading)
        self.beats = [self._beat(sentence) for sentence in reading.sentences]

    def _beat(self, sentence: Sentence) -> Beat:
        shown = [event for event in self.reading.of(sentence.index) if self.teller.shows(event)]
        turn = 1.0 + float(planning("turn")["more"]) * any(
            word in planning("turn")["words"] for word in sentence.text.lower().split(",")[0].split()[:2]
        )
        return Beat(sentence, tuple(shown), tuple(self.worth(event) * turn for event in shown))

    def _doers(self, event: Event) -> Sequence[str]:
        return self.teller.people(self.teller.doers(event)) or self.teller.doers(event)

    def _kind(self, event: Event) -> str:
        """What sort of deed an event is, by its verb."""
        kinds: Mapping[str, str] = {verb: kind for kind, verbs in planning("verbs").items() for verb in verbs}
        return kinds.get(event.verb, "deed")

    def worth(self, event: Event) -> float:
        """Return how much an event is worth drawing: deeds to somebody before movements, then states."""
        table = planning("worth")
        kind = "strong" if {*event.state} & {*planning("events_as_states")} else self._kind(event)
        if event.feeling is not None and event.verb in ("be", "feel", "become"):
            kind = "feeling"
        score = float(table[kind])
        score += table["object"] * bool(event.who("patient")) + table["receiver"] * bool(event.who("recipient"))
        score += table["setting"] * (kind == "state" and bool(event.who("place", "instrument", "companion")))
        score += table["reason"] * bool(event.because) + table["felt"] * (event.feeling is not None)
        if not self.teller.people(self.teller.doers(event)):
            score *= table["by_a_thing"]
        if event.within is not None or event.perfect:
            score *= table["in_passing"]
        return float(score * (table["failed"] if event.negated else 1.0))

    def people(self, event: Event) -> list[str]:
        """Return the characters who take part, the doer first."""
        # "A basket of fish" is a basket.
        roles = [role for role in event.roles if role.role not in ("agent", "topic") and " of " not in role.text]
        keys = [role.entity for role in roles if role.entity]
        # Whose mouth it is stands by.
        parts = [self.reading.entity(key) for key in keys if self.reading.entity(key).owner is not None]
        owners = [str(one.owner) for one in parts if one.sort == "body" or load_words().has("parts", one.noun)]
        return self.teller.people([*self.teller.doers(event), *keys, *owners])

    def happens(self) -> bool:
        """Return whether anything can be drawn."""
        return any(beat.events for beat in self.beats)

    # Cutting.

    def parts(self, panels: int) -> list[list[Beat]]:
        """Return `panels` parts in order, none without an event; with too few events the last moments are held."""
        units = self._units(panels)
        if len(units) <= panels:
            return [list(units[min(at * len(units) // panels, len(units) - 1)]) for at in range(panels)]
        bounds = [0, *self._best_cuts(units, panels), len(units)]
        return [[*chain.from_iterable(units[start:stop])] for start, stop in pairwise(bounds)]

    def _units(self, panels: int) -> list[list[Beat]]:
        """What is never cut: a sentence with an event and what follows without one; or single events where there are
        fewer such sentences than panels."""
        units: list[list[Beat]] = []
        early: list[Beat] = []
        for beat in self.beats:
            if beat.events:
                units.append([*early, beat])
                early = []
            elif units:
                units[-1].append(beat)
            else:
                early.append(beat)
        if len(units) < panels:
            units = [
                [*([] if at else [one for one in unit if one is not beat and not one.events]), single]
                for unit in units
                for beat in unit
                if beat.events
                for at, single in enumerate(_singles(beat))
            ]
        size = -(-len(units) // int(planning("cuts")["most_units"]))
        return [[*chain.from_iterable(units[at : at + size])] for at in range(0, len(units), size or 1)]

    def _novelty(self, before: Sequence[Beat], after: Sequence[Beat]) -> float:
        """How good a cut is (0 to about 2.5): new people, another place, another time, another feeling."""
        table = planning("cuts")
        who = [
            {key for beat in side for event in beat.events for key in self.people(event)} for side in (before, after)
        ]
        first, second = before[-1].sentence, next(beat.sentence for beat in after if beat.events)
        score = table["all_new"] if not who[0] & who[1] else table["some_new"] if who[0] != who[1] else 0.0
        places = [one.place.entity or one.place.noun if one.place else None for one in (first, second)]
        score += table["place"] * (places[0] != places[1]) + table["time"] * (first.time != second.time)
        score += table["paragraph"] * (first.paragraph != second.paragraph)
        moods = [{event.feeling for beat in side for event in beat.events} - {None} for side in (before, after)]
        return float(score + table["mood"] * (moods[0] != moods[1]))

    def _best_cuts(self, units: Sequence[Sequence[Beat]], panels: int) -> list[int]:
        """Where to cut, by dynamic programming: squared imbalance of the parts' sizes, less the novelty at the cuts and
        the worth of each part's main event, so that the deeds that matter most each get a part of their own."""
        table, total, mean = planning("cuts"), len(units), len(units) / panels
        weights = [max(beat.best for beat in unit) for unit in units]
        novelty = [0.0, *(self._novelty(units[at - 1], units[at]) for at in range(1, total)), 0.0]
        best: list[list[tuple[float, int]]] = [[(float("inf"), 0)] * (total + 1) for _ in range(panels + 1)]
        best[0][0] = (0.0, 0)
        for part in range(1, panels + 1):
            for stop in range(part, total + 1):
                best[part][stop] = min(
                    (
                        best[part - 1][start][0]
                        + ((stop - start - mean) / mean) ** 2
                        - table["novelty"] * novelty[stop] * (stop < total)
                        - table["peak"] * max(weights[start:stop]),
                        start,
                    )
                    for start in range(part - 1, stop)
                )
        cuts = [total]
        for part in range(panels, 1, -1):
            cuts.append(best[part][cuts[-1]][1])
        return cuts[:0:-1]

    # One part as a picture.

    def moment(self, beats: Sequence[Beat], before: Moment | None = None, *, final: bool = False) -> Moment:
        """Return what stands for a part: its best event, and of its other sentences what others do meanwhile.

        Raises:
            ValueError: no event of the part can be drawn.
        """
        rated = [(weight, event) for beat in beats for event, weight in zip(beat.events, beat.weights, strict=True)]
        if not rated:
            raise ValueError("A part without an event.")
        told = before.sentences if before is not None else ()
        fresh = [item for item in rated if self.teller.sentence(item[1]) not in told]
        main = max(reversed(fresh or rated), key=lambda item: item[0])[1]
        chosen = self._beside(main, beats)
        events = tuple(sorted(chosen, key=lambda event: event.id))
        return Moment(self, tuple(beats), main, events, self._moods(main, events, beats, final=final))

    def _beside(self, main: Event, beats: Sequence[Beat]) -> list[Event]:
        """The main event, and at most two more of other doers, in the same place, one a sentence first."""
        chosen, place = [main], self.reading.sentences[main.sentence].place
        near = sorted(
            ((abs(beat.sentence.index - main.sentence), -weight, event.id, event) for beat in beats
             for event, weight in zip(beat.events, beat.weights, strict=True)),
            key=lambda item: item[:3],
        )  # fmt: skip
        for *_, event in near:
            # Whoever does something can speak at the same time.
            talks = self._kind(event) == "talk" and all(self._kind(one) != "talk" for one in chosen)
            busy = {key for one in chosen for key in self._doers(one)} if not talks else set()
            doers = self._doers(event)
            there = self.reading.sentences[event.sentence].place
            same = place is None or there is None or there.entity == place.entity
            cast = {key for one in (*chosen, event) for key in self.people(one)}
            shared = {who for one in chosen for who in _everybody(one)} & _everybody(event)
            far = abs(event.sentence - main.sentence) > 1 or bool(max(event, main, key=lambda one: one.id).time)
            apart = event.sentence != main.sentence and far and not shared and self.teller.people(doers)
            if (
                doers
                and not busy & set(doers)
                and same
                and not apart
                and len(cast) <= int(planning("picture")["most_people"])
            ):
                chosen.append(event)
            if len(chosen) == int(planning("picture")["most_events"]):
                break
        return chosen

    def _moods(self, main: Event, events: Sequence[Event], beats: Sequence[Beat], *, final: bool) -> dict[str, Event]:
        """Who in the picture feels what: the event that told it last up to the main one (to the end, in the last
        panel), else first in this part."""
        cast = {key for event in events for key in self.people(event)}
        last = beats[-1].sentence.index if final else main.sentence
        found: dict[str, Event] = {}
        for beat in beats:
            for event in beat.events:
                for key in self.teller.people(self.teller.doers(event)) if _felt(event) else ():
                    if key in cast and (event.sentence <= last or key not in found):
                        found[key] = event
        return found


def _everybody(event: Event) -> set[str]:
    return {role.entity for role in event.roles if role.entity is not None}


def _singles(beat: Beat) -> list[Beat]:
    pairs = zip(beat.events, beat.weights, strict=True)
    return [Beat(beat.sentence, (event,), (weight,)) for event, weight in pairs]


@dataclass(frozen=True)
class Moment:
    """What one panel shows (`events`, the `main` one among them), and the `beats` that it stands for.

    moods: by character, the event that tells its feeling.
    """

    story: Story
    beats: tuple[Beat, ...]
    main: Event
    events: tuple[Event, ...]
    moods: Mapping[str, Event]

    @property
    def deed(self) -> str:
        """The main event as one sentence."""
        return self.story.teller.sentence(self.main)

    @property
    def here(self) -> Sentence:
        """The main event's sentence."""
        return self.story.reading.sentences[self.main.sentence]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is told in the picture, the main event first."""
        others = [event for event in self.events if event is not self.main]
        return tuple(self.story.teller.sentence(event) for event in (self.main, *others))

    @property
    def cast(self) -> list[str]:
        """Who is in the picture, the main event's characters first."""
        keys = [key for event in (self.main, *self.events) for key in self.story.people(event)]
        return list(dict.fromkeys(keys))

    def feelings(self) -> dict[str, str]:
        """Return what each character feels, as the text words it ("terrified"), else as `katha.text` calls it."""
        return {key: _word(event) for key, event in self.moods.items()}

    def prompt(self) -> list[str]:
        """Return the picture in plain sentences: who does what, where and when; what others do; how they feel."""
        teller, first = self.story.teller, self.deed.rstrip(".")
        told = [re.sub(r"\b(\w+) \1\b", r"\1", f"{first}{self._setting()}."), *self.sentences[1:]]
        for key, event in self.moods.items():
            said = event in self.events and (event.state or load_words().has("feel_verbs", event.verb))
            if not said:
                be = "are" if self.story.reading.entity(key).count != 1 else "is"
                name = teller.name(key)
                told.append(f"{name[:1].upper()}{name[1:]} {be} {_word(event)}.")
        return list(dict.fromkeys(told))

    def _setting(self) -> str:
        """ " in the kitchen at night in the rain", what of it the deed itself does not say."""
        here, place, said = self.here, self.place(), ""
        told = _everybody(self.main)
        where = {role.text for role in self.main.all("place", "goal")}
        somebody = bool(self.story.teller.people(self.story.teller.doers(self.main)))
        if somebody and place and here.place is not None and here.place.entity not in told and not where:
            said += f" {_where(here.place)} {place}"
        said += planning("times").get(here.time or "", "")
        weather = str(planning("weather").get(here.weather or "", ""))
        return said if (here.weather or "") in self.deed.lower() else f"{said}{weather}"

    def place(self) -> str:
        """Return the place's words, "" where the story names none, or none where anybody of this picture was."""
        place = self.here.place
        if place is None:
            return ""
        since = min(place.since, self.here.index)
        seen = {at for key in self.cast for at in self.story.reading.entity(key).sentences}
        known = since >= self.beats[0].sentence.index or bool(seen & set(range(since, self.here.index)))
        return self.story.teller.place(place) if known else ""

    def shot(self, before: Moment | None) -> str:
        """Return the shot's size: wide where a place is new, close where one alone feels or speaks, else medium."""
        new = before is None or (self.place() != "" and before.place() != self.place())
        if new and (before is None or self.main.verb in load_words().sets["motion"]):
            return "wide"
        alone = len(self.cast) == 1 and not self.main.who("patient")
        felt = self.main.feeling is not None or self.main.verb in planning("verbs")["talk"]
        return "close-up" if alone and felt else "medium"

    def must_show(self) -> list[str]:
        """Return the things that have to be visible, the main event's first: "the cake", "the candles"."""
        teller, found = self.story.teller, []
        for event in (self.main, *self.events):
            doers = teller.doers(event)
            for role in event.roles:
                entity = self.story.reading.entity(role.entity) if role.entity is not None else None
                if entity is None or entity.id in teller.names or entity.kind in ("abstract", "group", "person"):
                    continue
                own = role.role == "agent" or role.entity not in doers
                if own and not entity.members and not load_words().has("parts", entity.noun):
                    found.append(_bare(teller.filler(role, doers)))
        return [text for text in dict.fromkeys(found) if text]

    def source(self) -> tuple[int, int]:
        """Return the indices of the first and the last of its sentences."""
        indices = [beat.sentence.index for beat in self.beats]
        return min(indices), max(indices)

    def shown(self) -> set[int]:
        """Return the sentences of which something is in the picture."""
        return {event.sentence for event in (*self.events, *self.moods.values())}


def _felt(event: Event) -> bool:
    """Whether an event tells a feeling; a hug is a deed."""
    return event.feeling is not None and not (event.feeling == "loving" and load_words().has("feel_verbs", event.verb))


_STILL = frozenset(("in", "on", "at", "under", "near", "beside", "behind", "by", "inside", "outside", "above"))


def _where(place: Place) -> str:
    """The preposition for staying in a place: "on" the beach, "at" the pond, though somebody went "to" it."""
    if place.preposition in _STILL:
        return place.preposition
    if place.noun in planning("look")["open"]:
        return "on"
    return "at" if place.sort == "water" else "in"


def _word(event: Event) -> str:
    """A feeling in the text's own adjective, else by its name."""
    own = next((word for word in event.state if load_words().feelings.get(word) == event.feeling), None)
    return own or str(planning("moods").get(event.feeling or "", event.feeling))


def _bare(text: str) -> str:
    return re.sub(r"^(?:front of |half of )?(?:the|an?|some)\s+|^(?:front|half) of ", "", text, flags=re.IGNORECASE)


# Characters: one look each, written once.

_WEARS = re.compile(r" (?:with|in|wearing) (?:an? |the )?((?:[a-z-]+ ){0,2}[a-z-]+)")


def sheet_of(story: Story, keys: Iterable[str]) -> list[Character]:
    """Return a sheet for each character: what it is, and one look; two of a kind differ in what they wear."""
    sheets: list[Character] = []
    taken: dict[str, int] = {}
    for key in keys:
        entity = story.reading.entity(key)
        kind = kind_of(entity)
        look = _look(story, entity, kind)
        count = taken.get(look, 0)
        taken[look] = count + 1
        accessories: Sequence[str] = planning("look")["accessories"]
        others = [other for other in story.teller.names if other != key]
        alike = any(_look(story, story.reading.entity(other), kind_of(story.reading.entity(other))) == look
                    for other in others)  # fmt: skip
        if (alike or entity.narrator) and entity.count == 1:
            look = f"{look} with a {accessories[count % len(accessories)]}" if " with " not in look else look
        name = story.teller.names[key]
        sheets.append(Character(name=name, kind=kind, appearance=look, anchor_prompt=f"{look[:1].upper()}{look[1:]}."))
    return sheets


def kind_of(entity: Entity) -> str:
    """Return what a character is, in a word: its trade or species, else by sex and age; neutral if unknown."""
    words = load_words()
    tie = words.group("kin", entity.noun) is not None or entity.noun in words.sets["kin_equal"]
    general = not entity.noun or tie or words.has("plain_person", entity.noun) or words.has("general", entity.noun)
    if entity.kind not in ("person", "group") or (not general and entity.kind != "group"):
        return entity.noun or "person"
    if not general or (entity.sex is None and entity.kind == "group" and entity.noun):
        return entity.noun
    if entity.age == "child":
        return {"male": "boy", "female": "girl"}.get(entity.sex or "", "child")
    return {"male": "man", "female": "woman"}.get(entity.sex or "", "person")


def _look(story: Story, entity: Entity, kind: str) -> str:
    """ "an old man with a white beard": age, looks for good, kind, and what the text says that it wears."""
    told = [*entity.looks, *(word for text in (entity.name, *entity.aliases) for word in text.lower().split())]
    lasting = [word for word in dict.fromkeys(told) if word in planning("look")["lasting"] and word not in kind.split()]
    age = {"old": ["old"], "child": ["young"]}.get(entity.age or "", []) if entity.kind == "person" else []
    young = age == ["young"] and kind in ("boy", "girl", "child")
    words = [*([] if young or (age and age[0] in lasting) else age), *lasting]
    female = entity.kind == "person" and entity.sex and kind not in ("boy", "girl", "man", "woman")
    plain = " ".join([*words, *([str(entity.sex)] if female else []), kind])
    if entity.count != 1:
        return f"{entity.count or 'several'} {' '.join([*words, _plural(kind)])}"
    article = "an" if plain[0] in "aeiou" else "a"
    return f"{article} {plain}{_wears(story, entity)}"


def _wears(story: Story, entity: Entity) -> str:
    """ " with a white beard", where the text says so right after naming it."""
    words = load_words()
    for alias in (entity.name, *entity.aliases):
        at = story.reading.text.find(alias)
        found = _WEARS.match(story.reading.text, at + len(alias)) if at >= 0 else None
        for size in range(len(found[1].split()), 0, -1) if found is not None else ():
            phrase = found[1].split()[:size] if found is not None else []
            if words.sort(phrase[-1]) in ("clothing", "body") and words.sort(phrase[-1]):
                return f" with a {' '.join(phrase)}"
    return ""


def _plural(noun: str) -> str:
    odd = {"man": "men", "woman": "women", "child": "children", "person": "people", "mouse": "mice", "goose": "geese"}
    ending = next((one for one in odd if noun == one or (one in ("man", "woman") and noun.endswith(one))), None)
    if ending is not None:
        return noun.removesuffix(ending) + odd[ending]
    if noun in ("fish", "sheep", "people", "police") or noun.endswith("people"):
        return noun
    if re.search(r"(?:s|x|z|ch|sh)$", noun):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if re.search(r"[^aeiou]y$", noun) else f"{noun}s"
