"""`compass.lock.yaml`: settings chosen on validation stories, and hashes of everything that they were chosen with.

A test run under a lock is refused when anything differs: the settings would not be the ones that were frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal, Self

import yaml
from pydantic import ConfigDict, Field, ValidationError

from katha.config import katha_version
from katha.errors import InputFileError, UsageError
from katha.eval_bridge.matching.match import normalise
from katha.jsonio import digest, read_yaml, sha256_hex, write_bytes_atomic
from katha.schema import CompassSettings, Question, Record, StoryRecord

TEST_SPLITS = ("test", "public_test", "hidden_test")
"""The splits that nothing may be chosen on."""

_HEAD = (
    "# Written by `katha tune`. Do not edit: the hash at the end covers every line, and a changed lock is refused.\n"
)
_SHORT = 16


class LockedStories(Record):
    """The stories that were tuned on (ids, and short hashes of their words), and the questions of every story of that
    file by a short hash."""

    model_config = ConfigDict(extra="forbid")

    split_sha256: str
    tuned_on: list[str]
    texts: list[str]
    questions_sha256: str
    questions: dict[str, str] = {}

    @classmethod
    def of(cls, tuned_on: Iterable[StoryRecord], others: Iterable[StoryRecord]) -> Self:
        """Return the stories of a lock; the questions of `others` (the rest of the file) are frozen, too."""
        tuned = sorted(tuned_on, key=lambda record: record.story_id)
        questions = {item.story_id: question_sha256(item.recoverability_questions) for item in (*tuned, *others)}
        names = [record.story_id for record in tuned]
        return cls(
            split_sha256=digest(names),
            tuned_on=names,
            texts=[text_sha256(record) for record in tuned],
            questions_sha256=digest(questions),
            questions=dict(sorted(questions.items())),
        )


class Lock(Record):
    """A frozen compass. `protocol` is how questions are asked and matched; `models` hashes each plug-in's spec."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    katha: str
    code_sha256: str
    candidates: int = Field(ge=1)
    seeds: tuple[int, ...]
    settings: CompassSettings
    stories: LockedStories
    protocol: dict[str, str]
    models: dict[str, str]
    prompts: dict[str, str]
    validation: dict[str, object] = {}
    sha256: str = ""

    def content_sha256(self) -> str:
        """Return the hash of everything but the hash."""
        return digest(self.model_dump(mode="json", exclude={"sha256"}))

    def require(
        self, protocol: Mapping[str, str], models: Mapping[str, str], prompts: Mapping[str, str], name: str
    ) -> None:
        """Refuse a run with anything that the settings were not chosen with.

        Raises:
            UsageError: what differs is named.
        """
        differs = [] if self.katha == katha_version() else [f"katha {katha_version()} instead of {self.katha}"]
        differs += [] if self.code_sha256 == code_sha256() else ["other code of the compass"]
        differs += [f"other {what}" for what, sha256 in self.models.items() if models.get(what) != sha256]
        differs += [
            f"{what} {protocol.get(what)!r} instead of {old!r}"
            for what, old in self.protocol.items()
            if protocol.get(what) != old
        ]
        changed = sorted(key for key in {*self.prompts, *prompts} if self.prompts.get(key) != prompts.get(key))
        differs += [f"other prompts ({', '.join(changed[:3])})"] if changed else []
        if differs:
            raise UsageError(
                f"The lock {name!r} was made with something else: {'; '.join(differs)}.",
                hint="Tune again, or leave --lock out: the numbers are then marked unfrozen.",
            )

    def require_stories(self, records: Iterable[StoryRecord], name: str) -> None:
        """Refuse stories that the settings were chosen on, and stories whose questions have changed since.

        Raises:
            UsageError: the story is named.
        """
        tuned, texts = set(self.stories.tuned_on), set(self.stories.texts)
        for record in records:
            if record.story_id in tuned:
                raise UsageError(
                    f"The story {record.story_id!r} is one that {name!r} was tuned on, so it cannot test it.",
                    hint="Give held-out stories (--split test).",
                )
            if text_sha256(record) in texts:
                raise UsageError(
                    f"The story {record.story_id!r} has the words of one that {name!r} was tuned on.",
                    hint="Leave it out, or tune again without it.",
                )
            known = self.stories.questions.get(record.story_id)
            if known is not None and known != question_sha256(record.recoverability_questions):
                raise UsageError(
                    f"The questions of {record.story_id!r} are not those that {name!r} froze.",
                    hint="Restore the accepted answers, or tune again.",
                )


def question_sha256(questions: Iterable[Question]) -> str:
    """Return a short hash of a story's questions and accepted answers, whatever their order."""
    rows = [item.model_dump(mode="json", exclude={"role", "options"}) for item in questions]
    return digest(sorted(rows, key=lambda row: str(row["question_id"])))[:_SHORT]


def text_sha256(record: StoryRecord) -> str:
    """Return a short hash of a story's words, whatever its id, case and punctuation."""
    return digest(normalise(record.story_text))[:_SHORT]


def code_sha256() -> str:
    """Return the hash of what decides: the code of compass and agents, and the modes."""
    hashes = [
        [package, entry.name, sha256_hex(entry.read_bytes())]
        for package in ("katha.compass", "katha.agents")
        for entry in sorted(files(package).iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".py")
    ]
    return digest([*hashes, sha256_hex(files("katha.configs").joinpath("modes.yaml").read_bytes())])


def write_lock(lock: Lock, path: Path) -> None:
    """Seal a lock with its hash and write it as YAML, atomically."""
    sealed = lock.model_copy(update={"sha256": lock.content_sha256()})
    text = yaml.safe_dump(sealed.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
    write_bytes_atomic(path, (_HEAD + text).encode("utf-8"))


def read_lock(path: Path) -> Lock:
    """Return the lock in the file at `path`, whole and unchanged.

    Raises:
        InputFileError: it cannot be read, is no lock, or was edited since it was written.
    """
    hint = "Make one with `katha tune`."
    try:
        lock = Lock.model_validate(read_yaml(path))
    except InputFileError as error:
        raise InputFileError(f"No lock: {error.message}", hint=error.hint or hint) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise InputFileError(f"{str(path)!r} is no lock: {field}: {first['msg']}.", hint=hint) from error
    if lock.sha256 != lock.content_sha256():
        raise InputFileError(
            f"{str(path)!r} was changed after it was frozen: its hash does not fit its lines.",
            hint="Restore it, or tune again.",
        )
    return lock
