"""Boards measured by workers: an item is one board under every metric that asks no judge and needs no other board.

What a worker can give no value for is left to the command, which says why in its own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from katha.errors import KathaError
from katha.eval_bridge.metrics.base import AnyMetric, Metric, measure_board, mode_of
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext
from katha.eval_bridge.metrics.features import Features
from katha.experiments.cluster.fleet import Fleet
from katha.experiments.cluster.work import Done, Ending, Station, Work, WorkItem
from katha.jsonio import digest
from katha.plugin_boundary import spec_of
from katha.registry import default_registry
from katha.schema.metrics import MetricMode, MetricValue

STAGE = "metrics"
"""The stage of all metrics: a worker holds the models of those that it measures by."""

Rows = Mapping[str, tuple[MetricValue, ...]]
"""Values by the key of their piece of work."""


@dataclass(frozen=True)
class BoardWork:
    """One board, and its pieces of work that are open: their keys by the metric's name."""

    board: MetricBoard
    keys: Mapping[str, str]


def by_workers(metrics: Mapping[str, AnyMetric]) -> dict[str, Metric]:
    """Return those of the metrics that workers can measure by."""
    return {
        name: metric
        for name, metric in metrics.items()
        if isinstance(metric, Metric) and "judge" not in metric.card.needs
    }


def _other_boards() -> Iterator[tuple[str, bytes]]:
    raise KathaError("A worker has one board and not the pictures of all.")


@dataclass(frozen=True)
class Measuring:
    """Opens stations that measure boards. metrics: by name what each was made with, and what it then says of itself."""

    metrics: Mapping[str, tuple[Mapping[str, object], Mapping[str, object]]]
    mode: MetricMode | None
    seed: int

    def __call__(self, stage: str) -> Station:
        """Return a station; vectors are kept in the cache of its machine.

        Raises:
            KathaError: a metric cannot be made here, or is another one than the command's.
        """
        metrics: dict[str, Metric] = {}
        for name, (options, spec) in self.metrics.items():
            metrics[name] = default_registry("metrics").configure(name, options)
            if digest(spec_of(metrics[name], f"metric {name!r}")) != digest(spec):
                raise KathaError(f"its metric {name!r} is another version.", hint="Install the same on all machines.")
        features = Features()

        def work(load: BoardWork) -> Ending:
            rows: dict[str, tuple[MetricValue, ...]] = {}
            for name, key in load.keys.items():
                metric = metrics[name]
                mode = mode_of(metric.card, self.mode)
                context = MetricContext(mode=mode, features=features, pool=_other_boards, seed=self.seed)
                rows[key] = tuple(measure_board(metric, load.board, context))
            return Done(rows)

        return work


def measured_by_workers(
    fleet: Fleet,
    opener: Measuring,
    boards: Iterable[tuple[str, BoardWork]],
    owner: str,
    logs: Path,
    keep: Callable[[str, tuple[MetricValue, ...]], None],
) -> None:
    """Measure boards on workers, by name; call `keep` with each piece of work and all its values.

    Raises:
        UsageError: there is no such cluster. StoreError: the disk failed.
    """

    def kept(item: WorkItem, rows: Rows) -> None:
        for key, values in rows.items():
            if values and all(value.value is not None for value in values):
                keep(key, values)

    items = (WorkItem(STAGE, name, load) for name, load in boards)
    fleet.drain(Work(items, opener, kept), owner, logs)
