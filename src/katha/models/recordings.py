"""Recordings: every call of language models that a command used, in one file, and commands done again from it.

`KeptCalls` are those in the store, so that no command pays twice for an identical call. `Recorder` writes each call
that is used into FILE.part, durably, and packs them into FILE at the end. `Replayer` has the replies of a recording and
refuses every other call. The form of the file is a contract: docs/recordings.md.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from filelock import lock_descriptor

from katha.configs import load_config
from katha.errors import InputFileError, KathaError, ModelError, OutputFolderError
from katha.jsonio import canonical, loads, open_input, read_bytes, sha256_hex, write_bytes_atomic
from katha.models.calls import Call, CallLog, Received, Reply, today
from katha.sqlite_index import told

FORMAT = 1
_HEAD = "katha recording"
# Recordings hold pictures; what opens to more than two gigabytes is a bomb.
_MOST_PACKED = 512_000_000
_MOST_OPENED = 2_000_000_000
_LONG = 200
"""Letters from which a part of a body that is not a message is written once, too (a schema)."""
_PART, _JSON = "part", "json part"
_SHOWN = 60
Line = dict[str, Any]
"""One line of a recording, as JSON."""
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class UnrecordedError(ModelError):
    """A replay asks what its recording does not hold."""


# A body with its texts in parts, each written once: a conversation that grows costs little.


def folded(request: Mapping[str, Any]) -> tuple[Line, dict[str, str]]:
    """Return a body with each message's texts, and long values, as the hashes of parts; and the parts."""
    parts: dict[str, str] = {}

    def part(text: str, kind: str) -> dict[str, str]:
        sha256 = sha256_hex(text.encode("utf-8"))
        parts[sha256] = text
        return {kind: sha256}

    def message(value: Any) -> Any:
        content = value.get("content") if isinstance(value, Mapping) else None
        if isinstance(content, str):
            return {**value, "content": part(content, _PART)}
        return {**value, "content": [piece(item) for item in content]} if isinstance(content, list) else value

    def piece(value: Any) -> Any:
        text = value.get("text") if isinstance(value, Mapping) else None
        return {**value, "text": part(text, _PART)} if isinstance(text, str) else value

    made: Line = {}
    for name, value in request.items():
        if name == "messages" and isinstance(value, list):
            made[name] = [message(item) for item in value]
        elif isinstance(value, (dict, list)) and len(text := canonical(value).decode("utf-8")) > _LONG:
            made[name] = part(text, _JSON)
        else:
            made[name] = value
    return made, parts


def unfolded(value: Any, parts: Mapping[str, str]) -> Any:
    """Return what was folded.

    Raises:
        KeyError: a part is not there.
    """
    if isinstance(value, Mapping):
        if set(value) == {_PART}:
            return parts[value[_PART]]
        if set(value) == {_JSON}:
            return loads(parts[value[_JSON]])
        return {name: unfolded(item, parts) for name, item in value.items()}
    return [unfolded(item, parts) for item in value] if isinstance(value, list) else value


def _needed(value: Any) -> Iterator[str]:
    """Yield the hashes of the parts that a folded value names."""
    if isinstance(value, Mapping):
        if set(value) in ({_PART}, {_JSON}):
            yield str(next(iter(value.values())))
        else:
            for item in value.values():
                yield from _needed(item)
    elif isinstance(value, list):
        for item in value:
            yield from _needed(item)


class Kept(NamedTuple):
    """One call with its reply, as it is written: a line of JSON, and the parts that it names."""

    line: Line
    parts: dict[str, str]

    @classmethod
    def of(cls, call: Call, reply: Reply) -> Kept:
        """Return a call and its reply as they are written."""
        request, parts = folded(call.request)
        received = reply.received
        text = received.text.encode("utf-8", "replace").decode("utf-8")
        sha256 = sha256_hex(text.encode("utf-8"))
        line: Line = {
            "call": call.key,
            "provider": call.provider,
            "model": call.model,
            "date": reply.date,
            "reached": call.reached,
            "asker": call.asker,
            **({"draw": call.draw} if call.draw else {}),
            "request": request,
            "reply": {
                "text": {_PART: sha256},
                "stop": received.stop,
                "model": received.model,
                "tokens": dict(received.tokens),
                **({"words": dict(received.words)} if received.words is not None else {}),
                "retries": reply.retries,
                "cost": reply.cost,
            },
        }
        return cls(line, {**parts, sha256: text})

    @property
    def call(self) -> Call:
        """The call.

        Raises:
            KeyError, TypeError: it is not what was written.
        """
        line = self.line
        request = unfolded(line["request"], self.parts)
        draw, asker, reached = line.get("draw", 0), line.get("asker", "language model"), line.get("reached", "")
        return Call(line["provider"], line["model"], request, draw, asker, reached=reached)

    @property
    def reply(self) -> Reply:
        """Return what it gave.

        Raises:
            KeyError, TypeError: it is not what was written.
        """
        told = self.line["reply"]
        received = Received(
            self.parts[told["text"][_PART]], told["model"], told["stop"], dict(told["tokens"]), told.get("words")
        )
        return Reply(received, int(told["retries"]), told["cost"], str(self.line["date"]))


