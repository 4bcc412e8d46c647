"""Several methods over the same stories, plans, questions and judges (Sec. K.3, Tables 53 and 57)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from katha.agents.context import Plugins, Prepared, RunContext, check_able, make_similarity, plan_within
from katha.agents.folder import RunFolder, by_service, prompt_hashes
from katha.agents.frames import draw_board
from katha.agents.run import run_story
from katha.agents.state import OF_ONE_STORY, ignore_event
from katha.compass.modes import load_mode
from katha.config import Settings, identity_of, katha_version
from katha.errors import BudgetError, PlanError, RecordError, UsageError
from katha.eval_bridge.bench.boards import Boards
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.judging.answers import iter_answers, outcome_of
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.judging.budget import require_prices as require_judge_prices
from katha.eval_bridge.matching.match import require_rule
from katha.eval_bridge.matching.rules import make_decider, open_rule
from katha.eval_bridge.scoring.outcomes import Outcomes, collect
from katha.eval_bridge.scoring.rows import row_counts
from katha.eval_bridge.scoring.scores import score
from katha.eval_bridge.scoring.statistics import averages
from katha.experiments.eval_folder import EvalFolder, EvalSettings
from katha.experiments.evaluate import EvalJob, EvalResult, Prepare, evaluate, name_judges
from katha.experiments.methods import Method
from katha.experiments.runner import (
    Experiment,
    ExperimentState,
    Made,
    OnStep,
    Result,
    Shelf,
    read_kept,
    read_records,
    worth_another_try,
    write_records,
)
from katha.jsonio import digest, dumps, read_json, write_bytes_atomic, write_json
from katha.protocols import Judge, PlanRequest
from katha.schema import DIMENSIONS, Dimension, Plan, Record, StoryRecord
from katha.schema.scores import Scores, Selection
from katha.schema.tables import CompareTable, InvalidBoard, MethodRow, ServiceUse, Standing, StoryCell, StoryRow
from katha.store import Kind, Workspace

_TEXT, _IMAGE = range(2)
LOSS_WORDS: dict[Dimension, str] = {
    "action_visibility": "missing action",
    "causal": "weak causality",
    "emotional": "emotional drift",
    "consequence": "consequence loss",
    "temporal_order": "order lost",
    "moral": "moral-target loss",
}
"""The failure types of Table 69, by the dimension whose questions the text answers and the images do not."""

_NOTES = (
    "Visual quality and character consistency (Table 69) are not judged here: they need people.",
    "Failure types are by rule: the dimension that loses most of the story's valid questions from text to images.",
)


class Failure(Record):
    """Why a story has no board. again: the same command tries it again."""

    reason: str
    again: bool


class CompareState(ExperimentState):
    """`compare.json`: the methods, what they were made with, and by board and story why one is missing."""

    differs: ClassVar[str] = "other stories, methods or settings"

    command: list[str] = []
    config: Mapping[str, object] = {}
    methods: list[Mapping[str, object]]
    failures: Mapping[str, Mapping[str, Failure]] = {}


CompareResult = Result[CompareState, CompareTable]
_BOARD = "boards/*/*/*"
COMPARISON = Kind(
    "comparison",
    "compare.json",
    CompareState,
    results=("*.json", "*.jsonl", "plans/*/*.json", "judging/*.json*", f"{_BOARD}/*.json*", f"{_BOARD}/panels/*.png"),
    nested=("run.json", "eval.json"),
)


@dataclass
class CompareJob:
    """Methods over stories. `config` is what they share; `prepare` fills in questions, halves and options.

    reference: the method that the others are held against; None: every pair.
    budget: what its pictures and answers may cost. given: plug-ins by method instead of the named ones, and judges (for
    tests and callers that made them).
    """

    records: Sequence[StoryRecord]
    methods: Sequence[Method]
    config: Settings
    prepare: Prepare = list
    resamples: int = 10_000
    seed: int = 42
    command: Sequence[str] = ()
    budget: Budget | None = None
    reference: str | None = None
    given: Mapping[str, Plugins] = field(default_factory=dict)

    @cached_property
    def judges(self) -> dict[str, Judge]:
        """The judges by the name that their answers carry."""
        if self.given:
            return dict(next(iter(self.given.values())).judges)
        config = self.config
        made = make_judges(
            config.judges,
            base_url=config.base_url,
            verify_reuse=config.verify_reuse,
            patience=config.patience,
            options=config.judge_options,
        )
        return name_judges(made)

    @cached_property
    def plugins(self) -> dict[str, Plugins]:
        """Each method's plug-ins; equal ones are made once.

        Raises:
            UnknownPluginError, MissingExtraError: a plug-in cannot be made. UsageError: it cannot do what is asked.
        """
        made = dict(self.given)
        if not made:
            require_judge_prices(self.judges, self.budget or Budget())
            shelf = Shelf(self.judges, make_similarity(self.config), self.budget)
            made = {method.name: shelf.plugins(method.config) for method in self.methods}
        for method in self.methods:
            check_able(method.config, made[method.name])
        return made

    @property
    def prompt_tokens(self) -> int | None:
        """The strictest prompt limit of all renderers, so that every one of them gets the same plan."""
        limits = [made.renderer.capabilities.prompt_tokens for made in self.plugins.values()]
        return min((limit for limit in limits if limit is not None), default=None)

    def seeds(self, method: Method) -> tuple[int, ...]:
        """Return a seed for each board: one where a renderer has no seeds, or the mode chooses one (Table 44)."""
        able = self.plugins[method.name].renderer.capabilities
        several = able.source == "drawn" and able.deterministic and not method.repairs
        return method.config.seeds if several else method.config.seeds[:1]

    def boards(self, method: Method) -> dict[str, int]:
        """Return the names of a method's boards as they are judged, each with its seed."""
        seeds = self.seeds(method)
        return {f"{method.name}@{seed}" if len(seeds) > 1 else method.name: seed for seed in seeds}

    @property
    def selection(self) -> Selection:
        """Which questions are asked: all, or the reporting half where a mode chooses by the steering half."""
        return "reporting" if any(method.repairs for method in self.methods) else "all"

    def state(self) -> CompareState:
        """Return what the folder begins with; its identity is of everything that a finished comparison depends on."""
        config = self.config.model_dump(mode="json")
        plugins = {name: made.specs() for name, made in self.plugins.items()}
        configs = {method.name: method.config.model_dump(mode="json") for method in self.methods}
        identity = {
            "katha": katha_version(),
            "stories": [record.model_dump(mode="json") for record in self.records],
            "methods": [[name, identity_of(own)] for name, own in configs.items()],
            "plugins": plugins,
            "config": identity_of(config),
            "resamples": [self.resamples, self.seed],
            **({"reference": self.reference} if self.reference is not None else {}),
            "prompts": prompt_hashes(),
        }
        return CompareState(
            format=1,
            katha=katha_version(),
            identity=digest(identity),
            command=list(self.command),
            config=config,
            methods=[
                {"name": item.name, "slug": item.slug, "config": configs[item.name], "plugins": plugins[item.name]}
                for item in self.methods
            ],
        )


