"""`report.html` of a tuning: what was chosen, what it gains, and the validation curve with its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from katha.jsonio import read_json, write_bytes_atomic

_WIDTH, _HEIGHT, _LEFT, _FOOT = 320.0, 150.0, 44.0, 26.0
_WORDS = {
    "candidates": "Candidates",
    "lambda_r": "Weight of recoverability",
    "lambda_t": "Weight of coverage",
    "lambda_p": "Weight of the copy penalty",
    "delta": "Coverage threshold δ",
    "gamma": "Copy threshold γ",
    "repair_threshold": "Repair threshold",
}


def write_tuning_report(out: Path) -> Path:
    """Write `out/report.html` and return its path. The file asks nothing of the network.

    Raises:
        InputFileError: `tuning.json` is missing or broken.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    own = files("katha.app.reports.templates")

    def source(name: str) -> str:
        return own.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(source), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    tuning = read_json(out / "tuning.json")
    sheets = (files("katha.app.reports.templates").joinpath("report.css"), own.joinpath("tuning.css"))
    css = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    curves = [_curve(_WORDS[name], points) for name, points in tuning["curve"].items()]
    html = environment.get_template("tuning.html.j2").render(
        tuning=tuning, curves=curves, css=css, words=_WORDS, advice=advice(tuning)
    )
    path = out / "report.html"
    write_bytes_atomic(path, html.encode("utf-8"))
    return path


def advice(tuning: Mapping[str, Any]) -> str:
    """A warning where the choice is not shown to be better than the settings before; empty where it is."""
    unseen, before, span = tuning["cross_validated"], tuning["default_stg"], tuning["gain"]["ci95"]
    if unseen is not None and before is not None and unseen >= before:
        return (
            f"On unseen stories the choice is no better than the settings before ({before:.1f}): tune on more stories."
        )
    if span is not None and span[1] >= 0.0:
        return "That the choice is better than the settings before is not shown: the interval holds zero."
    return ""


def _curve(title: str, points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One small chart: a place for each value tried, STG upward, the interval as a bar."""
    known = [point for point in points if point["stg"] is not None]
    ends = [end for point in known for end in (point["ci95"] or [point["stg"]])]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    high = high if high > low else low + 1.0
    step = (_WIDTH - _LEFT - 12.0) / max(1, len(known))

    def up(value: float) -> float:
        return 8.0 + (_HEIGHT - _FOOT - 16.0) * (high - value) / (high - low)

    marks = [
        {
            "x": round(_LEFT + step * (place + 0.5), 1),
            "y": round(up(point["stg"]), 1),
            "ends": [round(up(end), 1) for end in point["ci95"] or [point["stg"], point["stg"]]],
            "value": f"{point['value']:g}",
            "chosen": point["chosen"],
            "words": _point(point),
        }
        for place, point in enumerate(known)
    ]
    line = " ".join(f"{mark['x']},{mark['y']}" for mark in marks)
    return {"title": title, "marks": marks, "line": line, "low": f"{low:.0f}", "high": f"{high:.0f}"}


def _point(point: Mapping[str, Any]) -> str:
    span = f", 95% {point['ci95'][0]:.1f} to {point['ci95'][1]:.1f}" if point["ci95"] else ""
    apart = point["difference_ci95"]
    against = f"; {point['difference']:+.1f} against the choice" if point["difference"] else ""
    against += f" ({apart[0]:+.1f} to {apart[1]:+.1f})" if apart and point["difference"] else ""
    return f"{point['value']:g}: STG {point['stg']:.1f}{span}{against}; {point['repaired']:.0f}% repaired"
