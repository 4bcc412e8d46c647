"""Drawings of numbers: bars on a shared axis, calibration plots and curves of a setting (SVG)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import NamedTuple

from katha.schema import Condition
from katha.schema.scores import ConfidenceRow
from katha.schema.tables import CurvePoint

_STATED = {"low": 1 / 6, "medium": 1 / 2, "high": 5 / 6}
"""A confidence in words is the middle of its third of the scale, as for people's files."""
_NAMES = {"text": "from-text", "image": "from-image", "text+image": "from-both"}
_LEFT, _BOTTOM, _SIDE = 22.0, 108.0, 100.0
_SMALLEST, _LARGEST = 1.6, 4.6
_WIDTH, _HEIGHT, _MARGIN, _FOOT = 320.0, 150.0, 44.0, 26.0


class Bar(NamedTuple):
    """A bar from zero to a value with its interval, in per cent of the axis."""

    start: float
    end: float
    low: float
    high: float


class Axis(NamedTuple):
    """One axis for the bars of a table, with zero on it."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float], low: float, high: float) -> Axis:
        """Return the axis that holds `values` and runs at least from `low` to `high`."""
        known = list(values)
        return cls(min([low, *known]), max([high, *known]))

    def place(self, value: float) -> float:
        """Return where a value lies, in per cent of the axis."""
        return 100.0 * (value - self.low) / (self.high - self.low)

    def bar(self, value: float | None, ends: Sequence[float] | None) -> Bar | None:
        """Return the bar of a value; None where there is no number."""
        if value is None:
            return None
        low, high = ends or (value, value)
        return Bar(*(self.place(item) for item in (min(0.0, value), max(0.0, value), low, high)))


class Dot(NamedTuple):
    """Stated confidence against the share right: larger for more answers."""

    x: str
    y: str
    r: str
    title: str


class Series(NamedTuple):
    """One condition's dots, and the expected calibration error in points (Eq. 48): each stated confidence is a bin."""

    condition: Condition
    name: str
    error: str
    dots: list[Dot]


class CalibrationPlot(NamedTuple):
    """One judge's plot, and what it shows in words."""

    judge: str
    series: list[Series]
    label: str


def calibration_plots(rows: Sequence[ConfidenceRow]) -> list[CalibrationPlot]:
    """Return one plot a judge with any answer that says how sure it is; a series for each condition."""
    judges: dict[str, dict[Condition, list[ConfidenceRow]]] = {}
    for row in rows:
        if row.n:
            judges.setdefault(row.judge, {}).setdefault(row.condition, []).append(row)
    plots = []
    for judge, conditions in judges.items():
        most = max(row.n for levels in conditions.values() for row in levels)
        series = [_series(condition, levels, most) for condition, levels in conditions.items()]
        errors = ", ".join(f"{item.condition} {item.error}" for item in series)
        plots.append(CalibrationPlot(judge, series, f"Calibration of {judge}; error in points: {errors}"))
    return plots


def _series(condition: Condition, rows: Sequence[ConfidenceRow], most: int) -> Series:
    dots, off, total = [], 0.0, sum(row.n for row in rows)
    for row in rows:
        right, stated = row.right or 0.0, _STATED[row.confidence]
        off += row.n * abs(right - 100 * stated)
        radius = _SMALLEST + (_LARGEST - _SMALLEST) * sqrt(row.n / most)
        title = f"{row.condition}, {row.confidence}: {right:.1f}% of {row.n:,} right"
        x, y = _LEFT + _SIDE * stated, _BOTTOM - _SIDE * right / 100
        dots.append(Dot(f"{x:.1f}", f"{y:.1f}", f"{radius:.1f}", title))
    return Series(condition, _NAMES[condition], f"{off / total:.1f}", dots)


def confidence_lines(rows: Sequence[ConfidenceRow]) -> dict[str, list[ConfidenceRow]]:
    """Return the levels of each judge and condition with any answer that says how sure it is."""
    lines: dict[str, list[ConfidenceRow]] = {}
    for row in rows:
        lines.setdefault(f"{row.judge}, {row.condition}", []).append(row)
    return {name: levels for name, levels in lines.items() if any(row.n for row in levels)}


class CurveMark(NamedTuple):
    """One value that was tried: its place, and the ends of its interval."""

    point: CurvePoint
    x: float
    y: float
    ends: list[float]


class Curve(NamedTuple):
    """STG along one setting of the compass: a place for each value tried, STG upward, the interval as a bar."""

    marks: list[CurveMark]
    low: float
    high: float


def curve(tried: Sequence[CurvePoint]) -> Curve:
    """Return the chart of one setting."""
    known = [(point, point.stg) for point in tried if point.stg is not None]
    ends = [end for point, stg in known for end in point.ci95 or (stg,)]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    high = high if high > low else low + 1.0
    step = (_WIDTH - _MARGIN - 12.0) / max(1, len(known))

    def up(value: float) -> float:
        return round(8.0 + (_HEIGHT - _FOOT - 16.0) * (high - value) / (high - low), 1)

    marks = []
    for place, (point, stg) in enumerate(known):
        x, span = round(_MARGIN + step * (place + 0.5), 1), [up(end) for end in point.ci95 or (stg, stg)]
        marks.append(CurveMark(point, x, up(stg), span))
    return Curve(marks, low, high)
