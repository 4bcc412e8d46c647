"""`table.json` and `scores.json` of an ablation (Tables 55, 74 and 75): what each row reaches, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from katha.agents.ablation.cases import repair_cases
from katha.agents.ablation.comparing import compared
from katha.agents.ablation.conclude import conclude
from katha.agents.ablation.folder import HELD_OUT, AblationFolder, protocol_of
from katha.agents.ablation.job import AblationJob
from katha.agents.ablation.notes import notes_of
from katha.agents.ablation.people import human_columns
from katha.agents.ablation.tally import Tally
from katha.compass.suites import Row
from katha.eval_bridge import score
from katha.eval_bridge.normal import normalise
from katha.eval_bridge.paired import row_numbers
from katha.eval_bridge.statistics import averages
from katha.jsonio import write_json
from katha.schema import MORAL_LABELS

__all__ = ["write_table"]

_TEXT, _IMAGE, _BOTH = range(3)
_UNCHANGED: dict[str, Any] = {"harmed": None, "equal": None, "improved": None}
"""Nothing to count: the baseline itself, its boards measured otherwise, or no story with both."""


def write_table(job: AblationJob, folder: AblationFolder) -> dict[str, Any]:
    """Make `stories.jsonl`, `answers.jsonl`, `scores.json` and, last, `table.json` from the stories' files."""
    tally = Tally(job, folder)
    folder.gather(result.story_id for result in tally.results)
    held_out = [row for row in job.suite.rows if protocol_of(row) == HELD_OUT]
    if held_out:
        pools = {row.name: tally.methods(row) for row in held_out}
        scores = score(
            tally.stories,
            tally.rows(HELD_OUT),
            matching=folder.rule(job.config.matching),
            resamples=job.resamples,
            seed=job.seed,
            frozen=job.lock is not None,
            invalid={row.name: tally.invalid(row) for row in held_out},
            pooled=pools,
        )
        write_json(folder.scores, scores)
    table = build_table(tally)
    write_json(folder.table, table)
    return table


def build_table(tally: Tally) -> dict[str, Any]:
    """The rows with their paired differences, the comparisons at equal length, costs, cases and the conclusion."""
    job = tally.job
    suite = job.suite
    counts = {row.name: tally.counts(row) for row in suite.rows}
    pooled = {name: item.pooled() for name, item in counts.items()}
    numbers = row_numbers(pooled, job.resamples, job.seed)
    others = [(row.name, suite.baseline) for row in suite.rows if row.name != suite.baseline]
    against = compared(tally, pooled, others, "all stories")
    deltas = {item["a"]: item for item in against}
    rows = [_row(tally, row, numbers[row.name], deltas.get(row.name)) for row in suite.rows]
    pairs = [compared(tally, pooled, suite.compare, what) for what in ("all stories", "equal length")]
    table: dict[str, Any] = {
        "suite": suite.name,
        "about": suite.about,
        "tables": list(suite.tables),
        "baseline": suite.baseline,
        "focus": suite.focus,
        "stories": len(tally.results),
        "judges": list(job.config.judges),
        "rows": _every_row(job, rows),
        "comparisons": [*against, *pairs[0], *pairs[1]],
        "budget": _budget(tally),
        "cases": repair_cases(tally),
        "human": job.people.mark() if job.people is not None else None,
        "frozen": job.lock is not None,
        "lock": job.lock["file"] if job.lock else None,
        "scores": "scores.json" if any(protocol_of(row) == HELD_OUT for row in suite.rows) else None,
    }
    table["notes"] = notes_of(tally, table)
    table["conclusion"] = conclude(table)
    return table


