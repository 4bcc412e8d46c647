"""What the sources showed: one record a step, dropped when the step is over, or kept for frames that come later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from katha.renderers.sharing.grids import Grid
from katha.renderers.sharing.groups import Offer

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Anchor", "Bank", "StepRecord", "bytes_of"]


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
