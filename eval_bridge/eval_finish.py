"""The end of an evaluation: logs put in order, scored, and every file written; `eval.json` comes last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from katha.eval_bridge.answer_log import iter_answers
from katha.eval_bridge.budget import Budget
from katha.eval_bridge.confidence import confidence_table
from katha.eval_bridge.contrastive import PairScorer
from katha.eval_bridge.control_results import control_results
from katha.eval_bridge.eval_folder import EvalFolder
from katha.eval_bridge.eval_job import EvalJob, EvalResult
from katha.eval_bridge.evaluate import EvalSettings, Evaluator, row_order
from katha.eval_bridge.kept_verdicts import RecordingRule, recording
from katha.eval_bridge.ledger import question_ledger, summarise
from katha.eval_bridge.matching import Rule
from katha.eval_bridge.rules import open_rule, settle
from katha.eval_bridge.scores import score
from katha.jsonio import canonical, write_bytes_atomic, write_json
from katha.schema import Answer, Question, StoryRecord

__all__ = ["finish"]


def finish(job: EvalJob, folder: EvalFolder, evaluator: Evaluator, state: dict[str, Any], budget: Budget) -> EvalResult:
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
    scores["notes"] += unsettled
    if job.variants:
        scores["contrastive"] = pairs.scores(settings.resamples, settings.seed)
    _add_empty(scores, evaluator.invalid)
    write_json(folder.scores, scores)
    if isinstance(rule, RecordingRule):
        rule.write(folder.verdicts)
    left = list(
        question_ledger(records, answers, matching=rule, questions=settings.questions, invalid=evaluator.invalid)
    )
    write_bytes_atomic(folder.left, b"".join(canonical(item) + b"\n" for item in left))
    statuses = _statuses(iter_answers(folder.answers), iter_answers(folder.controls))
    asked_again = {"transport_failed", "budget_stopped", "not_asked"} & set(statuses)
    final = {
        **state,
        "status": "budget_stopped" if budget.stopped else "incomplete" if asked_again else "finished",
        "stories": len(records),
        "questions": sum(len(settings.selected(record)) for record in records),
        "rows": rows,
        "statuses": statuses,
        "calls": {name: tally.as_json() for name, tally in evaluator.tallies.items()},
        "kept": evaluator.kept,
        "budget": {"max_calls": budget.max_calls, "max_cost": budget.max_cost, "stopped": budget.stopped},
        "leakage": evaluator.leakage.as_json(),
        "invalid": {name: dict(sorted(reasons.items())) for name, reasons in evaluator.invalid.items()},
        "left": summarise(left),
        "controls": _controls(job, folder, records, answers(), rule),
        "confidence": confidence_table(_questions(settings, records), answers(), judges, rule),
    }
    folder.write(final)
    return EvalResult(folder.path, final, scores, reused=False)


def _controls(
    job: EvalJob, folder: EvalFolder, records: Sequence[StoryRecord], answers: Iterator[Answer], rule: Rule
) -> list[dict[str, Any]]:
    settings = job.settings
    if not settings.controls:
        return []
    chooses = all(getattr(judge, "always_chooses", False) for judge in job.judges.values())
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


def _statuses(*logs: Iterator[Answer]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for log in logs:
        for row in log:
            counts[row.status] = counts.get(row.status, 0) + 1
    return dict(sorted(counts.items()))


def _add_empty(scores: dict[str, Any], invalid: Mapping[str, Mapping[str, str]]) -> None:
    """A method without a single usable board is shown with its reasons instead of being left out."""
    for name, reasons in invalid.items():
        if name not in scores["methods"]:
            scores["methods"][name] = {"stories": 0, "invalid_stories": dict(reasons), "judges": {}}
            scores["notes"].append(f"{name}: no story has a board that can be judged.")
