"""One frame from what its prompt says: setting, figures, props, camera. Nothing is drawn that the prompt does not name.

Every random choice comes from a generator keyed by (prompt, seed): frames of one board differ, the same frame is always
the same bytes, and a character looks the same in every frame because its figure depends on its
concept and attributes only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from katha.language import SceneReading, read_scene
from katha.renderers.sketch.camera import Camera, Land, point_camera, roll
from katha.renderers.sketch.layout import arrange
from katha.renderers.sketch.pieces import Box, Piece
from katha.renderers.sketch.settings import Backdrop, draw_setting
from katha.renderers.sketch.settings.stage import tint
from katha.renderers.sketch.style import INK, PAPER
from katha.renderers.sketch.svg import el, group, number

__all__ = ["Composition", "Layer", "Placed", "border", "compose", "compose_scene", "rasterise", "svg_sheet"]

_GRID = 12
_STANDING = 12.0
"""What is farther from the ground line than this many units does not stand on it."""
_SOLID = 0.14
"""Share of a box's width and height that its drawing leaves free at each side, for the estimate of what it covers."""


@dataclass(frozen=True)
class Placed:
    """One figure or prop in the frame.

    bbox: x0, y0, x1, y1 in pixels, before the frame cuts it. head: circle (cx, cy, r) in pixels, characters only.
    visible: the estimated share (0..1) of the box inside the frame and not behind something nearer.
    """

    concept: str
    kind: Literal["character", "prop"]
    bbox: Box
    head: tuple[float, float, float] | None
    action: str | None
    emotion: str | None
    visible: float


@dataclass(frozen=True)
class Layer:
    """A part of a frame that can be told from the others: what it is called, what it is, and its drawing."""

    name: str
    kind: Literal["background", "character", "prop", "foreground", "border"]
    svg: str


@dataclass(frozen=True)
class Composition:
    """One frame before it is rasterised, with what is where; `placed` and `layers` run from far to near."""

    width: int
    height: int
    shot: str
    setting: str | None
    time: str | None
    weather: str | None
    placed: tuple[Placed, ...]
    layers: tuple[Layer, ...]

    @property
    def svg(self) -> str:
        """The whole drawing."""
        return svg_sheet("".join(layer.svg for layer in self.layers), self.width, self.height)


def compose(prompt: str, seed: int, width: int, height: int) -> Composition:
    """The frame of `prompt` for `seed`, `width` x `height` pixels."""
    return _compose(read_scene(prompt), prompt, seed, width, height)


def compose_scene(reading: SceneReading, seed: int, width: int, height: int) -> Composition:
    """The frame of a reading, without a prompt; its random choices are keyed by (reading, seed)."""
    return _compose(reading, repr(reading), seed, width, height)


def rasterise(svg: str, width: int, height: int) -> bytes:
    """PNG bytes of `width` x `height` pixels: the same for the same SVG, with no metadata."""
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width, height=height, skip_system_fonts=True))


def _compose(reading: SceneReading, key: str, seed: int, width: int, height: int) -> Composition:
    digest = hashlib.sha256(f"{key}\n{seed}".encode()).digest()
    rng = Random(int.from_bytes(digest[:8], "big"))
    dice = roll(rng, reading.shot)
    backdrop = draw_setting(reading.setting, reading.time, reading.weather, width, height, dice.backdrop)
    pieces = arrange(reading, rng)
    land = Land(backdrop.horizon, backdrop.water[1] + 0.06 * height if backdrop.water else backdrop.horizon)
    camera = point_camera(pieces, dice, land, width, height)
    afloat = [_afloat(piece, camera, backdrop) for piece in pieces]
    pieces = tuple(sorted(afloat, key=lambda piece: piece.depth))
    front = backdrop.front if dice.occluded and camera.shot != "wide" else ""
    layers = _layers(pieces, camera, backdrop, front, width, height)
    covers = backdrop.front_box if front else None
    placed = tuple(_place(pieces, nth, camera, covers, width, height) for nth in range(len(pieces)))
    return Composition(width, height, camera.shot, reading.setting, reading.time, reading.weather, placed, layers)


