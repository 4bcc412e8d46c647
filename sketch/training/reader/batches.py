"""Batches for both networks, each picture and window changed a little every time it is seen."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from katha_sketch.reader.network import BODY_SIDE, CLOSE_SIDE, Concepts, discs
from training.reader.drawing import Drawn
from training.reader.negatives import jpeg, softened
from training.reader.targets import Targets, batch_targets
from training.reader.windows import ROOM, Windows

__all__ = ["Course", "Jitter", "NamerBatch", "finder_batches", "namer_batches", "network_input"]

Bytes = NDArray[np.uint8]
_FIRST, _GROWN = 0.4, 0.6
"""The share of the jitter to begin with, and the share of the training after which it is whole."""


@dataclass
class Course:
    """A training of `steps` steps, or of `seconds` if they are over sooner, counted from when this was made."""

    steps: int
    seconds: float
    begun: float = field(default_factory=time.perf_counter)

    def done(self, step: int) -> float:
        """The share of the training that is over with `step`, 0..1."""
        return min(1.0, max(step / self.steps, (time.perf_counter() - self.begun) / self.seconds))


@dataclass(frozen=True)
class Jitter:
    """How far windows of heads, bodies and props are shifted at most (share of the half side) and zoomed (spread of the
    logarithm): farther than a trained finder errs most of the time. Which shares lose their colours and change them: a
    blue jackal is a jackal, and so is one drawn in ink. Which share of figures is turned to any side, as who falls or
    flies is. How many props there are for each figure."""

    heads: tuple[float, float] = (0.2, 0.15)
    bodies: tuple[float, float] = (0.3, 0.22)
    props: tuple[float, float] = (0.22, 0.2)
    greys: float = 0.08
    tints: float = 0.08
    turns: float = 0.2
    things: float = 1.4

    def at(self, done: float) -> Jitter:
        """The jitter when `done` (0..1) of the training is over: it grows, for a network that has to make out what lies
        beside the middle before it knows what anything looks like learns neither."""
        share = _FIRST + (1 - _FIRST) * min(1.0, done / _GROWN)

        def less(pair: tuple[float, float]) -> tuple[float, float]:
            return share * pair[0], share * pair[1]

        return Jitter(
            less(self.heads),
            less(self.bodies),
            less(self.props),
            greys=share * self.greys,
            tints=share * self.tints,
            turns=share * self.turns,
            things=self.things,
        )


def network_input(pixels: Bytes) -> Tensor:
    """(B, H, W, 3) bytes to (B, 3, H, W) floats in 0..1."""
    return torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2).contiguous().to(torch.float32).div_(255)


def _picks(count: int, batch: int, steps: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """`steps` batches of numbers below `count`, each number once before any comes again."""
    order: list[int] = []
    for _ in range(steps):
        while len(order) < batch:
            order = [int(one) for one in rng.permutation(count)] + order
        yield [order.pop() for _ in range(batch)]


def _augmented(pixels: Bytes, rng: np.random.Generator) -> Bytes:
    """JPEG, softening by down- and upscaling, brightness and contrast: what happens to pictures on their way."""
    out = pixels
    if rng.random() < 0.1:
        out = softened(out, float(rng.uniform(0.55, 0.9)))
    if rng.random() < 0.12:
        out = jpeg(out, int(rng.integers(50, 96)))
    if rng.random() < 0.4:
        levels = np.arange(256) * rng.uniform(0.88, 1.12) + rng.uniform(-14, 14)
        out = np.clip(levels, 0, 255).astype(np.uint8)[out]
    return out


def finder_batches(
    drawn: Drawn, concepts: Concepts, batch: int, steps: int, seed: int
) -> Iterator[tuple[Tensor, Targets]]:
    """`steps` batches of whole pictures (B, 3, H, W) and what is asked of them, half of them mirrored."""
    rng = np.random.default_rng(seed)
    for picked in _picks(len(drawn.labels), min(batch, len(drawn.labels)), steps, rng):
        mirrored = [bool(rng.random() < 0.5) for _ in picked]
        pictures = []
        for index, mirror in zip(picked, mirrored, strict=True):
            one = drawn.pixels[index][:, ::-1] if mirror else drawn.pixels[index]
            pictures.append(_augmented(np.ascontiguousarray(one), rng))
        labels = [drawn.labels[index] for index in picked]
        yield network_input(np.stack(pictures)), batch_targets(labels, mirrored, concepts)


@dataclass(frozen=True)
class NamerBatch:
    """n figures and m props. heads, bodies, props: (n or m, channels, side, side). figure_places (n, 6), prop_places
    (m, 3): where they really are in these windows. The rest: class numbers (n,) or (m,), -1 where not asked."""

    heads: Tensor
    bodies: Tensor
    props: Tensor
    characters: Tensor
    actions: Tensor
    emotions: Tensor
    things: Tensor
    figure_places: Tensor
    prop_places: Tensor


@dataclass(frozen=True)
class _Changes:
    """How each of n windows is changed: mirrored (-1 or 1), turned (radians), zoom, shift (x, y) in half sides, light
    and contrast."""

    flip: Tensor
    angle: Tensor
    zoom: Tensor
    x: Tensor
    y: Tensor
    light: Tensor
    contrast: Tensor


def _changes(flip: Tensor, angle: Tensor, jitter: tuple[float, float], generator: torch.Generator) -> _Changes:
    count, (shift, spread) = len(flip), jitter

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=generator)

    zoom = torch.exp((spread * torch.randn(count, generator=generator)).clamp(-0.45, 0.4))
    x, y = uniform(-shift, shift), uniform(-shift, shift)
    return _Changes(flip, angle, zoom, x, y, uniform(-0.06, 0.06), uniform(0.88, 1.12))


def _angles(count: int, turns: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Angles in radians, and which of them turn a figure so far that it does something else than it did: a small tilt
    for most, any angle for the share `turns`."""
    tilt = 0.12 * torch.randn(count, generator=generator).clamp(-2, 2)
    any_angle = 2 * math.pi * torch.rand(count, generator=generator)
    turned = torch.rand(count, generator=generator) < turns
    return torch.where(turned, any_angle, tilt), turned


