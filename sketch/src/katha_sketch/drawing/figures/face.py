"""Faces: one system of eyes, brows, mouths and signs of feeling for every rig, driven by `FaceParams`.

`draw_face` works in the unit circle of a head: origin at its centre, radius 1, facing right. A rig says where its
eyes and mouth
sit with a `FaceLayout`; a beaked rig leaves the mouth out and opens its own beak by `gape(face.mouth)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from katha_sketch.drawing.figures.ink import Ink, Point
from katha_sketch.drawing.figures.rig import FaceParams
from katha_sketch.drawing.figures.signs import SIGNS
from katha_sketch.drawing.style import INK, PAPER

__all__ = ["EYES", "MOUTHS", "FaceLayout", "draw_face", "gape"]


@dataclass(frozen=True)
class FaceLayout:
    """Where a face's parts sit, in head radii. `lid` is the colour around the eyes; `mouth` is None for a beak."""

    eyes: tuple[Point, Point] = ((-0.24, -0.08), (0.46, -0.08))
    eye: float = 0.25
    mouth: Point | None = (0.13, 0.5)
    width: float = 0.62
    lid: str = PAPER
    brow: str = INK


_GAPE: Mapping[str, float] = {
    "grin": 0.6, "o": 0.7, "shout": 1.0, "sing": 0.8, "wail": 0.8, "tongue": 0.6, "gritted": 0.25, "chew": 0.3,
    "wavy": 0.2, "bite": 0.7,
}  # fmt: skip


def gape(mouth: str) -> float:
    """How far open a beak or jaw is for this mouth, 0..1."""
    return _GAPE.get(mouth, 0.0)


def draw_face(ink: Ink, face: FaceParams, layout: FaceLayout) -> None:
    """Draw eyes, brows, mouth and signs with a pen whose unit is the head's radius and whose origin is its centre."""
    for sign in face.extras:
        SIGNS[sign](ink, layout.eyes, layout.eye)
    for side, (x, y) in zip((1, -1), layout.eyes, strict=True):
        EYES[face.eyes](ink.at(x, y, sx=layout.eye), face, side, layout)
        if face.brow is not None:
            _brow(ink.at(x, y - layout.eye * 1.45 - face.brow_raise), face.brow * side, layout)
    if layout.mouth is not None:
        x, y = layout.mouth
        MOUTHS[face.mouth](ink.at(x, y, sx=layout.width / 2))


def _brow(ink: Ink, angle: float, layout: FaceLayout) -> None:
    reach = layout.eye * 1.05
    ink.at(angle=angle).line([(-reach, 0), (reach, 0)], stroke=layout.brow, width=1.5)


Eye = Callable[[Ink, FaceParams, int, FaceLayout], None]


