"""Who shares what: where each subject is (cross-attention maps cut by Otsu's threshold, at the positions of its words
in the prompt), the rules, what sources show and others read of it at a step, and what is kept for later frames."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from katha.composing import look_head
from katha.renderers.diffusion.placement import halvings
from katha.renderers.diffusion.sdxl import chunk_tokens
from katha.schema import Character

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Grid = tuple[int, int]
"""(height, width) of the tokens that a layer works on."""
WINDOW = 20
"""Steps whose maps are averaged."""


def otsu(values: ArrayLike) -> float:
    """Return the threshold whose two classes, `<= threshold` and `> threshold`, have the largest variance between them.

    Otsu, IEEE Transactions on Systems, Man, and Cybernetics 9(1), 1979, but exact: over every split of the sorted
    values instead of a histogram's bins. Equal values have no split: their value is returned, and nothing lies above.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=None)
    if not ordered.size:
        raise ValueError("no values to split")
    ends = np.flatnonzero(np.diff(ordered))
    if not ends.size:
        return float(ordered[-1])
    below = ends + 1
    sums = np.cumsum(ordered)[ends]
    above = ordered.size - below
    between = below * above * ((ordered.sum() - sums) / above - sums / below) ** 2
    return float(ordered[ends[np.argmax(between)]])


class SubjectMaps:
    """Where S subjects are in F frames: cross-attention maps on one grid, averaged and cut by Otsu's threshold.

    Only one map a step is kept, the mean over its layers, and `WINDOW` steps: every layer has one map a step, so the
    mean is the same as over every layer's last `WINDOW` maps.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._steps: deque[Tensor] = deque(maxlen=window)
        self._sum: Tensor | None = None
        self._layers = 0
        self._grid: Grid = (0, 0)
        self._labels: dict[Grid, Tensor] = {}

    def add(self, maps: Tensor, grid: Grid) -> None:
        """Add one layer's maps, (F, S, n) on `grid`."""
        self._sum = maps if self._sum is None else self._sum + maps
        self._layers += 1
        self._grid = grid

    def close_step(self) -> None:
        """End a step: from now on its maps count."""
        if self._sum is not None:
            self._steps.append(self._sum / self._layers)
            self._labels.clear()
        self._sum, self._layers = None, 0

    def labels(self, grid: Grid) -> Tensor | None:
        """Return the subjects that each token shows, bool (F, n, S) on `grid`; None before the first step has ended."""
        import torch
        from torch.nn.functional import interpolate

        if not self._steps:
            return None
        if grid not in self._labels:
            mean = torch.stack(list(self._steps)).mean(0)
            maps = mean.view(*mean.shape[:2], *self._grid)
            if grid != self._grid:
                maps = interpolate(maps, size=grid, mode="bilinear", align_corners=False)
            flat = maps.flatten(2).cpu()
            cuts = torch.tensor([[otsu(item.numpy()) for item in frame] for frame in flat], dtype=flat.dtype)
            self._labels[grid] = (flat > cuts[..., None]).transpose(1, 2).contiguous().to(maps.device)
        return self._labels[grid]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return bytes_of((*self._steps, *self._labels.values(), *([] if self._sum is None else [self._sum])))


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of `tensors`."""
    return sum(item.numel() * item.element_size() for item in tensors)


def token_positions(tokenizer: Any, prompt: str, character: Character) -> tuple[int, ...]:
    """Return the positions of the words that name `character` in the encoders' sequence; empty where it is not named.

    The words are its kind inside its appearance phrase (or the first part of it), else its name, else its kind, else
    the last word of its kind. A prompt of several pieces (of 77 positions, each with a start token) is counted piece by
    piece.
    """
    ids = _ids(tokenizer, prompt)
    last = character.kind.split()[-1] if character.kind.split() else ""
    looks = _spans(ids, _ids(tokenizer, character.appearance)) or _spans(ids, _ids(tokenizer, look_head(character)))
    kinds = _spans(ids, _ids(tokenizer, character.kind))
    within = [span for span in kinds if any(set(span) <= set(look) for look in looks)]
    phrases = (character.name, character.kind, last)
    choices = [within, *(_spans(ids, _ids(tokenizer, phrase)) for phrase in phrases)]
    found = next((spans for spans in choices if spans), [])
    length, where = tokenizer.model_max_length, list[int]()
    for number, (start, stop) in enumerate(chunk_tokens(tokenizer.convert_ids_to_tokens(ids), length - 2)):
        where += range(number * length + 1, number * length + 1 + stop - start)
    return tuple(where[place] for span in found for place in span)


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] if text.strip() else []
    return ids


def _spans(ids: Sequence[int], wanted: Sequence[int]) -> list[range]:
    """Return every place where `wanted` stands in `ids`."""
    size = len(wanted)
    starts = range(len(ids) - size + 1) if size else range(0)
    return [range(at, at + size) for at in starts if list(ids[at : at + size]) == list(wanted)]


def grid_of(tokens: int, latent: Grid) -> Grid:
    """Return the grid of `tokens` tokens inside a UNet (ValueError where no halving of the latent has so many)."""
    found = next((grid for grid in halvings(latent, max(latent).bit_length()) if math.prod(grid) == tokens), None)
    if found is None:
        raise ValueError(f"{tokens} tokens are no halving of a latent of {latent[0]}x{latent[1]}")
    return found


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
    `last`. The first step shares nothing; with few steps the window is still long enough for the one after it."""

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
class SharingFrame:
    """One frame's part in the sharing: the subjects that it reads, those that it shows as a source, for each subject
    the positions of its words in the prompt, its number among the sources, and what its draws are keyed by."""

    reads: tuple[bool, ...]
    shows: tuple[bool, ...]
    words: tuple[tuple[int, ...], ...]
    source: int | None = None
    key: str = ""


