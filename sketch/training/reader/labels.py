"""What a person could read in a drawn scene, and therefore what the reader is asked for.

The rules are in reader pixels (the frame fitted into the reader's input):

- a character counts when at least 65% of its head is inside the frame and uncovered and the head's radius is 5 or more;
- its emotion counts when the head's radius is 8 or more and its deed leaves eyes and mouth to it;
- its action counts when, besides, 60% or more of the whole figure is visible and the head's radius is 6 or more;
- a pictogram counts when 55% or more of it is visible and its longer side is 12 or more; what it does and feels as an
  actor counts when that side is 24 or more.

What is partly visible but below a rule is neither asked for nor counted as wrong (`counts=False`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from katha_sketch.drawing.deeds import deed, people
from katha_sketch.drawing.pictograms import pictograms
from katha_sketch.drawing.places import place_data
from katha_sketch.drawing.scenes import Frame, Scene, SceneActor, SceneThing
from katha_sketch.drawing.scenes.things import Box, Sprite
from katha_sketch.reader.network import Fit

__all__ = ["FACES", "SIGNS", "FrameLabels", "Item", "label_frame", "person_class", "person_classes", "trades"]

HEAD_VISIBLE, HEAD_RADIUS = 0.65, 5.0
EMOTION_RADIUS = 8.0
ACTION_VISIBLE, ACTION_RADIUS = 0.6, 6.0
THING_VISIBLE, THING_SIDE, ACTING_SIDE = 0.55, 12.0, 24.0
_GRID = 7
_SOLID = 0.14
_WINDOW = 0.8
"""A driver's head beside its window."""

OF_THINGS = ("burst", "smoke", "ring", "glow", "drip")
"""Acts of things alone: a rigged figure that glows stands, and one that bursts is not drawn so."""
ALIKE = {"person": "man", "child": "boy", "teen": "boy", "teen_boy": "boy", "teen_girl": "girl"}
"""People that are drawn as others are: the rig has one short haircut and one shirt for both, and without others beside
them nobody sees how much smaller a child is than one in its teens."""
_CLOTHES = frozenset({"dress", "sleeve", "trousers", "detail"})
"""What anybody wears: a trade that has nothing else is told by the colour of a shirt alone, and by no viewer."""
FACES = {"loving": "grateful", "puzzled": "surprised", "worried": "afraid", "lonely": "sad", "tired": "calm",
         "bored": "calm", "determined": "proud", "disgusted": "angry"}  # fmt: skip
"""Moods that a face shows as another."""
SIGNS = {"calm": "none", "worried": "greedy", "loving": "grateful"}
"""Moods that the signs around a pictogram show as another, or not at all."""


@dataclass(frozen=True)
class Item:
    """One figure or pictogram in reader pixels. (x, y) and `radius`: the head of a figure, the visible part of a thing.
    `window` is the square around what is inside of the frame: middle and half a side. `action` and `emotion` are None
    where they do not count (not readable), and "none" where no feeling is shown. A `concept` of "" is silent."""

    concept: str
    kind: str
    x: float
    y: float
    radius: float
    counts: bool
    window: tuple[float, float, float]
    action: str | None = None
    emotion: str | None = None


@dataclass(frozen=True)
class FrameLabels:
    """Everything the reader is asked of one frame."""

    items: tuple[Item, ...]
    setting: str
    time: str


@dataclass(frozen=True)
class _Sheet:
    """A drawn frame with its boxes in pixels, in the order of drawing."""

    scene: Scene
    frame: Frame
    width: int
    height: int
    fit: Fit

    @property
    def boxes(self) -> list[Box]:
        return [box for _, box in self.frame.boxes]


def person_class(base: str, outfit: str | None) -> str:
    """What the rig's people are told apart by: a trade's hat or gear, else sex and age as far as they are drawn."""
    return outfit if outfit is not None and outfit in trades() else ALIKE.get(base, base)


@cache
def trades() -> tuple[str, ...]:
    """The trades that somebody who sees one person of them can name."""
    return tuple(name for name, worn in people()["outfits"].items() if not _CLOTHES.issuperset(worn))


