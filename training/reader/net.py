"""The reader's network: a small residual pyramid with a stride-8 output.

Input (B, 3, H, W) in 0..1. Outputs on the grid of H/8 x W/8 cells: `maps` (B, 2, ...) logits of "a head's middle is
here" and "a thing's middle is here"; `names` (B, characters + props, ...) and `figure` (B, actions + emotions, ...)
logits to be read at such a peak. `scene` (B, settings + times + 1) logits of the whole picture, the last one is-sketch.

Where something is and what it is are learnt apart: every head teaches the one head map, and names are told from each
other only where there is something to name. One map per name would see each name a thousandth of the time.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["ReaderNet"]


def _conv(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = _conv(width, width)
        self.second = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x + self.second(self.first(x)))


class ReaderNet(nn.Module):
    """See the module's docstring for shapes. `sizes` = (characters, props, actions, emotions, settings, times)."""

    def __init__(self, sizes: tuple[int, int, int, int, int, int], width: int = 96) -> None:
        super().__init__()
        characters, props, actions, emotions, settings, times = sizes
        deep, mixed = width * 5 // 3, 2 * width
        self.stem = _conv(12, width // 2, stride=2)
        self.near = nn.Sequential(_conv(width // 2, width, stride=2), _Residual(width))
        self.far = nn.Sequential(_conv(width, deep, stride=2), _Residual(deep), _Residual(deep), _Residual(deep))
        self.side_near = nn.Conv2d(width, 128, 1)
        self.side_far = nn.Conv2d(deep, 128, 1)
        self.mix = _conv(128, mixed)
        self.maps = nn.Conv2d(mixed, 2, 1)
        self.names = nn.Conv2d(mixed, characters + props, 1)
        self.figure = nn.Conv2d(mixed, actions + emotions, 1)
        self.scene = nn.Sequential(nn.Linear(2 * deep, 160), nn.ReLU(), nn.Linear(160, settings + times + 1))
        nn.init.constant_(self.maps.bias, -4.6)  # type: ignore[arg-type]  # a peak is rare: start at p = 0.01

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The grid's features (B, mixed, H/8, W/8) and the `scene` logits."""
        x = functional.pixel_unshuffle(x, 2).contiguous(memory_format=torch.channels_last)
        near = self.near(self.stem(x))
        far = self.far(near)
        joined = self.side_near(near) + functional.interpolate(self.side_far(far), scale_factor=2.0, mode="nearest")
        pooled = torch.cat([far.mean((2, 3)), far.amax((2, 3))], dim=1)
        return self.mix(functional.relu(joined)), self.scene(pooled)

    def read_cells(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """`names` and `figure` logits of some cells' features, of shape (n, mixed)."""
        named = functional.linear(cells, self.names.weight.flatten(1), self.names.bias)
        return named, functional.linear(cells, self.figure.weight.flatten(1), self.figure.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        features, scene = self.features(x)
        return self.maps(features), self.names(features), self.figure(features), scene
