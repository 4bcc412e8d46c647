"""Where a thing is beside the body that has it: one small function for each place that deeds.yaml names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from katha_sketch.drawing.deeds import Body, Deed, pieces
from katha_sketch.drawing.pictograms import (
    Picture,
    draw_pictogram,
    draw_shapes,
    draw_stand_in,
    put_states,
    recoloured,
    stage_height,
    stated_drawing,
)
from katha_sketch.drawing.scenes.framing import FEW, Box, several, union
from katha_sketch.drawing.scenes.record import SceneActor, SceneThing
from katha_sketch.drawing.scenes.senses import rim_of
from katha_sketch.drawing.style import colour
from katha_sketch.drawing.svg import circle, ellipse, group, line, number, path, rect, trace
from katha_sketch.drawing.tables import load_table

__all__ = [
    "Box",
    "Cluster",
    "Sprite",
    "draw_thing",
    "fitted",
    "hung",
    "is_footwear",
    "lay",
    "plunge",
    "put_thing",
    "seat_of",
    "shrunk",
    "sized",
    "speech_bubble",
    "think_bubble",
    "union",
    "worn_where",
]

Face = tuple[float, float, float]

_HELD, _HELD_WIDE = 0.5, 0.7
"""A held thing is at most these shares of its holder's height tall and wide."""
_ON_TABLE = 72.0
"""What lies on the table of a deed is no wider than the table."""
_CAPTIVE = 0.56
"""A net or cage is this share of the height of whom it holds, so that the face is seen."""
_LEAST_HELD, _LEAST, _LARGEST = 27.0, 20.0, 170.0
_CRUMB, _LEAST_CRUMB = 4.0, 15.0
"""What is no larger than the first (centimetres) may be drawn as small as the second: a pebble is no boulder."""
_LIMITS: Mapping[str, tuple[float, float]] = {
    "thought": (34.0, 46.0), "overhead": (26.0, 26.0), "between": (76.0, 100.0),
    "cover": (38.0, 110.0), "table": (26.0, 110.0),
    "under": (13.0, 96.0), "pictured": (30.0, 30.0), "around": (46.0, 170.0), "ahead": (30.0, 170.0),
    "front": (26.0, 170.0), "back": (38.0, 78.0), "ground": (24.0, 170.0),
}  # fmt: skip
"""How small and large a thing is drawn at these places, in units; elsewhere as the two limits above say."""
_UNHANDY: Mapping[str, float] = {
    "vehicle": 140.0,
    "building": 90.0,
    "landscape": 90.0,
    "sky": 140.0,
    "plant": 250.0,
    "furniture": 70.0,
}
"""Kinds of things that nobody holds when they are taller than this (centimetres)."""
_FLOATING = frozenset({"balloon", "kite"})
_SPIKES = 12
"""Points of the bubble of who shouts."""
_KEEPS_HOLD = frozenset({"back", "thought", "flying", "around", "under", "cover"})
"""Where even a balloon does not float."""
_ALOFT = -104.0
_ON_WALL, _AT_WALL, _HEAVENLY = -66.0, -34.0, 64.0
"""How high what hangs on a wall is that is only looked at and that hands are on; how tall sun and moon are."""
_CEILING = 128.0
"""Nothing on a wall reaches higher than this."""
_SLENDER = 1.35
"""What is small and drawn larger so that it is seen is at most so much wider than the least height."""
_TOP = 0.14
"""How far below its highest point something lies on a thing, beside that thing's height."""
_SUNK, _FITS, _CLEAR, _SEEN = 0.22, 0.8, 12.0, 0.4
"""The share of a thing that the rim of what it is in hides, how wide it is at most beside that, and
how far what hangs over something is above it; how tall it is at least beside what it is in."""
_BEARING, _BORNE = frozenset({"carry", "lift", "hold", "catch"}), 170.0
"""Deeds that have in the arms what is no higher than this (centimetres)."""
_CROWN = 2.0
"""How much higher than who sits in it a tree is at least."""
_LIES, _LAIN_WIDE, _RISE, _MANY_TALL = 12, 0.9, 0.36, 17.0
"""More of the same do not lie on a thing, how wide they are at most beside it, how far apart their rows are, and how
tall each is of many."""
_WORN_TALL = 2.0
"""A thing on the body is at most so much taller than half a head."""
_COLLAR = 1.5
"""How wide what is around a neck is, in halves of the head."""
_SPAN = 130.0
"""How wide what two carry between them is at most."""
_ON_SHEET = 40.0
"""How wide what is drawn or painted is at most."""
_FALLING = 27.0
"""How high above a table something is that falls into what stands on it."""
_LIDDED = 0.75
"""What has its rim lower has a lid or handle above it, before which that is seen what is in it."""
_STOOD = frozenset({"ahead", "front", "ground", "ground_front"})
"""Where a deed has things on the ground."""
_SEATS: Mapping[str, float] = {"animal": 0.66, "vehicle": 0.58, "plant": 0.62}
_BACKED: Mapping[str, float] = {
    "chair": 0.42, "sofa": 0.46, "armchair": 0.44, "bed": 0.42, "bench": 0.42, "throne": 0.4, "cradle": 0.42,
    "swing": 0.3, "roof": 0.6, "well": 0.34, "deckchair": 0.4, "toilet": 0.45, "seat": 0.42, "windowsill": 0.38,
    "stretcher": 0.72, "stairs": 0.36,
}  # fmt: skip
"""How high the seat of a kind of things is beside their height, and of furniture that has a back; on all other things
one is on the top."""
_ARMS_APART = 26.0
"""Hands further apart than this hold nothing between them: it is in the foremost."""
_FLAT = frozenset({"world-map", "framed-picture", "mirror"})
_SHOWN_AT = -46.0
"""How high on the wall a map or paper is that somebody points at."""
_HANDY = 40.0
"""A thing of the hand or table that is smaller than this is taken in hand by whoever works on it."""
_BY_DAY = frozenset({"sun", "cloud", "rainbow", "cloud-with-rain", "cloud-with-snow", "cloud-with-lightning"})
"""What is seen in a sky by day."""
_BEAM = 74.0
"""How far the light of a lamp in the hand is drawn."""
_IN_FRAME = 0.66
"""How tall what a picture is of is beside the picture."""
_HELD_WHERE = frozenset(
    {"hand", "hands", "mouth", "ear", "eyes", "above", "above_front", "flying", "foot", "ground_front", "into", "shod"}
)