def _open(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.ellipse(0, 0, 0.85, 1.05, fill=PAPER, width=0.7)
    x, y = face.pupil
    ink.ellipse(0.1 + x * 0.5, y * 0.6, 0.6, 0.8, fill=INK, width=0)
    ink.ellipse(0.3 + x * 0.5, -0.32 + y * 0.6, 0.24, fill=PAPER, width=0)


def _wide(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.ellipse(0, 0, 1.2, 1.5, fill=PAPER, width=0.8)
    ink.ellipse(face.pupil[0] * 0.5, face.pupil[1] * 0.5, 0.32, fill=INK, width=0)


def _round(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.ellipse(0, 0, 1.25, 1.4, fill=PAPER, width=0.8)
    ink.ellipse(0.1, 0, 0.6, 0.7, fill=INK, width=0)
    ink.ellipse(0.3, -0.28, 0.22, fill=PAPER, width=0)


def _closed(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.draw("M -1.05 -0.1 Q 0 1.2 1.05 -0.1", stroke=layout.brow, width=1.5)


def _smiling(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.draw("M -1 0.4 Q 0 -1.4 1 0.4", stroke=layout.brow, width=1.4)


def _half(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.draw("M -1.1 -0.2 L 1.1 -0.2 Q 1 1 0 1 Q -1 1 -1.1 -0.2 Z", fill=PAPER, width=0.7)
    ink.ellipse(0.1 + face.pupil[0] * 0.5, 0.3, 0.42, 0.5, fill=INK, width=0)
    ink.line([(-1.25, -0.25), (1.25, -0.25)], stroke=layout.brow, width=1.4)


def _down(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.ellipse(0, 0.1, 0.9, 1.0, fill=PAPER, width=0.7)
    ink.ellipse(0, 0.62, 0.45, 0.42, fill=INK, width=0)
    ink.draw("M -1 0.2 Q -0.9 -1 0 -1 Q 0.9 -1 1 0.2 Q 0 0 -1 0.2 Z", fill=layout.lid, width=0.8)


def _glare(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    pen = ink.at(sx=side, sy=1)
    pen.draw("M -1.1 -0.9 L 1.1 0.1 Q 0.9 1 0 1 Q -1.2 0.9 -1.1 -0.9 Z", fill=PAPER, width=0.8)
    ink.ellipse(0.15, 0.3, 0.36, fill=INK, width=0)


def _sorry(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    pen = ink.at(sx=side, sy=1)
    pen.draw("M -1 0.3 L 0.9 -0.9 Q 1.3 1 0 1.1 Q -0.9 1.1 -1 0.3 Z", fill=PAPER, width=0.8)
    ink.ellipse(0.1, 0.35, 0.5, 0.6, fill=INK, width=0)
    ink.ellipse(0.3, 0.1, 0.2, fill=PAPER, width=0)


def _cross(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.line([(-0.9, -0.9), (0.9, 0.9)], stroke=layout.brow, width=1.4)
    ink.line([(-0.9, 0.9), (0.9, -0.9)], stroke=layout.brow, width=1.4)


def _squeezed(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.line([(-0.9 * side, -0.8), (0.8 * side, 0), (-0.9 * side, 0.8)], stroke=layout.brow, width=1.3)


def _wink(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    (_closed if side < 0 else _open)(ink, face, side, layout)


def _rolled(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.ellipse(0, 0, 1.1, 1.3, fill=PAPER, width=0.8)
    ink.ellipse(0.1, -0.75, 0.5, 0.48, fill=INK, width=0)


def _coins(ink: Ink, face: FaceParams, side: int, layout: FaceLayout) -> None:
    ink.ellipse(0, 0, 1.25, 1.35, fill=PAPER, width=0.8)
    ink.ellipse(0, 0, 0.85, fill="golden", width=0.8)
    ink.polygon([(0, -0.55), (0.4, 0), (0, 0.55), (-0.4, 0)], fill="yellow", stroke=PAPER, width=0.3)


EYES: Mapping[str, Eye] = {
    "dot": _open, "wide": _wide, "round": _round, "closed": _closed, "smiling": _smiling, "half": _half, "down": _down,
    "glare": _glare, "sorry": _sorry, "cross": _cross, "squeezed": _squeezed, "coins": _coins,
    "wink": _wink, "rolled": _rolled,
}  # fmt: skip
"""Ways to draw an eye, each in the unit circle of the eye; `side` is 1 for the near-left eye and -1 for the other."""


_INSIDE = "#8c2f39"
_TONGUE = "#ef8f8f"


def _stroke(d: str, width: float = 1.2) -> Callable[[Ink], None]:
    """A mouth that is one line."""

    def draw(ink: Ink) -> None:
        ink.draw(d, width=width)

    return draw


def _grin(ink: Ink) -> None:
    ink.draw("M -1 -0.35 Q 0 -0.1 1 -0.35 Q 0.9 0.95 0 0.95 Q -0.9 0.95 -1 -0.35 Z", fill=_INSIDE)
    ink.draw("M -0.55 0.6 Q 0 0.1 0.55 0.6 Q 0 1.05 -0.55 0.6 Z", fill=_TONGUE, width=0)


def _oval(ink: Ink) -> None:
    ink.ellipse(0, 0.15, 0.5, 0.68, fill=_INSIDE)


def _gritted(ink: Ink) -> None:
    ink.draw("M -1 0.4 Q -1 -0.4 0 -0.35 Q 1 -0.4 1 0.4 Q 0 0.15 -1 0.4 Z", fill=PAPER)
    for x in (-0.5, 0.0, 0.5):
        ink.line([(x, -0.3), (x, 0.25)], width=0.6)


def _lopsided(ink: Ink) -> None:
    ink.draw("M -0.8 0.15 Q 0.3 0.65 1.15 -0.5", width=1.3)
    ink.draw("M 0.95 -0.62 Q 1.3 -0.55 1.3 -0.25", width=1)
    ink.polygon([(0.35, 0.27), (0.68, 0.05), (0.62, 0.5)], fill=PAPER, width=0.6)


def _tongue(ink: Ink) -> None:
    ink.draw("M -1 -0.3 Q 0 0 1 -0.3 Q 0.8 0.8 0 0.8 Q -0.8 0.8 -1 -0.3 Z", fill=_INSIDE)
    ink.draw("M 0.05 0.3 Q 0.85 0.1 0.85 0.9 Q 0.8 1.6 0.4 1.55 Q -0.05 1.5 0.05 0.3 Z", fill=_TONGUE, width=0.8)
    ink.draw("M -0.9 0.5 Q -1.25 1.2 -0.9 1.4 Q -0.55 1.2 -0.9 0.5 Z", fill="water", width=0.6)


def _shout(ink: Ink) -> None:
    ink.draw("M -0.95 -0.6 Q 0 -1 0.95 -0.6 Q 1.1 1.35 0 1.35 Q -1.1 1.35 -0.95 -0.6 Z", fill=_INSIDE)
    ink.draw("M -0.7 -0.62 Q 0 -0.85 0.7 -0.62 L 0.6 -0.3 Q 0 -0.45 -0.6 -0.3 Z", fill=PAPER, width=0)
    ink.draw("M -0.6 0.95 Q 0 0.3 0.6 0.95 Q 0 1.4 -0.6 0.95 Z", fill=_TONGUE, width=0)


def _wail(ink: Ink) -> None:
    ink.draw("M -0.9 0.9 Q -0.9 -0.55 0 -0.55 Q 0.9 -0.55 0.9 0.9 Q 0 0.5 -0.9 0.9 Z", fill=_INSIDE)
    ink.draw("M -0.5 0.7 Q 0 0.2 0.5 0.7 Q 0 0.55 -0.5 0.7 Z", fill=_TONGUE, width=0)


def _sing(ink: Ink) -> None:
    ink.ellipse(0.1, 0.25, 0.62, 0.85, fill=_INSIDE)
    ink.ellipse(0.1, 0.75, 0.38, 0.28, fill=_TONGUE, width=0)


def _chew(ink: Ink) -> None:
    ink.draw("M -0.85 -0.1 Q -0.4 0.5 0 0.1 Q 0.4 0.5 0.85 -0.1", width=1.1)
    ink.ellipse(-1.15, 0, 0.45, fill="pink", width=0.6)


def _bite(ink: Ink) -> None:
    ink.draw("M -1 -0.4 Q 0 -0.7 1.1 -0.4 L 1 0.7 Q 0 1.1 -0.9 0.6 Z", fill=_INSIDE)
    for x in (-0.7, -0.1, 0.5):
        ink.polygon([(x, -0.5), (x + 0.45, -0.5), (x + 0.22, 0.05)], fill=PAPER, width=0.4)
        ink.polygon([(x, 0.75), (x + 0.4, 0.75), (x + 0.2, 0.3)], fill=PAPER, width=0.4)


MOUTHS: Mapping[str, Callable[[Ink], None]] = {
    "rest": _stroke("M -0.5 0.05 Q 0 0.3 0.5 0.05", 1.1),
    "smile": _stroke("M -1 -0.2 Q 0 0.85 1 -0.2", 1.3),
    "gentle": _stroke("M -0.65 -0.05 Q 0 0.55 0.65 -0.05", 1.2),
    "smug": _stroke("M -0.9 0.1 Q 0.2 0.6 0.8 -0.25 M 0.65 -0.4 Q 0.9 -0.35 0.95 -0.1", 1.2),
    "frown": _stroke("M -0.85 0.55 Q 0 -0.6 0.85 0.55", 1.3),
    "wavy": _stroke("M -1 0.3 Q -0.75 -0.5 -0.4 0.1 Q -0.1 0.6 0.2 0.05 Q 0.5 -0.5 0.7 0.1 Q 0.85 0.5 1 0.2", 1.2),
    "pout": _stroke("M -0.4 0.3 Q 0 -0.2 0.45 0.3", 1.2),
    "grin": _grin, "o": _oval, "gritted": _gritted, "lopsided": _lopsided, "tongue": _tongue, "shout": _shout,
    "wail": _wail, "sing": _sing, "chew": _chew, "bite": _bite,
}  # fmt: skip
"""Ways to draw a mouth by the names that the vocabulary's `draw:` data uses."""