@dataclass(frozen=True)
class Judged:
    """What a table is made from: methods (Table 57), where they lose, and stories side by side (Tables 69, 70).

    scores: of methods, their seeds counted together. outcomes: of single boards. reasons: why a board is not there or
    cannot be judged, by board and story. services: which services drew a method's frames, by method.
    """

    job: CompareJob
    records: Sequence[StoryRecord]
    scores: Scores
    outcomes: Outcomes
    reasons: Mapping[str, Mapping[str, str]]
    services: Mapping[str, Sequence[ServiceUse]]

    @property
    def judge(self) -> str | None:
        """The judge whose numbers are shown: the ensemble where there are several."""
        return self.outcomes.judges[-1] if self.outcomes.judges else None

    def table(self, status: Standing) -> CompareTable:
        """Return everything that the report shows."""
        methods = self.job.methods
        return CompareTable(
            judge=self.judge,
            questions=self.job.selection,
            methods=[self._method(method) for method in methods],
            comparisons=[row for row in self.scores.comparisons if row.judge == self.judge],
            stories=[
                StoryRow(
                    story_id=record.story_id,
                    title=record.title or record.story_id,
                    moral=record.moral_label or "",
                    methods={method.name: self._cell(record.story_id, method) for method in methods},
                )
                for record in self.records
            ],
            invalid=[
                InvalidBoard(board=name, story_id=story, reason=reason)
                for name, reasons in sorted(self.reasons.items())
                for story, reason in sorted(reasons.items())
            ],
            notes=[*self.scores.notes, *self._same_judge(), *_NOTES],
            status=status,
        )

    def _same_judge(self) -> list[str]:
        """Return a warning for methods whose boards were chosen by the judges that report them."""
        chosen = [method.name for method in self.job.methods if load_mode(method.config.mode).steers]
        if not chosen:
            return []
        told = f"{', '.join(self.job.judges)} chose the boards of {', '.join(chosen)} and reports them"
        return [f"Held out by question, not by judge: {told}, and a judge flatters its own choice (`katha ablate`)."]

    def _method(self, method: Method) -> MethodRow:
        boards, scored = self.job.boards(method), self.scores.methods[method.name]
        total = len(self.records) * len(boards)
        invalid = sum(len(self.reasons.get(name, {})) for name in boards)
        entry = scored.judges.get(self.judge) if self.judge is not None else None
        block = entry.filtered if entry else None
        dimensions = block.dimensions if block else {}
        losses = [(row.gap, name) for name, row in dimensions.items() if row.n and row.gap is not None and row.gap > 0]
        services = list(self.services.get(method.name, ()))
        return MethodRow(
            name=method.name,
            planner=method.config.planner,
            renderer=method.config.renderer,
            mode=method.config.mode,
            seeds=list(boards.values()),
            closed=bool(services),
            services=services,
            boards=total,
            boards_valid=total - invalid,
            invalid_rate=100.0 * invalid / total if total else None,
            stories=len(self.records),
            stories_valid=scored.stories,
            text=block.text if block else None,
            image=block.image if block else None,
            raw_stg=entry.raw.stg if entry else None,
            filtered_stg=block.stg if block else None,
            common_valid_stg=entry.common_valid.stg if entry else None,
            ci95=block.ci95.stg if block else None,
            latent_gap=block.latent_gap if block else None,
            ambiguity_rate=entry.ambiguity_rate if entry else None,
            dimensions=dimensions,
            common_valid_ci95=entry.common_valid.ci95.stg if entry else None,
            common_valid_text=entry.common_valid.text if entry else None,
            common_valid_image=entry.common_valid.image if entry else None,
            n_common=entry.common_valid.n if entry else None,
            n_valid=entry.n_valid if entry else None,
            n_scored=entry.raw.n if entry else None,
            signature=[LOSS_WORDS[name] for _, name in sorted(losses, key=lambda item: (-item[0], item[1]))[:2]],
        )

    def _cell(self, story: str, method: Method) -> StoryCell:
        """Return one method on one story: what is recovered of its valid questions, and where it fails."""
        boards, outcomes = list(self.job.boards(method)), self.outcomes
        why = [self.reasons[name][story] for name in boards if story in self.reasons.get(name, {})]
        judged = [name for name in boards if name in outcomes.methods and story not in self.reasons.get(name, {})]
        counts = np.zeros((len(DIMENSIONS), 4))
        if story in outcomes.stories:
            counts = row_counts(outcomes, judged, outcomes.stories).pooled()[outcomes.stories.index(story)]
        text = image = None
        recovered: Literal["yes", "partial", "no", "none"] = "none"
        if counts[:, 0].any():
            text, image = (100.0 * float(averages(counts)[at]) for at in (_TEXT, _IMAGE))
            recovered = "yes" if image == 100.0 else "no" if image == 0.0 else "partial"
        gaps = (counts[:, 1 + _TEXT] - counts[:, 1 + _IMAGE]) / np.maximum(counts[:, 0], 1)
        return StoryCell(
            reason=why[0] if len(why) == len(boards) else None,
            boards_invalid=len(why),
            n=int(counts[:, 0].sum()),
            text=text,
            image=image,
            stg=text - image if text is not None and image is not None else None,
            recovered=recovered,
            failures=[LOSS_WORDS[DIMENSIONS[at]] for at in np.argsort(-gaps, kind="stable") if gaps[at] > 0],
        )


