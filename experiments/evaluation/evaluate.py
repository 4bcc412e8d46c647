"""Judge boards that are there: ask what is not answered yet, score, and write every file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

from katha.config import Settings, katha_version
from katha.errors import JudgeError, UsageError
from katha.eval_bridge.bench.boards import MethodBoards
from katha.eval_bridge.judging.abilities import AsksInBatches, judge_name
from katha.eval_bridge.judging.answers import FAILED, AnswerLog, iter_answers, outcome_of
from katha.eval_bridge.judging.brake import brake_of
from katha.eval_bridge.judging.budget import Budget, CallEstimate, Weighed, require_prices
from katha.eval_bridge.judging.engine import JudgingEngine, Retry
from katha.eval_bridge.judging.entrance import EntranceResult, can_take, costs_little, known, take
from katha.eval_bridge.matching.match import Decider, Rule
from katha.eval_bridge.matching.rules import RecordingRule, open_rule, recording, settle
from katha.eval_bridge.packets.instructions import prompt_hashes
from katha.eval_bridge.questions.evaluators import load_evaluator
from katha.eval_bridge.scoring.audit import question_ledger, summarise
from katha.eval_bridge.scoring.contrastive import PairScorer, confidence_table, pair_questions
from katha.eval_bridge.scoring.controls import control_results
from katha.eval_bridge.scoring.moral import label_questions
from katha.eval_bridge.scoring.outcomes import ENSEMBLE
from katha.eval_bridge.scoring.scores import score
from katha.experiments.cluster.fleet import Fleet
from katha.experiments.cluster.judged import JudgedByWorkers
from katha.experiments.evaluation.batches import BatchFolder, OnBatch, ask_in_batches, batchable
from katha.experiments.evaluation.eval_folder import (
    AnswerWriter,
    EvalFolder,
    EvalResults,
    EvalSettings,
    EvalState,
    SpendLog,
)
from katha.experiments.evaluation.judging import Evaluator, Sink, ignore, row_order
from katha.experiments.runner import Experiment, ExperimentEnd, ExperimentResult, OnStep, read_records, write_records
from katha.jsonio import canonical, digest, read_record, write_json
from katha.lettering import WordScanner
from katha.models.calls import is_replayed
from katha.plugin_boundary import spec_of
from katha.protocols import Judge
from katha.schema import Answer, ContrastiveVariant, Question, StoryRecord
from katha.schema.scores import ControlResult, Scores
from katha.store import Store

Prepare = Callable[[Sequence[StoryRecord]], list[StoryRecord]]


@dataclass(frozen=True)
class EvalJob:
    """What is to be evaluated. `records` are as given; `prepare` fills in questions and options.

    variants: contrastive variants whose pairs are asked, too. decider: the model behind `settings.matching`, where that
    rule has one. scanner: looks for words drawn into the pictures. entrance: whether judges take the entrance test;
    `cheap`: those that never did, where it costs little.
    """

    records: Sequence[StoryRecord]
    methods: Sequence[MethodBoards]
    judges: Mapping[str, Judge]
    settings: EvalSettings
    prepare: Prepare = list
    decider: Decider | None = None
    variants: Sequence[ContrastiveVariant] = ()
    scanner: WordScanner | None = None
    entrance: Literal["always", "cheap", "never"] = "never"
    command: tuple[str, ...] = ()
    config: Settings | None = None

    def specs(self) -> dict[str, Mapping[str, object]]:
        """Return the judges' specifications by name."""
        return {name: spec_of(judge, f"judge {name!r}") for name, judge in self.judges.items()}

    def evaluator(
        self,
        records: Sequence[StoryRecord],
        engine: JudgingEngine,
        settled: Collection[bytes] = (),
        logs: tuple[Sink, Sink] = (ignore, ignore),
    ) -> Evaluator:
        """Return what puts the questions of `records` to `engine`, but for those that are settled."""
        return Evaluator(
            records=records,
            methods=self.methods,
            engine=engine,
            settings=self.settings,
            settled=settled,
            pairs=pair_questions(records, self.variants, self.settings.seed),
            labels=self.labels(records),
            scanner=self.scanner,
            log=logs[0],
            control_log=logs[1],
        )

    def labels(self, records: Sequence[StoryRecord]) -> dict[str, list[Question]]:
        """Return the questions for moral labels, where the stories' own questions are what is asked and reported."""
        own = self.settings.questions != "steering" and load_evaluator(self.settings.evaluator).own
        return label_questions(records, self.settings.seed) if own else {}

    def tested(self, engine: JudgingEngine) -> list[str]:
        """Return the judges that take the entrance test now."""
        able = [name for name, judge in self.judges.items() if can_take(judge)]
        if self.entrance == "always":
            return able
        untold = [name for name in able if self.entrance == "cheap" and known(engine, name) is None]
        return [name for name in untold if costs_little(self.judges[name], self._asked())]

    def _asked(self) -> int:
        """Return how many calls every judge takes at most, without a look at boards and cache."""
        packets = 2 + 2 * len(self.methods)  # nothing, the text; each board with and without the text
        together = self.settings.ask == "together"
        counts = (len(self.settings.selected(record)) for record in self.records)
        return packets * (sum(map(bool, counts)) if together else sum(counts))

    def entrances(self, engine: JudgingEngine) -> dict[str, EntranceResult | None]:
        """Return how the judges did in the entrance test, whenever they took it; None of one that never did."""
        return {name: known(engine, name) for name, judge in self.judges.items() if can_take(judge)}

    def caveats(self, entrance: Mapping[str, EntranceResult | None]) -> list[str]:
        """Return what there is to know of the judges' answers, beside the scores."""
        told = [result.told(name) for name, result in entrance.items() if result is not None]
        told += [judge.caveat for judge in self.judges.values() if judge.caveat]
        writes = not all(judge.always_chooses for judge in self.judges.values())
        note = self.config.matching_note if writes and self.config is not None else None
        return [*told, note] if note else told

    def state(self) -> EvalState:
        """Return what the evaluation's folder begins with.

        Its identity is of what the answers are answers to: stories, form of asking, prompts. Its fingerprint is of
        everything that decides a finished evaluation's files (pictures by size and time).
        """
        hashed, settings = hashlib.sha256(), self.settings
        for item in (*self.records, *self.variants):
            hashed.update(canonical(item.model_dump(mode="json")))
        asked = (settings.answers, settings.variant, settings.questions, settings.seed, settings.evaluator)
        together = ["together"] if settings.ask == "together" else []
        identity = digest([hashed.hexdigest(), asked, prompt_hashes(settings.variant), *together])
        boards = [
            [method.name, str(method.folder.resolve()), record.story_id, method.files(record.story_id)]
            for method in self.methods
            for record in self.records
        ]
        decider = dict(self.decider.spec()) if self.decider is not None else None
        scored = [settings.matching, decider, settings.controls, settings.resamples, self.scanner is not None]
        scored += [settings.reference] if settings.reference is not None else []
        scored += [{"order": settings.order}] if settings.order is not None else []
        scored += ["entrance"] if self.entrance == "always" else []
        return EvalState(
            format=1,
            katha=katha_version(),
            identity=identity,
            fingerprint=digest([identity, boards, self.specs(), scored, katha_version()]),
            command=list(self.command),
            config=self.settings,
            boards={method.name: str(method.folder) for method in self.methods},
            judges=self.specs(),
            prompts=prompt_hashes(settings.variant),
        )


