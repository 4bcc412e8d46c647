"""Weight files looked at without loading them: names, shapes and hashes of their tensors."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from katha.config import cache_folder
from katha.errors import InputFileError, KathaError, unreadable
from katha.jsonio import digest, read_json, write_json

__all__ = ["Header", "files_sha256", "read_header", "weight_files"]

_LONGEST_HEADER = 100 << 20


@dataclass(frozen=True)
class Header:
    """The tensors of one safetensors file: name to shape."""

    shapes: Mapping[str, tuple[int, ...]]

    @property
    def numbers(self) -> int:
        """How many numbers the file holds."""
        return sum(map(math.prod, self.shapes.values()))

    @property
    def largest(self) -> int:
        """How many numbers its largest tensor holds."""
        return max(map(math.prod, self.shapes.values()), default=0)


def read_header(file: Path) -> Header:
    """The header of a safetensors file; no tensor is read.

    Raises:
        InputFileError: it is no whole safetensors file.
    """
    broken = InputFileError(f"{str(file)!r} is no whole safetensors file.", hint="Download it again.")
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 0 < length < _LONGEST_HEADER:
                raise broken
            rows = json.loads(stream.read(length))
            rows.pop("__metadata__", None)
            shapes = {name: tuple(map(int, row["shape"])) for name, row in rows.items()}
            end = max((row["data_offsets"][1] for row in rows.values()), default=0)
    except OSError as error:
        raise unreadable(file, error) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise broken from error
    if file.stat().st_size < 8 + length + end:
        raise InputFileError(f"{str(file)!r} is cut off.", hint="Download it again.")
    return Header(shapes)


def weight_files(folder: Path, variant: str | None) -> list[Path]:
    """The safetensors files of one component: those of `variant` (`fp16`), or those of none."""
    found = sorted(folder.glob("*.safetensors"))
    if variant is not None:
        return [file for file in found if f".{variant}" in file.name]
    return [file for file in found if file.name.count(".") == 1]


def files_sha256(files: Mapping[str, Path]) -> str:
    """One hash of several files, by their names and bytes. A file's hash is remembered until its size or time changes.

    Raises:
        InputFileError: a file cannot be read.
    """
    memory = cache_folder() / "checkpoints.json"
    known = _remembered(memory)
    hashes: dict[str, str] = {}
    fresh: dict[str, str] = {}
    for name, path in sorted(files.items()):
        key = _key(path)
        hashes[name] = known.get(key) or _sha256(path)
        if key not in known:
            fresh[key] = hashes[name]
    if fresh:
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_json(memory, {**_remembered(memory), **fresh})
    return digest(hashes)


def _key(path: Path) -> str:
    state = path.stat()
    return f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


def _remembered(memory: Path) -> dict[str, str]:
    try:
        value = read_json(memory)
    except KathaError:  # no such file yet, or a broken one: hash again
        return {}
    return value if isinstance(value, dict) else {}


def total_numbers(files: Sequence[Path]) -> int:
    """How many numbers several files hold."""
    return sum(read_header(file).numbers for file in files)
