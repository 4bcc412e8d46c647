"""The one reader and the one writer of files.

What is read is a regular file (never a pipe, a device or a socket, which could wait or go on for ever), of a size that
its kind may have, UTF-8 without half a surrogate pair, and JSON or YAML that is not nested without end; anything else
is one sentence with the file, the line or field, and what to do. What is written is UTF-8 JSON with sorted keys and
without NaN, by atomic replacement, durable, and never over what the same command reads.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from katha.errors import InputFileError, StoreError, UsageError, first_line, unreadable

_R = TypeVar("_R", bound=BaseModel)
MOST_YAML = 16_000_000
"""Bytes of a preset, suite, lock or list of methods."""
MOST_JSON = 32_000_000
"""Bytes of a plan, a record or a storyboard: what one JSON text takes in memory is up to twenty times as much."""
MOST_KEPT_JSON = 512_000_000
"""Bytes of a JSON file that a command wrote into its own folder: a table of 25,000 stories is one."""
MOST_LINE = 4_000_000
"""Bytes of one line of JSON Lines or CSV; a file of lines may have any size."""
# No record of stories or answers has a line of this length: it is another kind of file.
_MOST_SKIPPED = 256_000_000
_SURROGATES = ("\\ud", "\\uD")
# Python's recursion ends at a thousand frames, of which a level takes several.
_DEEPEST_YAML = 200
# Aliases of YAML multiply: a file of ten lines can hold a billion values.
_MOST_VALUES = 2_000_000


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
    """Parse JSON and refuse NaN, infinities and texts that no UTF-8 file can hold.

    Raises:
        ValueError: `text` is not JSON, is nested too deeply, or holds NaN, an infinity or half a surrogate pair.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        if any(half in text for half in _SURROGATES):
            canonical(value)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError("it holds half of a surrogate pair, which is not text") from error
    return value


def open_input(path: Path, *, limit: int | None = None) -> BufferedReader:
    """Open a regular file for reading; a pipe, a device or a socket is refused without waiting for it.

    Raises:
        InputFileError: no such file, a folder, no regular file, or one of more than `limit` bytes.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:  # a null byte in the name
        raise InputFileError(f"{str(path)[:200]!r} cannot be the name of a file.") from error
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise unreadable(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
        if not stat.S_ISREG(found.st_mode):
            raise InputFileError(
                f"{str(path)!r} is not a regular file, but a pipe, a device or a socket.",
                hint="Save what it gives as a file, and give that.",
            )
        if limit is not None and found.st_size > limit:
            raise InputFileError(f"{str(path)!r} holds {found.st_size:,} bytes; at most {limit:,} are read.")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_bytes(path: Path, *, limit: int | None = None) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        InputFileError: see `open_input`.
    """
    with open_input(path, limit=limit) as file:
        try:
            return file.read()
        except OSError as error:
            raise unreadable(path, error) from error


def read_text(path: Path, *, limit: int | None = MOST_KEPT_JSON) -> str:
    """Return the UTF-8 text of a regular file (a leading byte-order mark is dropped).

    Raises:
        InputFileError: see `open_input`; or it is binary or of another encoding.
    """
    data = read_bytes(path, limit=limit)
    if b"\0" in data:
        raise InputFileError(f"{str(path)!r} is a binary file, not text.", hint="Give a UTF-8 text file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputFileError(
            f"{str(path)!r} is not UTF-8 text (byte {error.start}).", hint="Save it as UTF-8 and try again."
        ) from error


def read_json(path: Path, *, limit: int | None = MOST_KEPT_JSON) -> Any:
    """Return the JSON value in `path`.

    Raises:
        InputFileError: the file cannot be read or is not JSON (line and column are named).
    """
    text = read_text(path, limit=limit)
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        raise InputFileError(
            f"{str(path)!r} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}."
        ) from error
    except ValueError as error:
        raise InputFileError(f"{str(path)!r} is not JSON: {error}.") from error


def read_record(path: Path, kind: type[_R]) -> _R:
    """Return the record in a JSON file.

    Raises:
        InputFileError: the file cannot be read or does not have its form; the field is named.
    """
    value = read_json(path)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputFileError(f"{str(path)!r}, field {field!r}: {first['msg']}.") from error


def read_yaml(path: Path) -> Any:
    """Return the YAML value in `path`; only plain values are made, never objects.

    Raises:
        InputFileError: the file cannot be read or is not YAML.
    """
    return parse_yaml(read_text(path, limit=MOST_YAML), repr(str(path)))


@cache
def shipped_table(package: str, *name: str) -> Any:
    """Return the value of a YAML file that ships in a package of katha, read once; do not change what comes back."""
    return parse_table(files(package).joinpath(*name).read_text(encoding="utf-8"))


