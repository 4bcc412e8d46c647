"""The run state of frames that are denoised together: what each layer may read at a step, and what it shares."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from katha.renderers.shared_attention.attention import (
    Grid,
    Group,
    Offer,
    StepRecord,
    concept_maps,
    grid_of,
    group_tokens,
)
from katha.renderers.shared_attention.masks import SubjectMaps

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# ---
# Chance as a function of a key: nothing global is read, and the order of the draws does not matter.


def _generator(key: tuple[int | str, ...]) -> np.random.Generator:
    seed = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return np.random.default_rng(int.from_bytes(seed, "big"))


def kept_tokens(count: int, probability: float, *key: int | str) -> NDArray[np.bool_]:
    """Which of `count` tokens are kept, each with `probability`; shape (count,)."""
    return _generator(key).random(count) < probability


def happens(probability: float, *key: int | str) -> bool:
    """Whether something of that probability happens for `key`."""
    return bool(_generator(key).random() < probability)


# ---
# The settings by which frames share their self-attention.


@dataclass(frozen=True)
class QueryBlend:
    """Queries of a pass without sharing, blended in for the share `until` of the steps, with a weight from `first` to
    `last`.

    The first step shares nothing; with few steps the window is still long enough for the one after it.
    """

    first: float
    last: float
    until: float

    def weight(self, step: int, steps: int) -> float | None:
        """The weight of the queries without sharing at `step` of `steps`, or None after the window."""
        window = max(2, round(self.until * steps))
        if step >= window:
            return None
        return self.first + (self.last - self.first) * (step / (window - 1))


@dataclass(frozen=True)
class SharingRules:
    """How a frame reads other frames.

    keep: the probability that a source shows one of its tokens at a step. masked: a source shows only what its subject
    masks hold. separate: a token that shows one subject reads that subject only. skip: (share of the steps,
    probability) pairs; a layer shares nothing at a step with the probability of the first pair whose share is not yet
    over. seed: the key of all draws.
    """

    seed: int
    keep: float
    masked: bool
    separate: bool = True
    skip: tuple[tuple[float, float], ...] = ()
    blend: QueryBlend | None = None

    def skip_probability(self, step: int, steps: int) -> float:
        """The probability that a layer shares nothing at `step` of `steps`."""
        return next((chance for share, chance in self.skip if step < share * steps), 0.0)


# ---
# What is shown and read at one step: plain data, made before the UNet is called.


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


# ---
# The run state of frames that are denoised together: what each layer may read at this step, and what it shows.


After = Callable[[str, "Tensor", StepRecord, int], "Tensor"]


class Coupling:
    """The state of F frames in their UNet calls, shared by the attention layers.

    `begin` opens a step. A self-attention layer then asks `groups` who reads what and `shown` for what is read; a
    cross-attention layer gives its maps to `look`. `after` (None: nothing) may change every self-attention output.
    """

    def __init__(
        self,
        members: Sequence[Member],
        rules: SharingRules,
        latent: Grid,
        maps: SubjectMaps | None = None,
        halves: int = 2,
        lengths: Sequence[int] = (),
    ) -> None:
        self.members = tuple(members)
        self.latent = latent
        self.maps = maps
        self.halves = halves
        self.lengths = tuple(lengths)
        self.after: After | None = None
        self.watching = False
        self._rules = rules
        self._record: StepRecord | None = None
        self._step, self._steps = 0, 1
        self._groups: dict[Grid, list[tuple[Group, ...]]] = {}
        self._queries: dict[str, Tensor] = {}
        self._weight: float | None = None

    def begin(
        self, record: StepRecord | None, step: int, steps: int, grids: Sequence[Grid], device: torch.device
    ) -> None:
        """Open `step` of `steps`; without a record the frames are drawn alone, and nothing is shown."""
        self._record, self._step, self._steps = record, step, steps
        self._groups = {}
        for grid in grids if record is not None else ():
            self._groups[grid] = self._plan(record, grid, device) if record is not None else []

    def _plan(self, record: StepRecord, grid: Grid, device: torch.device) -> list[tuple[Group, ...]]:
        labels = None if self.maps is None else self.maps.labels(grid)
        for number, member in enumerate(self.members):
            own = None if labels is None else labels[number]
            offer = make_offer(member, self._rules, self._step, grid, own, device)
            if offer is not None and member.source is not None:
                record.offers[grid, member.source] = offer
        return make_groups(self.members, record.offers, grid, labels if self._rules.separate else None, device)

    @property
    def reads(self) -> bool:
        """Whether any frame reads anything at this step."""
        return any(any(groups) for groups in self._groups.values())

    def query_weight(self) -> float | None:
        """The weight of the queries without sharing at this step, or None where they are not needed."""
        blend = self._rules.blend
        return blend.weight(self._step, self._steps) if blend is not None and self.reads else None

    def watch(self) -> None:
        """The next UNet call shares nothing, and its queries are kept."""
        self.watching = True
        self._queries = {}

    def blend(self, weight: float) -> None:
        """The next UNet call blends the kept queries in."""
        self.watching, self._weight = False, weight

    def end(self) -> None:
        """Close the step: nothing of it is held any longer."""
        self._record, self._weight, self._queries, self._groups = None, None, {}, {}
        if self.maps is not None:
            self.maps.close_step()

    def keep_query(self, layer: str, query: Tensor) -> None:
        """Keep a layer's queries, (halves * F, n, D)."""
        self._queries[layer] = query

    def query(self, layer: str, attn: Any, hidden: Tensor) -> Tensor | None:
        """The blended queries of a layer, or None where they are its own."""
        if self._weight is None:
            return None
        own: Tensor = attn.to_q(hidden)
        return self._weight * self._queries.pop(layer) + (1 - self._weight) * own

    def groups(self, layer: str, tokens: int) -> list[tuple[Group, ...]] | None:
        """The groups of every frame in a layer, or None where it shares nothing."""
        if self._record is None or self.watching or not self._groups:
            return None
        chance = self._rules.skip_probability(self._step, self._steps)
        if chance and happens(chance, self._rules.seed, "skip", self._step, layer):
            return None
        return self._groups.get(grid_of(tokens, self.latent))

    def shown(self, layer: str, hidden: Tensor, groups: Sequence[tuple[Group, ...]]) -> Mapping[int, Tensor]:
        """By source, the hidden states (halves, K, C) that `groups` read; those of this call's sources are recorded."""
        record = self._record
        if record is None:
            return {}
        grid = grid_of(hidden.shape[1], self.latent)
        rows = hidden.view(self.halves, len(self.members), *hidden.shape[1:])
        for number, member in enumerate(self.members):
            if member.source is not None and (grid, member.source) in record.offers:
                record.hidden[layer, member.source] = rows[:, number, record.offers[grid, member.source].tokens]
        read = {source for frame in groups for group in frame for source in group.reads}
        return {source: record.hidden[layer, source].to(hidden.device) for source in sorted(read)}

    def look(self, attn: Any, hidden: Tensor, text: Tensor) -> None:
        """Take a cross-attention layer's maps of the positive half."""
        if self.maps is None or self.watching:
            return
        frames = len(self.members)
        words = [member.words for member in self.members]
        maps = concept_maps(attn, hidden[-frames:], text[-frames:], words)
        self.maps.add(maps, grid_of(hidden.shape[1], self.latent))

    def changed(self, layer: str, output: Tensor) -> Tensor:
        """A self-attention output as it goes on."""
        if self.after is None or self.watching or self._record is None:
            return output
        return self.after(layer, output, self._record, self._step)