def _colours(count: int, jitter: Jitter, generator: torch.Generator) -> Tensor:
    """(n, 3, 3) matrices that leave colours as they are, take them away, or turn them around the grey axis."""
    dice = torch.rand(count, generator=generator)
    angle = 2 * math.pi * torch.rand(count, generator=generator)
    grey = torch.full((3, 3), 1 / 3)
    across = torch.tensor([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]) / math.sqrt(3)
    turned = grey + torch.cos(angle)[:, None, None] * (torch.eye(3) - grey) + torch.sin(angle)[:, None, None] * across
    matrices = torch.where((dice < jitter.greys + jitter.tints)[:, None, None], turned, torch.eye(3))
    return torch.where((dice < jitter.greys)[:, None, None], grey, matrices)


def _seen(windows: Sequence[Bytes], changes: _Changes, colours: Tensor, side: int) -> Tensor:
    """Stored windows (with room around them) as the changed ones of `side` pixels, (n, 3, side, side)."""
    pixels = network_input(np.stack(windows))
    cos, sin = torch.cos(changes.angle) * changes.zoom, torch.sin(changes.angle) * changes.zoom
    rows = [[cos * changes.flip, -sin * changes.flip, changes.x], [sin, cos, changes.y]]
    theta = torch.stack([torch.stack(row, dim=1) for row in rows], dim=1) / ROOM
    grid = functional.affine_grid(theta, [len(windows), 3, side, side], align_corners=False)
    seen = functional.grid_sample(pixels, grid, align_corners=False)
    seen = torch.einsum("nij,njhw->nihw", colours, seen)
    return (seen * changes.contrast[:, None, None, None] + changes.light[:, None, None, None]).clamp(0, 1)


