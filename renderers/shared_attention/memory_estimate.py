"""What a drawing that shares needs in memory beyond weights: worked out from shapes, before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from katha.renderers.diffusion.memory import Work
from katha.renderers.shared_attention.attention_processor import attention_layers, shared_layers
from katha.renderers.shared_attention.coupling import Grid, halvings
from katha.renderers.shared_attention.masks import WINDOW

_FLOAT = 4
_ATTENTION, _RESNET, _FREEU = 20, 3, 28
"""Numbers per token and channel that a transformer block and a residual block hold at once; bytes that FreeU does."""
_WORDS = 77


@dataclass(frozen=True)
class Load:
    """How much one drawing shares.

    sources: how many frames that others read are denoised together, group by group. readers: how many frames only read,
    `batch` of them in one call. keep: the probability that a token of a source is shown. halves: 2 with guidance.
    blend: queries without sharing are kept. injection: a second pass, along correspondences. keep_bytes: main memory in
    which the sources are kept.
    """

    sources: tuple[int, ...]
    readers: int
    batch: int
    subjects: int
    keep: float
    halves: int
    steps: int
    blend: bool = False
    injection: bool = False
    keep_bytes: int = 0

    @property
    def shown(self) -> int:
        """Frames that others read."""
        return sum(self.sources)

    @property
    def together(self) -> int:
        """The most frames in one call of the UNet."""
        return max(*self.sources, min(self.batch, self.readers), 1) if self.sources else max(1, self.batch)


def shown_share(tokens: int, keep: float) -> float:
    """Return the share of `tokens` tokens that is shown at most: `keep`, and four deviations of that."""
    return float(min(1.0, keep + 2 / tokens**0.5)) if keep < 1 else 1.0


def sharing_work(unet: Any, latent: Grid, load: Load) -> Work:
    """Return the bytes of `load` on frames of the grid `latent`; of `unet` only shapes and dtype count."""
    layers, width = shared_layers(unet, latent).values(), unet.dtype.itemsize
    whole = load.halves * width * sum(tokens(grid) * channels for grid, channels in layers)
    record = load.shown * load.halves * width * sum(
        round(shown_share(tokens(grid), load.keep) * tokens(grid)) * channels for grid, channels in layers
    )  # fmt: skip
    outputs, held, matching = _injection(unet, latent, load, width) if load.injection else (0, 0, 0)
    queries = load.together * whole if load.blend and load.shown else 0
    read = max((4 * (load.shown + 1) * tokens(grid) * channels for grid, channels in layers), default=0)
    call = load.together * load.halves * _row_bytes(unet, latent, width) + load.halves * width * read
    frames = load.shown + load.readers
    held += frames * (_map_bytes(unet, latent, load.subjects) + _text_bytes(unet, load.halves, width))
    device = held + max(call + record + queries + outputs, matching)
    kept = (1 + load.injection) * load.steps * (record + outputs)
    return Work(device, min(load.keep_bytes + record + outputs, kept) if load.keep_bytes else 0)


def tokens(grid: Grid) -> int:
    """Return how many tokens a grid has."""
    return grid[0] * grid[1]


def _injection(unet: Any, latent: Grid, load: Load, width: int) -> tuple[int, int, int]:
    """Return the bytes of outputs that anchors show at one step, of features held between passes, and of matching."""
    levels = halvings(latent, len(unet.up_blocks) - 1)
    count = tokens(levels[max(0, len(levels) - 2)])
    channels = unet.config.block_out_channels[-1]
    feature = count * channels
    outputs = sum(size for grid, size in attention_layers(unet, latent).values() if tokens(grid) == count)
    held = (load.shown + load.readers) * feature * width + 2 * load.shown * feature * _FLOAT
    smoothing = 3 * load.together * feature * _FLOAT
    return load.shown * count * outputs * width, held, smoothing + 9 * count * load.shown * count


def _row_bytes(unet: Any, latent: Grid, width: int) -> int:
    """Return the bytes of one row of the UNet's batch: the skip connections, and the block that holds most."""
    channels, layers = unet.config.block_out_channels, unet.config.layers_per_block
    depth = layers if isinstance(layers, int) else max(layers)
    sizes = [tokens(grid) for grid in halvings(latent, len(channels) - 1)]
    skips, block = channels[0] * sizes[0], 0
    for level, (own, count) in enumerate(zip(channels, sizes, strict=True)):
        below = min(level + 1, len(channels) - 1)
        skips += depth * own * count + (own * sizes[below] if below > level else 0)
        residual = (_RESNET * (own + channels[below]) + 2 * own) * count * width
        block = max(block, residual, _ATTENTION * own * count * width, _FREEU * own * count)
    return int(skips * width + block)


def _map_bytes(unet: Any, latent: Grid, subjects: int) -> int:
    """Return the bytes of one frame's maps: a window of means on the deepest grid, labels on every grid that shares."""
    grids = {grid for grid, _ in shared_layers(unet, latent).values()}
    deepest = min(map(tokens, grids), default=0)
    return subjects * (_FLOAT * (WINDOW + 4) * deepest + sum(map(tokens, grids)))


def _text_bytes(unet: Any, halves: int, width: int) -> int:
    """Return the bytes of one frame's embeddings, as they came and side by side with the others'."""
    return int(2 * halves * _WORDS * unet.config.cross_attention_dim * width)
