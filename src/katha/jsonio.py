"""JSON the way every file here is written: UTF-8, sorted keys, no NaN, atomic replacement, durable."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from katha.errors import InputFileError, StoreError, unreadable


def sha256_hex(data: bytes) -> str:
    """Return the lower-case hexadecimal sha256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def canonical(value: Any) -> bytes:
    """Return `value` as the one JSON text that is hashed: sorted keys, no blanks, UTF-8, NaN refused."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def digest(value: Any) -> str:
    """Return the sha256 of `canonical(value)`."""
    return sha256_hex(canonical(value))


def dumps(value: Any) -> str:
    """Return `value` as readable JSON that ends with a line feed."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is too large for a number")
    return value


def loads(text: str) -> Any:
    """Parse JSON and refuse NaN and infinities.

    Raises:
        ValueError: `text` is not JSON, is nested too deeply, or holds NaN or an infinity.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read_text(path: Path, *, limit: int | None = None) -> str:
    """Return the UTF-8 text of `path` (a leading byte-order mark is dropped).

    Raises:
        InputFileError: no such file, a folder, binary or other encoding, or more than `limit` bytes.
    """
    try:
        size = path.stat().st_size
        if limit is not None and size > limit:
            raise InputFileError(f"{str(path)!r} holds {size:,} bytes; at most {limit:,} are read.")
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    if b"\0" in data:
        raise InputFileError(f"{str(path)!r} is a binary file, not text.", hint="Give a UTF-8 text file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFileError(
            f"{str(path)!r} is not UTF-8 text (byte {error.start}).", hint="Save it as UTF-8 and try again."
        ) from error


def read_json(path: Path) -> Any:
    """Return the JSON value in `path`.

    Raises:
        InputFileError: the file cannot be read or is not JSON (line and column are named).
    """
    text = read_text(path)
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        raise InputFileError(
            f"{str(path)!r} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}."
        ) from error
    except ValueError as error:
        raise InputFileError(f"{str(path)!r} is not JSON: {error}.") from error


PARTIAL = ".partial"
"""How the hidden file ends that a killed writer may leave beside the file it was writing."""


def write_bytes_atomic(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write `data` so that a reader or a killed process leaves the old file or the new one, never a torn one.

    `durable` waits for the disk, so that this holds for a power cut too; leave it out only for what is verified by its
    hash when read and can be made again.

    Raises:
        StoreError: the disk is full or refused the write; the old file stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PARTIAL)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        hint = "Free some space and run the same command again." if error.errno == errno.ENOSPC else None
        raise StoreError(f"Cannot write {str(path)!r}: {error.strerror}.", hint=hint) from error


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON, atomically."""
    write_bytes_atomic(path, dumps(value).encode("utf-8"))


def iter_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Stream `(line number from 1, line)` of a UTF-8 file, blank lines left out.

    Raises:
        InputFileError: the file cannot be read or a line is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise InputFileError(f"{str(path)!r}, line {number}, is not UTF-8 text.") from error
                if line.strip():
                    yield number, line
    except OSError as error:
        raise unreadable(path, error) from error