@cache
def person_classes() -> tuple[str, ...]:
    """The classes of people: by sex and age, then by trade."""
    return (*(name for name in people()["bases"] if name not in ALIKE), *trades())


def label_frame(scene: Scene, frame: Frame, width: int, height: int, fit: Fit) -> FrameLabels:
    """The labels of a drawn scene after `fit` has put it into the reader's input."""
    sheet = _Sheet(scene, frame, width, height, fit)
    actors = {actor.id: actor for actor in scene.actors}
    things = {thing.id: thing for thing in scene.things}
    items = []
    for nth, sprite in enumerate(frame.sprites):
        actor = actors.get(sprite.id)
        if sprite.id in ("b", "thought") or not sprite.svg:
            continue
        if actor is not None and sprite.acts and actor.kind != "pictogram":
            found = _figure(sheet, nth, sprite, actor)
        else:
            found = _thing(sheet, nth, sprite, actor, things.get(sprite.id))
        if found is not None:
            items.append(found)
    place = place_data(scene.setting).seen if scene.setting else "none"
    return FrameLabels(tuple(items), place, scene.time or "day")


def _figure(sheet: _Sheet, nth: int, sprite: Sprite, actor: SceneActor) -> Item | None:
    assert sprite.face is not None
    k = sheet.frame.framing.k
    cx, cy, _, _ = sheet.frame.framing.box((*sprite.face[:2], 0.0, 0.0))
    windowed = sprite.local == _square_of(sprite.face_local)
    r = k * sprite.face[2] * (_WINDOW if windowed else 1.0)
    over = [_core(box) for box in _nearer(sheet, nth, actor)]
    seen = _head_visible(cx, cy, r, over, sheet)
    box = _whole(sheet, nth, sprite, actor)
    visible = _visible(box, over if not windowed else [], sheet)
    if seen == 0 and visible < 0.05:
        return None
    x, y = sheet.fit.point(cx, cy)
    radius = r * sheet.fit.scale
    counts = seen >= HEAD_VISIBLE and radius >= HEAD_RADIUS
    body = counts and visible >= ACTION_VISIBLE and radius >= ACTION_RADIUS and not _lent(sheet.scene, actor)
    body = body and deed(actor.deed).act not in OF_THINGS
    concept = actor.concept if actor.kind == "figure" else person_class(actor.look.base, actor.look.outfit)
    pose = deed(actor.deed).pose
    felt = counts and radius >= EMOTION_RADIUS and not pose.eyes and not pose.mouth
    mood = FACES.get(actor.mood or "none", actor.mood or "none")
    window = _square(_inside(box, sheet) or box, sheet.fit)
    return Item(
        concept, "character", x, y, radius, counts, window, _seen_deed(actor) if body else None, mood if felt else None
    )


def _seen_deed(actor: SceneActor) -> str:
    """The deed that the networks know an actor's deed by."""
    return deed(actor.deed).seen or actor.deed


def _square_of(circle: tuple[float, float, float] | None) -> Box | None:
    if circle is None:
        return None
    x, y, r = circle
    return (x - r, y - r, x + r, y + r)


def _lent(scene: Scene, actor: SceneActor) -> bool:
    """Whether somebody who only stands has the pose of a partner's deed."""
    return actor.deed == "stand" and any(
        other.target == actor.id and deed(other.deed).lends is not None for other in scene.actors
    )


def _own(sheet: _Sheet, actor: SceneActor) -> set[str]:
    """The ids of what the actor holds, rides and works with."""
    held = {thing.id for thing in sheet.scene.things if thing.held_by == actor.id}
    return {*held, actor.target or "", *(name for name, _ in sheet.frame.boxes if name.startswith(f"{actor.id}:"))}


