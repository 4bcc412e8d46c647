"""Mouths, each drawn with a pen whose origin is the mouth's centre and whose unit is half its usual width."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from katha.renderers.sketch.figures.ink import Ink
from katha.renderers.sketch.style import PAPER

__all__ = ["MOUTHS"]

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


def _round(ink: Ink) -> None:
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
    "grin": _grin, "o": _round, "gritted": _gritted, "lopsided": _lopsided, "tongue": _tongue, "shout": _shout,
    "wail": _wail, "sing": _sing, "chew": _chew, "bite": _bite,
}  # fmt: skip
"""Ways to draw a mouth by the names that the vocabulary's `draw:` data uses."""
