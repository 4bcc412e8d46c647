"""Where and when each sentence plays: both hold until the text says otherwise.

Only what happens in the story moves it: not what is said, wanted, remembered or denied, nor what a noun is told to come
from ("the girl from the city").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from katha.text.types import Entity, Event, Place, Role
from katha.text.words import Words

__all__ = ["Setting", "track"]

_LASTING = ("all", "for", "since", "until", "many", "whole", "during", "two", "three", "four", "five", "long")
_PAST = ("last", "ago", "yesterday", "before", "earlier")
_AT = (
    "in",
    "at",
    "on",
    "inside",
    "aboard",
    "under",
    "near",
    "by",
    "outside",
    "into",
    "onto",
    "to",
    "through",
    "across",
    "along",
)


@dataclass(frozen=True)
class Setting:
    """What holds at the end of a sentence."""

    place: Place | None = None
    time: str | None = None
    weather: str | None = None
    season: str | None = None


class _Track:
    def __init__(self, entities: Mapping[str, Entity], words: Words) -> None:
        self.entities = entities
        self.words = words
        self.place: Place | None = None
        self.time: str | None = None
        self.weather: str | None = None
        self.season: str | None = None

    def follow(self, event: Event) -> None:
        if event.standing != "told":
            return
        if not event.perfect:
            for phrase in event.time:
                self._time(phrase.lower(), event)
            self._sky(event)
        if (
            event.negated
            or event.perfect
            or event.verb in ("look", "see", "think", "remember", "stare", "point", "peer", "watch")
        ):
            return
        if self.words.has("leave", event.verb) and not event.all("goal"):
            left = [role for role in event.all("patient", "source") if self.words.is_place(role.head)]
            if left and self._moves(event):
                self._set(left[0], event, outside=True)
        for role in event.roles:
            named = role.text.lower().startswith("the ") and self.words.has("place", role.head)
            made = event.verb in ("paint", "draw", "build")
            if role.role in ("agent", "patient") and self.place is None and named and event.visible and not made:
                self._set(role, event)
            if role.role == "agent" and event.verb == "be" and event.state and self.words.has("place", role.head):
                self._set(role, event)
            self._role(role, event)

    def _moves(self, event: Event) -> bool:
        """Whether somebody goes there, and not a thing that is thrown."""
        who = [self.entities[item] for item in event.who("agent") if item in self.entities]
        return not who or any(entity.character or entity.sort == "vehicle" for entity in who)

    def _role(self, role: Role, event: Event) -> None:
        words = self.words
        whole = self.entities.get(role.entity or "")
        if words.has("relational", role.head) and whole is not None:
            role = replace(role, head=whole.noun)
        role = replace(role, head=role.head.lower())
        place = words.is_place(role.head) or words.has("here", role.head) or words.has("outdoors", role.head)
        if not place or role.head in ("here", "there", "everywhere", "somewhere", "nowhere", "anywhere"):
            return
        if words.has("parts", role.head):
            return
        arrives = words.has("arrive", event.verb) or words.has("motion", event.verb)
        if (
            role.role == "patient"
            and event.verb in ("reach", "enter", "visit", "leave", "board", "climb")
            and self._moves(event)
        ):
            self._set(role, event, outside=event.verb == "leave")
        elif role.role == "goal" and arrives and self._moves(event):
            toward = role.preposition in ("toward", "towards", "past", "at", "for", "over", "above", "around")
            if not toward:
                self._set(role, event)
        elif role.role == "place" and role.preposition in ("", *_AT, "above", "over", "behind", "beside", "among"):
            firm = role.preposition in (
                "",
                "in",
                "at",
                "on",
                "inside",
                "aboard",
                "through",
                "across",
                "along",
                "outside",
            )
            if words.has("across", role.preposition) and not arrives:
                return
            if firm or self.place is None:
                self._set(role, event)
        elif role.role == "source" and self.place is None and self._moves(event):
            self._set(role, event, outside=role.preposition == "out")
        elif role.role == "source" and role.preposition == "out" and self._moves(event) and not event.all("goal"):
            self._set(role, event, outside=True)

    def _set(self, role: Role, event: Event, *, outside: bool = False) -> None:
        words = self.words
        weather = words.group("weather", role.head)
        if weather is not None:
            self.weather = weather
        if outside or words.has("outdoors", role.head):
            inside = self.place is None or outside or words.sort(self.place.noun) in ("building", "vehicle", "")
            if words.has("outdoors", role.head) and not inside:
                return
            self.place = Place(
                "outside",
                f"outside {role.text}" if outside else "outside",
                event.sentence,
                role.entity if outside else None,
                "",
                "region",
            )
            return
        self.place = Place(role.head, role.text, event.sentence, role.entity, role.preposition, words.sort(role.head))

    def _time(self, phrase: str, event: Event) -> None:
        parts = phrase.replace("-", " ").split()
        if any(word in _LASTING for word in parts) or any(word in _PAST for word in parts):
            return
        season = next((word for word in parts if self.words.has("seasons", word)), None)
        found = next((group for word in reversed(parts) if (group := self.words.group("times", word))), None)
        if parts[-1:] == ["tonight"]:
            found = "night"
        if found == "day" and parts[-1] == "day":
            fresh = any(word in ("next", "following", "one", "another", "that", "same") for word in parts)
            if "next" in parts or "following" in parts or "another" in parts:
                self.time, self.weather = "day", None
            self.season = season or self.season
            if not fresh or self.time is not None:
                return
            return
        if found is not None:
            if found != self.time and ("next" in parts or "following" in parts):
                self.weather = None
            self.time = found
        if season is not None:
            self.season = "autumn" if season == "fall" else season

    def _sky(self, event: Event) -> None:
        """What the clause says of weather and light: "it was raining", "it grew dark", "the sun rose"."""
        words = self.words
        if event.negated:
            return
        if words.has("weather_verbs", event.verb) and (not event.all("agent") or event.all("agent")[0].head == "it"):
            weather = words.group("weather", event.verb) or ("storm" if event.verb == "thunder" else "rain")
            self.weather = None if event.phase == "stop" else weather
        heads = [role.head for role in event.all("agent")]
        for head in heads:
            named = words.group("weather", head)
            if named is not None and words.sort(head) != "person":
                self.weather = (
                    None if event.phase == "stop" or event.verb in ("stop", "pass", "end", "die", "cease") else named
                )
        if "sun" in heads and event.verb in ("rise", "set", "go", "sink", "shine", "come"):
            self.time = {"rise": "morning", "come": "morning", "shine": "day"}.get(event.verb, "evening")
            self.weather = "sun" if event.verb == "shine" else self.weather
        if any(words.group("times", head) for head in heads) and event.verb in ("fall", "come", "arrive", "break"):
            self.time = words.group("times", heads[0])
        if heads == ["it"] or not heads:
            for state in event.state:
                self.weather = words.group("weather_adjectives", state) or self.weather
                part = words.group("times", state) or ("night" if state == "dark" else None)
                self.time = part or self.time
                self.season = state if words.has("seasons", state) else self.season


def track(
    events: Sequence[Event],
    sentences: int,
    entities: Mapping[str, Entity],
    words: Words,
    headings: Mapping[int, Setting] | None = None,
) -> list[Setting]:
    """Return what holds at the end of each sentence. headings: what a script says before a sentence."""
    state = _Track(entities, words)
    by_sentence: dict[int, list[Event]] = {}
    for event in events:
        by_sentence.setdefault(event.sentence, []).append(event)
    found: list[Setting] = []
    for index in range(sentences):
        heading = (headings or {}).get(index)
        if heading is not None:
            state.place, state.time, state.weather = heading.place, heading.time or state.time, None
        for event in by_sentence.get(index, ()):
            state.follow(event)
        found.append(Setting(state.place, state.time, state.weather, state.season))
    return found