class EvalResult(ExperimentResult[EvalState, Scores]):
    """Where the files are, what `eval.json` and `scores.json` hold, and whether all of it was there already."""

    @property
    def scores(self) -> Scores:
        """The scores."""
        return self.table


def name_judges(judges: Sequence[tuple[str, Judge]]) -> dict[str, Judge]:
    """Return judges by the name that their answers carry: their own, or, where two share one, as each was asked for.

    Raises:
        UsageError: a judge is given twice, or is called `ensemble`.
    """
    own = [judge_name(judge) for _, judge in judges]
    named: dict[str, Judge] = {}
    for (asked_for, judge), name in zip(judges, own, strict=True):
        label = name if own.count(name) == 1 else asked_for
        if label in named or label == ENSEMBLE:
            raise UsageError(f"The judge {label!r} cannot be used under this name twice.", hint="Give each judge once.")
        named[label] = judge
    if not named:
        raise UsageError("There is no judge.", hint="Give --judge; see `katha judges`.")
    return named


def estimate(
    job: EvalJob, store: Store, on_story: OnStep | None = None, *, batch: bool = False
) -> tuple[dict[str, CallEstimate], Evaluator]:
    """Return what evaluating would ask of each judge beyond what the cache holds. Nothing is asked and nothing written.

    Raises:
        UsageError: with `batch`, where `evaluate` would refuse it, too.
    """
    share = {name: judge.batch_terms["price"] for name, judge in (_batchable(job) if batch else {}).items()}
    sums = {name: CallEstimate() for name in job.judges}
    weighed = {name: Weighed(judge, sums[name], share.get(name, 1.0)) for name, judge in job.judges.items()}
    evaluator = job.evaluator(job.prepare(job.records), JudgingEngine(weighed, store))
    for name in job.tested(evaluator.engine):
        take(evaluator.engine, name)
        sums[name].entrance = sums[name].calls
    evaluator.run(on_story)
    for name, tally in evaluator.engine.tallies.items():
        sums[name].reused = tally.reused
    return sums, evaluator


