"""Many stories at a time, as Python calls it and the command line does: judge boards, ablate, compare, tune."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from katha.agents.asking import require_measurable
from katha.agents.context import Plugins, freeze, load_plugins, require_drawers
from katha.app.drawing import given_names, settings_for
from katha.app.measuring import OnProgress, measure_beside, require_metrics
from katha.app.recording import recordable, refuse_recording
from katha.app.reports.data_tables import score_tables
from katha.app.reports.eval_page import write_eval_report
from katha.app.reports.study_pages import write_ablation_report, write_compare_report, write_tuning_report
from katha.app.reports.study_tables import ablation_tables, compare_tables, tuning_tables
from katha.compass.modes import Suite, load_suite
from katha.config import Settings, cache_folder, read_settings, require_chosen, split_settings
from katha.errors import UsageError
from katha.eval_bridge.bench.boards import parse_boards, tell_orders
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.judging.budget import Budget, CallEstimate
from katha.eval_bridge.matching.rules import make_decider, open_rule
from katha.eval_bridge.questions.evaluators import load_evaluator
from katha.eval_bridge.questions.halves import assign_roles
from katha.eval_bridge.scoring.controls import CONTROLS, parse_controls
from katha.eval_bridge.scoring.scores import require_reference
from katha.experiments import tune as tuning
from katha.experiments.ablate.job import AblationJob, AblationResult
from katha.experiments.ablate.power import planned
from katha.experiments.ablate.story import run_ablation
from katha.experiments.cluster.progress import OnWorkers, unheard
from katha.experiments.comparison import compare as comparing
from katha.experiments.comparison.job import CompareJob, CompareResult
from katha.experiments.comparison.methods import Method, cross_methods, read_methods
from katha.experiments.evaluation import evaluate as evaluating
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.remembered import Recall, recall
from katha.experiments.inputs.stories import (
    EvalOptions,
    StudyOptions,
    choose_questions,
    choose_stories,
    prepare_stories,
    read_pairs,
)
from katha.experiments.needs import countable_judges
from katha.jsonio import refuse_overwriting
from katha.lettering import WordScanner
from katha.models.client import keyless
from katha.protocols import Judge
from katha.registry import read_options
from katha.schema import StoryRecord
from katha.store import Store
from katha.stories import load_stories
from katha.tables import write_tables

Stories = str | Path | Sequence[StoryRecord]
"""Orders of pictures that are told before anything is asked."""


@recordable
def evaluate(
    stories: Stories,
    boards: str | Path | Sequence[str],
    out: Path | str,
    settings: Settings | str | None = None,
    *,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
    on_batch: Callable[[str, int, int], None] | None = None,
    on_workers: OnWorkers | None = None,
    on_order: Callable[[str], None] | None = None,
    **changes: Any,
) -> evaluating.EvalResult:
    """Judge boards that anyone made, under text, image and text+image, and score what was recovered.

    The same call again asks nothing. After a kill, or with a larger budget, it goes on where it stopped.

    Args:
        stories: A JSON Lines file, a record, a text, a folder of them, or records.
        boards: `DIR` or `NAME=DIR`, each a folder with one folder per story; several are compared.
        out: The folder of the evaluation.
        settings: Settings, or the name of a preset; else the environment's and the defaults.
        budget: Limits over the calls and dollars of the judges.
        on_progress: Hears each story's id, how many stories are done, and of how many.
        on_batch: Hears of a judge's batches: its name, how many have ended, of how many.
        on_workers: Hears how the work stands of several workers, or of models that take turns, and who is lost.
        on_order: Hears, before anything is asked, in which order pictures are taken whose names say it.
        **changes: Settings by name (`judges=["openai:gpt-6-luna"]`, `answers="free"`), and those of `EvalOptions`:
            `split`, `ids`, `questions`, `controls`, `evaluator`, `order`, `variants`, `scan_words`, `reference`,
            `resamples`, `concurrency`, `entrance`, `batch`, `workers`, `cluster`.

    Returns:
        The scores, and what was asked, kept and left out; the files, with `report.html`, are in `result.out`.

    Raises:
        UsageError: Stories, boards, a setting or the folder are wrong; nothing was asked.
        KathaError: The work failed (JudgeError, StoreError); call again to go on.

    Example:
        >>> result = evaluate("stories.jsonl", ["flux=boards/flux", "sdxl=boards/sdxl"], out="out/eval")
        >>> result.scores
    """
    options, job = _eval_job(stories, boards, settings, changes, budget=budget, tell=on_order)
    place = Path(out)
    if options.batch:
        refuse_recording("--batch")
    with Store(cache_folder(), owner=str(place)) as store, options.fleet(budget, on_workers) or nullcontext() as fleet:
        result = evaluating.evaluate(
            *(job, place, store),
            budget=budget,
            on_story=_counted(on_progress, len(job.records)),
            batch=options.batch,
            on_batch=on_batch,
            fleet=fleet,
        )
    if not (result.reused and (place / "report.html").is_file()):
        write_eval_report(place)
        write_tables(place, score_tables(result.scores))
    return result


def estimate(
    stories: Stories,
    boards: str | Path | Sequence[str],
    out: Path | str,
    settings: Settings | str | None = None,
    *,
    on_progress: OnProgress | None = None,
    on_order: Callable[[str], None] | None = None,
    **changes: Any,
) -> tuple[Mapping[str, CallEstimate], Mapping[str, Mapping[str, str]]]:
    """Say what `evaluate` would ask of each judge beyond what the cache holds. Needs no key, asks and writes nothing.

    Returns:
        The estimate by judge, and why boards would not be judged, by board and story.
    """
    options, job = _eval_job(stories, boards, settings, changes, tell=on_order, dry=True)
    with Store(cache_folder(), owner=str(out)) as store, keyless():
        sums, asked = evaluating.estimate(job, store, _counted(on_progress, len(job.records)), batch=options.batch)
    return sums, asked.invalid


def _eval_job(
    stories: Stories,
    boards: str | Path | Sequence[str],
    settings: Settings | str | None,
    changes: Mapping[str, Any],
    *,
    tell: Callable[[str], None] | None = None,
    dry: bool = False,
    budget: Budget | None = None,
) -> tuple[EvalOptions, evaluating.EvalJob]:
    """Check every option before any work. tell: hears in which order pictures are taken, of the first board and of
    those that are ordered in another way. dry: nothing will be asked, so no key and no weights are needed."""
    own = {name: value for name, value in changes.items() if name in EvalOptions.model_fields}
    options = read_settings(EvalOptions, own)
    config = settings_for(
        settings, {name: value for name, value in changes.items() if name not in own}, reporting=False
    )
    spec = load_evaluator(options.evaluator)
    if not spec.own and config.answers != "choice" and "answers" in config.model_fields_set:
        raise UsageError(f"The evaluator {options.evaluator!r} asks for choices.", hint="Leave --answers free out.")
    methods = parse_boards(
        [str(boards)] if isinstance(boards, (str, Path)) else boards, reserved=CONTROLS, order=options.order
    )
    controls = parse_controls(options.controls)
    records = choose_stories(read_records(stories, config.mapping), options.split, options.ids, stories)
    asked = EvalSettings(
        answers=config.answers if spec.own else "choice",
        variant=config.variant,
        matching=config.matching,
        ask=options.ask,
        questions=choose_questions(options.questions if spec.own else "all", records),
        controls=controls,
        resamples=options.resamples,
        evaluator=options.evaluator,
        reference=require_reference(options.reference, [method.name for method in methods]),
        order=options.order,
    )
    judges = countable_judges(config, options.concurrency) if dry else _judges(config, options.concurrency)
    if spec.own:
        require_measurable(records, (judge for _, judge in judges))
    job = evaluating.EvalJob(
        config=config,
        records=records,
        methods=methods,
        judges=evaluating.name_judges(judges),
        settings=asked,
        prepare=prepare_stories(_source(stories), evaluator=spec),
        variants=read_pairs(options.variants, records, spec),
        decider=None if dry else make_decider(config.matching, config.base_url, budget),
        entrance="always" if options.entrance else "never" if options.no_entrance else "cheap",
        command=("katha", *sys.argv[1:]),
    )
    if tell is not None:
        tell_orders(methods, records, tell)
    return options, replace(job, scanner=WordScanner()) if options.scan_words else job


def _judges(config: Settings, concurrency: int | None) -> list[tuple[str, Judge]]:
    require_chosen(config, ("judges",))
    return make_judges(
        config.judges,
        base_url=config.base_url,
        verify_reuse=config.verify_reuse,
        concurrency=concurrency,
        patience=config.patience,
        keep_going=config.keep_going,
        options=config.judge_options,
    )


@recordable
def remembered(
    stories: Stories,
    settings: Settings | str | None = None,
    *,
    questions: str | None = None,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
    **changes: Any,
) -> Recall:
    """Say which stories judges remember: how many of a story's questions they have right with no evidence at all.

    Args:
        stories: A JSON Lines file, a record, a text, a folder of them, or records.
        settings: Settings, or the name of a preset; else the environment's and the defaults.
        questions: all, reporting or steering; reporting where stories carry roles.
        budget: Limits over the calls and dollars of the judges.
        on_progress: Hears each story's id, how many stories are done, and of how many.
        **changes: Single settings of the judges (`judges=["openai:gpt-6-luna"]`, `answers="free"`).

    Returns:
        By judge the share right, by story and source family, beside chance where options are chosen.

    Raises:
        UsageError: Stories or a setting are wrong; nothing was asked.
        KathaError: A judge failed (JudgeError, StoreError); call again to go on.
    """
    config = settings_for(settings, changes, reporting=False)
    records = prepare_stories(_source(stories))(read_records(stories, config.mapping))
    asked = EvalSettings(
        answers=config.answers,
        variant=config.variant,
        matching=config.matching,
        questions=choose_questions(questions, records),
    )
    kept = [record for record in records if asked.selected(record)]
    if not kept:
        raise UsageError("The stories have no question.", hint="Write some: `katha bench questions STORIES`.")
    rule = open_rule(config.matching, decider=make_decider(config.matching, config.base_url, budget))
    judges = evaluating.name_judges(_judges(config, None))
    with Store(cache_folder()) as store:
        return recall(kept, judges, asked, store, rule, budget=budget, on_story=_counted(on_progress, len(kept)))


@recordable
def ablate(
    stories: Stories,
    settings: Settings | str | None = None,
    *,
    suite: str = "length",
    rows: Sequence[str] | None = None,
    lock: Path | str | None = None,
    human: Path | None = None,
    join: Sequence[Path | str] = (),
    out: Path | str | None = None,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
    on_workers: OnWorkers | None = None,
    **changes: Any,
) -> AblationResult:
    """Run every row of a suite over stories, and say what the differences support; no frame is drawn twice.

    Args:
        stories: A JSON Lines file, a record, a text, a folder of them, or records.
        settings: Settings, or the name of a preset; else the environment's and the defaults.
        suite: A suite by name, or a YAML file of your own.
        rows: Only these rows of the suite.
        lock: The lock that `tune` wrote; without one the table says that it is unfrozen.
        human: People's judgments of the boards (CSV or JSON Lines), for the human columns.
        join: Folders of ablations of the same suite and settings; stories that are whole there are taken over.
        out: The folder; `out/SUITE` unless told.
        budget: Limits over the calls and dollars of judges and image services.
        on_progress: Hears each story's id, how many stories are done, and of how many.
        on_workers: Hears how the work stands of several workers, or of models that take turns, and who is lost.
        **changes: Single settings, and what `StudyOptions` has: `split`, `ids`, `reference`, `resamples`, `metrics`,
            `workers`, `cluster`.

    Returns:
        The table with its comparisons and conclusion; the files, with `report.html`, are in `result.out`.

    Raises:
        UsageError: Stories, suite, a setting or the folder are wrong; nothing was drawn or asked.
        KathaError: The work failed; call again to go on.

    Example:
        >>> ablate("stories.jsonl", suite="length", rows=["base", "full"], out="out/length").table
    """
    own, config, chosen, records = _suite_over(stories, settings, suite, rows, changes)
    plugins = _measuring(config, budget, records)
    config, frozen = _under(lock, config, plugins, records, changes)
    job = AblationJob(records, chosen, config, plugins, frozen, own.resamples, strict=rows is not None, human=human)
    folder, counted = Path(out or f"out/{chosen.name}"), _counted(on_progress, len(records))
    with own.fleet(budget, on_workers) or nullcontext() as fleet:
        heard, others = on_workers or unheard, [*map(Path, join)]
        result = run_ablation(job, folder, on_story=counted, fleet=fleet, heard=heard, join=others)
    write_ablation_report(measure_beside(result.out, own.metrics, config, budget))
    write_tables(result.out, ablation_tables(result.table))
    return result


def power_of_suite(
    stories: Stories,
    settings: Settings | str | None = None,
    *,
    suite: str = "length",
    rows: Sequence[str] | None = None,
    **changes: Any,
) -> str:
    """Return in a sentence the smallest difference that a suite can show at these stories, before anything is drawn.

    Raises:
        UsageError: Stories, suite or a setting are wrong.
    """
    _, _, chosen, records = _suite_over(stories, settings, suite, rows, changes)
    return planned(chosen, len(records))


def _suite_over(
    stories: Stories, settings: Settings | str | None, suite: str, rows: Sequence[str] | None, changes: dict[str, Any]
) -> tuple[StudyOptions, Settings, Suite, list[StoryRecord]]:
    """Return the study's options, the settings, the suite and its stories, all checked."""
    own, rest = split_settings(StudyOptions, changes)
    config = settings_for(settings, rest)
    require_metrics(own.metrics, config)
    chosen = choose_suite(suite, config, rows, own.reference)
    require_drawers(rest, [config.renderer, config.bridge_renderer, *(row.renderer for row in chosen.rows)])
    records = choose_stories(read_records(stories, config.mapping), own.split, own.ids, stories)
    return own, config, chosen, records


