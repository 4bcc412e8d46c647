"""Judge boards that are there: begin, go on after a kill or with a larger budget, score, and write every file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from katha.config import katha_version
from katha.errors import UsageError
from katha.eval_bridge.bench.boards import Boards
from katha.eval_bridge.judging.abilities import AsksInBatches, judge_abilities, judge_name
from katha.eval_bridge.judging.answers import FAILED, AnswerLog, Outcome, iter_answers, outcome_of
from katha.eval_bridge.judging.budget import Budget, Estimate, Weighed, require_prices
from katha.eval_bridge.judging.engine import JudgingEngine, Retry
from katha.eval_bridge.matching.match import Decider, Rule
from katha.eval_bridge.matching.rules import RecordingRule, open_rule, recording, settle
from katha.eval_bridge.packets.instructions import prompt_hashes
from katha.eval_bridge.packets.packets import WordScanner
from katha.eval_bridge.scoring.audit import question_ledger, summarise
from katha.eval_bridge.scoring.contrastive import PairScorer, confidence_table, pair_questions
from katha.eval_bridge.scoring.controls import control_results
from katha.eval_bridge.scoring.scores import ENSEMBLE, score
from katha.experiments.batches import BatchFolder, OnBatch, ask_in_batches, batchable
from katha.experiments.eval_folder import EvalFolder, EvalResults, EvalSettings, EvalState, Leakage, Writer
from katha.experiments.judging import Evaluator, OnStory, row_order
from katha.jsonio import canonical, digest, read_json, write_bytes_atomic, write_json
from katha.protocols import Judge
from katha.schema import Answer, ContrastiveVariant, Question, StoryRecord
from katha.schema.scores import ControlResult, Scores
from katha.store import Store

Prepare = Callable[[Sequence[StoryRecord]], list[StoryRecord]]


@dataclass(frozen=True)
class EvalJob:
    """What is to be evaluated. `records` are as given; `prepare` fills in questions and options.

    variants: contrastive variants whose pairs are asked, too. decider: the model behind `settings.matching`, where that
    rule has one. scanner: looks for words drawn into the pictures.
    """

    records: Sequence[StoryRecord]
    methods: Sequence[Boards]
    judges: Mapping[str, Judge]
    settings: EvalSettings
    prepare: Prepare = list
    decider: Decider | None = None
    variants: Sequence[ContrastiveVariant] = ()
    scanner: WordScanner | None = None
    command: tuple[str, ...] = ()

    def identity(self) -> str:
        """The hash of what a folder's answers are answers to: stories, form of asking, prompts."""
        hashed = hashlib.sha256()
        for record in self.records:
            hashed.update(canonical(record.model_dump(mode="json")))
        for variant in self.variants:
            hashed.update(canonical(variant.model_dump(mode="json")))
        settings = self.settings
        asked = (settings.answers, settings.variant, settings.questions, settings.seed, settings.evaluator)
        return digest([hashed.hexdigest(), asked, prompt_hashes()])

    def fingerprint(self, identity: str) -> str:
        """The hash of everything that decides a finished evaluation's files (pictures by size and time)."""
        boards = [
            [method.name, str(method.folder.resolve()), record.story_id, method.files(record.story_id)]
            for method in self.methods
            for record in self.records
        ]
        settings = self.settings
        decider = dict(self.decider.spec()) if self.decider is not None else None
        scored = [settings.matching, decider, settings.controls, settings.resamples, self.scanner is not None]
        return digest([identity, boards, self.specs(), scored, katha_version()])

    def specs(self) -> dict[str, Mapping[str, object]]:
        """Return the judges' specifications by name."""
        return {name: dict(judge.spec()) for name, judge in self.judges.items()}

    def state(self) -> EvalState:
        """Return what the evaluation's folder begins with."""
        identity = self.identity()
        return EvalState(
            format=1,
            katha=katha_version(),
            identity=identity,
            fingerprint=self.fingerprint(identity),
            command=list(self.command),
            config=self.settings,
            boards={method.name: str(method.folder) for method in self.methods},
            judges=self.specs(),
            prompts=prompt_hashes(),
        )


@dataclass(frozen=True)
class EvalResult:
    """Where the files are, what `eval.json` and `scores.json` hold, and whether all of it was there already."""

    out: Path
    state: EvalState
    scores: Scores
    outcome: Outcome
    reused: bool


