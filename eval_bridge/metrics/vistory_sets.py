"""ViStoryBench's quality and diversity: aesthetics of each frame, the inception score of all frames of a method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from katha.errors import UsageError
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured
from katha.eval_bridge.metrics.encoders import make_encoder
from katha.eval_bridge.metrics.vistorybench import InceptionSum
from katha.plugin_boundary import spec_of
from katha.schema.metrics import MetricCard, MetricPart, MetricValue


class VistoryInception:
    """The inception score of a method's frames together: how sure and how different they are."""

    card: ClassVar[MetricCard] = MetricCard(
        name="vistory-inception",
        title="Inception score (ViStoryBench's diversity)",
        paper="Salimans et al. 2016; ViStoryBench, Table S4",
        formula="exp(mean KL(p(y|x) || p(y))) over all frames, one split",
        level="set",
        parts=(MetricPart(name="inception", about="1: all alike", low=1.0, high=None, average="set"),),
        needs=("images",),
        models=("inception",),
        licence="torchvision BSD-3; its ImageNet weights are for research",
        cost="one Inception v3 pass a frame, kept by content",
        vector="equal rows give 1, N sure ones N, in tests/eval_bridge/test_metric_formulas.py",
    )

    def __init__(self, *, encoder: str = "inception") -> None:
        """encoder: `inception`, `inception:FILE`, or a plug-in whose rows are class probabilities."""
        self._encoder = make_encoder(encoder)

    def spec(self) -> Mapping[str, Any]:
        """Name, version and encoder."""
        return {"name": "vistory-inception", "version": 1, "encoder": spec_of(self._encoder, "the encoder")}

    def measure_set(self, boards: Iterable[MetricBoard], context: MetricContext) -> Iterator[MetricValue]:
        """Yield the score of all boards' frames; memory does not grow with them."""
        total = InceptionSum()
        for board in boards:
            total.add(context.features.images(self._encoder, board.images))
        if total.count < 2:
            raise Unmeasured("fewer than two frames in all")
        yield MetricValue(metric="", part="inception", method="", value=total.score(), n=total.count)


class VistoryAesthetics:
    """How beautiful each frame is, by a model of the user's."""

    card: ClassVar[MetricCard] = MetricCard(
        name="vistory-aesthetics",
        title="Aesthetics (ViStoryBench)",
        paper="ViStoryBench, Table S4 (aesthetic-predictor-v2-5)",
        formula="mean over frames of the predictor's score",
        level="frame",
        parts=(MetricPart(name="aesthetics", about="the predictor's scale, 1 to 10", low=None, high=None),),
        needs=("images",),
        licence="aesthetic-predictor-v2-5 is AGPL-3.0: not shipped, installed and named by the user",
        cost="one predictor pass a frame, kept by content",
        vector="a predictor by hand in tests/eval_bridge/test_metric_vistorybench.py",
    )

    def __init__(self, *, encoder: str | None = None) -> None:
        """encoder: a plug-in whose rows are one number, a picture's score.

        Raises:
            UsageError: none is named.
        """
        if encoder is None:
            raise UsageError(
                "vistory-aesthetics has no predictor of its own.",
                hint="aesthetic-predictor-v2-5 is AGPL-3.0: install it and give encoder=package.module:Class.",
            )
        self._encoder = make_encoder(encoder)

    def spec(self) -> Mapping[str, Any]:
        """Name, version and predictor."""
        return {"name": "vistory-aesthetics", "version": 1, "encoder": spec_of(self._encoder, "the predictor")}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterator[MetricValue]:
        """Yield one score a frame."""
        rows = np.asarray(context.features.images(self._encoder, board.images))
        if rows.shape[1] != 1:
            raise Unmeasured(f"the predictor gives {rows.shape[1]} numbers a picture, not one")
        for at, row in enumerate(rows, 1):
            yield board.value("aesthetics", float(row[0]), frame=at)