def _under(
    lock: Path | str | None, config: Settings, plugins: Plugins, records: Sequence[StoryRecord], changes: dict[str, Any]
) -> tuple[Settings, dict[str, str | None] | None]:
    """Return the settings under a lock, and what the table says of it; as they are without one."""
    if lock is None:
        return config, None
    frozen = freeze(config, Path(lock), plugins, records, given_names(changes))
    return frozen, {"file": Path(lock).name, "sha256": frozen.lock}


def _measuring(config: Settings, budget: Budget | None, records: Sequence[StoryRecord]) -> Plugins:
    """Return the plug-ins of a study, whose judges can measure its stories.

    Raises:
        UsageError: they cannot; or see `load_plugins`.
    """
    plugins = load_plugins(config, budget)
    require_measurable(records, plugins.judges.values(), plugins.planner)
    return plugins


def choose_suite(name: str, config: Settings, rows: Sequence[str] | None, reference: str | None) -> Suite:
    """Return the suite with the rows that are asked for, each held against the reference.

    Raises:
        UsageError: there is no such suite or row.
    """
    chosen = load_suite(name).for_judges(config.judges)
    chosen = chosen.against_row(reference) if reference is not None else chosen
    if rows is not None and not rows:
        names = ", ".join(row.name for row in chosen.rows)
        raise UsageError("--rows names no row.", hint=f"The suite {chosen.name!r} has: {names}.")
    return chosen.only(tuple(rows)) if rows is not None else chosen


