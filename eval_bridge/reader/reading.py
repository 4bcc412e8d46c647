"""What the reader saw in one frame, and what its networks' outputs mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.errors import KathaError
from katha.jsonio import loads

# What the reader's outputs mean: class order, thresholds, and what it was trained on (`concepts.json`).


@dataclass(frozen=True)
class Concepts:
    """Class names in output order, and the peak that a character or a prop needs to count as present.

    `actions` and `emotions` begin with "none"; `settings` ends with "none". `trained_on` names the drawings' version.
    """

    characters: tuple[str, ...]
    props: tuple[str, ...]
    actions: tuple[str, ...]
    emotions: tuple[str, ...]
    settings: tuple[str, ...]
    times: tuple[str, ...]
    thresholds: Mapping[str, float] = field(default_factory=dict)
    sketch_threshold: float = 0.5
    version: str = "untrained"
    trained_on: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> tuple[tuple[str, ...], ...]:
        """The classes of what is looked at closely, in the order of the namer's outputs."""
        return (self.characters, self.actions, self.emotions, self.props)

    @cached_property
    def index(self) -> Mapping[str, Mapping[str, int]]:
        """Class numbers by kind and name."""
        kinds = {
            "character": self.characters,
            "prop": self.props,
            "action": self.actions,
            "emotion": self.emotions,
            "setting": self.settings,
            "time": self.times,
        }
        return {kind: {name: nth for nth, name in enumerate(names)} for kind, names in kinds.items()}

    def threshold(self, kind: str) -> float:
        """Return the peak from which a concept of `kind` ("character" or "prop") counts as present."""
        return self.thresholds.get(kind, 0.35)


def load_concepts() -> Concepts:
    """Return the class list that ships with the reader's weights.

    Raises:
        KathaError: it is missing from the installation.
    """
    try:
        text = files("katha.eval_bridge.reader").joinpath("concepts.json").read_text(encoding="utf-8")
    except OSError as error:
        raise KathaError(
            "The reader's concepts.json is missing.", hint="Install katha again, or run `make reader`."
        ) from error
    fields: Any = {key: tuple(item) if isinstance(item, list) else item for key, item in loads(text).items()}
    return Concepts(**fields)


# From the finder's maps to places: peaks, and the shapes read at them.
#
# `shapes` are nine numbers a cell. Of a head: where its middle is in the cell (x, y, in cells from the cell's
# middle), the logarithm of its radius in cells, the middle of its figure's box (x, y, from the head's middle, in
# radii), the logarithm of half of the box's longer side in radii. Of a thing: its middle in the cell, the logarithm
# of half its side in cells.

Array = NDArray[np.float32]
STRIDE = 8
MOST_HEADS, MOST_THINGS = 10, 14
"""So many of each are looked at more closely; a frame that shows more has no room for faces."""
_FAINT = 0.2
"""What is lower than this is no peak: no name can lift it over the threshold."""
_FARTHEST, _LARGEST = 8.0, 4.0


@dataclass(frozen=True)
class Head:
    """One head: probability, middle and radius, and the square around its figure (middle, half a side), in pixels."""

    p: float
    x: float
    y: float
    radius: float
    body: tuple[float, float, float]


@dataclass(frozen=True)
class Thing:
    """One thing: probability, middle and half of its longer side, in pixels."""

    p: float
    x: float
    y: float
    half: float


def sigmoid(x: Array) -> Array:
    """Return the logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)), dtype=np.float32)


def softmax(x: Array) -> Array:
    """Return probabilities along the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True)) if x.size else x
    return np.asarray(e / e.sum(axis=-1, keepdims=True), dtype=np.float32)


def _peaks(heat: Array) -> Iterator[tuple[float, int, int]]:
    """Yield local maxima of one map as (p, row, column), highest first."""
    padded = np.pad(heat, 1)
    around = np.max([padded[i : i + heat.shape[0], j : j + heat.shape[1]] for i in range(3) for j in range(3)], axis=0)
    found = np.argwhere((heat >= _FAINT) & (heat >= around))
    yield from sorted(((float(heat[r, c]), int(r), int(c)) for r, c in found), key=lambda one: (-one[0], *one[1:]))


def _middle(shape: Array, row: int, column: int) -> tuple[float, float]:
    x, y = np.clip(shape[:2], -1.5, 1.5)
    return (column + 0.5 + float(x)) * STRIDE, (row + 0.5 + float(y)) * STRIDE


