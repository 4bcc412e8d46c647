"""What words mean to the reader: which of its classes a noun, a verb, a place or a feeling can look like.

The tables are data that ship beside the networks (`words.json`), made from the sketch's own by `make reader`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from katha.errors import KathaError
from katha.jsonio import loads
from katha_sketch.vocabulary.inflect import singular

__all__ = ["Words", "load_words"]

_WORD = re.compile(r"[a-zé'-]+")
_OF = re.compile(r" (?:of|by|near|beside|at|on|in|with|behind|above|under) ")


@dataclass(frozen=True)
class Words:
    """The tables. nouns: a word's classes ("character/lion", "prop/teapot"). people: the classes of people. bases:
    the class of a person by "sex age". places, verbs: ids by phrase. by_object: what a verb is, done to one of these.
    by_state, moods: ids by word. faces: the classes by which a mood is seen. acts: what an actor without a rig does for
    a deed. alone, by_means, by_place: what a verb is, done to nothing or with one of these, what a deed is at one of
    these. on_foot: what people do whose verb is one of the air. lifeless: what a thing does. failed, stopped: what is
    seen of who cannot do it, or stops. dressing: verbs by which clothes come onto somebody. things: kind, height in
    centimetres and where it stands, by class."""

    nouns: Mapping[str, Sequence[str]]
    people: frozenset[str]
    bases: Mapping[str, str]
    places: Mapping[str, str]
    verbs: Mapping[str, str]
    by_object: Mapping[str, Mapping[str, str]]
    by_state: Mapping[str, str]
    irregular: Mapping[str, str]
    moods: Mapping[str, str]
    faces: Mapping[str, Sequence[str]]
    acts: Mapping[str, str]
    alone: Mapping[str, str]
    by_means: Mapping[str, Mapping[str, str]]
    by_place: Mapping[str, Mapping[str, str]]
    on_foot: Mapping[str, str]
    lifeless: Mapping[str, str]
    failed: Mapping[str, str]
    stopped: Mapping[str, str]
    dressing: frozenset[str]
    things: Mapping[str, Sequence[Any]]

    def looks(self, *phrases: str) -> frozenset[str]:
        """Return the classes of the first phrase that is known, whole or by its last words."""
        for phrase in phrases:
            words = _WORD.findall(phrase.lower())
            for at in range(len(words)):
                spelt = " ".join(words[at:])
                found = self.nouns.get(spelt) or self.nouns.get(singular(spelt))
                if found:
                    return frozenset(found)
        return frozenset()

    def place(self, phrase: str) -> str | None:
        """Return the place that a phrase names: its head comes first."""
        for part in _OF.split(phrase.lower()):
            words = _WORD.findall(part)
            for size in (3, 2, 1):
                for at in range(len(words) - size, -1, -1):
                    spelt = " ".join(words[at : at + size])
                    found = self.places.get(spelt) or self.places.get(singular(spelt))
                    if found is not None:
                        return found
        return None

    def on_object(self, verb: str, objects: Iterable[str]) -> str | None:
        """Return the deed of a verb that is done to one of these, words or kinds, the nearest first."""
        rows = self.by_object.get(verb, {})
        return next((rows[word] for word in objects if word in rows), None)

    def by_tool(self, verb: str, means: Iterable[str]) -> str | None:
        """Return the deed of a verb that is done with one of these."""
        rows, every = self.by_means.get(verb, {}), self.by_means["any"]
        return next((found for word in means if (found := rows.get(word) or every.get(word)) is not None), None)

    def at_place(self, deed: str, told: Iterable[str]) -> str | None:
        """Return what a deed is at one of these: "over mouth"."""
        rows = self.by_place.get(deed, {})
        return next((rows[word] for word in told if word in rows), None)

    def lifeless_deed(self, *phrases: str) -> str | None:
        """Return what a thing does of its own accord by the first known phrase."""
        return next((self.lifeless[phrase] for phrase in phrases if phrase in self.lifeless), None)

    def thing(self, noun: str) -> tuple[str, float, str]:
        """Return the kind, height and stand of what a noun names; "" and 0 for what is not known."""
        look = next(iter(sorted(self.looks(noun))), "") if noun else ""
        kind, height, stands = self.things.get(look, ("", 0.0, ""))
        return kind, height, stands

    def state(self, words: Iterable[str]) -> str | None:
        """Return the deed that a state shows ("asleep", "trapped")."""
        return next((self.by_state[word] for word in words if word in self.by_state), None)

    def mood(self, words: Iterable[str], feeling: str | None) -> str | None:
        """Return the mood of a state's words, else the feeling that the reader of texts found."""
        return next((self.moods[word] for word in words if word in self.moods), feeling)

    def shown(self, mood: str) -> Sequence[str]:
        """Return the classes by which a mood can be seen."""
        return self.faces.get(mood, (mood,))


@cache
def load_words() -> Words:
    """Return the tables that ship with the reader.

    Raises:
        KathaError: they are missing from the installation.
    """
    try:
        text = files("katha_sketch.reader").joinpath("words.json").read_text(encoding="utf-8")
    except OSError as error:
        raise KathaError(
            "The reader's words.json is missing.", hint="Install katha again, or run `make reader`."
        ) from error
    fields: dict[str, Any] = dict(loads(text))
    return Words(**{**fields, "people": frozenset(fields["people"]), "dressing": frozenset(fields["dressing"])})