def name_judges(judges: Sequence[tuple[str, Judge]]) -> dict[str, Judge]:
    """Judges by the name that their answers carry: their own, or, where two share one, as each was asked for.

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


def finish(job: EvalJob, folder: EvalFolder, evaluator: Evaluator, state: EvalState, budget: Budget) -> EvalResult:
    """Put the logs in order, score them, and write every file; `eval.json` comes last."""
    settings, records, judges = job.settings, evaluator.records, list(job.judges)
    names = [None, *(method.name for method in job.methods)]
    place = row_order(records, names, judges, settings, evaluator.pairs)

    def valid(row: Answer) -> tuple[int, ...] | None:
        return None if row.story_id in evaluator.invalid.get(row.method or "", {}) else place(row)

    rows = folder.tidy(folder.answers, valid)
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
        invalid=evaluator.invalid,
    )
    if job.variants:
        scores = scores.model_copy(update={"contrastive": pairs.scores(settings.resamples, settings.seed)})
    scores = scores.with_notes(unsettled).with_empty(evaluator.invalid)
    write_json(folder.scores, scores.model_dump(mode="json"))
    if isinstance(rule, RecordingRule):
        rule.write(folder.verdicts)
    left = list(
        question_ledger(records, answers, matching=rule, questions=settings.questions, invalid=evaluator.invalid)
    )
    write_bytes_atomic(folder.left, b"".join(canonical(item.model_dump(mode="json")) + b"\n" for item in left))
    unusable = [reason for reasons in evaluator.invalid.values() for reason in reasons.values()]
    outcome = outcome_of(folder.rows(), unusable=unusable, first=evaluator.engine.outcome.outcome().first)
    results = EvalResults(
        stories=len(records),
        questions=sum(len(settings.selected(record)) for record in records),
        rows=rows,
        statuses=outcome.statuses,
        failures=outcome.told,
        calls={name: tally.account() for name, tally in evaluator.engine.tallies.items()},
        kept=evaluator.kept,
        budget=budget.limits(),
        leakage=evaluator.leakage.in_order(),
        invalid={name: dict(sorted(reasons.items())) for name, reasons in evaluator.invalid.items()},
        left=summarise(left),
        controls=_controls(job, folder, records, answers(), rule),
        confidence=confidence_table(_questions(settings, records), answers(), judges, rule),
    )
    status = outcome.status(stopped=budget.stopped, open_ones={*FAILED, "not_asked"})
    final = state.model_copy(update={"results": results, "status": status})
    folder.finish(final, status)
    return EvalResult(folder.path, final, scores, outcome, reused=False)


def _controls(
    job: EvalJob, folder: EvalFolder, records: Sequence[StoryRecord], answers: Iterator[Answer], rule: Rule
) -> list[ControlResult]:
    settings = job.settings
    if not settings.controls:
        return []
    chooses = all(judge_abilities(judge).always_chooses for judge in job.judges.values())
    return control_results(
        _questions(settings, records),
        answers,
        iter_answers(folder.controls),
        board=job.methods[0].name,
        matching=rule,
        controls=settings.controls,
        chance=settings.answers == "choice" or chooses,
        seed=settings.seed,
    )


def _questions(settings: EvalSettings, records: Sequence[StoryRecord]) -> dict[tuple[str, str], Question]:
    return {(record.story_id, item.question_id): item for record in records for item in settings.selected(record)}


def estimate(
    job: EvalJob, store: Store, on_story: OnStory | None = None, *, batch: bool = False
) -> tuple[dict[str, Estimate], Evaluator]:
    """What evaluating would ask of each judge beyond what the cache holds. Nothing is asked and nothing written.

    Raises:
        UsageError: with `batch`, where `evaluate` would refuse it, too.
    """
    share = {name: judge.batch_terms["price"] for name, judge in (_batchable(job) if batch else {}).items()}
    sums = {name: Estimate() for name in job.judges}
    weighed = {name: Weighed(judge, sums[name], share.get(name, 1.0)) for name, judge in job.judges.items()}
    evaluator = Evaluator(
        records=job.prepare(job.records),
        methods=job.methods,
        engine=JudgingEngine(weighed, store),
        settings=job.settings,
        log=_forget,
        control_log=_forget,
        pairs=pair_questions(job.records, job.variants, job.settings.seed),
        scanner=job.scanner,
    )
    evaluator.run(on_story)
    for name, tally in evaluator.engine.tallies.items():
        sums[name].reused = tally.reused
    return sums, evaluator


def _forget(answer: Answer) -> None:
    """A dry run keeps nothing."""


def evaluate(
    job: EvalJob,
    out: Path,
    store: Store,
    *,
    budget: Budget | None = None,
    retry: Retry | None = None,
    on_story: OnStory | None = None,
    batch: bool = False,
    on_batch: OnBatch | None = None,
) -> EvalResult:
    """Evaluate into the folder `out`. The same call again asks nothing; after a kill it goes on where it stopped.

    With `batch`, judges that have a batch API are asked by it, and this waits until their batches have ended.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`).
        JudgeError, StoreError: the work failed; call again to go on.
    """
    folder = EvalFolder(out)
    limits = budget or Budget()
    waiting = _batchable(job) if batch else {}
    require_prices(job.judges, limits)
    with folder.claim():
        state = job.state()
        known = folder.resume(state)
        done = _finished(known, state, folder)
        if done is not None:
            return done
        records = _begin(job, folder, known, state)
        evaluator = Evaluator(
            records=records,
            methods=job.methods,
            engine=JudgingEngine({}, store),
            settings=job.settings,
            log=_forget,
            control_log=_forget,
            settled=folder.settled(),
            pairs=pair_questions(records, job.variants, job.settings.seed),
            scanner=job.scanner,
        )
        batches = BatchFolder(folder.batches)
        brought = ask_in_batches(waiting, evaluator, batches, limits, store, on_batch) if waiting else {}
        with AnswerLog(folder.answers) as log, AnswerLog(folder.controls) as control_log:
            evaluator = replace(
                evaluator,
                engine=JudgingEngine({**job.judges, **brought}, store, budget=limits, paid=brought, retry=retry),
                log=Writer(log),
                control_log=Writer(control_log),
                leakage=Leakage(),
                kept=0,
            )
            evaluator.run(on_story)
        store.flush()
        batches.close()
        return finish(job, folder, evaluator, state, limits)


def _batchable(job: EvalJob) -> dict[str, AsksInBatches]:
    """The judges that are asked in batches.

    Raises:
        UsageError: none can be, or a control asks the same question twice, which a batch answers once.
    """
    if "repeat" in job.settings.controls:
        raise UsageError("The control 'repeat' cannot be asked in a batch.", hint="Leave it out, or leave --batch out.")
    return batchable(job.judges)


def _finished(known: EvalState | None, state: EvalState, folder: EvalFolder) -> EvalResult | None:
    """Return the result of this very evaluation, if it is whole already."""
    if known is None or known.results is None or known.status != "finished":
        return None
    if known.fingerprint != state.fingerprint or folder.missing(("scores.json", "answers.jsonl", "stories.jsonl")):
        return None
    outcome = Outcome.of_finished(known.results.statuses, known.results.failures)
    return EvalResult(folder.path, known, Scores.model_validate(read_json(folder.scores)), outcome, reused=True)


def _begin(job: EvalJob, folder: EvalFolder, known: EvalState | None, state: EvalState) -> list[StoryRecord]:
    """Drop the answers of judges that have changed, say that work is under way, and give the stories as used."""
    before = known.judges if known is not None else {}
    folder.forget(frozenset(name for name, spec in state.judges.items() if before.get(name, spec) != spec))
    folder.write(state.model_copy(update={"judges": {**before, **state.judges}}))
    return _prepared(job, folder, fresh=known is None)


def _prepared(job: EvalJob, folder: EvalFolder, *, fresh: bool) -> list[StoryRecord]:
    """The stories as used: those in the folder, or newly prepared ones, which are then written there."""
    if not fresh and folder.stories.is_file():
        lines = folder.stories.read_bytes().splitlines()
        return [StoryRecord.model_validate_json(line) for line in lines]
    records = job.prepare(job.records)
    pair_questions(records, job.variants, job.settings.seed)
    if job.variants:
        twins = [canonical(variant.model_dump(mode="json")) + b"\n" for variant in job.variants]
        write_bytes_atomic(folder.variants, b"".join(twins))
    lines = [canonical(record.model_dump(mode="json")) + b"\n" for record in records]
    write_bytes_atomic(folder.stories, b"".join(lines))
    return records
