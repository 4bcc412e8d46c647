"""The two passes over a board: one that finds subjects and correspondences, one that injects features along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from katha.renderers.consistory.injection import (
    DIFT_TIMESTEP,
    Injector,
    anchor_of,
    match_tokens,
    smooth_features,
)
from katha.renderers.sharing.board import Part
from katha.renderers.sharing.denoise import Trajectory, lockstep
from katha.renderers.sharing.grids import Grid
from katha.renderers.sharing.renderer import Drawing

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["INJECTION", "STRENGTH", "collect", "inject", "injection_window"]

INJECTION = (1 / 10, 1 / 3)
"""From which share of the steps to which features are injected."""
STRENGTH = 0.8
"""The match's share of an injected feature."""


def collect(drawing: Drawing, *, features: bool) -> tuple[list[Trajectory], list[Trajectory]]:
    """The first pass over sources (none where the bank has them) and readers; with `features`, kept for matching."""
    studio, bank = drawing.studio, drawing.bank
    sources = [] if bank.complete else [studio.trajectory(parts, maps=True) for parts in drawing.sources]
    readers = [studio.trajectory(parts, maps=any(map(_reads, parts))) for parts in drawing.readers]
    at = studio.denoiser.nearest_step(DIFT_TIMESTEP) if features else None
    lockstep(studio.denoiser, sources, readers, bank, "collect", at)
    return sources, readers


def inject(drawing: Drawing, sources: Sequence[Trajectory], readers: Sequence[Trajectory]) -> None:
    """The second pass, from the same noise, for every frame that reads; the others are finished as they are."""
    studio, bank = drawing.studio, drawing.bank
    known = [_features(run) for run in sources]
    for parts, (features, labels, _) in zip(drawing.sources, known, strict=False):
        for number, (_, member) in enumerate(parts):
            if member.source is not None:
                bank.anchors[member.source] = anchor_of(member, features[number], labels[number])
    again = [_second(drawing, parts, *seen) for parts, seen in zip(drawing.sources, known, strict=False)]
    reading = [number for number, parts in enumerate(drawing.readers) if any(map(_reads, parts))]
    final = list(readers)
    for number in reading:
        final[number] = _second(drawing, drawing.readers[number], *_features(readers[number]))
    lockstep(studio.denoiser, again, [final[number] for number in reading], bank, "inject")
    drawing.finish(drawing.sources if sources else [], again)
    drawing.finish(drawing.readers, final)


def _reads(part: Part) -> bool:
    return any(part[1].reads)


def _features(run: Trajectory) -> tuple[Tensor, Tensor, Grid]:
    """Unit features (F, n, C) and the subjects' labels (F, n, S) at the end of the first pass, and their grid."""
    maps, features = run.coupling.maps, run.features
    assert maps is not None
    assert features is not None
    grid: Grid = (features.shape[-2], features.shape[-1])
    labels = maps.labels(grid)
    assert labels is not None
    return smooth_features(features), labels, grid


def _second(drawing: Drawing, parts: Sequence[Part], features: Tensor, labels: Tensor, grid: Grid) -> Trajectory:
    """A trajectory from the first noise, with the injection of its frames."""
    studio, anchors = drawing.studio, drawing.bank.anchors
    run = studio.trajectory(parts, maps=True)
    members = [member for _, member in parts]
    matches = [match_tokens(member, features[at], labels[at], anchors) for at, member in enumerate(members)]
    window = injection_window(studio.denoiser.steps)
    run.coupling.after = Injector(members, matches, anchors, grid, window, STRENGTH)
    return run


def injection_window(steps: int) -> range:
    """The steps at which features are injected; with few steps still the one after the first, which shares nothing."""
    first, last = (round(share * steps) for share in INJECTION)
    return range(max(1, first), max(2, last))
