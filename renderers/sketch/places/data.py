"""The entries of places.yaml, checked as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from katha.errors import RenderError
from katha.renderers.sketch.settings.data import setting_data

__all__ = ["PlaceData", "place_data", "place_ids", "place_words"]

_STAND = 0.88
_SPOTS = (0.3, 0.5, 0.7)


@dataclass(frozen=True)
class PlaceData:
    """One place: where its ground begins (stage units), where feet stand (share of the height), what is drawn.

    `layers` lie behind the actors, farthest first, `front` before them. `water` is the band (top, bottom) in units
    under the horizon where swimmers swim.
    """

    id: str
    words: tuple[str, ...]
    indoors: bool
    airless: bool
    horizon: float
    stand: float
    spots: tuple[float, ...]
    water: tuple[float, float] | None
    layers: tuple[Mapping[str, Any], ...]
    front: tuple[Mapping[str, Any], ...]


def place_ids() -> tuple[str, ...]:
    """Every place, in the file's order."""
    return tuple(_places())


def place_data(name: str) -> PlaceData:
    """The entry of one place.

    Raises:
        RenderError: there is none.
    """
    found = _places().get(name)
    if found is None:
        raise RenderError(f"The sketch has no place {name!r}.", hint="Its ids are the keys of places.yaml.")
    return found


@cache
def place_words() -> Mapping[str, str]:
    """The place of each word that names one; the first place that lists a word has it."""
    found: dict[str, str] = {}
    for place in _places().values():
        for word in place.words:
            found.setdefault(word, place.id)
    return found


@cache
def _places() -> Mapping[str, PlaceData]:
    text = resources.files("katha.renderers.sketch.places").joinpath("places.yaml").read_text(encoding="utf-8")
    entries = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {name: _read(name, entry) for name, entry in entries.items()}


def _read(name: str, entry: Mapping[str, Any]) -> PlaceData:
    older: Mapping[str, Any] = setting_data(entry["like"]) if "like" in entry else {}
    water = entry.get("water", older.get("water"))
    return PlaceData(
        id=name,
        words=tuple(entry["words"]),
        indoors=bool(entry.get("indoors", older.get("indoors", False))),
        airless=bool(entry.get("airless", False)),
        horizon=float(entry.get("horizon", older.get("horizon", 318))),
        stand=float(entry.get("stand", _STAND)),
        spots=tuple(entry.get("spots", _SPOTS)),
        water=(float(water[0]), float(water[1])) if water else None,
        layers=(*older.get("layers", ()), *entry.get("layers", ())),
        front=tuple(entry.get("front", ())),
    )
