"""What is shown and read at one step: plain data, made before the UNet is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from katha.renderers.sharing.draws import kept_tokens
from katha.renderers.sharing.grids import Grid
from katha.renderers.sharing.groups import Group, Offer, group_tokens
from katha.renderers.sharing.rules import SharingRules

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["Member", "make_groups", "make_offer"]


@dataclass(frozen=True)
class Member:
    """One frame's part in the sharing.

    reads: the subjects that it reads. shows: the subjects that it shows as a source. words: for each subject the
    positions of its words in the prompt. source: its number among the sources, or None. key: what its
    draws are keyed by.
    """

    reads: tuple[bool, ...]
    shows: tuple[bool, ...]
    words: tuple[tuple[int, ...], ...]
    source: int | None = None
    key: str = ""


def make_offer(
    member: Member, rules: SharingRules, step: int, grid: Grid, labels: Tensor | None, device: torch.device
) -> Offer | None:
    """What the source `member` shows on `grid` at `step`, or None where that is nothing.

    The draw is keyed by seed, step, grid and the source's key, so every reader finds the same tokens whenever it is
    drawn, whatever else the board holds.

    Args:
        labels: the subjects that its tokens show, bool of shape (n, S), or None before there are masks.
    """
    import torch

    if member.source is None or (rules.masked and labels is None):
        return None
    tokens = grid[0] * grid[1]
    kept = torch.from_numpy(kept_tokens(tokens, rules.keep, rules.seed, "keep", step, *grid, member.key)).to(device)
    shows = torch.tensor(member.shows, device=device)
    subjects = labels & shows if rules.masked and labels is not None else shows.expand(tokens, -1)
    places = (kept & subjects.any(1)).nonzero()[:, 0]
    return Offer(places, subjects[places]) if places.numel() else None


def make_groups(
    members: Sequence[Member],
    offers: Mapping[tuple[Grid, int], Offer],
    grid: Grid,
    labels: Tensor | None,
    device: torch.device,
) -> list[tuple[Group, ...]]:
    """Who reads what on `grid`, for every frame; a source does not read itself.

    Args:
        labels: the subjects that each frame's tokens show, bool of shape (F, n, S), or None: every token reads
        everything.
    """
    import torch

    plans = []
    for number, member in enumerate(members):
        others = {source: offer for (where, source), offer in offers.items() if where == grid}
        others.pop(-1 if member.source is None else member.source, None)
        reads = torch.tensor(member.reads, device=device)
        plans.append(group_tokens(reads, others, None if labels is None else labels[number]))
    return plans
