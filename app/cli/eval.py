"""`katha eval`: judge boards that are there, by every question, judge and condition."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from katha.app.cli import options

if TYPE_CHECKING:
    from katha.config import RunConfig
    from katha.experiments.evaluate import EvalJob

Boards = Annotated[
    list[str],
    typer.Option("--boards", help="DIR or NAME=DIR, a folder with one folder per story. Several are compared."),
]
Out = Annotated[Path, typer.Option("--out", help="The folder of the evaluation.")]
Controls = Annotated[
    str | None, typer.Option("--controls", help="Any of blank, shuffled, foreign, repeat, with commas; or all.")
]
MaxCalls = Annotated[int | None, typer.Option("--max-calls", min=0, help="Stop cleanly after so many calls.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="Stop cleanly before so many US dollars.")]
Questions = Annotated[
    str | None, typer.Option("--questions", help="all, reporting or steering; reporting where stories carry roles.")
]
EvaluatorName = Annotated[
    str, typer.Option("--evaluator", help="kathatrace, or a baseline: object-overlap, generic-qa, tifa, dsg, ...")
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", min=1, help="At most so many calls to a server at once; 16 unless told.")
]
Resamples = Annotated[int, typer.Option("--resamples", min=0, help="Bootstrap resamples for the intervals.")]


def evaluate(
    stories: Annotated[str, typer.Argument(help="A JSON Lines file, a record, or a folder of them.")],
    boards: Boards,
    out: Out,
    judge: options.Judges = None,
    judge_option: options.JudgeOptions = None,
    answers: options.Answers = None,
    matching: options.Matching = None,
    questions: Questions = None,
    controls: Controls = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    base_url: options.BaseUrl = None,
    verify_reuse: options.VerifyReuse = None,
    concurrency: Concurrency = None,
    variant: options.Variant = None,
    preset: options.Preset = None,
    evaluator: EvaluatorName = "kathatrace",
    variants: Annotated[
        Path | None, typer.Option("--variants", help="contrastive_variants.jsonl: ask its pairs, too (PairAcc).")
    ] = None,
    scan_words: Annotated[
        bool, typer.Option("--scan-words", help="Look for words of the story drawn into the pictures (OCR).")
    ] = False,
    resamples: Resamples = 10_000,
    batch: Annotated[
        bool, typer.Option("--batch", help="Ask APIs by their batches: cheaper, within a day. The command waits.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask nothing; print calls, tokens and dollars.")] = False,
    as_json: options.Json = False,
) -> None:
    """Judge the boards of STORIES under text, image and text+image, and write scores and a report.

    The same command again asks nothing. After a kill, or with a larger budget, it goes on where it stopped.
    """
    from katha.app.cli.summary import tell_estimate, tell_result
    from katha.config import cache_folder, resolve
    from katha.eval_bridge.judging.budget import Budget
    from katha.eval_bridge.packets.images import WordScanner
    from katha.experiments.evaluate import estimate
    from katha.experiments.evaluate import evaluate as run
    from katha.store import Store

    flags = {
        "judges": tuple(judge) if judge else None,
        "judge_options": judge_option or None,
        "answers": answers,
        "matching": matching,
        "variant": variant,
        "base_url": base_url,
        "verify_reuse": verify_reuse,
    }
    job = _job(
        stories, boards, resolve(flags, preset=preset), questions, controls, concurrency, resamples, evaluator, variants
    )
    if scan_words:
        job = replace(job, scanner=WordScanner())
    with Store(cache_folder(), owner=str(out)) as store, _progress(len(job.records), quiet=as_json) as on_story:
        if dry_run:
            sums, asked = estimate(job, store, on_story, batch=batch)
            tell_estimate(sums, asked.invalid, as_json=as_json)
            return
        budget, told = Budget(max_calls, max_cost), None if as_json else _tell_batch
        result = run(job, out, store, budget=budget, on_story=on_story, batch=batch, on_batch=told)
    from katha.app.reports.eval_page import write_eval_report

    page = out / "report.html"
    path = page if result.reused and page.is_file() else write_eval_report(out)
    tell_result(result, path, as_json=as_json)


def _job(
    stories: str,
    boards: list[str],
    config: RunConfig,
    questions: str | None,
    controls: str | None,
    concurrency: int | None,
    resamples: int,
    evaluator: str,
    variants: Path | None,
) -> EvalJob:
    """Check every option before any work."""
    from katha.errors import UsageError
    from katha.eval_bridge.bench.boards import parse_boards
    from katha.eval_bridge.judging.make import make_judges
    from katha.eval_bridge.matching.match import require_rule
    from katha.eval_bridge.matching.rules import make_decider
    from katha.eval_bridge.packets.instructions import require_variant
    from katha.eval_bridge.questions.evaluators import load_evaluator
    from katha.eval_bridge.scoring.controls import CONTROLS, parse_controls
    from katha.experiments.evaluate import EvalJob, name_judges
    from katha.experiments.inputs import choose_questions, prepare_stories, read_pairs, read_stories
    from katha.experiments.judging import EvalSettings

    require_rule(config.matching)
    require_variant(config.variant)
    spec = load_evaluator(evaluator)
    if not spec.own and config.answers != "choice":
        raise UsageError(f"The evaluator {evaluator!r} asks for choices.", hint="Leave --answers free out.")
    methods = parse_boards(boards, reserved=CONTROLS)
    chosen = parse_controls(controls)
    records = read_stories(stories)
    settings = EvalSettings(
        answers=config.answers,
        variant=config.variant,
        matching=config.matching,
        questions=choose_questions(questions if spec.own else "all", records),
        controls=chosen,
        resamples=resamples,
        evaluator=evaluator,
    )
    judges = make_judges(
        config.judges,
        base_url=config.base_url,
        verify_reuse=config.verify_reuse,
        concurrency=concurrency,
        options=config.judge_options,
    )
    return EvalJob(
        records=records,
        methods=methods,
        judges=name_judges(judges),
        settings=settings,
        prepare=prepare_stories(stories, evaluator=spec),
        variants=read_pairs(variants, records, spec),
        decider=make_decider(config.matching, config.base_url),
        command=("katha", *sys.argv[1:]),
    )


def _tell_batch(judge: str, ended: int, of: int) -> None:
    typer.echo(f"{judge}: {ended} of {of} batches have ended. (Stopping this command does not stop them.)", err=True)


@contextmanager
def _progress(total: int, *, quiet: bool) -> Iterator[Callable[[str, int], None] | None]:
    """A bar over the stories on standard error; None when `quiet` or when that is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Judging", total=total)
        yield lambda story, done: bar.update(task, completed=done, description=f"Judging {story}")
