"""Labels to training targets on the stride-8 grid, and the loss against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from katha.eval_bridge.reader.concepts import Concepts
from katha.eval_bridge.reader.pixels import HEIGHT, WIDTH
from training.reader.labels import FrameLabels, Item

__all__ = ["STRIDE", "Targets", "batch_targets", "loss_of"]

STRIDE = 8
_ROWS, _COLUMNS = HEIGHT // STRIDE, WIDTH // STRIDE
_IGNORED = 2.0


@dataclass(frozen=True)
class Targets:
    """cells: indices (picture, channel, row, column) of the map cells that are not plain background, (n,) each.
    wanted: their targets of shape (n,), 0..1, or 2 where nothing is asked. figures: (n, 5) of batch index,
    row, column, action and emotion (-1 where not asked). setting, time: (B,), -1 for no sketch. sketch: (B,)."""

    cells: tuple[Tensor, ...]
    wanted: Tensor
    figures: Tensor
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
    for r in range(max(0, row - radius), min(_ROWS, row + radius + 1)):
        for c in range(max(0, column - radius), min(_COLUMNS, column + radius + 1)):
            if not item.counts:
                target[r, c] = _IGNORED if target[r, c] < 1 else target[r, c]
                continue
            value = float(np.exp(-((r - row) ** 2 + (c - column) ** 2) / (2 * spread**2)))
            target[r, c] = max(value, target[r, c]) if target[r, c] != _IGNORED else value
    if item.counts:
        target[row, column] = 1.0


def batch_targets(labels: Sequence[FrameLabels | None], mirrored: Sequence[bool], concepts: Concepts) -> Targets:
    """The targets of a batch; a mirrored picture has its items mirrored."""
    index: Mapping[str, Mapping[str, int]] = concepts.index
    channels = len(concepts.characters) + len(concepts.props)
    maps = np.zeros((len(labels), channels, _ROWS, _COLUMNS), dtype=np.float32)
    figures: list[tuple[int, int, int, int, int]] = []
    for b, (label, mirror) in enumerate(zip(labels, mirrored, strict=True)):
        for item in label.items if label is not None else ():
            placed = Item(**{**vars(item), "x": WIDTH - 1 - item.x}) if mirror else item
            offset = 0 if item.kind == "character" else len(concepts.characters)
            _blob(maps[b, offset + index[item.kind][item.concept]], placed)
            if item.kind == "character" and item.counts:
                action = -1 if item.action is None else index["action"][item.action]
                emotion = -1 if item.emotion is None else index["emotion"][item.emotion]
                figures.append((b, *_cell(placed), action, emotion))
    cells = np.nonzero(maps)
    return Targets(
        tuple(torch.from_numpy(part) for part in cells),
        torch.from_numpy(maps[cells]),
        torch.tensor(figures, dtype=torch.long).reshape(-1, 5),
        torch.tensor([-1 if label is None else index["setting"][label.setting] for label in labels]),
        torch.tensor([-1 if label is None else index["time"][label.time] for label in labels]),
        torch.tensor([float(label is not None) for label in labels]),
    )


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


def _named(maps: Tensor, targets: Targets, characters: int) -> Tensor:
    """Cross-entropy among the characters (or props) at every peak: told what is where, say which."""
    b, channel, r, c = (part[targets.wanted == 1] for part in targets.cells)
    at = maps[b, :, r, c].float()
    person = channel < characters
    total = maps.new_zeros((), dtype=torch.float32)
    for logits, names in (
        (at[person, :characters], channel[person]),
        (at[~person, characters:], channel[~person] - characters),
    ):
        if len(names):
            total = total + 0.5 * functional.cross_entropy(logits, names)
    return total


def loss_of(outputs: tuple[Tensor, Tensor, Tensor], targets: Targets, concepts: Concepts) -> Tensor:
    """The sum of map, action, emotion, setting, time and is-sketch losses."""
    maps, figure, scene = outputs
    peaks = (targets.wanted == 1).sum().clamp(min=1)
    total = _Focal.apply(maps, targets.cells, targets.wanted) / peaks + _named(maps, targets, len(concepts.characters))
    figure, scene = figure.float(), scene.float()
    actions, settings = len(concepts.actions), len(concepts.settings)
    if len(targets.figures):
        b, r, c, action, emotion = targets.figures.T
        cells = figure[b, :, r, c]
        for logits, wanted in ((cells[:, :actions], action), (cells[:, actions:], emotion)):
            if (wanted >= 0).any():
                total = total + functional.cross_entropy(logits, wanted, ignore_index=-1)
    times = len(concepts.times)
    for logits, wanted in (
        (scene[:, :settings], targets.setting),
        (scene[:, settings : settings + times], targets.time),
    ):
        if (wanted >= 0).any():
            total = total + 0.5 * functional.cross_entropy(logits, wanted, ignore_index=-1)
    return total + functional.binary_cross_entropy_with_logits(scene[:, -1], targets.sketch)