@recordable
def compare(
    stories: Stories,
    settings: Settings | str | None = None,
    *,
    renderers: Sequence[str] = (),
    planners: Sequence[str] = (),
    modes: Sequence[str] = (),
    methods: Path | str | Sequence[Method] | None = None,
    out: Path | str = "out/compare",
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
    on_workers: OnWorkers | None = None,
    batch: bool = False,
    **changes: Any,
) -> CompareResult:
    """Compare renderers (or planners, or modes), on the same plans and questions, by what their boards lose (STG).

    Args:
        stories: A JSON Lines file, a record, a text, a folder of them, or records.
        settings: Settings, or the name of a preset; else the environment's and the defaults.
        renderers: The renderers to compare.
        planners: The planners to compare.
        modes: The repair modes to compare; `base` unless told.
        methods: A YAML list of methods, each with options of its own, or the methods themselves.
        out: The folder of the comparison.
        budget: Limits over the calls and dollars of judges and image services.
        on_progress: Hears each method and story that was drawn, how many are done, and of how many.
        on_workers: Hears how the work stands of several workers, or of models that take turns, and who is lost.
        batch: Have image services draw scenes and portraits in batches: within a day, at half of the price.
        **changes: Single settings, and what `StudyOptions` has: `split`, `ids`, `reference`, `resamples`, `metrics`,
            `workers`, `cluster`.

    Returns:
        The table of methods and comparisons; the files, with `report.html`, are in `result.out`.

    Raises:
        UsageError: Stories, methods, a setting or the folder are wrong; nothing was drawn or asked.
        KathaError: The work failed; call again to go on.

    Example:
        >>> result = compare("stories.jsonl", renderers=["sketch", "sketch:ink"], seeds=(42, 123))
        >>> result.table
    """
    own, rest = split_settings(StudyOptions, changes)
    options = rest.pop("renderer_options", None)
    config = settings_for(settings, {**rest, "mode": "base"})
    require_metrics(own.metrics, config)
    records = choose_stories(read_records(stories, config.mapping), own.split, own.ids, stories)
    found = choose_methods(config, methods, (planners, renderers, modes), options)
    require_drawers(changes, [name for one in found for name in (one.config.renderer, one.config.bridge_renderer)])
    command, alike = ("katha", *sys.argv[1:]), _prepare_alike(stories)
    against = require_reference(own.reference, [one.name for one in found])
    job = CompareJob(records, found, config, alike, own.resamples, command=command, budget=budget, reference=against)
    require_measurable(job.records, job.judges.values())
    told, heard = _counted(on_progress, len(job.records) * len(found)), on_workers or unheard
    with own.fleet(budget, on_workers) or nullcontext() as fleet:
        result = comparing.run_comparison(job, Path(out), on_story=told, fleet=fleet, heard=heard, batch=batch)
    write_compare_report(measure_beside(result.out, own.metrics, config, budget))
    write_tables(result.out, compare_tables(result.table))
    return result


