"""Answers on the disk and what came of asking: `answers.jsonl`, what failed and why, and a command's status."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Literal, Self, TypeVar

from pydantic import BaseModel, ValidationError

from katha.errors import InputFileError, StoreError
from katha.eval_bridge.judging.budget import PrefixCache
from katha.jsonio import MOST_LINE, canonical, loads, read_lines
from katha.schema import Answer, AnswerStatus

T = TypeVar("T")
_LINE_SHOWN = 60


class LineLog:
    """Appends lines to a file, each in one write; `sync` (and leaving the context) makes them durable.

    Opening a log that a kill left with a torn last line drops that line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = path.open("a+b", buffering=0)
            self._drop_torn_line()
        except OSError as error:
            raise StoreError(f"Cannot open {str(path)!r}: {error.strerror}.") from error

    def _drop_torn_line(self) -> None:
        end = kept = self._file.seek(0, os.SEEK_END)
        while kept:
            self._file.seek(kept - 1)
            if self._file.read(1) == b"\n":
                break
            kept -= 1
        if kept != end:
            self._file.truncate(kept)

    def write(self, line: bytes) -> None:
        """Write one line, given with its line feed.

        Raises:
            StoreError: the disk refused the write.
        """
        try:
            self._file.write(line)
        except OSError as error:
            raise StoreError(f"Cannot write {str(self.path)!r}: {error.strerror}.") from error

    def sync(self) -> None:
        """Wait until everything written is on the disk."""
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.sync()
        self._file.close()


def answer_line(answer: Answer) -> bytes:
    """Return `answer` as one line of `answers.jsonl`, with its line feed."""
    return canonical(answer.model_dump(mode="json")) + b"\n"


class AnswerLog(LineLog):
    """`answers.jsonl`, appended as answers arrive."""

    def append(self, answer: Answer) -> None:
        """Write one answer.

        Raises:
            StoreError: the disk refused the write.
        """
        self.write(answer_line(answer))


def iter_log(path: Path, parse: Callable[[bytes, int], T]) -> Iterator[T]:
    """Stream what `parse` makes of each line and its number; a last line without line feed that fails is torn.

    Raises:
        InputFileError: the file cannot be read, or `parse` refused a line that is not the torn last one.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        if len(line) > MOST_LINE:
            raise InputFileError(f"{str(path)!r}, line {number}, is longer than {MOST_LINE:,} bytes.")
        try:
            yield parse(line, number)
        except InputFileError:
            if line.endswith(b"\n"):
                raise


def iter_answers(path: Path) -> Iterator[Answer]:
    """Stream every row of an answers file, repeats included.

    Raises:
        InputFileError: the file cannot be read, or a line that is not the torn last one is broken (named by number).
    """

    def parse(line: bytes, number: int) -> Answer:
        try:
            if b"NaN" not in line and b"Infinity" not in line:
                with suppress(ValidationError):  # in one go; any other line is looked at slowly, to say what is wrong
                    return Answer.model_validate_json(line)
            return Answer.model_validate(loads(line.decode("utf-8")))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the row"
            raise InputFileError(f"{str(path)!r}, line {number}, field {where!r}: {first['msg']}.") from error
        except ValueError as error:
            shown, why = line[:_LINE_SHOWN].decode("utf-8", "replace"), str(error).rstrip(".")
            message = f"{str(path)!r}, line {number}, is not a JSON answer ({why}): {shown!r}."
            raise InputFileError(message, hint="Mend or remove the line.") from error

    return iter_log(path, parse)


def read_answers(path: Path) -> list[Answer]:
    """Return every answer of the file; the last line wins where method, judge, story, question and condition repeat.

    Raises:
        InputFileError: see `iter_answers`.
    """
    latest = {(row.method, row.judge, row.story_id, row.question_id, row.condition): row for row in iter_answers(path)}
    return list(latest.values())


# What came of asking: how many answers by status, what failed and why, and the one rule for a command's status.

SETTLED: frozenset[AnswerStatus] = frozenset(("ok", "unparseable", "refused", "truncated"))
"""What a judge has said, well or badly: not asked again by the same command."""

FAILED: frozenset[AnswerStatus] = frozenset(("transport_failed", "budget_stopped"))
"""What never reached a judge, or never came back: asked again by the same command.

