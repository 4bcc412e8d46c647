"""From values to tables: each method's number in each column, what is null and why; as JSON, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.metrics.base import AnyMetric, mode_of
from katha.eval_bridge.scoring import intervals
from katha.experiments.metrics.choices import choices
from katha.experiments.metrics.relation import board_gaps, disagreements, rank_table, relations
from katha.experiments.metrics.sources import BoardSource
from katha.experiments.runner import read_records
from katha.jsonio import canonical, write_bytes_atomic, write_json
from katha.schema.metrics import (
    MetricCell,
    MetricColumn,
    MetricMode,
    MetricRow,
    MetricTable,
    MetricValue,
    NullCount,
)

Floats = NDArray[np.float64]
BoardValues = dict[tuple[str, str], tuple[float, int]]
"""A column's value and weight by method and story."""
_LATEX = str.maketrans({char: f"\\{char}" for char in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\^{}"})


def make_table(
    metrics: Mapping[str, AnyMetric],
    mode: MetricMode | None,
    sources: Sequence[BoardSource],
    values: Sequence[MetricValue],
) -> MetricTable:
    """Return the table of all methods and columns, and how the columns go with STG where judges have answered."""
    columns = list(_columns(metrics, mode))
    methods = list(dict.fromkeys(board.method for source in sources for board in source.boards))
    counts = Counter(board.method for source in sources for board in source.boards)
    grouped = _grouped(values)
    by_column = {column.name: _board_values(grouped.get(column.name, [])) for column in columns}
    rows = [
        MetricRow(
            method=method,
            boards=counts[method],
            cells={
                column.name: _cell(column, method, grouped.get(column.name, []), by_column[column.name])
                for column in columns
            },
        )
        for method in methods
    ]
    gaps = [gap for source in sources for gap in board_gaps(source)]
    plain = {name: {key: value for key, (value, _) in found.items()} for name, found in by_column.items()}
    held = [column for column in columns if column.level != "set"]
    return MetricTable(
        columns=columns,
        rows=rows,
        nulls=_nulls(values),
        choices=choices(columns, methods, grouped),
        gaps=gaps,
        relations=relations([column.name for column in held], plain, gaps),
        among=rank_table([column.name for column in held], plain),
        disagreements=disagreements(held, plain, gaps),
        notes=_notes(columns, gaps),
        intervals=intervals.METHOD,
    )


def _columns(metrics: Mapping[str, AnyMetric], mode: MetricMode | None) -> Iterator[MetricColumn]:
    for metric in metrics.values():
        card = metric.card
        for part in card.parts:
            yield MetricColumn(
                name=f"{card.name}/{part.name}",
                metric=card.name,
                part=part.name,
                mode=mode_of(card, mode),
                title=card.title if len(card.parts) == 1 else f"{card.title}: {part.name}",
                about=part.about,
                level=card.level,
                average=part.average,
                better=part.better,
                choice=part.choice,
            )


def _grouped(values: Iterable[MetricValue]) -> dict[str, list[MetricValue]]:
    found: dict[str, list[MetricValue]] = {}
    for value in values:
        found.setdefault(f"{value.metric}/{value.part}", []).append(value)
    return found


def _board_values(values: Iterable[MetricValue]) -> BoardValues:
    """Return each board's value: the mean of its frames' where there are several; items' own are left out."""
    frames: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for value in values:
        if value.value is not None and value.story_id is not None and not value.item:
            frames.setdefault((value.method, value.story_id), []).append((value.value, value.n))
    return {
        key: (math.fsum(number for number, _ in found) / len(found), sum(weight for _, weight in found))
        for key, found in frames.items()
    }


def _cell(
    column: MetricColumn,
    method: str,
    values: Sequence[MetricValue],
    boards: BoardValues,
) -> MetricCell:
    nulls = sum(value.method == method and value.value is None for value in values)
    if column.average == "set":
        own = [value.value for value in values if value.method == method and value.value is not None]
        return MetricCell(value=own[0] if own else None, nulls=nulls)
    found = sorted((story, *pair) for (name, story), pair in boards.items() if name == method)
    if not found:
        return MetricCell(nulls=nulls)
    numbers = np.array([number for _, number, _ in found])
    weights = np.array([float(weight) if column.average == "micro" else 1.0 for _, _, weight in found])
    return MetricCell(
        value=float(numbers @ weights / weights.sum()),
        ci95=_interval(numbers, weights),
        boards=len(found),
        nulls=nulls,
    )


def _interval(numbers: Floats, weights: Floats) -> tuple[float, float] | None:
    """Return the 95% interval of the weighted mean over stories; None with fewer than six."""
    columns = np.column_stack([numbers * weights, weights])
    return intervals.mean(
        float(numbers @ weights / weights.sum()), intervals.left_out(columns, lambda sums: sums[:, 0] / sums[:, 1])
    )


def _nulls(values: Iterable[MetricValue]) -> list[NullCount]:
    counts = Counter((f"{value.metric}/{value.part}", value.reason) for value in values if value.reason is not None)
    return [
        NullCount(column=column, reason=reason or "", count=count)
        for (column, reason), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0][1] or ""))
    ]


