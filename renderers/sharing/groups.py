"""Who reads what: a frame's tokens in groups that read the same tokens of the sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Group", "Offer", "group_tokens"]


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