@dataclass(frozen=True)
class Sprite:
    """A drawing on the stage at (x, y): `local` is its box before that, `depth` its order (low is far).

    face: the circle of an actor's face. key: the sentence is about it. acts: an actor. facing: 1, -1 or 0.
    """

    id: str
    svg: str
    local: Box
    depth: float
    x: float = 0.0
    y: float = 0.0
    face_local: Face | None = None
    acts: bool = False
    key: bool = False
    facing: int = 0
    grounded: bool = True

    @property
    def box(self) -> Box:
        """x0, y0, x1, y1 on the stage."""
        x0, y0, x1, y1 = self.local
        return (x0 + self.x, y0 + self.y, x1 + self.x, y1 + self.y)

    @property
    def face(self) -> Face | None:
        """The face's circle on the stage."""
        if self.face_local is None:
            return None
        cx, cy, r = self.face_local
        return (cx + self.x, cy + self.y, r)

    def moved(self, dx: float, dy: float) -> Sprite:
        """The same drawing elsewhere."""
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass
class Cluster:
    """An actor with what belongs to it, its front at `facing`; `solid` is what others keep clear of, `board` the
    sprite of the table at which it sits."""

    actor: SceneActor
    facing: int
    sprites: list[Sprite]
    body: Body | None = None
    solid: Box = (0.0, 0.0, 0.0, 0.0)
    holds: bool = False
    marks: list[str] = field(default_factory=list)
    board: str | None = None

    def move(self, dx: float, dy: float = 0.0) -> None:
        """Put the whole cluster elsewhere."""
        self.sprites = [sprite.moved(dx, dy) for sprite in self.sprites]
        x0, y0, x1, y1 = self.solid
        self.solid = (x0 + dx, y0 + dy, x1 + dx, y1 + dy)

    def deepen(self, depth: float) -> None:
        """Draw the whole cluster nearer."""
        self.sprites = [replace(sprite, depth=sprite.depth + depth) for sprite in self.sprites]


def shrunk(sprite: Sprite, scale: float) -> Sprite:
    """The sprite smaller, about the stage's origin."""
    x0, y0, x1, y1 = (value * scale for value in sprite.local)
    face = None
    if sprite.face_local is not None:
        cx, cy, r = sprite.face_local
        face = (cx * scale, cy * scale, r * scale)
    return replace(sprite, svg=group(sprite.svg, transform=f"scale({scale:.4f})"), local=(x0, y0, x1, y1),
                   x=sprite.x * scale, y=sprite.y * scale, face_local=face, grounded=False)  # fmt: skip


