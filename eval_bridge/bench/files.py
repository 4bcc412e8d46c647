"""The files of a release (Table 23): found, streamed line by line, and what they are published to hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from katha.configs import load_config
from katha.errors import InputFileError
from katha.jsonio import MOST_JSON, MOST_LINE, loads, read_bytes, read_lines

Kind = Literal["stories", "variants", "validation", "human_gold_1k", "strict_gold_400"]
_NAMES: dict[str, Kind] = {
    "annotations.jsonl": "stories",
    "contrastive_variants.jsonl": "variants",
    "human_validation.jsonl": "validation",
    "human_gold_1k.jsonl": "human_gold_1k",
    "strict_gold_400.jsonl": "strict_gold_400",
}
_MARKS: tuple[tuple[str, Kind], ...] = (
    ("variant_id", "variants"),
    ("annotator_ids", "validation"),
    ("decision", "validation"),
)
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class FileProblem:
    """One thing that is wrong: where (line None: the file as a whole), in which record and field, and what."""

    file: str
    line: int | None
    story: str
    field: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        record = f", story {self.story!r}" if self.story else ""
        field = f", field {self.field!r}" if self.field else ""
        return f"{place}{record}{field}: {self.message}"


@dataclass(frozen=True)
class JsonLine:
    """A line that holds a JSON object."""

    file: str
    line: int
    value: Mapping[str, Any]


@dataclass(frozen=True)
class ReleaseFile:
    """A file and what its lines are."""

    path: Path
    kind: Kind


def find_files(path: Path) -> list[ReleaseFile]:
    """The release files at `path`: those of a folder that have a released name, or the one file, whatever its name.

    Raises:
        InputFileError: there is no such file, or no release file in the folder.
    """
    if path.is_dir():
        found = [ReleaseFile(path / name, kind) for name, kind in _NAMES.items() if (path / name).is_file()]
        if not found:
            raise InputFileError(f"{str(path)!r} holds no release file.", hint=f"Looked for {', '.join(_NAMES)}.")
        return found
    return [ReleaseFile(path, _NAMES.get(path.name) or _kind_of(path))]


def stream(path: Path) -> Iterator[JsonLine | FileProblem]:
    """Yield every line of a file: a row, or the problem that keeps it from being one. Blank lines are left out.

    Raises:
        InputFileError: the file cannot be read.
    """
    name = path.name
    for number, line in _lines(path):
        if line.strip():
            parsed = _parse(line.removeprefix(_BOM) if number == 1 else line)
            yield (
                FileProblem(name, number, "", "", parsed) if isinstance(parsed, str) else JsonLine(name, number, parsed)
            )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines; of a line that is too long, its first bytes only. A `.json` file is one record on many lines."""
    if path.suffix.lower() == ".json":
        yield 1, read_bytes(path, limit=MOST_JSON)
    else:
        yield from read_lines(path)


def _parse(line: bytes) -> Mapping[str, Any] | str:
    """The object in `line`, or what is wrong with it."""
    if len(line) > MOST_LINE:
        return f"the line is longer than {MOST_LINE:,} bytes, so it is not a record."
    try:
        value = loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"the line is not UTF-8 text (byte {error.start})."
    except json.JSONDecodeError as error:
        return f"the line is not JSON: {error.msg} at column {error.colno}."
    except (ValueError, RecursionError) as error:
        return f"the line is not JSON: {error}."
    return value if isinstance(value, dict) else "the line is not a JSON object."


def _kind_of(path: Path) -> Kind:
    """Return what a file of any name holds, told from the keys of its first record."""
    for row in stream(path):
        if isinstance(row, JsonLine):
            return next((kind for key, kind in _MARKS if key in row.value), "stories")
    return "stories"


# What KathaBench-25K is published to hold (`configs/kathabench.yaml`): the counts of the paper's tables.

_PUBLISHED = load_config("kathabench.yaml")
STORIES: int = _PUBLISHED["stories"]
SCENES: int = _PUBLISHED["scenes"]
VARIANTS_PER_STORY: int = _PUBLISHED["variants_per_story"]

Counts = Mapping[str, int]
NARRATIVE_TYPES: Counts = MappingProxyType(_PUBLISHED["narrative_types"])
TRANSITION_TYPES: Counts = MappingProxyType(_PUBLISHED["transition_types"])
MORALS: Counts = MappingProxyType(_PUBLISHED["morals"])
QUESTIONS: Counts = MappingProxyType(_PUBLISHED["questions"])
SOURCES: Counts = MappingProxyType(_PUBLISHED["sources"])
SPLITS: Counts = MappingProxyType(_PUBLISHED["splits"])
VALIDATION_STATUSES: tuple[str, ...] = tuple(_PUBLISHED["validation_statuses"])
RESOLUTIONS: tuple[str, ...] = tuple(_PUBLISHED["resolutions"])
_SPLIT_NAMES: Mapping[str, str] = _PUBLISHED["split_aliases"] | {name: name for name in (*SPLITS, "test")}


class Tier(NamedTuple):
    """A gold subset (Table 20): its file, how many stories it has, and how many of each narrative type."""

    file: str
    stories: int
    per_type: int


GOLD_TIERS: Mapping[str, Tier] = MappingProxyType({name: Tier(**row) for name, row in _PUBLISHED["gold_tiers"].items()})


def split_name(value: str) -> str | None:
    """The split that `value` names (`public-test`, `val` and the like included), None if it names none."""
    return _SPLIT_NAMES.get(value.strip().casefold().replace("-", "_").replace(" ", "_"))


def split_stories(split: str) -> int:
    """Return how many stories of the full release are in `split`, where `test` is both of its halves."""
    return SPLITS["public_test"] + SPLITS["hidden_test"] if split == "test" else SPLITS[split]


def expected_type(story_id: str) -> str | None:
    """The narrative type that an identifier of the form `kb25k_XXXX` stands for; None for any other identifier."""
    digits = story_id.removeprefix("kb25k_")
    if digits == story_id or not (digits.isascii() and digits.isdigit() and len(digits) == 4):
        return None
    left = int(digits)
    for name, count in NARRATIVE_TYPES.items():
        if 0 < left <= count:
            return name
        left -= count
    return None
