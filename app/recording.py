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
from katha.agents.folder import RunFolder
from katha.config import Settings, cache_folder, read_settings, refuse_code
from katha.errors import InputFileError, UsageError
from katha.jsonio import read_text
from katha.models.calls import CallLog, calls_through, current_calls
from katha.models.recordings import KeptCalls, Recorder, Replayer, pack_calls, read_recording
from katha.store import CallIndex, Store

_LOG = logging.getLogger("katha")
P = ParamSpec("P")
R = TypeVar("R")
_NOT_RECORDED = (
    "base_url",
    "memory",
    "patience",
    "keep_going",
    "verify_reuse",
    "review",
    "characters",
    "mapping",
    "lock",
)
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
        UsageError: both are given, or one inside of another. InputFileError: the file is there and is not sound
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
    if not isinstance(log, Replayer):
        return {}
    known = {name: value for name, value in log.settings.items() if name in Settings.model_fields}
    found = {name: value for name, value in known.items() if name not in _NOT_RECORDED}
    left = {name: value for name, value in found.items() if flags.get(name) is None}
    refuse_code(left, f"The recording {str(log.path)!r}", received=True)
    return found


def note_settings(config: Settings) -> None:
    """Note the settings of a command that is recorded; no address is among them."""
    log = current_calls()
    if isinstance(log, Recorder):
        log.note_settings(recorded_settings(config))


def recorded_settings(config: Settings) -> dict[str, Any]:
    """Return the settings that a recording keeps: those that any machine can have."""
    told = {name: value for name, value in config.model_dump(mode="json").items() if name not in _NOT_RECORDED}
    return {name: _without_address(value) for name, value in told.items()}


def _without_address(value: Any) -> Any:
    return {name: item for name, item in value.items() if name != "base_url"} if isinstance(value, dict) else value


def pack_run(run: Path, out: Path) -> tuple[int, list[str]]:
    """Write a recording of a run that is there; return how many calls it holds, and the keys of those that the store
    has no longer.

    Answers that the run found in the cache were calls of an earlier command, and are not among them.

    Raises:
        UsageError: there is no such run, it asked no language model, or `out` is there and is not a recording.
    """
    folder = RunFolder(run)
    state = folder.read()
    if state is None:
        raise InputFileError(f"{str(run)!r} holds no run.", hint="Name the folder of a run.")
    if out.exists():
        read_recording(out)
    keys = read_text(folder.calls).split() if folder.calls.is_file() else []
    if not keys:
        raise UsageError(
            f"The run in {str(run)!r} has no list of calls ({folder.calls.name}): it asked no language model.",
            hint="A run of an older katha has none either: run it again with --record.",
        )
    settings = recorded_settings(read_settings(Settings, state.config))
    with Store(cache_folder()) as store:
        return pack_calls(store.calls, keys, out, settings=settings, command="run")


def refuse_recording(what: str) -> None:
    """Refuse a way of working whose calls do not go through this process, while calls are recorded or replayed.

    Raises:
        UsageError: they are; `what` names the way.
    """
    log = current_calls()
    if log is not None and log.everything:
        raise UsageError(f"{what} cannot be recorded or replayed: its calls are made elsewhere.", hint="Leave it out.")
