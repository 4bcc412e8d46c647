"""Labels to the finder's training targets on the stride-8 grid, and the loss against them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from katha_sketch.reader.network import HEIGHT, STRIDE, WIDTH, Concepts
from training.reader.labels import FrameLabels, Item
from training.reader.net import FinderNet

__all__ = ["Targets", "batch_targets", "loss_of", "shape_of"]

_ROWS, _COLUMNS = HEIGHT // STRIDE, WIDTH // STRIDE
_IGNORED = 2.0
_KINDS = ("character", "prop")


@dataclass(frozen=True)
class Targets:
    """What is asked of a batch of B pictures.

    cells: indices (picture, map, row, column) of the map cells that are not plain background, (n,) each; map 0 is for
    heads, 1 for things. wanted: their targets, 0..1, or 2 where nothing is asked. at: (m, 3) picture, row and column of
    the cells where something is described. shapes: (m, 9) where it is and how large, NaN for what the other kind of
    thing has. share: (m,) the cell's part of its item. setting, time: (B,), -1 for no sketch. sketch: (B,).
    """

    cells: tuple[Tensor, ...]
    wanted: Tensor
    at: Tensor
    shapes: Tensor
    share: Tensor
    setting: Tensor
    time: Tensor
    sketch: Tensor


def _cell(item: Item) -> tuple[int, int]:
    return int(np.clip(item.y // STRIDE, 0, _ROWS - 1)), int(np.clip(item.x // STRIDE, 0, _COLUMNS - 1))


def _blob(target: NDArray[np.float32], item: Item) -> None:
    """A Gaussian around the item's cell; an item that does not count silences its surroundings instead."""
    row, column = _cell(item)
    radius = max(1, min(4, round(item.radius / STRIDE)))
    spread = max(0.55, radius / 2.2)
    for r, c in _around(row, column, radius):
        if item.counts:
            value = float(np.exp(-((r - row) ** 2 + (c - column) ** 2) / (2 * spread**2)))
            target[r, c] = max(value, target[r, c]) if target[r, c] != _IGNORED else value
        elif target[r, c] < 1:
            target[r, c] = _IGNORED
    if item.counts:
        target[row, column] = 1.0


def _around(row: int, column: int, radius: int) -> Iterator[tuple[int, int]]:
    for r in range(max(0, row - radius), min(_ROWS, row + radius + 1)):
        for c in range(max(0, column - radius), min(_COLUMNS, column + radius + 1)):
            yield r, c


def _named_cells(items: Sequence[Item], kind: str) -> dict[tuple[int, int], tuple[Item, float]]:
    """The cells in which items of `kind` are described, each given to the nearest: a cross, or more for a large one."""
    found: dict[tuple[int, int], tuple[Item, float]] = {}
    for item in items:
        if item.kind != kind or not item.counts:
            continue
        row, column = _cell(item)
        reach = 1.0 if item.radius < 2 * STRIDE else 1.5 if item.radius < 4 * STRIDE else 2.3
        for r, c in _around(row, column, 2):
            distance = float(np.hypot(r - row, c - column))
            if distance <= reach and distance <= found.get((r, c), (item, 9.0))[1]:
                found[r, c] = (item, distance)
    return found


def shape_of(item: Item, row: int, column: int) -> list[float]:
    """The nine numbers that say in the cell (row, column) where `item` is and how large (see `finding`)."""
    x, y = item.x / STRIDE - column - 0.5, item.y / STRIDE - row - 0.5
    u, v, half = item.window
    if item.kind == "prop":
        return [float("nan")] * 6 + [x, y, math.log(max(half, 1.0) / STRIDE)]
    r = item.radius
    body = [(u - item.x) / r, (v - item.y) / r, math.log(half / r)]
    return [x, y, math.log(r / STRIDE), *body, *[float("nan")] * 3]


