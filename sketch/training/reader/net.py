"""The reader's two networks: the finder looks over the whole picture, the namer looks closer at what is found.

Finder: input (B, 3, H, W) in 0..1. Outputs on the grid of H/8 x W/8 cells: `maps` (B, 2, ...) logits of "a head's
middle is here" and "a thing's middle is here", `shapes` (B, 9, ...) where exactly and how large (see
`katha_sketch.reader.network`); `scene` (B, settings + times + 1) logits of the whole picture, the last
one is-sketch.

Namer: windows of heads (n, 3, s, s), of figures (n, 3, t, t) with a fourth channel that marks the head, of props
(m, 3, s, s); logits of the names of characters, actions and emotions, a vector for each prop, and how the windows
should have been cut (see `katha_sketch.reader.network`).

A prop is named by whose drawing in the gallery its vector lies nearest to, not by a class of its own: then a pictogram
that did not exist when the network was trained needs no training. `looks` learns that against one vector a pictogram
(`proxies`, not exported), by the cosine.

Where something is and what it is are learnt apart. A figure fills a window whatever the camera's distance was, so the
namer needs no examples of every size, and a window costs a thirtieth of a picture.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from katha_sketch.reader.network import BODY_SIDE, CLOSE_SIDE, VECTOR

__all__ = ["FinderNet", "NamerNet"]

SHAPES = 9


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


class FinderNet(nn.Module):
    """`settings`, `times`: classes of the whole picture."""

    def __init__(self, settings: int, times: int, width: int = 56) -> None:
        super().__init__()
        deep, mixed = 2 * width, 80
        self.stem = _conv(12, width // 2, stride=2)
        self.near = nn.Sequential(_conv(width // 2, width, stride=2), _Residual(width))
        self.far = nn.Sequential(_conv(width, deep, stride=2), _Residual(deep), _Residual(deep))
        self.whole = nn.Sequential(_conv(deep, deep, stride=2), _Residual(deep))
        self.side_near = nn.Conv2d(width, mixed, 1)
        self.side_far = nn.Conv2d(deep, mixed, 1)
        self.side_whole = nn.Conv2d(deep, mixed, 1)
        self.mix = _conv(mixed, mixed)
        self.maps = nn.Conv2d(mixed, 2, 1)
        self.shapes = nn.Conv2d(mixed, SHAPES, 1)
        self.scene = nn.Sequential(nn.Linear(2 * deep, 160), nn.ReLU(), nn.Linear(160, settings + times + 1))
        nn.init.constant_(self.maps.bias, -4.6)  # type: ignore[arg-type]  # a peak is rare: start at p = 0.01

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The grid's features (B, mixed, H/8, W/8) and the `scene` logits."""
        x = functional.pixel_unshuffle(x, 2).contiguous(memory_format=torch.channels_last)
        near = self.near(self.stem(x))
        far = self.far(near)
        whole = self.whole(far)
        joined = self.side_near(near)
        for part in (self.side_far(far), self.side_whole(whole)):
            joined = joined + functional.interpolate(part, size=joined.shape[2:], mode="nearest")
        pooled = torch.cat([whole.mean((2, 3)), whole.amax((2, 3))], dim=1)
        return self.mix(functional.relu(joined)), self.scene(pooled)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features, scene = self.features(x)
        return self.maps(features), self.shapes(features), scene


class _Closer(nn.Module):
    """One window of `side` pixels to a vector of `out` numbers; the grid's cells keep their places until the end."""

    def __init__(self, inputs: int, side: int, out: int) -> None:
        super().__init__()
        self.grid = nn.Sequential(
            _conv(inputs, 32, stride=2),
            _conv(32, 56, stride=2),
            _Residual(56),
            _conv(56, 96, stride=2),
            _Residual(96),
            _conv(96, 128, stride=2),
        )
        self.narrow = nn.Conv2d(128, 32, 1)
        self.join = nn.Linear(32 * (side // 16) ** 2, out)  # the strides make 16

    def forward(self, x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        return functional.relu(self.join(self.narrow(self.grid(x)).flatten(1)))


class NamerNet(nn.Module):
    """`characters`, `actions`, `emotions`: how many classes each; `props`: how many are learnt from."""

    def __init__(self, characters: int, actions: int, emotions: int, props: int, width: int = 160) -> None:
        super().__init__()
        self.head = _Closer(3, CLOSE_SIDE, width)
        self.body = _Closer(4, BODY_SIDE, width)
        self.thing = _Closer(3, CLOSE_SIDE, width)
        self.characters = nn.Linear(2 * width, characters)
        self.actions = nn.Linear(2 * width, actions)
        self.emotions = nn.Linear(2 * width, emotions)
        self.looks = nn.Linear(width, VECTOR)
        self.proxies = nn.Parameter(torch.randn(props, VECTOR))
        self.figure_places = nn.Linear(2 * width, 6)
        self.prop_places = nn.Linear(width, 3)

    def figures(self, heads: Tensor, bodies: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Logits of characters, actions and emotions of n figures, and the true places of head and body (n, 6)."""
        seen = torch.cat([self.head(heads), self.body(bodies)], dim=1)
        return self.characters(seen), self.actions(seen), self.emotions(seen), self.figure_places(seen)

    def things(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of the props in m windows, and their true places (m, 3)."""
        seen = self.thing(windows)
        return self.looks(seen), self.prop_places(seen)

    def forward(self, heads: Tensor, bodies: Tensor, things: Tensor) -> tuple[Tensor, ...]:
        return (*self.figures(heads, bodies), *self.things(things))