`not_asked` is in neither: an archive does not hold the answer, or the prompt does not fit the model. Asking again says
the same, unless the archive has grown; a run is finished with it, and an evaluation offers it again."""

UNJUDGED = "nobody judges: the judge is `none`"
"""What the judge `none` says of every question."""
Status = Literal["finished", "incomplete", "budget_stopped"]
_SHOWN = 5
# Twenty causes are kept in a file, five are printed: a broken key fails ten thousand questions alike.
_KEPT = 20
# One bit for each of the three conditions of the paper.
_COMPLETE = 0b111
_BIT = {"text": 0b001, "image": 0b010, "text+image": 0b100, "none": 0}


class Cause(BaseModel, frozen=True):
    """One reason for which questions have no answer, and how often it came. `judge` is None for a board's own fault."""

    judge: str | None
    status: AnswerStatus | Literal["invalid"]
    error: str
    count: int = 1

    def __str__(self) -> str:
        where = f"{self.judge}, {self.status}" if self.judge is not None else self.status
        return f"{self.error} ({where})"


class Outcome(BaseModel, frozen=True):
    """What came of asking.

    statuses: answers by status. scored: whether any question was answered under all three conditions by one judge.
    first: what failed first. causes: why answers are missing, the most frequent first. caches: what the prefix caches
    of judges' servers counted meanwhile, where they count.
    """

    statuses: dict[AnswerStatus, int]
    scored: bool
    first: Cause | None
    causes: tuple[Cause, ...]
    caches: Mapping[str, PrefixCache] = {}

    @classmethod
    def of_finished(
        cls, statuses: Mapping[AnswerStatus, int], failures: Iterable[Cause | Mapping[str, object]]
    ) -> Outcome:
        """Return the outcome of a finished command, as its state file tells it."""
        causes = tuple(Cause.model_validate(cause) for cause in failures)
        return cls(statuses=dict(statuses), scored=True, first=None, causes=causes)

    @property
    def asked(self) -> int:
        """Return how many answers there should be."""
        return sum(self.statuses.values())

    @property
    def answered(self) -> int:
        """Return how many there are."""
        return self.statuses.get("ok", 0)

    @property
    def failed(self) -> int:
        """Return how many the same command asks again."""
        return sum(count for status, count in self.statuses.items() if status in FAILED)

    @property
    def unjudged(self) -> bool:
        """Return whether nobody was to judge."""
        return bool(self.causes) and all(cause.error == UNJUDGED for cause in self.causes)

    @property
    def nothing(self) -> bool:
        """Return whether there was something to score and nothing could be."""
        return not self.scored and not self.unjudged and bool(self.statuses or self.causes)

    def status(self, *, stopped: bool = False, open_ones: Collection[AnswerStatus] = FAILED) -> Status:
        """Return how a command stands that ended with this outcome: the rule of run, eval, ablate, compare and tune.

        stopped: the budget ended it. open_ones: what the command will ask again. A command is finished when nothing
        that it could ask again is missing and at least one question could be scored.
        """
        if stopped:
            return "budget_stopped"
        return "incomplete" if self.nothing or set(open_ones) & set(self.statuses) else "finished"

    @property
    def exit_code(self) -> int:
        """1 where nothing could be scored or questions failed; 0 where a person's own budget or archive set the end."""
        return int(self.nothing or "transport_failed" in self.statuses)

    def sentences(self) -> list[str]:
        """Return what a person is to know of missing answers; nothing where there are none missing."""
        if self.unjudged:
            return ["Not judged: no judge was named (--judge)."]
        if self.nothing:
            told = [f"No question could be scored: {self.answered:,} of {self.asked:,} got an answer."]
        elif self.causes:
            told = [f"{self.asked - self.answered:,} of {self.asked:,} got no answer."]
        else:
            return []
        if self.first is not None:
            told.append(f"The first cause: {self.first}.")
        told += [f"  {cause.count:,} times: {cause}" for cause in self.causes[:_SHOWN]]
        rest = self.causes[_SHOWN:]
        if rest:
            told.append(f"  {sum(cause.count for cause in rest):,} times: {len(rest):,} other causes")
        if self.failed:
            told.append("The same command asks them again.")
        return told

    def with_caches(self, caches: Mapping[str, PrefixCache]) -> Outcome:
        """Return the outcome with what the prefix caches of judges' servers counted."""
        return self.model_copy(update={"caches": dict(caches)})

    def cached(self) -> list[str]:
        """Return a sentence for each judge whose server's prefix cache was asked."""
        return [said for name, cache in self.caches.items() if (said := cache.told(name)) is not None]

    @property
    def told(self) -> list[Cause]:
        """The most frequent causes, for a command's state file."""
        return list(self.causes[:_KEPT])

    def failures(self) -> list[dict[str, object]]:
        """Return the most frequent causes as plain values."""
        return [cause.model_dump(mode="json") for cause in self.told]