def batch_targets(labels: Sequence[FrameLabels | None], mirrored: Sequence[bool], concepts: Concepts) -> Targets:
    """The targets of a batch; a mirrored picture has its items mirrored."""
    index: Mapping[str, Mapping[str, int]] = concepts.index
    maps = np.zeros((len(labels), len(_KINDS), _ROWS, _COLUMNS), dtype=np.float32)
    at: list[tuple[int, int, int]] = []
    shapes: list[list[float]] = []
    share: list[float] = []
    for b, (label, mirror) in enumerate(zip(labels, mirrored, strict=True)):
        items = [_mirrored(item) if mirror else item for item in (label.items if label is not None else ())]
        for item in items:
            _blob(maps[b, _KINDS.index(item.kind)], item)
        for kind in _KINDS:
            found = _named_cells(items, kind)
            for (r, c), (item, _) in found.items():
                at.append((b, r, c))
                shapes.append(shape_of(item, r, c))
                share.append(1 / sum(other is item for other, _ in found.values()))
    cells = np.nonzero(maps)
    return Targets(
        tuple(torch.from_numpy(part) for part in cells),
        torch.from_numpy(maps[cells]),
        torch.tensor(at, dtype=torch.long).reshape(-1, 3),
        torch.tensor(shapes, dtype=torch.float32).reshape(-1, 9),
        torch.tensor(share),
        torch.tensor([-1 if label is None else index["setting"][label.setting] for label in labels]),
        torch.tensor([-1 if label is None else index["time"][label.time] for label in labels]),
        torch.tensor([float(label is not None) for label in labels]),
    )


def _mirrored(item: Item) -> Item:
    u, v, half = item.window
    return replace(item, x=WIDTH - item.x, window=(WIDTH - u, v, half))


class _Focal(torch.autograd.Function):
    """Penalty-reduced focal loss of CenterNet (arXiv 1904.07850, Eq. 1), summed; 2 marks cells that are not asked.

    The focusing weights are constants for the gradient. Nearly every cell is plain background, where the gradient is
    then p cubed: it is computed for all cells at once, and the few others (`cells`, targets `wanted`) are put right.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, cells: tuple[Tensor, ...], wanted: Tensor) -> Tensor:
        p = torch.sigmoid(logits)
        x = logits[cells].float()
        q = torch.sigmoid(x)
        peak = wanted == 1
        asked = (wanted <= 1).float()
        weight = torch.where(peak, (1 - q).square(), asked * (1 - wanted.clamp(max=1.0)).pow(4) * q.square())
        gradient = p * p * p
        gradient[cells] = (weight * torch.where(peak, q - 1, q)).to(gradient.dtype)
        ctx.save_for_backward(gradient)
        special = weight * torch.where(peak, functional.softplus(-x), functional.softplus(x))
        return special.sum() + gradient.sum(dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (gradient,) = ctx.saved_tensors
        return gradient * outer[0].to(gradient.dtype), None, None


def _entropy(logits: Tensor, wanted: Tensor, share: Tensor) -> Tensor:
    """Cross-entropy where something is asked (`wanted` >= 0), each item weighing the same."""
    asked = wanted >= 0
    if not asked.any():
        return logits.new_zeros(())
    losses = functional.cross_entropy(logits[asked], wanted[asked], reduction="none")
    return (losses * share[asked]).sum() / share[asked].sum()


def _distance(found: Tensor, wanted: Tensor, share: Tensor) -> Tensor:
    """Huber loss where something is asked (`wanted` is a number), each item weighing the same."""
    asked = ~wanted.isnan()
    losses = functional.huber_loss(found[asked], wanted[asked], reduction="none", delta=0.3)
    weights = share[:, None].expand_as(wanted)[asked]
    return (losses * weights).sum() / weights.sum().clamp(min=1e-6)


def loss_of(model: FinderNet, pixels: Tensor, targets: Targets, concepts: Concepts, shape_weight: float) -> Tensor:
    """The weighted sum of map, shape, setting, time and is-sketch losses of a batch (B, 3, H, W)."""
    features, scene = model.features(pixels)
    maps = model.maps(features)
    total = _Focal.apply(maps, targets.cells, targets.wanted) / (targets.wanted == 1).sum().clamp(min=1)
    b, r, c = targets.at.T
    cells = features[b, :, r, c]
    shapes = functional.linear(cells, model.shapes.weight.flatten(1), model.shapes.bias).float()
    total = total + shape_weight * _distance(shapes, targets.shapes, targets.share)
    settings, times, whole = len(concepts.settings), len(concepts.times), scene.float()
    for logits, wanted in (
        (whole[:, :settings], targets.setting),
        (whole[:, settings : settings + times], targets.time),
    ):
        total = total + 0.5 * _entropy(logits, wanted, torch.ones(len(wanted)))
    return total + functional.binary_cross_entropy_with_logits(whole[:, -1], targets.sketch)
