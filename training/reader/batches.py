"""Batches for both networks, each picture and window changed a little every time it is seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from katha.eval_bridge.reader.concepts import Concepts
from katha.eval_bridge.reader.windows import BODY_SIDE, CLOSE_SIDE, discs
from training.reader.drawing import Drawn
from training.reader.negatives import jpeg, softened
from training.reader.targets import Targets, batch_targets
from training.reader.windows import ROOM, Windows

__all__ = ["ERRORS", "SMALL", "WILD", "Jitter", "NamerBatch", "finder_batches", "namer_batches", "network_input"]

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Jitter:
    """How far windows of heads, bodies and props are shifted at most (share of the half side) and zoomed (spread of the
    logarithm); which shares of them lose their colours and change them; how many props there are for each figure."""

    heads: tuple[float, float]
    bodies: tuple[float, float]
    props: tuple[float, float]
    greys: float = 0.0
    tints: float = 0.0
    things: float = 1.0


SMALL = Jitter((0.13, 0.1), (0.13, 0.1), (0.13, 0.1))
ERRORS = Jitter((0.14, 0.13), (0.23, 0.18), (0.2, 0.18))
"""As far as a trained finder errs: its measured spread on pictures it never saw."""
WILD = Jitter((0.2, 0.15), (0.3, 0.25), (0.22, 0.2), greys=0.12, tints=0.1, things=0.5)
"""Farther than most of its errors, and other colours: a blue jackal is a jackal, and so is one drawn in ink."""


def network_input(pixels: Bytes, half: bool = False) -> Tensor:
    """(B, H, W, 3) bytes to (B, 3, H, W) floats in 0..1; `half` for bfloat16, as the convolutions take them."""
    return (
        torch.from_numpy(np.ascontiguousarray(pixels))
        .permute(0, 3, 1, 2)
        .contiguous()
        .to(torch.bfloat16 if half else torch.float32)
        .div_(255)
    )


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
        yield network_input(np.stack(pictures), half=True), batch_targets(labels, mirrored, concepts)


@dataclass(frozen=True)
class NamerBatch:
    """n figures and m props. heads, bodies, props: (n or m, channels, side, side). The rest: class numbers (n,) or
    (m,), -1 where not asked."""

    heads: Tensor
    bodies: Tensor
    props: Tensor
    characters: Tensor
    actions: Tensor
    emotions: Tensor
    things: Tensor


@dataclass(frozen=True)
class _Changes:
    """How each of n windows is changed: mirrored (-1 or 1), zoom, shift (x, y) in half sides, light and contrast."""

    flip: Tensor
    zoom: Tensor
    x: Tensor
    y: Tensor
    light: Tensor
    contrast: Tensor


def _changes(flip: Tensor, jitter: tuple[float, float], generator: torch.Generator) -> _Changes:
    count, (shift, spread) = len(flip), jitter

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=generator)

    zoom = torch.exp((spread * torch.randn(count, generator=generator)).clamp(-0.45, 0.4))
    x, y = uniform(-shift, shift), uniform(-shift, shift)
    return _Changes(flip, zoom, x, y, uniform(-0.06, 0.06), uniform(0.88, 1.12))


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
    theta = torch.zeros(len(windows), 2, 3)
    theta[:, 0, 0], theta[:, 0, 2] = changes.zoom * changes.flip / ROOM, changes.x / ROOM
    theta[:, 1, 1], theta[:, 1, 2] = changes.zoom / ROOM, changes.y / ROOM
    grid = functional.affine_grid(theta, [len(windows), 3, side, side], align_corners=False)
    seen = functional.grid_sample(pixels, grid, align_corners=False)
    seen = torch.einsum("nij,njhw->nihw", colours, seen)
    return (seen * changes.contrast[:, None, None, None] + changes.light[:, None, None, None]).clamp(0, 1)


def _marks(marks: NDArray[np.float32], changes: _Changes, generator: torch.Generator) -> NDArray[np.float32]:
    """Where the heads are in the changed windows, a little wrong."""
    at = torch.from_numpy(marks)
    x = (2 * at[:, 0] - 1 - changes.x) / changes.zoom * changes.flip
    y = (2 * at[:, 1] - 1 - changes.y) / changes.zoom
    wrong = 1 + 0.12 * torch.randn(len(at), 3, generator=generator).clamp(-2, 2)
    r = at[:, 2] / changes.zoom
    moved = [(x + 1) / 2 + r * (wrong[:, 0] - 1), (y + 1) / 2 + r * (wrong[:, 1] - 1), r * wrong[:, 2]]
    return torch.stack(moved, dim=1).numpy()


def namer_batches(
    windows: Windows, concepts: Concepts, batch: int, steps: int, seed: int, jitter: Jitter
) -> Iterator[NamerBatch]:
    """`steps` batches of `batch` figures and their share of props; a figure's head and body are mirrored together."""
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    index = concepts.index
    things = np.array([index["prop"][name] for name in windows.things])
    kinds = ("character", "action", "emotion")
    figures = np.array(
        [[index[kind].get(name, -1) for kind, name in zip(kinds, row, strict=True)] for row in windows.figures]
    )
    props = _picks(len(things), max(1, round(jitter.things * batch)), steps, rng)
    for picked, other in zip(_picks(len(figures), batch, steps, rng), props, strict=True):
        flip = torch.sign(torch.rand(batch, generator=generator) - 0.5)
        heads, bodies = _changes(flip, jitter.heads, generator), _changes(flip, jitter.bodies, generator)
        colours = _colours(batch, jitter, generator)
        other_flip = torch.sign(torch.rand(len(other), generator=generator) - 0.5)
        moved, other_colours = _changes(other_flip, jitter.props, generator), _colours(len(other), jitter, generator)
        marks = _marks(windows.marks[picked], bodies, generator)
        body = _seen([windows.bodies[nth] for nth in picked], bodies, colours, BODY_SIDE)
        disc = torch.from_numpy(discs(marks, BODY_SIDE))[:, None]
        asked = torch.from_numpy(figures[picked])
        yield NamerBatch(
            _seen([windows.heads[nth] for nth in picked], heads, colours, CLOSE_SIDE).bfloat16(),
            torch.cat([body, disc], dim=1).bfloat16(),
            _seen([windows.props[nth] for nth in other], moved, other_colours, CLOSE_SIDE).bfloat16(),
            asked[:, 0],
            asked[:, 1],
            asked[:, 2],
            torch.from_numpy(things[other]),
        )