def evaluate(
    job: EvalJob,
    out: Path,
    store: Store,
    *,
    budget: Budget | None = None,
    retry: Retry | None = None,
    on_story: OnStep | None = None,
    batch: bool = False,
    on_batch: OnBatch | None = None,
    fleet: Fleet | None = None,
) -> EvalResult:
    """Evaluate into the folder `out`. The same call again asks nothing; after a kill it goes on where it stopped.

    With `batch`, judges that have a batch API are asked by it, and this waits until their batches have ended. With a
    `fleet`, its workers ask the judges that compute; those that wait for a server are asked here.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`).
        JudgeError, StoreError: the work failed; call again to go on.
    """
    limits = budget or Budget()
    batched = _batchable(job) if batch else {}
    require_prices(job.judges, limits)
    made = _Evaluation(job, EvalFolder(out), store, limits, retry, batched, on_story, on_batch, fleet).run()
    return EvalResult(**vars(made))


def _batchable(job: EvalJob) -> dict[str, AsksInBatches]:
    """Return the judges that are asked in batches.

    Raises:
        UsageError: none can be, or a control asks the same question twice, which a batch answers once.
    """
    if "repeat" in job.settings.controls:
        raise UsageError("The control 'repeat' cannot be asked in a batch.", hint="Leave it out, or leave --batch out.")
    if job.settings.ask == "together":
        raise UsageError("--batch asks each question singly.", hint="Leave --ask together out, or leave --batch out.")
    return batchable(job.judges)


