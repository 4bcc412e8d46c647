"""Places as data: a stage for any story, indoors and out, at any hour and in any weather."""

from katha_sketch.drawing.places.data import (
    place_data,
    place_ids,
    place_words,
    state_data,
    states_in,
    states_of_places,
)
from katha_sketch.drawing.places.draw import TIMES, WEATHERS, Place, draw_place

__all__ = [
    "TIMES",
    "WEATHERS",
    "Place",
    "draw_place",
    "place_data",
    "place_ids",
    "place_words",
    "state_data",
    "states_in",
    "states_of_places",
]
