"""What workers drain: items of work, the stations that do them, and plug-ins that are held by one station at a time.

A command is not cut into pieces for workers. A station runs the command's own code over one item, with the models of
its stage in its hands; where that code comes to a model of another stage, the item goes on there and begins again, and
what was drawn and asked so far is found in the cache. In the end the command itself finds everything made: its files
are the same, however many workers there were, in whatever order, and whoever of them died.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

from katha.agents.context import Plugins, load_plugins
from katha.border import cause
from katha.config import Settings, cache_folder
from katha.errors import KathaError
from katha.eval_bridge.judging.abilities import JudgeAbilities, judge_abilities
from katha.models.client import keyless
from katha.protocols import CostsMoney, FillsTheMemory
from katha.registry import default_registry, option_names
from katha.store import Store

T = TypeVar("T")

HERE = "all"
"""The stage of everything that fills no memory: every station holds it."""

HOME = "services"
"""The stage of what waits for a server. It is never a worker's: keys, pace and budget stay in the command's process."""

_HOSTED = ("anthropic:", "openai:", "gemini:")


@dataclass(frozen=True)
class Item:
    """One piece of work. stage: where it goes next. name: as it is told of. load: what the station is given."""

    stage: str
    name: str
    load: Any


@dataclass(frozen=True)
class Done:
    """What came of an item."""

    value: Any = None


@dataclass(frozen=True)
class Onward:
    """An item that another stage goes on with, with what it is given there."""

    stage: str
    load: Any


@dataclass(frozen=True)
class Failed:
    """An item that could not be done. It is left to the command itself, which says what is wrong in its own words."""

    cause: str


Ending = Done | Onward | Failed
Station = Callable[[Any], Ending]
"""Does one item."""

Opener = Callable[[str], Station]
"""Opens the station of a stage. It travels to the workers, so that it holds data and no models."""


@dataclass(frozen=True)
class Work:
    """What one command has its workers do.

    items: asked for as they are needed, stage by stage. open: opens stations. keep: is given what each item came to, in
    the command's process. total: how many items there are, where that is known. home: opens a station of the command's
    own process, for what waits for a server; one a thread.
    """

    items: Iterable[Item]
    open: Opener
    keep: Callable[[Item, Any], None]
    total: int | None = None
    home: Callable[[], Station] | None = None


class Elsewhere(KathaError):
    """The model that is needed next is not held by this station; `stage` is where it is."""

    def __init__(self, stage: str) -> None:
        super().__init__(f"This worker does not hold {stage!r}.")
        self.stage = stage


def attempt(station: Station, load: Any) -> Ending:
    """Return what a station makes of an item; whatever it raises is a failure of that item alone."""
    try:
        return station(load)
    except KathaError as error:
        return Failed(str(error))
    except Exception as error:
        return Failed(cause(error))


def barred(plugin: T, verbs: Sequence[str], stage: str) -> T:
    """Return `plugin` as a station has it that does not hold it: all that it says of itself, and none of its work."""

    def refuse(*_: object, **__: object) -> None:
        raise Elsewhere(stage)

    kind: Any = type(plugin)
    own = {verb: refuse for verb in verbs if hasattr(kind, verb)}
    about = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__slots__": ()}
    seen = copy.copy(plugin)
    object.__setattr__(seen, "__class__", type(kind.__name__, (kind,), {**own, **about}))
    return seen


_JUDGES, _DRAWS, _PLANS = ("ask", "ask_plainly"), ("render_board", "insert_frame"), ("plan",)


@dataclass(frozen=True)
class Holding:
    """The stage of each plug-in of one configuration. `alone` are those that fill a device's memory."""

    planner: str
    renderer: str
    bridge: str
    judges: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Settings, made: Plugins) -> Holding:
        """Return where the plug-ins `made` for `config` are held."""
        renderer = _drawn_at(config.renderer, made.renderer)
        return cls(
            planner=_planned_at(config),
            renderer=renderer,
            bridge=renderer if made.bridge is None else _drawn_at(str(config.bridge_renderer), made.bridge),
            judges={name: judged_at(name, judge_abilities(judge)) for name, judge in made.judges.items()},
        )

    def plugins(self, made: Plugins, held: frozenset[str]) -> Plugins:
        """Return `made` as a station has them that holds the stages `held`."""

        def seen(plugin: T, verbs: Sequence[str], stage: str) -> T:
            return plugin if stage in held else barred(plugin, verbs, stage)

        return replace(
            made,
            planner=seen(made.planner, _PLANS, self.planner),
            renderer=seen(made.renderer, _DRAWS, self.renderer),
            bridge=None if made.bridge is None else seen(made.bridge, _DRAWS, self.bridge),
            judges={name: seen(judge, _JUDGES, self.judges[name]) for name, judge in made.judges.items()},
        )


def judged_at(name: str, able: JudgeAbilities) -> str:
    """Return the stage of a judge: its own where it fills the memory, the command's where it waits for a server."""
    return f"judge {name}" if able.exclusive else HOME if able.concurrency > 1 else HERE


def _drawn_at(spec: str, renderer: object) -> str:
    if isinstance(renderer, CostsMoney):
        return HOME
    full = isinstance(renderer, FillsTheMemory) and renderer.exclusive
    return f"draw {spec}" if full or "memory" in option_names(default_registry("renderers").load(spec)[0]) else HERE


def _planned_at(config: Settings) -> str:
    named = set(option_names(default_registry("planners").load(config.planner)[0]))
    if "model" not in named:
        return HERE
    asked = str(config.planner_options.get("model", config.planner.partition(":")[2]))
    return HOME if asked.startswith(_HOSTED) else f"plan {config.planner}"


def held_by(stage: str) -> frozenset[str]:
    """Return the stages that a station of `stage` can do: its own, and what fills no memory."""
    return frozenset((stage, HERE))


def load_for(config: Settings) -> Plugins:
    """Return the plug-ins of `config` as a worker makes them: without keys, since a worker calls no service."""
    with keyless():
        return load_plugins(config)


def open_store(owner: str) -> Store:
    """Return the cache that the command and its workers share."""
    return Store(cache_folder(), owner=owner)


_CAPACITY = 8
_LOOK = 0.1


class _Stopped(Exception):
    """Nobody wants further items."""


@contextmanager
def streamed(produce: Callable[[Callable[[Item], None]], None]) -> Iterator[Iterator[Item]]:
    """Yield the items that `produce` hands over, made on a thread of its own and never many ahead of their use."""
    queue: Queue[Item | BaseException | None] = Queue(_CAPACITY)
    stop = Event()

    def put(item: Item | BaseException | None) -> None:
        while not stop.is_set():
            try:
                return queue.put(item, timeout=_LOOK)
            except Full:
                continue
        raise _Stopped

    def work() -> None:
        end: BaseException | None = None
        try:
            produce(put)
        except _Stopped:
            return
        except BaseException as error:
            end = error
        try:
            put(end)
        except _Stopped:
            return

    def items() -> Iterator[Item]:
        while True:
            try:
                found = queue.get(timeout=_LOOK)
            except Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            if found is None:
                return
            yield found

    thread = Thread(target=work, name="items", daemon=True)
    thread.start()
    try:
        yield items()
    finally:
        stop.set()
        thread.join()
