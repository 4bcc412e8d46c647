"""What words mean to the reader: the tables of the sketch as one file that ships with the reader's networks.

The judge sees pictures by the reader and understands options by these words; it never asks the sketch. `python -m
training.reader.words` writes the file anew after a table has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from katha.jsonio import write_json
from katha_sketch.drawing.deeds import by_rig, deed, deed_ids, deed_words
from katha_sketch.drawing.pictograms import nouns
from katha_sketch.drawing.places import place_data, place_words
from katha_sketch.drawing.scenes import actor_of
from katha_sketch.drawing.scenes.senses import _data, _nearest, _places, _verbs
from katha_sketch.vocabulary import load_vocabulary
from training.reader.labels import FACES, SIGNS, person_class, person_classes, trades
from training.reader.scenes import creatures

__all__ = ["main", "words_table"]

FILE = Path(__file__).parents[2] / "src" / "katha_sketch" / "reader" / "words.json"


def words_table() -> dict[str, Any]:
    """Every table that `katha_sketch.reader.words` reads."""
    senses = _data()
    return {
        "nouns": _nouns(),
        "people": sorted(person_classes()),
        "bases": {f"{sex} {age}": person_class(base, None) for (sex, age), base in _BASES.items()},
        "places": {word: place_data(name).seen for word, name in {**_places(), **place_words()}.items()},
        "verbs": {word: _seen(name) for word, name in {**_nearest("verbs"), **_verbs(), **deed_words()}.items()},
        "by_object": {
            verb: {word: _seen(name) for word, name in rows.items()} for verb, rows in senses["by_object"].items()
        },
        "by_state": {word: _seen(name) for name, listed in senses["by_state"].items() for word in listed.split()},
        "irregular": senses["irregular"],
        "moods": {word: name for name, listed in senses["moods"].items() for word in listed.split()},
        "faces": _faces(),
        "acts": {name: deed(_seen(name)).act for name in deed_ids()},
        **_frames(senses),
        "things": _things(),
    }


def _frames(senses: Mapping[str, Any]) -> dict[str, Any]:
    """What a verb or deed is by its parts, as `katha_sketch.reader.claims` asks for it."""
    found: dict[str, Any] = {}
    for name in ("by_means", "by_place"):
        found[name] = {key: {word: _seen(one) for word, one in rows.items()} for key, rows in senses[name].items()}
    for name in ("alone", "on_foot"):
        found[name] = {word: _seen(one) for word, one in senses[name].items()}
    for name in ("lifeless", "failed", "stopped"):
        rows = senses[name].items()
        found[name] = {word.replace("_", " "): _seen(one) for one, listed in rows for word in listed.split()}
    return {**found, "dressing": sorted(senses["dressing"].split())}


def _things() -> Mapping[str, list[Any]]:
    """Kind, height in centimetres and stand of each class."""
    found: dict[str, list[Any]] = {}
    for noun in nouns().values():
        found.setdefault(f"prop/{noun.pictogram}", [noun.kind, noun.cm, noun.stands])
    for concept in load_vocabulary().concepts("character"):
        first = next((known for word in concept.words if (known := nouns().get(word)) is not None), None)
        if first is not None:
            found[f"character/{concept.id}"] = [first.kind, first.cm, first.stands]
    return dict(sorted(found.items()))


_BASES = {
    ("male", "child"): "boy", ("female", "child"): "girl", ("", "child"): "child", ("male", "old"): "old_man",
    ("female", "old"): "old_woman", ("male", ""): "man", ("female", ""): "woman",
}  # fmt: skip


_EITHER = {"person": ("man", "woman"), "child": ("boy", "girl"), "teen": ("boy", "girl")}
"""Whom a noun can mean that says nothing of sex ("the passenger"): drawn as one or the other by what else is told."""


def _anybody(base: str, outfit: str | None) -> tuple[str, ...]:
    """Every class that one whom a noun names so can be drawn as."""
    if outfit is not None and outfit in trades():
        return (person_class(base, outfit),)
    return _EITHER.get(base, (person_class(base, None),))


def _seen(name: str) -> str:
    """The deed that the networks know a deed by."""
    return deed(name).seen or name


def _nouns() -> Mapping[str, list[str]]:
    """What each noun can look like: characters of a rig and pictograms."""
    found: dict[str, list[str]] = {}
    for word, noun in nouns().items():
        if noun.kind == "person" and by_rig(noun.pictogram):
            look = actor_of(word, word).look
            found[word] = [f"character/{name}" for name in _anybody(look.base, look.outfit)]
        else:
            found[word] = [f"prop/{noun.pictogram}"]
    known = set(creatures())
    for concept in load_vocabulary().concepts("character"):
        for word in concept.words if concept.id in known else ():
            found[word] = list(dict.fromkeys([f"character/{concept.id}", *found.get(word, ())]))
    for word, other in _called_elsewhere():
        if word in found and other in nouns():
            found[word] = list(dict.fromkeys([*found[word], f"prop/{nouns()[other].pictogram}"]))
    return dict(sorted(found.items()))


def _called_elsewhere() -> Iterator[tuple[str, str]]:
    """A noun with what it is in some place: a ball is a tennis ball on the court."""
    for rows in _data()["here"].values():
        yield from ((word, other) for word, other in rows.items() if other)


def _faces() -> Mapping[str, list[str]]:
    """The classes by which a mood may be seen: on a face, or as a sign."""
    return {mood: sorted({FACES.get(mood, mood), SIGNS.get(mood, mood)} - {"none"}) for mood in {**FACES, **SIGNS}}


def main() -> None:
    """Write the file."""
    write_json(FILE, words_table())


if __name__ == "__main__":
    main()
