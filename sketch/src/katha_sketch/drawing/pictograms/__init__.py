"""Things, animals and vehicles from an open set of pictograms (Fluent emoji, flat; MIT), drawn in the sketch's style.

`nouns.tsv` says which noun is which pictogram and how large the thing is; `bodies.json` holds their drawings. Both are
data: a new word is a word in a row, a new pictogram a row and a run of `training.pictograms`.
"""

from katha_sketch.drawing.pictograms.acting import ACTS, MOODS, STATES, act_pictogram, put_states, stated_drawing
from katha_sketch.drawing.pictograms.data import Noun, Pictogram, find_noun, nouns, pictogram, pictograms
from katha_sketch.drawing.pictograms.draw import (
    Picture,
    draw_pictogram,
    draw_shapes,
    draw_stand_in,
    recoloured,
    stage_height,
)

__all__ = [
    "ACTS",
    "MOODS",
    "STATES",
    "Noun",
    "Pictogram",
    "Picture",
    "act_pictogram",
    "draw_pictogram",
    "draw_shapes",
    "draw_stand_in",
    "find_noun",
    "nouns",
    "pictogram",
    "pictograms",
    "put_states",
    "recoloured",
    "stage_height",
    "stated_drawing",
]
