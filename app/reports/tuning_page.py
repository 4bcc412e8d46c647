"""`report.html` of a tuning: what was chosen, what it gains, and the validation curve with its uncertainty."""

from __future__ import annotations

from pathlib import Path

from katha.app.reports.charts import curve
from katha.app.reports.page import read_record, write_page
from katha.schema.tables import TuningResult

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
    """Write `out/report.html` and return its path.

    Raises:
        InputFileError: `tuning.json` is missing or broken.
    """
    tuning = read_record(out / "tuning.json", TuningResult)
    return write_page(
        out / "report.html",
        "tuning.html.j2",
        tuning=tuning,
        curves=[curve(_WORDS[name], tried) for name, tried in tuning.curve.items()],
        words=_WORDS,
        advice=advice(tuning),
    )


def advice(tuning: TuningResult) -> str:
    """Return a warning where the choice is not shown to be better than the settings before; nothing where it is."""
    unseen, before, span = tuning.cross_validated, tuning.default_stg, tuning.gain.ci95
    if unseen is not None and before is not None and unseen >= before:
        return (
            f"On unseen stories the choice is no better than the settings before ({before:.1f}): tune on more stories."
        )
    if span is not None and span[1] >= 0.0:
        return "That the choice is better than the settings before is not shown: the interval holds zero."
    return ""
