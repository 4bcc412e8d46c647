"""The notes of an ablation's table: what each number means, and why one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katha.agents.ablation.tally import Tally
from katha.eval_bridge.paired import FEWEST_STORIES

__all__ = ["notes_of"]


def notes_of(tally: Tally, table: Mapping[str, Any]) -> list[str]:
    """What a reader of `table` has to know to read it: one sentence or two each."""
    notes = [
        f"{table['baseline']}: what the others are compared with, so it has no difference of its own.",
        "delta_stg, ci95, p_corrected: STG minus the baseline's; percentile bootstrap over stories, the same resamples "
        "for every row; Wilcoxon's p times the number of rows compared (`family`).",
        "harmed, equal, improved: shares of stories by image recoverability on the reporting questions, against the "
        "baseline; null where a row measures the baseline's own boards.",
        "frames_naive, questions_naive: had every board been made and judged on its own; *_by_rows: every row.",
    ]
    notes += [f"{name}: not run, so it has no number. {reason}" for name, reason in tally.job.not_run.items()]
    if tally.job.suite.baseline != tally.job.whole.baseline:
        notes.append(f"{tally.job.whole.baseline} was not run, so {table['baseline']} is the baseline instead.")
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
    notes += _cannot_differ(tally)
    notes.append(_human(tally))
    notes += tally.unsettled
    if any(row["steered"] for row in table["rows"]):
        notes.append("Rows marked steered use steering questions or prompts: they are no held-out numbers.")
    return notes


def _human(tally: Tally) -> str:
    people = tally.job.people
    if people is None:
        return (
            "human: no judgments by people were given (--human FILE), so what needs them is null: human recoverability "
            "and STG, HMR@1 and HMR@3, ratings, dimension localization, correlation and agreement with people."
        )
    unused = people.unused(tally.names)
    lost = f"; {unused:,} are about other stories or boards and are left out" if unused else ""
    return f"human: {len(people.rows):,} judgments of {people.path.name}{lost}. What nobody judged is null."


def _cannot_differ(tally: Tally) -> list[str]:
    """What makes rows equal whatever the boards are."""
    config, scorings = tally.job.config, [row.scoring for row in tally.job.suite.rows]
    notes = []
    if config.answers == "choice" and len({(item.matching, item.accepted) for item in scorings}) > 1:
        notes.append("Answers are options, which every matching rule reads alike; ask with --answers free to compare.")
    if len(config.judges) == 1 and len({item.judge for item in scorings}) > 1:
        notes.append(f"There is one judge, {config.judges[0]}, so the ensemble is that judge; give several --judge.")
    return notes


def _too_few(stories: int) -> str:
    return f"Stories: {stories}, fewer than a bootstrap can carry ({FEWEST_STORIES}): intervals and p-values are null."
