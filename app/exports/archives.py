"""What other tools read of a judged folder: its answers by half, judge and board, with the verdict on each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import yaml

from katha.app.exports.board import ExportOptions
from katha.configs import load_config
from katha.errors import InputFileError, UsageError
from katha.eval_bridge.bench.publish import require_repository
from katha.eval_bridge.matching.match import Rule, match
from katha.eval_bridge.matching.rules import scored_rule, settle
from katha.eval_bridge.scoring.gate import CANNOT, unmeasured
from katha.eval_bridge.scoring.outcomes import ENSEMBLE
from katha.eval_bridge.scoring.scores import score
from katha.experiments.offline.scoring import read_archive, read_scored_stories
from katha.jsonio import digest, read_record, write_bytes_atomic
from katha.schema import Answer, Question, StoryRecord
from katha.schema.scores import JudgeScores, Scores, Selection

_LONGEST = 48


@dataclass(frozen=True)
class JudgedQuestions:
    """The answers of one judge to one half of the questions about one board; those to the text alone and those without
    evidence are among them.

    method: None for steering answers, which are about candidates and pairs of frames under names of their own.
    """

    half: Selection
    judge: str
    method: str | None
    rows: Sequence[Answer]

    @property
    def name(self) -> str:
        """Half, judge and board as the name of a file."""
        return "_".join(safe_name(part) for part in (self.half, self.judge, self.method) if part is not None)


class JudgedFolder:
    """A finished folder of `katha eval`, `run`, `ablate` or `compare`: stories, `answers.jsonl` and `scores.json`."""

    def __init__(self, folder: Path) -> None:
        """Read its stories and scores.

        Raises:
            InputFileError: it is not there, not finished, or holds no answers.
        """
        place = next((item for item in (folder, folder / "judging") if (item / "answers.jsonl").is_file()), None)
        if place is None or not (place / "scores.json").is_file():
            raise InputFileError(
                f"{str(folder)!r} holds no answers and scores.",
                hint="Give the finished folder of a run or an evaluation.",
            )
        self.path = place
        self.scores = read_record(place / "scores.json", Scores)
        self.records: list[StoryRecord] = read_scored_stories(place)

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.resolve().name

    @cached_property
    def rule(self) -> Rule:
        """The rule that the scores were made by, with the verdicts that were kept."""
        rule = scored_rule(self.scores, self.path)
        settle(rule, self.records, read_archive([self.path]))
        return rule

    @cached_property
    def questions(self) -> dict[tuple[str, str], Question]:
        """Every question by story and id."""
        return {(one.story_id, item.question_id): item for one in self.records for item in one.recoverability_questions}

    @property
    def created(self) -> str:
        """Return when the answers were complete, as ISO 8601 in UTC."""
        seconds = int((self.path / "answers.jsonl").stat().st_mtime)
        return datetime.fromtimestamp(seconds, UTC).isoformat()

    def parts(self) -> Iterator[JudgedQuestions]:
        """Yield the last answer to each question, apart by half, judge and board: no part holds two halves."""
        latest: dict[tuple[str | None, str, str, str, str], Answer] = {}
        for row in read_archive([self.path]):
            if (row.story_id, row.question_id) in self.questions:
                latest[row.method, row.judge, row.story_id, row.question_id, row.condition] = row
        halves: dict[tuple[Selection, str], list[Answer]] = {}
        for row in latest.values():
            halves.setdefault((self._half(row), row.judge), []).append(row)
        for (half, judge), rows in sorted(halves.items()):
            if half == "steering":
                yield JudgedQuestions(half, judge, None, rows)
                continue
            for method in sorted({row.method for row in rows if row.method is not None}):
                own = [row for row in rows if row.method == method]
                told = {(row.story_id, row.question_id, row.condition) for row in own}
                shared = [row for row in rows if row.method is None]
                kept = [row for row in shared if (row.story_id, row.question_id, row.condition) not in told]
                yield JudgedQuestions(half, judge, method, [*kept, *own])

    def _half(self, row: Answer) -> Selection:
        return self.questions[row.story_id, row.question_id].role or row.role or "all"

    def right(self, row: Answer) -> bool | None:
        """Return whether an answer is right; None where it is none, or nobody has decided."""
        if row.status != "ok" or row.answer is None:
            return None
        return match(row, self.questions[row.story_id, row.question_id], self.rule).right

    def numbers(self, part: JudgedQuestions) -> JudgeScores | None:
        """Return the scores of one board by one judge, as `katha score` computes them; None for what steered."""
        if part.method is None:
            return None
        found = score(self.records, part.rows, matching=self.rule, questions=part.half, resamples=0)
        return found.methods[part.method].judges[part.judge]


def safe_name(name: str) -> str:
    """Return a name as part of a path, two different ones never the same."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:_LONGEST]
    return plain if plain == name else f"{plain}-{digest(name)[:6]}"


