"""The folder of one evaluation: its state, which answers it holds, and its answers in one fixed order.

Answers are appended as they arrive, in whatever order; `tidy` leaves each question's last answer once, in story-major
order, so that a run that was killed and taken up again ends with the bytes of one that was not.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    computed_field,
    model_serializer,
    model_validator,
)

from katha.errors import OutputFolderError, StoreError
from katha.eval_bridge.judging.answers import SETTLED, AnswerLog, Cause, LineLog, iter_answers, iter_log
from katha.eval_bridge.judging.brake import UNREADABLE
from katha.eval_bridge.judging.budget import Account, CallTally, Limits
from katha.eval_bridge.judging.entrance import EntranceResult
from katha.eval_bridge.matching.match import usual_rule
from katha.eval_bridge.matching.rules import VERDICTS
from katha.eval_bridge.packets.instructions import REPORTING_VARIANT, AnswersFormat
from katha.eval_bridge.packets.packets import LeakageReport
from katha.eval_bridge.questions.evaluators import DEFAULT_EVALUATOR
from katha.eval_bridge.scoring.controls import Control
from katha.experiments.runner import ExperimentState
from katha.jsonio import canonical, loads
from katha.protocols import JudgeReply
from katha.schema import Answer, AnswerStatus, Question, StoryRecord
from katha.schema.scores import ConfidenceRow, ControlResult, LeftCount, Selection
from katha.store import StoreKind, Workspace

Order = Callable[[Answer], tuple[int, ...] | None]
"""A row's place, or None for a row that is not part of the evaluation (any more)."""

# What a cut of power may cost: a second of answers, which the cache has anyway.
_SYNC_SECONDS = 1.0


class EvalSettings(BaseModel):
    """What is asked and how it is scored."""

    model_config = ConfigDict(frozen=True)

    answers: AnswersFormat = "choice"
    variant: str = REPORTING_VARIANT
    matching: str = Field(default_factory=usual_rule)
    ask: Literal["singly", "together"] = "singly"
    questions: Selection = "all"
    controls: tuple[Control, ...] = ()
    seed: int = 42
    resamples: int = 10_000
    evaluator: str = DEFAULT_EVALUATOR
    reference: str | None = None
    order: str | None = None

    def selected(self, record: StoryRecord) -> list[Question]:
        """Return the questions of `record` that are asked; one without a role counts always."""
        roles = (self.questions, None)
        return [item for item in record.recoverability_questions if self.questions == "all" or item.role in roles]


class Leakage(BaseModel):
    """What the guard looked at in the image-only packets, and what it found (Table 72: nothing)."""

    packets: int = 0
    fields: int = 0
    chunks: int = 0
    secrets: int = 0
    found: list[str] = []
    pictures_read: int = 0
    drawn: list[str] = []

    @computed_field  # type: ignore[prop-decorator]
    @property
    def detected(self) -> float | None:
        """Packets with a finding, in per cent."""
        return 100.0 * len(self.found) / self.packets if self.packets else None

    def add(self, story_id: str, report: LeakageReport) -> None:
        """Count one packet's report, and the lines of words that were read in each of its pictures."""
        self.packets += 1
        self.fields += report.fields
        self.chunks += report.chunks
        self.secrets += report.secrets
        if not report.clean:
            self.found.append(f"{story_id}: {report.found[0]}")
        self.pictures_read += len(report.words)
        self.drawn += [f"{story_id}, frame {at}: {text}" for at, line in enumerate(report.words, 1) for text in line]

    def in_order(self) -> Leakage:
        """Return it with the findings in an order that does not depend on which story was first."""
        return self.model_copy(update={"found": sorted(self.found), "drawn": sorted(self.drawn)})


class EvalResults(BaseModel):
    """What `eval.json` holds besides, once everything that could be asked was asked."""

    model_config = ConfigDict(frozen=True)

    stories: int
    questions: int
    rows: int
    statuses: dict[AnswerStatus, int]
    failures: list[Cause] = []
    calls: dict[str, Account]
    spent: dict[str, Account] = {}
    kept: int
    budget: Limits
    leakage: Leakage
    invalid: dict[str, dict[str, str]]
    left: list[LeftCount]
    controls: list[ControlResult]
    confidence: list[ConfidenceRow]
    entrance: dict[str, EntranceResult | None] = {}