def _whole(sheet: _Sheet, nth: int, sprite: Sprite, actor: SceneActor) -> Box:
    """The box of a figure, with the vehicle around it."""
    box = sheet.boxes[nth]
    row = deed(actor.deed)
    if "around" not in (row.thing, row.far):
        return box
    own = _own(sheet, actor)
    around = [other for name, other in sheet.frame.boxes if name in own and _overlap(box, other)]
    x0s, y0s, x1s, y1s = zip(box, *around, strict=True)
    return (min(x0s), min(y0s), max(x1s), max(y1s))


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _nearer(sheet: _Sheet, nth: int, actor: SceneActor | None) -> list[Box]:
    """What is drawn over a sprite, but for what the actor itself has."""
    own = _own(sheet, actor) if actor is not None else set()
    return [box for name, box in sheet.frame.boxes[nth + 1 :] if name not in own]


def _core(box: Box) -> Box:
    x0, y0, x1, y1 = box
    dx, dy = _SOLID * (x1 - x0), _SOLID * (y1 - y0)
    return (x0 + dx, y0 + dy, x1 - dx, y1 - dy)


def _head_visible(cx: float, cy: float, r: float, over: Sequence[Box], sheet: _Sheet) -> float:
    grid = [2 * (i + 0.5) / _GRID - 1 for i in range(_GRID)]
    spots = [(cx + u * r, cy + v * r) for u in grid for v in grid if u * u + v * v <= 1]
    return sum(_seen(x, y, over, sheet) for x, y in spots) / len(spots)


def _visible(box: Box, over: Sequence[Box], sheet: _Sheet) -> float:
    x0, y0, x1, y1 = box
    shares = [(i + 0.5) / _GRID for i in range(_GRID)]
    spots = [(x0 + u * (x1 - x0), y0 + v * (y1 - y0)) for u in shares for v in shares]
    return sum(_seen(x, y, over, sheet) for x, y in spots) / len(spots)


def _seen(x: float, y: float, over: Sequence[Box], sheet: _Sheet) -> bool:
    inside = 0 <= x <= sheet.width and 0 <= y <= sheet.height
    return inside and not any(a <= x <= c and b <= y <= d for a, b, c, d in over)


def _thing(sheet: _Sheet, nth: int, sprite: Sprite, actor: SceneActor | None, thing: SceneThing | None) -> Item | None:
    """A pictogram, or what has no name here: furniture of a deed, a rider's shrunk partner, a stand-in."""
    box = sheet.boxes[nth]
    visible, inside = _visible(box, [_core(one) for one in _nearer(sheet, nth, actor)], sheet), _inside(box, sheet)
    if visible < 0.05 or inside is None:
        return None
    concept = _pictogram(sprite, actor, thing)
    left, top, right, bottom = inside
    x, y = sheet.fit.point((left + right) / 2, (top + bottom) / 2)
    side = max(box[2] - box[0], box[3] - box[1]) * sheet.fit.scale
    radius = 0.5 * min(right - left, bottom - top) * sheet.fit.scale
    counts = concept != "" and visible >= THING_VISIBLE and side >= THING_SIDE
    item = Item(concept, "prop", x, y, radius, counts, _square(inside, sheet.fit))
    if actor is None or not sprite.acts or not counts or side < ACTING_SIDE or visible < ACTION_VISIBLE:
        return item
    mood = actor.mood or "none"
    return replace(item, action=f"act:{deed(actor.deed).act}", emotion=SIGNS.get(mood, mood))


def _pictogram(sprite: Sprite, actor: SceneActor | None, thing: SceneThing | None) -> str:
    if actor is not None:
        return (actor.pictogram or "") if actor.kind == "pictogram" else ""
    if thing is not None:
        return thing.pictogram or ""
    name = sprite.id.rpartition(":")[2] if ":" in sprite.id else ""
    return name if name in pictograms() else ""


def _inside(box: Box, sheet: _Sheet) -> Box | None:
    """The part of a box that is in the frame, None for none: a window is to be guessed from what can be seen."""
    x0, y0, x1, y1 = box
    left, right = max(x0, 0.0), min(x1, float(sheet.width))
    top, bottom = max(y0, 0.0), min(y1, float(sheet.height))
    return (left, top, right, bottom) if left < right and top < bottom else None


def _square(box: Box, fit: Fit) -> tuple[float, float, float]:
    x0, y0, x1, y1 = box
    return (*fit.point((x0 + x1) / 2, (y0 + y1) / 2), max(x1 - x0, y1 - y0) / 2 * fit.scale)
