"""What the reader saw in one frame, and how the network's maps are turned into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.reader.concepts import Concepts

__all__ = ["FigureReading", "FrameReading", "PropReading", "decode", "nothing"]

Array = NDArray[np.float32]
_STRIDE = 8
_APART = 1.5
"""Peaks of different kinds of characters nearer than this many cells compete; the higher one stays."""


@dataclass(frozen=True)
class FigureReading:
    """One character: what it is, how sure, where its head is (input pixels), and what it does and feels.

    `actions` and `emotions` are probabilities by name; "none" stands for standing still or a neutral face.
    """

    concept: str
    p: float
    x: float
    y: float
    actions: Mapping[str, float]
    emotions: Mapping[str, float]

    @property
    def action(self) -> str:
        """The likeliest action."""
        return max(self.actions, key=lambda name: self.actions[name])

    @property
    def emotion(self) -> str:
        """The likeliest emotion."""
        return max(self.emotions, key=lambda name: self.emotions[name])


@dataclass(frozen=True)
class PropReading:
    """One thing, how sure, and where its middle is (input pixels)."""

    concept: str
    p: float
    x: float
    y: float


@dataclass(frozen=True)
class FrameReading:
    """One frame. figures and props are above their thresholds, from left to right; `is_sketch` is a probability.

    `peaks` holds the highest peak of every character and prop ("character/lion": 0.02), present or not.
    """

    figures: tuple[FigureReading, ...]
    props: tuple[PropReading, ...]
    settings: Mapping[str, float]
    times: Mapping[str, float]
    is_sketch: float
    peaks: Mapping[str, float] = field(default_factory=dict)

    @property
    def setting(self) -> str:
        """The likeliest place; "none" for plain paper."""
        return max(self.settings, key=lambda name: self.settings[name])

    @property
    def time(self) -> str:
        """The likeliest time of day."""
        return max(self.times, key=lambda name: self.times[name])


def _sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)), dtype=np.float32)


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return np.asarray(e / e.sum(), dtype=np.float32)


def _named(values: Array, names: tuple[str, ...]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def nothing(concepts: Concepts) -> FrameReading:
    """The reading of an empty sheet: a sketch in which nothing is drawn; no time of day is likelier."""
    settings = dict.fromkeys(concepts.settings, 0.0) | {concepts.settings[-1]: 1.0}
    times = dict.fromkeys(concepts.times, 1 / max(1, len(concepts.times)))
    keys = [*(f"character/{name}" for name in concepts.characters), *(f"prop/{name}" for name in concepts.props)]
    return FrameReading((), (), settings, times, 1.0, dict.fromkeys(keys, 0.0))


def _peaks(maps: Array, kind: str, names: tuple[str, ...], concepts: Concepts) -> list[tuple[float, str, int, int]]:
    """Local maxima above their class's threshold as (p, concept, row, column), highest first."""
    limits = np.array([concepts.threshold(kind, name) for name in names], dtype=np.float32)[:, None, None]
    peaks = [
        (float(maps[k, r, c]), names[k], int(r), int(c))
        for k, r, c in np.argwhere(maps >= limits)
        if maps[k, r, c] >= maps[k, max(0, r - 1) : r + 2, max(0, c - 1) : c + 2].max()
    ]
    return sorted(peaks, key=lambda peak: (-peak[0], peak[1], peak[2], peak[3]))


def _apart(peaks: list[tuple[float, str, int, int]]) -> list[tuple[float, str, int, int]]:
    kept: list[tuple[float, str, int, int]] = []
    for peak in peaks:
        if all((peak[2] - other[2]) ** 2 + (peak[3] - other[3]) ** 2 > _APART**2 for other in kept):
            kept.append(peak)
    return kept


def decode(maps: Array, figure: Array, scene: Array, concepts: Concepts) -> FrameReading:
    """One frame's outputs, without the batch axis, as a reading. Shapes as in the network's description."""
    split = len(concepts.characters)
    heat = _sigmoid(maps)
    actions = len(concepts.actions)
    figures = []
    for p, name, r, c in _apart(_peaks(heat[:split], "character", concepts.characters, concepts)):
        does = _named(_softmax(figure[:actions, r, c]), concepts.actions)
        feels = _named(_softmax(figure[actions:, r, c]), concepts.emotions)
        figures.append(FigureReading(name, p, (c + 0.5) * _STRIDE, (r + 0.5) * _STRIDE, does, feels))
    things = _peaks(heat[split:], "prop", concepts.props, concepts)
    settings, times = len(concepts.settings), len(concepts.times)
    highest = heat.max(axis=(1, 2))
    keys = [f"character/{name}" for name in concepts.characters] + [f"prop/{name}" for name in concepts.props]
    return FrameReading(
        figures=tuple(sorted(figures, key=lambda one: one.x)),
        props=tuple(
            sorted(
                (PropReading(n, p, (c + 0.5) * _STRIDE, (r + 0.5) * _STRIDE) for p, n, r, c in things),
                key=lambda one: one.x,
            )
        ),
        settings=_named(_softmax(scene[:settings]), concepts.settings),
        times=_named(_softmax(scene[settings : settings + times]), concepts.times),
        is_sketch=float(_sigmoid(scene[-1:])[0]),
        peaks=dict(zip(keys, (float(value) for value in highest), strict=True)),
    )
