"""Score archives of answers offline: no judge is asked and no image is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from katha.config import Flag, Settings, read_settings, refuse_code
from katha.errors import InputFileError, RecordError, UsageError
from katha.eval_bridge.judging.answers import iter_answers
from katha.eval_bridge.matching.match import MODEL_RULES, Rule, named_rule, usual_rule
from katha.eval_bridge.matching.rules import (
    VERDICTS,
    RecordingRule,
    make_decider,
    open_rule,
    recording,
    scored_rule,
    settle,
)
from katha.eval_bridge.people.agreement import alignment
from katha.eval_bridge.people.ensemble import read_ensemble
from katha.eval_bridge.people.judgments import read_judgments
from katha.eval_bridge.scoring.audit import ScoredAs, VerdictChange, changes, read_scoring
from katha.eval_bridge.scoring.contrastive import PairScorer, iter_variants
from katha.eval_bridge.scoring.rows import power_estimate
from katha.eval_bridge.scoring.scores import score as score_answers
from katha.experiments.inputs.stories import IDS_HELP, SPLIT_HELP, choose_stories
from katha.jsonio import refuse_overwriting, write_json
from katha.mapping import RecordMapping
from katha.schema import Answer, StoryRecord
from katha.schema.scores import PowerEstimate, Scores, Selection
from katha.stories import iter_records

_STORY_FILES = ("annotations.jsonl", "story.jsonl", "stories.jsonl")


Difference = Annotated[float, Field(gt=0, le=200, allow_inf_nan=False)]
"""Points of STG."""


class ScoreOptions(BaseModel):
    """How an archive is scored, and what is computed beside its scores."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    matching: str | None = Field(default=None, description="How free answers are matched, if not as the archive says.")
    questions: Selection = Field(
        default="reporting", description="Which half of the questions counts: reporting (unless told), steering, all."
    )
    split: str | None = Field(default=None, description=SPLIT_HELP)
    ids: str | None = Field(default=None, description=IDS_HELP)
    before: Annotated[Path | None, Flag("--before", "--answers-before")] = Field(
        default=None, description="An earlier scores.json: print which verdicts changed."
    )
    before_answers: Annotated[tuple[Path, ...], Flag("--before-answers", many=True)] = Field(
        default=(), description="The archive of --before, if it was another one."
    )
    verdicts: Annotated[tuple[Path, ...], Flag("--verdicts", many=True)] = Field(
        default=(), description="Verdicts of nli:, embedding: or llm: (default: verdicts.jsonl by the answers)."
    )
    decide: bool = Field(
        default=False, description="Ask the rule's model for verdicts that are missing, and keep them."
    )
    base_url: str | None = Field(default=None, description="Where an `llm:` rule calls, with --decide.")
    variants: Path | None = Field(
        default=None, description="contrastive_variants.jsonl: score the pairs (PairAcc), too."
    )
    ensemble: Path | None = Field(
        default=None, description="A human-calibrated ensemble (`katha bench ensemble`): one more judge."
    )
    human: Path | None = Field(
        default=None, description="People's judgments (failing, human_score): localization and rank correlation."
    )
    power: Annotated[tuple[Difference, ...], Flag("--power", many=True)] = Field(
        default=(), description="Estimate the stories that an STG difference of so many points needs."
    )
    reference: str | None = Field(
        default=None, description="The method that the others are held against, instead of every pair."
    )
    mapping: Path | None = Field(default=None, description=Settings.model_fields["mapping"].description)
    resamples: int = Field(default=10_000, ge=0, description="Bootstrap resamples of stories; 10000 unless told.")
    seed: int = Field(default=42, description="The seed of the bootstrap; 42 unless told.")


@dataclass(frozen=True)
class ScoreReport:
    """What scoring an archive gave.

    power: how many stories a difference needs. changes: the verdicts that differ from those of `before`, None where no
    earlier scores were given; unnamed: how many earlier verdicts are not there to compare with.
    """

    scores: Scores
    power: PowerEstimate | None = None
    before: Scores | None = None
    changes: list[VerdictChange] | None = None
    unnamed: int = 0


def score(
    stories: Path | str | Sequence[StoryRecord],
    answers: Path | str | Sequence[Path | str],
    *,
    out: Path | str | None = None,
    **options: Any,
) -> Scores:
    """Score answers to the questions of stories. Asks no judge and needs no images.

    Args:
        stories: Records with their questions: a file (`.jsonl`), the folder they are in, or the records themselves.
        answers: Archives of answers (`answers.jsonl`, or the folder of one); where a key repeats, a later one wins.
        out: Where the scores are written, if they are to be: a `scores.json`.
        **options: `matching`, `questions` ("reporting", "steering" or "all"), `resamples`, `seed`, and what else
            `ScoreOptions` has.

    Returns:
        Recoverability and STG by method, judge and block of questions, with intervals and comparisons.

    Raises:
        UsageError: A file cannot be read, a record has no question, or an option is wrong.

    Example:
        >>> scores = score("out/lion/story.jsonl", "out/lion/answers.jsonl", questions="reporting")
        >>> scores.methods["full"]
    """
    archives = [answers] if isinstance(answers, (str, Path)) else answers
    found = score_archives(
        Path(stories) if isinstance(stories, (str, Path)) else stories,
        [Path(archive) for archive in archives],
        read_settings(ScoreOptions, options),
        Path(out) if out is not None else None,
    )
    return found.scores