@recordable
def tune(
    stories: Stories,
    settings: Settings | str | None = None,
    *,
    split: str | None = None,
    tried: int = 10_000,
    resamples: int = 2_000,
    lock: Path | str = "compass.lock.yaml",
    keep: bool = False,
    out: Path | str = "out/tune",
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
    **changes: Any,
) -> tuning.TuneResult:
    """Choose candidate count, weights and thresholds on validation stories, and freeze them with what they rest on.

    Args:
        stories: A JSON Lines file, a record, a text, a folder of them, or records.
        settings: Settings, or the name of a preset; else the environment's and the defaults.
        split: Tune on this split; `validation` where stories carry splits. The others are frozen unseen.
        tried: How many settings of the compass are tried.
        resamples: Bootstrap resamples of stories.
        lock: Where the lock is written, if the choice is shown to be better than the settings before.
        keep: Write the lock in any case.
        out: The folder of features and of the curve, with `report.html`.
        budget: Limits over the calls and dollars of judges and image services.
        on_progress: Hears each story's id, how many stories are done, and of how many.
        **changes: Single settings by name, over `settings`.

    Returns:
        Where the lock is (None where nothing better was found), and how it was chosen.

    Raises:
        UsageError: Stories, a setting or the folder are wrong, or a story is of a test split.
        KathaError: The work failed; call again to go on.

    Example:
        >>> result = tune("stories.jsonl", seeds=(42, 123), lock="compass.lock.yaml")
        >>> run_story("test.jsonl#fox", lock=result.lock)
    """
    config = settings_for(settings, changes)
    require_drawers(changes, [config.renderer, config.bridge_renderer])
    refuse_overwriting(Path(lock), _read_files(stories))
    records = read_records(stories, config.mapping)
    wanted = split or ("validation" if any(record.split for record in records) else None)
    chosen = choose_stories(records, wanted, source=stories)
    inside, plugins = {record.story_id for record in chosen}, _measuring(config, budget, chosen)
    job = tuning.TuneJob(
        chosen,
        [record for record in records if record.story_id not in inside],
        config,
        settings=tried,
        resamples=resamples,
        given=plugins,
        keep=keep,
    )
    result = tuning.tune(job, Path(out), Path(lock), on_story=_counted(on_progress, len(chosen)))
    write_tuning_report(Path(out))
    write_tables(Path(out), tuning_tables(result.chosen))
    return result


