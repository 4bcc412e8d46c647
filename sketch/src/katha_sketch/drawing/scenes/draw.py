"""A scene as one frame: the place, the actors with their things, the camera. Only what the scene has is drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from katha_sketch.drawing.deeds import deed
from katha_sketch.drawing.places import Place, draw_place, place_data
from katha_sketch.drawing.scenes.framing import Framing, Subject, Taste, careless_framing, choose_framing
from katha_sketch.drawing.scenes.record import Scene, SceneActor
from katha_sketch.drawing.scenes.stage import arrange
from katha_sketch.drawing.scenes.things import Box, Sprite
from katha_sketch.drawing.settings.stage import tint
from katha_sketch.drawing.style import INK
from katha_sketch.drawing.svg import border, canvas, el, group, number

__all__ = ["Frame", "Layer", "draw_scene", "frame_scene"]

_FELT = frozenset({"cry", "laugh", "think", "kiss", "hug"})
_STANDING = 6.0
_TOP = 24.0
"""How far below the frame's upper edge heads afloat stay, in pixels."""
_HANDS = frozenset({"hand", "hands", "mouth", "ear", "eyes", "table", "above_front", "head"})
"""Where a deed has what the picture must show large."""


@dataclass(frozen=True)
class Layer:
    """A part of a frame that can be told from the others: what it is called, what it is, and its drawing."""

    name: str
    kind: Literal["background", "character", "prop", "foreground", "border"]
    svg: str


@dataclass(frozen=True)
class Frame:
    """A drawn scene: `svg`, the camera that the next frame is compared with, and who and what is where in pixels.

    `sprites` are the drawings on the stage and `layers` the parts of `svg`, the farthest first.
    """

    svg: str
    framing: Framing
    boxes: tuple[tuple[str, Box], ...]
    sprites: tuple[Sprite, ...] = ()
    layers: tuple[Layer, ...] = ()


def draw_scene(scene: Scene, width: int, height: int, seed: int) -> str:
    """The scene as SVG; the same scene, size and seed give the same bytes."""
    return frame_scene(scene, width, height, seed).svg


def frame_scene(
    scene: Scene,
    width: int,
    height: int,
    seed: int,
    previous: Framing | None = None,
    *,
    loose: bool = False,
    scene_number: int | None = None,
) -> Frame:
    """The scene as SVG with its camera; `previous` is the camera of the frame before it.

    The seed varies the shot and the composition, and so does `scene_number`, the panel's place on the board: neighbours
    that tell the same are not the same picture. `loose` frames without care: small figures in a corner, heads and
    things cut off.

    Raises:
        RenderError: the scene names a place, deed, mood or pictogram that does not exist.
    """
    digest = hashlib.sha256(f"{scene!r}\n{seed}\n{scene_number}".encode()).digest()
    rng = Random(int.from_bytes(digest[:8], "big"))
    shown = frozenset(thing.pictogram for thing in scene.things if thing.pictogram is not None)
    place = draw_place(scene.setting, scene.time, scene.weather, width, height, seed, shown, scene.states)
    sprites = arrange(scene, rng, previous, seed)
    # Without a place there is nothing to see around the figures.
    asked = "medium" if scene.shot == "wide" and scene.setting is None else scene.shot
    felt = any(actor.mood and actor.deed in (*_FELT, "stand") for actor in scene.actors)
    felt = felt or any(deed(actor.deed).near for actor in scene.actors[:1])
    felt = felt and not any(_speaks(actor) for actor in scene.actors)  # a close shot cuts bubbles off
    stand = place_data(scene.setting).stand if scene.setting else None
    if loose:
        framing = careless_framing([_subject(sprite) for sprite in sprites], scene.shot, rng, width, height)
    else:
        framing = choose_framing(
            [_subject(sprite) for sprite in sprites],
            width,
            height,
            asked=asked,
            felt=felt,
            stand=stand,
            previous=previous,
            taste=_taste(rng),
            hands=_by_hand(scene),
        )
    sprites = _afloat(sprites, scene, place, framing)
    names = {thing.id: thing.word for thing in scene.things}
    names |= {actor.id: actor.concept for actor in scene.actors if actor.kind == "figure"}
    layers = _layers(sprites, names, framing, place, width, height)
    svg = canvas("".join(layer.svg for layer in layers), width, height)
    boxes = tuple((sprite.id, framing.box(sprite.box)) for sprite in sprites)
    return Frame(svg, framing, boxes, tuple(sprites), layers)


