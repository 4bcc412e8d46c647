"""`compass.lock.yaml`: settings chosen on validation stories, and hashes of everything that they were chosen with.

A test run under a lock is refused when anything differs: the settings would not be the ones that were frozen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal, Self

import yaml
from pydantic import ConfigDict, Field, ValidationError

from katha.config import Settings, katha_version
from katha.errors import InputFileError, StoreError, UsageError
from katha.eval_bridge.matching.match import normalise
from katha.jsonio import digest, read_json, read_yaml, sha256_hex, write_bytes_atomic, write_json
from katha.registry import Family, default_registry
from katha.schema import CompassSettings, Question, Record, StoryRecord

TEST_SPLITS = ("test", "public_test", "hidden_test")
"""The splits that nothing may be chosen on."""

_HEAD = (
    "# Written by `katha tune`. Do not edit: the hash at the end covers every line, and a changed lock is refused.\n"
)
# 64 bits: locks name thousands of texts, and two that agree by chance would need billions.
_SHORT = 16
_ALIKE = 0.75
"""The share of the shorter story's sentences from which two stories are the same one."""
_SENTENCE_END = re.compile(r"[.!?\n]+")
_BOUND = ("compass", "agents", "eval_bridge")
"""The parts whose code decides which board stays, what is asked of it and how it is scored."""
_PLUGGED: tuple[Family, ...] = ("matchers", "readers")
"""The plug-ins that decide as they do."""


class LockedStories(Record):
    """The stories that were tuned on (ids, short hashes of their words, and of each one's sentences), and the questions
    of every story of that file by a short hash."""

    model_config = ConfigDict(extra="forbid")

    split_sha256: str
    tuned_on: list[str]
    texts: list[str]
    sentences: dict[str, list[str]] = {}
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
            sentences={record.story_id: sorted(sentence_hashes(record)) for record in tuned},
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
        differs += [] if self.code_sha256 == code_sha256() else ["other code of compass, judging or scoring"]
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
            near = near_duplicate(
                {name: set(found) for name, found in self.stories.sentences.items()},
                {record.story_id: sentence_hashes(record)},
            )
            if near is not None:
                raise UsageError(
                    f"The story {record.story_id!r} tells nearly all of {near[0]!r}, which {name!r} was tuned on.",
                    hint="Leave it out, or tune again without that one.",
                )
            known = self.stories.questions.get(record.story_id)
            if known is not None and known != question_sha256(record.recoverability_questions):
                raise UsageError(
                    f"The questions of {record.story_id!r} are not those that {name!r} froze.",
                    hint="Restore the accepted answers, or tune again.",
                )

    def require_options(self, config: Settings, given: Collection[str], name: str) -> None:
        """Refuse options that the lock fixes where they say something else: they would be ignored.

        given: the options that the command names. A value that is not the default was named somewhere (a preset, the
        environment).

        Raises:
            UsageError: the option is named.
        """
        fixed = {"seeds": self.seeds, "candidates": self.candidates, "compass": self.settings}
        for option, frozen in fixed.items():
            value, default = getattr(config, option), Settings.model_fields[option].default
            if value != frozen and (option in given or value != default):
                told = ",".join(map(str, value)) if option == "seeds" else str(value)
                raise UsageError(
                    f"The lock {name!r} fixes {option}, and {told} was given.",
                    hint=f"Leave {'--seeds' if option == 'seeds' else option} out, or tune again with it.",
                )


def question_sha256(questions: Iterable[Question]) -> str:
    """Return a short hash of a story's questions and accepted answers, whatever their order."""
    rows = [item.model_dump(mode="json", exclude={"role", "options"}) for item in questions]
    return digest(sorted(rows, key=lambda row: str(row["question_id"])))[:_SHORT]


def text_sha256(record: StoryRecord) -> str:
    """Return a short hash of a story's words, whatever its id, case and punctuation."""
    return digest(normalise(record.story_text))[:_SHORT]


def sentence_hashes(record: StoryRecord) -> set[str]:
    """Return a short hash of each sentence of a story, whatever its case and punctuation."""
    found = (normalise(part) for part in _SENTENCE_END.split(record.story_text))
    return {digest(part)[:_SHORT] for part in found if part}