# Calls that the store keeps.


class KeepsCalls(Protocol):
    """Where calls are kept (`Store.calls`)."""

    def get(self, key: str) -> Mapping[str, Any] | None:
        """Return the call of that key, its texts as parts."""
        ...

    def put(self, key: str, line: Mapping[str, Any], parts: Mapping[str, str]) -> None:
        """Keep a call; one that is kept under that key gives way."""
        ...

    def drop(self, key: str) -> None:
        """Forget a call."""
        ...

    def part(self, sha256: str) -> str | None:
        """Return a text by its hash."""
        ...


def kept_call(place: KeepsCalls, key: str) -> Kept | None:
    """Return a call of the store with all its parts; None where one is gone."""
    line = place.get(key)
    if line is None:
        return None
    parts = {sha256: place.part(sha256) for sha256 in _needed(line)}
    found = {sha256: text for sha256, text in parts.items() if text is not None}
    return Kept(dict(line), found) if len(found) == len(parts) else None


class KeptCalls(CallLog):
    """Calls in the store. Only whole replies are kept, and judges, who have a cache of answers, are asked again.

    A model is known by its name and address: another server's model of the same name is another model.
    """

    def __init__(self, place: Callable[[], KeepsCalls], *, judges: bool = False) -> None:
        """place: opens the store, when it is first needed. judges: find what judges were asked, too."""
        self._place, self._judges = place, judges
        self._paths: list[Path] = []
        self._lock = threading.Lock()
        self._own = threading.local()

    def find(self, call: Call) -> Reply | None:
        """Return the kept reply."""
        if call.asker == "about" or (call.asker == "judge" and not self._judges):
            return None
        key, place = self.key(call), self._place()
        line = place.get(key)
        text = place.part(line["reply"]["text"][_PART]) if line is not None else None
        if line is None or text is None:
            return None
        self._used(key, call)
        return Kept(dict(line), {line["reply"]["text"][_PART]: text}).reply

    def keep(self, call: Call, reply: Reply) -> None:
        """Keep a whole reply."""
        if call.asker == "about" or reply.received.stop is not None:
            return
        key, kept = self.key(call), Kept.of(call, reply)
        self._place().put(key, kept.line, kept.parts)
        self._used(key, call)

    @staticmethod
    def key(call: Call) -> str:
        """Return the key in the store: of the call and of where it goes."""
        return sha256_hex(f"{call.key} {call.scope}".encode())

    @contextmanager
    def noting(self, path: Path) -> Iterator[None]:
        """Write the keys that are used from now on into a file."""
        with self._lock:
            self._paths.append(path)
        try:
            yield
        finally:
            with self._lock:
                self._paths.remove(path)

    @contextmanager
    def forgetting(self, kind: type[Exception]) -> Iterator[None]:
        """Forget this thread's last conversation where it ends in an error of `kind`."""
        self._own.used = []
        try:
            yield
        except kind:
            used: list[tuple[str, str]] = self._own.used
            for key, begun in used:
                if begun == used[-1][1]:  # what begins alike is one conversation
                    self._place().drop(key)
            raise
        finally:
            self._own.used = []

    def _used(self, key: str, call: Call) -> None:
        messages = call.request.get("messages")
        begun = sha256_hex(canonical(messages[0] if messages else ""))
        self._own.used = [*getattr(self._own, "used", []), (key, begun)]
        with self._lock:
            for path in self._paths:
                with told("Cannot write", path), path.open("a", encoding="ascii") as file:
                    file.write(f"{key}\n")


