"""`answers.jsonl`: appended as answers arrive, read with the last line winning and a torn last line ignored."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from pydantic import ValidationError

from katha.errors import InputFileError, StoreError, unreadable
from katha.jsonio import canonical, loads
from katha.schema import Answer

AnswerKey = tuple[str | None, str, str, str, str]
_SHOWN = 60


def answer_line(answer: Answer) -> bytes:
    """`answer` as one line of `answers.jsonl`, with its line feed."""
    return canonical(answer.model_dump(mode="json")) + b"\n"


def _key(answer: Answer) -> AnswerKey:
    return (answer.method, answer.judge, answer.story_id, answer.question_id, answer.condition)


class AnswerLog:
    """Appends answers to a file, each in one write; `sync` (and leaving the context) makes them durable.

    Opening a log that a kill left with a torn last line drops that line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._drop_torn_line()
            self._file: BinaryIO = path.open("ab", buffering=0)
        except OSError as error:
            raise StoreError(f"Cannot open {str(path)!r}: {error.strerror}.") from error

    def _drop_torn_line(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            kept = end
            while kept:
                file.seek(kept - 1)
                if file.read(1) == b"\n":
                    break
                kept -= 1
            if kept != end:
                file.truncate(kept)

    def append(self, answer: Answer) -> None:
        """Write one answer.

        Raises:
            StoreError: the disk refused the write.
        """
        try:
            self._file.write(answer_line(answer))
        except OSError as error:
            raise StoreError(f"Cannot write {str(self.path)!r}: {error.strerror}.") from error

    def sync(self) -> None:
        """Wait until everything appended is on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Sync and close."""
        if not self._file.closed:
            self.sync()
            self._file.close()

    def __enter__(self) -> AnswerLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _quick(line: bytes) -> Answer | None:
    """The answer in a sound line, parsed in one go; None for any other line, which is then looked at slowly."""
    if b"NaN" in line or b"Infinity" in line:
        return None
    try:
        return Answer.model_validate_json(line)
    except ValidationError:
        return None


def _parse(line: bytes, path: Path, number: int) -> Answer:
    quick = _quick(line)
    if quick is not None:
        return quick
    try:
        return Answer.model_validate(loads(line.decode("utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the row"
        raise InputFileError(f"{str(path)!r}, line {number}, field {where!r}: {first['msg']}.") from error
    except (json.JSONDecodeError, UnicodeDecodeError, ValueError) as error:
        shown, why = line[:_SHOWN].decode("utf-8", "replace"), str(error).rstrip(".")
        raise InputFileError(
            f"{str(path)!r}, line {number}, is not a JSON answer ({why}): {shown!r}.", hint="Mend or remove the line."
        ) from error


def iter_answers(path: Path) -> Iterator[Answer]:
    """Stream every row of an answers file, repeats included; a last line without line feed that does not parse is torn.

    Raises:
        InputFileError: the file cannot be read, or a line that is not the torn last one is broken (named by number).
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield _parse(line, path, number)
                except InputFileError:
                    if line.endswith(b"\n"):
                        raise
    except OSError as error:
        raise unreadable(path, error) from error


def read_answers(path: Path) -> list[Answer]:
    """Every answer of the file; the last line wins where (method, judge, story, question, condition) repeats."""
    latest: dict[AnswerKey, Answer] = {}
    for answer in iter_answers(path):
        latest[_key(answer)] = answer
    return list(latest.values())
