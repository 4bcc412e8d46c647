"""The geometry of a shape as points: path data sampled finely enough to know what it covers, and rotation."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence

__all__ = ["Point", "box", "path_points", "rotated"]

Point = tuple[float, float]

_SAMPLES = 12
_TOKEN = re.compile(r"[A-Za-z]|-?\d*\.?\d+")
_ARITY = {"M": 2, "L": 2, "H": 1, "V": 1, "Q": 4, "C": 6, "Z": 0}
_Step = Callable[[Point, Point, Sequence[float]], list[Point]]


def path_points(data: str) -> list[Point]:
    """Points along SVG path data made of the absolute commands M L H V Q C Z.

    Raises:
        ValueError: another command, or a command with the wrong number of coordinates.
    """
    points: list[Point] = []
    start: Point = (0.0, 0.0)
    at: Point = (0.0, 0.0)
    for command, numbers in _commands(data):
        if command == "M":
            start = (numbers[0], numbers[1])
        steps = _STEPS[command](at, start, numbers)
        points.extend(steps)
        at = steps[-1]
    return points


def rotated(points: Sequence[Point], degrees: float, pivot: Point) -> list[Point]:
    """`points` turned about `pivot`, clockwise on the screen like SVG's rotate()."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    px, py = pivot
    return [(px + (x - px) * cos - (y - py) * sin, py + (x - px) * sin + (y - py) * cos) for x, y in points]


def box(points: Sequence[Point], pad: float = 0.0) -> tuple[float, float, float, float]:
    """The smallest upright box (x0, y0, x1, y1) round `points`, grown by `pad` on each side."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return (min(xs) - pad, min(ys) - pad, max(xs) + pad, max(ys) + pad)


def _commands(data: str) -> list[tuple[str, list[float]]]:
    found: list[tuple[str, list[float]]] = []
    for token in _TOKEN.findall(data):
        if token.isalpha():
            found.append((token, []))
        elif not found:
            raise ValueError("path data starts with a command letter such as M")
        else:
            found[-1][1].append(float(token))
    return [piece for command, numbers in found for piece in _split(command, numbers)]


def _split(command: str, numbers: list[float]) -> list[tuple[str, list[float]]]:
    """One command letter may be followed by several groups of coordinates."""
    if command not in _ARITY:
        raise ValueError(f"path command {command!r} is not one of {' '.join(_ARITY)}")
    size = _ARITY[command]
    if size == 0 and not numbers:
        return [(command, [])]
    if size == 0 or not numbers or len(numbers) % size:
        raise ValueError(f"path command {command!r} takes {size} numbers at a time, not {len(numbers)}")
    groups = [numbers[at : at + size] for at in range(0, len(numbers), size)]
    return [("L" if command == "M" and at else command, group) for at, group in enumerate(groups)]


def _straight(_at: Point, _start: Point, n: Sequence[float]) -> list[Point]:
    return [(n[0], n[1])]


def _curve(controls: Sequence[Point]) -> list[Point]:
    """A Bezier curve of any degree, sampled by de Casteljau's construction; its first point is left out."""
    samples: list[Point] = []
    for step in range(1, _SAMPLES + 1):
        t = step / _SAMPLES
        level = list(controls)
        while len(level) > 1:
            pairs = itertools.pairwise(level)
            level = [(a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t) for a, b in pairs]
        samples.append(level[0])
    return samples


def _quadratic(at: Point, _start: Point, n: Sequence[float]) -> list[Point]:
    return _curve([at, (n[0], n[1]), (n[2], n[3])])


def _cubic(at: Point, _start: Point, n: Sequence[float]) -> list[Point]:
    return _curve([at, (n[0], n[1]), (n[2], n[3]), (n[4], n[5])])


_STEPS: dict[str, _Step] = {
    "M": _straight,
    "L": _straight,
    "H": lambda at, _start, n: [(n[0], at[1])],
    "V": lambda at, _start, n: [(at[0], n[0])],
    "Q": _quadratic,
    "C": _cubic,
    "Z": lambda _at, start, _n: [start],
}
