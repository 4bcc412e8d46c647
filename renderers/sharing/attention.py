"""Self-attention over a frame's own tokens and tokens gathered from other frames, without a dense mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from katha.renderers.sharing.groups import Group

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["concept_maps", "gathered_attention"]

_OWN = (Group(None, {}),)


def gathered_attention(
    attn: Any,
    hidden: Tensor,
    frames: Sequence[tuple[Group, ...]],
    shown: Mapping[int, Tensor],
    query: Tensor | None = None,
) -> Tensor:
    """The output of the self-attention layer `attn`, of the shape of `hidden`.

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
    """Softmax attention of (halves, Q, D) over (halves, K, D), `heads` heads."""
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in (query, key, value))
    return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def concept_maps(attn: Any, hidden: Tensor, text: Tensor, columns: Sequence[Sequence[Sequence[int]]]) -> Tensor:
    """How much each token looks at the words of each subject: (F, S, n), float32, the mean over heads and words.

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
