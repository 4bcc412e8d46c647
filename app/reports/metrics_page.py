"""The page of `katha metrics`: every measure by method, what is missing and why, how measures go with STG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from katha.app.reports.page import Picture, pictures, worded, write_page
from katha.errors import KathaError
from katha.eval_bridge.bench.boards import BoardProblem
from katha.eval_bridge.metrics.illustration import POINTS
from katha.experiments.metrics.sources import BoardPlace, BoardSource
from katha.experiments.metrics.tables import read_board_values
from katha.experiments.runner import read_records
from katha.jsonio import read_json, read_record
from katha.schema.metrics import MetricColumn, MetricTable, MetricValue, Relation

_SIDE = 96.0
_MOST_COLUMNS = 8
_MOST_DOTS = 2_000
_FEWEST_RAYS = 3
_MOST_BOARDS = 24
_MOST_STORIES = 40
_CRITERIA = ("criterial", "share")
_FOUND = {points: mark for mark, points in POINTS.items()}


class Dots(NamedTuple):
    """One cell of the scatter matrix: the dots' places in a square of 96, and what it shows in words."""

    title: str
    places: list[tuple[str, str]]


class Polar(NamedTuple):
    """One method's columns as a star: the ends of its rays in a square of 200, the outline, and what it shows."""

    method: str
    ends: list[tuple[str, str]]
    outline: str
    alt: str


class CriterionRow(NamedTuple):
    """What one scene's pictures have to show, and what was found on each method's: satisfied, maybe or not."""

    scene: int
    criterion: str
    marks: dict[str, str]


class StoryCriteria(NamedTuple):
    """A story's criteria, scene by scene, and the methods whose pictures were marked."""

    name: str
    methods: list[str]
    rows: list[CriterionRow]


def write_metrics_report(out: Path, sources: Sequence[BoardSource]) -> Path:
    """Write `out/report.html` of a measurement.

    Raises:
        InputFileError: a file of the measurement is missing or broken.
    """
    state, table = read_json(out / "metrics.json"), read_record(out / "table.json", MetricTable)
    places = {(place.method, place.record.story_id): place for source in sources for place in source.boards}
    parted = table.disagreements[:_MOST_BOARDS]
    criteria = _criteria(out)
    return write_page(
        out / "report.html",
        "metrics.html.j2",
        table=table,
        criteria=criteria[:_MOST_STORIES],
        unshown=max(0, len(criteria) - _MOST_STORIES),
        relations=_by_column(table.relations),
        matrix=_matrix(out, table),
        polar=polar_charts(table),
        parted=[(item, _pictures(places.get((item.method, item.story_id)))) for item in parted],
        repeat=[(name, worded(name, state[name])) for name in ("command", "katha", "metrics", "judge", "mode")],
    )


def read_measures(out: Path) -> MetricTable | None:
    """Return the other papers' measures of the boards of a study in `out`; None where nobody asked for any."""
    path = out / "metrics" / "table.json"
    return read_record(path, MetricTable) if path.is_file() else None


def _criteria(out: Path) -> list[StoryCriteria]:
    """Return every story's criteria with each method's marks; none where no metric writes criteria."""
    stories: dict[str, dict[tuple[int, str], dict[str, str]]] = {}
    for value in read_records(out / "values.jsonl", MetricValue):
        if (value.metric, value.part) == _CRITERIA and value.item and value.value is not None:
            place = (value.scene or value.frame or 0, value.item)
            stories.setdefault(value.story_id or "", {}).setdefault(place, {})[value.method] = _FOUND[value.value]
    return [
        StoryCriteria(
            name,
            sorted({method for marks in rows.values() for method in marks}),
            [CriterionRow(scene, criterion, rows[scene, criterion]) for scene, criterion in sorted(rows)],
        )
        for name, rows in sorted(stories.items())
    ]


def _by_column(relations: Sequence[Relation]) -> dict[str, dict[str, Relation]]:
    found: dict[str, dict[str, Relation]] = {}
    for item in relations:
        found.setdefault(item.column, {})[item.block] = item
    return found


