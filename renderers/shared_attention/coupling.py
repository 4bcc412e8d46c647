"""Who shares what: the rules, what sources show and others read of it at a step, and what is kept for later frames."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from katha.renderers.shared_attention.masks import SubjectMaps

Grid = tuple[int, int]
"""(height, width) of the tokens that a layer works on."""


def grid_of(tokens: int, latent: Grid) -> Grid:
    """Return the grid of `tokens` tokens inside a UNet that halves its latent, rounding up, from level to level.

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
    """Return the grids of `latent` halved 0 to `count` times."""
    grids = [latent]
    for _ in range(count):
        height, width = grids[-1]
        grids.append(((height + 1) // 2, (width + 1) // 2))
    return grids


def keyed_rng(*key: int | str) -> np.random.Generator:
    """Return random numbers that are a function of `key`: nothing global is read, and the order of draws is free."""
    seed = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return np.random.default_rng(int.from_bytes(seed, "big"))


def kept_tokens(count: int, probability: float, *key: int | str) -> NDArray[np.bool_]:
    """Draw which of `count` tokens are kept, each with `probability`; shape (count,)."""
    return keyed_rng(*key).random(count) < probability


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
        """Return the weight of the queries without sharing at `step` of `steps`, or None after the window."""
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
        """Return the probability that a layer shares nothing at `step` of `steps`."""
        return next((chance for share, chance in self.skip if step < share * steps), 0.0)


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


def make_offer(
    member: Member, rules: SharingRules, step: int, grid: Grid, labels: Tensor | None, device: torch.device
) -> Offer | None:
    """Return what the source `member` shows on `grid` at `step`, or None where that is nothing.

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


def group_tokens(present: Tensor, offers: Mapping[int, Offer], labels: Tensor | None = None) -> tuple[Group, ...]:
    """Return the groups of one frame; empty where it reads nothing.

    A token that shows some of the frame's subjects reads those subjects only, any other token reads all of them, so
    that two characters of one frame do not take each other's looks.

    Args:
        present: the subjects in the frame, bool of shape (S,).
        offers: what each source shows.
        labels: the subjects that each of the frame's tokens shows, bool of shape (n, S), or None: every token reads
        all.
    """
    import torch

    kinds, kind_of = present[None], None
    if labels is not None and int(present.sum()) > 1:
        wanted = labels & present
        wanted = torch.where(wanted.any(1, keepdim=True), wanted, present)
        kinds, kind_of = torch.unique(wanted, dim=0, return_inverse=True)
    if kind_of is None or len(kinds) == 1:
        groups = [Group(None, _reads(kinds[0], offers))]
    else:
        groups = [Group((kind_of == at).nonzero()[:, 0], _reads(kind, offers)) for at, kind in enumerate(kinds)]
    return tuple(groups) if any(group.reads for group in groups) else ()


def _reads(subjects: Tensor, offers: Mapping[int, Offer]) -> dict[int, Tensor]:
    """Return the positions that show any of `subjects`, by source; a source that shows none is left out."""
    found = {source: (offer.subjects & subjects).any(1).nonzero()[:, 0] for source, offer in offers.items()}
    return {source: places for source, places in found.items() if places.numel()}


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of `tensors`."""
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
        """Return the same record with its large tensors on `device`."""
        hidden, outputs = ({key: item.to(device) for key, item in part.items()} for part in (self.hidden, self.outputs))
        return replace(self, hidden=hidden, outputs=outputs)


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
        """Return the record of a step: an empty one, or the one that was kept."""
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
        """Note that all steps have been recorded: later frames may read them if they were kept, else nothing stays."""
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


After = Callable[[str, "Tensor", StepRecord, int], "Tensor"]


class Coupling:
    """The state of F frames in their UNet calls, shared by the attention layers.

    `begin` opens a step. A self-attention layer then asks `groups` who reads what and `shown` for what is read; `after`
    (None: nothing) may change its output. Cross-attention layers add what they see to `maps`.
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
        self._groups = {grid: self._plan(record, grid, device) for grid in grids} if record is not None else {}

    def _plan(self, record: StepRecord, grid: Grid, device: torch.device) -> list[tuple[Group, ...]]:
        """Add what this call's sources show on `grid` to `record`, and return who reads what of all that is shown."""
        import torch

        labels = None if self.maps is None else self.maps.labels(grid)
        for number, member in enumerate(self.members):
            own = None if labels is None else labels[number]
            offer = make_offer(member, self._rules, self._step, grid, own, device)
            if offer is not None and member.source is not None:
                record.offers[grid, member.source] = offer
        offers = {source: offer for (where, source), offer in record.offers.items() if where == grid}
        plans = []
        for number, member in enumerate(self.members):
            others = {source: offer for source, offer in offers.items() if source != member.source}
            own = labels[number] if labels is not None and self._rules.separate else None
            plans.append(group_tokens(torch.tensor(member.reads, device=device), others, own))
        return plans

    def query_weight(self) -> float | None:
        """Return the weight of the queries without sharing at this step, or None where they are not needed."""
        reads = any(any(groups) for groups in self._groups.values())
        return self._rules.blend.weight(self._step, self._steps) if self._rules.blend is not None and reads else None

    def watch(self) -> None:
        """Have the next UNet call share nothing and keep its queries."""
        self.watching, self._queries = True, {}

    def blend(self, weight: float) -> None:
        """Have the next UNet call blend the kept queries in."""
        self.watching, self._weight = False, weight

    def end(self) -> None:
        """Close the step: nothing of it is held any longer."""
        self._record, self._weight, self._queries, self._groups = None, None, {}, {}
        if self.maps is not None:
            self.maps.close_step()

    def query(self, layer: str, attn: Any, hidden: Tensor) -> Tensor | None:
        """Return the blended queries of a layer, (halves * F, n, D), or None where they are its own."""
        if self.watching:
            self._queries[layer] = attn.to_q(hidden)
        if self.watching or self._weight is None:
            return None
        own: Tensor = attn.to_q(hidden)
        return self._weight * self._queries.pop(layer) + (1 - self._weight) * own

    def groups(self, layer: str, tokens: int) -> list[tuple[Group, ...]] | None:
        """Return the groups of every frame in a layer, or None where it shares nothing."""
        if self._record is None or self.watching or not self._groups:
            return None
        chance = self._rules.skip_probability(self._step, self._steps)
        if chance and keyed_rng(self._rules.seed, "skip", self._step, layer).random() < chance:
            return None
        return self._groups.get(grid_of(tokens, self.latent))

    def shown(self, layer: str, hidden: Tensor, groups: Sequence[tuple[Group, ...]]) -> dict[int, Tensor]:
        """Return, by source, the hidden states (halves, K, C) that `groups` read; this call's sources are recorded."""
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

    def changed(self, layer: str, output: Tensor) -> Tensor:
        """Return a self-attention output as it goes on."""
        if self.after is None or self.watching or self._record is None:
            return output
        return self.after(layer, output, self._record, self._step)
