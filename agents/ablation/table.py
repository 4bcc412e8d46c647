"""`table.json` and `scores.json` of an ablation (Tables 55, 74 and 75): what each row reaches, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.agents.ablation.cases import repair_cases
from katha.agents.ablation.conclude import conclude
from katha.agents.ablation.folder import HELD_OUT, AblationFolder, protocol_of
from katha.agents.ablation.job import AblationJob
from katha.agents.ablation.tally import Tally
from katha.compass.suites import Row
from katha.eval_bridge import score
from katha.eval_bridge.paired import FEWEST_STORIES, compare, correct, row_numbers
from katha.eval_bridge.statistics import averages
from katha.jsonio import write_json
from katha.schema import MORAL_LABELS

__all__ = ["write_table"]

_TEXT, _IMAGE, _BOTH = range(3)
Floats = NDArray[np.float64]


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
    others = [row for row in suite.rows if row.name != suite.baseline]
    against = compare([_together(tally, pooled, row.name, suite.baseline) for row in others], job.resamples, job.seed)
    correct(against)
    deltas = {row.name: item for row, item in zip(others, against, strict=True)}
    rows = [_row(tally, row, numbers[row.name], deltas.get(row.name)) for row in suite.rows]
    comparisons = [
        {"a": row.name, "b": suite.baseline, "what": "all stories", **item}
        for row, item in zip(others, against, strict=True)
    ]
    comparisons += _pairs(tally, pooled)
    table: dict[str, Any] = {
        "suite": suite.name,
        "about": suite.about,
        "tables": list(suite.tables),
        "baseline": suite.baseline,
        "focus": suite.focus,
        "stories": len(tally.results),
        "judges": list(job.config.judges),
        "rows": rows,
        "comparisons": comparisons,
        "budget": _budget(tally),
        "cases": repair_cases(tally),
        "frozen": job.lock is not None,
        "lock": job.lock["file"] if job.lock else None,
        "scores": "scores.json" if any(protocol_of(row) == HELD_OUT for row in suite.rows) else None,
    }
    table["notes"] = _notes(tally, table)
    table["conclusion"] = conclude(table)
    return table


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
        "delta_stg": delta["difference"] if delta and told and seen else None,
        "ci95": delta["ci95"] if delta and told and seen else None,
        "p_corrected": delta["p_corrected"] if delta and told and seen else None,
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
        **_against_base(tally, row),
        **_moral(row),
        "steered": row.steered,
    }


def _moral(row: Row) -> dict[str, Any]:
    """The chance level of a row that scores moral labels alone (Table 65)."""
    if row.scoring.dimensions != ("moral",):
        return {}
    count = len(set(row.scoring.labels.values())) or len(MORAL_LABELS)
    return {"labels": count, "chance": 100.0 / count}


def _against_base(tally: Tally, row: Row) -> dict[str, Any]:
    """Shares of stories whose boards are worse, equal or better than the baseline's, by image recoverability on every
    scored question (no filter, so that a board cannot lose a question by failing it)."""
    base = tally.job.suite.row(tally.job.suite.baseline)
    if row.name == base.name:
        return {"harmed": None, "equal": None, "improved": None}
    ours, theirs = (averages(tally.counts(item, filtered=False).pooled())[:, _IMAGE] for item in (row, base))
    change = (ours - theirs)[~np.isnan(ours - theirs)]
    if not change.size:
        return {"harmed": None, "equal": None, "improved": None}
    worse, better = float((change < -1e-9).mean()), float((change > 1e-9).mean())
    return {"harmed": 100.0 * worse, "equal": 100.0 * (1.0 - worse - better), "improved": 100.0 * better}


def _pairs(tally: Tally, pooled: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """The suite's own pairs: over all stories, and over the boards that show equally many frames."""
    suite, job = tally.job.suite, tally.job
    whole = compare([_together(tally, pooled, a, b) for a, b in suite.compare], job.resamples, job.seed)
    even = compare([_equal_length(tally, a, b) for a, b in suite.compare], job.resamples, job.seed)
    correct(whole)
    correct(even)
    found = []
    for what, rows in (("all stories", whole), ("equal length", even)):
        found += [{"a": a, "b": b, "what": what, **row} for (a, b), row in zip(suite.compare, rows, strict=True)]
    return found


Pair = tuple[Floats, Floats, NDArray[np.bool_]]


def _together(tally: Tally, pooled: Mapping[str, Floats], a: str, b: str) -> Pair:
    """Pooled counts of two rows, and which stories have a board of both."""
    boards = [tally.lengths(tally.job.suite.row(name)) for name in (a, b)]
    both: NDArray[np.bool_] = np.all([lengths.any(axis=0) for lengths in boards], axis=0)
    return pooled[a], pooled[b], both


def _equal_length(tally: Tally, a: str, b: str) -> Pair:
    """Pooled counts of two rows from the boards of each story that show equally many frames."""
    first, second = (tally.job.suite.row(name) for name in (a, b))
    ours, theirs = tally.lengths(first), tally.lengths(second)
    equal = (ours[:, None] == theirs[None]) & (ours[:, None] > 0)
    same_a, same_b = equal.any(axis=1), equal.any(axis=0)
    return tally.counts(first).pooled(same_a), tally.counts(second).pooled(same_b), same_a.any(axis=0)


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


def _notes(tally: Tally, table: Mapping[str, Any]) -> list[str]:
    notes = [
        f"{table['baseline']}: what the others are compared with, so it has no difference of its own.",
        "delta_stg, ci95, p_corrected: STG minus the baseline's; percentile bootstrap over stories, the same resamples "
        f"for every row; Wilcoxon's p times the {max(1, len(table['rows']) - 1)} rows compared.",
        "harmed, equal, improved: shares of stories by image recoverability on the reporting questions, against the "
        "baseline.",
        "frames_naive, questions_naive: had every board been made and judged on its own; *_by_rows: every row.",
    ]
    if table["stories"] < FEWEST_STORIES:
        notes.append(_too_few(table["stories"]))
    for row in tally.job.suite.rows:
        left = tally.invalid(row)
        if left:
            shown = "; ".join(f"{story}: {reason}" for story, reason in list(left.items())[:5])
            notes.append(f"{row.name}: {len(left)} stories have no board and are left out ({shown}).")
        missing = [name for name in ("text", "image") if name not in row.scoring.conditions]
        if missing:
            notes.append(f"{row.name}: asks nothing under {' and '.join(missing)}, so what needs it is null.")
    notes += tally.unsettled
    if any(row["steered"] for row in table["rows"]):
        notes.append("Rows marked steered use steering questions or prompts: they are no held-out numbers.")
    return notes


def _too_few(stories: int) -> str:
    return f"Stories: {stories}, fewer than a bootstrap can carry ({FEWEST_STORIES}): intervals and p-values are null."
