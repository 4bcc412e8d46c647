"""The reader's network: a small residual pyramid with a stride-8 output.

Input (B, 3, H, W) in 0..1. Outputs: `maps` (B, characters + props, H/8, W/8) logits, `figure` (B, actions + emotions,
H/8, W/8) logits to be read at a character's peak, `scene` (B, settings + times + 1) logits, the last one is-sketch.
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
        deep = width * 5 // 3  # the widest that keeps the shipped file well under 6 MB
        self.stem = _conv(12, width // 2, stride=2)
        self.near = nn.Sequential(
            _Residual(width // 2), _conv(width // 2, width, stride=2), _Residual(width), _Residual(width)
        )
        self.far = nn.Sequential(_conv(width, deep, stride=2), _Residual(deep), _Residual(deep), _Residual(deep))
        self.side_near = nn.Conv2d(width, 128, 1)
        self.side_far = nn.Conv2d(deep, 128, 1)
        self.merge = _conv(128, 128)
        self.mix = _conv(128, 160)
        self.maps = nn.Conv2d(160, characters + props, 1)
        self.figure = nn.Conv2d(160, actions + emotions, 1)
        self.scene = nn.Sequential(nn.Linear(2 * deep, 160), nn.ReLU(), nn.Linear(160, settings + times + 1))
        nn.init.constant_(self.maps.bias, -4.6)  # type: ignore[arg-type]  # a peak is rare: start at p = 0.01

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = functional.pixel_unshuffle(x, 2).contiguous(memory_format=torch.channels_last)
        near = self.near(self.stem(x))
        far = self.far(near)
        joined = self.side_near(near) + functional.interpolate(self.side_far(far), scale_factor=2.0, mode="nearest")
        features = self.mix(self.merge(functional.relu(joined)))
        pooled = torch.cat([far.mean((2, 3)), far.amax((2, 3))], dim=1)
        return self.maps(features), self.figure(features), self.scene(pooled)