def _every_row(job: AblationJob, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The suite's rows in its order; one that was not run has its reason and no number."""
    made = {row["mode"]: row for row in rows}
    blank = dict.fromkeys(rows[0]) | {"invalid_stories": {}}
    return [
        made.get(row.name)
        or blank | {"mode": row.name, "about": row.build_mode().about, "steered": row.steered, "not_run": reason}
        for row in job.whole.rows
        for reason in [job.not_run.get(row.name)]
    ]


def _row(tally: Tally, row: Row, numbers: Mapping[str, Any], delta: Mapping[str, Any] | None) -> dict[str, Any]:
    """One line of the table. `delta_stg` and `ci95` are against the baseline, on the stories with a board of both."""
    counts, scoring = tally.counts(row), row.scoring
    boards = [board for _, board in tally.boards(row)]
    methods = max(1, len(tally.methods(row)))
    frames, questions = tally.needs([row])
    told, seen = "text" in scoring.conditions, "image" in scoring.conditions
    inserted = sum(any(frame.kind == "bridge" for frame in board.board.frames) for board in boards)
    return {
        "mode": row.name,
        "about": row.build_mode().about,
        "text": numbers["text"] if told else None,
        "image": numbers["image"] if seen else None,
        "stg": numbers["stg"] if told and seen else None,
        "delta_stg": delta["difference"] if delta else None,
        "ci95": delta["ci95"] if delta else None,
        "p_corrected": delta["p_corrected"] if delta else None,
        "image_ci95": numbers["image_ci95"] if seen else None,
        "stg_ci95": numbers["stg_ci95"] if told and seen else None,
        "stories": len({place for place, _ in tally.boards(row)}),
        "invalid_stories": tally.invalid(row),
        "valid": counts.valid,
        "scored": counts.scored,
        "valid_rate": 100.0 * counts.valid / counts.scored if counts.scored else None,
        "ambiguity_leakage": 100.0 * counts.ambiguous / counts.valid if counts.valid else None,
        "frames": float(np.mean([len(board.board.frames) for board in boards])) if boards else None,
        "frames_rendered": frames,
        "questions_asked": questions,
        "accepted_bridges": inserted / methods,
        "copy_rate": 100.0 * float(np.mean([board.score.copy_penalty for board in boards])) if boards else None,
        "boards_per_story": methods,
        **(_better_or_worse(tally, row) if delta and delta["same"] is None else _UNCHANGED),
        **_moral(tally, row),
        "human": human_columns(job.people, tally, row) if (job := tally.job).people is not None else None,
        "steered": row.steered,
        "not_run": None,
    }


def _moral(tally: Tally, row: Row) -> dict[str, Any]:
    """How many labels a row that scores moral labels alone tells apart (Table 65), and how often a guess is right: one
    in so many, or as the options that were offered make it."""
    if row.scoring.dimensions != ("moral",):
        return {}
    count, labels = len(set(row.scoring.labels.values())) or len(MORAL_LABELS), row.scoring.labels
    offered = tally.moral_options(row) if tally.job.config.answers == "choice" else []
    rates = [np.mean([_coarse(item, labels) == _coarse(gold, labels) for item in options]) for gold, options in offered]
    return {"labels": count, "chance": 100.0 * float(np.mean(rates)) if rates else 100.0 / count}


def _coarse(label: str, labels: Mapping[str, str]) -> str:
    return labels.get(normalise(label), normalise(label))


def _better_or_worse(tally: Tally, row: Row) -> dict[str, Any]:
    """Shares of stories whose boards are worse, equal or better than the baseline's, by image recoverability on every
    scored question (no filter, so that a board cannot lose a question by failing it)."""
    base = tally.job.suite.row(tally.job.suite.baseline)
    ours, theirs = (averages(tally.counts(item, filtered=False).pooled())[:, _IMAGE] for item in (row, base))
    change = (ours - theirs)[~np.isnan(ours - theirs)]
    if not change.size:
        return _UNCHANGED
    worse, better = float((change < -1e-9).mean()), float((change > 1e-9).mean())
    return {"harmed": 100.0 * worse, "equal": 100.0 * (1.0 - worse - better), "improved": 100.0 * better}


def _budget(tally: Tally) -> dict[str, Any]:
    """What the whole suite draws and asks, beside what its rows would one by one (Table 74)."""
    rows = tally.job.suite.rows
    alone = [tally.needs([row]) for row in rows]
    boards = [board for result in tally.results for board in result.boards]
    frames, questions = tally.needs(rows)
    return {
        "frames_distinct": frames,
        "frames_by_rows": sum(item[0] for item in alone),
        "frames_naive": sum(len(board.frames) for board in boards),
        "questions_distinct": questions,
        "questions_by_rows": sum(item[1] for item in alone),
        "questions_naive": sum(len(board.questions) for board in boards),
    }
