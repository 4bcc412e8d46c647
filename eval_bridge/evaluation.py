"""`katha eval` from its inputs to its files: begin, go on after a kill or a larger budget, or find that all is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from katha import __version__
from katha.errors import OutputFolderError, UsageError
from katha.eval_bridge.answer_log import AnswerLog
from katha.eval_bridge.asking import Retry
from katha.eval_bridge.batch_folder import BatchFolder
from katha.eval_bridge.batching import OnBatch, ask_in_batches, batchable
from katha.eval_bridge.budget import Budget, Estimate, Metered, Tally, Weighed
from katha.eval_bridge.contrastive import pair_questions
from katha.eval_bridge.eval_finish import finish
from katha.eval_bridge.eval_folder import EvalFolder, Writer
from katha.eval_bridge.eval_job import EvalJob, EvalResult, name_judges
from katha.eval_bridge.evaluate import Evaluator, Leakage, OnStory
from katha.eval_bridge.instructions import prompt_hashes
from katha.eval_bridge.judges.api import ApiJudge
from katha.jsonio import canonical, read_json, write_bytes_atomic
from katha.schema import Answer, StoryRecord
from katha.store import Store

__all__ = ["EvalJob", "EvalResult", "estimate", "evaluate", "name_judges"]


def estimate(
    job: EvalJob, store: Store, on_story: OnStory | None = None, *, batch: bool = False
) -> tuple[dict[str, Estimate], Evaluator]:
    """What evaluating would ask of each judge beyond what the cache holds. Nothing is asked and nothing written.

    Raises:
        UsageError: with `batch`, where `evaluate` would refuse it, too.
    """
    share = {name: judge.batch_terms["price"] for name, judge in (_batchable(job) if batch else {}).items()}
    sums = {name: Estimate() for name in job.judges}
    tallies = {name: Tally() for name in job.judges}
    evaluator = Evaluator(
        records=job.prepare(job.records),
        methods=job.methods,
        judges={name: Weighed(judge, sums[name], share.get(name, 1.0)) for name, judge in job.judges.items()},
        settings=job.settings,
        store=store,
        log=_forget,
        control_log=_forget,
        tallies=tallies,
        pairs=pair_questions(job.records, job.variants, job.settings.seed),
        scanner=job.scanner,
    )
    evaluator.run(on_story)
    for name, tally in tallies.items():
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
    tallies = {name: Tally() for name in job.judges}
    waiting = _batchable(job) if batch else {}
    metered = {name: Metered(judge, limits, tallies[name]) for name, judge in job.judges.items()}
    with folder.claim():
        known, state = folder.read(), _state(job)
        done = _finished(known, state, folder)
        if done is not None:
            return done
        records = _begin(job, folder, known, state)
        evaluator = Evaluator(
            records=records,
            methods=job.methods,
            judges=metered,
            settings=job.settings,
            store=store,
            log=_forget,
            control_log=_forget,
            settled=folder.settled(),
            retry=retry,
            pairs=pair_questions(records, job.variants, job.settings.seed),
            scanner=job.scanner,
        )
        batches = BatchFolder(folder.batches)
        brought = ask_in_batches(waiting, evaluator, batches, limits, tallies, on_batch) if waiting else {}
        with AnswerLog(folder.answers) as log, AnswerLog(folder.controls) as control_log:
            evaluator = replace(
                evaluator,
                judges={**metered, **brought},
                log=Writer(log),
                control_log=Writer(control_log),
                tallies=tallies,
                leakage=Leakage(),
                kept=0,
            )
            evaluator.run(on_story)
        store.flush()
        batches.close()
        return finish(job, folder, evaluator, state, limits)


def _batchable(job: EvalJob) -> dict[str, ApiJudge]:
    """The judges that are asked in batches.

    Raises:
        UsageError: none can be, or a control asks the same question twice, which a batch answers once.
    """
    if "repeat" in job.settings.controls:
        raise UsageError("The control 'repeat' cannot be asked in a batch.", hint="Leave it out, or leave --batch out.")
    return batchable(job.judges)


def _finished(known: Mapping[str, Any] | None, state: Mapping[str, Any], folder: EvalFolder) -> EvalResult | None:
    """The result of this very evaluation, if it is whole already.

    Raises:
        OutputFolderError: the folder holds another evaluation.
    """
    if known is None:
        return None
    if known["identity"] != state["identity"]:
        raise OutputFolderError(
            f"{str(folder.path)!r} holds the evaluation of other stories, questions or prompts.",
            hint="Choose another --out.",
        )
    files = (folder.scores, folder.answers, folder.stories)
    same = known["status"] == "finished" and known["fingerprint"] == state["fingerprint"]
    if not same or not all(file.is_file() for file in files):
        return None
    return EvalResult(folder.path, dict(known), read_json(folder.scores), reused=True)


def _begin(
    job: EvalJob, folder: EvalFolder, known: Mapping[str, Any] | None, state: Mapping[str, Any]
) -> list[StoryRecord]:
    """Drop the answers of judges that have changed, say that work is under way, and give the stories as used."""
    before: dict[str, Any] = dict((known or {}).get("judges", {}))
    folder.forget(frozenset(name for name, spec in state["judges"].items() if before.get(name, spec) != spec))
    folder.write({**state, "status": "running", "judges": before | state["judges"]})
    return _prepared(job, folder, fresh=known is None)


def _state(job: EvalJob) -> dict[str, Any]:
    settings, identity = job.settings, job.identity()
    return {
        "format": 1,
        "katha": __version__,
        "identity": identity,
        "fingerprint": job.fingerprint(identity),
        "command": list(job.command),
        "config": {
            "answers": settings.answers,
            "variant": settings.variant,
            "matching": settings.matching,
            "questions": settings.questions,
            "controls": list(settings.controls),
            "seed": settings.seed,
            "resamples": settings.resamples,
            "evaluator": settings.evaluator,
        },
        "boards": {method.name: str(method.folder) for method in job.methods},
        "judges": job.specs(),
        "prompts": prompt_hashes(),
    }


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
