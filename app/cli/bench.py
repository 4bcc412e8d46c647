"""The verbs of `katha bench`: check, count, divide and build benchmark files, and measure plans, matchers and
judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli.console import echo_json, end, points, progress_bar, tell_outcome
from katha.app.cli.options import JUDGED, GivenOptions, Json, Matching, Panels, Seed, options_from, with_recordings
from katha.app.cli.tables import tables
from katha.app.studies import remembered as ask_without_evidence
from katha.config import Settings, read_settings, resolve
from katha.errors import UsageError
from katha.eval_bridge.bench.convert import convert as convert_stories
from katha.eval_bridge.bench.publish import publish as publish_release
from katha.eval_bridge.bench.publish import require_repository
from katha.eval_bridge.bench.split import save_split
from katha.eval_bridge.bench.validate import Inspection, Summary
from katha.eval_bridge.matching.match import require_rule
from katha.eval_bridge.matching.report import measure_file
from katha.eval_bridge.matching.rules import folder_rule, make_decider, open_rule
from katha.eval_bridge.people.analysis import calibrate as compare
from katha.eval_bridge.people.ensemble import fit_ensemble
from katha.eval_bridge.people.judgments import read_judgments
from katha.eval_bridge.scoring.contrastive import iter_variants
from katha.eval_bridge.scoring.outcomes import collect
from katha.experiments.inputs.asking import Asking, AskingOptions, write_question_set
from katha.experiments.inputs.building import (
    BuildCounts,
    measure_planners,
    write_contrasts,
    write_mixed_set,
    write_story_questions,
    write_story_variants,
    write_vistorybench,
)
from katha.experiments.offline.scoring import read_archive, read_scored_stories
from katha.jsonio import refuse_overwriting, write_json
from katha.mapping import RecordMapping
from katha.planners.quality import MEASURES
from katha.schema.tables import JudgeMemory, Memory
from katha.usual import usual_rule

bench = typer.Typer(
    help="KathaBench-25K, or any file of its schema: check, count, divide; measure a matcher; compare with people.",
    no_args_is_help=True,
    add_completion=False,
)
bench.command()(tables)
_SHOWN = 40

Release = Annotated[Path, typer.Argument(help="A release's folder, or one of its files (.jsonl).")]


@bench.command()
def validate(
    path: Release,
    complete: Annotated[bool, typer.Option("--complete", help="A subset is a problem, too.")] = False,
    as_json: Json = False,
) -> None:
    """Check schema, links and counts. Every problem is printed; the exit code is 1 when there is one.

    A subset is fine: it is not measured by the full release's counts, and the last lines say what it is.
    """
    inspection = Inspection(path, complete=complete)
    kept: list[object] = []
    for problem in inspection.problems():
        if as_json:
            kept.append(asdict(problem))
        else:
            typer.echo(str(problem))
    summary = inspection.summary()
    if as_json:
        echo_json({"ok": not kept, "problems": kept} | {"summary": summary})
    else:
        for note in summary["notes"]:
            typer.echo(note)
        typer.echo(f"{summary['problems']:,} problems." if summary["problems"] else "No problem.")
    if summary["problems"]:
        raise typer.Exit(1)


@bench.command()
def stats(path: Release, as_json: Json = False) -> None:
    """Print the counts of the benchmark's tables, and what judging it costs (Tables 47 and 48)."""
    inspection = Inspection(path)
    for _ in inspection.problems():
        pass
    summary = inspection.summary()
    if as_json:
        echo_json(summary)
        _end_without_records(summary)
        return
    for title, counts in summary["tables"].items():
        typer.echo(title)
        for name, count in counts.items():
            typer.echo(f"  {name or 'not given':<26}{count:>8,}")
    if summary["budgets"]:
        typer.echo(f"{'judging, one judge':<20}{'stories':>9}{'panels':>9}{'questions':>11}{'judge calls':>13}")
    for name, row in summary["budgets"].items():
        cells = f"{row['stories']:>9,}{row['panels']:>9,}{row['questions']:>11,}{row['judge_calls']:>13,}"
        typer.echo(f"  {name:<18}{cells}")
    for note in summary["notes"]:
        typer.echo(note)
    if summary["problems"]:
        typer.echo(f"{summary['problems']:,} problems: see `katha bench validate {path}`.")
    _end_without_records(summary)


