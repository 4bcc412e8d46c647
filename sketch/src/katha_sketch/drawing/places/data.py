"""The entries of places.yaml, checked as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from katha_sketch.drawing.tables import entry, load_table, words_of

__all__ = [
    "PlaceData",
    "StateData",
    "place_data",
    "place_ids",
    "place_words",
    "state_data",
    "states_in",
    "states_of_places",
]

_STAND = 0.88
_SPOTS = (0.3, 0.5, 0.7)


@dataclass(frozen=True)
class PlaceData:
    """One place: where its ground begins (stage units), where feet stand (share of the height), what is drawn.

    `layers` lie behind the actors, farthest first, `front` before them. `water` is the band (top, bottom) in units
    under the horizon where swimmers swim. seen: the place that the reader's networks know it by.
    roofed: no rain falls before the actors. hour: when it is, where nobody says.
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
    seen: str = ""
    roofed: bool = False
    hour: str | None = None


@dataclass(frozen=True)
class StateData:
    """What a whole place can be in: the words before a place, what tells it and of what, the layers over the place."""

    id: str
    words: tuple[str, ...]
    told: frozenset[str]
    of: frozenset[str]
    behind: tuple[Mapping[str, Any], ...]
    front: tuple[Mapping[str, Any], ...]
    open: bool = False

    def fits(self, place: PlaceData) -> bool:
        """Whether a place can be so: snow lies under the sky, and where there is water no flood is seen."""
        return not (self.open and place.indoors) and not (self.id == "flood" and place.water is not None)


@cache
def states_of_places() -> Mapping[str, StateData]:
    """Every entry of states.yaml, in its order."""
    return {
        name: StateData(
            id=name,
            words=tuple(row["words"]),
            told=frozenset(str(row.get("told", "")).split()),
            of=frozenset(str(row.get("of", "")).split()),
            behind=tuple(row.get("behind", ())),
            front=tuple(row.get("front", ())),
            open=bool(row.get("open", False)),
        )
        for name, row in load_table("places", "states.yaml").items()
    }


def state_data(name: str) -> StateData:
    """The entry of one state.

    Raises:
        RenderError: there is none.
    """
    return entry(states_of_places(), name, "state of a place", "states.yaml")


def states_in(phrase: str) -> tuple[str, ...]:
    """The states that the words before a place tell: "the dark, flooded cellar"."""
    words = set(phrase.lower().replace(",", " ").split())
    return tuple(name for name, row in states_of_places().items() if words & set(row.words))


def place_ids() -> tuple[str, ...]:
    """Every place, in the file's order."""
    return tuple(_places())


def place_data(name: str) -> PlaceData:
    """The entry of one place.

    Raises:
        RenderError: there is none.
    """
    return entry(_places(), name, "place", "places.yaml")


@cache
def place_words() -> Mapping[str, str]:
    """The place of each word that names one; the first place that lists a word has it."""
    return words_of(_places().values())


@cache
def _places() -> Mapping[str, PlaceData]:
    return {name: _read(name, row) for name, row in load_table("places", "places.yaml").items()}


def _read(name: str, row: Mapping[str, Any]) -> PlaceData:
    older: Mapping[str, Any] = load_table("places", "scenery.yaml")[row["like"]] if "like" in row else {}
    water = row.get("water", older.get("water"))
    return PlaceData(
        id=name,
        words=tuple(row["words"]),
        indoors=bool(row.get("indoors", older.get("indoors", False))),
        airless=bool(row.get("airless", False)),
        horizon=float(row.get("horizon", older.get("horizon", 318))),
        stand=float(row.get("stand", _STAND)),
        spots=tuple(row.get("spots", _SPOTS)),
        water=(float(water[0]), float(water[1])) if water else None,
        layers=(*older.get("layers", ()), *row.get("layers", ())),
        front=tuple(row.get("front", ())),
        seen=row.get("seen", name),
        roofed=bool(row.get("roofed", False)),
        hour=row.get("hour"),
    )
