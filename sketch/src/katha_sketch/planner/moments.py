"""Parts of a story, and the one moment of each that can be drawn: what is told, who is there, how they feel, where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from katha_sketch.english import Event, Place, Reading, Sentence, Teller
from katha_sketch.english.senses import lives_from, said_plainly
from katha_sketch.english.telling import joined
from katha_sketch.english.types import Role
from katha_sketch.english.words import load_words
from katha_sketch.planner.acts import Beat, acts_of, planning
from katha_sketch.planner.lasting import (
    carried,
    had,
    held_fast,
    inner,
    is_gone,
    standing_by,
    still_so,
    things_by,
    worn,
)

__all__ = ["Moment", "Picture", "Story"]

_NO_THING = frozenset(("something", "anything", "everything", "nothing", "light", "size", "way", "spot", "number"))
"""What no picture shows by itself."""
_PERCEIVED: Mapping[str, str] = {
    "see": "look at", "watch": "watch", "notice": "look at", "spot": "look at", "observe": "watch", "find": "look at",
    "hear": "listen to", "overhear": "listen to", "listen": "listen to",
}  # fmt: skip
"""Verbs of who sees or hears what somebody else does, as a picture shows it."""
_QUOTATION = re.compile(r"^[\"\u201c][^\"\u201c\u201d]*[\"\u201d]$")
_SHORT_TIME = 5
"""The words of a phrase that can say that time passes; longer ones are clauses ("when the light came back")."""


# What an event is worth.


@dataclass(frozen=True)
class Picture:
    """What one frame can show: an event, and perhaps one `beside` it; how good that is."""

    main: Event
    beside: Event | None
    value: float

    @property
    def events(self) -> tuple[Event, ...]:
        """What is shown, the main event first."""
        return (self.main,) if self.beside is None else (self.main, self.beside)


def _with_errands(reading: Reading) -> Reading:
    """The reading in which who goes to do something is told to do it: "went to fetch some water"."""
    events = list(reading.events)
    for event in reading.events:
        aims = [events[at] for at in event.purpose]
        plain = event.happens and event.verb in planning("errands") and not event.all("goal") and not event.modality
        if plain and len(aims) == 1 and aims[0].who("patient") and not aims[0].negated and aims[0].speech is None:
            events[aims[0].id] = replace(aims[0], standing="told", visible=True, perfect=event.perfect)
            events[event.id] = replace(event, visible=False)
    return replace(reading, events=tuple(events))


class Story:
    """A reading with names, beats, and the worth of every event."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading = _with_errands(reading)
        self.teller = Teller(reading)
        self.title = reading.title or ""
        self.beats = [self._beat(sentence) for sentence in reading.sentences]
        self._weights = {
            event.id: weight for beat in self.beats for event, weight in zip(beat.events, beat.weights, strict=True)
        }

    def _beat(self, sentence: Sentence) -> Beat:
        shown = [event for event in self.reading.of(sentence.index) if self.teller.shows(event)]
        turn = 1.0 + float(planning("turn")["more"]) * any(
            word in planning("turn")["words"] for word in sentence.text.lower().split(",")[0].split()[:2]
        )
        weights = tuple(self.worth(event) * turn for event in shown)
        return Beat(sentence, tuple(shown), weights, sentence.start, sentence.end)

    @cached_property
    def acts(self) -> list[list[Beat]]:
        """What needs a picture each, sentence by sentence: mostly the sentence, or acts of it that no picture joins."""
        return [acts_of(self, beat) for beat in self.beats]

    def act(self, event: Event) -> tuple[int, int]:
        """Return which act an event is of: its sentence, and the act's place in it."""
        acts = self.acts[event.sentence]
        return event.sentence, next((at for at, one in enumerate(acts) if one.holds(event)), 0)

    def share(self, beat: Beat) -> float:
        """Return what a picture of a sentence, or of the best act of it, counts, and what one of another act: nothing
        where there is hardly anything to see, "they were sure"."""
        best = all(beat.best >= one.best for one in self.acts[beat.sentence.index])
        whole = 1.0 if best else float(planning("acts")["share"])
        return 0.0 if beat.slight or beat.best < float(planning("acts")["seen"]) else whole

    def is_act(self, event: Event) -> bool:
        """Return whether an event is a deed that changes what is seen: no state, talk, feeling or nod."""
        kind = self._kind(event)
        seen = self.teller.shows(event) and event.happens and not event.perfect and event.within is None
        small = event.verb in planning("acts")["small"] or self._own_body(event) or felt(event)
        thing = {*event.who("patient")} & self._shown(event) - {*self.teller.names}
        done = kind in ("deed", "strong", "motion") or (kind == "talk" and bool(thing))  # "answered the phone"
        return seen and event.speech is None and done and not small

    def doers(self, event: Event) -> Sequence[str]:
        """Return the characters who do it, else what does."""
        return self.teller.people(self.teller.doers(event)) or self.teller.doers(event)

    def _kind(self, event: Event) -> str:
        """What sort of deed an event is, by its verb."""
        kinds: Mapping[str, str] = {verb: kind for kind, verbs in planning("verbs").items() for verb in verbs}
        return kinds.get(event.predicate) or kinds.get(event.verb, "deed")

    def worth(self, event: Event) -> float:
        """Return how much an event is worth drawing: deeds to somebody before movements, then states."""
        table = planning("worth")
        kind = "turned" if {*event.state} & {*planning("events_as_states")} else self._kind(event)
        if event.feeling is not None and event.verb in ("be", "feel", "become"):
            kind = "feeling"
        score = float(table[kind])
        score += table["object"] * bool(event.who("patient")) + table["receiver"] * bool(event.who("recipient"))
        living = ("person", "animal", "being", "group")
        score += table["somebody"] * any(self.reading.entity(key).kind in living for key in event.who("patient"))
        score += table["last"] * (event.within is None and event.feeling is None and event is self._last(event))
        score += table["taking_part"] * min(2, self._taking_part(event))
        score += table["part_of_body"] * self._own_body(event)
        score += table["setting"] * (kind == "state" and bool(event.who("place", "instrument", "companion")))
        score += table["reason"] * bool(event.because) + table["felt"] * (event.feeling is not None)
        if not self.teller.people(self.teller.doers(event)):
            score *= table["by_a_thing"]
        outer = self.reading.events[event.within] if event.within is not None else None
        where = (
            outer is not None
            and not self.teller.people(self.teller.doers(outer))
            and bool(self.teller.people(self.teller.doers(event)))
        )
        aside = event.aside and any(  # who is seen beside the bell that rings is what there is to see
            one is not event and not one.aside and self.teller.people(self.teller.doers(one))
            for one in self.reading.of(event.sentence)
        )
        if (outer is not None and not where) or event.perfect or aside:
            score *= table["before" if event.perfect or aside else "in_passing"]
        unseen = all(state in planning("unseen_states") or _is_number(state) for state in event.state)
        if is_gone(event) or (event.verb == "be" and event.state and unseen and not event.all("place")):
            score *= table["unseen"]
        failed = table["failed"] if event.who("patient") else table["failed_alone"]
        return float(score * (failed if event.negated else 1.0))

    def _last(self, event: Event) -> Event | None:
        """The last event of the sentence that can be seen, where it has several."""
        shown = [one for one in self.reading.of(event.sentence) if self.teller.shows(one)]
        return shown[-1] if len(shown) > 1 else None

    def _taking_part(self, event: Event) -> int:
        """How many more people and things than doer and object can be seen in an event."""
        own = {*event.who("agent"), *event.who("patient")[:1]}
        seen = {role.entity for role in event.roles if role.entity is not None} - own
        found = [self.reading.entity(str(key)) for key in seen]
        return sum(one.kind not in ("abstract", "place") and one.sort not in ("body", "abstract") for one in found)

    def _own_body(self, event: Event) -> bool:
        """Whether the object is no more than a part of the doer: "twisted her ankle", "shook her head"."""
        objects = [self.reading.entity(key) for key in event.who("patient")]
        return bool(objects) and all(one.sort == "body" and one.owner in event.who("agent") for one in objects)

    def people(self, event: Event) -> list[str]:
        """Return the characters who take part, the doer first."""
        # "A basket of fish" is a basket.
        beside = load_words().sets["relational"]  # and "the top of her" is her
        of = event.feeling is not None and event.feeling != "sad"  # "scared of the dog"; who misses her is alone
        roles = [
            role for role in event.roles if role.role not in ("agent", "topic") or (of and role.preposition == "of")
        ]
        roles = [role for role in roles if role.role != "agent"]
        roles = [role for role in roles if " of " not in role.text or role.head in beside or self._is_called(role)]
        keys = [role.entity for role in roles if role.entity]
        # Whose mouth it is stands by.
        parts = [self.reading.entity(key) for key in keys if self.reading.entity(key).owner is not None]
        worn = event.verb in planning("worn_by_somebody")
        own = ("body", "clothing") if worn else ("body",)
        worn_by = {role.entity for role in roles if role.role == "place"}  # below her boots she is
        owners = [str(one.owner) for one in parts if one.sort in own or load_words().has("parts", one.noun)
                  or (one.sort == "clothing" and one.id in worn_by)]  # fmt: skip
        told = [*self.teller.doers(event), *keys, *owners, *self.teller.addressees(event)]
        return self.teller.people(told) or self._owners(event)

    def _is_called(self, role: Role) -> bool:
        """Whether somebody is what stands before "of": "the man of the house" is a man, "a basket of fish" no fish."""
        entity = self.reading.entity(role.entity) if role.entity is not None else None
        return entity is not None and entity.kind == "person" and entity.noun == role.head

    def _owners(self, event: Event) -> list[str]:
        """Whose thing it is of which alone an event tells: "The chain of Samir's bicycle snaps"."""
        things = [self.reading.entity(key) for key in event.who("agent", "patient")]
        phrases = " ".join(role.text for role in event.all("agent", "patient"))
        owners = [one.owner for one in things if one.owner is not None]
        return self.teller.people(
            (*owners, *(key for key, name in self.teller.names.items() if f"{name}'s " in phrases))
        )

    def happens(self) -> bool:
        """Return whether anything can be drawn."""
        return any(beat.events for beat in self.beats)

    # What one picture can show.

    @cached_property
    def pictures(self) -> list[Picture]:
        """Every event by itself, and with one more that happens at the same place and time."""
        near = [[event for beat in self.beats[at : at + 2] for event in beat.events] for at in range(len(self.beats))]
        singles = [(event, None) for beat in self.beats for event in beat.events]
        pairs = dict.fromkeys(
            (main, other)
            for beat, around in zip(self.beats, near, strict=True)
            for one in beat.events
            for two in around
            for main, other in ((one, two), (two, one))
            if one is not two and self._together(main, other)
        )
        return [self._picture(main, other) for main, other in (*singles, *pairs)]

    def _picture(self, main: Event, beside: Event | None) -> Picture:
        table = planning("picture")
        events = (main,) if beside is None else (main, beside)
        seen = {self.act(one) for one in events if self.reading.sentences[one.sentence].visible}
        shown = sum(self.share(self.acts[sentence][at]) for sentence, at in seen)
        value = table["shown"] * shown + table["main"] * self._weights[main.id]
        if beside is not None:
            value += table["beside"] * self._weights[beside.id] - table["second"]
            new = {*self.people(beside)} - {*self.people(main)}
            other = set(self.doers(beside)) != set(self.doers(main)) and beside.sentence == main.sentence
            value += table["newcomer"] * (bool(new) and other)
            value += table["cause"] * (beside.id in main.because or main.id in beside.because)
        return Picture(main, beside, float(value))

    def _together(self, main: Event, other: Event) -> bool:
        """Whether both happen at once, as far as a picture is concerned: nobody does two things, but who does something
        can feel something; the place is one and no time has passed."""
        first, second = sorted((main, other), key=lambda event: event.id)
        if main.perfect != other.perfect:
            return False  # "looked at the violin that her grandfather had built"
        if self._weights[other.id] > self._weights[main.id] or (other.id == main.within and self._tells(other)):
            return False
        if second.sentence != first.sentence and self.passes(second.sentence):
            return False
        places = [self.reading.sentences[one.sentence].place for one in (first, second)]
        if None not in places and len({one.entity or one.noun for one in places if one is not None}) > 1:
            return False
        doers, own = self.doers(main), self.doers(other)
        if set(doers) & set(own):
            return set(own) == set(doers) and felt(other) and not felt(main)
        cast = {key for one in (main, other) for key in self.people(one)}
        return bool(own) and len(cast) <= int(planning("picture")["most_people"])

    def _tells(self, event: Event) -> bool:
        """Whether an event only says, sees or thinks another one; "she mowed while he picked" is two deeds."""
        return self._kind(event) in ("talk", "state") or event.verb in load_words().sets.get("thinking", ())

    # Place and time go on until the text changes them.

    def half(self, main: Event, around: Sequence[Event]) -> Event | None:
        """Return what else the doers of an event do among those `around` it, of its sentence or act, that can be seen
        beside it: the nearest deed with somebody or something that the event has not ("opened the box and found a
        kitten"), or the posture in which it is done ("sat by the bed and read"); None where there is none."""
        doers, seen = set(self.doers(main)), self._shown(main)
        found: list[Event] = []
        for event in around:
            if event is main or event.speech != main.speech or not self.teller.shows(event) or felt(event):
                continue
            if not event.happens or not main.happens or event.perfect or event.within is not None:
                continue
            told = self._kind(event) != "talk" and event.verb not in load_words().sets.get("thinking", ())
            if told and doers == set(self.doers(event)) and (self._shown(event) - seen):
                found.append(event)
        return min(found, key=lambda event: (abs(event.id - main.id), event.id), default=None)

    def _shown(self, event: Event) -> set[str]:
        """The people and things that a picture of an event has besides its doers."""
        own = {*event.who("agent")}
        entities = [self.reading.entity(role.entity) for role in event.roles if role.entity is not None]
        return {one.id for one in entities if one.id not in own and one.kind not in ("abstract", "place")
                and one.sort not in ("body", "abstract") and not load_words().has("parts", one.noun)}  # fmt: skip

    def passes(self, sentence: int) -> bool:
        """Return whether a sentence tells that time has passed: "the next morning", "after school", "later"."""
        shift = planning("shift")
        jumps, keeps = set(shift["words"]), set(shift["keeps"])
        told = [event for event in self.reading.of(sentence) if event.standing == "told" and not event.perfect]
        phrases = [phrase.lower().split() for event in told for phrase in event.time]
        return any(
            len(phrase) <= _SHORT_TIME and (phrase[0] == "after" or jumps & {*phrase}) and not keeps & {*phrase}
            for phrase in phrases
        )

    def goes_on(self, sentence: int) -> bool:
        """Return whether a place is left for one that the text does not name."""
        return any(
            event.happens and event.verb in planning("shift")["leaving"] and self.teller.people(event.who("agent"))
            for event in self.reading.of(sentence)
        )

    def place_of(self, event: Event) -> Place | None:
        """Return where an event takes place, None where nobody can know: after a move or a jump in time, indoors."""
        at, shift = event.sentence, planning("shift")
        place = self.reading.sentences[at].place
        if place is not None and place.since == at and at and self.comes_later(place, event):
            at -= 1
            place = self.reading.sentences[at].place
        if place is not None and place.noun in shift["nowhere"]:
            return None
        if place is None or not (load_words().has("place", place.noun) or place.sort in shift["places"]):
            return None
        since = min(place.since, at)
        open_air = place.sort in shift["open_air"] or place.noun in shift["open_air"]
        moved = any(self.goes_on(one) for one in range(since + 1, at))
        later = not open_air and any(self.passes(one) for one in range(since + 1, event.sentence + 1))
        return None if moved or later else place

    def comes_later(self, place: Place, event: Event) -> bool:
        """Return whether a place is that of a later event of a sentence: "put on his jacket and ran to the bakery"."""
        named = [
            one.id
            for one in self.reading.of(event.sentence)
            for role in one.roles
            if role.entity == place.entity is not None or role.head == place.noun
        ]
        others = bool(named) and not {*self.reading.events[min(named)].who("agent")} & {*event.who("agent")}
        if others and event.who("agent"):
            return False  # both happen at once: "Ann dug while Ben drove through the streets"
        return bool(named) and min(named) > event.id and event.within is None

    # One part as a picture.

    def moment(self, beats: Sequence[Beat], before: Moment | None = None, *, final: bool = False) -> Moment:
        """Return what stands for a part: of the pictures that show something of it, the one that is worth most.

        Raises:
            ValueError: no event of the part can be drawn.
        """
        own = {event.id for beat in beats for event in beat.events}
        able = [one for one in self.pictures if all(event.id in own for event in one.events)]
        if not able:
            raise ValueError("A part without an event.")
        told = before.sentences if before is not None else ()
        fresh = [one for one in able if not any(self.teller.sentence(event) in told for event in one.events)]
        chosen = max(reversed(fresh or able), key=lambda one: one.value)
        events = tuple(sorted(chosen.events, key=lambda event: event.id))
        moods = self._moods(chosen.main, events, beats, final=final)
        return Moment(self, tuple(beats), chosen.main, events, moods)

    def _moods(self, main: Event, events: Sequence[Event], beats: Sequence[Beat], *, final: bool) -> dict[str, Event]:
        """Who in the picture feels what: the event that told it last up to the main one (to the end, in the last
        panel), else first in this part."""
        cast = {key for event in events for key in self.people(event)}
        last = beats[-1].sentence.index if final else main.sentence
        found: dict[str, Event] = {}
        for beat in beats:
            for event in beat.events:
                for key in self.teller.people(self.teller.doers(event)) if felt(event) else ():
                    if key in cast and (event.sentence <= last or key not in found):
                        found[key] = event
        return found