# A recording in memory, as lines, and as a file.


@dataclass
class Recording:
    """What a recording holds: its head, the calls by their keys, and the texts by their hashes."""

    head: Line = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)

    def add(self, kept: Kept) -> None:
        """Take a call."""
        self.lines[str(kept.line["call"])] = kept.line
        self.parts.update(kept.parts)

    def get(self, key: str) -> Kept | None:
        """Return a call."""
        line = self.lines.get(key)
        return Kept(line, self.parts) if line is not None else None

    def packed(self) -> bytes:
        """Return the bytes of its file: the same for the same calls."""
        needed = sorted({sha256 for line in self.lines.values() for sha256 in _needed(line)})
        reached: dict[str, set[str]] = {}
        for line in self.lines.values():
            reached.setdefault(str(line["provider"]), set()).add(str(line.get("reached") or "this machine"))
        told = "; ".join(f"{name}: {', '.join(sorted(ways))}" for name, ways in sorted(reached.items()))
        made = max((str(line["date"]) for line in self.lines.values()), default=today())
        body = b"".join(
            [
                _line(_HEAD, {_HEAD: FORMAT, "katha": version("katha"), **self.head, "made": made, "reached": told}),
                *(_line(_PART, {_PART: sha256, "text": self.parts[sha256]}) for sha256 in needed),
                *(_line("call", self.lines[key]) for key in sorted(self.lines)),
            ]
        )
        whole = body + _line("end", {"end": len(self.lines), "sha256": sha256_hex(body)})
        buffer = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as file:
            file.write(whole)
        return buffer.getvalue()


def _line(first: str, value: Mapping[str, Any]) -> bytes:
    """Return one line of JSON, its keys sorted behind `first`, which tells what the line is."""
    rest = canonical({name: item for name, item in value.items() if name != first})
    return canonical({first: value[first]})[:-1] + b"," + rest[1:] + b"\n"


def read_recording(path: Path) -> Recording:
    """Return the recording in a file.

    Raises:
        InputFileError: it cannot be read, is none, is damaged, or is of a newer katha.
    """
    data = read_bytes(path, limit=_MOST_PACKED)
    name = repr(str(path))
    lines = _opened(data, name).splitlines(keepends=True)
    head = _head(lines[0] if lines else b"", name)
    try:
        end = loads(lines[-1].decode("utf-8"))
        whole = end["sha256"] == sha256_hex(b"".join(lines[:-1])) and lines[-1].endswith(b"\n")
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise _damaged(name, "it does not end as it should")
    found = Recording(head)
    for number, line in enumerate(lines[1:-1], 2):
        _take(found, line, f"line {number} is not what katha writes", name)
    if end.get("end") != len(found.lines):
        raise _damaged(name, f"it holds {len(found.lines)} calls, and says {str(end.get('end'))[:20]}")
    return found


def _opened(data: bytes, name: str) -> bytes:
    """Return what was packed.

    Raises:
        InputFileError: it is not a gzip file, or a damaged one.
    """
    if not data.startswith(b"\x1f\x8b"):
        if not data or set(data[:64]) == {0}:
            raise _damaged(name, "it is empty")
        raise InputFileError(f"{name} is not a recording.", hint="Give a file that --record wrote.")
    opener = zlib.decompressobj(wbits=31)
    try:
        whole = opener.decompress(data, _MOST_OPENED)
    except zlib.error:
        raise _damaged(name, "its bytes were changed") from None
    if opener.unconsumed_tail:
        raise InputFileError(f"{name} holds more than {_MOST_OPENED:,} bytes, which is not a recording.")
    if not opener.eof:
        raise _damaged(name, "it was cut")
    if opener.unused_data:
        raise _damaged(name, "something follows its end")
    return whole


def _head(line: bytes, name: str) -> Line:
    try:
        head = loads(line.decode("utf-8"))
        form = head[_HEAD]
    except (ValueError, TypeError, KeyError):
        raise InputFileError(f"{name} is not a recording.", hint="Give a file that --record wrote.") from None
    if form != FORMAT:
        made = str(head.get("katha", ""))[:20]
        raise InputFileError(
            f"{name} is a recording of form {str(form)[:20]} (katha {made}); this katha reads form {FORMAT}.",
            hint="Replay it with the katha that made it, or a newer one.",
        )
    settings = head.get("settings")
    if not isinstance(settings, dict):
        raise _damaged(name, "its head has no settings")
    return {"settings": settings, "command": str(head.get("command", ""))}


