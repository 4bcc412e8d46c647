"""Pieces of work, in threads of their own and one at a time: progress, stop, and the question that one waits with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from pydantic import BaseModel, ConfigDict

from katha.agents.graph import check_choice
from katha.agents.state import Emit, ReviewChoice, ReviewRequest
from katha.app.reports.page import STAGE_WORDS
from katha.errors import KathaError, UsageError
from katha.schema import Event, Stage

# The state of a job is sent at every tick, so what it holds is bounded.
_MOST_SAID = 40
_MOST_DRAWN = 100
_MOST_SENTENCES = 300
_STOPPED = "Stopped. What is done is kept; go on when you like."

Reviewer = Callable[[ReviewRequest], ReviewChoice]
Work = Callable[[Emit, Reviewer], None]
"""What is done: it tells what happens, and asks a person where it has to."""


class StageProgress(BaseModel):
    """One stage of the work, as the page shows it. `total` is None while nobody knows it."""

    model_config = ConfigDict(frozen=True)

    stage: Stage
    title: str
    done: int = 0
    total: int | None = None
    note: str = ""
    finished: bool = False


class Progress(BaseModel):
    """How far the work is. `failed` is the sentence that it ended with, `asks` says that it waits for a person."""

    model_config = ConfigDict(frozen=True)

    name: str = ""
    running: bool = False
    waits: str = ""
    """What it waits for, where other work has its turn."""
    stopping: bool = False
    asks: bool = False
    stages: tuple[StageProgress, ...] = ()
    said: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    """The pictures that were drawn so far, by their hashes."""
    scenes: Mapping[int, str] = {}
    """The picture that was drawn last of each scene, a first version of it perhaps."""
    failed: str = ""
    ended: int = 0
    """How many pieces of work have ended since the desk was opened."""


class _Stopped(Exception):
    """A person stopped the work. It is raised between two steps, so that what is done is kept."""


def _was_stopped(error: BaseException | None) -> bool:
    """Return whether a failure is a stop that names a plug-in which had reported progress."""
    while error is not None and not isinstance(error, _Stopped):
        error = error.__cause__
    return error is not None


class WorkerQueue:
    """Who may work: of the workers that share one, whoever came first. A model fits a machine once, not twice.

    A worker that waits for a person's choice gives its turn away meanwhile.
    """

    def __init__(self) -> None:
        self._line: list[Worker] = []
        self._moved = threading.Condition()

    def take(self, worker: Worker) -> bool:
        """Wait until it is this worker's turn; False: it was stopped before."""
        with self._moved:
            self._line.append(worker)
            self._moved.wait_for(lambda: worker.stopped or self._line[0] is worker)
            return self._line[0] is worker

    def leave(self, worker: Worker) -> None:
        """Let the next one work."""
        with self._moved:
            if worker in self._line:
                self._line.remove(worker)
            self._moved.notify_all()

    def look(self) -> None:
        """Have every worker that waits look whether it was stopped."""
        with self._moved:
            self._moved.notify_all()

    def holder(self) -> Worker | None:
        """Return the worker whose turn it is."""
        with self._moved:
            return self._line[0] if self._line else None


