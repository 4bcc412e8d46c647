"""The verbs over many stories: judge boards that are there, run a suite of modes, compare methods, tune the compass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from pydantic import BaseModel

import katha
from katha.app.cli.console import (
    comparison,
    echo_json,
    end,
    interval,
    points,
    progress_bar,
    tell_needs,
    tell_order,
    tell_outcome,
    tell_table,
    workers_view,
)
from katha.app.cli.metrics import tell_measures
from katha.app.cli.options import (
    JUDGED,
    Boards,
    DryRun,
    GivenOptions,
    Json,
    Lock,
    Resamples,
    Stories,
    options_from,
    with_recordings,
)
from katha.app.evaluator_tables import evaluate_table
from katha.app.needs import needs_of_ablation, needs_of_comparison, needs_of_tuning
from katha.app.reports.metrics_page import read_measures
from katha.app.reports.page import change, guessed, own_numbers, p_value, unscored
from katha.app.reports.study_pages import advice, people_words
from katha.app.studies import estimate, power_of_suite, read_records
from katha.config import Settings
from katha.errors import UsageError
from katha.eval_bridge.judging.entrance import untested
from katha.eval_bridge.matching.rules import UNSETTLED
from katha.eval_bridge.scoring.gate import CANNOT
from katha.experiments.comparison.compare import warnings_of
from katha.experiments.inputs.stories import EvalOptions, StudyOptions
from katha.experiments.offline.evaluator_tables import load_table
from katha.experiments.runner import ExperimentResult, ExperimentState
from katha.schema.tables import AblationRow, AblationTable, CompareTable, HumanColumns, TuningResult
from katha.usual import MATCHING_NOTES

if TYPE_CHECKING:
    from katha.eval_bridge.judging.budget import CallEstimate
    from katha.experiments.evaluation.evaluate import EvalResult

_VARIED = (
    "steering_judges",
    "planner",
    "planner_options",
    "renderer",
    "renderer_options",
    "mode",
    "review",
    "verify_reuse",
)
_BOARD = "  {:<22}{:>8}{:>8}{:>8}{:>8}{:>18}{:>16}"
_ROW = "  {:<22}{:>7}{:>7}{:>8}{:>17}{:>8}{:>7}{:>7}{:>14}{:>8}"
_METHOD = "  {}{:>8}{:>8}{:>9}{:>7}{:>8}{:>17}{:>7}{:>7}{:>16}"
_SHOWN = 8

S = TypeVar("S", bound=ExperimentState)
T = TypeVar("T", bound=BaseModel)


def _conclude(
    result: ExperimentResult[S, T], tell: Callable[[T], None], as_json: bool, told: Mapping[str, object] | None = None
) -> None:
    """Print the table that a study gave, as text or as one JSON object, and leave with the study's exit code."""
    report, measured = str(result.out / "report.html"), read_measures(result.out)
    if as_json:
        table = {"table": result.table.model_dump(mode="json")}
        table |= {"metrics": measured.model_dump(mode="json")} if measured is not None else {}
        echo_json({"out": str(result.out), "report": report, **(told or {}), **table})
    else:
        tell(result.table)
        if measured is not None:
            tell_measures(measured)
        tell_outcome(result.outcome)
        typer.echo(f"Report: {report}")
    end(result.outcome, result.status)


