"""Drawings of numbers: bars on a shared axis, cells shaded by loss, calibration plots and curves of a setting (SVG)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import NamedTuple

from katha.app.reports.page import change, interval
from katha.schema import Condition
from katha.schema.scores import ConfidenceRow
from katha.schema.tables import CurvePoint

# ---
# Bars of STG and shaded cells.


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


class Shade(NamedTuple):
    """How a cell of a heat table is coloured: `loss`, `gain` or `none`, and how deep in per cent."""

    tone: str
    depth: float


def shade(gap: float | None) -> Shade:
    """Return the colour of a gap: what is lost in the images is red, what they tell more is green."""
    if gap is None:
        return Shade("none", 0.0)
    return Shade("loss" if gap > 0 else "gain", min(60.0, abs(gap) * 0.6))


# ---
# Stated confidence against the share right.

_STATED = {"low": 1 / 6, "medium": 1 / 2, "high": 5 / 6}
"""A confidence in words is the middle of its third of the scale, as for people's files."""
_NAMES = {"text": "from-text", "image": "from-image", "text+image": "from-both"}
_LEFT, _BOTTOM, _SIDE = 22.0, 108.0, 100.0
_SMALLEST, _LARGEST = 1.6, 4.6


class Dot(NamedTuple):
    """A dot: larger for more answers."""

    x: str
    y: str
    r: str
    title: str


class Series(NamedTuple):
    """One condition's dots, the line through them, and the expected calibration error in points."""

    condition: Condition
    name: str
    error: str
    dots: list[Dot]

    @property
    def path(self) -> str:
        """The line through the dots, as an SVG path."""
        return "M" + "L".join(f"{dot.x} {dot.y}" for dot in self.dots)


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
    return [_plot(judge, conditions) for judge, conditions in judges.items()]


def _plot(judge: str, conditions: Mapping[Condition, Sequence[ConfidenceRow]]) -> CalibrationPlot:
    most = max(row.n for rows in conditions.values() for row in rows)
    series = [
        Series(condition, _NAMES[condition], f"{_error(rows):.1f}", [_dot(row, most) for row in rows])
        for condition, rows in conditions.items()
    ]
    errors = ", ".join(f"{item.condition} {item.error}" for item in series)
    return CalibrationPlot(judge, series, f"Calibration of {judge}; error in points: {errors}")


def _dot(row: ConfidenceRow, most: int) -> Dot:
    right = row.right or 0.0
    x = _LEFT + _SIDE * _STATED[row.confidence]
    y = _BOTTOM - _SIDE * right / 100
    radius = _SMALLEST + (_LARGEST - _SMALLEST) * sqrt(row.n / most)
    title = f"{row.condition}, {row.confidence}: {right:.1f}% of {row.n:,} right"
    return Dot(f"{x:.1f}", f"{y:.1f}", f"{radius:.1f}", title)


def _error(rows: Sequence[ConfidenceRow]) -> float:
    """The expected calibration error in points (Eq. 48): each stated confidence is a bin."""
    total = sum(row.n for row in rows)
    return sum(row.n * abs((row.right or 0.0) - 100 * _STATED[row.confidence]) for row in rows) / total


def confidence_lines(rows: Sequence[ConfidenceRow]) -> dict[str, list[ConfidenceRow]]:
    """Return the levels of each judge and condition with any answer that says how sure it is."""
    lines: dict[str, list[ConfidenceRow]] = {}
    for row in rows:
        lines.setdefault(f"{row.judge}, {row.condition}", []).append(row)
    return {name: levels for name, levels in lines.items() if any(row.n for row in levels)}


# ---
# STG along one setting of the compass.

_WIDTH, _HEIGHT, _MARGIN, _FOOT = 320.0, 150.0, 44.0, 26.0


class CurveMark(NamedTuple):
    """One value that was tried: its place, the ends of its interval, and the point in words."""

    point: CurvePoint
    x: float
    y: float
    ends: list[float]
    words: str


class Curve(NamedTuple):
    """One small chart: a place for each value tried, STG upward, the interval as a bar."""

    title: str
    marks: list[CurveMark]
    low: str
    high: str

    @property
    def line(self) -> str:
        """The line through the marks, as the points of an SVG polyline."""
        return " ".join(f"{mark.x},{mark.y}" for mark in self.marks)


def curve(title: str, tried: Sequence[CurvePoint]) -> Curve:
    """Return the chart of one setting."""
    known = [(point, point.stg) for point in tried if point.stg is not None]
    ends = [end for point, stg in known for end in point.ci95 or (stg,)]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    high = high if high > low else low + 1.0
    step = (_WIDTH - _MARGIN - 12.0) / max(1, len(known))

    def up(value: float) -> float:
        return round(8.0 + (_HEIGHT - _FOOT - 16.0) * (high - value) / (high - low), 1)

    marks = [
        CurveMark(
            point,
            round(_MARGIN + step * (place + 0.5), 1),
            up(stg),
            [up(end) for end in point.ci95 or (stg, stg)],
            _words(point),
        )
        for place, (point, stg) in enumerate(known)
    ]
    return Curve(title, marks, f"{low:.0f}", f"{high:.0f}")


def _words(point: CurvePoint) -> str:
    span = f", 95% {interval(point.ci95)}" if point.ci95 else ""
    against = f"; {change(point.difference)} against the choice" if point.difference else ""
    if point.difference and point.difference_ci95:
        against += f" ({interval(point.difference_ci95, '+.1f')})"
    return f"{point.value:g}: STG {point.stg:.1f}{span}{against}; {point.repaired:.0f}% repaired"
