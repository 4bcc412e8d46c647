"""Dividing stories into train, validation, public test and hidden test: by seed, and alike in each narrative type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from katha.errors import InputFileError, OutputFolderError, RecordError
from katha.eval_bridge.bench.files import SPLITS, STORIES, find_files, split_name
from katha.jsonio import digest, read_json, refuse_overwriting, write_json
from katha.stories import iter_records


class Split(BaseModel):
    """A division of stories, as it is written: story ids by split, and counts by split and narrative type."""

    format: Literal[1] = 1
    source: str
    seed: int
    stratified_by: Literal["narrative_type"] = "narrative_type"
    stories_sha256: str
    counts: dict[str, int]
    by_type: dict[str, dict[str, int]]
    splits: dict[str, list[str]]


def assign_splits(types: Mapping[str, str], seed: int = 42) -> dict[str, list[str]]:
    """Story ids by split, given each story's narrative type.

    Within a type stories are ordered by a hash of seed and id, so the order of the file does not matter. Each type is
    divided 70, 15, 10 and 5 percent; what does not divide evenly goes where the whole lacks most so far.
    """
    parts: dict[str, list[str]] = {name: [] for name in SPLITS}
    seen = 0
    for kind in sorted(set(types.values())):
        members = sorted((story for story in types if types[story] == kind), key=lambda story: digest([seed, story]))
        seen += len(members)
        start = 0
        for name, count in _shares(len(members), seen, {name: len(ids) for name, ids in parts.items()}).items():
            parts[name] += members[start : start + count]
            start += count
    return {name: sorted(ids) for name, ids in parts.items()}


def _shares(size: int, seen: int, given: Mapping[str, int]) -> dict[str, int]:
    """Return how many of `size` stories go to each split, when `seen` in all should then be divided in proportion."""
    shares = {name: size * count // STORIES for name, count in SPLITS.items()}
    for _ in range(size - sum(shares.values())):
        lacking = max(SPLITS, key=lambda name: seen * SPLITS[name] / STORIES - given[name] - shares[name])
        shares[lacking] += 1
    return shares


def save_split(path: Path, out: Path, *, seed: int = 42, force: bool = False) -> Split:
    """Write the split of the stories in `path` to `out` as JSON, and return it.

    Raises:
        InputFileError: `path` is not a file of stories. RecordError: a record is broken, has no narrative type, or
        carries another split already. OutputFolderError: `out` holds another split. Both of these give way to `force`.
    """
    file = find_files(path)[0]
    refuse_overwriting(out, [file.path])
    if file.kind in ("variants", "validation"):
        raise InputFileError(f"{str(file.path)!r} holds no stories.", hint="Give annotations.jsonl, or its folder.")
    types, carried = {}, {}
    for record in iter_records(file.path):
        if record.narrative_type is None:
            raise RecordError(f"{file.path}: story {record.story_id!r} has no field 'narrative_type' to divide by.")
        types[record.story_id] = record.narrative_type
        if record.split is not None:
            carried[record.story_id] = record.split
    parts = assign_splits(types, seed)
    others = _others(parts, carried)
    if others and not force:
        shown = ", ".join(f"{count:,} in {name!r}" for name, count in sorted(others.items()))
        raise RecordError(
            f"{str(path)!r} carries another split already ({shown} would move): that is the one to report by.",
            hint="Give --force to write a new one all the same.",
        )
    split = Split(
        source=file.path.name,
        seed=seed,
        stories_sha256=digest(sorted(types)),
        counts={name: len(ids) for name, ids in parts.items()},
        by_type={
            kind: {name: sum(types[story] == kind for story in ids) for name, ids in parts.items()}
            for kind in sorted(set(types.values()))
        },
        splits=parts,
    )
    written = split.model_dump(mode="json")
    if out.exists() and not force and read_json(out) != written:
        raise OutputFolderError(f"{str(out)!r} holds something else.", hint="Give another --out, or --force.")
    write_json(out, written)
    return split


def _others(parts: Mapping[str, Iterable[str]], carried: Mapping[str, str]) -> Counter[str]:
    """The splits that stories carry already, counted, where they are not the ones assigned now."""
    different: Counter[str] = Counter()
    for split, ids in parts.items():
        allowed = {split, "test"} if split in ("public_test", "hidden_test") else {split}
        own = [carried[story] for story in ids if story in carried]
        different.update(value for value in own if (split_name(value) or value) not in allowed)
    return different