def _take(found: Recording, line: bytes, wrong: str, name: str) -> None:
    """Read one line behind the head.

    Raises:
        InputFileError: it is neither a part nor a call.
    """
    try:
        value = loads(line.decode("utf-8"))
        if "part" in value:
            if sha256_hex(value["text"].encode("utf-8")) != value["part"]:
                raise ValueError("its hash")
            found.parts[value["part"]] = value["text"]
            return
        kept = Kept(value, found.parts)
        if kept.call.key != value["call"] or kept.reply.received.text is None:
            raise ValueError("its key")
        found.lines[value["call"]] = value
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _damaged(name, wrong) from None


def _damaged(name: str, how: str) -> InputFileError:
    return InputFileError(f"The recording {name} is damaged: {how}.", hint="Take another copy, or record it again.")


class Recorder(CallLog):
    """Records every call that is used, found or made. Each is in FILE.part when its reply is given.

    What FILE and FILE.part hold already is found, and stays: a recording goes on after a kill, and only grows.
    """

    everything = True

    def __init__(self, path: Path, kept: CallLog | None = None, *, command: str = "") -> None:
        """kept: calls that were paid for before. command: the verb.

        Raises:
            InputFileError: the file is there and is not sound recording. OutputFolderError: it cannot be written, or
            another katha records into it.
        """
        self.path, self._kept = path, kept
        self._part = path.with_name(f"{path.name}.part")
        self._lock = threading.RLock()
        self._found = read_recording(path) if path.exists() else Recording()
        self._found.head = {"settings": {}, "command": command}
        self._written: set[str] = set()
        self._handle: int | None = self._claim()
        self._resume()

    @property
    def calls(self) -> int:
        """Return how many calls it holds."""
        return len(self._found.lines)

    def find(self, call: Call) -> Reply | None:
        """Return the recorded reply, else the kept one, which is recorded."""
        with self._lock:
            known = self._found.get(call.key)
        if known is not None:
            return known.reply
        found = self._kept.find(call) if self._kept is not None else None
        if found is not None:
            self._write(call, found)
        return found

    def keep(self, call: Call, reply: Reply) -> None:
        """Record a reply, whole or not, and keep it where calls are kept."""
        self._write(call, reply)
        if self._kept is not None:
            self._kept.keep(call, reply)

    def note_settings(self, settings: Mapping[str, Any]) -> None:
        """Note the settings of the command: the first that are told."""
        with self._lock:
            if not self._found.head["settings"]:
                self._found.head["settings"] = dict(settings)

    @contextmanager
    def noting(self, path: Path) -> Iterator[None]:
        """Note keys where calls are kept."""
        if self._kept is None:
            yield
            return
        with self._kept.noting(path):
            yield

    @contextmanager
    def forgetting(self, kind: type[Exception]) -> Iterator[None]:
        """Forget in what is kept; the recording shows what happened."""
        if self._kept is None:
            yield
            return
        with self._kept.forgetting(kind):
            yield

    def pack(self) -> None:
        """Write the file, and remove what it grew from.

        Raises:
            StoreError: the disk is full or refuses.
        """
        with self._lock:
            write_bytes_atomic(self.path, self._found.packed())
            with suppress(FileNotFoundError):
                self._part.unlink()

    def close(self) -> None:
        """Let go of the file; what is not packed stays in FILE.part, where it holds a call."""
        with self._lock:
            if self._handle is None:
                return
            if os.fstat(self._handle).st_size == 0:
                with suppress(FileNotFoundError):
                    self._part.unlink()
            os.close(self._handle)
            self._handle = None

    def _claim(self) -> int:
        name = str(self.path)
        try:
            handle = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise OutputFolderError(
                f"Cannot record into {name!r}: {error.strerror}.", hint="Choose another file for --record."
            ) from error
        if not lock_descriptor(handle, blocking=False):
            os.close(handle)
            raise OutputFolderError(
                f"Another katha is recording into {name!r}.", hint="Wait for it, or choose another file."
            )
        return handle

    def _resume(self) -> None:
        """Read what a killed command left in FILE.part; its last line may be torn."""
        assert self._handle is not None
        with open_input(self._part) as file:
            lines = file.read().splitlines(keepends=True)
        size = 0
        for number, line in enumerate(lines, 1):
            try:
                _take(self._found, line, f"line {number} is not what katha writes", repr(str(self._part)))
            except KathaError:
                if number < len(lines) or line.endswith(b"\n"):
                    os.close(self._handle)
                    raise
                break
            size += len(line)
            self._written.update(_needed(loads(line.decode("utf-8"))))
        os.ftruncate(self._handle, size)

    def _write(self, call: Call, reply: Reply) -> None:
        with self._lock:
            kept = Kept.of(call, reply)
            self._found.add(kept)
            if self._handle is None:
                return
            new = {sha256: text for sha256, text in kept.parts.items() if sha256 not in self._written}
            self._written.update(new)
            lines = [_line(_PART, {_PART: sha256, "text": text}) for sha256, text in new.items()]
            data = b"".join([*lines, _line("call", kept.line)])
            with told("Cannot write", self._part, "Free some space and give the same command again."):
                while data:
                    data = data[os.write(self._handle, data) :]
                os.fsync(self._handle)