def draw_thing(thing: SceneThing, height: float, facing: int, turn: float = 0.0) -> Picture:
    """The pictogram of a thing in its states, or the stand-in of its kind, `height` units tall."""
    plain = _picture_of(thing.shows, thing, height) if thing.shows else _drawn(thing, height, facing, turn)
    if thing.colour is not None:
        plain = replace(plain, svg=recoloured(plain.svg, thing.colour, plain.bbox))
    return put_states(plain, thing.kind, thing.states, facing) if thing.states else plain


def _picture_of(shows: str, thing: SceneThing, height: float) -> Picture:
    """A picture with what it is of: in a frame where it hangs, else on paper."""
    found, frame = draw_pictogram(shows, _IN_FRAME * height), "brown" if thing.stands == "wall" else "white"
    wide = max(found.bbox[2] - found.bbox[0], _IN_FRAME * height) + (1 - _IN_FRAME) * height
    rim = 0.07 * height
    back = "#fffdf6" if thing.pictogram != "window" else colour("sky" if shows in _BY_DAY else "navy")
    paper = rect(-wide / 2 + rim, -height + rim, wide - 2 * rim, height - 2 * rim, fill=back, line_width=1.2)
    svg = rect(-wide / 2, -height, wide, height, round_=2, fill=colour(frame), line_width=2.0) + paper
    svg += group(found.svg, transform=f"translate(0 {number(-0.5 * (1 - _IN_FRAME) * height)})")
    if thing.pictogram == "window":
        svg += line((0.0, -height), (0.0, 0.0), width=2.0) + line(
            (-wide / 2, -height / 2), (wide / 2, -height / 2), width=2.0
        )
    box: Box = (-wide / 2, -height, wide / 2, 0.0)
    return Picture(svg, box, box, (0.0, -0.7 * height, 0.25 * height))


def _drawn(thing: SceneThing, height: float, facing: int, turn: float) -> Picture:
    if thing.pictogram is not None:
        name, shapes = stated_drawing(thing.pictogram, thing.kind, thing.states)
        if name is None:
            return draw_shapes(shapes, height, facing)
        return draw_pictogram(name, height, facing=facing, turn=turn)
    plain = draw_stand_in(thing.kind, thing.cm)
    scale = height / (plain.bbox[3] - plain.bbox[1])
    box: Box = tuple(value * scale for value in plain.bbox)  # type: ignore[assignment]
    return Picture(group(plain.svg, transform=f"scale({scale:.4f})"), box, box, (0.0, box[1], 1.0))


def sized(thing: SceneThing, where: str, body_height: float) -> float:
    """How tall a thing is drawn: as large as it is, in the hand no larger than can be held."""
    height = stage_height(thing.cm)
    if where in _HELD_WHERE:
        least = _LEAST_CRUMB if thing.cm <= _CRUMB and thing.kind == "plant" else _LEAST_HELD
        return min(max(height, least), _HELD * body_height)
    if where == "over":
        return _CAPTIVE * body_height
    least, most = _LIMITS.get(where, (_LEAST, _LARGEST))
    return min(max(height, least), most)


def hung(thing: SceneThing, touched: bool = False) -> float:
    """How high the foot of a thing is that has its place on a wall or in the sky; 0 for what stands on the ground."""
    if thing.stands == "sky":
        return _ALOFT
    if thing.stands != "wall":
        return 0.0
    # What is as tall as a curtain reaches nearly to the floor.
    return min(-2.0, max(_AT_WALL if touched else _ON_WALL, stage_height(thing.cm) - _CEILING))


def fitted(thing: SceneThing, height: float, picture: Picture) -> float:
    """The height at which a small thing that was made larger is not also very wide: a shoe is no larger than a head."""
    wide = picture.bbox[2] - picture.bbox[0]
    return max(min(height, stage_height(thing.cm)), height * min(1.0, _SLENDER * height / max(wide, 1.0)))


def seat_of(thing: SceneThing, height: float) -> float:
    """How far above the ground somebody sits or stands on a thing."""
    return _BACKED.get(thing.pictogram or "", _SEATS.get(thing.kind, 0.95)) * height