def _afloat(piece: Piece, camera: Camera, backdrop: Backdrop) -> Piece:
    """A swimmer moved into the setting's open water (a close-up has none in view)."""
    if not piece.swims or backdrop.water is None or camera.shot == "close_up":
        return piece
    _, y0, _, y1 = camera.backdrop_box((0.0, backdrop.water[0], 0.0, backdrop.water[1]))
    level = y0 + 0.8 * (y1 - y0)
    return replace(piece, y=(level - camera.ground) / camera.k, depth=piece.depth - 6.0)


def _layers(
    pieces: Sequence[Piece], camera: Camera, backdrop: Backdrop, front: str, width: int, height: int
) -> tuple[Layer, ...]:
    z = camera.zoom
    zoomed = f"translate({number(camera.fx * (1 - z))} {number(camera.fy * (1 - z))}) scale({z:.4f})"
    found = [
        Layer("background", "background", group(backdrop.back, transform=zoomed)),
        *(Layer(item.concept, item.kind, tint(_drawn(item, camera), backdrop.glow, backdrop.share)) for item in pieces),
        Layer("foreground", "foreground", front),
        Layer("weather", "foreground", backdrop.rain),
        Layer("border", "border", border(width, height)),
    ]
    return tuple(layer for layer in found if layer.svg)


def svg_sheet(drawing: str, width: int, height: int, **attributes: str) -> str:
    """Return a drawing as a whole SVG of `width` x `height` pixels, with further attributes of its root."""
    return el(
        "svg",
        drawing,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        **attributes,
    )


def _drawn(piece: Piece, camera: Camera) -> str:
    x, y = camera.left + camera.k * piece.x, camera.ground + camera.k * piece.y
    put = f"translate({number(x)} {number(y)}) scale({camera.k * piece.scale:.4f})"
    return group(_shadow(piece), piece.svg, transform=put)


def _shadow(piece: Piece) -> str:
    """A soft shadow on the ground under what stands on it."""
    if abs(piece.y) > _STANDING or piece.swims or piece.veil:
        return ""
    x0, _, x1, y1 = piece.local
    reach = 0.34 * (x1 - x0)
    return el("ellipse", cx=(x0 + x1) / 2, cy=min(y1, 1.0), rx=reach, ry=0.13 * reach, fill=INK, fill_opacity=0.16)


def border(width: int, height: int) -> str:
    """A margin of paper with a thin ink line inside it."""
    m = max(2.0, height * 0.014)
    r = m * 1.6
    hole = (
        f"M0,0H{width}V{height}H0Z M{number(m + r)},{number(m)}H{number(width - m - r)}"
        f"q{number(r)},0 {number(r)},{number(r)}"
        f"V{number(height - m - r)}q0,{number(r)} {number(-r)},{number(r)}H{number(m + r)}"
        f"q{number(-r)},0 {number(-r)},{number(-r)}V{number(m + r)}q0,{number(-r)} {number(r)},{number(-r)}Z"
    )
    return el("path", d=hole, fill=PAPER, fill_rule="evenodd", stroke=INK, stroke_width=max(1.0, height * 0.0045))


def _place(pieces: Sequence[Piece], nth: int, camera: Camera, front: Box | None, width: int, height: int) -> Placed:
    piece = pieces[nth]
    nearer = [_core(camera.box(other.box)) for other in pieces[nth + 1 :] if not other.veil]
    if front is not None:
        nearer.append(_core(front))
    head = piece.head
    if head is not None:
        (cx, cy, _, _), r = camera.box((head[0], head[1], head[0], head[1])), head[2] * camera.k
        head = (cx, cy, r)
    box = camera.box(piece.box)
    return Placed(
        piece.concept, piece.kind, box, head, piece.action, piece.emotion, _visible(box, nearer, width, height)
    )


def _core(box: Box) -> Box:
    x0, y0, x1, y1 = box
    dx, dy = _SOLID * (x1 - x0), _SOLID * (y1 - y0)
    return (x0 + dx, y0 + dy, x1 - dx, y1 - dy)


def _visible(box: Box, nearer: Sequence[Box], width: int, height: int) -> float:
    x0, y0, x1, y1 = box
    seen = 0
    for i in range(_GRID):
        x = x0 + (i + 0.5) / _GRID * (x1 - x0)
        for j in range(_GRID):
            y = y0 + (j + 0.5) / _GRID * (y1 - y0)
            inside = 0 <= x <= width and 0 <= y <= height
            seen += inside and not any(a <= x <= c and b <= y <= d for a, b, c, d in nearer)
    return seen / (_GRID * _GRID)