def _inside(u: Tensor, v: Tensor, changes: _Changes) -> tuple[Tensor, Tensor]:
    """Points of the stored windows, in half sides of the reader's from the middle, as points of the changed ones."""
    u, v = (u - changes.x) / changes.zoom * changes.flip, (v - changes.y) / changes.zoom
    cos, sin = torch.cos(changes.angle), torch.sin(changes.angle)
    return cos * u + sin * v, cos * v - sin * u


def _places(changes: _Changes) -> Tensor:
    """Where the windows should have been cut, (n, 3): the middle in half sides of the changed window, and the logarithm
    of the true half side over the changed one's."""
    nowhere = torch.zeros_like(changes.x)
    return torch.stack([*_inside(nowhere, nowhere, changes), -torch.log(changes.zoom)], dim=1)


def _marks(marks: NDArray[np.float32], changes: _Changes, generator: torch.Generator) -> NDArray[np.float32]:
    """Where the heads are in the changed windows, a little wrong."""
    at = torch.from_numpy(marks)
    x, y = _inside(2 * at[:, 0] - 1, 2 * at[:, 1] - 1, changes)
    wrong = 1 + 0.12 * torch.randn(len(at), 3, generator=generator).clamp(-2, 2)
    r = at[:, 2] / changes.zoom
    moved = [(x + 1) / 2 + r * (wrong[:, 0] - 1), (y + 1) / 2 + r * (wrong[:, 1] - 1), r * wrong[:, 2]]
    return torch.stack(moved, dim=1).numpy()


def namer_batches(
    windows: Windows, concepts: Concepts, props: Sequence[str], batch: int, course: Course, seed: int, most: Jitter
) -> Iterator[NamerBatch]:
    """Batches of `batch` figures and their share of `props`, the jitter growing to `most` in the `course` of the
    training; a figure's head and body are mirrored together."""
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    index = {**concepts.index, "prop": {name: nth for nth, name in enumerate(props)}}
    known = np.array([nth for nth, name in enumerate(windows.things) if name in index["prop"]])
    things = np.array([index["prop"][windows.things[nth]] for nth in known])
    kinds = ("character", "action", "emotion")
    figures = np.array(
        [[index[kind].get(name, -1) for kind, name in zip(kinds, row, strict=True)] for row in windows.figures]
    )
    seen = _picks(len(things), max(1, round(most.things * batch)), course.steps, rng)
    picks = zip(_picks(len(figures), batch, course.steps, rng), seen, strict=True)
    for step, (picked, other) in enumerate(picks):
        jitter = most.at(course.done(step))
        flip = torch.sign(torch.rand(batch, generator=generator) - 0.5)
        angle, turned = _angles(batch, jitter.turns, generator)
        heads, bodies = (_changes(flip, angle, how, generator) for how in (jitter.heads, jitter.bodies))
        colours = _colours(batch, jitter, generator)
        other_flip = torch.sign(torch.rand(len(other), generator=generator) - 0.5)
        level, _ = _angles(len(other), 0.0, generator)
        moved, other_colours = (
            _changes(other_flip, level, jitter.props, generator),
            _colours(len(other), jitter, generator),
        )
        marks = _marks(windows.marks[picked], bodies, generator)
        body = _seen([windows.bodies[nth] for nth in picked], bodies, colours, BODY_SIDE)
        disc = torch.from_numpy(discs(marks, BODY_SIDE))[:, None]
        asked = torch.from_numpy(figures[picked])
        yield NamerBatch(
            _seen([windows.heads[nth] for nth in picked], heads, colours, CLOSE_SIDE),
            torch.cat([body, disc], dim=1),
            _seen([windows.props[known[nth]] for nth in other], moved, other_colours, CLOSE_SIDE),
            asked[:, 0],
            torch.where(turned, -1, asked[:, 1]),
            asked[:, 2],
            torch.from_numpy(things[other]),
            torch.cat([_places(heads), _places(bodies)], dim=1),
            _places(moved),
        )
