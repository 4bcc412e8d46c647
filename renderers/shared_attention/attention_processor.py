"""The attention processors of a UNet whose frames read one another, and where its attention layers are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from katha.renderers.shared_attention.coupling import Coupling, Grid, Group, grid_of, halvings

if TYPE_CHECKING:
    from torch import Tensor

FREEU: Mapping[str, float] = {"s1": 0.6, "s2": 0.4, "b1": 1.1, "b2": 1.2}
"""FreeU's factors for SDXL, used by both methods."""
_SHARED = re.compile(r"up_blocks\.\d+\..*\.attn1\.processor")
_OWN = (Group(None, {}),)


def gathered_attention(
    attn: Any,
    hidden: Tensor,
    frames: Sequence[tuple[Group, ...]],
    shown: Mapping[int, Tensor],
    query: Tensor | None = None,
) -> Tensor:
    """Return the output of the self-attention layer `attn` over a frame's own tokens and those gathered from others.

    There is no dense mask: keys are put together for each group of tokens.

    Args:
        attn: diffusers' `Attention` of a transformer block.
        hidden: (halves * F, n, C), the rows [negative x F, positive x F] (or positive alone); frames of one half are
            coupled only among themselves.
        frames: the groups of each of the F frames; empty: the frame reads its own tokens.
        shown: by source, the hidden states it shows, (halves, K, C).
        query: the projected queries, (halves * F, n, D), where they are not those of `hidden`.
    """
    import torch

    rows, tokens, _ = hidden.shape
    halves = rows // len(frames)
    split = (halves, len(frames), tokens, -1)
    queries = (attn.to_q(hidden) if query is None else query).view(split)
    keys, values = attn.to_k(hidden).view(split), attn.to_v(hidden).view(split)
    projected = {source: (attn.to_k(states), attn.to_v(states)) for source, states in shown.items()}
    out = torch.empty_like(queries)
    for frame, groups in enumerate(frames):
        for group in groups or _OWN:
            read = [(projected[source], places) for source, places in group.reads.items()]
            key = torch.cat([keys[:, frame], *(pair[0][:, places] for pair, places in read)], dim=1)
            value = torch.cat([values[:, frame], *(pair[1][:, places] for pair, places in read)], dim=1)
            if group.queries is None:
                out[:, frame] = _attend(attn.heads, queries[:, frame], key, value)
            else:
                out[:, frame, group.queries] = _attend(attn.heads, queries[:, frame, group.queries], key, value)
    mixed: Tensor = attn.to_out[1](attn.to_out[0](out.view(rows, tokens, -1))) / attn.rescale_output_factor
    return mixed


def _attend(heads: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return the softmax attention of (halves, Q, D) over (halves, K, D), `heads` heads."""
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in (query, key, value))
    return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def concept_maps(attn: Any, hidden: Tensor, text: Tensor, columns: Sequence[Sequence[Sequence[int]]]) -> Tensor:
    """Return how much each token looks at the words of each subject: (F, S, n), float32, the mean over heads and words.

    Args:
        attn: a cross-attention layer.
        hidden: (F, n, C), the positive half.
        text: (F, L, D).
        columns: for each frame and subject the positions of its words in `text`; a subject without words has zeros.
    """
    import torch

    query = attn.to_q(hidden).unflatten(2, (attn.heads, -1)).transpose(1, 2)
    key = attn.to_k(text).unflatten(2, (attn.heads, -1)).transpose(1, 2)
    maps = torch.zeros(len(columns), len(columns[0]), hidden.shape[1], device=hidden.device)
    for frame, subjects in enumerate(columns):
        if not any(subjects):
            continue
        scores = (query[frame] @ key[frame].transpose(1, 2)).float() * attn.scale
        probabilities = scores.softmax(-1).mean(0)
        for subject, words in enumerate(subjects):
            if words:
                maps[frame, subject] = probabilities[:, list(words)].mean(1)
    return maps


class Hub:
    """Joins a UNet's attention layers with the coupling whose frames are in the call. Without one they are plain."""

    def __init__(self) -> None:
        self.coupling: Coupling | None = None
        self.features: Tensor | None = None
        self.wants_features = False

    def keep_features(self, module: Any, inputs: Any, output: Tensor) -> None:
        """Keep the block's output, (halves * F, C, h, w), when it is wanted (a forward hook)."""
        if self.wants_features:
            self.features = output


class SharedSelfAttnProcessor:
    """The processor of a self-attention layer. Where nothing is shared, the one it replaces computes the output."""

    def __init__(self, layer: str, hub: Hub, plain: Any) -> None:
        self._layer, self._hub, self._plain = layer, hub, plain
        self._shares = _SHARED.fullmatch(layer) is not None

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,
    ) -> Tensor:
        """Return the layer's output, of the shape of `hidden_states` (rows, n, C)."""
        coupling, layer = self._hub.coupling, self._layer
        query: Tensor | None = None
        shown: dict[int, Tensor] = {}
        groups: list[tuple[Group, ...]] | None = None
        if coupling is not None and self._shares:
            groups = coupling.groups(layer, hidden_states.shape[1])
            shown = coupling.shown(layer, hidden_states, groups) if groups is not None else {}
            query = coupling.query(layer, attn, hidden_states)
        if coupling is None or (query is None and not shown):
            output: Tensor = self._plain(attn, hidden_states)
        else:
            output = gathered_attention(attn, hidden_states, groups or [()] * len(coupling.members), shown, query)
        return output if coupling is None else coupling.changed(layer, output)


