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
"""Peaks of one map nearer than this many cells compete; the higher one stays."""
_FAINT = 0.08
"""What is lower than this is no peak."""


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
    return FrameReading((), (), settings, times, 1.0, _no_peaks(concepts))


def _peaks(heat: Array, names: Array, concepts: tuple[str, ...]) -> list[tuple[float, str, int, int]]:
    """Local maxima of one map as (p, the likeliest concept, row, column), highest first, none beside a higher one.

    p is the probability of something times that of its name.
    """
    found = [
        (float(heat[r, c]), int(r), int(c))
        for r, c in np.argwhere(heat >= _FAINT)
        if heat[r, c] >= heat[max(0, r - 1) : r + 2, max(0, c - 1) : c + 2].max()
    ]
    peaks: list[tuple[float, str, int, int]] = []
    for p, r, c in sorted(found, key=lambda peak: (-peak[0], *peak[1:])):
        if all((r - row) ** 2 + (c - column) ** 2 > _APART**2 for _, _, row, column in peaks):
            named = _softmax(names[:, r, c])
            best = int(named.argmax())
            peaks.append((p * float(named[best]), concepts[best], r, c))
    return peaks


def decode(maps: Array, names: Array, figure: Array, scene: Array, concepts: Concepts) -> FrameReading:
    """One frame's outputs, without the batch axis, as a reading. Shapes as in the network's description."""
    heat, split, actions = _sigmoid(maps), len(concepts.characters), len(concepts.actions)
    people = _peaks(heat[0], names[:split], concepts.characters)
    things = _peaks(heat[1], names[split:], concepts.props)
    figures = [
        FigureReading(
            name,
            p,
            *_middle(r, c),
            _named(_softmax(figure[:actions, r, c]), concepts.actions),
            _named(_softmax(figure[actions:, r, c]), concepts.emotions),
        )
        for p, name, r, c in people
        if p >= concepts.threshold("character", name)
    ]
    props = [PropReading(name, p, *_middle(r, c)) for p, name, r, c in things if p >= concepts.threshold("prop", name)]
    settings, times = len(concepts.settings), len(concepts.times)
    highest = _no_peaks(concepts)
    for kind, peaks in (("character", people), ("prop", things)):
        for p, name, _, _ in peaks:
            highest[f"{kind}/{name}"] = max(p, highest[f"{kind}/{name}"])
    return FrameReading(
        figures=tuple(sorted(figures, key=lambda one: one.x)),
        props=tuple(sorted(props, key=lambda one: one.x)),
        settings=_named(_softmax(scene[:settings]), concepts.settings),
        times=_named(_softmax(scene[settings : settings + times]), concepts.times),
        is_sketch=float(_sigmoid(scene[-1:])[0]),
        peaks=highest,
    )


def _middle(row: int, column: int) -> tuple[float, float]:
    return (column + 0.5) * _STRIDE, (row + 0.5) * _STRIDE


def _no_peaks(concepts: Concepts) -> dict[str, float]:
    keys = [*(f"character/{name}" for name in concepts.characters), *(f"prop/{name}" for name in concepts.props)]
    return dict.fromkeys(keys, 0.0)