@dataclass(frozen=True)
class Offer:
    """What one source shows on one grid at one step: indices of its tokens, of shape (K,), and which subjects each of
    them shows, bool of shape (K, S)."""

    tokens: Tensor
    subjects: Tensor


@dataclass(frozen=True)
class TokenGroup:
    """Tokens of one frame, indices of shape (Q,) or None for every one, with the same keys: all of the frame's own, and
    those that they read, by source positions among what it offers."""

    queries: Tensor | None
    reads: Mapping[int, Tensor]


def make_offer(
    member: SharingFrame, rules: SharingRules, step: int, grid: Grid, labels: Tensor | None, device: torch.device
) -> Offer | None:
    """Return what the source `member` shows on `grid` at `step`, or None where that is nothing.

    The draw is keyed by seed, step, grid and the source's key, so every reader finds the same tokens whenever it is
    drawn, whatever else the board holds. labels: the subjects that its tokens show, bool of shape (n, S), or None
    before there are masks.
    """
    import torch

    if member.source is None or (rules.masked and labels is None):
        return None
    tokens = math.prod(grid)
    kept = torch.from_numpy(kept_tokens(tokens, rules.keep, rules.seed, "keep", step, *grid, member.key)).to(device)
    shows = torch.tensor(member.shows, device=device)
    subjects = labels & shows if rules.masked and labels is not None else shows.expand(tokens, -1)
    places = (kept & subjects.any(1)).nonzero()[:, 0]
    return Offer(places, subjects[places]) if places.numel() else None


def group_tokens(present: Tensor, offers: Mapping[int, Offer], labels: Tensor | None = None) -> tuple[TokenGroup, ...]:
    """Return the groups of one frame with the subjects `present`, bool of shape (S,); empty where it reads nothing.

    A token that shows some of the frame's subjects reads those subjects only, any other token reads all of them, so
    that two characters of one frame do not take each other's looks. labels: the subjects that each of the frame's
    tokens shows, bool of shape (n, S), or None: every token reads all.
    """
    import torch

    kinds, kind_of = present[None], None
    if labels is not None and int(present.sum()) > 1:
        wanted = labels & present
        wanted = torch.where(wanted.any(1, keepdim=True), wanted, present)
        kinds, kind_of = torch.unique(wanted, dim=0, return_inverse=True)
    if kind_of is None or len(kinds) == 1:
        groups = [TokenGroup(None, _reads(kinds[0], offers))]
    else:
        groups = [TokenGroup((kind_of == at).nonzero()[:, 0], _reads(kind, offers)) for at, kind in enumerate(kinds)]
    return tuple(groups) if any(group.reads for group in groups) else ()


