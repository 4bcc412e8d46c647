"""`katha eval --table N`: the evaluations that a table's rows need, one after the other, and the table itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katha.app.measuring import OnProgress
from katha.app.reports.data_tables import evaluator_data_table
from katha.app.studies import Stories, evaluate, read_records
from katha.config import Settings
from katha.errors import UsageError
from katha.eval_bridge.judging.answers import Outcome
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.people.judgments import read_judgments
from katha.experiments.cluster.progress import OnWorkers
from katha.experiments.offline.evaluator_tables import evaluator_table, load_table
from katha.experiments.offline.robustness import read_study
from katha.jsonio import write_json
from katha.schema.robustness import EvaluatorTable
from katha.tables import DataTable, write_tables


@dataclass(frozen=True)
class EvaluatedTable:
    """The table's rows, as records and as a table to show; the evaluations' outcomes by evaluator."""

    out: Path
    rows: EvaluatorTable
    table: DataTable
    outcomes: Mapping[str, Outcome]


def evaluate_table(
    stories: Stories,
    boards: str | Path | Sequence[str],
    out: Path | str,
    settings: Settings | str | None = None,
    *,
    table: int,
    human: Path | None = None,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
    on_workers: OnWorkers | None = None,
    **changes: Any,
) -> EvaluatedTable:
    """Evaluate boards as the rows of a table ask, into `out/EVALUATOR` (`out/EVALUATOR-VARIANT` where they vary the
    prompt), and write `table-N.json`, CSV and LaTeX.

    The same call again asks nothing; after a kill, or with a larger budget, it goes on. With `workers` or `cluster`
    among `changes` each evaluation is judged by them, and `on_workers` hears how that stands.

    Raises:
        UsageError: there is no such table, or an evaluator, stories, boards or a setting are wrong.
    """
    spec, place = load_table(table), Path(out)
    if changes.pop("evaluator", None) not in (None, "kathatrace"):
        raise UsageError(f"Table {table} chooses its evaluators.", hint="Leave --evaluator out.")
    if spec.varies and changes.get("variant") is not None:
        raise UsageError(f"Table {table} chooses its prompts.", hint="Leave --variant out.")
    spec = spec.asked_of(read_records(stories))
    judgments = list(read_judgments(human)) if human is not None else []
    outcomes = {}
    for name, asked in spec.studies.items():
        own = changes if asked["evaluator"] == "kathatrace" else {**changes, "variants": None, "controls": None}
        result = evaluate(
            stories,
            boards,
            place / name,
            settings,
            budget=budget,
            on_progress=on_progress,
            on_workers=on_workers,
            **{**own, **asked},
        )
        outcomes[name] = result.outcome
    studies = {name: read_study(place / name) for name in spec.studies}
    rows = evaluator_table(table, studies, judgments)
    made = evaluator_data_table(rows)
    write_json(place / f"table-{table}.json", rows.model_dump(mode="json"))
    write_tables(place, [made])
    return EvaluatedTable(place, rows, made, outcomes)