def choose_methods(
    config: Settings,
    methods: Path | str | Sequence[Method] | None,
    varied: tuple[Sequence[str], Sequence[str], Sequence[str]],
    options: Any,
) -> list[Method]:
    """The methods that are listed, or every planner with every renderer in every mode.

    Raises:
        UsageError: both are given.
    """
    if methods is None:
        given = dict(options) if isinstance(options, Mapping) else read_options(options or ())
        return cross_methods(config, *varied, given)
    if any(varied) or options:
        raise UsageError(
            "--methods names the methods already.",
            hint="Leave --renderer, --planner, --mode and --renderer-option out.",
        )
    return read_methods(Path(methods), config) if isinstance(methods, (str, Path)) else list(methods)


def _prepare_alike(stories: Stories) -> Callable[[Sequence[StoryRecord]], list[StoryRecord]]:
    """Questions, options and halves for the stories: the same for every method."""
    complete = prepare_stories(_source(stories))

    def prepare(records: Sequence[StoryRecord]) -> list[StoryRecord]:
        return [
            record.model_copy(update={"recoverability_questions": assign_roles(record.recoverability_questions, 42)})
            for record in complete(records)
        ]

    return prepare


def read_records(stories: Stories, mapping: Path | None = None) -> list[StoryRecord]:
    """Return the stories of a file, a folder or a list; `mapping`: how records name things."""
    return load_stories(stories, mapping) if isinstance(stories, (str, Path)) else list(stories)


def _read_files(stories: Stories) -> list[Path]:
    """The files that stories were read from."""
    path = Path(str(stories).partition("#")[0]) if isinstance(stories, (str, Path)) else None
    return [] if path is None else list(path.iterdir()) if path.is_dir() else [path]


def _source(stories: Stories) -> str | Path | None:
    """The file that stories came from: contrastive variants may lie beside it."""
    return stories if isinstance(stories, (str, Path)) else None


def _counted(on_progress: OnProgress | None, total: int) -> Callable[[str, int], None] | None:
    return None if on_progress is None else lambda story, done: on_progress(story, done, total)
