"""The run state of frames that are denoised together: what each layer may read at this step, and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from katha.renderers.sharing.attention import concept_maps
from katha.renderers.sharing.bank import StepRecord
from katha.renderers.sharing.draws import happens
from katha.renderers.sharing.grids import Grid, grid_of
from katha.renderers.sharing.groups import Group
from katha.renderers.sharing.maps import SubjectMaps
from katha.renderers.sharing.planning import Member, make_groups, make_offer
from katha.renderers.sharing.rules import SharingRules

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["Coupling"]

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
