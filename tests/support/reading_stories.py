"""What a person reads in a short story (tests/data/reading/stories.yaml) held against a reading."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reading_labels import ROLES

from katha.text import Entity, Reading, read_story


def _called(reading: Reading, key: str | None) -> str:
    return "-" if key is None else reading.entity(key).name.lower()


def _people(reading: Reading, keys: tuple[str, ...]) -> set[str]:
    """The names of entities, groups by their members."""
    found: set[str] = set()
    for key in keys:
        members = reading.entity(key).members
        found |= {_called(reading, item) for item in members} if members else {_called(reading, key)}
    return found


def _about(entity: Entity) -> set[str]:
    return {item for item in (entity.sex, entity.age) if item}


def checks(story: dict[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """Yield what is checked, whether it holds, and what was found."""
    reading = read_story(story["text"])
    for name, want in story.get("cast", {}).items():
        found = [entity for entity in reading.cast if entity.name.lower() == name.lower()]
        right = len(found) == 1 and (
            _about(found[0]) == set(want.split()) - {"?"} or (want == "?" and not found[0].sex)
        )
        yield f"cast {name}", right, "; ".join(f"{e.name}: {_about(e)}" for e in reading.cast)
    for line in story.get("told", ()):
        at, predicate, *roles = (part.strip() for part in line.split("|"))
        verb, _, particle = predicate.partition(" ")
        events = [e for e in reading.of(int(at)) if e.verb == verb and (not particle or e.particle == particle)]
        for role in roles:
            name, who = role.split("=")
            found_all = [_people(reading, event.who(*ROLES[name])) for event in events]
            want = {item.lower() for item in who.split("+")}
            yield f"{at} {predicate} {role}", any(found == want for found in found_all), str(found_all)
    for field in ("place", "time"):
        for index, want in enumerate(story.get(f"{field}s", ())):
            value = getattr(reading.sentences[index], field)
            found_one = "-" if value is None else value if isinstance(value, str) else value.noun
            yield f"{field} of {index}: {want}", found_one == want, found_one
    for line in story.get("said", ()):
        at, speaker, addressee = (part.strip() for part in line.split("|"))
        speech = next((item for item in reading.speeches if item.sentence == int(at)), None)
        told = _called(reading, speech.speaker) if speech else "none"
        yield f"{at} said by {speaker}", told == speaker.lower(), told
        if addressee != "-" and speech is not None:
            to = _people(reading, speech.addressees)
            yield f"{at} said to {addressee}", to == {addressee.lower()}, str(to)