class _Evaluation(Experiment[EvalState, Scores]):
    folder: EvalFolder

    def __init__(
        self,
        job: EvalJob,
        folder: EvalFolder,
        store: Store,
        budget: Budget,
        retry: Retry | None,
        batched: Mapping[str, AsksInBatches],
        on_story: OnStep | None,
        on_batch: OnBatch | None,
        fleet: Fleet | None,
    ) -> None:
        super().__init__(folder, store)
        self._fleet = fleet
        self._job, self._budget, self._retry = job, budget, retry
        self._batched, self._on_story, self._on_batch = batched, on_story, on_batch
        self._entrances: dict[str, EntranceResult] = {}

    def begin(self) -> EvalState:
        return self._job.state()

    def stored(self, known: EvalState, fresh: EvalState) -> Scores | None:
        folder, same = self.folder, known.fingerprint == fresh.fingerprint
        whole = not folder.missing(("scores.json", "answers.jsonl", "stories.jsonl")) and known.results is not None
        done = known.status == "finished" and same and whole
        return read_record(folder.scores, Scores) if done else None

    def resumed(self, known: EvalState, fresh: EvalState) -> EvalState:
        """Drop the answers of judges that have changed."""
        before = known.judges
        if known.results is not None:
            self._entrances |= {name: found for name, found in known.results.entrance.items() if found is not None}
        self.folder.forget({name for name, spec in fresh.judges.items() if before.get(name, spec) != spec})
        return fresh.model_copy(update={"judges": {**before, **fresh.judges}})

    def work(self) -> Iterator[str]:
        job, folder, there = self._job, self.folder, self.folder.settled()
        evaluator = partial(job.evaluator, self._stories(), settled=there)
        batches, paid = BatchFolder(folder.batches), dict[str, Judge]()
        if self._batched:
            paid |= ask_in_batches(
                self._batched, lambda engine: evaluator(engine).run(), batches, self._budget, self.store, self._on_batch
            )
        judges = {**job.judges, **paid}
        for name, (row, said) in folder.unread().items():
            if name in judges:
                brake_of(judges[name]).begin_at(row, said)
        with (
            AnswerLog(folder.answers) as log,
            AnswerLog(folder.controls) as control_log,
            closing(SpendLog(folder.spent)) as spent,
        ):
            limits, retry = self._budget, self._retry
            engine = JudgingEngine(judges, self.store, budget=limits, paid=paid, retry=retry, on_reply=spent)
            logs = (AnswerWriter(log), AnswerWriter(control_log))
            brought = self._by_workers(engine, partial(evaluator, logs=logs), judges.keys() - paid.keys())
            self._examine(engine, paid)
            self._evaluator = evaluator(engine, settled=there | brought, logs=logs)
            self._evaluator.run(self._on_story)
            self._evaluator.kept -= len(brought)
            self._spent = spent.accounts()
        self.store.flush()
        batches.close()
        yield from ()

    def _examine(self, engine: JudgingEngine, paid: Collection[str]) -> None:
        """Have the judges take the entrance test that have to; one of a recording made without it takes none."""
        cheap = self._job.entrance == "cheap"
        if cheap and self._fleet is not None:
            return  # a judge that computes is loaded by workers, and not here
        for name in self._job.tested(engine):
            if name in paid or (cheap and name in self._entrances):
                continue
            try:
                found = take(engine, name)
            except JudgeError:
                if not (cheap and is_replayed()):
                    raise
            else:
                self._entrances |= {name: found} if found is not None else {}

    def _by_workers(
        self, engine: JudgingEngine, evaluator: Callable[[JudgingEngine], Evaluator], names: Collection[str]
    ) -> set[bytes]:
        """Have the workers ask those of these judges that compute; the marks of what they have answered."""
        job = self._job
        if self._fleet is None or job.config is None:
            return set()
        asked_for = dict(zip(job.judges, job.config.judges, strict=True))
        judges = {name: judge for name, judge in job.judges.items() if name in names}
        work = JudgedByWorkers(job.config, judges, asked_for, evaluator, engine, self.store)
        work.run(self._fleet, self.state.identity_sha256[:32], self.folder.path / "workers")
        return work.marks

    def _stories(self) -> list[StoryRecord]:
        """Return the stories as used: those in the folder, or newly prepared ones, which are then written there."""
        job, folder = self._job, self.folder
        if folder.stories.is_file():
            return read_records(folder.stories, StoryRecord)
        records = job.prepare(job.records)
        pair_questions(records, job.variants, job.settings.seed)
        if job.variants:
            write_records(folder.variants, job.variants)
        write_records(folder.stories, records)
        return records

    def conclude(self) -> ExperimentEnd[Scores]:
        """Put the logs in order, score them, and write every file."""
        job, folder, evaluator, settings = self._job, self.folder, self._evaluator, self._job.settings
        records, judges, invalid = evaluator.records, list(job.judges), evaluator.invalid
        place = row_order(records, [None, *(item.name for item in job.methods)], judges, settings, evaluator.beside)
        rows = folder.tidy(
            folder.answers, lambda row: None if row.story_id in invalid.get(row.method or "", {}) else place(row)
        )
        folder.tidy(folder.controls, row_order(records, settings.controls, judges, settings))
        pairs = PairScorer(records, job.variants, settings.seed)

        def answers() -> Iterator[Answer]:
            return pairs.others(iter_answers(folder.answers))

        rule = recording(open_rule(settings.matching, [folder.verdicts], decider=job.decider, keep=folder.verdicts))
        unsettled = settle(rule, records, chain(answers(), iter_answers(folder.controls)))
        scores = score(
            records,
            answers(),
            matching=rule,
            questions=settings.questions,
            resamples=settings.resamples,
            seed=settings.seed,
            invalid=invalid,
            reference=settings.reference,
        )
        if job.variants:
            scores = scores.model_copy(update={"contrastive": pairs.scores()})
        entrance = {name: found or self._entrances.get(name) for name, found in job.entrances(evaluator.engine).items()}
        scores = scores.with_notes([*unsettled, *job.caveats(entrance)]).with_empty(invalid)
        write_json(folder.scores, scores.model_dump(mode="json"))
        if isinstance(rule, RecordingRule):
            rule.write(folder.verdicts)
        left = list(question_ledger(records, answers, matching=rule, questions=settings.questions, invalid=invalid))
        write_records(folder.left, left)
        unusable = [reason for reasons in invalid.values() for reason in reasons.values()]
        outcome = outcome_of(folder.rows(), unusable=unusable, first=evaluator.engine.outcome.outcome().first)
        asked = {(record.story_id, item.question_id): item for record in records for item in settings.selected(record)}
        results = EvalResults(
            stories=len(records),
            questions=sum(len(settings.selected(record)) for record in records),
            rows=rows,
            statuses=outcome.statuses,
            failures=outcome.told,
            calls=evaluator.engine.accounts(),
            spent=self._spent,
            kept=evaluator.kept,
            budget=self._budget.limits(),
            leakage=evaluator.leakage.in_order(),
            invalid={name: dict(sorted(reasons.items())) for name, reasons in invalid.items()},
            left=summarise(left),
            controls=self._controls(asked, answers(), rule),
            confidence=confidence_table(asked, answers(), judges, rule),
            entrance=entrance,
        )
        self.state = self.state.model_copy(update={"results": results, "judges": job.specs()})
        status = outcome.status(stopped=self._budget.stopped, open_ones={*FAILED, "not_asked"})
        # A verdict that could not be had is asked for again by the same command, as an answer is.
        return ExperimentEnd(scores, outcome, "incomplete" if unsettled and status == "finished" else status)

    def _controls(
        self, asked: Mapping[tuple[str, str], Question], answers: Iterator[Answer], rule: Rule
    ) -> list[ControlResult]:
        job, settings = self._job, self._job.settings
        if not settings.controls:
            return []
        chooses = all(judge.always_chooses for judge in job.judges.values())
        return control_results(
            asked,
            answers,
            iter_answers(self.folder.controls),
            board=job.methods[0].name,
            matching=rule,
            controls=settings.controls,
            chance=settings.answers == "choice" or chooses,
        )