def _notes(columns: Sequence[MetricColumn], gaps: Sequence[object]) -> list[str]:
    modes = sorted({f"{column.metric} ({column.mode})" for column in columns})
    told = [f"Modes: {', '.join(modes)}."]
    if not gaps:
        told.append("No judge has answered about these boards, so there is no STG beside them: give an evaluation.")
    return told


def write_files(folder: Path, table: MetricTable, values: Sequence[MetricValue]) -> None:
    """Write `values.jsonl`, `values.csv`, `table.json`, `table.csv` and `table.tex`."""
    lines = b"".join(canonical(value.model_dump(mode="json")) + b"\n" for value in values)
    write_bytes_atomic(folder / "values.jsonl", lines)
    fields = ("metric", "part", "method", "story_id", "frame", "scene", "item", "value", "n", "reason")
    rows = [[getattr(value, name) for name in fields] for value in values]
    write_bytes_atomic(folder / "values.csv", _csv([list(fields), *rows]))
    write_json(folder / "table.json", table.model_dump(mode="json"))
    write_bytes_atomic(folder / "table.csv", _csv(list(_plain_rows(table))))
    write_bytes_atomic(folder / "table.tex", latex(table).encode("utf-8"))


def read_board_values(path: Path) -> dict[str, dict[tuple[str, str], float]]:
    """Return each column's values of boards, by method and story, from `values.jsonl`."""
    grouped = _grouped(read_records(path, MetricValue))
    return {name: {key: value for key, (value, _) in _board_values(found).items()} for name, found in grouped.items()}


def _plain_rows(table: MetricTable) -> Iterator[list[object]]:
    yield ["method", "column", "value", "low", "high", "boards", "nulls"]
    for row in table.rows:
        for name, cell in row.cells.items():
            low, high = cell.ci95 or (None, None)
            yield [row.method, name, cell.value, low, high, cell.boards, cell.nulls]


def _csv(rows: Sequence[Sequence[object]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(["" if item is None else item for item in row] for row in rows)
    return out.getvalue().encode("utf-8")


def latex(table: MetricTable) -> str:
    """Return the table in LaTeX (booktabs): a row a column of numbers, a column a method, the best one bold."""
    methods = [row.method for row in table.rows]
    lines = [rf"\begin{{tabular}}{{l{'r' * len(methods)}}}", r"\toprule"]
    lines += [" & ".join(["Measure", *(name.translate(_LATEX) for name in methods)]) + r" \\", r"\midrule"]
    for column in table.columns:
        cells = [row.cells[column.name].value for row in table.rows]
        known = [value for value in cells if value is not None]
        best = {"higher": max, "lower": min}.get(column.better)
        top = best(known) if best is not None and len(known) > 1 else None
        shown = ["--" if value is None else f"{value:.3f}" for value in cells]
        bold = [
            rf"\textbf{{{text}}}" if top is not None and value == top else text
            for text, value in zip(shown, cells, strict=True)
        ]
        lines.append(" & ".join([column.title.translate(_LATEX), *bold]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
