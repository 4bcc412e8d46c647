"""Self-attention over a frame's own tokens and tokens gathered from other frames, and the bank that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

# ---
# Who reads what: a frame's tokens in groups that read the same tokens of the sources.


@dataclass(frozen=True)
class Offer:
    """What one source shows on one grid at one step.

    tokens: indices into the source's tokens, of shape (K,). subjects: which subjects each of them shows, bool of shape
    (K, S).
    """

    tokens: Tensor
    subjects: Tensor


@dataclass(frozen=True)
class Group:
    """Tokens of one frame with the same keys: all of the frame's own, and those read from the sources.

    queries: indices of shape (Q,), or None for every token. reads: by source, positions among what it offers.
    """

    queries: Tensor | None
    reads: Mapping[int, Tensor]


def group_tokens(present: Tensor, offers: Mapping[int, Offer], labels: Tensor | None = None) -> tuple[Group, ...]:
    """The groups of one frame; empty where it reads nothing.

    A token that shows some of the frame's subjects reads those subjects only, any other token reads all of them, so
    that two characters of one frame do not take each other's looks.

    Args:
        present: the subjects in the frame, bool of shape (S,).
        offers: what each source shows.
        labels: the subjects that each of the frame's tokens shows, bool of shape (n, S), or None: every token reads
        all.
    """
    import torch

    if labels is None or int(present.sum()) < 2:
        groups = [Group(None, _reads(present, offers))]
    else:
        wanted = labels & present
        wanted = torch.where(wanted.any(1, keepdim=True), wanted, present)
        kinds, kind_of = torch.unique(wanted, dim=0, return_inverse=True)
        if len(kinds) == 1:
            groups = [Group(None, _reads(kinds[0], offers))]
        else:
            groups = [
                Group((kind_of == number).nonzero()[:, 0], _reads(kind, offers)) for number, kind in enumerate(kinds)
            ]
    return tuple(groups) if any(group.reads for group in groups) else ()


def _reads(subjects: Tensor, offers: Mapping[int, Offer]) -> dict[int, Tensor]:
    """The positions that show any of `subjects`, by source; a source that shows none is left out."""
    found = {source: (offer.subjects & subjects).any(1).nonzero()[:, 0] for source, offer in offers.items()}
    return {source: places for source, places in found.items() if places.numel()}


# ---
# Self-attention over a frame's own tokens and tokens gathered from other frames, without a dense mask.


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


# ---
# Token grids: the UNet halves its latent, rounding up, so a layer's token count says which grid it works on.


Grid = tuple[int, int]


def grid_of(tokens: int, latent: Grid) -> Grid:
    """The (height, width) of the grid of `tokens` tokens inside a UNet whose latent is `latent` (height, width).

    Raises:
        ValueError: no halving of the latent has that many tokens.
    """
    height, width = latent
    while height * width > tokens:
        height, width = (height + 1) // 2, (width + 1) // 2
        if (height, width) == (1, 1):
            break
    if height * width != tokens:
        raise ValueError(f"{tokens} tokens are no halving of a latent of {latent[0]}x{latent[1]}")
    return height, width


def halvings(latent: Grid, count: int) -> list[Grid]:
    """The grids of `latent` halved 0 to `count` times."""
    grids = [latent]
    for _ in range(count):
        height, width = grids[-1]
        grids.append(((height + 1) // 2, (width + 1) // 2))
    return grids


# ---
# What the sources showed: one record a step, dropped when the step is over, or kept for frames that come later.


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """Bytes of `tensors`."""
    return sum(item.numel() * item.element_size() for item in tensors)


@dataclass(frozen=True)
class Anchor:
    """What a source shows for matching: tokens (K,) inside its masks, their subjects (K, S), unit features (K, C)."""

    tokens: Tensor
    subjects: Tensor
    features: Tensor


@dataclass
class StepRecord:
    """One step of the sources.

    offers: by grid and source, which tokens they show. hidden: by layer and source, those tokens' hidden states,
    (halves, K, C). outputs: by layer and source, attention outputs for feature injection, (K', C).
    """

    offers: dict[tuple[Grid, int], Offer] = field(default_factory=dict)
    hidden: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    outputs: dict[tuple[str, int], Tensor] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        offered = (part for offer in self.offers.values() for part in (offer.tokens, offer.subjects))
        return bytes_of((*offered, *self.hidden.values(), *self.outputs.values()))

    def moved(self, device: str) -> StepRecord:
        """The same record with its large tensors on `device`."""
        return replace(
            self,
            hidden={key: item.to(device) for key, item in self.hidden.items()},
            outputs={key: item.to(device) for key, item in self.outputs.items()},
        )


class Bank:
    """The records of the sources by pass and step.

    With `limit` 0 a record lives as long as its step: every reader is denoised in step with the sources. Otherwise
    records go to main memory, and as soon as they exceed `limit` bytes all are dropped: `complete` stays false, and a
    later frame is drawn by denoising the sources again, with the same result. `anchors` and `latents`, by source, are
    what the passes leave: features for correspondences, and the finished frames.
    """

    def __init__(self, limit: int = 0) -> None:
        self._limit = limit
        self._records: dict[tuple[str, int], StepRecord] = {}
        self._keeping = limit > 0
        self.anchors: dict[int, Anchor] = {}
        self.latents: dict[int, Tensor] = {}
        self.complete = False
        self.peak = 0

    def open(self, phase: str, step: int) -> StepRecord:
        """The record of a step: an empty one, or the one that was kept."""
        return self._records.get((phase, step)) or StepRecord()

    def close(self, phase: str, step: int, record: StepRecord) -> None:
        """End a step: keep its record, or let go of it."""
        self.peak = max(self.peak, self.nbytes + (0 if self.complete else record.nbytes))
        if self._keeping and not self.complete:
            self._records[phase, step] = record.moved("cpu")
            if self.nbytes > self._limit:
                self._keeping = False
                self._records.clear()

    def finish(self) -> None:
        """All steps have been recorded: later frames may read them if they were kept, else nothing stays."""
        self.complete = self._keeping
        if not self.complete:
            self._records.clear()
            self.anchors.clear()
            self.latents.clear()

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        anchors = (part for item in self.anchors.values() for part in (item.tokens, item.subjects, item.features))
        return sum(record.nbytes for record in self._records.values()) + bytes_of((*anchors, *self.latents.values()))
