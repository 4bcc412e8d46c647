"""Diffusers' hooks: the attention processors of a UNet, set for as long as frames are drawn and put back afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from katha.renderers.sharing.attention import gathered_attention
from katha.renderers.sharing.coupling import Coupling
from katha.renderers.sharing.grids import Grid, halvings

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FREEU", "Hub", "attention_layers", "shared_grids", "shared_layers", "shown_bytes", "wired"]

FREEU: Mapping[str, float] = {"s1": 0.6, "s2": 0.4, "b1": 1.1, "b2": 1.2}
"""FreeU's factors for SDXL, used by both methods."""

_SHARED = re.compile(r"up_blocks\.\d+\..*\.attn1\.processor")


class Hub:
    """Joins a UNet's attention layers with the coupling whose frames are in the call. Without one they are plain."""

    def __init__(self) -> None:
        self.coupling: Coupling | None = None
        self.features: Tensor | None = None
        self.wants_features = False

    def keep_features(self, module: Any, inputs: Any, output: Tensor) -> None:
        """Forward hook: keep the block's output, (halves * F, C, h, w), when it is wanted."""
        if self.wants_features:
            self.features = output


class SelfAttention:
    """The processor of a self-attention layer. Where nothing is shared, the one it replaces computes the output."""

    def __init__(self, layer: str, hub: Hub, shares: bool, plain: Any) -> None:
        self._layer, self._hub, self._shares, self._plain = layer, hub, shares, plain

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,
    ) -> Tensor:
        """The layer's output, of the shape of `hidden_states` (rows, n, C)."""
        coupling = self._hub.coupling
        if coupling is None:
            plain: Tensor = self._plain(attn, hidden_states)
            return plain
        return coupling.changed(self._layer, self._attend(coupling, attn, hidden_states))

    def _attend(self, coupling: Coupling, attn: Any, hidden: Tensor) -> Tensor:
        groups = coupling.groups(self._layer, hidden.shape[1]) if self._shares else None
        shown = coupling.shown(self._layer, hidden, groups) if groups is not None else {}
        if self._shares and coupling.watching:
            coupling.keep_query(self._layer, attn.to_q(hidden))
        query = coupling.query(self._layer, attn, hidden) if self._shares else None
        if query is None and not shown:
            plain: Tensor = self._plain(attn, hidden)
            return plain
        return gathered_attention(attn, hidden, groups or [()] * len(coupling.members), shown, query)


class CrossAttention:
    """The processor of a cross-attention layer: its output is that of the processor it stands in for, its maps go to
    the coupling.

    Prompts of one call may differ in length: each frame attends to its own words only, as it does alone.
    """

    def __init__(self, hub: Hub, maps: bool, plain: Any) -> None:
        self._hub, self._maps, self._plain = hub, maps, plain

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,
    ) -> Tensor:
        """The layer's output, of the shape of `hidden_states` (rows, n, C)."""
        import torch

        coupling, text = self._hub.coupling, encoder_hidden_states
        if coupling is not None and self._maps and text is not None:
            coupling.look(attn, hidden_states, text)
        if coupling is None or text is None or len(set(coupling.lengths)) < 2:
            plain: Tensor = self._plain(attn, hidden_states, text, attention_mask)
            return plain
        rows = [
            self._plain(attn, hidden_states[row : row + 1], text[row : row + 1, :length])
            for row, length in enumerate(coupling.lengths * coupling.halves)
        ]
        return torch.cat(rows)


@contextmanager
def wired(unet: Any, freeu: bool) -> Iterator[Hub]:
    """A hub on `unet`, with FreeU or without. Processors, FreeU and hooks are as before when it ends."""
    before, factors = unet.attn_processors, _freeu_factors(unet)
    hub = Hub()
    deepest = f"up_blocks.{next(number for number, block in enumerate(unet.up_blocks) if _attends(block))}."
    handle = unet.up_blocks[0].register_forward_hook(hub.keep_features)
    try:
        unet.set_attn_processor({name: _processor(name, old, hub, deepest, unet) for name, old in before.items()})
        unet.enable_freeu(**FREEU) if freeu else unet.disable_freeu()
        yield hub
    finally:
        handle.remove()
        unet.set_attn_processor(before)
        for block, values in zip(unet.up_blocks, factors, strict=True):
            for name, value in values.items():
                setattr(block, name, value)


def shared_grids(unet: Any, latent: Grid) -> list[Grid]:
    """The grids of the layers that share, deepest first: up block i of n works on the latent halved n - 1 - i times."""
    deepest_first = halvings(latent, len(unet.up_blocks) - 1)[::-1]
    return [grid for grid, block in zip(deepest_first, unet.up_blocks, strict=True) if _attends(block)]


def attention_layers(unet: Any, latent: Grid) -> dict[str, tuple[Grid, int]]:
    """The self-attention layers: name to their grid and the width of their hidden states."""
    grids = halvings(latent, len(unet.up_blocks) - 1)
    return {
        name: (
            grids[_level(name, len(grids) - 1)],
            unet.get_submodule(name.removesuffix(".processor")).to_q.in_features,
        )
        for name in unet.attn_processors
        if name.endswith("attn1.processor")
    }


def shared_layers(unet: Any, latent: Grid) -> dict[str, tuple[Grid, int]]:
    """Those of the self-attention layers that share."""
    return {name: found for name, found in attention_layers(unet, latent).items() if _SHARED.fullmatch(name)}


def _level(name: str, deepest: int) -> int:
    """How often the latent is halved where the layer `name` works."""
    part, number = name.split(".")[:2]
    if part == "mid_block":
        return deepest
    return int(number) if part == "down_blocks" else deepest - int(number)


def shown_bytes(unet: Any, latent: Grid, halves: int) -> int:
    """Bytes of the hidden states of all tokens of one frame in all sharing layers at one step."""
    tokens = sum(grid[0] * grid[1] * width for grid, width in shared_layers(unet, latent).values())
    return int(tokens * halves * unet.dtype.itemsize)


def _attends(block: Any) -> bool:
    return len(getattr(block, "attentions", ())) > 0


def _freeu_factors(unet: Any) -> list[dict[str, Any]]:
    return [{name: getattr(block, name, None) for name in FREEU} for block in unet.up_blocks]


def _processor(name: str, old: Any, hub: Hub, deepest: str, unet: Any) -> Any:
    """The processor of one layer. Maps come from the deepest grid: its up block, the down block across, the middle."""
    if name.endswith("attn1.processor"):
        return SelfAttention(name, hub, _SHARED.fullmatch(name) is not None, old)
    level = len(unet.up_blocks) - 1 - int(deepest.split(".")[1])
    maps = name.startswith((deepest, f"down_blocks.{level}.", "mid_block."))
    return CrossAttention(hub, maps, old)
