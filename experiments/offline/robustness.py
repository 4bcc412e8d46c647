"""What holds a study's gaps up, from its files alone: Table 4, reliability, the text's ceiling, cases and people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from katha.errors import InputFileError, RecordError, UsageError
from katha.eval_bridge.matching.match import Rule, require_rule, usual_rule
from katha.eval_bridge.matching.rules import VERDICTS, archived_rule, settle
from katha.eval_bridge.people.agreement import column_rating
from katha.eval_bridge.people.judgments import Judgment
from katha.eval_bridge.scoring.contrastive import PAIR_PREFIX
from katha.eval_bridge.scoring.gate import CANNOT, why_no_gap
from katha.eval_bridge.scoring.outcomes import Outcomes, collect
from katha.eval_bridge.scoring.reliability import qualitative_groups, reliability, text_ceiling
from katha.eval_bridge.scoring.robustness import (
    MethodOutcomes,
    effects,
    half_data,
    rank_by_blocks,
    rank_by_judges,
    story_groups,
)
from katha.eval_bridge.scoring.scores import HEADLINE, score
from katha.experiments.ablate.job import ABLATION
from katha.experiments.comparison.job import COMPARISON
from katha.experiments.evaluation.eval_folder import EvalState
from katha.experiments.offline.scoring import read_archive, read_scored_stories
from katha.jsonio import read_record
from katha.schema import Answer, StoryRecord
from katha.schema.robustness import PeopleColumns, Robustness
from katha.schema.scores import Bootstrap, Scores, Selection
from katha.schema.tables import AblationTable, CompareTable


@dataclass(frozen=True)
class StudyFiles:
    """The files of an evaluation, a comparison, an ablation or an archive of answers.

    boards: which methods of the answers make up each method (a comparison's seeds count together); empty: each its own.
    scores, ablation, compared: what the folder holds besides. varied: planner, renderer and mode, by method.
    """

    records: Sequence[StoryRecord]
    archives: tuple[Path, ...]
    matching: str = field(default_factory=usual_rule)
    questions: Selection = "all"
    boards: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scores: Scores | None = None
    ablation: AblationTable | None = None
    compared: CompareTable | None = None
    varied: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)

    def answers(self) -> Iterator[Answer]:
        """Yield the answers to questions; those to contrastive pairs are another matter."""
        return (row for row in read_archive(self.archives) if not row.question_id.startswith(PAIR_PREFIX))

    def rule(self) -> Rule:
        """Return the study's matching rule with the verdicts that lie beside the answers."""
        return archived_rule(self.matching, [path.with_name(VERDICTS) for path in self.archives])

    def outcomes(self) -> Outcomes:
        """Return every outcome by the study's own rule.

        Raises:
            UsageError: no answer is about a board.
        """
        rule = self.rule()
        settle(rule, self.records, self.answers())
        return self.outcomes_by(rule)

    def outcomes_by(self, rule: Rule) -> Outcomes:
        """Return every outcome by a rule that is settled.

        Raises:
            UsageError: no answer is about a board.
        """
        found = collect(self.records, self.answers(), matching=rule, selection=self.questions)
        if not found.methods or not found.questions:
            raise UsageError(
                "The answers are about no board that could be scored.", hint="Give those of an evaluation."
            )
        return found

    def scored(self, resamples: int, seed: int) -> Scores:
        """Return the scores that lie by the answers, or those of the answers."""
        if self.scores is not None:
            return self.scores
        return score(
            self.records,
            self.answers(),
            matching=self.rule(),
            questions=self.questions,
            resamples=resamples,
            seed=seed,
        )

    def members(self, outcomes: Outcomes) -> dict[str, list[str]]:
        """Return the boards of each method that were judged."""
        if not self.boards:
            return {name: [name] for name in outcomes.methods}
        told = {name: [board for board in own if board in outcomes.methods] for name, own in self.boards.items()}
        return {name: own for name, own in told.items() if own}


def read_study(
    path: Path, answers: Sequence[Path] = (), *, matching: str | None = None, questions: Selection | None = None
) -> StudyFiles:
    """Return the study at `path`: a folder of `katha eval`, `compare` or `ablate`, or stories with their `answers`.

    Raises:
        InputFileError, RecordError: a file is missing or broken. UsageError: answers are missing.
    """
    if matching is not None:
        require_rule(matching)
    if answers:
        records = read_scored_stories(path)
        return StudyFiles(
            records, tuple(map(_answers_file, answers)), matching or usual_rule(), questions or "reporting"
        )
    if (path / ABLATION.file).is_file():
        return _ablation(path, matching)
    if (path / COMPARISON.file).is_file():
        return _comparison(path, matching)
    if (path / "eval.json").is_file():
        return _evaluation(path, matching, questions)
    raise UsageError(
        f"{str(path)!r} is not a folder of katha eval, compare or ablate.",
        hint="For other stories give --answers FILE.",
    )


def _answers_file(path: Path) -> Path:
    return path / "answers.jsonl" if path.is_dir() else path


def _evaluation(path: Path, matching: str | None, questions: Selection | None) -> StudyFiles:
    config = read_record(path / "eval.json", EvalState).config
    return StudyFiles(
        records=read_scored_stories(path),
        archives=(path / "answers.jsonl",),
        matching=matching or config.matching,
        questions=questions or config.questions,
        scores=_kept(path / "scores.json"),
    )


def _comparison(path: Path, matching: str | None) -> StudyFiles:
    table = read_record(_finished(path), CompareTable)
    state = read_record(path / COMPARISON.file, COMPARISON.state)
    boards = {
        row.name: [f"{row.name}@{seed}" for seed in row.seeds] if len(row.seeds) > 1 else [row.name]
        for row in table.methods
    }
    selection: Selection = "reporting" if table.questions == "reporting" else "all"
    return StudyFiles(
        records=read_scored_stories(path / "stories.jsonl"),
        archives=(path / "judging" / "answers.jsonl",),
        matching=matching or str(state.config.get("matching", usual_rule())),
        questions=selection,
        boards=boards,
        scores=_kept(path / "scores.json"),
        compared=table,
        varied={row.name: (row.planner, row.renderer, row.mode) for row in table.methods},
    )


def _ablation(path: Path, matching: str | None) -> StudyFiles:
    table = read_record(_finished(path), AblationTable)
    state = read_record(path / ABLATION.file, ABLATION.state)
    archive = path / "answers.jsonl"
    names = sorted({row.method for row in read_archive([archive]) if row.method is not None})
    rows = [row.mode for row in table.rows if row.not_run is None]
    boards = {row: [name for name in names if name == row or name.rpartition("@")[0] == row] for row in rows}
    return StudyFiles(
        records=read_scored_stories(path / "stories.jsonl"),
        archives=(archive,),
        matching=matching or str(state.config.get("matching", usual_rule())),
        questions="reporting",
        boards={name: own for name, own in boards.items() if own},
        scores=_kept(path / "scores.json"),
        ablation=table,
    )


def _finished(path: Path) -> Path:
    table = path / "table.json"
    if not table.is_file():
        raise InputFileError(f"{str(path)!r} is not finished: there is no table.json.", hint="Run its command again.")
    return table


def _kept(path: Path) -> Scores | None:
    return read_record(path, Scores) if path.is_file() else None


def robustness(
    study: StudyFiles, *, judgments: Sequence[Judgment] = (), resamples: int = 10_000, seed: int = 42
) -> Robustness:
    """Return everything that a study's answers say about how far its gaps can be trusted.

    judgments: what people say of the boards (`visual`, `human_score`, by `method`).

    Raises:
        UsageError: no answer is about a board, or none can be measured. RecordError: a judgment is about an unknown
            method.
    """
    outcomes = study.outcomes()
    members = study.members(outcomes)
    hidden = {
        name: why
        for name, own in members.items()
        if (why := why_no_gap(outcomes, own, judge=MethodOutcomes(outcomes, {}).judge)) is not None
    }
    kept = {name: own for name, own in members.items() if name not in hidden}
    if not kept:
        name, why = next(iter(hidden.items()))
        raise UsageError(f"No method here has a gap. {name} {CANNOT}: {why}.", hint="Ask another judge.")
    measured = MethodOutcomes(outcomes, kept, resamples, seed)
    stg = measured.stg()
    found = Robustness(
        judge=measured.judge,
        questions=study.questions,
        bootstrap=Bootstrap(resamples=resamples, seed=seed),
        methods=list(measured.members),
        stg=stg,
        blocks=rank_by_blocks(measured),
        judges=rank_by_judges(measured),
        half_data=half_data(measured),
        groups=story_groups(measured, study.records),
        effects=effects({name: own[HEADLINE] for name, own in stg.items()}, study.varied),
        reliability=reliability(measured),
        ceiling=text_ceiling(measured),
        cases=qualitative_groups(measured, study.records),
        people=people_columns(judgments, list(members)),
        notes=[f"{name}: {CANNOT}: {why}." for name, why in hidden.items()],
    )
    return found.model_copy(update={"notes": [*found.notes, *_notes(found, measured)]})


def people_columns(judgments: Sequence[Judgment], methods: Sequence[str]) -> list[PeopleColumns]:
    """Return visual quality and mean score by people, by method (Tables 2, 52, 53 and 55).

    Raises:
        RecordError: a judgment is about an unknown method, or about none where there are several.
    """
    told = [row for row in judgments if "story_id" in row and ("visual" in row or "human_score" in row)]
    apart: dict[str, list[Judgment]] = {name: [] for name in methods}
    for row in told:
        name = row.get("method", methods[0] if len(methods) == 1 else None)
        own = name if name in apart else str(name).rpartition("@")[0]
        if own not in apart:
            what = "names no method" if name is None else f"is about {name!r}"
            raise RecordError(
                f"The judgment on line {row['line']} {what}.", hint=f"The methods are {', '.join(methods)}."
            )
        apart[own].append(row)
    return [
        PeopleColumns(
            method=name,
            visual=column_rating(own, "visual"),
            human_score=column_rating(own, "human_score"),
        )
        for name, own in apart.items()
        if told
    ]


def _notes(found: Robustness, measured: MethodOutcomes) -> list[str]:
    """Return why a number is missing."""
    notes = []
    if len(found.methods) < 3:
        notes.append(f"{len(found.methods)} methods: a rank correlation needs three, so those over methods are null.")
    if len(measured.people) < 2:
        notes.append(f"One judge, {measured.judge}: no correlation between judges.")
    told = {group.by for group in found.groups}
    notes += [
        f"No story names its {words}, so there is no STG by it."
        for by, words in (("source_family", "provenance.source_dataset"), ("narrative_type", "narrative_type"))
        if by not in told
    ]
    notes += [
        f"{group.without} stories name no {group.by} and are in no group." for group in found.groups if group.without
    ]
    notes += [
        f"{row.method}: {row.n_boards} boards with two valid questions; split-half reliability needs three that differ."
        for row in found.reliability
        if row.value is None
    ]
    return notes