@dataclass(frozen=True)
class Aside:
    """What somebody does beside the deed of a picture, in one sentence, and everybody of it: they speak, or see it."""

    text: str
    people: tuple[str, ...]


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
    def half(self) -> Event | None:
        """What else of the part its doers are seen to do, see `Story.half`."""
        return self.story.half(self.main, self._around())

    def _around(self) -> list[Event]:
        """The events of the main one's sentence, where it has acts for several pictures those of this part."""
        own = [beat for beat in self.beats if beat.sentence is self.here]
        return [one for one in self.story.reading.of(self.here.index) if any(beat.holds(one) for beat in own)]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is told in the picture, the main event first."""
        others = [event for event in self.events if event is not self.main]
        return tuple(self.story.teller.sentence(event) for event in (self.main, *others))

    @cached_property
    def cast(self) -> list[str]:
        """Who is in the picture, the main event's characters first."""
        return list(dict.fromkeys((*self._taking_part, *(key for key, _ in self.bystanders))))

    @cached_property
    def _taking_part(self) -> list[str]:
        half, told = self.half, [self.main, *self.events]
        told += [half] if half is not None and not self._is_mood(half) else []
        told += inner(self.story, told)
        keys = [key for event in told if not is_gone(event) for key in self.story.people(event)]
        return list(dict.fromkeys((*keys, *(key for one in (*self.voices, *self.seen_by) for key in one.people))))

    @cached_property
    def bystanders(self) -> list[tuple[str, str]]:
        """Who else is in the words of the picture, and what they do there."""
        return standing_by(self.story, self.shown(), self._taking_part)

    @property
    def voices(self) -> list[Aside]:
        """Who says something in the sentences of the picture, and in the bare quotation after them, while another deed
        is drawn: "handed him the ball and said sorry"."""
        story, teller = self.story, self.story.teller
        half = [self.half] if self.half is not None else []
        shown = [self.main, *self.events, *half]
        silent = {key for event in shown if teller.speaks(event) for key in teller.people(teller.doers(event))}
        told = self.shown()
        after = [one for one in self.beats if not one.events and one.sentence.index == told[-1].sentence.index + 1]
        found: dict[str, Aside] = {}
        for speech in story.reading.speeches:
            spoken = any(one.start <= speech.start < one.end for one in (*told, *after))
            who = teller.people((speech.speaker,)) if speech.speaker is not None and spoken else []
            if len(who) == 1 and who[0] not in silent and who[0] not in found:
                to = [key for key in teller.people(speech.addressees) if key != who[0]]
                said = teller.says(who[0], to, story.reading.of(speech.sentence))
                found[who[0]] = Aside(said, (who[0], *to))
        for event in self._around():
            who = teller.people(teller.doers(event)) if teller.speaks(event) and event not in shown else []
            if len(who) == 1 and who[0] not in silent and who[0] not in found and teller.shows(event):
                found[who[0]] = Aside(teller.sentence(event), tuple(story.people(event)))
        return list(found.values())

    @property
    def seen_by(self) -> list[Aside]:
        """Who sees or hears the deed, where the text tells it as seen: "Mia saw a man steal a bike"."""
        story, teller, found = self.story, self.story.teller, list[Aside]()
        for event in self.events:
            outer = story.reading.events[event.within] if event.within is not None else None
            if outer is None or outer in self.events or not outer.happens or outer.verb not in _PERCEIVED:
                continue
            who = [key for key in teller.people(teller.doers(outer)) if key not in story.people(event)]
            whom = teller.people(outer.who("patient")) or teller.people(teller.doers(event))
            if len(who) == 1 and whom:
                found.append(Aside(teller.does(who[0], _PERCEIVED[outer.verb], whom), (*who, *whom)))
        return found

    def feelings(self) -> dict[str, str]:
        """Return what each character feels, as the text words it ("terrified"), else as `english` calls it."""
        return {key: _word(event) for key, event in self.moods.items()}

    def prompt(self, *, inside: bool = False) -> list[str]:
        """Return the picture in a few plain sentences: who does what and how they feel, what happens beside it, the
        other half of a sentence that tells two deeds, how others feel.

        Where and when it is has its own fields in a panel; the weather has none and is said here, but not `inside`.
        """
        beside, teller = [one for one in self.events if one is not self.main], self.story.teller
        half = self.half
        told = [self._with_mood(event) for event in (self.main, *beside) if not self._is_mood(event)]
        told += self._ends()
        told += still_so(self.story, self.events, self.main.sentence, " ".join(self.sentences).lower())
        weather = "" if inside else self._weather()
        if weather and weather.split()[-1] not in " ".join(told).lower():
            told[0] = f"{told[0].rstrip('.')} {weather}."
        if half is not None and half not in beside and not self._is_mood(half):
            told.insert(0, self._with_mood(half))  # of two deeds alike in weight the last is drawn: the main one
        shown = [self.main, *beside, *([half] if half is not None else [])]
        told[:0] = [teller.sentence(one) for one in inner(self.story, shown)]
        told += [one.text for one in (*self.voices, *self.seen_by)]
        told += [text for _, text in self.bystanders]
        told += worn(self.story, self.main, self.cast)
        told += held_fast(self.story, shown, self.cast, self.main)
        told += carried(self.story, self.main, self.cast)
        told += had(self.story, self.shown(), self.cast, " ".join(told).lower())
        return list(dict.fromkeys((*told, *self._other_moods(" ".join(told)))))

    def _other_moods(self, told: str) -> Iterator[str]:
        """What those feel who are in the picture and whose feeling is not told yet: "The mouse is frightened."."""
        teller, feel = self.story.teller, dict[str, list[str]]()
        for key, event in self.moods.items():
            doers = teller.people(event.who("agent"))
            told_by = len(doers) == 1 or load_words().feelings.get(event.verb) == event.feeling
            own = event in self.events and not self._is_mood(event) and key in doers and told_by
            if key in self.cast and not own and _word(event) not in told and str(event.feeling) not in told:
                feel.setdefault(_word(event), []).append(key)
        for word, keys in feel.items():
            names = joined([teller.name(key) for key in keys])
            several = len(keys) > 1 or self.story.reading.entity(keys[0]).count != 1
            yield f"{names[:1].upper()}{names[1:]} {'are' if several else 'is'} {word}."

    def _ends(self) -> list[str]:
        """What becomes of things of the picture in its own sentence ("The vase breaks."), and what is found there: "A
        banana lies in the drawer."."""
        story, things = self.story, {role.entity for event in self.events for role in event.roles if role.entity}
        found: list[str] = []
        for event in self._around():
            doers = set(story.doers(event))
            if event in self.events or not event.happens or event.speech is not None or not doers:
                continue
            if any(story.reading.entity(key).character for key in doers):
                continue
            body = any(story.reading.entity(key).sort == "body" for key in doers)
            there = bool(event.who("place")) or event.existential
            there = there or bool({*event.state} & {*planning("seen_states")})
            lies = event.verb in planning("found_there") and there and not body and story.teller.shows(event)
            if lies or (load_words().has("ends", event.verb) and doers <= things):
                found.append(story.teller.sentence(event))
        return found

    def _weather(self) -> str:
        """ "in the rain", where it rains and nobody has gone in since, nor has the time passed."""
        sentences, at = self.story.reading.sentences, self.here.index
        since = at
        while since and sentences[since - 1].weather == sentences[at].weather:
            since -= 1
        place = sentences[at].place
        home = place is not None and place.noun == "home" and place.since < at  # who walks home is not there yet
        inside = home or (place is not None and place.sort == "building")
        if inside or any(self.story.passes(one) for one in range(since + 1, at + 1)):
            return ""
        return str(planning("weather").get(sentences[at].weather or "", ""))

    def _is_mood(self, event: Event) -> bool:
        """Whether an event only says how the main event's doer feels."""
        return event is not self.main and felt(event) and self.story.doers(event) == self.story.doers(self.main)

    def _with_mood(self, event: Event) -> str:
        """An event with how its doer feels: "The fox runs away and is afraid."."""
        told = self.story.teller.sentence(event)
        doers = self.story.teller.people(self.story.teller.doers(event))
        mood = self.moods.get(doers[0]) if len(doers) == 1 else None
        own = mood is event and load_words().feelings.get(event.verb) == event.feeling  # who cries is sad
        said = own or (mood is not event and mood in self.events and not self._is_mood(mood))
        if said or mood is None or event.verb == "be" or _word(mood) in told:
            return told
        several = self.story.reading.entity(doers[0]).count != 1
        return f"{told.rstrip('.')} and {'are' if several else 'is'} {_word(mood)}."

    def place(self) -> str:
        """Return the place's words, "" where the story names none, or none where anybody of this picture was."""
        place = self.story.place_of(self.main)
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
        teller, found, seen = self.story.teller, list[str](), set[str]()
        for event in (one for one in (self.main, *self.events) if not is_gone(one)):
            doers = teller.doers(event)
            for role in event.roles:
                entity = self.story.reading.entity(role.entity) if role.entity is not None else None
                if entity is None or entity.id in teller.names or entity.kind in ("abstract", "group", "person"):
                    continue
                own = role.role == "agent" or role.entity not in doers
                own = own and not load_words().has("relational", entity.noun) and entity.noun not in _NO_THING
                own = own and entity.name not in ("someone", "something")
                if own and not entity.members and not load_words().has("parts", entity.noun):
                    # What is shown once is not asked for again by another name.
                    found += [_bare(teller.filler(role, doers))] if entity.id not in seen else []
                    seen.add(entity.id)
        told = [self.said(text) for text in dict.fromkeys(found) if text]
        key = [one for one in lives_from(self._near(), self.story.reading.text) if one not in " ".join(told)]
        said = " ".join((*told, *self.prompt())).lower()
        told += [self.said(text) for text in things_by(self.story, self.shown(), said)]
        return [*told, *key]

    def source(self) -> tuple[int, int]:
        """Return the indices of the first and the last of its sentences."""
        indices = [beat.sentence.index for beat in self.beats]
        return min(indices), max(indices)

    def said(self, text: str) -> str:
        """Return a text of this picture whose words say what they mean in this story: "the chess queen"."""
        return said_plainly(text, self._near(), self.story.reading.text)

    def _near(self) -> str:
        """The sentences of what is shown."""
        sentences = self.story.reading.sentences
        return " ".join(sentences[at].text for at in sorted({event.sentence for event in self.events}))

    def shown(self) -> list[Beat]:
        """Return the sentences, and acts of one, of which something is in the picture, in the story's order; with who
        speaks the words that stand beside them by themselves ("What is it?" I ask him.)."""
        half = [self.half] if self.half is not None else []
        seen = {self.story.act(event) for event in (*self.events, *self.moods.values(), *half)}
        found = [self.story.acts[sentence][at] for sentence, at in sorted(seen)]
        if any(self.story.teller.speaks(event) and event.speech is None for event in self.events):
            found += [one for one in self._said_beside() if one not in found]
        return sorted(found, key=lambda beat: beat.start)

    def _said_beside(self) -> Iterator[Beat]:
        """The bare quotations right before and after the main event's sentence, where they are no part of another's."""
        beats, at = self.story.beats, self.here.index
        words = len(self.here.text.split())
        for step in (-1, 1):
            near = beats[at + step] if 0 <= at + step < len(beats) else None
            if near is None or near.events or not _QUOTATION.match(near.sentence.text.strip()):
                continue
            open_end = near.sentence.text.rstrip().endswith(('?"', '!"', "?\u201d", "!\u201d", ',"', ",\u201d"))
            words += len(near.sentence.text.split())
            if words <= int(planning("acts")["caption"]) and (step == 1 or open_end):
                yield near


def _is_number(word: str) -> bool:
    """Whether a state is an age: "forty-three"."""
    numbers = load_words().numbers
    return all(part.isdigit() or part in numbers for part in word.split("-"))


def felt(event: Event) -> bool:
    """Whether an event tells a feeling; a hug is a deed."""
    return event.feeling is not None and not (event.feeling == "loving" and load_words().has("feel_verbs", event.verb))


def _word(event: Event) -> str:
    """A feeling in the text's own adjective, else by its name."""
    own = next((word for word in event.state if load_words().feelings.get(word) == event.feeling), None)
    return own or str(planning("moods").get(event.feeling or "", event.feeling))


def _bare(text: str) -> str:
    return re.sub(r"^(?:front of |half of )?(?:the|an?|some)\s+|^(?:front|half) of ", "", text, flags=re.IGNORECASE)