def _end_without_records(summary: Summary) -> None:
    """Leave with exit code 1 where nothing could be counted."""
    if not any(summary["files"].values()):
        raise typer.Exit(1)


@bench.command()
def convert(
    path: Release,
    out: Annotated[Path, typer.Option("--out", help="The stories in the released form, as JSON Lines.")],
    mapping: Annotated[
        Path | None, typer.Option("--mapping", help="A YAML file of keys and values: how your files name things.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write stories of other forms in the released one, and say what was assumed, with counts.

    What cannot be read is listed and left out; the exit code is then 1, and the others are written.
    """
    found = convert_stories(path, out, RecordMapping(mapping))
    if as_json:
        echo_json({"out": str(out), **asdict(found)})
    else:
        for problem in found.problems[:_SHOWN]:
            typer.echo(f"Left out: {problem}")
        if len(found.problems) > _SHOWN:
            typer.echo(f"and {len(found.problems) - _SHOWN} more; --json lists them all.")
        for sentence, count in found.assumed.items():
            typer.echo(f"  {count:>6,} of {found.records:,}: {sentence}")
        if found.without_questions:
            typer.echo(
                f"{len(found.without_questions):,} stories have no question, the first {found.without_questions[0]!r}."
            )
        typer.echo(f"{found.records:,} stories with {found.questions:,} questions: {out}")
    if found.problems:
        raise typer.Exit(1)


@bench.command()
def publish(
    path: Release,
    name: Annotated[str, typer.Option("--name", help="The repository on the Hugging Face Hub: ORGANISATION/NAME.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder, for `hf upload NAME OUT --repo-type dataset`.")],
    variants: Annotated[Path | None, typer.Option("--variants", help="Contrastive variants to go with it.")] = None,
    as_json: Json = False,
) -> None:
    """Lay stories out as a dataset of the Hugging Face Hub, with a card and `eval.yaml`. Nothing is sent.

    Stories of the hidden test stay out: their answers are not for a public place.
    """
    kept = list(iter_variants(variants)) if variants is not None else []
    made = publish_release(path, out, require_repository(name), kept)
    if as_json:
        echo_json({"out": str(out), **asdict(made)})
        return
    for split_name, count in made.stories.items():
        typer.echo(f"  {split_name:<14}{count:>7,} stories")
    if made.hidden:
        typer.echo(f"  {made.hidden:,} stories of the hidden test are left out.")
    typer.echo(f"{made.questions:,} questions, {made.variants:,} variants: {out}")


@bench.command()
def split(
    path: Release,
    out: Annotated[Path, typer.Option("--out", help="Where the split is written, as JSON.")] = Path("split.json"),
    seed: Annotated[int, typer.Option("--seed", help="The split depends on this and the ids alone.")] = 42,
    force: Annotated[bool, typer.Option("--force", help="Even if the stories or OUT have another split.")] = False,
    as_json: Json = False,
) -> None:
    """Divide stories into train, validation, public_test and hidden_test, alike in each narrative type."""
    made = save_split(path, out, seed=seed, force=force)
    if as_json:
        echo_json({"out": str(out), "seed": seed, "counts": made.counts})
        return
    for name, count in made.counts.items():
        typer.echo(f"  {name:<14}{count:>7,}")
    typer.echo(f"Split: {out}")


@bench.command()
def match(
    path: Annotated[Path, typer.Argument(help="Labelled pairs, one JSON object a line.")],
    rule: Annotated[
        str | None, typer.Option("--rule", "--matching", help="The matching rule to measure, if not the default.")
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option("--verdicts", help="Keep the verdicts of a model's rule in this file, and reuse them."),
    ] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Where an `llm:` rule calls.")] = None,
    as_json: Json = False,
) -> None:
    """Measure a matching rule: false accepts and rejects by kind, with 95% intervals, and what it got wrong.

    A pair has `question`, `gold_answer`, `accepted_answers`, `answer`, `label` (right or wrong) and maybe `kind`.
    """
    archives = [verdicts] if verdicts is not None else []
    for kept in archives:
        refuse_overwriting(kept, [path])
    name = rule or usual_rule()
    report = measure_file(path, open_rule(name, archives, decider=make_decider(name, base_url), keep=verdicts))
    if as_json:
        echo_json(report.model_dump(mode="json"))
        return
    without = f", {report.undecided:,} more got no verdict" if report.undecided else ""
    typer.echo(f"{name} on {report.n:,} pairs{without}")
    accepts, rejects = _share(report.false_accept_ci95), _share(report.false_reject_ci95)
    typer.echo(
        f"  false accepts {_percent(report.false_accept)} {accepts}, "
        f"false rejects {_percent(report.false_reject)} {rejects}"
    )
    typer.echo(f"  {'kind':<16}{'pairs':>7}{'accepts':>9}{'95%':>16}{'rejects':>9}{'95%':>16}{'F1':>8}")
    for kind, row in report.by_kind.items():
        accepts = f"{row.false_accept:>9,}{_share(row.false_accept_ci95):>16}"
        rejects = f"{row.false_reject:>9,}{_share(row.false_reject_ci95):>16}"
        typer.echo(f"  {kind or 'no kind':<16}{row.n:>7,}{accepts}{rejects}{_percent(row.f1):>8}")
    for item in report.confusions[:_SHOWN]:
        typer.echo(f"  line {item.line}, {item.label}: {item.answer!r} for {item.gold_answer!r}: {item.reason}")
    if len(report.confusions) > _SHOWN:
        typer.echo(f"  and {len(report.confusions) - _SHOWN} more; --json lists them all.")


@bench.command()
def ensemble(
    stories: Annotated[Path, typer.Argument(help="Records with their questions (.jsonl).")],
    answers: Annotated[list[Path], typer.Option("--answers", help="answers.jsonl; may be given several times.")],
    gold: Annotated[
        Path, typer.Option("--gold", help="People's labels: story_id, question_id, condition, right (CSV, JSON Lines).")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where the ensemble is written.")] = Path("ensemble.json"),
    matching: Matching = None,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the folds.")] = 42,
    as_json: Json = False,
) -> None:
    """Fit the human-calibrated ensemble: judges weighted by how well they followed people (Table 62).

    Give people's labels on validation or gold stories, then score others with `katha score --ensemble`.
    """
    refuse_overwriting(out, [stories, gold, *answers])
    rule = folder_rule(require_rule(matching or usual_rule()), answers[-1].parent)
    outcomes = collect(read_scored_stories(stories), read_archive(answers), matching=rule, selection="all")
    found, report = fit_ensemble(outcomes, read_judgments(gold), seed=seed)
    written = {**asdict(report), **asdict(found)}
    write_json(out, {"format": 1, "matching": rule.name, **written})
    if as_json:
        echo_json({"out": str(out), **written})
        return
    typer.echo(f"  {'judge':<28}{'agreement':>11}{'Spearman':>10}{'pairwise':>10}{'ECE':>8}")
    for name, row in report.measured.items():
        cells = "".join(f"{_value(value):>10}" for value in (row.spearman, row.pairwise_agreement))
        typer.echo(f"  {name:<28}{row.agreement:>10.1f}%{cells}{_value(row.ece):>8}")
    typer.echo(f"On {report.n:,} labelled answers of {report.stories:,} stories. Ensemble: {out}")


@bench.command()
def calibrate(
    path: Annotated[Path, typer.Argument(help="People's judgments, one a row: CSV or JSON Lines.")],
    as_json: Json = False,
) -> None:
    """Compare judges with people, and people with each other; the columns say what a row is about.

    `human, judge, confidence`; `human_score, judge_score`; `rater, story_id` with `label`, with `ncs, mas, ees`, with
    `preference`; `target, top1, top2, top3`; `story_id, question_id, question_type, condition, right`.
    """
    found = compare(path).model_dump(mode="json")
    if as_json:
        echo_json(found)
        return
    for section, values in found.items():
        for name, value in values.items() if isinstance(values, dict) else ():
            typer.echo(f"  {section:<16}{name:<22}{_value(value)}")
    for note in found["notes"]:
        typer.echo(f"Note: {note}")


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(item)}" for name, item in value.items())
    if isinstance(value, list):
        return " to ".join(map(_value, value))
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _share(span: tuple[float, float] | None) -> str:
    return "-" if span is None else f"[{100 * span[0]:.1f}, {100 * span[1]:.1f}]"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


# Which stories a judge remembers.

_MEMORY = "  {:<32}{:>8}{:>9}{:>11}"


@bench.command()
@with_recordings
@options_from(Settings, only=JUDGED)
def remembered(
    stories: Annotated[str, typer.Argument(help="A JSON Lines file, a record, or a folder of them.")],
    given: GivenOptions,
    asked: Annotated[
        str | None, typer.Option("--questions", help="all, reporting or steering; reporting where there are roles.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which of STORIES a judge remembers: the share of their questions that it has right with no evidence.

    By source family and by story, beside chance where options are chosen; `katha eval` asks the same of its boards.
    """
    with progress_bar("Asking", "Asking {}", quiet=as_json) as on_progress:
        found = ask_without_evidence(
            stories, given.preset, questions=asked, budget=given.budget, on_progress=on_progress, **given.changes
        )
    if as_json:
        judges = {name: row.model_dump(mode="json") for name, row in found.judges.items()}
        echo_json({"judges": judges, "statuses": found.outcome.statuses, "notes": list(found.notes)})
    else:
        for name, row in found.judges.items():
            _tell_memory(name, row)
        for note in found.notes:
            typer.echo(f"Note: {note}")
        tell_outcome(found.outcome)
    end(found.outcome)


def _tell_memory(name: str, memory: JudgeMemory) -> None:
    def line(what: str, row: Memory) -> None:
        typer.echo(_MEMORY.format(what[:31], row.n, f"{points(row.right)}%", points(row.chance)))

    typer.echo(_MEMORY.format(name[:31], "asked", "right", "chance"))
    line("all stories", memory)
    for family, row in memory.by_family.items():
        line(family, row)
    order = sorted(memory.by_story, key=lambda story: (-(memory.by_story[story].right or 0.0), story))
    for story in order[:_SHOWN]:
        line(story, memory.by_story[story])
    if len(order) > _SHOWN:
        typer.echo(f"  and {len(order) - _SHOWN:,} more; --json lists them all.")
    if memory.n_unscored:
        typer.echo(f"  {memory.n_unscored:,} questions got no guess.")


Records = Annotated[Path, typer.Argument(help="Records (.jsonl or .json).")]
By = Annotated[str, typer.Option("--by", help="rule, or a model: anthropic:MODEL, openai:MODEL, local:PATH.")]
JudgeName = Annotated[str | None, typer.Option("--judge", help="Also ask this judge, from the text alone.")]
Url = Annotated[str | None, typer.Option("--base-url", help="Where a compatible server is called.")]


@bench.command()
def plans(
    stories: Annotated[Path, typer.Argument(help="Records (.jsonl or .json), annotated or not.")],
    planner: Annotated[list[str], typer.Option("--planner", help="A planner to measure; may be given several times.")],
    panels: Panels = None,
    as_json: Json = False,
) -> None:
    """Plan STORIES with each planner and say how much of what must be seen its prompts say; nothing is drawn."""
    found = measure_planners(stories, planner, resolve({"panels": panels}).panels)
    if as_json:
        echo_json({"measures": dict(MEASURES), "planners": {name: asdict(row) for name, row in found.items()}})
        return
    typer.echo(f"{'':<18}{'stories':>8}" + "".join(f"{name:>17}" for name in MEASURES))
    for name, row in found.items():
        cells = "".join(f"{points(row.quality[measure]):>17}" for measure in MEASURES)
        typer.echo(f"{name[:17]:<18}{row.stories:>8}{cells}")
        for story, reason in row.failed.items():
            typer.echo(f"  {story}: {reason}")


@bench.command()
@with_recordings
@options_from(AskingOptions, into="options", preset=False, limits=False)
def questions(
    stories: Annotated[Path, typer.Argument(help="Records (.jsonl or .json); with --model also texts, or a folder.")],
    out: Annotated[Path, typer.Option("--out", help="The stories with their questions, as JSON Lines.")],
    options: GivenOptions,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Who writes free questions: anthropic:MODEL, openai:MODEL, local:PATH."),
    ] = None,
    by: By = "rule",
    planner: Annotated[
        str | None, typer.Option("--planner", help="Who reads transitions where a record has none, if not the default.")
    ] = None,
    judge: JudgeName = None,
    base_url: Url = None,
    seed: Seed = 42,
    as_json: Json = False,
) -> None:
    """Write recoverability questions for STORIES; what fails a check is listed, not kept.

    With --model, free questions from the text alone, each checked by calls of their own: not guessed without evidence,
    settled by the text, told by no question, visible. Stories that OUT has already stay, so that the same command goes
    on after a kill; one that fails is listed in OUT.failed, and the exit code is 1. Without, they are made from the
    stories' transitions, by rule or by --by MODEL.
    """
    if model is None:
        _refuse(options.changes, "needs --model", "Name the model that writes free questions.")
        built = write_story_questions(stories, out, by=by, planner=planner, judge=judge, base_url=base_url)
        _tell(built, "questions", out, as_json)
        return
    ruled = {"by": by if by != "rule" else None, "planner": planner, "judge": judge}
    _refuse(ruled, "does not go with --model", "Leave it out: --model writes from the text, and --reader checks.")
    asking = Asking(model, **read_settings(AskingOptions, options.changes).model_dump(), seed=seed)
    heard = None if as_json else typer.echo
    found = write_question_set(stories, out, asking, base_url=base_url, heard=heard)
    if as_json:
        echo_json({"out": str(out), **asdict(found)})
    else:
        typer.echo(f"{found.stories} stories, {found.before} of them from before. {found.summary.summary()}")
        if found.leak is not None:
            typer.echo(f"  {found.leak.told()}")
        typer.echo(f"{found.summary.kept} questions kept: {out}")
    if found.failed:
        raise typer.Exit(1)


def _refuse(options: Mapping[str, object], why: str, hint: str) -> None:
    """Refuse the first of the options that was given.

    Raises:
        UsageError: one was.
    """
    given = next((name for name, value in options.items() if value is not None and value is not False), None)
    if given is not None:
        raise UsageError(f"--{given} {why}.", hint=hint)


@bench.command()
@with_recordings
def variants(
    stories: Records,
    out: Annotated[Path, typer.Option("--out", help="The variants, as `contrastive_variants.jsonl`.")],
    by: Annotated[str, typer.Option("--by", help="Who writes: anthropic:MODEL, openai:MODEL, local:PATH.")],
    reader: Annotated[
        str | None, typer.Option("--reader", help="Who has to recognise the change; the writer unless told.")
    ] = None,
    judge: JudgeName = None,
    base_url: Url = None,
    as_json: Json = False,
) -> None:
    """Have a model write two contrastive variants of each story with scenes; what fails a check is listed, not kept.

    A reader who is not told what was changed has to name the same kind of change, nobody new, and no broken sentence.
    What fails is written once more.
    """
    built = write_story_variants(stories, out, by=by, reader=reader, judge=judge, base_url=base_url)
    _tell(built, "variants", out, as_json)


@bench.command()
@with_recordings
def contrasts(
    stories: Records,
    variants: Annotated[Path, typer.Option("--variants", help="contrastive_variants.jsonl of the stories.")],
    out: Annotated[Path, typer.Option("--out", help="The stories with their twins, as JSON Lines.")],
    by: Annotated[
        str | None, typer.Option("--by", help="A model that writes questions of what was changed: openai:MODEL, ...")
    ] = None,
    reader: Annotated[str | None, typer.Option("--reader", help="Who checks them; the writer unless told.")] = None,
    base_url: Url = None,
    as_json: Json = False,
) -> None:
    """Write STORIES with their contrastive variants as stories of their own, to set their STG beside the sources'.

    A twin has the questions that the change leaves alone; those of what was changed are written by --by MODEL.

    Draw and judge OUT as any stories; `scores.json` then has `contrasts`.
    """
    built = write_contrasts(stories, variants, out, by=by, reader=reader, base_url=base_url)
    _tell(built, "twins", out, as_json)


@bench.command()
@with_recordings
def mix(
    closed: Annotated[Path, typer.Argument(help="The closed-ended stories: the evaluation set as it is (.jsonl).")],
    opened: Annotated[Path, typer.Argument(metavar="OPEN", help="Open-ended stories to mix in (.jsonl).")],
    out: Annotated[Path, typer.Option("--out", help="The mixed set, as JSON Lines.")],
    ratio: Annotated[float, typer.Option("--ratio", help="The share of open-ended stories, 0 to 1.")] = 0.5,
    by: Annotated[
        str | None, typer.Option("--by", help="Who goes on from the beginnings: anthropic:MODEL, openai:MODEL, PATH.")
    ] = None,
    base_url: Url = None,
    mauve_model: Annotated[str, typer.Option("--mauve-model", help="Whose features MAUVE compares.")] = "gpt2-large",
    ppl_model: Annotated[
        str | None, typer.Option("--ppl-model", help="A causal language model on this machine: perplexities, too.")
    ] = None,
    seed: Seed = 42,
    as_json: Json = False,
) -> None:
    """Write an evaluation set of as many stories as CLOSED has, with open-ended ones at a ratio (VCMS, Sec. 4).

    With --by, each story is a new one that begins as a closed one does, written after the example of the mix. What
    cannot be written is listed and left out; the exit code is then 1.
    """
    found = write_mixed_set(
        closed,
        opened,
        out,
        ratio=ratio,
        by=by,
        base_url=base_url,
        seed=seed,
        mauve_model=mauve_model,
        ppl_model=ppl_model,
    )
    if as_json:
        echo_json({"out": str(out), **asdict(found)})
    else:
        for story, reason in found.failed.items():
            typer.echo(f"Not written: {story}: {reason}")
        typer.echo(f"{found.stories} stories of a mix of {found.closed} closed and {found.opened} open ones: {out}")
        near = f"{found.mauve.value:.4f}" if found.mauve.value is not None else f"not known, {found.mauve.reason}"
        typer.echo(f"  MAUVE to the closed stories: {near}")
        typer.echo(f"  different words: {found.words:,}, the closed stories {found.words_before:,}")
        if found.perplexity is not None:
            before = found.perplexity_before or 0.0
            typer.echo(f"  perplexity by {ppl_model}: {found.perplexity:,.1f}, the closed stories {before:,.1f}")
    if found.failed:
        raise typer.Exit(1)


@bench.command()
def vistorybench(
    dataset: Annotated[Path, typer.Argument(help="ViStoryBench's dataset: the folder that holds 01/story.json.")],
    out: Annotated[Path, typer.Option("--out", help="A folder for stories.jsonl, characters/ and boards/.")],
    results: Annotated[
        Path | None, typer.Option("--results", help="A method's pictures, METHOD/MODE/LANGUAGE: read as boards.")
    ] = None,
    language: Annotated[str, typer.Option("--language", help="en or ch.")] = "en",
    lite: Annotated[bool, typer.Option("--lite", help="The 20 stories of ViStoryBench-Lite.")] = False,
    as_json: Json = False,
) -> None:
    """Write ViStoryBench's scripts as stories, its characters' pictures, and a method's results as boards.

    Then `katha metrics OUT/boards --stories OUT/stories.jsonl --characters OUT/characters` measures them. Stories
    without all their pictures are listed; the exit code is then 1.
    """
    found = write_vistorybench(dataset, out, results=results, language=language, lite=lite)
    if as_json:
        echo_json({"out": str(out), **asdict(found)})
    else:
        for story, reason in found.missing.items():
            typer.echo(f"No board: {story}: {reason}")
        typer.echo(
            f"{found.stories} stories with {found.shots} shots and {found.pictures} pictures of characters: {out}"
        )
        if results is not None:
            typer.echo(f"  {found.boards} boards: {out / 'boards'}")
    if found.missing:
        raise typer.Exit(1)


def _tell(built: BuildCounts, what: str, out: Path, as_json: bool) -> None:
    if as_json:
        echo_json({"out": str(out), "kept": built.kept, "rejected": [asdict(item) for item in built.rejected]})
        return
    for item in built.rejected:
        typer.echo(f"Rejected {item.item} ({item.text}): {item.reason}")
    typer.echo(f"{built.kept} {what} kept, {len(built.rejected)} rejected: {out}")
