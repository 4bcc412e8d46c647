"""Looking after a store: take out the pictures that nothing needs, and copy one store into another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from katha.errors import InputFileError
from katha.jsonio import read_bytes
from katha.store import FRAME, PLACE, Store

_NAMED = re.compile(rb"\b[0-9a-f]{64}\b")


@dataclass(frozen=True)
class GcReport:
    """What nothing needs: `files` of `bytes`, and claims of the dead; `removed` is whether they are gone.

    kept_young: files that nothing needs yet; they may be of a command that is under way.
    """

    files: int
    bytes: int
    kept_young: int
    claims: int
    removed: bool


@dataclass(frozen=True)
class CopyReport:
    """What a copy found: records and files that it copied, and those that were there before.

    missing_files: records left out because their picture is gone or damaged.
    """

    records: int
    present_records: int
    files: int
    present_files: int
    missing_files: int


def collect(store: Store, folders: Sequence[Path], *, age: float, now: float, remove: bool = False) -> GcReport:
    """Find the pictures that no record and none of these `folders` (of runs, or of many) names; `remove` removes them.

    age: seconds; a picture that was written later than so long before `now` (seconds since 1970) stays, because it is
    written before its record is.

    Raises:
        InputFileError: a folder cannot be read; nothing was removed. StoreError: the store cannot be.
    """
    needed = {record.value.decode("ascii") for record in store.index.records(FRAME)} | _named(folders)
    files = young = size = 0
    for name in list(store.blobs.names()):
        if name in needed:
            continue
        if now - store.blobs.written(name) < age:
            young += 1
            continue
        files += 1
        size += store.blobs.size(name)
        if remove:
            store.blobs.remove(name)
    return GcReport(files, size, young, store.index.sweep() if remove else 0, remove)


def _named(folders: Iterable[Path]) -> set[str]:
    """Return every hash that is the name of a picture in these folders, or stands in a JSON file of theirs."""
    found: set[str] = set()
    for folder in folders:
        if not folder.is_dir():
            raise InputFileError(f"There is no folder {str(folder)!r}.", hint="Name the folders of runs.")
        for path in sorted(folder.rglob("*")):
            if _NAMED.fullmatch(path.stem.encode()):
                found.add(path.stem)
            elif path.suffix in {".json", ".jsonl"} and path.is_file():
                found.update(name.decode() for name in _NAMED.findall(read_bytes(path)))
    return found


def copy(source: Store, target: Store, on_record: Callable[[int], None] | None = None) -> CopyReport:
    """Copy every record of `source` and its picture into `target`; who paid for it stays told.

    What is there stays as it is, so that the same call goes on after a kill. A picture goes before its record.

    Raises:
        StoreError: one of the stores fails; what was copied stays.
    """
    known = set(target.blobs.names())
    records = present = files = known_files = missing = 0
    for done, record in enumerate(source.index.records(), 1):
        if on_record is not None:
            on_record(done)
        if record.kind == PLACE:
            continue
        if target.index.get(record.kind, record.key) is not None:
            present += 1
            continue
        sha256 = record.value.decode("ascii") if record.kind == FRAME else None
        if sha256 in known:
            known_files += 1
        elif sha256 is not None:
            data = source.blobs.find(sha256)
            if data is None:
                missing += 1
                continue
            target.blobs.put(data)
            lost = target.blobs.failures.get(sha256)
            if lost is not None:
                raise lost
            known.add(sha256)
            files += 1
        target.index.put(record.kind, record.key, record.value, record.owner)
        records += 1
    target.flush()
    return CopyReport(records, present, files, known_files, missing)
