"""One call of a language model as it is known again: by its provider, model and body; and what may know its reply.

A client asks the `CallLog` that was set when it was made (`calls_through`) before it asks a server, and tells it every
reply. `katha.models.recordings` has the logs: calls kept in the store, a recorder and a replayer.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from katha.errors import ModelError
from katha.jsonio import canonical, digest, loads, sha256_hex
from katha.schema import AnswerStatus

V = TypeVar("V")
Asker = Literal["judge", "language model", "renderer", "about"]
"""Who makes a call; `about` asks what a model is, and nothing of it."""
_NO_PART = ("stream", "stream_options", "timeout", "extra_headers", "user")
_DATA = re.compile(r"data:image/[a-z+.-]+;base64,")
_FILE = re.compile(r"file://.*/([0-9a-f]{64})\.png")


@dataclass(frozen=True)
class Call:
    """One call. request: its body, each picture of it as `sha256:HEX`. draw: which of several drawn replies to the same
    body. asker: who makes it. scope: where it goes, which is not part of its key. reached: how, without an address."""

    provider: str
    model: str
    request: Mapping[str, Any]
    draw: int = 0
    asker: Asker = "language model"
    scope: str = ""
    reached: str = ""

    @cached_property
    def key(self) -> str:
        """The digest of everything that can change its reply."""
        drawn = {"draw": self.draw} if self.draw else {}
        return digest({"provider": self.provider, "model": self.model, "request": self.request, **drawn})


def today() -> str:
    """Return the date in UTC."""
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True)
class Received:
    """A server's reply: its text, `stop` when it is not an answer, the model that gave it, and token counts.

    words: the likeliest first tokens with their probabilities (0 to 1), where they were asked for and given.
    """

    text: str
    model: str
    stop: AnswerStatus | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Reply:
    """What a call gave. retries, cost (US dollars, None: unknown): what it took when it was made, on `date`."""

    received: Received
    retries: int = 0
    cost: float | None = None
    date: str = field(default_factory=today)


def body_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body as it is known again: pictures by the hash of their bytes, without how it is sent."""
    return {name: _plain(value) for name, value in request.items() if name not in _NO_PART}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _hashed(_sound(value))
    if isinstance(value, Mapping):
        if value.get("type") == "base64" and isinstance(value.get("data"), str):
            return {**value, "data": _of_base64(value["data"])}
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _sound(text: str) -> str:
    """Return a text without halves of surrogate pairs, which no file can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def _hashed(text: str) -> str:
    """Return a text as it is, and the address of a picture as the hash of the picture."""
    found = _DATA.match(text)
    if found is not None:
        return _of_base64(text[found.end() :])
    named = _FILE.fullmatch(text)
    return f"sha256:{named[1]}" if named is not None else text


def _of_base64(data: str) -> str:
    try:
        return f"sha256:{sha256_hex(b64decode(data))}"
    except ValueError:
        return f"sha256:{sha256_hex(data.encode('utf-8', 'replace'))}"


class CallLog(ABC):
    """What may know the reply to a call. Safe between threads.

    closed: nobody may be called; a call that is not known is an error. everything: it takes calls of every kind, those
    of models on this machine and the questions about models among them.
    """

    closed: bool = False
    everything: bool = False

    @abstractmethod
    def find(self, call: Call) -> Reply | None:
        """Return the reply to the call; None where it has to be made."""

    @abstractmethod
    def keep(self, call: Call, reply: Reply) -> None:
        """Keep a reply that was just given, durably."""

    def missing(self, call: Call) -> ModelError:
        """Return what to say of a call that may not be made."""
        return ModelError(f"The reply of {call.provider}:{call.model} is not known, and nobody may be asked.")

    def noting(self, path: Path) -> AbstractContextManager[None]:
        """Write the key of each call that is used from now on into a file, a line each, where calls are kept."""
        return nullcontext()

    def forgetting(self, kind: type[Exception]) -> AbstractContextManager[None]:
        """Forget the kept calls of a conversation that ends in an error of `kind`: it is held anew next time."""
        return nullcontext()


_CALLS: ContextVar[CallLog | None] = ContextVar("katha_calls", default=None)


@contextmanager
def calls_through(log: CallLog | None) -> Iterator[None]:
    """Have every client that is made in the block ask `log` first, for as long as it lives."""
    token = _CALLS.set(log)
    try:
        yield
    finally:
        _CALLS.reset(token)


def current_calls() -> CallLog | None:
    """Return the log that clients ask which are made now."""
    return _CALLS.get()


def noting_calls(path: Path) -> AbstractContextManager[None]:
    """Write the key of each kept call that is used in the block into a file."""
    log = _CALLS.get()
    return log.noting(path) if log is not None else nullcontext()


def forgetting_calls(kind: type[Exception]) -> AbstractContextManager[None]:
    """Forget the kept calls of a conversation in the block that ends in an error of `kind`."""
    log = _CALLS.get()
    return log.forgetting(kind) if log is not None else nullcontext()


def is_replayed() -> bool:
    """Return whether nobody may be called."""
    log = _CALLS.get()
    return log is not None and log.closed


def remembered(log: CallLog | None, provider: str, model: str, request: Mapping[str, Any], make: Callable[[], V]) -> V:
    """Return what is known of a model (JSON), from a log that takes everything; else what `make` gives.

    Raises:
        ModelError: it is not in the log, and nobody may be asked.
    """
    if log is None or not log.everything:
        return make()
    call = Call(provider, model, dict(request), asker="about")
    found = log.find(call)
    if found is not None:
        known: V = loads(found.received.text)
        return known
    if log.closed:
        raise log.missing(call)
    made = make()
    log.keep(call, Reply(Received(canonical(made).decode("utf-8"), model)))
    return made