# Results for the Hugging Face Hub, one file for the repository of each model whose boards were judged.


def write_hub_results(folder: JudgedFolder, target: Path, options: ExportOptions) -> None:
    """Write `BOARD/.eval_results/katha.yaml` for each board: one entry a leaderboard of `eval.yaml`, in the form of
    https://huggingface.co/docs/hub/eval-results. Nothing is sent.

    Values are percentage points on the board's own valid questions, by the ensemble or the only judge.

    Raises:
        UsageError: the benchmark's repository is not named, the answers are steering answers, or no board can be
            measured with its judge.
    """
    if options.dataset is None:
        raise UsageError("The export 'hub-results' needs the benchmark.", hint="Give --dataset ORGANISATION/NAME.")
    if folder.scores.questions == "steering":
        raise UsageError("Steering answers are no results.", hint="Score the reporting questions.")
    benchmark, tasks = require_repository(options.dataset), load_config("hub.yaml")["benchmark"]["tasks"]
    judged = {
        method: (ENSEMBLE if ENSEMBLE in entry.judges else next(iter(entry.judges)), entry)
        for method, entry in folder.scores.methods.items()
        if entry.judges
    }
    why = {method: unmeasured(entry.judges[judge]) for method, (judge, entry) in judged.items()}
    if all(why.values()):
        said = next(iter(why.values()), None) or "nobody has answered"
        raise UsageError(f"These boards {CANNOT}: {said}.", hint="Judge them with a vision-language model.")
    target.mkdir()
    for method, (judge, entry) in judged.items():
        if why[method] is not None:
            continue
        told, names = entry.judges[judge], [name for name in entry.judges if not name.startswith(ENSEMBLE)]
        rows = [
            {
                "dataset": {"id": benchmark, "task_id": task},
                "value": round(value, 4),
                "date": folder.created,
                "notes": _notes(told, names, folder.scores.matching, entry.stories),
            }
            for task, name in tasks.items()
            if (value := getattr(told.filtered, name)) is not None
        ]
        place = target / safe_name(method) / ".eval_results"
        place.mkdir(parents=True)
        write_bytes_atomic(place / "katha.yaml", yaml.safe_dump(rows, sort_keys=False).encode("utf-8"))


def _notes(told: JudgeScores, judges: list[str], matching: str, stories: int) -> str:
    span = told.filtered.ci95.stg
    beside = f" (95% {span[0]:.1f} to {span[1]:.1f})" if span is not None else ""
    none, gain = told.filtered.none, told.filtered.gain_image
    guessed = f"; {none:.1f} right without evidence, to which the images add {gain:+.1f}" if none is not None else ""
    return (
        f"Judged by {', '.join(judges)}; {stories} stories, {told.n_valid} valid of {told.n_questions} questions; "
        f"STG {told.filtered.stg:.1f}{beside}{guessed}; matching {matching}."
    )