def _reads(subjects: Tensor, offers: Mapping[int, Offer]) -> dict[int, Tensor]:
    """Return the positions that show any of `subjects`, by source; a source that shows none is left out."""
    found = {source: (offer.subjects & subjects).any(1).nonzero()[:, 0] for source, offer in offers.items()}
    return {source: places for source, places in found.items() if places.numel()}


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
    records go to main memory, unless those of all `steps` steps would exceed `limit` bytes as far as the step at hand
    can tell: then none is copied any more, `complete` stays false, and a later frame is drawn by denoising the sources
    again, with the same result. `anchors` and `latents`, by source, are
    what the passes leave: features for correspondences, and the finished frames.
    """

    def __init__(self, limit: int = 0, steps: int = 0) -> None:
        self._limit, self._to_come = limit, steps
        self._records: dict[tuple[str, int], StepRecord] = {}
        self._keeping = limit > 0
        self.anchors: dict[int, Anchor] = {}
        self.latents: dict[int, Tensor] = {}
        self.complete, self.peak = False, 0

    def open(self, phase: str, step: int) -> StepRecord:
        """Return the record of a step: an empty one, or the one that was kept."""
        return self._records.get((phase, step)) or StepRecord()

    def close(self, phase: str, step: int, record: StepRecord) -> None:
        """End a step: keep its record, or let go of it."""
        self.peak = max(self.peak, self.nbytes + (0 if self.complete else record.nbytes))
        if not self._keeping or self.complete:
            return
        self._to_come -= 1
        lasting = bytes_of(record.hidden.values())  # outputs are shown at a few steps only
        self._keeping = self.nbytes + record.nbytes + max(0, self._to_come) * lasting <= self._limit
        if self._keeping:
            self._records[phase, step] = record.moved("cpu")
        else:
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
        members: Sequence[SharingFrame],
        rules: SharingRules,
        latent: Grid,
        maps: SubjectMaps | None = None,
        halves: int = 2,
        lengths: Sequence[int] = (),
    ) -> None:
        self.members, self.latent, self.maps = tuple(members), latent, maps
        self.halves, self.lengths = halves, tuple(lengths)
        self.after: After | None = None
        self.watching = False
        self._rules = rules
        self._record: StepRecord | None = None
        self._step, self._steps = 0, 1
        self._groups: dict[Grid, list[tuple[TokenGroup, ...]]] = {}
        self._queries: dict[str, Tensor] = {}
        self._weight: float | None = None

    def begin(
        self, record: StepRecord | None, step: int, steps: int, grids: Sequence[Grid], device: torch.device
    ) -> None:
        """Open `step` of `steps`; without a record the frames are drawn alone, and nothing is shown."""
        self._record, self._step, self._steps = record, step, steps
        self._groups = {grid: self._plan(record, grid, device) for grid in grids} if record is not None else {}

    def _plan(self, record: StepRecord, grid: Grid, device: torch.device) -> list[tuple[TokenGroup, ...]]:
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

    def groups(self, layer: str, tokens: int) -> list[tuple[TokenGroup, ...]] | None:
        """Return the groups of every frame in a layer, or None where it shares nothing."""
        if self._record is None or self.watching or not self._groups:
            return None
        chance = self._rules.skip_probability(self._step, self._steps)
        if chance and keyed_rng(self._rules.seed, "skip", self._step, layer).random() < chance:
            return None
        return self._groups.get(grid_of(tokens, self.latent))

    def shown(self, layer: str, hidden: Tensor, groups: Sequence[tuple[TokenGroup, ...]]) -> dict[int, Tensor]:
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
