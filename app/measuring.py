"""Other papers' measures, as Python calls them and the command line does: over boards of any origin."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, ConfigDict, Field

from katha.app.drawing import settings_for
from katha.app.recording import recordable, refuse_recording
from katha.app.reports.metrics_page import write_metrics_report
from katha.config import Flag, Settings, read_settings, require_chosen
from katha.errors import UsageError
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.judging.budget import Budget, CallEstimate
from katha.eval_bridge.metrics.base import AnyMetric, Metric, SetMetric
from katha.experiments.cluster.fleet import CLUSTER_HELP, Fleet
from katha.experiments.cluster.progress import OnWorkers
from katha.experiments.evaluation.evaluate import name_judges
from katha.experiments.metrics import job as measuring
from katha.experiments.metrics.sources import Beside, find_sources
from katha.models.client import keyless
from katha.ordering import ORDER_HELP
from katha.protocols import Judge
from katha.registry import default_registry, read_options
from katha.schema.metrics import MetricCard, MetricMode
from katha.schema.narratives import read_narratives, records_of
from katha.stories import load_stories

OnProgress = Callable[[str, int, int], None]
"""Hears what was done last, how much is done, and of how much."""

_NUMBER = re.compile(r"-?[0-9]{1,6}")
DEFAULT_METRICS = ("continuity",)
"""What is measured unless told: what needs neither a model nor a judge."""


class MetricOptions(BaseModel):
    """What boards are measured by, beside the settings of the judge."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Annotated[tuple[str, ...], Flag("--metric", many=True)] = Field(
        default=(), description="A metric by name, or several with commas; `katha metrics --list` has them."
    )
    metric_option: Annotated[tuple[str, ...], Flag("--metric-option", many=True)] = Field(
        default=(), description="METRIC.KEY=VALUE for a metric's option, such as clip-t.model=ViT-B-32@openai."
    )
    mode: str | None = Field(default=None, description="paper or code, where the two differ; paper unless told.")
    stories: str | None = Field(default=None, description="What the boards of a plain folder are of.")
    order: str | None = Field(default=None, description=ORDER_HELP)
    references: Path | None = Field(default=None, description="Gold pictures: a folder with one folder per story.")
    characters: Path | None = Field(
        default=None, description="Pictures of characters: a folder per story with NAME.png or NAME/*.png."
    )
    narratives: Path | None = Field(default=None, description="VinaBench's annotations (vwp_test.json).")
    workers: str | None = Field(
        default=None,
        coerce_numbers_to_str=True,
        description="How many boards are measured side by side (1 unless told); or workers: cuda:0-7, cuda:0,2, cpu:2.",
    )
    cluster: str | None = Field(default=None, description=CLUSTER_HELP)

    @property
    def at_once(self) -> int:
        """Return how many boards this process measures side by side.

        Raises:
            UsageError: none.
        """
        count = int(self.workers or 1) if self._threads else 1
        if count < 1:
            raise UsageError(f"--workers {self.workers} measures nothing.", hint="Give 1 or more, or cuda:0-7.")
        return count

    @property
    def _threads(self) -> bool:
        return self.cluster is None and _NUMBER.fullmatch(self.workers or "1") is not None

    def fleet(self, heard: OnWorkers | None) -> Fleet | None:
        """Return the workers; None where this process measures alone.

        Raises:
            UsageError: they say nothing that there is. MissingExtraError: Ray is missing.
        """
        if self._threads:
            return None
        made = Fleet.of(self.workers, self.cluster, heard)
        if made is not None:
            refuse_recording("Work of several workers")
        return made


@recordable
def measure(
    boards: str | Path | Sequence[str],
    out: Path | str,
    settings: Settings | str | None = None,
    *,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
    on_workers: OnWorkers | None = None,
    on_order: Callable[[str], None] | None = None,
    **changes: Any,
) -> measuring.MetricsResult:
    """Measure boards of any origin by the metrics of other papers, and hold them against STG where it is known.

    The same call again measures nothing. After a kill, or with a larger budget, it goes on where it stopped.

    Args:
        boards: `DIR` or `NAME=DIR`: folders of boards, runs, evaluations, comparisons, ablations.
        out: The folder of the measurement.
        settings: Settings, or the name of a preset; else the environment's and the defaults.
        budget: Limits over the calls and dollars of the judge.
        on_progress: Hears each board, how many are done, and of how many.
        on_workers: Hears how the work of several workers stands, and of those that are lost.
        on_order: Hears, before anything is asked, in which order pictures are taken whose names say it.
        **changes: The judge's settings by name (`judges=["openai:gpt-6-luna"]`), and those of `MetricOptions`:
            `metric`, `metric_option`, `mode`, `stories`, `order`, `references`, `characters`, `narratives`, `workers`,
            `cluster`.

    Returns:
        The table; the files, with `report.html`, are in `result.out`.

    Raises:
        UsageError: Boards, a metric, a setting or the folder are wrong; nothing was measured.
        KathaError: The work failed (JudgeError, StoreError); call again to go on.

    Example:
        >>> result = measure("out/eval", out="out/metrics", metric=["clip-t", "lpips"])
        >>> result.table
    """
    options, rest = _options(changes)
    job = _job(boards, settings, options, rest, budget, on_order)
    total = len(job.boards)
    heard = None if on_progress is None else lambda name, done: on_progress(name, done, total)
    with options.fleet(on_workers) or nullcontext() as fleet:
        result = measuring.measure(job, Path(out), on_board=heard, fleet=fleet)
    if not (result.reused and (result.out / "report.html").is_file()):
        write_metrics_report(result.out, job.sources)
    return result