def put_thing(thing: SceneThing, where: str, row: Deed, body: Body, facing: int, nth: int = 0) -> Sprite | None:
    """The thing where the deed has it, as a sprite beside a body at the stage's origin; None where it is not seen."""
    if where == "none":
        return None
    borne = row.id in _BEARING and thing.cm <= _BORNE
    if where in _HELD_WHERE and thing.kind in _UNHANDY and thing.cm > _UNHANDY[thing.kind] and not borne:
        where = "front" if where == "ground_front" else "ahead"
    if (
        where == "ahead"
        and row.id in ("look", "reach_out")
        and thing.stands == "hand"
        and stage_height(thing.cm) < _HANDY
    ):
        where = "hand"
    if where == "front" and thing.stands in ("hand", "table") and stage_height(thing.cm) < _HANDY:
        where = "hands"
    tall = body.solid[3] - body.solid[1]
    height = sized(thing, where, tall)
    if where == "under" and thing.kind == "plant":
        natural = max(stage_height(thing.cm), 0.7 * tall)
        height = min(max(height, _CROWN * tall), natural, _LARGEST)  # who sits in a tree or on a flower
    tilt = row.tilt * facing if where == "hand" else 0.0
    if where == "worn":
        return _worn(thing, body, facing)
    if thing.stands == "sky" and where in _STOOD:
        height = min(height, _HEAVENLY)
    picture = draw_thing(thing, height, facing, tilt)
    if where in _HELD_WHERE and (slim := fitted(thing, height, picture)) < height:
        height, picture = slim, draw_thing(thing, slim, facing, tilt)
    wide = picture.bbox[2] - picture.bbox[0]
    widest = _ON_TABLE if where == "table" and height <= 52 else _HELD_WIDE * tall if where in _HELD_WHERE else wide
    widest = min(widest, _ON_SHEET) if where == "pictured" else widest
    widest = min(widest, _SPAN) if where == "between" else widest
    if wide > widest:
        height *= widest / wide
        picture = draw_thing(thing, height, facing, tilt)
        wide = picture.bbox[2] - picture.bbox[0]
    x, y, depth = _PLACES[where](body, facing, wide, height, row)
    if where in _STOOD and thing.stands in ("sky", "wall"):
        y, depth = hung(thing, touched=where != "ahead"), min(depth, -0.9)
    if where == "ahead" and row.id == "point" and (thing.kind == "document" or thing.pictogram in _FLAT):
        y, depth = _SHOWN_AT, -0.9
    if thing.pictogram in _FLOATING and where not in _KEEPS_HOLD:
        return _floating(thing, body, facing)
    if where == "table":
        x += facing * 13.0 * nth
    svg, box = picture.svg, picture.bbox
    if where in ("flying", "foot"):
        svg = _path(facing, wide, height) + svg
    if where == "into":
        svg = plunge(wide, height) + svg
    if where == "dropped":
        top = min(body.joints["hand"][1], body.joints["far"][1]) - y
        hung_on = row.trail == "string"
        svg = (line((0.0, top), (0.0, -height), stroke="#7a4f35", width=2.0) if hung_on else plunge(wide, height)) + svg
    if where == "pictured":
        svg = _page(row, wide, height) + svg
    if where == "behind":
        (ax, ay), (hx, hy) = (x - facing * 0.4 * wide, -0.35 * height), body.joints["far"]
        svg = line((hx - x, hy - y), (ax - x, ay - y), stroke="#7a4f35", width=3.0) + svg
    if row.trail == "drops" and where in ("hand", "hands"):
        svg += _drops(facing, wide, height)
    if row.trail == "beam" and where == "hand":
        svg, box = (
            _beam(facing, wide, height) + svg,
            (min(box[0], facing * _BEAM), box[1], max(box[2], facing * _BEAM), box[3]),
        )
    if row.trail == "bits" and where == "hand":
        svg += _bits(facing, wide, height)
    grounded = y > -2.0
    return Sprite(thing.id, svg, box, depth, x, y, key=True, grounded=grounded)


def _floating(thing: SceneThing, body: Body, facing: int) -> Sprite:
    """A balloon or kite in the air, its string in the hand."""
    hx, hy = max((body.joints["hand"], body.joints["far"]), key=lambda point: point[0] * facing)
    drawn = draw_thing(thing, 44.0, facing)
    x, y = hx + facing * 30, min(hy - 30, body.head[1] - 8)
    string = line((hx - x, hy - y), (0.0, -4.0), width=1.6)
    return Sprite(thing.id, string + drawn.svg, drawn.bbox, 1.0, x, y, key=True, grounded=False)


def _reach(body: Body, facing: int) -> float:
    """The body's foremost x."""
    return body.solid[2] if facing > 0 else body.solid[0]


Where = Callable[[Body, int, float, float, Deed], tuple[float, float, float]]
"""From the body, which way it faces and the thing's width and height: x and y of the thing's foot, and its depth."""