class OutcomeCounter:
    """Counts answers as they come, from several threads."""

    def __init__(self) -> None:
        self._statuses: Counter[AnswerStatus] = Counter()
        self._causes: Counter[tuple[str | None, AnswerStatus | Literal["invalid"], str]] = Counter()
        self._heard: dict[tuple[str, str, str], dict[str | None, int]] | None = {}
        self._lock = threading.Lock()

    def add(self, row: Answer) -> None:
        """Count one answer."""
        with self._lock:
            self._statuses[row.status] += 1
            if row.status != "ok":
                self._causes[row.judge, row.status, row.error or row.status] += 1
            elif self._heard is not None:
                self._hear(row, self._heard)

    def _hear(self, row: Answer, heard: dict[tuple[str, str, str], dict[str | None, int]]) -> None:
        """Note under which conditions a question was answered, until one is found to be complete.

        A text-only answer without a method holds for every method.
        """
        boards = heard.setdefault((row.judge, row.story_id, row.question_id), {})
        boards[row.method] = boards.get(row.method, 0) | _BIT[row.condition]
        if any(bits | boards.get(None, 0) == _COMPLETE for bits in boards.values()):
            self._heard = None

    def leave_out(self, reason: str) -> None:
        """Count a board that cannot be judged at all."""
        with self._lock:
            self._causes[None, "invalid", reason] += 1

    def outcome(self, first: Cause | None = None) -> Outcome:
        """Return what was counted; `first`: the first cause where it is known better than by the order of counting."""
        with self._lock:
            causes = [
                Cause(judge=judge, status=status, error=error, count=count)
                for (judge, status, error), count in self._causes.items()
                if status != "invalid" or self._heard is not None
            ]
        earliest = first if first is not None and any(str(first) == str(cause) for cause in causes) else None
        return Outcome(
            statuses=dict(sorted(self._statuses.items())),
            scored=self._heard is None,
            first=earliest or next(iter(causes), None),
            causes=tuple(sorted(causes, key=lambda cause: -cause.count)),
        )


def outcome_of(rows: Iterable[Answer], *, unusable: Iterable[str] = (), first: Cause | None = None) -> Outcome:
    """Return what came of asking, from an answer log.

    unusable: why boards could not be judged at all, one reason a board; told only where nothing could be scored.
    first: what failed first, where the process that asked still knows; a log is in a fixed order, not in that of time.
    """
    counter = OutcomeCounter()
    for row in rows:
        counter.add(row)
    for reason in unusable:
        counter.leave_out(reason)
    return counter.outcome(first)
