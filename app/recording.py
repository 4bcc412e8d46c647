"""Recordings of a command: every call of language models into a file, and the command done again from it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar

from katha.addresses import private_cache, store_address
from katha.config import Settings, cache_folder, refuse_code
from katha.errors import UsageError
from katha.models.calls import CallLog, calls_through, current_calls
from katha.models.recordings import KeptCalls, Recorder, Replayer
from katha.store import CallIndex, Store

_LOG = logging.getLogger("katha")
P = ParamSpec("P")
R = TypeVar("R")
_NOT_RECORDED = ("base_url", "memory", "patience", "verify_reuse", "review", "characters", "mapping", "lock")
"""Settings of a machine, or of a person: an address, memory, paths."""


class _Opened:
    """The calls of the store, which is opened when it is first needed."""

    def __init__(self) -> None:
        self._folder, self._address = cache_folder(), store_address()
        self._store: Store | None = None
        self._lock = threading.Lock()

    def calls(self) -> CallIndex:
        with self._lock:
            if self._store is None:
                self._store = Store(self._folder, address=self._address)
            return self._store.calls

    def close(self) -> None:
        with self._lock:
            if self._store is not None:
                self._store.close()


@contextmanager
def recorded(
    record: Path | str | None = None, replay: Path | str | None = None, *, command: str = ""
) -> Iterator[CallLog]:
    """Have the block's language models ask the calls that are kept in the store before they ask a server.

    record: write every call that the block uses into this file. replay: take every reply from this file, and call
    nobody; settings that are not given are the recording's. With either, answers and frames are in a cache of their
    own, so that everything is really done. In a block within the block, the outer one stands.

    Raises:
        UsageError: both are given, or one inside of another. InputFileError: the file is there and is no sound
        recording. OutputFolderError: it cannot be written.
    """
    outer = current_calls()
    if record is not None and replay is not None:
        raise UsageError("--record and --replay are two commands.", hint="Give one of them.")
    if outer is not None:
        if record is not None or replay is not None:
            raise UsageError("A recording cannot begin inside of another.", hint="Give --record or --replay once.")
        yield outer
        return
    with ExitStack() as stack:
        opened = _Opened()
        stack.callback(opened.close)
        log: CallLog = KeptCalls(opened.calls)
        if replay is not None:
            log = Replayer(Path(replay))
        elif record is not None:
            log = recorder = Recorder(Path(record), KeptCalls(opened.calls, judges=True), command=command)
            stack.callback(recorder.close)
        if log.everything:
            folder = stack.enter_context(TemporaryDirectory(prefix="katha-recording-", ignore_cleanup_errors=True))
            stack.enter_context(private_cache(Path(folder)))
        with calls_through(log):
            yield log
        if isinstance(log, Recorder):
            _pack(log)


def _pack(log: Recorder) -> None:
    """Write the recording, if there is anything in it."""
    if log.calls:
        log.pack()
    else:
        _LOG.warning("No language model was asked: %s was not written. Is --out new?", log.path)


def recordable(verb: Callable[P, R]) -> Callable[P, R]:
    """Give a function of the public API, which takes `**changes`, `record` and `replay`: see `recorded`."""

    @wraps(verb)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        record: Any = kwargs.pop("record", None)
        replay: Any = kwargs.pop("replay", None)
        with recorded(record, replay, command=verb.__name__):
            return verb(*args, **kwargs)

    return called


def settings_of_replay(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the recording that is replayed, if any, to lay the given ones over.

    Raises:
        UsageError: a setting names code, or an address, which no stranger's file may.
    """
    log = current_calls()
    if log is None or not log.closed or not log.settings:
        return {}
    known = {name: value for name, value in log.settings.items() if name in Settings.model_fields}
    found = {name: value for name, value in known.items() if name not in _NOT_RECORDED}
    left = {name: value for name, value in found.items() if flags.get(name) is None}
    refuse_code(left, "The recording", received=True)
    return found


def note_settings(config: Settings) -> None:
    """Note the settings of a command that is recorded; no address is among them."""
    log = current_calls()
    if not isinstance(log, Recorder):
        return
    told = {name: value for name, value in config.model_dump(mode="json").items() if name not in _NOT_RECORDED}
    log.note_settings({name: _without_address(value) for name, value in told.items()})


def _without_address(value: Any) -> Any:
    return {name: item for name, item in value.items() if name != "base_url"} if isinstance(value, dict) else value


def refuse_recording(what: str) -> None:
    """Refuse a way of working whose calls do not go through this process, while calls are recorded or replayed.

    Raises:
        UsageError: they are; `what` names the way.
    """
    log = current_calls()
    if log is not None and log.everything:
        raise UsageError(f"{what} cannot be recorded or replayed: its calls are made elsewhere.", hint="Leave it out.")