class Worker:
    """Does one piece of work after the other, never two at once."""

    def __init__(self, changed: Callable[[], None], turn: WorkerQueue | None = None) -> None:
        """changed: called, from any thread, whenever `progress` is another. turn: shared with other workers, of which
        one works at a time."""
        self._changed = changed
        self._turn = turn or WorkerQueue()
        self._lock = threading.Condition()
        self._progress = Progress()
        self._thread: threading.Thread | None = None
        self._stop = False
        self._request: ReviewRequest | None = None
        self._choice: ReviewChoice | None = None

    @property
    def progress(self) -> Progress:
        """Return how far the work is now, or how the last one ended."""
        now, holder = self._progress, self._turn.holder()
        if holder is None or holder is self or not now.running or now.asks:
            return now
        return now.model_copy(update={"waits": holder.name})

    @property
    def name(self) -> str:
        """Return what the work is, or was."""
        return self._progress.name

    @property
    def stopped(self) -> bool:
        """Return whether it was asked to stop."""
        return self._stop

    @property
    def works(self) -> bool:
        """Return whether it has its turn."""
        return self._turn.holder() is self

    @property
    def request(self) -> ReviewRequest | None:
        """Return what a person is asked, while the work waits."""
        return self._request

    def start(self, name: str, work: Work, opening: Callable[[], None] | None = None) -> None:
        """Begin a piece of work; `name` says what it is, as in "Drawing the story".

        opening: called before it begins, by the one of many who ask at once whose work it is.

        Raises:
            UsageError: another one is under way.
        """
        with self._lock:
            if self._progress.running:
                raise UsageError(f"{self._progress.name} is under way.", hint="Wait for it, or stop it.")
            self._stop, self._request, self._choice = False, None, None
            if opening is not None:
                opening()
            self._progress = Progress(name=name, running=True, ended=self._progress.ended)
            self._thread = threading.Thread(target=self._run, args=(work,), name="desk", daemon=True)
            self._thread.start()
        self._changed()

    def stop(self) -> None:
        """Ask the work to stop: it does when its step is done, and what it did is kept."""
        with self._lock:
            if self._progress.running:
                self._stop = True
                self._set(stopping=True)
                self._lock.notify_all()
        self._turn.look()
        self._changed()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until nothing is under way; False when that took longer than `timeout` seconds."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def choose(self, choice: ReviewChoice) -> None:
        """Answer the question that the work waits with.

        Raises:
            UsageError: nothing is asked, or the choice cannot be followed.
        """
        with self._lock:
            if self._request is None or self._choice is not None:
                raise UsageError("Nothing waits for a choice.", hint="It was made already, perhaps in another tab.")
            self._choice = check_choice(choice, self._request)
            self._lock.notify_all()

    def _run(self, work: Work) -> None:
        failed = ""
        try:
            self._begin()
            work(self._hear, self._ask)
        except _Stopped:
            failed = _STOPPED
        except KathaError as error:
            failed = _STOPPED if self._stop or _was_stopped(error) else str(error)
        except MemoryError:
            failed = "There is not enough memory for this. What is done is kept."
        except OSError as error:
            failed = f"The system refused to read or write: {error.strerror or error}."
        except Exception as error:  # a plug-in's mistake ends its work, never the desk
            failed = f"Unexpected {type(error).__name__}: {error}"
        self._turn.leave(self)
        with self._lock:
            self._request = None
            self._set(running=False, stopping=False, asks=False, failed=failed, ended=self._progress.ended + 1)
        self._changed()

    def _begin(self) -> None:
        if not self._turn.take(self):
            raise _Stopped
        self._changed()

    def _hear(self, event: Event) -> None:
        with self._lock:
            if self._stop:
                raise _Stopped
            stages = {item.stage: item for item in self._progress.stages}
            known = stages.get(event["stage"])
            row = known or StageProgress(stage=event["stage"], title=STAGE_WORDS[event["stage"]])
            stages[row.stage] = _heard(row, event)
            said = self._progress.said
            if event["kind"] == "decision" and event.get("message"):
                said = (*said, event["message"][:_MOST_SENTENCES])[-_MOST_SAID:]
            drawn = self._progress.drawn
            if event["kind"] == "frame" and event.get("sha256"):
                drawn = (*drawn, event["sha256"])[:_MOST_DRAWN]
            scenes = self._progress.scenes
            if "scene" in event:
                scenes = {**scenes, event["scene"]: event["sha256"]}
            self._set(stages=tuple(stages.values()), said=said, drawn=drawn, scenes=scenes)
        self._changed()

    def _ask(self, request: ReviewRequest) -> ReviewChoice:
        with self._lock:
            self._request, self._choice = request, None
            self._set(asks=True)
        self._turn.leave(self)
        self._changed()
        with self._lock:
            self._lock.wait_for(lambda: self._stop or self._choice is not None)
            if self._choice is None:
                raise _Stopped
            choice, self._request = self._choice, None
            self._set(asks=False)
        self._begin()
        return choice

    def _set(self, **changes: object) -> None:
        self._progress = self._progress.model_copy(update=changes)


def _heard(row: StageProgress, event: Event) -> StageProgress:
    """A stage's row after an event; branches of a stage share the row."""
    kind = event["kind"]
    if kind == "started":
        return row.model_copy(update={"total": (row.total or 0) + event.get("total", 0) or None, "finished": False})
    if kind == "finished":
        whole = row.total is None or row.done >= row.total
        return row.model_copy(update={"note": "", "finished": whole})
    if kind == "decision":
        return row
    if kind == "progress":
        return row.model_copy(update={"note": event.get("message", "")[:_MOST_SENTENCES]})
    note = event.get("message", "") + (" (kept)" if event.get("reused") else "")
    return row.model_copy(update={"done": row.done + 1, "note": note[:_MOST_SENTENCES]})
