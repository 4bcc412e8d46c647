"""Boards judged by workers: an item is what one judge is asked about one board of one story."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from katha.config import Settings
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine, OnAnswer
from katha.experiments.cluster.fleet import Fleet
from katha.experiments.cluster.stage_models import judged_at
from katha.experiments.cluster.work import HOME, Done, Ending, Station, Work, WorkItem, open_store, streamed
from katha.experiments.evaluation.eval_folder import mark
from katha.experiments.evaluation.judging import Evaluator
from katha.protocols import Judge
from katha.registry import default_registry, option_names
from katha.schema import Answer
from katha.store import Store

_FLAGS = ("base_url", "verify_reuse", "patience")


def make_judge(spec: str, config: Settings) -> Judge:
    """Return one judge of the settings, with those of their options that it has.

    Raises:
        UnknownPluginError, MissingExtraError, ModelError: it cannot be made on this machine.
    """
    known = set(option_names(default_registry("judges").load(spec)[0]))
    flags: Mapping[str, Any] = {name: getattr(config, name) for name in _FLAGS if name in known}
    options = {name: value for name, value in config.judge_options.items() if name in known}
    return make_judges([spec], **flags, options=options)[0][1]


@dataclass(frozen=True)
class _Asked:
    """What one judge is asked about one board; the text alone has no board."""

    judge: str
    inquiries: Sequence[Inquiry]


@dataclass(frozen=True)
class Judging:
    """Opens stations that ask judges. specs: how the judges of a stage were asked for, by the name of their answers."""

    config: Settings
    stages: Mapping[str, Mapping[str, str]]
    owner: str

    def __call__(self, stage: str) -> Station:
        """Return the station of a stage: its judges, and the cache."""
        judges = {name: make_judge(spec, self.config) for name, spec in self.stages[stage].items()}
        engine = JudgingEngine(judges, open_store(self.owner))

        def work(load: _Asked) -> Ending:
            rows: list[list[tuple[Answer, bool]]] = []
            for inquiry in load.inquiries:
                told: list[tuple[Answer, bool]] = []
                engine.ask(load.judge, inquiry, lambda answer, reused, to=told: to.append((answer, reused)))  # type: ignore[misc]
                rows.append(told)
            return Done(rows)

        return work


class _Gathering(JudgingEngine):
    """Stands in for the engine: what would be asked becomes items, one for each judge and board."""

    def __init__(self, judges: Mapping[str, Judge], store: Store, put: Callable[[WorkItem], None]) -> None:
        super().__init__(judges, store)
        self._put, self._count = put, 0
        self._about: tuple[str, str, str | None] | None = None
        self._held: list[tuple[Inquiry, OnAnswer]] = []
        self.told: dict[str, list[OnAnswer]] = {}

    def ask(self, name: str, inquiry: Inquiry, on_answer: OnAnswer | None = None) -> list[Answer]:
        """Make it part of an item."""
        about = (name, inquiry.packet.story_id, inquiry.method)
        if about != self._about:
            self.flush()
        self._about = about
        self._held.append((inquiry, on_answer or (lambda answer, reused: None)))
        return []

    def flush(self) -> None:
        """Hand over the item that was gathered last."""
        if self._about is None or not self._held:
            return
        judge, story, method = self._about
        self._count += 1
        name = f"{story}, {method or 'its text'}, by {judge} ({self._count})"
        self.told[name] = [tell for _, tell in self._held]
        load = _Asked(judge, [inquiry for inquiry, _ in self._held])
        self._about, self._held = None, []
        self._put(WorkItem(judged_at(judge, self.judges[judge]), name, load))


@dataclass
class JudgedByWorkers:
    """The judges of an evaluation that need a device, asked by workers.

    evaluator: makes what puts the questions to an engine. engine: the command's own, on whose account the answers are.
    asked_for: how each judge was asked for, by name. After `run`, `marks` holds the questions that have an answer or a
    typed failure: the command does not ask them again.
    """

    config: Settings
    judges: Mapping[str, Judge]
    asked_for: Mapping[str, str]
    evaluator: Callable[[JudgingEngine], Evaluator]
    engine: JudgingEngine
    store: Store
    marks: set[bytes] = field(default_factory=set)

    def run(self, fleet: Fleet, owner: str, logs: Path) -> None:
        """Ask everything that workers can ask.

        Raises:
            UsageError: there is no such cluster. StoreError: the disk failed.
        """
        stages: dict[str, dict[str, str]] = {}
        for name, judge in self.engine.judges.items():
            if name in self.judges and (stage := judged_at(name, judge)) != HOME:
                stages.setdefault(stage, {})[name] = self.asked_for[name]
        here = {name: self.judges[name] for held in stages.values() for name in held}
        if not here:
            return
        told: dict[str, list[OnAnswer]] = {}

        def produce(put: Callable[[WorkItem], None]) -> None:
            gathering = _Gathering(here, self.store, put)
            gathering.told = told
            self.evaluator(gathering).run()
            gathering.flush()

        def keep(item: WorkItem, rows: Sequence[Sequence[tuple[Answer, bool]]]) -> None:
            for tell, answers in zip(told.pop(item.name), rows, strict=True):
                for answer, reused in answers:
                    tell(answer, reused)
                    self.engine.heard(answer, reused=reused)
                    self.marks.add(_mark(answer))

        with streamed(produce) as items:
            fleet.drain(Work(items, Judging(self.config, stages, owner), keep), owner, logs)


def _mark(answer: Answer) -> bytes:
    return mark(answer.method, answer.judge, answer.story_id, answer.question_id, answer.packet_sha256)
