"""The one runner of suites, comparisons and tunings: a folder that is gone on with, piece by piece, to its table.

An experiment is data (a job) and says three things: what its folder begins with, its pieces of work, and what is made
of them. A piece that fails for one story stops nothing: it is kept with its reason, and where another try may help the
folder is left `incomplete` and the same command tries it again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from katha.agents.context import (
    Plugins,
    make_bridge,
    make_guide,
    make_planner,
    make_renderer,
    make_writer,
    pay_planner,
    require_prices,
)
from katha.compass.modes import load_mode
from katha.compass.writer import Writer
from katha.config import Settings, cache_folder
from katha.errors import BudgetError, InputFileError, KathaError, RenderError, TransientRenderError
from katha.eval_bridge.judging.answers import Outcome
from katha.eval_bridge.judging.budget import Budget
from katha.jsonio import canonical, digest, read_bytes, read_json, write_bytes_atomic
from katha.protocols import Judge, Planner, Similarity
from katha.schema import AnswerStatus
from katha.store import State, Status, Store, Workspace

OnStep = Callable[[str, int], None]
"""Called after each piece of work with its name and how many are done."""


class ExperimentState(State):
    """What every experiment's state file holds: the hash of everything that its folder must not mix."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    differs: ClassVar[str] = "other settings"
    """The words for a difference."""

    identity_sha256: str = Field(alias="identity")
    statuses: dict[AnswerStatus, int] = {}
    """Answers by status, when all that could be done was done."""
    causes: list[Mapping[str, object]] = []
    """Why answers are missing, the most frequent first."""

    def identity(self) -> Mapping[str, object]:
        """Return the hash by the words for a difference."""
        return {self.differs: self.identity_sha256}

    @model_serializer(mode="wrap")
    def _in_the_file_s_order(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        row: dict[str, object] = dump(self)
        first = ("format", "katha", "identity", "stories_sha256", "status")
        later = {"human", "statuses", "causes"} - self.model_fields_set  # what is known only when the work is done
        return {name: row[name] for name in (*first, *row) if name in row and name not in later}


S = TypeVar("S", bound=ExperimentState)
T = TypeVar("T")


@dataclass(frozen=True)
class ExperimentEnd(Generic[T]):
    """What an experiment ends with. outcome: what came of asking. status: where the outcome alone does not say it."""

    table: T
    outcome: Outcome
    status: Status | None = None


@dataclass(frozen=True)
class ExperimentResult(Generic[S, T]):
    """What an experiment gave. `outcome` says what came of asking; `reused`: the folder already held all of it."""

    out: Path
    state: S
    table: T
    outcome: Outcome
    reused: bool

    @property
    def status(self) -> Status:
        """Return how the folder stands."""
        return self.state.status


class Experiment(ABC, Generic[S, T]):
    """One experiment in its folder. While it works, `state` is what the folder says of it, and `store` the cache."""

    state: S
    store: Store

    def __init__(self, folder: Workspace[S], store: Store | None = None) -> None:
        self.folder, self._store = folder, store

    @abstractmethod
    def begin(self) -> S:
        """Return what the folder begins with."""

    @abstractmethod
    def stored(self, known: S, fresh: S) -> T | None:
        """Return the table where the folder holds it and nothing is left to be done."""

    def resumed(self, known: S, fresh: S) -> S:
        """Return the state that is gone on with."""
        return known.model_copy(update={"status": "running"})

    @abstractmethod
    def work(self) -> Iterator[str]:
        """Do what is left, and yield the name of each piece of work when it is kept."""

    @abstractmethod
    def conclude(self) -> ExperimentEnd[T]:
        """Make the table from what is kept, and write it."""

    def save(self, **changes: object) -> None:
        """Write the state with changes."""
        self.state = self.folder.write(self.state.model_copy(update=changes))

    def run(self, on_step: OnStep | None = None) -> ExperimentResult[S, T]:
        """Begin, go on after a kill, or find that all is done.

        Raises:
            OutputFolderError: the folder cannot be used. KathaError: the work failed; call again to go on.
        """
        fresh = self.begin()
        with self.folder.claim():
            known = self.folder.resume(fresh)
            damaged = self.folder.damaged(known) if known is not None else []
            self.folder.set_aside(damaged)
            table = self.stored(known, fresh) if known is not None and not damaged else None
            if known is not None and table is not None:
                outcome = Outcome.of_finished(known.statuses, known.causes)
                return ExperimentResult(self.folder.path, known, table, outcome, reused=True)
            self.state = self.folder.write(self.resumed(known, fresh) if known is not None else fresh)
            shared = nullcontext(self._store) if self._store is not None else None
            with shared or Store(cache_folder(), owner=fresh.identity_sha256[:32]) as self.store:
                for done, name in enumerate(self.work(), 1):
                    if on_step is not None:
                        on_step(name, done)
                self.store.flush()
                made = self.conclude()
            final = self.finish(made.outcome, made.status or made.outcome.status())
            return ExperimentResult(self.folder.path, final, made.table, made.outcome, reused=False)

    def finish(self, outcome: Outcome, status: Status) -> S:
        """Write the state a last time, with what came of asking."""
        counts = {"statuses": outcome.statuses, "causes": outcome.failures()}
        return self.folder.finish(self.state.model_copy(update=counts), status)


R = TypeVar("R", bound=BaseModel)


def write_records(path: Path, records: Iterable[BaseModel], *, durable: bool = True) -> None:
    """Write records as JSON Lines, atomically."""
    lines = b"".join(canonical(record.model_dump(mode="json")) + b"\n" for record in records)
    write_bytes_atomic(path, lines, durable=durable)


def read_records(path: Path, kind: type[R]) -> list[R]:
    """Return the records of a file that `write_records` wrote, or none where there is no file."""
    try:
        return [kind.model_validate_json(line) for line in read_bytes(path).splitlines()] if path.exists() else []
    except ValidationError as error:
        hint = "Remove it, and run the same command again: it is made anew."
        raise InputFileError(f"{str(path)!r} is damaged.", hint=hint) from error


def read_kept(path: Path, kind: type[R]) -> R | None:
    """Return the record in `path`, or None where there is none that can be read: it is made again."""
    try:
        return kind.model_validate(read_json(path))
    except (InputFileError, ValidationError):
        return None


def worth_another_try(error: KathaError) -> bool:
    """Return whether the same command is to try again what failed like that.

    A network comes back, a budget grows, and a bug of a renderer (a plain `RenderError`) is mended. What a renderer or
    a service refuses, or cannot draw from this story, it refuses again.
    """
    return isinstance(error, (TransientRenderError, BudgetError)) or type(error) is RenderError


P = TypeVar("P")


class PluginPool:
    """Plug-ins by settings: what two settings have in common is made once, so that a model is in memory once.

    Judges, similarity and budget are the same for all.
    """

    def __init__(
        self,
        judges: Mapping[str, Judge],
        similarity: Similarity,
        budget: Budget | None = None,
        steering: tuple[str, ...] | None = None,
    ) -> None:
        self._judges, self._similarity, self._budget, self._steering = judges, similarity, budget, steering
        self._made: dict[str, object] = {}

    @classmethod
    def of(cls, plugins: Plugins, config: Settings) -> PluginPool:
        """Return a shelf that holds the plug-ins made for `config`."""
        shelf = cls(plugins.judges, plugins.similarity, plugins.budget, plugins.steering)
        for kind, made in (("planner", plugins.planner), ("renderer", plugins.renderer)):
            shelf._made[_key(kind, config)] = made
        if plugins.writer is not None:
            shelf._made[_key("writer", config)] = plugins.writer
        shelf._made[_key("bridge_renderer", config)] = plugins.bridge
        shelf._made[_key("guide", config)] = plugins.guide
        return shelf

    def plugins(self, config: Settings) -> Plugins:
        """Return the plug-ins of these settings.

        Raises:
            UnknownPluginError, MissingExtraError: one cannot be made. UsageError: a price is unknown.
        """
        renderer = self._once("renderer", make_renderer, config)
        bridge = self._once("bridge_renderer", make_bridge, config)
        guide = self._once("guide", make_guide, config)
        drawers = {config.renderer: renderer, str(config.bridge_renderer): bridge, str(config.guide): guide}
        require_prices(self._budget, drawers)
        planner = self._once("planner", self._planner, config)

        def write(given: Settings) -> Writer | None:
            return make_writer(given, planner, self._budget)

        return Plugins(
            planner=planner,
            renderer=renderer,
            judges=self._judges,
            similarity=self._similarity,
            bridge=bridge,
            budget=self._budget,
            steering=self._steering,
            guide=guide,
            writer=self._once("writer", write, config) if load_mode(config.mode).writes else None,
        )

    def _planner(self, config: Settings) -> Planner:
        planner = make_planner(config)
        if self._budget is not None:
            pay_planner(config.planner, planner, self._budget)
        return planner

    def _once(self, kind: str, make: Callable[[Settings], P], config: Settings) -> P:
        key = _key(kind, config)
        if key not in self._made:
            self._made[key] = make(config)
        return cast(P, self._made[key])


def _key(kind: str, config: Settings) -> str:
    if kind == "writer":
        return digest([kind, config.writer, config.planner, config.planner_options])
    return digest([kind, getattr(config, kind), getattr(config, f"{kind}_options"), config.memory])