@with_recordings
@options_from(Settings, only=(*JUDGED, "verify_reuse"))
@options_from(EvalOptions, into="options", preset=False, limits=False)
def evaluate(
    stories: Stories,
    boards: Boards,
    out: Annotated[Path, typer.Option("--out", help="The folder of the evaluation.")],
    given: GivenOptions,
    options: GivenOptions,
    table: Annotated[
        int | None,
        typer.Option("--table", help="3, 54, 58, 60 or 72: evaluate as each of the table's rows asks, too."),
    ] = None,
    human: Annotated[
        Path | None, typer.Option("--human", help="With --table: people's judgments (failing, human_score, right).")
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Judge the boards of STORIES under text, image and text+image, and write scores and a report.

    The same command again asks nothing. After a kill, or with a larger budget, it goes on where it stopped.
    """
    changes = {**given.changes, **options.changes}
    if table is not None:
        _evaluate_table(stories, boards, out, given, changes, table=table, human=human, plain=not as_json, dry=dry_run)
        return
    if human is not None:
        raise UsageError("--human goes with --table.", hint="For scores beside people: katha score --human FILE.")
    with progress_bar("Judging", "Judging {}", quiet=as_json) as on_progress:
        if dry_run:
            found = estimate(
                stories, boards, out, given.preset, on_progress=on_progress, on_order=tell_order, **changes
            )
            _tell_estimate(*found, as_json)
            return
        result = katha.evaluate(
            stories,
            boards,
            out,
            given.preset,
            budget=given.budget,
            on_progress=on_progress,
            on_workers=workers_view(quiet=as_json),
            on_batch=None if as_json else _tell_batch,
            on_order=tell_order,
            **changes,
        )
    _tell_evaluation(result, out / "report.html", as_json)


def _evaluate_table(
    stories: str,
    boards: list[str],
    out: Path,
    given: GivenOptions,
    changes: Mapping[str, Any],
    *,
    table: int,
    human: Path | None,
    plain: bool,
    dry: bool,
) -> None:
    """Evaluate by each evaluator of a table, and print the table; or what that would ask."""
    if dry:
        for name, asked in load_table(table).asked_of(read_records(stories)).studies.items():
            if plain:
                typer.echo(f"{name}:")
            told = {**changes, **asked}
            _tell_estimate(*estimate(stories, boards, out / name, given.preset, **told), not plain)
        return
    with progress_bar("Judging", "Judging {}", quiet=not plain) as on_progress:
        made = evaluate_table(
            stories,
            boards,
            out,
            given.preset,
            table=table,
            human=human,
            budget=given.budget,
            on_progress=on_progress,
            on_workers=workers_view(quiet=not plain),
            **changes,
        )
    if plain:
        tell_table(made.table)
        typer.echo(f"Tables: {out}")
    else:
        echo_json({"out": str(out), "table": made.rows.model_dump(mode="json")})
    for outcome in made.outcomes.values():
        if plain:
            tell_outcome(outcome)
    for outcome in made.outcomes.values():
        end(outcome)


def _tell_batch(judge: str, ended: int, of: int) -> None:
    typer.echo(f"{judge}: {ended} of {of} batches have ended. (Stopping this command does not stop them.)", err=True)


def _tell_estimate(sums: Mapping[str, CallEstimate], invalid: Mapping[str, Mapping[str, str]], as_json: bool) -> None:
    """Print what asking would take, judge by judge."""
    if as_json:
        keys = ("calls", "entrance", "reused", "input_tokens", "output_tokens", "cost")
        judges = {name: {key: getattr(item, key) for key in keys} for name, item in sums.items()}
        echo_json({"dry_run": True, "judges": judges, "invalid": invalid})
        return
    for name, item in sums.items():
        cost = "price unknown" if item.cost is None else f"about ${item.cost:.2f}"
        typer.echo(
            f"  {name}: {item.calls:,} calls ({item.reused:,} more are in the cache), about {item.input_tokens:,} "
            f"tokens in and {item.output_tokens:,} out, {cost}"
        )
        if item.entrance:
            typer.echo(
                f"    {item.entrance} of the calls are the entrance test, asked once; --no-entrance leaves it out."
            )
    _tell_invalid(invalid)
    typer.echo("Nothing was asked.")


def _tell_evaluation(result: EvalResult, report: Path, as_json: bool) -> None:
    """Print the outcome of an evaluation, as text or as one JSON object."""
    scores = result.scores
    methods = {name: own_numbers(scores, name) for name in scores.methods}
    state, results = result.state, result.state.done
    if as_json:
        told = {"stories", "questions", "statuses", "calls", "kept", "budget", "failures"}
        told |= {"invalid", "leakage", "controls", "entrance"}
        found = {
            "out": str(result.out),
            "report": str(report),
            "reused": result.reused,
            "methods": {name: row._asdict() for name, row in methods.items()},
        }
        echo_json(found | {"status": state.status} | results.model_dump(mode="json", include=told))
        end(result.outcome)
        return
    typer.echo(_BOARD.format("board", "stories", "text", "image", "STG", "95%", "valid"))
    for name, row in methods.items():
        entry = scores.methods[name]
        ci = entry.judges[row.judge].filtered.ci95.stg if row.judge is not None and row.stg is not None else None
        numbers = [points(row.text), points(row.image), points(row.stg), f"[{ci[0]:.1f}, {ci[1]:.1f}]" if ci else "-"]
        typer.echo(_BOARD.format(name[:22], entry.stories, *numbers, f"{row.n_valid} of {row.n_questions}"))
    if any(entry.filtered.ci95.stg for method in scores.methods.values() for entry in method.judges.values()):
        typer.echo(f"  95%: {scores.bootstrap.intervals}, over stories.")
    matched = (note for note in scores.notes if note.startswith(MATCHING_NOTES) or UNSETTLED in note)
    for note in (*guessed(scores), *unscored(scores), *matched):
        typer.echo(note)
    _tell_invalid(results.invalid)
    for item in results.controls:
        typer.echo(f"Control {item.control} ({item.judge}): {item.reading}")
    for name, entrance in results.entrance.items():
        typer.echo(entrance.told(name) if entrance is not None else untested(name))
    leakage = results.leakage
    typer.echo(f"Leakage scan: {leakage.packets} image-only packets, {len(leakage.found)} found.")
    for name, call in results.calls.items():
        if call.reuse is not None:
            checked, flipped = call.reuse.checked, call.reuse.flipped
            typer.echo(f"Prefix reuse ({name}): {checked:,} replies were asked again without it, {flipped:,} changed.")
        if call.prefix_cache is not None and (share := call.prefix_cache.told(name)) is not None:
            typer.echo(share)
    if leakage.pictures_read:
        typer.echo(f"Words drawn into pictures: {len(leakage.drawn)} lines in {leakage.pictures_read} pictures.")
    tell_outcome(result.outcome)
    if state.status == "budget_stopped":
        typer.echo("The budget stopped it. The same command with a larger one goes on where it stopped.")
    typer.echo(f"Report: {report}")
    end(result.outcome)


def _tell_invalid(invalid: Mapping[str, Mapping[str, str]]) -> None:
    for name, reasons in invalid.items():
        for story, reason in list(reasons.items())[:_SHOWN]:
            typer.echo(f"  {name}, {story}: not judged, {reason.removesuffix('.')}.", err=True)
        if len(reasons) > _SHOWN:
            typer.echo(f"  {name}: {len(reasons) - _SHOWN} more stories were not judged; see eval.json.", err=True)


@with_recordings
@options_from(Settings, leave_out=("mode", "review"))
@options_from(StudyOptions, into="options", preset=False, limits=False)
def ablate(
    stories: Stories,
    given: GivenOptions,
    options: GivenOptions,
    suite: Annotated[str, typer.Option("--suite", help="A suite by name, or a YAML file of your own.")] = "length",
    rows: Annotated[str | None, typer.Option("--rows", help="Only these rows of the suite, with commas.")] = None,
    lock: Lock = None,
    human: Annotated[
        Path | None,
        typer.Option("--human", help="People's judgments of the boards (CSV or JSON Lines): human columns."),
    ] = None,
    join: Annotated[
        list[Path] | None,
        typer.Option("--join", help="An ablation of the same suite and settings: its stories are taken; repeat it."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder; out/SUITE unless told.")] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Run every row of a suite over STORIES, and say what the differences support.

    Each distinct frame is drawn once and each distinct question asked once, however the rows overlap. The same command
    again does nothing; after a kill it goes on.
    """
    named = [part.strip() for part in rows.split(",") if part.strip()] if rows is not None else None
    own = {**given.changes, **options.changes}
    if dry_run:
        needs = needs_of_ablation(stories, given.preset, suite=suite, rows=named, **own)
        tell_needs(needs, as_json, locked=lock is not None)
        return
    typer.echo(power_of_suite(stories, given.preset, suite=suite, rows=named, **own), err=True)
    with progress_bar("Running", "After {}", quiet=as_json) as on_progress:
        result = katha.ablate(
            stories,
            given.preset,
            suite=suite,
            rows=named,
            lock=lock,
            human=human,
            join=join or (),
            out=out,
            budget=given.budget,
            on_progress=on_progress,
            on_workers=workers_view(quiet=as_json),
            **own,
        )
    _conclude(result, _tell_ablation, as_json)


def _tell_ablation(table: AblationTable) -> None:
    typer.echo(_ROW.format("row", "image", "STG", "change", "95% interval", "p", "own", "raw", "valid", "frames"))
    for row in table.rows:
        typer.echo(_line(row))
    typer.echo(
        "  image, STG, change: on the questions valid for all rows scored alike; own, raw: STG on the row's own valid "
        f"questions and on every scored one; valid: common/own/scored. 95%: {table.intervals}, over stories."
    )
    for row in table.rows:
        if row.human is not None:
            typer.echo(_people(row.mode, row.human))
    budget = table.budget
    typer.echo(
        f"Drawn: {budget.frames_distinct:,} frames (naively {budget.frames_naive:,}). "
        f"Asked: {budget.questions_distinct:,} questions (naively {budget.questions_naive:,})."
    )
    for note in table.notes:
        typer.echo(f"Note: {note}")
    typer.echo(f"Conclusion: {table.conclusion.text}")
    for sentence in table.conclusion.sentences:
        typer.echo(f"  {sentence}")
    if not table.frozen:
        typer.echo("Unfrozen: the settings are not those of a lock (see `katha tune`).")


def _line(row: AblationRow) -> str:
    if row.not_run is not None:
        return f"  {row.mode:<22} not run: {row.not_run}"
    shown = row.headline
    if shown is None:
        return _ROW.format(row.mode, *"-" * 9)
    numbers = (points(shown.image), points(shown.stg), change(shown.delta_stg, "-"))
    tested = (interval(shown.ci95, "+.1f"), p_value(shown.p_corrected, "-"))
    beside = (points(row.stg), points(row.raw.stg if row.raw is not None else None))
    valid = f"{shown.n}/{row.valid}/{row.scored}"
    return _ROW.format(row.mode, *numbers, *tested, *beside, valid, "-" if row.frames is None else f"{row.frames:.2f}")


def _people(mode: str, human: HumanColumns) -> str:
    """Return what people say of a row's boards, where they were asked."""
    words = ", ".join(f"{name} {value}" for name, value in people_words(human).items())
    return f"  {mode}, people: {words or 'nobody judged these boards'}"


@with_recordings
@options_from(Settings, leave_out=_VARIED)
@options_from(StudyOptions, into="options", preset=False, limits=False)
def compare(
    stories: Annotated[str, typer.Argument(help="A JSON Lines file, a record, a text, or a folder of them.")],
    given: GivenOptions,
    options: GivenOptions,
    renderer: Annotated[
        list[str] | None, typer.Option("--renderer", help="A renderer to compare; give it several times.")
    ] = None,
    planner: Annotated[
        list[str] | None, typer.Option("--planner", help="A planner to compare; give it several times.")
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option("--mode", help="A repair mode to compare; base unless told.")
    ] = None,
    methods: Annotated[
        Path | None, typer.Option("--methods", help="A YAML list of methods, each with options of its own.")
    ] = None,
    renderer_option: Annotated[
        list[str] | None,
        typer.Option("--renderer-option", help="KEY=VALUE for those of the renderers that have it."),
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="Have image services draw in batches: within a day, at half of the price.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="The folder of the comparison.")] = Path("out/compare"),
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Compare renderers (or planners, or modes) on STORIES by what their boards lose of the story (STG).

    Every method gets the same plans, questions and judges. A story that a method cannot draw is counted as invalid,
    with the reason. The same command again does nothing; after a kill it goes on.
    """
    varied = (planner or (), renderer or (), mode or ())
    own = {**given.changes, **options.changes, "renderer_options": renderer_option}
    if dry_run:
        needs = needs_of_comparison(stories, given.preset, methods=methods, varied=varied, **own)
        tell_needs(needs, as_json)
        return
    with progress_bar("Drawing", quiet=as_json) as on_progress:
        result = katha.compare(
            stories,
            given.preset,
            planners=varied[0],
            renderers=varied[1],
            modes=varied[2],
            methods=methods,
            out=out,
            budget=given.budget,
            on_progress=on_progress,
            on_workers=workers_view(quiet=as_json),
            batch=batch,
            **own,
        )
    _conclude(result, _tell_comparison, as_json, {"reused": result.reused})


def _tell_comparison(table: CompareTable) -> None:
    width = max(8, *(len(row.name) for row in table.methods))
    head = ("boards", "frames", "invalid", "image", "STG", "95% interval", "own", "raw", "valid")
    typer.echo(_METHOD.format("method".ljust(width), *head))
    for row in table.methods:
        shown = (points(row.common_valid_image), points(row.common_valid_stg), interval(row.common_valid_ci95))
        valid = "-" if row.n_scored is None else f"{row.n_common}/{row.n_valid}/{row.n_scored}"
        beside = (points(row.filtered_stg), points(row.raw_stg), valid)
        frames = "-" if row.frames is None else f"{row.frames:.1f}"
        invalid = f"{points(row.invalid_rate)}%"
        typer.echo(_METHOD.format(row.name.ljust(width), row.boards, frames, invalid, *shown, *beside))
    for note in table.notes:
        if CANNOT in note:
            typer.echo(f"  {note}")
    for row in table.methods:
        if row.none is not None and row.gain_image is not None:
            rest = f"STG of what was not guessed {points(row.unguessed_stg)}"
            added = f"the images add {change(row.gain_image)} points"
            typer.echo(f"  {row.name}: guessed without any evidence, {points(row.none)}% are right; {added}; {rest}.")
    typer.echo(
        "  image, STG: on the questions valid for every method; own, raw: STG on the method's own valid questions and "
        f"on every scored one; valid: common/own/scored. 95%: {table.intervals}, over stories."
    )
    for pair in table.comparisons:
        if pair.headline and pair.difference is not None:
            typer.echo(f"  {comparison(pair)}")
    for note in warnings_of(table):
        typer.echo(f"  {note}")
    for row in table.methods:
        if row.signature:
            typer.echo(f"  {row.name} loses most: {', '.join(row.signature)}.")
    for item in table.invalid[:_SHOWN]:
        typer.echo(f"  {item.board}, {item.story_id}: invalid, {item.reason}", err=True)
    if len(table.invalid) > _SHOWN:
        typer.echo(f"  and {len(table.invalid) - _SHOWN} more invalid boards; see table.json.", err=True)
    if table.status != "finished":
        typer.echo("Some boards or answers are missing. The same command asks for them again.")


@with_recordings
@options_from(Settings, leave_out=("mode", "review"))
def tune(
    stories: Stories,
    given: GivenOptions,
    split: Annotated[
        str | None, typer.Option("--split", help="Tune on this split; the others are frozen unseen.")
    ] = None,
    settings: Annotated[int, typer.Option("--settings", min=1, help="How many settings are tried.")] = 10_000,
    resamples: Resamples = 2_000,
    lock: Annotated[
        Path, typer.Option("--lock", help="Where the lock is written, if something better is found.")
    ] = Path("compass.lock.yaml"),
    keep: Annotated[
        bool, typer.Option("--keep", help="Write the lock even if nothing better than the settings before is found.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="The folder of features and of the curve.")] = Path("out/tune"),
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Choose candidate count, weights and thresholds on validation STORIES, and freeze them with what they rest on.

    Stories are drawn and judged once; then thousands of settings a second are tried on what was measured. Where stories
    carry splits, `validation` is tuned on unless told.
    """
    if dry_run:
        tell_needs(needs_of_tuning(stories, given.preset, split=split, **given.changes), as_json)
        return
    with progress_bar("Running", "After {}", quiet=as_json) as on_progress:
        result = katha.tune(
            stories,
            given.preset,
            split=split,
            tried=settings,
            resamples=resamples,
            lock=lock,
            keep=keep,
            out=out,
            budget=given.budget,
            on_progress=on_progress,
            **given.changes,
        )
    chosen, report = result.chosen, out / "report.html"
    if as_json:
        written = str(result.lock) if result.lock is not None else None
        echo_json({"lock": written, "report": str(report), "tuning": chosen.model_dump(mode="json")})
    else:
        _tell_tuning(chosen, result.lock, report)
        tell_outcome(result.outcome)
    end(result.outcome, result.status)


def _tell_tuning(chosen: TuningResult, lock: Path | None, report: Path) -> None:
    typer.echo(f"Tried {chosen.tried:,} settings on {chosen.stories} stories in {chosen.seconds:.1f} s.")
    for name, value in chosen.setting.items():
        default = chosen.default[name]
        typer.echo(f"  {name:<18}{value:>8g}" + (f"   (was {default:g})" if value != default else ""))
    if chosen.unmeasured is None:
        _tell_gain(chosen)
    if warning := advice(chosen):
        typer.echo(f"  {warning}")
    if chosen.equally_good > 1:
        typer.echo(f"  {chosen.equally_good:,} settings reach the same; the cheapest is taken")
    for story, reason in chosen.invalid_stories.items():
        typer.echo(f"Left out: {story}: {reason}")
    for note in chosen.notes:
        typer.echo(f"Note: {note}")
    if lock is None:
        typer.echo("No lock was written: nothing better than the settings before was found. --keep writes one anyway.")
    else:
        typer.echo(f"Lock: {lock}")
    typer.echo(f"Report: {report}")


def _tell_gain(chosen: TuningResult) -> None:
    gain = chosen.gain
    span = f", 95% {interval(gain.ci95, '+.1f')}" if gain.ci95 else ""
    typer.echo(f"STG {points(chosen.stg)} on these stories, {points(chosen.default_stg)} with the old settings")
    typer.echo(f"  difference {points(gain.difference)}{span}; the choice itself is not in this interval")
    unseen = points(chosen.cross_validated)
    typer.echo(f"  on stories that the choice did not see ({chosen.folds} parts): {unseen}")
    words = {"common_valid": "common", "filtered": "own", "raw": "raw"}
    blocks = [
        f"{words[name]} {points(block.stg)} on {block.n} (before {points(block.default_stg)} on {block.default_n})"
        for name, block in chosen.blocks.items()
    ]
    typer.echo(f"  by questions: {'; '.join(blocks)}")