def _speaks(actor: SceneActor) -> bool:
    return actor.voice or bool({"speech", "speech_over", "blast"} & {*deed(actor.deed).pose.emanata})


def _by_hand(scene: Scene) -> bool:
    """Whether somebody does something with the hands, standing."""
    rows = [deed(actor.deed) for actor in scene.actors if actor.posture is None]
    doing = [row for row in rows if row.id != "stand" and not (row.pose.moving or row.pose.lying or row.pose.lift)]
    return any(row.near for row in rows) or any(
        {row.thing, row.far if row.own else row.thing} & _HANDS for row in doing
    )


def _taste(rng: Random) -> Taste:
    return Taste(rng.random(), rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0))


def _subject(sprite: Sprite) -> Subject:
    return Subject(sprite.id, sprite.box, sprite.face, sprite.acts, sprite.key, sprite.facing)


def _afloat(sprites: Sequence[Sprite], scene: Scene, place: Place, framing: Framing) -> list[Sprite]:
    """Swimmers and boats with their crews in the open water of the place, where a wide or medium shot has it in view;
    their heads stay in the frame."""
    swims = {actor.id for actor in scene.actors if deed(actor.deed).id in ("swim", "row", "sail")}
    boats = {thing.id for thing in scene.things if thing.stands == "water"}
    crew = {one.id for one in scene.actors if boats & {one.at, one.target} and one.where in ("in", "on", None)}
    wet = [sprite for sprite in sprites if sprite.id in swims | boats | crew]
    if place.water is None or framing.shot == "close" or not wet:
        return list(sprites)
    level = place.water[0] + 0.8 * (place.water[1] - place.water[0])
    room = max(0.0, min(framing.box(sprite.box)[1] for sprite in wet) - _TOP)
    up = max(min(0.0, level - framing.ground), -room) / framing.k
    return [sprite.moved(0.0, up) if sprite in wet else sprite for sprite in sprites]


def _layers(
    sprites: Sequence[Sprite], names: Mapping[str, str], framing: Framing, place: Place, width: int, height: int
) -> tuple[Layer, ...]:
    z, fx, fy = framing.zoom, width / 2, place.horizon
    zoomed = f"translate({number(fx * (1 - z))} {number(fy * (1 - z))}) scale({z:.4f})"
    found = [
        Layer("background", "background", group(place.back, transform=zoomed)),
        *(_layer(sprite, names, tint(_put(sprite, framing), place.glow, place.share)) for sprite in sprites),
        Layer("foreground", "foreground", place.front if framing.shot != "close" else ""),
        Layer("weather", "foreground", place.over),
        Layer("border", "border", border(width, height)),
    ]
    return tuple(layer for layer in found if layer.svg)


def _layer(sprite: Sprite, names: Mapping[str, str], svg: str) -> Layer:
    """A figure or thing by its own name; what a verb brings along is named after what it is."""
    name = names.get(sprite.id) or sprite.id.rpartition(":")[2]
    return Layer(name.replace("_", " "), "character" if sprite.acts else "prop", svg)


def _put(sprite: Sprite, framing: Framing) -> str:
    x, y = framing.left + framing.k * sprite.x, framing.ground + framing.k * sprite.y
    return group(_shadow(sprite), sprite.svg, transform=f"translate({number(x)} {number(y)}) scale({framing.k:.4f})")


def _shadow(sprite: Sprite) -> str:
    """A soft shadow under what stands on the ground."""
    if not sprite.grounded or abs(sprite.y) > _STANDING or sprite.depth < -5:
        return ""
    x0, _, x1, _ = sprite.local
    reach = 0.4 * (x1 - x0)
    return el("ellipse", cx=(x0 + x1) / 2, cy=1, rx=reach, ry=min(0.16 * reach, 7.0), fill=INK, fill_opacity=0.16)