def _pictures(place: BoardPlace | None) -> list[Picture]:
    """Return a board's pictures; none where it cannot be read any more."""
    try:
        frames = place.read().frames if place is not None else ()
        return pictures(
            f"{place.method}, {place.record.story_id}" if place is not None else "",
            [(at, frame.kind, frame.path) for at, frame in enumerate(frames, 1)],
        )
    except (BoardProblem, KathaError):
        return []


def _matrix(out: Path, table: MetricTable) -> tuple[list[str], list[list[Dots]]]:
    """Return the names and cells of the scatter matrix: STG and the first columns that have values of boards."""
    values = read_board_values(out / "values.jsonl")
    named: dict[str, Mapping[tuple[str, str], float]] = {
        "STG": {(gap.method, gap.story_id): gap.filtered for gap in table.gaps if gap.filtered is not None}
    }
    named |= {column.name: values[column.name] for column in _shown(table.columns) if values.get(column.name)}
    kept = {name: found for name, found in named.items() if len(found) > 1}
    return list(kept), [[_dots(x, kept[x], y, kept[y]) for x in kept] for y in kept] if len(kept) > 1 else []


def relative_scores(table: MetricTable) -> tuple[list[str], dict[str, list[float | None]]]:
    """Return the columns in which one way is better, and each method's numbers there as shares of the best method's
    (ViStoryBench, Table S6); a number below zero is 0."""
    columns = [column for column in table.columns if column.better != "neither"]
    found: dict[str, list[float | None]] = {row.method: [] for row in table.rows}
    for column in columns:
        values = {row.method: row.cells[column.name].value for row in table.rows if column.name in row.cells}
        known = [max(0.0, value) for value in values.values() if value is not None]
        best = (max if column.better == "higher" else min)(known, default=0.0)
        for method, shares in found.items():
            value = values.get(method)
            part, whole = (value, best) if column.better == "higher" else (best, value)
            shares.append(max(0.0, part) / whole if part is not None and whole else None)
    return [column.name for column in columns], found


def polar_charts(table: MetricTable) -> tuple[list[str], list[Polar]]:
    """Return the columns and each method's star; none for fewer than three columns or two methods."""
    columns, found = relative_scores(table)
    if len(columns) < _FEWEST_RAYS or len(found) < 2:
        return columns, []
    return columns, [_star(method, columns, shares) for method, shares in found.items()]


def _star(method: str, columns: Sequence[str], shares: Sequence[float | None]) -> Polar:
    turns = [2 * math.pi * at / len(columns) for at in range(len(columns))]
    ends = [(f"{100 + 90 * math.sin(turn):.1f}", f"{100 - 90 * math.cos(turn):.1f}") for turn in turns]
    reach = [90 * min(1.0, share or 0.0) for share in shares]
    corners = [
        f"{100 + far * math.sin(turn):.1f},{100 - far * math.cos(turn):.1f}"
        for turn, far in zip(turns, reach, strict=True)
    ]
    told = ", ".join(
        f"{name} {'missing' if share is None else f'{share:.0%}'}" for name, share in zip(columns, shares, strict=True)
    )
    return Polar(method, ends, " ".join(corners), f"{method}: {told} of the best method's")


def _shown(columns: Sequence[MetricColumn]) -> list[MetricColumn]:
    return [column for column in columns if column.level != "set"][:_MOST_COLUMNS]


def _dots(x: str, first: Mapping[tuple[str, str], float], y: str, second: Mapping[tuple[str, str], float]) -> Dots:
    keys = sorted(set(first) & set(second))
    across, up = _scaled(list(first.values())), _scaled(list(second.values()))
    step = max(1, -(-len(keys) // _MOST_DOTS))
    places = [(f"{across(first[key]):.1f}", f"{_SIDE - up(second[key]):.1f}") for key in keys[::step]]
    return Dots(f"{y} over {x}, {len(keys)} boards", places)


class _Scale(NamedTuple):
    low: float
    high: float

    def __call__(self, value: float) -> float:
        """Return where a value lies in the square, with a margin."""
        span = self.high - self.low
        return _SIDE * (0.5 if span == 0 else 0.06 + 0.88 * (value - self.low) / span)


def _scaled(values: Sequence[float]) -> _Scale:
    return _Scale(min(values), max(values))
