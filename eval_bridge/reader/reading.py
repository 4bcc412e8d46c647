"""What the reader saw in one frame, and how the networks' outputs are turned into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.reader.concepts import Concepts
from katha.eval_bridge.reader.finding import Head, Thing, sigmoid, softmax

__all__ = ["FigureReading", "FrameReading", "PropReading", "assemble", "nothing"]

Array = NDArray[np.float32]


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


def _named(values: Array, names: tuple[str, ...]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def nothing(concepts: Concepts) -> FrameReading:
    """The reading of an empty sheet: a sketch in which nothing is drawn; no time of day is likelier."""
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
            name,
            p,
            head.x,
            head.y,
            _named(actions[nth], concepts.actions),
            _named(emotions[nth], concepts.emotions),
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
    """The likeliest name, and the probability that it is there."""
    best = int(chances.argmax())
    return names[best], p * float(chances[best])


def _no_peaks(concepts: Concepts) -> dict[str, float]:
    keys = [*(f"character/{name}" for name in concepts.characters), *(f"prop/{name}" for name in concepts.props)]
    return dict.fromkeys(keys, 0.0)
