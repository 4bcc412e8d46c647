"""Story records of other forms, written in the released one.

A record that cannot be read is a problem of its own, never fatal to the others; what was assumed of the
rest is counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from katha.errors import UsageError
from katha.eval_bridge.bench.files import FileProblem, JsonLine, find_files, stream
from katha.jsonio import write_bytes_atomic
from katha.mapping import RecordMapping
from katha.schema import StoryRecord
from katha.stories import record_problems


@dataclass(frozen=True)
class Converted:
    """What became of the records: how many were written, with how many questions, what was assumed in how many of them
    and what could not be read."""

    records: int
    questions: int
    assumed: dict[str, int]
    without_questions: list[str]
    problems: list[FileProblem]


def convert(path: Path, out: Path, mapping: RecordMapping) -> Converted:
    """Write the stories at `path` into `out`, in the released form, one a line.

    Args:
        path: A release's folder, or one file of stories (.jsonl, .json).
        out: The JSON Lines file; replaced as a whole.
        mapping: How other keys and spellings are read.

    Raises:
        InputFileError: `path` cannot be read. UsageError: `out` is the file that is read, or holds no story file.
    """
    files = [file.path for file in find_files(path) if file.kind == "stories"]
    if not files:
        raise UsageError(f"{str(path)!r} holds no stories.", hint="Give annotations.jsonl, or a file of story records.")
    if out.exists() and any(out.samefile(file) for file in files):
        raise UsageError(f"--out {str(out)!r} is the file that is read.", hint="Name another file.")
    assumed: Counter[str] = Counter()
    problems: list[FileProblem] = []
    lines: list[str] = []
    bare: list[str] = []
    asked, seen = 0, set[str]()
    for file in files:
        for row in _records(file, mapping, seen):
            if isinstance(row, FileProblem):
                problems.append(row)
                continue
            record, told = row
            assumed.update(told)
            asked += len(record.recoverability_questions)
            if not record.recoverability_questions:
                bare.append(record.story_id)
            lines.append(json.dumps(record.model_dump(mode="json"), ensure_ascii=False, sort_keys=True))
    write_bytes_atomic(out, "".join(f"{line}\n" for line in lines).encode("utf-8"))
    return Converted(len(lines), asked, dict(assumed.most_common()), bare, problems)


def _records(
    file: Path, mapping: RecordMapping, seen: set[str]
) -> Iterator[tuple[StoryRecord, list[str]] | FileProblem]:
    """Yield each line's record and what was assumed of it, or what keeps it from being one."""
    for row in stream(file):
        if isinstance(row, FileProblem):
            yield row
            continue
        value, told = mapping.canonical(row.value, f"{file.stem}_{row.line}")
        found = _checked(value, row, seen)
        yield found if isinstance(found, FileProblem) else (found, told)


def _checked(value: dict[str, Any], row: JsonLine, seen: set[str]) -> StoryRecord | FileProblem:
    story = str(value["story_id"])
    try:
        record = StoryRecord.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        return FileProblem(row.file, row.line, story, ".".join(map(str, first["loc"])), f"{first['msg']}.")
    wrong = next(record_problems(record), None)
    if wrong is None and record.story_id in seen:
        wrong = "the id was used before."
    if wrong is not None:
        return FileProblem(row.file, row.line, story, "", wrong)
    seen.add(record.story_id)
    return record