class EvalState(ExperimentState):
    """`eval.json`: what an evaluation asks, of whom, how far it is, and what came of it.

    identity: the hash of stories, questions and prompts. fingerprint: of everything that decides the files. In the file
    the results stand beside the rest.
    """

    differs: ClassVar[str] = "other stories, questions or prompts"

    fingerprint: str = ""
    command: list[str] = []
    config: EvalSettings = EvalSettings()
    boards: dict[str, str] = {}
    judges: dict[str, Mapping[str, object]] = {}
    prompts: dict[str, str] = {}
    results: EvalResults | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_file(cls, value: object) -> object:
        if not isinstance(value, dict) or "results" in value or "rows" not in value:
            return value
        results = {name: value[name] for name in EvalResults.model_fields if name in value}
        rest = {name: item for name, item in value.items() if name not in results}
        return rest | {"results": results, "statuses": results["statuses"], "causes": results.get("failures", [])}

    @model_serializer(mode="wrap")
    def _in_the_file_s_order(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        row: dict[str, object] = dump(self)
        results = row.pop("results")
        own = {name: item for name, item in row.items() if name not in ("statuses", "causes")}
        return own | (results if isinstance(results, dict) else {})

    @property
    def done(self) -> EvalResults:
        """The results.

        Raises:
            OutputFolderError: the evaluation has not come to its end.
        """
        if self.results is None:
            raise OutputFolderError("The evaluation has not come to its end.", hint="Run the same command again.")
        return self.results


EVAL = StoreKind(name="evaluation", file="eval.json", state=EvalState)


class EvalFolder(Workspace[EvalState]):
    """`OUT` of one evaluation."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, EVAL)
        self.stories = path / "stories.jsonl"
        self.answers = path / "answers.jsonl"
        self.controls = path / "controls.jsonl"
        self.left = path / "left.jsonl"
        self.spent = path / "spent.jsonl"
        self.verdicts = path / VERDICTS
        self.variants = path / "contrastive_variants.jsonl"
        self.scores = path / "scores.json"
        self.report = path / "report.html"
        self.batches = path / "batches"

    def rows(self) -> Iterator[Answer]:
        """Yield every answer, those of the controls last."""
        for path in (self.answers, self.controls):
            yield from iter_answers(path) if path.exists() else ()

    def settled(self) -> set[bytes]:
        """Return the marks of the questions that are answered already, by the last row of each."""
        latest: dict[bytes, bytes | None] = {}
        for row in self.rows():
            key = mark(row.method, row.judge, row.story_id, row.question_id, row.condition)
            sign = mark(row.method, row.judge, row.story_id, row.question_id, row.packet_sha256)
            latest[key] = sign if row.status in SETTLED else None
        return {sign for sign in latest.values() if sign is not None}

    def unread(self) -> dict[str, tuple[int, str]]:
        """Return by judge how many of its last replies in a row could not be read, and what was wrong with the last."""
        found: dict[str, tuple[int, str]] = {}
        for row in self.rows():
            if row.status == "ok":
                found.pop(row.judge, None)
            elif row.status in UNREADABLE and "shared" not in row.usage:
                found[row.judge] = (found.get(row.judge, (0, ""))[0] + 1, row.error or row.status)
        return found

    def forget(self, judges: Collection[str]) -> None:
        """Drop the rows of judges that are not what they were."""
        for path in (self.answers, self.controls) if judges else ():
            if path.exists():
                _rewrite(path, [span for row, span in _spans(path) if row is not None and row.judge not in judges])

    def tidy(self, path: Path, order: Order) -> int:
        """Leave the last row of each key, in order; return the number of rows that remain."""
        latest: dict[tuple[int, ...], tuple[int, int]] = {}
        places: list[tuple[int, ...]] = []
        for row, span in _spans(path) if path.exists() else ():
            place = order(row) if row is not None else None
            if place is not None:
                latest[place] = span
            places.append(place or ())
        if places != sorted(latest):
            _rewrite(path, [latest[place] for place in sorted(latest)])
        return len(latest)


def mark(method: str | None, judge: str, story: str, question: str, about: str) -> bytes:
    """Return sixteen bytes that stand for one question put to one judge about one packet (or condition)."""
    return hashlib.blake2b(canonical([method, judge, story, question, about]), digest_size=16).digest()


def _spans(path: Path) -> Iterator[tuple[Answer | None, tuple[int, int]]]:
    """Yield each row of a log with its place and length in bytes; a torn last line is None."""
    start = 0
    with path.open("rb") as file:
        for line in file:
            yield Answer.model_validate_json(line) if line.endswith(b"\n") else None, (start, len(line))
            start += len(line)


def _rewrite(path: Path, spans: list[tuple[int, int]]) -> None:
    """Copy the lines at `spans` over the file, atomically, without holding them all."""
    fresh = path.with_name(f".{path.name}.fresh")
    try:
        with path.open("rb") as source, fresh.open("wb") as target:
            for start, length in spans:
                source.seek(start)
                target.write(source.read(length))
            target.flush()
            os.fsync(target.fileno())
        fresh.replace(path)
    except OSError as error:
        raise StoreError(
            f"Cannot write {str(path)!r}: {error.strerror}.", hint="Run the same command again."
        ) from error


class AnswerWriter:
    """An answer log that is on the disk within a second of every slow answer, without a flush for every quick one.

    Several threads may write to it.
    """

    def __init__(self, log: AnswerLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock, self._synced = log, clock, clock()
        self._lock = threading.Lock()

    def __call__(self, answer: Answer) -> None:
        """Append one answer."""
        with self._lock:
            self._log.append(answer)
            if self._clock() - self._synced >= _SYNC_SECONDS:
                self._log.sync()
                self._synced = self._clock()


class SpendLog:
    """`spent.jsonl`: a line for each reply that was paid for, over all commands of the folder, killed ones included.

    A judge that says nothing of costs or tokens leaves no line, and without any there is no file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log: LineLog | None = None
        self._lock = threading.Lock()

    def __call__(self, judge: str, reply: JudgeReply) -> None:
        """Write what a reply took."""
        usage = {name: reply.usage[name] for name in ("cost", "tokens") if reply.usage.get(name) is not None}
        if not usage:
            return
        with self._lock:
            self._log = self._log or LineLog(self._path)
            self._log.write(canonical({"judge": judge, "status": reply.status, "usage": usage}) + b"\n")

    def close(self) -> None:
        """Wait until everything is on the disk."""
        if self._log is not None:
            self._log.__exit__()

    def accounts(self) -> dict[str, Account]:
        """Return what each judge was paid for."""
        tallies: dict[str, CallTally] = {}
        rows = iter_log(self._path, lambda line, _: loads(line.decode("utf-8"))) if self._path.exists() else ()
        for row in rows:
            tallies.setdefault(row["judge"], CallTally()).count(JudgeReply(row["status"], usage=row["usage"]))
        return {name: tally.account() for name, tally in sorted(tallies.items())}
