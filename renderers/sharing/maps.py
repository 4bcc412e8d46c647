"""Where each subject is: cross-attention maps averaged over layers and the last steps, cut by Otsu's threshold."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from katha.renderers.sharing.bank import bytes_of
from katha.renderers.sharing.grids import Grid
from katha.renderers.sharing.otsu import otsu

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["WINDOW", "SubjectMaps"]

WINDOW = 20
"""Steps whose maps are averaged."""


class SubjectMaps:
    """The maps of F frames and S subjects on one grid.

    Only one map a step is kept, the mean over its layers, and `WINDOW` steps: every layer has one map a step, so the
    mean is the same as over every layer's last `WINDOW` maps.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._steps: deque[Tensor] = deque(maxlen=window)
        self._sum: Tensor | None = None
        self._layers = 0
        self._grid: Grid = (0, 0)
        self._labels: dict[Grid, Tensor] = {}

    def add(self, maps: Tensor, grid: Grid) -> None:
        """One layer's maps, (F, S, n) on `grid`."""
        self._sum = maps if self._sum is None else self._sum + maps
        self._layers += 1
        self._grid = grid

    def close_step(self) -> None:
        """End a step: from now on its maps count."""
        if self._sum is not None:
            self._steps.append(self._sum / self._layers)
            self._labels.clear()
        self._sum, self._layers = None, 0

    def labels(self, grid: Grid) -> Tensor | None:
        """The subjects that each token shows, bool (F, n, S) on `grid`; None before the first step has ended."""
        if not self._steps:
            return None
        if grid not in self._labels:
            self._labels[grid] = _labels(self._mean(), self._grid, grid)
        return self._labels[grid]

    def _mean(self) -> Tensor:
        import torch

        return torch.stack(list(self._steps)).mean(0)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return bytes_of((*self._steps, *self._labels.values(), *([] if self._sum is None else [self._sum])))


def _labels(mean: Tensor, grid: Grid, wanted: Grid) -> Tensor:
    """The maps (F, S, n) of `grid`, resized to `wanted` and cut: bool of shape (F, n', S)."""
    import torch
    from torch.nn.functional import interpolate

    frames, subjects, _ = mean.shape
    maps = mean.view(frames, subjects, *grid)
    if grid != wanted:
        maps = interpolate(maps, size=wanted, mode="bilinear", align_corners=False)
    flat = maps.flatten(2).cpu()
    cuts = torch.tensor([[otsu(item.numpy()) for item in frame] for frame in flat], dtype=flat.dtype)
    return (flat > cuts[..., None]).transpose(1, 2).contiguous().to(mean.device)
