"""`katha score`: an archive of answers to scores, offline; what changed since; how many stories a difference needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from katha.app.cli import options

if TYPE_CHECKING:
    from katha.schema import Answer, StoryRecord

_SHOWN = 40
_HEAD = (
    f"  {'method':<26}{'judge':<22}{'text':>7}{'image':>7}{'STG':>7}{'95% interval':>17}{'ambiguous':>11}{'valid':>16}"
)


def score(
    stories: Annotated[Path, typer.Argument(help="Records with their questions (.jsonl), or the folder they are in.")],
    answers: Annotated[list[Path], typer.Option("--answers", help="answers.jsonl; may be given several times.")],
    out: Annotated[Path, typer.Option("--out", help="Where the scores are written.")] = Path("scores.json"),
    matching: options.Matching = None,
    questions: Annotated[
        Literal["reporting", "steering", "all"], typer.Option("--questions", help="Which half of the questions counts.")
    ] = "reporting",
    before: Annotated[
        Path | None,
        typer.Option("--before", "--answers-before", help="An earlier scores.json: print which verdicts changed."),
    ] = None,
    before_answers: Annotated[
        list[Path] | None, typer.Option("--before-answers", help="The archive of --before, if it was another one.")
    ] = None,
    verdicts: Annotated[
        list[Path] | None,
        typer.Option(
            "--verdicts", help="Verdicts of nli:, embedding: or llm: (default: verdicts.jsonl by the answers)."
        ),
    ] = None,
    decide: Annotated[
        bool, typer.Option("--decide", help="Ask the rule's model for verdicts that are missing, and keep them.")
    ] = False,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Where an `llm:` rule calls, with --decide.")
    ] = None,
    variants: Annotated[
        Path | None, typer.Option("--variants", help="contrastive_variants.jsonl: score the pairs (PairAcc), too.")
    ] = None,
    ensemble: Annotated[
        Path | None,
        typer.Option("--ensemble", help="A human-calibrated ensemble (`katha bench ensemble`): one more judge."),
    ] = None,
    human: Annotated[
        Path | None,
        typer.Option("--human", help="People's judgments (failing, human_score): localization and rank correlation."),
    ] = None,
    power: Annotated[
        list[float] | None,
        typer.Option("--power", help="Estimate the stories that an STG difference of so many points needs."),
    ] = None,
    resamples: Annotated[int, typer.Option("--resamples", min=0, help="Bootstrap resamples of stories.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the bootstrap.")] = 42,
    as_json: options.Json = False,
) -> None:
    """Score answers to the questions of STORIES and write scores.json. Asks no judge and needs no images."""
    from katha.errors import UsageError
    from katha.eval_bridge.matching.rules import make_decider, open_rule, settle
    from katha.eval_bridge.matching.verdicts import VERDICTS, RecordingRule, recording
    from katha.eval_bridge.people.agreement import alignment
    from katha.eval_bridge.people.ensemble import read_ensemble
    from katha.eval_bridge.people.files import read_judgments
    from katha.eval_bridge.scoring.audit import Scoring, changes, read_scoring
    from katha.eval_bridge.scoring.contrastive import PairScorer, iter_variants
    from katha.eval_bridge.scoring.scores import score as score_answers
    from katha.eval_bridge.scoring.statistics import power_estimate
    from katha.jsonio import write_json

    if out.is_dir():
        raise UsageError(f"--out {str(out)!r} is a folder.", hint="Name a file in it: scores.json.")
    archives = verdicts or [_beside(path) for path in answers]
    decider = make_decider(matching or "lemma-set", base_url) if decide else None
    rule = recording(open_rule(matching or "lemma-set", archives, decider=decider, keep=archives[-1]))
    earlier = read_scoring(before, archives) if before is not None else None
    records = read_scored_stories(stories)
    unsettled = settle(rule, records, read_archive(answers))
    weighed = read_ensemble(ensemble) if ensemble is not None else None
    pairs = PairScorer(records, iter_variants(variants) if variants is not None else ())
    scores = score_answers(
        records,
        pairs.others(read_archive(answers)),
        matching=rule,
        questions=questions,
        resamples=resamples,
        seed=seed,
        calibrated=weighed,
    )
    scores["notes"] += unsettled
    if variants is not None:
        scores["contrastive"] = pairs.scores(resamples, seed)
    if human is not None:
        scores["alignment"] = alignment(
            records,
            pairs.others(read_archive(answers)),
            list(read_judgments(human)),
            matching=rule,
            questions=questions,
            resamples=resamples,
            seed=seed,
            calibrated=weighed,
        )
    write_json(out, scores)
    if isinstance(rule, RecordingRule):
        rule.write(out.with_name(VERDICTS))
    found: dict[str, Any] = {"out": str(out), "scores": scores}
    if power:
        found["power"] = power_estimate(
            records, pairs.others(read_archive(answers)), matching=rule, questions=questions, differences=power
        )
    if earlier is not None:
        new = (Scoring(rule, questions), pairs.others(read_archive(answers)))
        old = (earlier[0], pairs.others(read_archive(before_answers or answers)))
        found["changes"] = list(changes(records, old, new))
        found["before"] = earlier[1]
        found["unnamed"] = getattr(earlier[0].matching, "missing", 0)
    _tell(found, as_json=as_json)


def read_scored_stories(path: Path) -> list[StoryRecord]:
    """The stories that have questions.

    Raises:
        InputFileError: no such file. RecordError: a record is broken, or none has a question.
    """
    from katha.errors import InputFileError, RecordError
    from katha.stories import iter_records

    if path.is_dir():
        names = ("annotations.jsonl", "story.jsonl", "stories.jsonl")
        inside = next((path / name for name in names if (path / name).is_file()), None)
        if inside is None:
            raise InputFileError(f"{str(path)!r} holds no stories.", hint=f"Looked for {', '.join(names)}.")
        path = inside
    records = list(iter_records(path))
    if not any(record.recoverability_questions for record in records):
        raise RecordError(
            f"{str(path)!r} has no recoverability question.",
            hint="Give the records with the questions that were asked.",
        )
    return records


def _beside(answers: Path) -> Path:
    """Where the verdicts on an archive lie."""
    from katha.eval_bridge.matching.verdicts import VERDICTS

    return answers / VERDICTS if answers.is_dir() else answers.with_name(VERDICTS)


def read_archive(paths: list[Path]) -> Iterator[Answer]:
    """The rows of every archive in order: a later one wins where a key repeats."""
    from katha.eval_bridge.judging.answers import iter_answers

    for path in paths:
        yield from iter_answers(path / "answers.jsonl" if path.is_dir() else path)


def _tell(found: dict[str, Any], *, as_json: bool) -> None:
    scores = found["scores"]
    if as_json:
        from dataclasses import asdict

        value: dict[str, Any] = {key: found[key] for key in ("out", "scores", "power", "unnamed") if key in found}
        value |= {"changes": [asdict(change) for change in found["changes"]]} if "changes" in found else {}
        typer.echo(json.dumps(value, ensure_ascii=False))
        return
    typer.echo(_HEAD)
    for line in _headlines(scores):
        typer.echo(line)
    for row in scores["comparisons"]:
        if row["block"] == "filtered" and row["difference"] is not None:
            typer.echo(_comparison(row))
    for method, judges in scores.get("contrastive", {}).get("methods", {}).items():
        for judge, row in judges.items():
            rates = f"PairAcc {_points(row['pair_accuracy'])}, confusion {_points(row['confusion'])}"
            typer.echo(f"  {method}, {judge}: {rates} on {row['n']:,} pairs")
    for judge, row in scores.get("alignment", {}).get("judges", {}).items():
        typer.echo(f"  {judge}: {_aligned(row)}")
    _tell_power(found.get("power"))
    _tell_changes(found)
    for note in [*scores["notes"], *scores.get("contrastive", {}).get("notes", [])]:
        typer.echo(f"Note: {note}")
    typer.echo(f"Scores: {found['out']}")


def _aligned(row: dict[str, Any]) -> str:
    told = []
    if row["localization"] is not None:
        place = row["localization"]
        told.append(f"finds the failing dimension in {_points(place['right'])}% of {place['n']:,}")
    if row["human_score"] is not None:
        rank = row["human_score"]["spearman"]
        told.append(f"Spearman with people {'-' if rank is None else f'{rank:.2f}'} on {row['human_score']['n']:,}")
    return ", ".join(told)


def _headlines(scores: dict[str, Any]) -> Iterator[str]:
    for method, entry in scores["methods"].items():
        for judge, row in entry["judges"].items():
            block = row["filtered"]
            numbers = "".join(f"{_points(block[name]):>7}" for name in ("text", "image", "stg"))
            span = block["ci95"]["stg"]
            interval = f"{span[0]:.1f} to {span[1]:.1f}" if span else "-"
            valid = f"{row['n_valid']:,} of {row['n_questions'] - row['n_unscored']:,}"
            rate = _points(row["ambiguity_rate"])
            yield f"  {method:<26}{judge:<22}{numbers}{interval:>17}{rate:>11}{valid:>16}"


def _comparison(row: dict[str, Any]) -> str:
    span = f", {row['ci95'][0]:.1f} to {row['ci95'][1]:.1f}" if row["ci95"] else ""
    p = row["p_corrected"]
    tested = f", corrected p {p:.4f} of {row['family']}" if p is not None else ""
    where = f"{row['a']} against {row['b']}, {row['judge']}"
    return f"  {where}: STG differs by {row['difference']:+.1f}{span}{tested} ({row['n_stories']:,} stories)"


def _tell_power(power: dict[str, Any] | None) -> None:
    if power is None:
        return
    for row in power["estimates"]:
        for need in row["needed"]:
            size, share = f"{need['difference']:g} points", f"{100 * power['power']:.0f}%"
            cost = f"{need['stories']:,} stories ({need['judge_calls']:,} calls of one judge)"
            typer.echo(f"  {row['between']}: to find {size} with {share}: {cost}; spread {row['spread']:.1f}")
    for note in power["notes"]:
        typer.echo(f"Note: {note}")


def _tell_changes(found: dict[str, Any]) -> None:
    if "changes" not in found:
        return
    changed = found["changes"]
    for change in changed[:_SHOWN]:
        typer.echo(f"  {change}")
    if len(changed) > _SHOWN:
        typer.echo(f"  and {len(changed) - _SHOWN:,} more; --json lists them all.")
    typer.echo(f"{len(changed):,} verdicts changed." if changed else "No verdict changed.")
    if found["unnamed"]:
        lost = f"{found['unnamed']:,} answers were scored by an earlier version of the rule"
        typer.echo(f"{lost}, and verdicts.jsonl does not lie by its scores: what changed in them cannot be named.")
    for method, entry in found["before"].get("methods", {}).items():
        for judge, row in entry["judges"].items():
            now = found["scores"]["methods"].get(method, {}).get("judges", {}).get(judge)
            was, new = row["filtered"]["stg"], now["filtered"]["stg"] if now else None
            if was != new:
                typer.echo(f"  {method}, {judge}: STG {_points(was)} -> {_points(new)}")


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
