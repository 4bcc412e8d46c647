"""What people do and what they look like: poses, things in hand and partners by verb, as data."""

from katha_sketch.drawing.deeds.data import PARTNERS, THINGS, Deed, deed, deed_ids, deed_words, people, pieces
from katha_sketch.drawing.deeds.figure import (
    Body,
    Look,
    base_of,
    by_rig,
    draw_creature,
    draw_person,
    has_hands,
    look_of,
    with_phase,
)

__all__ = [
    "PARTNERS",
    "THINGS",
    "Body",
    "Deed",
    "Look",
    "base_of",
    "by_rig",
    "deed",
    "deed_ids",
    "deed_words",
    "draw_creature",
    "draw_person",
    "has_hands",
    "look_of",
    "people",
    "pieces",
    "with_phase",
]