class MappedCrossAttnProcessor:
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
        """Return the layer's output, of the shape of `hidden_states` (rows, n, C)."""
        import torch

        coupling, text = self._hub.coupling, encoder_hidden_states
        if coupling is not None and text is not None and self._maps:
            self._look(coupling, attn, hidden_states, text)
        if coupling is None or text is None or len(set(coupling.lengths)) < 2:
            plain: Tensor = self._plain(attn, hidden_states, text, attention_mask)
            return plain
        rows = [
            self._plain(attn, hidden_states[row : row + 1], text[row : row + 1, :length])
            for row, length in enumerate(coupling.lengths * coupling.halves)
        ]
        return torch.cat(rows)

    def _look(self, coupling: Coupling, attn: Any, hidden: Tensor, text: Tensor) -> None:
        """Add the layer's maps of the positive half, which comes last."""
        if coupling.maps is None or coupling.watching:
            return
        frames = len(coupling.members)
        maps = concept_maps(attn, hidden[-frames:], text[-frames:], [member.words for member in coupling.members])
        coupling.maps.add(maps, grid_of(hidden.shape[1], coupling.latent))


@contextmanager
def wired(unet: Any, freeu: bool) -> Iterator[Hub]:
    """Context manager: a hub on `unet`, with FreeU or without. Processors, FreeU and hooks are then as they were."""
    before, hub = unet.attn_processors, Hub()
    factors = [{name: getattr(block, name, None) for name in FREEU} for block in unet.up_blocks]
    handle = unet.up_blocks[0].register_forward_hook(hub.keep_features)
    try:
        unet.set_attn_processor(_processors(unet, before, hub))
        unet.enable_freeu(**FREEU) if freeu else unet.disable_freeu()
        yield hub
    finally:
        handle.remove()
        unet.set_attn_processor(before)
        for block, values in zip(unet.up_blocks, factors, strict=True):
            for name, value in values.items():
                setattr(block, name, value)


def _processors(unet: Any, before: Mapping[str, Any], hub: Hub) -> dict[str, Any]:
    """Return a processor for each layer. Maps come from the deepest grid that has attention: up, down and middle."""
    deepest = next(number for number, block in enumerate(unet.up_blocks) if _attends(block))
    mapped = (f"up_blocks.{deepest}.", f"down_blocks.{len(unet.up_blocks) - 1 - deepest}.", "mid_block.")
    return {
        name: SharedSelfAttnProcessor(name, hub, old)
        if name.endswith("attn1.processor")
        else MappedCrossAttnProcessor(hub, name.startswith(mapped), old)
        for name, old in before.items()
    }


def shared_grids(unet: Any, latent: Grid) -> list[Grid]:
    """Return the grids of the layers that share, deepest first: up block i of n works on the latent halved n - 1 - i
    times."""
    deepest_first = halvings(latent, len(unet.up_blocks) - 1)[::-1]
    return [grid for grid, block in zip(deepest_first, unet.up_blocks, strict=True) if _attends(block)]


def attention_layers(unet: Any, latent: Grid) -> dict[str, tuple[Grid, int]]:
    """Return the self-attention layers: name to their grid and the width of their hidden states."""
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
    """Return those of the self-attention layers that share."""
    return {name: found for name, found in attention_layers(unet, latent).items() if _SHARED.fullmatch(name)}


def shown_bytes(unet: Any, latent: Grid, halves: int) -> int:
    """Return the bytes of the hidden states of all tokens of one frame in all sharing layers at one step."""
    tokens = sum(grid[0] * grid[1] * width for grid, width in shared_layers(unet, latent).values())
    return int(tokens * halves * unet.dtype.itemsize)


def _level(name: str, deepest: int) -> int:
    """Return how often the latent is halved where the layer `name` works."""
    part, number = name.split(".")[:2]
    if part == "mid_block":
        return deepest
    return int(number) if part == "down_blocks" else deepest - int(number)


def _attends(block: Any) -> bool:
    return len(getattr(block, "attentions", ())) > 0