class Replayer(CallLog):
    """Gives the replies of a recording; nobody is called. A reply to older words of the same prompt counts, where
    `configs/rewordings.yaml` has them."""

    closed = True
    everything = True

    def __init__(self, path: Path) -> None:
        """Read the whole file.

        Raises:
            InputFileError: it is not sound recording.
        """
        self.path = path
        self._found = read_recording(path)
        self.settings: Mapping[str, Any] = self._found.head["settings"]

    def find(self, call: Call) -> Reply | None:
        """Return the recorded reply."""
        known = self._found.get(call.key) or self._reworded.get(call.key)
        return known.reply if known is not None else None

    @cached_property
    def _reworded(self) -> Mapping[str, Kept]:
        """The calls that would be asked in other words today, by the keys that they would have."""
        words = [(re.compile(row["was"], re.MULTILINE), row["now"]) for row in load_config("rewordings.yaml")]
        made: dict[str, Kept] = {}
        for line in self._found.lines.values():
            kept = Kept(line, self._found.parts)
            asked = _in_words(kept.call.request, words)
            made[replace(kept.call, request=asked).key] = kept
        return made

    def keep(self, call: Call, reply: Reply) -> None:
        """Keep nothing: no reply is new."""

    def missing(self, call: Call) -> ModelError:
        """Say which call it is, and what in it differs from the nearest that was recorded."""
        asked = f"{call.provider}:{call.model}, {_quoted(last_words(call.request))}"
        said = f"The recording {str(self.path)!r} has no such call: {asked}."
        near = _nearest(call, [Kept(line, self._found.parts).call for line in self._found.lines.values()])
        if near is not None:
            said += f" {_difference(near, call)}"
        return UnrecordedError(
            said, hint="Give the story and the options that it was recorded with, or record it again (--record)."
        )


def _in_words(value: Any, words: Sequence[tuple[re.Pattern[str], str]]) -> Any:
    """Return a body with every text in newer words."""
    if isinstance(value, str):
        for was, now in words:
            value = was.sub(now, value)
        return value
    if isinstance(value, Mapping):
        return {name: _in_words(item, words) for name, item in value.items()}
    return [_in_words(item, words) for item in value] if isinstance(value, list) else value


# What differs between two calls, in words.


def _labelled(call: Call) -> dict[str, str]:
    """Return every part of a call, by the words for it, in the order in which a person would compare them."""
    found = {"the model": f"{call.provider}:{call.model}"}
    for number, message in enumerate(_messages(call.request), 1):
        for what, text in _pieces(message):
            place = f"{what} of message {number} ({message.get('role', '')})"
            found[place if place not in found else f"{place}, part {len(found)}"] = text
    for name, value in call.request.items():
        if name not in ("messages", "model"):
            found[f"the option {name!r}"] = value if isinstance(value, str) else canonical(value).decode("utf-8")
    return {**found, "the number of the draw": str(call.draw)}


