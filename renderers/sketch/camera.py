"""The camera: from stage units to pixels. The seed of a frame chooses shot size, framing, zoom and foreground.

A wide shot shows everybody but faces too small to read; a close-up shows one face (or two) and cuts bodies and props
off. That is why candidates of one board differ for reasons a person can see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType

from katha.renderers.sketch.pieces import Box, Piece, union

__all__ = ["SHOTS", "Camera", "Dice", "Land", "point_camera", "roll"]

SHOTS: Mapping[str, float] = MappingProxyType({"wide": 0.25, "medium": 0.45, "close_up": 0.30})
"""How often the seed takes each shot size when the prompt asks for none."""

_OCCLUDED = 0.3
"""How often something near the eye covers a lower corner."""


@dataclass(frozen=True)
class Dice:
    """Every random choice of the camera for one frame, drawn in a fixed order; numbers are in -1..1 or 0..1."""

    shot: str
    size: float
    pan: float
    tilt: float
    focus: float
    occluded: bool
    backdrop: int


@dataclass(frozen=True)
class Land:
    """Where a backdrop's ground begins (`horizon`) and where dry ground begins (`shore`), y in pixels."""

    horizon: float
    shore: float


@dataclass(frozen=True)
class Camera:
    """Stage point (x, y) is pixel (left + k x, ground + k y). The backdrop is enlarged by `zoom` about (`fx`, `fy`)."""

    shot: str
    k: float
    left: float
    ground: float
    zoom: float
    fx: float
    fy: float

    def box(self, box: Box) -> Box:
        """A stage box in pixels."""
        x0, y0, x1, y1 = box
        return (self.left + self.k * x0, self.ground + self.k * y0, self.left + self.k * x1, self.ground + self.k * y1)

    def backdrop_box(self, box: Box) -> Box:
        """A box of the backdrop after its zoom."""
        x0, y0, x1, y1 = box
        z = self.zoom
        return (self.fx + z * (x0 - self.fx), self.fy + z * (y0 - self.fy),
                self.fx + z * (x1 - self.fx), self.fy + z * (y1 - self.fy))  # fmt: skip


def roll(rng: Random, asked: str | None) -> Dice:
    """The choices of one frame; `asked` is the shot that the prompt asks for."""
    shares = list(SHOTS.values())
    drawn = rng.choices(list(SHOTS), weights=shares)[0]
    return Dice(
        shot=asked or drawn,
        size=rng.random(),
        pan=rng.uniform(-1.0, 1.0),
        tilt=rng.uniform(-1.0, 1.0),
        focus=rng.random(),
        occluded=rng.random() < _OCCLUDED,
        backdrop=rng.getrandbits(31),
    )


def point_camera(pieces: Sequence[Piece], dice: Dice, land: Land, width: float, height: float) -> Camera:
    """The camera for `pieces` in a frame of `width` x `height` pixels."""
    horizon = land.horizon
    if not pieces:
        shot = "wide" if dice.shot == "close_up" else dice.shot
        return Camera(shot, height / 300, width / 2, height * 0.9, 1.0 if shot == "wide" else 1.12, width / 2, horizon)
    return {"wide": _wide, "medium": _medium, "close_up": _close}[dice.shot](pieces, dice, land, width, height)


def _subject(pieces: Sequence[Piece]) -> list[Piece]:
    return [piece for piece in pieces if piece.kind == "character"] or list(pieces)


def _tall(pieces: Sequence[Piece]) -> float:
    """The tallest standing subject in units, its lift above the ground left out."""
    return max(38.0, *(piece.box[3] - piece.box[1] for piece in _subject(pieces)))


def _wide(pieces: Sequence[Piece], dice: Dice, land: Land, width: float, height: float) -> Camera:
    everything, horizon = union(piece.box for piece in pieces), land.horizon
    k = min(
        (0.17 + 0.06 * dice.size) * height / _tall(pieces),
        0.88 * width / (everything[2] - everything[0]),
        0.8 * height / -min(everything[1], -1.0),
    )
    ground = horizon + (0.34 + 0.3 * (dice.tilt + 1) / 2) * (height - horizon)
    ground = min(max(ground, land.shore), 0.94 * height)
    return Camera("wide", k, _left(everything, k, width, 0.8 * dice.pan), ground, 1.0, width / 2, horizon)


def _medium(pieces: Sequence[Piece], dice: Dice, land: Land, width: float, height: float) -> Camera:
    people, everything = union(piece.box for piece in _subject(pieces)), union(piece.box for piece in pieces)
    horizon = land.horizon
    wanted = (0.5 + 0.1 * dice.size) * height / _tall(pieces)
    fits = 0.93 * width / (people[2] - people[0])
    whole = 0.95 * width / (everything[2] - everything[0])
    top = 0.86 * height / -min(people[1], -1.0)
    k = min(wanted, fits, top)
    k = max(min(k, whole), 0.72 * k)
    ground = max(horizon + 0.5 * (height - horizon), (0.86 + 0.04 * dice.tilt) * height)
    frame = everything if k <= whole else people
    zoom = 1.06 + 0.1 * dice.size
    return Camera(
        "medium", k, _left(frame, k, width, 0.75 * dice.pan), ground, zoom, width * (0.5 + 0.3 * dice.pan), horizon
    )


def _left(box: Box, k: float, width: float, pan: float) -> float:
    """The pixel of stage x = 0 that puts `box` in the middle, moved by `pan` (-1..1) of the free room at its sides."""
    free = max(0.0, (width - k * (box[2] - box[0])) / 2)
    return width / 2 - k * (box[0] + box[2]) / 2 + pan * free


def _close(pieces: Sequence[Piece], dice: Dice, land: Land, width: float, height: float) -> Camera:
    subject, horizon = _subject(pieces), land.horizon
    floor = 1.3 * min(0.52 * height / _tall(pieces), 0.93 * width / max(1.0, _breadth(subject)))
    cx, cy, r = _focus(subject, dice, width / height)
    k = max((0.225 + 0.08 * dice.size) * height / r, floor)
    left = width * (0.5 + 0.13 * dice.pan) - k * cx
    ground = height * (0.45 + 0.05 * dice.tilt) - k * cy
    ground = max(ground, horizon + 0.45 * (height - horizon)) if k * r * 2 < 0.5 * height else ground
    return Camera("close_up", k, left, ground, 1.3 + 0.2 * dice.size, width * (0.5 + 0.4 * dice.pan), horizon)


def _breadth(pieces: Sequence[Piece]) -> float:
    box = union(piece.box for piece in pieces)
    return box[2] - box[0]


def _focus(subject: Sequence[Piece], dice: Dice, aspect: float) -> tuple[float, float, float]:
    """What the close-up looks at, as a circle: the main character's head, sometimes two heads, or a thing."""
    heads = [piece.head for piece in sorted(subject, key=lambda piece: piece.rank) if piece.head is not None]
    if not heads:
        x0, y0, x1, y1 = subject[int(dice.focus * len(subject)) % len(subject)].box
        return ((x0 + x1) / 2, (y0 + y1) / 2, max(x1 - x0, y1 - y0) / 3.2)
    first = heads[0]
    if len(heads) == 1 or dice.focus < 0.45:
        return first
    second = heads[1]
    if dice.focus > 0.85:
        return second
    apart = abs(second[0] - first[0])
    radius = max((first[2] + second[2]) / 2, 0.39 * apart / aspect)
    return ((first[0] + second[0]) / 2, (first[1] + second[1]) / 2, radius)