def score_archives(
    stories: Path | Sequence[StoryRecord], answers: Sequence[Path], options: ScoreOptions, out: Path | None = None
) -> ScoreReport:
    """Score `answers`, write the scores to `out`, and compare them with the earlier ones that `options` name.

    Raises:
        UsageError: a file cannot be read, or an option is wrong; nothing is written.
    """
    if out is not None and out.is_dir():
        raise UsageError(f"--out {str(out)!r} is a folder.", hint="Name a file in it: scores.json.")
    if out is not None:
        read = (*answers, *options.before_answers, *options.verdicts)
        refuse_overwriting(out, [*_story_files(stories), *read, options.variants, options.ensemble, options.human])
    archives = list(options.verdicts) or [
        path / VERDICTS if path.is_dir() else path.with_name(VERDICTS) for path in answers
    ]
    rule = recording(_rule(options, answers, archives))
    earlier = read_scoring(options.before, archives) if options.before is not None else None
    records = choose_stories(read_scored_stories(stories, options.mapping), options.split, options.ids, stories)
    inside = None if options.split is None and options.ids is None else {record.story_id for record in records}

    def kept(archive: Sequence[Path] = answers) -> Iterator[Answer]:
        return (row for row in read_archive(archive) if inside is None or row.story_id in inside)

    unsettled = settle(rule, records, kept())
    variants = iter_variants(options.variants) if options.variants is not None else ()
    pairs = PairScorer(records, (item for item in variants if inside is None or item.base_story_id in inside))

    def rows(archive: Sequence[Path] = answers) -> Iterator[Answer]:
        return pairs.others(kept(archive))

    scores = _scores(records, rows, pairs, rule, options).with_notes(unsettled)
    if out is not None:
        write_json(out, scores.model_dump(mode="json"))
        if isinstance(rule, RecordingRule):
            rule.write(out.with_name(VERDICTS))
    power = None
    if options.power:
        power = power_estimate(records, rows(), matching=rule, questions=options.questions, differences=options.power)
    if earlier is None:
        return ScoreReport(scores, power)
    was, before = earlier
    new, old = (ScoredAs(rule, options.questions), rows()), (was, rows(options.before_answers or answers))
    return ScoreReport(scores, power, before, list(changes(records, old, new)), getattr(was.matching, "missing", 0))


def _rule(options: ScoreOptions, answers: Sequence[Path], archives: Sequence[Path]) -> Rule:
    """Return the rule that is named, else that of the scores beside the last archive that has any, else the usual one.

    Raises:
        UsageError: there is no such rule, or a file names code. InputFileError: scores or verdicts are broken.
    """
    beside = [(path if path.is_dir() else path.parent) / "scores.json" for path in answers]
    found = next((path for path in reversed(beside) if path.is_file()), None)
    if options.matching is None and found is not None:
        _, scores = read_scoring(found, archives)
        name = scores.matching
        refuse_code({"matching": name}, str(found))
        if name.partition(":")[0] not in MODEL_RULES:
            return named_rule(name) or scored_rule(scores, found.parent, archives)
    else:
        name = options.matching or usual_rule()
    decider = make_decider(name, options.base_url) if options.decide else None
    return open_rule(name, archives, decider=decider, keep=archives[-1])


def _scores(
    records: Sequence[StoryRecord],
    rows: Callable[[], Iterator[Answer]],
    pairs: PairScorer,
    rule: Rule,
    options: ScoreOptions,
) -> Scores:
    """Return the scores, with those of contrastive pairs and the alignment with people where they are asked for."""
    weighed = read_ensemble(options.ensemble) if options.ensemble is not None else None
    scores = score_answers(
        records,
        rows(),
        matching=rule,
        questions=options.questions,
        resamples=options.resamples,
        seed=options.seed,
        calibrated=weighed,
        reference=options.reference,
    )
    more: dict[str, object] = {}
    if options.variants is not None:
        more["contrastive"] = pairs.scores()
    if options.human is not None:
        more["alignment"] = alignment(
            records,
            rows(),
            list(read_judgments(options.human)),
            matching=rule,
            questions=options.questions,
            calibrated=weighed,
        )
    return scores.model_copy(update=more)


def read_scored_stories(path: Path | Sequence[StoryRecord], mapping: Path | None = None) -> list[StoryRecord]:
    """Return the stories of a file or folder that have questions; `mapping`: how its records name things.

    Raises:
        InputFileError: no such file. RecordError: a record is broken, or none has a question.
    """
    if not isinstance(path, Path):
        if not any(record.recoverability_questions for record in path):
            raise RecordError("No story has a recoverability question.", hint="Give records with their questions.")
        return list(path)
    inside = _story_files(path)
    if not inside:
        raise InputFileError(f"{str(path)!r} holds no stories.", hint=f"Looked for {', '.join(_STORY_FILES)}.")
    path = inside[0]
    records = list(iter_records(path, RecordMapping(mapping)))
    if not any(record.recoverability_questions for record in records):
        raise RecordError(
            f"{str(path)!r} has no recoverability question.",
            hint="Give the records with the questions that were asked.",
        )
    return records


def _story_files(path: Path | Sequence[StoryRecord]) -> list[Path]:
    """Return the file of stories at `path`: itself, or those that a folder holds; none of records."""
    if not isinstance(path, Path):
        return []
    return [path / name for name in _STORY_FILES if (path / name).is_file()] if path.is_dir() else [path]


def read_archive(paths: Sequence[Path]) -> Iterator[Answer]:
    """Yield the rows of every archive in order: a later one wins where a key repeats.

    Raises:
        InputFileError: an archive cannot be read, a line of it is broken, or it holds no answer at all.
    """
    for path in paths:
        file, row = path / "answers.jsonl" if path.is_dir() else path, None
        for row in iter_answers(file):
            yield row
        if row is None:
            raise InputFileError(f"{str(file)!r} holds no answer.", hint="Give an answers.jsonl.")