def parse_table(text: str) -> Any:
    """Return what `yaml.safe_load` does of a text without tags and merged mappings, in less than half of the time: no
    tree of nodes is made on the way, and a word that comes again is not looked at again.

    Raises:
        yaml.YAMLError: it is not YAML. ValueError: it has a tag.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    source, plain, anchored = loader(text), dict[str, Any](), dict[str, Any]()
    following = source.get_event

    def value(event: Any) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            return anchored[event.anchor]
        if event.tag is not None:
            raise ValueError(f"a table has no tags: line {event.start_mark.line + 1}")
        if kind is yaml.ScalarEvent:
            found = word(event.value) if event.implicit[0] else event.value
        elif kind is yaml.SequenceStartEvent:
            found = [value(item) for item in until(yaml.SequenceEndEvent)]
        else:
            found = {value(key): value(following()) for key in until(yaml.MappingEndEvent)}
        if event.anchor is not None:
            anchored[event.anchor] = found
        return found

    def word(written: str) -> Any:
        if written not in plain:
            tag = source.resolve(yaml.ScalarNode, written, (True, False))
            plain[written] = source.construct_object(yaml.ScalarNode(tag, written))
        return plain[written]

    def until(end: type[yaml.Event]) -> Iterator[yaml.Event]:
        while type(event := following()) is not end:
            yield event

    return next((value(event) for event in until(yaml.StreamEndEvent) if isinstance(event, yaml.NodeEvent)), None)


def parse_yaml(text: str, what: str) -> Any:
    """Return the value of a YAML text; `what` names it in the sentence of a refusal.

    Raises:
        InputFileError: it is not YAML, or is nested too deeply.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST_YAML:
                raise ValueError("it is nested too deeply")
        value = yaml.load(text, Loader=loader)
        _count_values(value, {})
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise InputFileError(f"{what} is not YAML: {where}{error.problem or error.context}.") from error
    except Exception as error:  # the loader's constructors raise ValueError, AttributeError, KeyError and more
        raise InputFileError(f"{what} is not YAML that can be used: {first_line(error).rstrip('.')}.") from error
    return value


def _count_values(value: object, known: dict[int, int]) -> int:
    """Return how many values a tree holds with every alias written out.

    Raises:
        ValueError: it holds itself, too many values, or half of a surrogate pair.
    """
    if isinstance(value, str):
        value.encode("utf-8")
    if not isinstance(value, (dict, list, set, tuple)):
        return 1
    if id(value) not in known:
        known[id(value)] = _MOST_VALUES  # until it is known: what holds itself is too large
        inside = [*value, *value.values()] if isinstance(value, dict) else list(value)
        known[id(value)] = 1 + sum(_count_values(item, known) for item in inside)
    if known[id(value)] >= _MOST_VALUES:
        raise ValueError("it holds itself, or too many values")
    return known[id(value)]


def refuse_overwriting(out: Path, inputs: Iterable[Path | None]) -> None:
    """Refuse to write over what the same command reads.

    Raises:
        UsageError: `out` is one of `inputs`, under whatever name.
    """
    for path in inputs:
        same = path is not None and (path == out or os.path.realpath(path) == os.path.realpath(out))
        with suppress(OSError):
            same = same or (path is not None and os.path.samefile(path, out))
        if same:
            raise UsageError(f"{str(out)!r} would be written over what is read.", hint="Name another file.")


PARTIAL = ".partial"
"""How the hidden file ends that a killed writer may leave beside the file it was writing."""


def file_sha256(path: Path) -> str:
    """Return the sha256 of a regular file's bytes, read in pieces.

    Raises:
        InputFileError: see `open_input`.
    """
    with open_input(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Stream `(line number from 1, line)` of a regular file; of a line over `MOST_LINE` bytes, so many and no more.

    Raises:
        InputFileError: the file cannot be read, or a line of it does not end.
    """
    with open_input(path) as file:
        try:
            number = 0
            while line := file.readline(MOST_LINE + 1):
                number += 1
                rest, skipped = line, 0
                while len(rest) > MOST_LINE and not rest.endswith(b"\n"):
                    rest = file.readline(MOST_LINE + 1)
                    skipped += len(rest)
                    if skipped > _MOST_SKIPPED:
                        said = f"does not end within {_MOST_SKIPPED:,} bytes, so it is not a file of lines"
                        raise InputFileError(f"{str(path)!r}, line {number}, {said}.")
                yield number, line
        except OSError as error:
            raise unreadable(path, error) from error


def iter_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Stream `(line number from 1, line)` of a UTF-8 file, blank lines left out.

    Raises:
        InputFileError: the file cannot be read, or a line is too long or not UTF-8.
    """
    for number, raw in read_lines(path):
        if len(raw) > MOST_LINE:
            raise InputFileError(f"{str(path)!r}, line {number}, is longer than {MOST_LINE:,} bytes.")
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputFileError(f"{str(path)!r}, line {number}, is not UTF-8 text.") from error
        if line.strip():
            yield number, line