def estimate(
    boards: str | Path | Sequence[str],
    settings: Settings | str | None = None,
    *,
    on_order: Callable[[str], None] | None = None,
    **changes: Any,
) -> tuple[str, CallEstimate, int]:
    """Say what `measure` would ask of the judge beyond what the cache holds. Asks nothing and writes nothing; no key.

    Returns:
        The judge's name, the estimate, and how many boards there are.
    """
    with keyless():
        job = _job(boards, settings, *_options(changes), None, on_order)
    return job.judge_name, measuring.estimate(job), len(job.boards)


def require_metrics(names: Sequence[str], config: Settings) -> None:
    """Refuse, before any work, what `measure_beside` could not measure.

    Raises:
        UsageError: there is no such metric, or it needs another judge.
    """
    _judge(config, make_metrics(names))


def measure_beside(out: Path, names: Sequence[str], config: Settings, budget: Budget | None) -> Path:
    """Measure the boards of the comparison or ablation in `out` into `out/metrics`, if any; return `out`.

    Raises:
        UsageError: there is no such metric, or it needs another judge. JudgeError, StoreError: the work failed.
    """
    metrics = make_metrics(names)
    if not metrics:
        return out
    name, judge = _judge(config, metrics)
    job = measuring.MetricsJob(
        sources=find_sources([str(out)], None, Beside()),
        metrics=metrics,
        judge=judge,
        judge_name=name,
        budget=budget,
        command=("katha", *sys.argv[1:]),
    )
    write_metrics_report(measuring.measure(job, out / "metrics").out, job.sources)
    return out


def _options(changes: Mapping[str, Any]) -> tuple[MetricOptions, dict[str, Any]]:
    """Return what of `changes` is a measurement's own, and the settings among them."""
    own = {name: value for name, value in changes.items() if name in MetricOptions.model_fields}
    rest = {name: value for name, value in changes.items() if name not in own}
    return read_settings(MetricOptions, own), rest


def _job(
    boards: str | Path | Sequence[str],
    settings: Settings | str | None,
    options: MetricOptions,
    rest: Mapping[str, Any],
    budget: Budget | None,
    tell: Callable[[str], None] | None = None,
) -> measuring.MetricsJob:
    """Check every option before any work. tell: hears in which order pictures are taken."""
    if options.mode not in (None, *get_args(MetricMode)):
        raise UsageError(f"--mode is {' or '.join(get_args(MetricMode))}, not {options.mode!r}.")
    config = settings_for(settings, rest, reporting=False)
    metrics = make_metrics(options.metric or DEFAULT_METRICS, options.metric_option)
    narratives = read_narratives(options.narratives) if options.narratives is not None else {}
    records = load_stories(options.stories) if options.stories is not None else None
    if records is None and narratives:
        records = records_of(narratives)
    beside = Beside(
        _folder(options.references, "--references"), _folder(options.characters, "--characters"), narratives
    )
    given = [str(boards)] if isinstance(boards, (str, Path)) else list(boards)
    name, judge = _judge(config, metrics)
    return measuring.MetricsJob(
        sources=find_sources(given, records, beside, options.order, tell),
        metrics=metrics,
        options=metric_options(options.metric or DEFAULT_METRICS, options.metric_option),
        mode=cast(MetricMode | None, options.mode),
        judge=judge,
        judge_name=name,
        budget=budget,
        workers=options.at_once,
        command=("katha", *sys.argv[1:]),
    )


def _folder(path: Path | None, option: str) -> Path | None:
    if path is not None and not path.is_dir():
        raise UsageError(f"{option}: there is no folder {str(path)!r}.")
    return path


def _judge(config: Settings, metrics: Mapping[str, AnyMetric]) -> tuple[str, Judge | None]:
    """Return the one judge that metrics ask; none where no metric asks.

    Raises:
        UsageError: no judge is chosen, or several: their answers are no ensemble's.
    """
    if not any("judge" in metric.card.needs for metric in metrics.values()):
        return "", None
    require_chosen(config, ("judges",))
    if len(config.judges) > 1:
        raise UsageError("Metrics are asked of one judge.", hint="Give one --judge, and another --out for another.")
    made = make_judges(
        config.judges,
        base_url=config.base_url,
        patience=config.patience,
        keep_going=config.keep_going,
        options=config.judge_options,
    )
    return next(iter(name_judges(made).items()))


def make_metrics(names: Sequence[str], options: Sequence[str] = ()) -> dict[str, AnyMetric]:
    """Return metrics by name, made with their options (`NAME.KEY=VALUE`; `KEY=VALUE` where there is one metric).

    Raises:
        UnknownPluginError: there is no such metric. UsageError: an option is none of its metric's, or a metric is none.
    """
    registry, made = default_registry("metrics"), {}
    for name, own in metric_options(names, options).items():
        metric = registry.configure(name, own)
        if not (isinstance(metric, (Metric, SetMetric)) and isinstance(getattr(metric, "card", None), MetricCard)):
            raise UsageError(f"{name!r} is not a metric: it lacks `card`, `spec` or `measure`.")
        made[name] = metric
    return made


def metric_options(names: Sequence[str], options: Sequence[str] = ()) -> dict[str, dict[str, object]]:
    """Return the options of each metric by its name, as `make_metrics` reads them.

    Raises:
        UsageError: an option is none of its metric's.
    """
    asked = list(dict.fromkeys(part.strip() for name in names for part in name.split(",") if part.strip()))
    given: dict[str, dict[str, object]] = {name: {} for name in asked}
    for item in options:
        key, equals, value = item.partition("=")
        name, dot, option = key.rpartition(".")
        name = name if dot else (asked[0] if len(asked) == 1 else "")
        if not equals or name not in given:
            raise UsageError(f"The metric option {item!r} is not METRIC.KEY=VALUE of a metric that is measured.")
        given[name] |= read_options([f"{option}={value}"])
    return given