def near_duplicate(some: Mapping[str, set[str]], others: Mapping[str, set[str]]) -> tuple[str, str] | None:
    """Return the first story of `some` and of `others` that tell the same but for a sentence, or three quarters alike.

    Each maps stories to hashes of their sentences.
    """
    for name, ours in some.items():
        for other, theirs in others.items():
            shared, fewer, more = len(ours & theirs), *sorted((len(ours), len(theirs)))
            if shared >= 2 and (shared >= more - 1 or shared >= _ALIKE * fewer):
                return name, other
    return None


def code_sha256() -> str:
    """Return the hash of what decides and scores: code and data of compass, agents and eval_bridge, the modes, and the
    packages of the plug-ins that make questions and match answers."""
    plugged = {name for family in _PLUGGED for name in default_registry(family).packages()} - {"katha"}
    packages = {**{name: f"katha.{name}" for name in _BOUND}, **{name: name for name in sorted(plugged)}}
    bound = ((f"{name}/{path}", data) for name, package in packages.items() for path, data in _files(files(package)))
    hashes = [[path, sha256_hex(data)] for path, data in bound]
    data = [sha256_hex(files("katha.configs").joinpath(name).read_bytes()) for name in ("modes.yaml", "questions.yaml")]
    return digest([hashes, data])


def _files(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield each source and data file below a folder of a package, by its path."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _files(entry, f"{above}{entry.name}/")
        elif entry.name.endswith((".py", ".yaml", ".json", ".onnx")):
            yield above + entry.name, entry.read_bytes()


# The questions of stories that the lock does not hold: their records as they were when first tested under it.


def tests_of(path: Path) -> Path:
    """Return where the stories that were tested under the lock at `path` are kept: beside it."""
    return path.with_name(f"{path.stem}.tested.json")


def require_tested(lock: Lock, path: Path, records: Iterable[StoryRecord]) -> None:
    """Refuse stories whose text, annotation or questions are not those first tested under the lock; keep new ones.

    Raises:
        UsageError: the story is named, or the file beside the lock cannot be written.
    """
    beside = tests_of(path)
    known: dict[str, str] = {}
    if beside.is_file():
        kept = read_json(beside)
        if isinstance(kept, dict) and kept.get("lock") == lock.sha256:
            known = dict(kept.get("stories", {}))
    fresh = dict(known)
    for record in records:
        asked = question_sha256(record.recoverability_questions)
        told = [record.model_dump(mode="json", include={"scenes", "transitions", "moral_label"})]
        found = digest([text_sha256(record), asked, told])[:_SHORT]
        if fresh.setdefault(record.story_id, found) != found:
            raise UsageError(
                f"The story {record.story_id!r} is not as it was when it was first tested under {str(path)!r}.",
                hint=f"Restore its text, annotation and questions, or remove it from {str(beside)!r} and say so.",
            )
    if fresh == known:
        return
    try:
        write_json(beside, {"lock": lock.sha256, "stories": dict(sorted(fresh.items()))})
    except (OSError, StoreError) as error:
        raise UsageError(f"{str(beside)!r}, which keeps what was tested, cannot be written: {error}.") from error


def write_lock(lock: Lock, path: Path) -> None:
    """Seal a lock with its hash and write it as YAML, atomically."""
    sealed = lock.model_copy(update={"sha256": lock.content_sha256()})
    text = yaml.safe_dump(sealed.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
    write_bytes_atomic(path, (_HEAD + text).encode("utf-8"))


def read_lock(path: Path) -> Lock:
    """Return the lock in the file at `path`, whole and unchanged.

    Raises:
        InputFileError: it cannot be read, is not a lock, or was edited since it was written.
    """
    hint = "Make one with `katha tune`."
    try:
        lock = Lock.model_validate(read_yaml(path))
    except InputFileError as error:
        raise InputFileError(f"No lock: {error.message}", hint=error.hint or hint) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise InputFileError(f"{str(path)!r} is not a lock: {field}: {first['msg']}.", hint=hint) from error
    if lock.sha256 != lock.content_sha256():
        raise InputFileError(
            f"{str(path)!r} was changed after it was frozen: its hash does not fit its lines.",
            hint="Restore it, or tune again.",
        )
    return lock