def _length(logarithm: np.float32) -> float:
    return float(np.exp(np.clip(logarithm, -_LARGEST, _LARGEST)))


def find_heads(heat: Array, shapes: Array) -> list[Head]:
    """Return heads from one map (h, w) of probabilities and `shapes` (9, h, w), likeliest first, none twice."""
    heads: list[Head] = []
    for p, r, c in _peaks(heat):
        shape = shapes[:6, r, c]
        x, y = _middle(shape, r, c)
        radius = STRIDE * _length(shape[2])
        dx, dy = np.clip(shape[3:5], -_FARTHEST, _FARTHEST) * radius
        if all(np.hypot(x - one.x, y - one.y) > max(STRIDE, 0.5 * max(radius, one.radius)) for one in heads):
            heads.append(Head(p, x, y, radius, (x + float(dx), y + float(dy), radius * _length(shape[5]))))
    return heads[:MOST_HEADS]


def find_things(heat: Array, shapes: Array) -> list[Thing]:
    """Return things from one map (h, w) of probabilities and `shapes` (9, h, w), likeliest first, none twice."""
    things: list[Thing] = []
    for p, r, c in _peaks(heat):
        shape = shapes[6:, r, c]
        x, y = _middle(shape, r, c)
        half = STRIDE * _length(shape[2])
        if all(np.hypot(x - one.x, y - one.y) > max(STRIDE, 0.25 * min(half, one.half)) for one in things):
            things.append(Thing(p, x, y, half))
    return things[:MOST_THINGS]


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


def _named(values: Array, names: tuple[str, ...]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def nothing(concepts: Concepts) -> FrameReading:
    """Return the reading of an empty sheet: a sketch in which nothing is drawn; no time of day is likelier."""
    settings = dict.fromkeys(concepts.settings, 0.0) | {concepts.settings[-1]: 1.0}
    times = dict.fromkeys(concepts.times, 1 / max(1, len(concepts.times)))
    return FrameReading((), (), settings, times, 1.0, _no_peaks(concepts))


def assemble(
    heads: Sequence[Head], things: Sequence[Thing], named: Sequence[Array], scene: Array, concepts: Concepts
) -> FrameReading:
    """One frame's reading. named: probabilities of characters, actions and emotions (a row a head) and props (a row a
    thing). scene: logits of settings, times and is-sketch. A figure's p is that of a head there times that of its
    name."""
    characters, actions, emotions, props = named
    people = [_likeliest(head.p, row, concepts.characters) for head, row in zip(heads, characters, strict=True)]
    objects = [_likeliest(thing.p, row, concepts.props) for thing, row in zip(things, props, strict=True)]
    figures = [
        FigureReading(
            name, p, head.x, head.y, _named(actions[nth], concepts.actions), _named(emotions[nth], concepts.emotions)
        )
        for nth, (head, (name, p)) in enumerate(zip(heads, people, strict=True))
        if p >= concepts.threshold("character")
    ]
    seen = [
        PropReading(name, p, thing.x, thing.y)
        for thing, (name, p) in zip(things, objects, strict=True)
        if p >= concepts.threshold("prop")
    ]
    settings, times = len(concepts.settings), len(concepts.times)
    highest = _no_peaks(concepts)
    for kind, found in (("character", people), ("prop", objects)):
        for name, p in found:
            highest[f"{kind}/{name}"] = max(p, highest[f"{kind}/{name}"])
    return FrameReading(
        figures=tuple(sorted(figures, key=lambda one: one.x)),
        props=tuple(sorted(seen, key=lambda one: one.x)),
        settings=_named(softmax(scene[:settings]), concepts.settings),
        times=_named(softmax(scene[settings : settings + times]), concepts.times),
        is_sketch=float(sigmoid(scene[-1:])[0]),
        peaks=highest,
    )


def _likeliest(p: float, chances: Array, names: Sequence[str]) -> tuple[str, float]:
    """Return the likeliest name, and the probability that it is there."""
    best = int(chances.argmax())
    return names[best], p * float(chances[best])


def _no_peaks(concepts: Concepts) -> dict[str, float]:
    keys = [*(f"character/{name}" for name in concepts.characters), *(f"prop/{name}" for name in concepts.props)]
    return dict.fromkeys(keys, 0.0)