def run_comparison(
    job: CompareJob,
    out: Path,
    *,
    on_story: OnStep | None = None,
) -> CompareResult:
    """Compare into the folder `out`: boards, answers, `scores.json` and `table.json`.

    The same call again does nothing; after a kill it goes on, draws and asks nothing twice. A story that a method
    cannot draw is invalid for it, with the reason, and stops nothing. A budget that is used up leaves the comparison
    unfinished: what was paid for is kept, and the same call with a larger one goes on.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`); or a service
        refuses the key. JudgeError, StoreError: the work failed; call again to go on.
    """
    require_rule(job.config.matching)
    for record in job.records:  # a story's id becomes the name of a folder
        if re.fullmatch(r"[^/\\\x00]{1,200}", record.story_id) is None or set(record.story_id) == {"."}:
            raise RecordError(f"The story id {record.story_id!r} cannot be the name of a folder.", hint="Rename it.")
    return _Comparison(job, Workspace(out, COMPARISON)).run(on_story)


class _Comparison(Experiment[CompareState, CompareTable]):
    def __init__(self, job: CompareJob, folder: Workspace[CompareState]) -> None:
        super().__init__(folder)
        self._job, self._out = job, folder.path
        self._records: list[StoryRecord] = []
        self._failures: dict[str, dict[str, Failure]] = {}

    def begin(self) -> CompareState:
        return self._job.state()

    def stored(self, known: CompareState, fresh: CompareState) -> CompareTable | None:
        return read_kept(self._out / "table.json", CompareTable) if known.status == "finished" else None

    def work(self) -> Iterator[str]:
        path = self._out / "stories.jsonl"
        if not path.is_file():  # the questions that every method is asked, made once
            write_records(path, self._job.prepare(self._job.records))
        self._records = read_records(path, StoryRecord)
        self._failures = {name: dict(found) for name, found in self.state.failures.items()}
        for method in self._job.methods:
            for record in self._records:
                for name, seed in self._job.boards(method).items():
                    self._draw(method, name, seed, record)
                self.save(failures=self._failures)
                yield f"{method.name}: {record.story_id}"

    def _boards(self, method: Method, seed: int) -> Path:
        """Return where a method's boards of one seed are, a folder a story."""
        return self._out / "boards" / method.slug / str(seed)

    def _draw(self, method: Method, name: str, seed: int, record: StoryRecord) -> None:
        """Draw one board, or keep the reason why there is none."""
        known = self._failures.setdefault(name, {})
        if record.story_id in known and not known[record.story_id].again:
            return
        known.pop(record.story_id, None)
        folder, failed = self._boards(method, seed) / record.story_id, None
        try:
            plan = self._plan(method, record)
            if method.repairs:
                failed = self._repair(method, folder, record, plan)
            else:
                self._board(method, name, seed, RunFolder(folder), record, plan)
        except (*OF_ONE_STORY, BudgetError) as error:
            failed = Failure(reason=str(error), again=worth_another_try(error))
        if failed is not None:
            known[record.story_id] = failed

    def _plan(self, method: Method, record: StoryRecord) -> Plan:
        """Return the plan of one planner, made once for all renderers and kept."""
        config = method.config
        planner = self._job.plugins[method.name].planner
        limit, panels = self._job.prompt_tokens, len(record.scenes) or config.panels or PlanRequest().panels
        key = digest([dict(planner.spec()), panels, config.style, limit])
        path = self._out / "plans" / key[:12] / f"{record.story_id}.json"
        if path.is_file():
            return Plan.model_validate(read_json(path))
        try:
            plan = plan_within(planner, record, config.model_copy(update={"panels": panels}), limit)
        except UsageError as error:
            raise PlanError(f"no plan by {config.planner!r}: {error.message}") from error
        write_json(path, plan.model_dump(mode="json"))
        return plan

    def _board(self, method: Method, name: str, seed: int, folder: RunFolder, record: StoryRecord, plan: Plan) -> None:
        update = {"mode": "base", "seeds": (seed,), "matching": "exact-set", "panels": len(plan.panels)}
        config, made = method.config.model_copy(update=update), self._job.plugins[method.name]
        context = RunContext.open(record, config, made, self.store, folder, ready=Prepared(plan, record))
        board = draw_board(context, seed, ignore_event).model_copy(update={"method": name})
        data = dumps(board.model_dump(mode="json")).encode("utf-8")
        # A file that holds it already stays as it is: its time tells whether a board has changed.
        if not folder.storyboard.is_file() or folder.storyboard.read_bytes() != data:
            write_bytes_atomic(folder.storyboard, data)

    def _repair(self, method: Method, folder: Path, record: StoryRecord, plan: Plan) -> Failure | None:
        """Run the story; a board that was chosen and repaired without the judge's answers is none."""
        config = method.config.model_copy(update={"panels": len(plan.panels)})
        made = self._job.plugins[method.name]
        outcome = run_story(record, config, folder, plan=plan, plugins=made).outcome
        told = " ".join(map(str.strip, outcome.sentences()[:2]))
        return Failure(reason=told, again=True) if outcome.failed else None

    def conclude(self) -> Made[CompareTable]:
        evaluated = self._evaluate()
        reasons = {name: dict(found) for name, found in evaluated.state.done.invalid.items()}
        for name, failures in self._failures.items():  # what a renderer said tells more than that a file is missing
            reasons.setdefault(name, {}).update({story: failure.reason for story, failure in failures.items()})
        judged = self._score(EvalFolder(evaluated.out), reasons)
        rows = iter_answers(evaluated.out / "answers.jsonl")
        told = [reason for found in reasons.values() for reason in found.values()]
        outcome = outcome_of(rows, unusable=told, first=evaluated.outcome.first)
        lost = any(failure.again for failures in self._failures.values() for failure in failures.values())
        again = lost or evaluated.state.status != "finished"
        table = judged.table("incomplete" if again or outcome.nothing else "finished")
        write_json(self._out / "table.json", table.model_dump(mode="json"))
        return Made(table, outcome, "incomplete" if again else None)

    def _evaluate(self) -> EvalResult:
        """Put the same questions about every board."""
        job, config = self._job, self._job.config
        boards = [
            Boards(name, self._boards(method, seed))
            for method in job.methods
            for name, seed in job.boards(method).items()
        ]
        for board in boards:
            board.folder.mkdir(parents=True, exist_ok=True)
        made = EvalJob(
            records=self._records,
            methods=boards,
            judges=job.judges,
            settings=EvalSettings(
                answers=config.answers,
                variant=config.variant,
                matching=config.matching,
                questions=job.selection,
                resamples=0,
                seed=job.seed,
            ),
            decider=make_decider(config.matching, config.base_url),
            command=tuple(job.command),
        )
        return evaluate(made, self._out / "judging", self.store, budget=job.budget)

    def _score(self, folder: EvalFolder, reasons: Mapping[str, Mapping[str, str]]) -> Judged:
        """Write `scores.json`, where a method's seeds count together, and return what the table is made from."""
        job, records = self._job, self._records
        boards = {method.name: list(job.boards(method)) for method in job.methods}
        missing = {
            name: {
                record.story_id: reasons[members[0]][record.story_id]
                for record in records
                if all(record.story_id in reasons.get(member, {}) for member in members)
            }
            for name, members in boards.items()
        }
        rule = open_rule(job.config.matching, [folder.verdicts])
        scores = score(
            records,
            iter_answers(folder.answers),
            matching=rule,
            questions=job.selection,
            resamples=job.resamples,
            seed=job.seed,
            invalid=missing,
            pooled=boards,
            reference=job.reference,
        ).with_empty(missing)
        write_json(self._out / "scores.json", scores.model_dump(mode="json"))
        outcomes = collect(records, iter_answers(folder.answers), matching=rule, selection=job.selection)
        frames = {
            method.name: [
                path.stem for seed in job.seeds(method) for path in self._boards(method, seed).glob("*/panels/*.png")
            ]
            for method in job.methods
        }
        services = {name: by_service(self.store, hashes) for name, hashes in frames.items()}
        return Judged(job, records, scores, outcomes, reasons, services)
