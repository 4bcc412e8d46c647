"""The script that writes the measured tables into the page on ablations."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from katha.schema.tables import AblationBudget, AblationRow, AblationTable, Conclusion, RowComparison

DOCS = Path(__file__).parents[2] / "docs"
ROW = AblationRow(mode="base", about="", image=70.0, stg=20.0, frames=5.0, valid=7, scored=9, steered=False)
PAIR = {"a": "full", "b": "control", "what": "all stories", "difference": -9.0, "n_stories": 40}


def pair(**changes: Any) -> RowComparison:
    return RowComparison.model_validate(PAIR | changes)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_ablations", DOCS / "make_ablations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_keeps_everything_around_what_was_measured(script: Any) -> None:
    page = (DOCS / "ablations.md").read_text(encoding="utf-8")
    written = script.put(script.put(page, "old"), "new")
    assert written.split(script.BEGIN)[0] == page.split(script.BEGIN)[0]
    assert written.split(script.END)[1] == page.split(script.END)[1]
    assert written.split(script.BEGIN)[1].split(script.END)[0].strip() == "new"


def test_a_suite_is_told_with_its_rows_and_its_conclusion(script: Any) -> None:
    full = ROW.model_copy(update={"mode": "full", "delta_stg": -9.0, "ci95": (-12.0, -6.0), "p_corrected": 0.0001})
    far = AblationRow(mode="far", about="", steered=False, not_run="needs a model")
    scene = AblationRow(mode="scene", about="", steered=False)
    pairs = [
        pair(b="base"),
        pair(),
        pair(what="equal length", b="twin", nothing="these are the same boards"),
        pair(b="c"),
    ]
    table = AblationTable(
        suite="length",
        about="",
        tables=[55],
        baseline="base",
        focus="full",
        stories=40,
        judges=["sketch-reader"],
        rows=[ROW, ROW.model_copy(update={"mode": "same", "steered": True}), full, far, scene],
        comparisons=pairs,
        budget=AblationBudget(
            frames_distinct=1,
            frames_by_rows=2,
            frames_naive=2,
            questions_distinct=3,
            questions_by_rows=4,
            questions_naive=4,
        ),
        cases=None,
        human=None,
        frozen=False,
        lock=None,
        scores=None,
        notes=[],
        conclusion=Conclusion(verdict="shown", text="full improves on base.", sentences=list("1234")),
    )
    told = script.markdown(table, "at least 1,200")
    assert "| `base` | 70.0 | 20.0 | - | - | 20.0 | - | 7 of 9 | 5.00 |" in told
    assert "| `full` | 70.0 | 20.0 | -9.0 (-12.0 to -6.0) | < 0.001 | 20.0 | - | 7 of 9 | 5.00 |" in told
    assert "| `same` (steered) | 70.0 |" in told
    assert "| `far` | not run | | | | | | | |" in told
    assert "| `scene` | no story has a board | | | | | | | |" in told
    assert "at least 1,200 s of processor time" in told
    assert told.rstrip().endswith("full improves on base.\n\n- 2\n- 4")
