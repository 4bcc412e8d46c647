"""The script that writes the measured tables into the page on ablations."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from katha.compass.lock import near_duplicate, sentence_hashes
from katha.schema.tables import (
    AblationBudget,
    AblationRow,
    AblationTable,
    BlockNumbers,
    Conclusion,
    RowComparison,
    TuningGain,
    TuningResult,
)
from katha.stories import load_stories

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
    full = ROW.model_copy(
        update={"mode": "full", "delta_stg": -9.0, "ci95": (-12.0, -6.0), "p_corrected": 0.0001, "given_away": 19.2}
    )
    full = full.model_copy(
        update={
            "rest": BlockNumbers(n=3, text=100.0, image=74.0, stg=26.0, image_ci95=None, stg_ci95=None, delta_stg=-4.0)
        }
    )
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
    told = script.markdown(table, "Measured on a day in at least 1,200 s of processor time")
    valid = "7 of 9 (78%) | 7 of 9 (78%)"
    assert f"| `base` | 70.0 | 20.0 | - | - | 20.0 | - | {valid} | - | - | 5.00 |" in told
    assert f"| `full` | 70.0 | 20.0 | -9.0 (-12.0 to -6.0) | < 0.001 | 20.0 | - | {valid} | 19% | -4.0 | 5.00 |" in told
    assert "| `same` (steered) | 70.0 |" in told
    assert f"| `far` | not run |{' |' * 10}\n" in told
    assert f"| `scene` | no story has a board |{' |' * 10}\n" in told
    assert "in at least 1,200 s of processor time. 40 stories, unfrozen; 1 frames" in told
    assert told.rstrip().endswith("full improves on base.\n\n- 2\n- 4")


def test_a_fable_that_two_folders_tell_is_measured_once_and_none_was_tuned_on(script: Any, tmp_path: Path) -> None:
    taken = {file.stem: file.read_text(encoding="utf-8") for file in script.gather(tmp_path).iterdir()}
    examples = {file.stem: file.read_text(encoding="utf-8") for file in (DOCS.parent / "examples").glob("*.txt")}
    assert len(taken) - len(examples) >= 40
    assert taken.items() >= examples.items()
    assert not taken.keys() & {file.stem for file in script.VALIDATION.glob("*.txt")}


def test_the_stories_of_both_sides_are_apart_as_a_lock_asks(script: Any, tmp_path: Path) -> None:
    sides = [
        {record.story_id: sentence_hashes(record) for record in load_stories(folder)}
        for folder in (script.VALIDATION, script.gather(tmp_path))
    ]
    assert all(sides)
    assert near_duplicate(*sides) is None


@pytest.mark.parametrize(("upper", "said"), [(-1.0, "a lock was written"), (0.5, "`tune` wrote no lock")])
def test_tuning_is_told_with_what_it_chose_and_whether_it_froze_it(script: Any, upper: float, said: str) -> None:
    result = TuningResult(
        setting={"candidates": 2},
        default={"candidates": 3},
        stories=22,
        tried=10_000,
        stg=20.0,
        ci95=None,
        default_stg=24.0,
        gain=TuningGain(difference=-4.0, ci95=(-7.0, upper), p_bootstrap=None),
        cross_validated=23.0,
        folds=5,
        equally_good=1,
        repaired=50.0,
        curve={},
        notes=[],
    )
    told = script.tuning_markdown(result, "Measured on a day in 9 s of processor time")
    assert said in told
    assert "Chosen: `candidates` 2 (was 3)." in told
    assert f"(change -4.0, 95% -7.0 to {upper:+.1f}; this does not count the choosing)" in told