def _messages(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = request.get("messages")
    return [item for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []


def _pieces(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    content = message.get("content")
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, str):
            yield "the text", item
        elif isinstance(item, Mapping) and isinstance(item.get("text"), str):
            yield "the text", item["text"]
        elif item is not None:
            found = _HASH.search(canonical(item).decode("utf-8"))
            yield "a picture", found[0] if found else canonical(item).decode("utf-8")


def last_words(request: Mapping[str, Any]) -> str:
    """Return the text of the last message that a user says, or of a question about a model."""
    asked = [message for message in _messages(request) if message.get("role") == "user"]
    said = [text for what, text in _pieces(asked[-1]) if what == "the text"] if asked else []
    return said[-1] if said else f"what the {request.get('about', 'model')} is"


def _nearest(call: Call, others: Iterable[Call]) -> Call | None:
    """Return the call that has most in common with it."""
    mine = _labelled(call)

    def near(other: Call) -> float:
        its = _labelled(other)
        both = mine.keys() & its.keys()
        same = sum(_alike(mine[name], its[name]) for name in both) / max(len(mine), len(its))
        return same + (other.asker == call.asker)

    return max(others, key=near, default=None)


def _alike(one: str, other: str) -> float:
    """Return how much of two texts is the same at both ends, 0 to 1."""
    if one == other:
        return 1.0
    head = _common(one, other)
    tail = _common(one[head:][::-1], other[head:][::-1])
    return (head + tail) / (max(len(one), len(other)) + 1)


def _common(one: str, other: str) -> int:
    """Return how many letters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _difference(recorded: Call, asked: Call) -> str:
    """Say what differs first, with some words of both."""
    its, mine = _labelled(recorded), _labelled(asked)
    for name in [*mine, *(name for name in its if name not in mine)]:
        if its.get(name) == mine.get(name):
            continue
        if name not in its or name not in mine:
            where = "now has" if name in mine else "no longer has"
            return f"Beside the nearest that was recorded, it {where} {name}: {_quoted(mine.get(name) or its[name])}."
        at = max(0, _common(its[name], mine[name]) - 20)
        was, now = (_quoted(text[at:], "..." if at else "") for text in (its[name], mine[name]))
        return f"Beside the nearest that was recorded, {name} differs: it was {was}, and is {now}."
    return "It differs in how it is written alone."


def _quoted(text: str, before: str = "") -> str:
    words = " ".join(text.split())
    return f'"{before}{words[:_SHOWN]}{"..." if len(words) > _SHOWN else ""}"'


# A recording as people look at it.


def listing(path: Path) -> str:
    """Return a recording as text for people and for diff: one line a call, in the order of their keys.

    A line has the key, who was asked, tokens in and out, pictures, and the first words asked and answered.

    Raises:
        InputFileError: it is not sound recording.
    """
    found = read_recording(path)
    settings = {name: value for name, value in found.head["settings"].items() if value not in (None, "", [], {})}
    lines = [f"katha {found.head['command'] or '?'} {canonical(settings).decode('utf-8')}"]
    for key in sorted(found.lines):
        kept = Kept(found.lines[key], found.parts)
        call, received = kept.call, kept.reply.received
        tokens = received.tokens
        read = sum(count for name, count in tokens.items() if name != "output")
        pictures = sum(what == "a picture" for message in _messages(call.request) for what, _ in _pieces(message))
        ended = f" ({received.stop})" if received.stop else ""
        lines.append(
            f"{key[:12]}  {call.provider}:{call.model}  {read:,} in  {tokens.get('output', 0):,} out  "
            f"{pictures} pictures  {_quoted(last_words(call.request))}  {_quoted(received.text)}{ended}"
        )
    return "\n".join(lines) + "\n"


def pack_calls(
    place: KeepsCalls, keys: Sequence[str], path: Path, *, settings: Mapping[str, Any], command: str
) -> tuple[int, list[str]]:
    """Write a recording of kept calls; return how many it holds, and the keys of those that the store has no longer.

    Raises:
        StoreError: the store cannot be read, or the file cannot be written.
    """
    made = Recording({"settings": dict(settings), "command": command})
    gone = []
    for key in dict.fromkeys(keys):
        kept = kept_call(place, key)
        if kept is None:
            gone.append(key)
        else:
            made.add(Kept(kept.line, kept.parts))
    write_bytes_atomic(path, made.packed())
    return len(made.lines), gone
