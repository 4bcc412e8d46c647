"""What a person reads in a short story (tests/data/reading/stories.yaml) held against a reading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from reading_labels import ROLES

from katha_sketch.english import Entity, Reading, read_story

_BEFORE = re.compile(r"^(?:the|an?|some|my|his|her|its|our|their|your)\s+", re.IGNORECASE)


def _called(reading: Reading, key: str | None) -> str:
    return "-" if key is None else reading.entity(key).name.lower()


def _names(reading: Reading, key: str) -> set[str]:
    """Everything that an entity may be called in a label: "theo's jacket", "jacket", "the old coat", "old coat"."""
    entity = reading.entity(key)
    whole = {name.lower() for name in (entity.name, *entity.aliases, entity.noun)}
    bare = {_BEFORE.sub("", name) for name in whole} | {name.split("'s ")[-1] for name in whole}
    return whole | bare


def _members(reading: Reading, keys: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(one for key in keys for one in reading.entity(key).members or (key,)))


def _are(reading: Reading, keys: Iterable[str], want: str) -> bool:
    """Whether entities are those of a label: "Lena+Tom", groups by their members; "/" parts what is right as well."""
    members = _members(reading, keys)
    for names in (part.lower().split("+") for part in want.split("/")):
        each = [next((key for key in members if name in _names(reading, key)), None) for name in names]
        if len(members) == len(names) and set(each) == set(members):
            return True
    return False


def _shown(reading: Reading, keys: Iterable[str]) -> str:
    return " + ".join(_called(reading, key) for key in _members(reading, keys)) or "nobody"


def _about(entity: Entity) -> set[str]:
    return {item for item in (entity.sex, entity.age) if item}


def checks(story: dict[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """Yield what is checked, whether it holds, and what was found."""
    reading = read_story(story["text"])
    for name, want in story.get("cast", {}).items():
        found = [entity for entity in reading.cast if name.lower() in _names(reading, entity.id)]
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
            found_all = [event.who(*ROLES[name]) for event in events]
            right = any(_are(reading, found_one, who) for found_one in found_all)
            yield f"{at} {predicate} {role}", right, "; ".join(_shown(reading, one) for one in found_all)
    for line in story.get("means", ()):
        at, word, who = (part.strip() for part in line.split("|"))
        roles_of = [role for event in reading.of(int(at)) for role in event.roles if role.text.lower() == word]
        keys = {role.entity for role in roles_of}
        right = bool(keys) and all(key is not None and _are(reading, (key,), who) for key in keys)
        yield f"{at} {word} means {who}", right, "; ".join(_called(reading, key) for key in keys)
    for field in ("place", "time"):
        for index, want in enumerate(story.get(f"{field}s", ())):
            value = getattr(reading.sentences[index], field)
            found_one = "-" if value is None else value if isinstance(value, str) else value.noun
            yield f"{field} of {index}: {want}", found_one in want.split("/"), found_one
    for line in story.get("said", ()):
        at, speaker, addressee = (part.strip() for part in line.split("|"))
        speech = next((item for item in reading.speeches if item.sentence == int(at)), None)
        told = _called(reading, speech.speaker) if speech else "none"
        right = speech is not None and speech.speaker is not None and _are(reading, (speech.speaker,), speaker)
        yield f"{at} said by {speaker}", right, told
        if addressee != "-" and speech is not None:
            right = _are(reading, speech.addressees, addressee)
            yield f"{at} said to {addressee}", right, _shown(reading, speech.addressees)
