"""Stated confidence against the share right: the calibration plot of each judge (an SVG), and the table below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from katha.app.reports.page import points

_STATED = {"low": 1 / 6, "medium": 1 / 2, "high": 5 / 6}
"""A confidence in words is the middle of its third of the scale, as for people's files."""
_NAMES = {"text": "from-text", "image": "from-image", "text+image": "from-both"}
_LEFT, _BOTTOM, _SIDE = 22.0, 108.0, 100.0
_SMALLEST, _LARGEST = 1.6, 4.6

Row = Mapping[str, Any]


def calibration_plots(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One plot a judge with any answer that says how sure it is; a series for each condition.

    rows: the confidence table of `eval.json`.
    """
    judges: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row["n"]:
            judges.setdefault(row["judge"], {}).setdefault(row["condition"], []).append(row)
    return [_plot(judge, conditions) for judge, conditions in judges.items()]


def _plot(judge: str, conditions: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    most = max(row["n"] for rows in conditions.values() for row in rows)
    series = [
        {
            "condition": condition,
            "name": _NAMES[condition],
            "error": f"{_error(rows):.1f}",
            "dots": (dots := [_dot(row, most) for row in rows]),
            "path": "M" + "L".join(f"{dot['x']} {dot['y']}" for dot in dots),
        }
        for condition, rows in conditions.items()
    ]
    errors = ", ".join(f"{item['condition']} {item['error']}" for item in series)
    return {"judge": judge, "series": series, "label": f"Calibration of {judge}; error in points: {errors}"}


def _dot(row: Row, most: int) -> dict[str, Any]:
    x = _LEFT + _SIDE * _STATED[row["confidence"]]
    y = _BOTTOM - _SIDE * row["right"] / 100
    radius = _SMALLEST + (_LARGEST - _SMALLEST) * sqrt(row["n"] / most)
    title = f"{row['condition']}, {row['confidence']}: {row['right']:.1f}% of {row['n']:,} right"
    return {"x": f"{x:.1f}", "y": f"{y:.1f}", "r": f"{radius:.1f}", "title": title}


def _error(rows: Sequence[Row]) -> float:
    """The expected calibration error in points (Eq. 48): each stated confidence is a bin."""
    total = sum(row["n"] for row in rows)
    return float(sum(row["n"] * abs(row["right"] - 100 * _STATED[row["confidence"]]) for row in rows) / total)


def confidence_lines(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One line a judge and condition with any answer that says how sure it is."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row["judge"], row["condition"]), []).append(row)
    return [
        {
            "judge": judge,
            "condition": condition,
            "levels": [
                {"n": item["n"], "right": points(item["right"]), "value": item["right"] or 0.0} for item in items
            ],
        }
        for (judge, condition), items in lines.items()
        if any(item["n"] for item in items)
    ]
