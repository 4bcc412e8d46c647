"""FID: how far the pictures of a method are, as a set, from the gold pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured
from katha.eval_bridge.metrics.encoders import make_encoder
from katha.plugin_boundary import spec_of
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

Floats = NDArray[np.float64]
_BATCH = 16


class Moments:
    """Mean and covariance of rows as they come: two sums are held, whatever the number of rows."""

    def __init__(self) -> None:
        self.count = 0
        self._sum: Floats | None = None
        self._squares: Floats | None = None

    def add(self, rows: Floats) -> None:
        """Add rows, (N, D)."""
        given = np.asarray(rows, dtype=np.float64)
        if not len(given):
            return
        total, squares = given.sum(axis=0), given.T @ given
        self.count += len(given)
        self._sum = total if self._sum is None else self._sum + total
        self._squares = squares if self._squares is None else self._squares + squares

    def gaussian(self) -> tuple[Floats, Floats]:
        """Return mean, (D,), and unbiased covariance, (D, D).

        Raises:
            ValueError: there are fewer than two rows.
        """
        if self._sum is None or self._squares is None or self.count < 2:
            raise ValueError("a covariance needs two rows")
        mean = self._sum / self.count
        return mean, (self._squares - self.count * np.outer(mean, mean)) / (self.count - 1)


def frechet_distance(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> float:
    """Return the squared Fréchet distance of two Gaussians, each given by mean and covariance.

    The trace of the square root of A B is that of the root of the symmetric A^1/2 B A^1/2, whose eigenvalues are real.
    """
    values, vectors = np.linalg.eigh(one[1])
    root = (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
    cross = np.linalg.eigvalsh(root @ other[1] @ root)
    apart = one[0] - other[0]
    spread = np.trace(one[1]) + np.trace(other[1]) - 2.0 * np.sqrt(np.clip(cross, 0.0, None)).sum()
    return max(0.0, float(apart @ apart + spread))


class FrechetDistance:
    """The Fréchet distance of a method's frames from the gold pictures, in Inception's features."""

    card: ClassVar[MetricCard] = MetricCard(
        name="fid",
        title="FID",
        paper="Heusel et al. 2017, Eq. 6; VinaBench, 2025, Table 2; VCMS",
        formula="|m - g|^2 + tr(M + G - 2 (M G)^1/2) of the features' means and covariances",
        level="set",
        parts=(MetricPart(name="distance", about="0: as the gold pictures", high=None, better="lower", average="set"),),
        needs=("images", "references"),
        models=("inception-features",),
        licence="torchvision BSD-3; its ImageNet weights are for research",
        cost="one Inception v3 pass a frame and gold picture, kept by content",
        vector="SciPy's matrix root and shifted Gaussians, in tests/eval_bridge/test_metric_frechet.py",
    )

    def __init__(self, *, encoder: str = "inception-features") -> None:
        """encoder: `inception-features`, `inception-features:FILE`, or another whose rows are features."""
        self._encoder = make_encoder(encoder)

    def spec(self) -> Mapping[str, Any]:
        """Name, version and encoder."""
        return {"name": "fid", "version": 1, "encoder": spec_of(self._encoder, "the encoder")}

    def measure_set(self, boards: Iterable[MetricBoard], context: MetricContext) -> Iterator[MetricValue]:
        """Yield the distance of all boards' frames; memory does not grow with them."""
        gold, made = Moments(), Moments()
        pictures = (data for _, data in context.pool())
        while batch := list(islice(pictures, _BATCH)):
            gold.add(context.features.images(self._encoder, batch))
        if gold.count < 2:
            raise Unmeasured("there are no two gold pictures: give --references")
        for board in boards:
            made.add(context.features.images(self._encoder, board.images))
        if made.count < 2:
            raise Unmeasured("fewer than two frames in all")
        distance = frechet_distance(made.gaussian(), gold.gaussian())
        yield MetricValue(metric="", part="distance", method="", value=distance, n=made.count)
