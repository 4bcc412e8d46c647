"""The folder of an ablation: one small folder a story, finished ones stay; the table is made from these alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from katha.agents.ablation.records import StoryResult
from katha.compass.suites import Row
from katha.errors import InputFileError, OutputFolderError
from katha.eval_bridge.matching import Rule
from katha.eval_bridge.rules import make_decider, open_rule
from katha.eval_bridge.verdicts import VERDICTS
from katha.jsonio import canonical, read_json, write_bytes_atomic, write_json
from katha.schema import Answer, StoryRecord
from katha.store import LockTaken, file_lock

__all__ = ["HELD_OUT", "AblationFolder", "protocol_of"]

_LOCK = ".lock"
HELD_OUT = "held_out-held_out"
"""The protocol: reporting prompts and reporting questions. Its rows are `answers.jsonl`, the others' carry a name."""


def protocol_of(row: Row) -> str:
    """The name of how a row is asked: its prompts and its questions."""
    return f"{row.prompts}-{row.questions}"


class AblationFolder:
    """`OUT` of `katha ablate`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / "ablation.json"
        self.table = path / "table.json"
        self.scores = path / "scores.json"
        self.stories = path / "stories.jsonl"
        self.panels = path / "panels"

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Make the folder if need be and hold it alone.

        Raises:
            OutputFolderError: it cannot be written, holds something else, or another katha is working in it.
        """
        hint = "Choose another --out."
        try:
            if self.path.exists() and not self.path.is_dir():
                raise OutputFolderError(f"{str(self.path)!r} is a file, not a folder.", hint=hint)
            entries = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
            if entries - {_LOCK} and not self.state.exists():
                named = sorted(entries - {_LOCK})[0]
                raise OutputFolderError(
                    f"{str(self.path)!r} holds files of something else, {named!r} for one.", hint=hint
                )
            self.panels.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputFolderError(f"Cannot write {str(self.path)!r}: {error.strerror}.", hint=hint) from error
        try:
            with file_lock(self.path / _LOCK, wait=False):
                yield
        except LockTaken as error:
            raise OutputFolderError(f"Another katha is working in {str(self.path)!r}.", hint=hint) from error

    def read_state(self) -> dict[str, Any] | None:
        """`ablation.json`, or None when there is none.

        Raises:
            OutputFolderError: there is one, but not of an ablation.
        """
        if not self.state.exists():
            return None
        try:
            value = read_json(self.state)
        except InputFileError as error:
            raise OutputFolderError(error.message, hint="Choose another --out.") from error
        if not isinstance(value, dict) or value.get("format") != 1 or "suite" not in value:
            raise OutputFolderError(f"{str(self.state)!r} is not of an ablation.", hint="Choose another --out.")
        return value

    def rule(self, name: str) -> Rule:
        """The matching rule of that name; what a model decides for it is kept here."""
        path = self.path / VERDICTS
        return open_rule(name, [path], decider=make_decider(name), keep=path)

    def story(self, story_id: str) -> Path:
        """The folder of one story."""
        return self.path / "stories" / story_id

    def finished(self, story_id: str, identity: str) -> StoryResult | None:
        """The story's result if it is there and was made from the same things."""
        try:
            found = StoryResult.model_validate(read_json(self.story(story_id) / "result.json"))
        except (InputFileError, ValidationError):
            return None
        return found if found.identity == identity else None

    def keep(
        self,
        result: StoryResult,
        story: StoryRecord | None,
        answers: Mapping[str, Iterable[Answer]],
        steering: Iterable[Answer],
        pictures: Mapping[str, bytes],
    ) -> None:
        """Write everything of one story; `result.json` comes last and says that the rest is there."""
        place = self.story(result.story_id)
        for name, png in pictures.items():
            path = self.panels / f"{name}.png"
            if not path.exists():
                write_bytes_atomic(path, png, durable=False)
        if story is not None:
            write_bytes_atomic(place / "story.jsonl", canonical(story.model_dump(mode="json")) + b"\n")
        for protocol, rows in answers.items():
            _write_rows(place / _answers_name(protocol), rows)
        _write_rows(place / "steering.jsonl", steering)
        write_json(place / "result.json", result.model_dump(mode="json"))

    def answers(self, story_id: str, protocol: str = HELD_OUT) -> list[Answer]:
        """A story's rows under one protocol."""
        path = self.story(story_id) / _answers_name(protocol)
        if not path.exists():
            return []
        return [Answer.model_validate_json(line) for line in path.read_bytes().splitlines()]

    def prepared(self, story_id: str) -> StoryRecord | None:
        """The story as it was used, or None when it could not be prepared."""
        path = self.story(story_id) / "story.jsonl"
        return StoryRecord.model_validate_json(path.read_bytes()) if path.exists() else None

    def gather(self, order: Iterable[str]) -> None:
        """Join the stories' files into `stories.jsonl` and `answers.jsonl`, in this order."""
        names = {"story.jsonl": self.stories, "answers.jsonl": self.path / "answers.jsonl"}
        stories = list(order)
        for name, target in names.items():
            partial = target.with_suffix(".partial")
            with partial.open("wb") as out:
                for story_id in stories:
                    with suppress(FileNotFoundError), (self.story(story_id) / name).open("rb") as file:
                        shutil.copyfileobj(file, out)
            os.replace(partial, target)


def _answers_name(protocol: str) -> str:
    return "answers.jsonl" if protocol == HELD_OUT else f"answers.{protocol}.jsonl"


def _write_rows(path: Path, rows: Iterable[Answer]) -> None:
    data = b"".join(canonical(row.model_dump(mode="json")) + b"\n" for row in rows)
    write_bytes_atomic(path, data, durable=False)