def _hand(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = max((body.joints["hand"], body.joints["far"]), key=lambda point: point[0] * f)
    return x + f * (2 + 0.18 * wide), y + 0.38 * tall, 1.0


def _hands(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    (ax, ay), (bx, by) = body.joints["hand"], body.joints["far"]
    if abs(ax - bx) > _ARMS_APART:
        return _hand(body, f, wide, tall, row)
    return (ax + bx) / 2 + f * (3 + 0.22 * wide), (ay + by) / 2 + 0.42 * tall, 1.0


def _above(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    (ax, ay), (bx, by) = body.joints["hand"], body.joints["far"]
    _, cy, r = body.head
    return (ax + bx) / 2, min(max(ay, by), cy - 0.85 * r) - 1.0, 1.0


def _above_front(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = max((body.joints["hand"], body.joints["far"]), key=lambda point: point[0] * f)
    return x + f * (0.4 * wide + 2), y + 0.3 * tall, 1.0


def _over_fire(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x = max(f * body.joints["hand"][0], f * body.joints["far"][0])
    return f * (x + 12.0), -32.0, 1.0


def _mouth(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = body.joints["mouth"]
    return x + f * (0.34 * wide + 2), y + 0.45 * tall + 3, 1.0


def _mouth_front(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = body.joints["mouth"]
    return x + f * (0.5 * wide + 16), min(0.0, y + 0.5 * tall), 1.0


def _body(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    (ax, ay), (bx, by) = body.joints["hand"], body.joints["far"]
    return (ax + bx) / 2, min(0.0, (ay + by) / 2 + 0.5 * tall), 1.0


def _behind_back(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = body.joints["shoulder"]
    return x - f * (0.5 * wide + 3), min(0.0, y + 0.7 * tall), -1.0


def _dropped(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = max((body.joints["hand"], body.joints["far"]), key=lambda point: point[0] * f)
    return x + f * (0.5 * wide + 6), min(-12.0, 0.5 * y + 0.5 * tall), 1.0


def _pictured(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    top = pieces().get(row.set or "", {}).get("picture", (52, 58))
    return f * float(top[0]), -float(top[1]) + 0.5 * tall, 1.4


def _into(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    top = pieces().get(row.set or "", {}).get("top", (46, 37))
    return f * float(top[0]), -float(top[1]) - _FALLING, 1.0


def _pan(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    top = pieces().get(row.set or "", {}).get("top", (46, 37))
    return f * (float(top[0]) + 4.0), -float(top[1]), 1.5


def _shod(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = body.joints["foot"]
    return x + f * 0.1 * wide, min(0.0, y + 0.55 * tall), 1.0


def _foot(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = body.joints["foot"]
    return x + f * (0.5 * wide + 26), min(0.0, y + 0.2 * tall), 1.0


def _flying(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return _reach(body, f) + f * (0.5 * wide + 24), body.head[1] + 0.3 * tall, 1.0


def _front(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return _reach(body, f) + f * (0.5 * wide + min(row.gap, 8.0)), 0.0, 0.5 if tall < 60 else -1.0


def _table(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    top = pieces().get(row.set or "", {}).get("top")
    if top is None or tall > 52:
        return _front(body, f, wide, tall, row)
    return f * float(top[0]), -float(top[1]), 1.6


def _ground(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return f * (12 + 0.3 * wide), 1.0, 1.0


def _ground_front(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, _ = body.joints["foot"]
    return max(x * f, 0.0) * f + f * (0.5 * wide + 10), 1.0, 1.0


def _under(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return 0.0, 0.0, -0.5


def _around(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return 0.0, 0.0, 1.5


def _behind(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return _reach(body, f) + f * (0.5 * wide + 14), 0.0, 0.5


def _ahead(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return _reach(body, f) + f * (0.5 * wide + 22), 0.0, -1.0 if tall > 60 else 0.5


def _climbed(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return f * (0.24 * wide + 8), 0.0, -1.0


def _cover(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return f * 0.3 * wide, 3.0, 2.0


def _over(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return (body.solid[0] + body.solid[2]) / 2, 4.0, 2.5


def _thought(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    cx, cy, r = body.head
    return cx + f * (r + 0.5 * wide + 16), cy - r - 2, 3.0


def _ear(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    cx, cy, r = body.head
    return cx + f * 0.86 * r, cy + 0.28 * r + 0.5 * tall, 1.0


def _eyes(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    cx, cy, r = body.head
    return cx + f * (0.75 * r + 0.2 * wide), cy + 0.5 * tall, 1.0


def _staff(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, _ = body.joints["hand"]
    return x + f * 0.3 * wide, 1.0, 1.0


def _roof(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = body.joints["hand"]
    return x, y + 4.0, -0.2


def _between(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    x, y = max((body.joints["hand"], body.joints["far"]), key=lambda point: point[0] * f)
    return x + f * (0.5 * wide - 4), min(0.0, y + 0.5 * tall), 1.0


def _overhead(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    cx, cy, r = body.head
    return cx + f * 0.3 * r, cy - 1.35 * r, 1.0


def _slope(body: Body, f: int, wide: float, tall: float, row: Deed) -> tuple[float, float, float]:
    return 0.0, 0.0, -1.0


_PLACES: Mapping[str, Where] = {
    "hand": _hand, "hands": _hands, "above": _above, "above_front": _above_front, "mouth": _mouth,
    "mouth_front": _mouth_front, "head": _above, "body": _body, "back": _behind_back, "foot": _foot, "flying": _flying,
    "front": _front, "table": _table, "ground": _ground, "ground_front": _ground_front, "under": _under,
    "around": _around, "behind": _behind, "ahead": _ahead, "cover": _cover, "thought": _thought, "ear": _ear,
    "eyes": _eyes, "climbed": _climbed, "over": _over, "dropped": _dropped, "pictured": _pictured, "staff": _staff,
    "roof": _roof, "over_fire": _over_fire, "between": _between, "overhead": _overhead, "slope": _slope,
    "into": _into, "shod": _shod, "pan": _pan,
}  # fmt: skip


def _worn(thing: SceneThing, body: Body, facing: int) -> Sprite:
    """A thing on the body: hats on the head, shoes on the feet, the rest on the trunk."""
    where = worn_where(thing.pictogram)
    cx, cy, r = body.head
    (hx, hy), (sx, sy) = body.joints["hip"], body.joints["shoulder"]
    spots = {
        "head": (2.1 * r, cx, body.joints["crown"][1] + 0.25 * r, 1.2),
        "eyes": (1.7 * r, cx + facing * 0.12 * r, cy + 0.28 * r, 1.2),
        "neck": (1.1 * r, sx, sy + 0.75 * r, 1.2),
        "feet": (1.0 * r, body.joints["foot"][0], body.joints["foot"][1] + 4, 1.2),
        "back": (1.3 * r, sx - facing * 0.8 * r, hy, -0.5),
        "hand": (0.7 * r, body.joints["hand"][0], body.joints["hand"][1] + 0.35 * r, 1.2),
        "trunk": (1.5 * r, (hx + sx) / 2, hy + 0.35 * r, 0.6),
    }
    wide, x, y, depth = spots[where]
    plain = draw_thing(thing, 10.0, facing)
    height = min(10.0 * wide / (plain.bbox[2] - plain.bbox[0]), _WORN_TALL * r)
    drawn = draw_thing(thing, height, facing)
    return Sprite(thing.id, drawn.svg, drawn.bbox, depth, x, y, key=True, grounded=False)


@cache
def _worn_where() -> Mapping[str, str]:
    return {name: where for where, names in load_table("deeds", "worn.yaml").items() for name in names}


def worn_where(pictogram: str | None) -> str:
    """Where on the body something is worn."""
    return _worn_where().get(pictogram or "", "trunk")


def is_footwear(thing: SceneThing) -> bool:
    """Whether a thing is worn on the feet, so that it lies on the floor and on no table."""
    return worn_where(thing.pictogram) == "feet"


def _path(facing: int, wide: float, tall: float) -> str:
    """Lines behind something that flies."""
    back = -facing * (0.5 * wide + 4)
    return "".join(
        line((back, -tall * share), (back - facing * long, -tall * share), width=1.6)
        for share, long in ((0.25, 12.0), (0.5, 18.0), (0.75, 12.0))
    )


def plunge(wide: float, tall: float) -> str:
    """Lines above something that falls."""
    return "".join(line((x * wide, -tall - 5), (x * wide, -tall - 17), width=1.6) for x in (-0.3, 0.0, 0.3))


def _page(row: Deed, wide: float, tall: float) -> str:
    """The sheet under what is drawn on it, where the deed's furniture has none."""
    if row.set == "easel":
        return ""
    reach = 0.5 * max(wide, tall) + 5
    return rect(-reach, -0.5 * tall - reach, 2 * reach, 2 * reach, fill="#fffdf6", line_width=1.8)


def _drops(facing: int, wide: float, tall: float) -> str:
    x = facing * 0.5 * wide
    spots = [(x, 0.0), (x + facing * 2, 9.0), (x + facing * 1, 19.0)]
    return "".join(ellipse(a, b - 0.2 * tall, 2.2, 3.6, fill="#8fc3d8", width=1.2) for a, b in spots)


def _beam(facing: int, wide: float, tall: float) -> str:
    """The light that falls from a lamp in the hand, wider and wider."""
    x, y = facing * 0.4 * wide, -0.5 * tall
    cone = trace("M", (x, y - 4), "L", (facing * _BEAM, y - 34), "L", (facing * _BEAM, y + 30), "L", (x, y + 4), "Z")
    return path(cone, fill="#ffe98a", stroke=None, opacity=0.75)


def _bits(facing: int, wide: float, tall: float) -> str:
    """What falls out of something turned upside down."""
    x = facing * 0.3 * wide
    spots = [(-6.0, 6.0), (4.0, 10.0), (-1.0, 18.0), (7.0, 24.0), (-5.0, 29.0)]
    return "".join(ellipse(x + a, b - 0.1 * tall, 2.6, 2.2, fill="#8a5a3c", width=1.2) for a, b in spots)


def lay(thing: SceneThing, there: Sprite, host: SceneThing | None = None) -> Sprite:
    """A thing on, in, under, behind, before or above another (`host`) that is drawn already, or on somebody."""
    x0, y0, x1, y1 = there.box
    if there.acts:
        if thing.where == "neck":
            return _at_neck(thing, there)
        if thing.where == "before":
            return _at_foot(thing, there)
        return _across_body(thing, there) if thing.where == "across" else _at_head(thing, there)
    wide, high = x1 - x0, y1 - y0
    natural = stage_height(thing.cm)
    if thing.where == "above":
        tall = max(50.0, 0.8 * high)
    elif thing.where in ("on", "in", "under", "across"):
        tall = min(max(natural, 22.0), (0.6 if thing.where == "across" else 0.9) * max(high, 22.0))
    else:
        tall = max(natural, 20.0)
    drawn = draw_thing(thing, tall, 1, 14.0 if thing.where == "against" else 0.0)
    many = min(thing.count, _LIES) if thing.where in ("on", "in", "under", "beside", "behind") else 1
    if many > 1:
        tall = min(tall, _MANY_TALL) if many > FEW else tall
        drawn = several(draw_thing(thing, tall, 1), many, 2, _RISE)
        wider = _LAIN_WIDE * wide / (drawn.bbox[2] - drawn.bbox[0])
        drawn = several(draw_thing(thing, tall * min(1.0, wider), 1), many, 2, _RISE)
    broad = drawn.bbox[2] - drawn.bbox[0]
    if thing.where == "in" and tall < _SEEN * high and many == 1:
        drawn = draw_thing(thing, _SEEN * high, 1)
        broad, tall = drawn.bbox[2] - drawn.bbox[0], _SEEN * high
    if thing.where == "in" and broad > _FITS * wide and many == 1:  # what is in a thing is no wider than it
        drawn = draw_thing(thing, tall * _FITS * wide / broad, 1)
        broad = drawn.bbox[2] - drawn.bbox[0]
    tall = drawn.bbox[3] - drawn.bbox[1]
    rim = rim_of(host.pictogram) if thing.where == "in" and host is not None else None
    spots = {
        "on": (y0 + _TOP * high, 0.1),
        "in": (y0 + (1.02 - rim) * high, 0.1)
        if rim and rim < _LIDDED
        else (y0 + _SUNK * tall + (1.02 - rim) * high, -0.05)
        if rim
        else (y0 + 0.5 * high + 0.5 * tall, 0.1),
        "above": (y0 + 0.1 * tall, 0.2),
        "behind": (y1, -0.1),
        "below": (y1 + 0.94 * tall, 0.1),
        "aloft": (y0 - _CLEAR, 0.1),
        "across": (y0 + 0.95 * tall, 0.2),
        "out": (y1 + 0.7 * tall, 0.2),
    }
    y, depth = spots.get(thing.where, (max(y1, y0 + 0.4 * tall), 0.1))
    beyond = {"under": 0.1 * wide, "behind": 0.5 * wide, "against": 0.2 * wide,
              "before": -0.3 * wide, "beside": 0.5 * (wide + broad) + 4}  # fmt: skip
    x = (x0 + x1) / 2 + beyond.get(thing.where, 0.0)
    return Sprite(thing.id, drawn.svg, drawn.bbox, there.depth + depth, x, y, key=True, grounded=False)


def _across_body(thing: SceneThing, there: Sprite) -> Sprite:
    """A blanket or coat over somebody, from below the face down."""
    x0, y0, x1, y1 = there.box
    cx, cy, r = there.face or ((x0 + x1) / 2, y0 + 12, 12.0)
    lies = x1 - x0 > y1 - y0
    top = y0 + 0.3 * (y1 - y0) if lies else cy + 0.9 * r
    left, right = (cx + 0.8 * r, x1 + 3) if lies and cx < (x0 + x1) / 2 else (x0 - 3, cx - 0.8 * r if lies else x1 + 3)
    plain = draw_thing(thing, max(0.8 * (y1 - top), 16.0), 1)
    px0, py0, px1, py1 = plain.bbox
    across = (right - left) / (px1 - px0)
    svg = group(plain.svg, transform=f"scale({across:.3f} 1)")
    box: Box = (px0 * across, py0, px1 * across, py1)
    return Sprite(
        thing.id, svg, box, there.depth + 0.4, (left + right) / 2, top + (py1 - py0), key=True, grounded=False
    )


def _at_neck(thing: SceneThing, there: Sprite) -> Sprite:
    """A scarf or ribbon below somebody's face."""
    x0, y0, x1, _ = there.box
    cx, cy, r = there.face or ((x0 + x1) / 2, y0 + 12, 12.0)
    plain = draw_thing(thing, 10.0, 1)
    height = 10.0 * _COLLAR * r / max(plain.bbox[2] - plain.bbox[0], 1.0)
    drawn = draw_thing(thing, height, 1)
    return Sprite(
        thing.id, drawn.svg, drawn.bbox, there.depth + 0.3, cx, cy + 0.75 * r + height, key=True, grounded=False
    )


def _at_foot(thing: SceneThing, there: Sprite) -> Sprite:
    """A thing on the ground right before somebody."""
    x0, _, x1, _ = there.box
    height = min(max(stage_height(thing.cm), 20.0), _LARGEST)
    drawn = draw_thing(thing, height, 1)
    apart = 0.5 * (drawn.bbox[2] - drawn.bbox[0]) + 4.0
    x = x1 + apart if there.facing >= 0 else x0 - apart
    return Sprite(thing.id, drawn.svg, drawn.bbox, -1.0 if height > 60 else 0.4, x, 0.0, key=True)


def _at_head(thing: SceneThing, there: Sprite) -> Sprite:
    """A thing that has come down on somebody, with the lines of its fall."""
    x0, y0, x1, _ = there.box
    cx, cy, r = there.face or ((x0 + x1) / 2, y0 + 12, 12.0)
    height = min(max(stage_height(thing.cm), 22.0), 60.0)
    drawn = draw_thing(thing, height, 1)
    fallen = thing.kind != "clothing"  # a cap is put on
    svg = (plunge(drawn.bbox[2] - drawn.bbox[0], height) if fallen else "") + drawn.svg
    return Sprite(thing.id, svg, drawn.bbox, there.depth + 0.3, cx, cy - 0.8 * r, key=True, grounded=False)


def think_bubble(thought: Sprite, facing: int) -> Sprite:
    """The bubble of thought around a picture, with small ones toward the head."""
    x0, y0, x1, y1 = thought.box
    x, y, reach = (x0 + x1) / 2, (y0 + y1) / 2, 0.72 * max(x1 - x0, y1 - y0) + 4
    trail = "".join(
        circle(x - facing * (reach + 4 + 7 * nth), y + 0.7 * reach + 6 * nth, 4.0 - nth, fill="#fffdf6", width=1.6)
        for nth in range(3)
    )
    cloud = ellipse(0, 0, reach * 1.15, reach, fill="#fffdf6", width=2.0)
    svg = trail + group(cloud, transform=f"translate({number(x)} {number(y)})")
    box = (x - 1.3 * reach, y - reach, x + 1.3 * reach, y + reach + 12)
    return Sprite("thought", svg, box, thought.depth - 0.1, key=True, grounded=False)


def speech_bubble(
    x: float, y: float, mouth: tuple[float, float], wide: float, tall: float, *, jagged: bool = False
) -> str:
    """An empty bubble of speech around (x, y) with its tail to a mouth."""
    (mx, my), foot = mouth, x + (mouth[0] - x) * 0.5
    left, right = (foot - 6, y + 0.5 * tall), (foot + 7, y + 0.6 * tall)
    tail = trace("M", left, "L", (mx, my), "L", right, "Z")
    paper = "#fffdf6"
    if jagged:
        turns = [math.tau * nth / (2 * _SPIKES) for nth in range(2 * _SPIKES)]
        rim = [
            (
                x + wide * (1.28 if nth % 2 else 1.0) * math.cos(turn),
                y + tall * (1.28 if nth % 2 else 1.0) * math.sin(turn),
            )
            for nth, turn in enumerate(turns)
        ]
        points = [part for at in rim[1:] for part in ("L", at)]
        burst = trace("M", rim[0], *points, "Z")
        return (
            path(tail, fill=paper, width=2.0) + path(burst, fill=paper, width=2.0) + path(tail, fill=paper, stroke=None)
        )
    outlined = path(tail, fill=paper, width=2.0) + ellipse(x, y, wide, tall, fill=paper, width=2.0)
    return (
        outlined + path(tail, fill=paper, stroke=None) + ellipse(x, y, wide - 1.2, tall - 1.2, fill=paper, stroke=None)
    )
