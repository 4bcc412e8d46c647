"""Results as data frames and in notebooks, and the record of where a command ran."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from katha.environment import environment
from katha.errors import MissingExtraError
from katha.schema.metrics import MetricCell, MetricRow, MetricTable
from katha.store import State, StoreKind, Workspace

TABLE = MetricTable(
    rows=[
        MetricRow(method="<b>", boards=2, cells={"clip-t": MetricCell(value=0.25, ci95=(0.1, 0.4), boards=2)}),
        MetricRow(method="plain", boards=2, cells={"clip-t": MetricCell(nulls=2)}),
    ]
)


def test_a_result_is_a_data_frame() -> None:
    frame = TABLE.to_frame()
    assert list(frame.columns) == ["method", "measure", "value", "ci95_low", "ci95_high", "boards", "nulls"]
    assert frame.loc[0, "ci95_high"] == 0.4
    assert frame["value"].isna().tolist() == [False, True]


def test_a_notebook_shows_it_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    shown = TABLE._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<td>0.25</td>" in shown
    with pytest.raises(MissingExtraError, match="needs pandas"):
        TABLE.to_frame()


def test_a_folder_says_where_it_was_made(tmp_path: Path) -> None:
    folder = Workspace(tmp_path / "out", StoreKind("trial", "trial.json", State))
    with folder.claim():
        folder.write(State(format=1))
        folder.finish(State(format=1))
    told = json.loads((tmp_path / "out/trial.json").read_text())["environment"]
    assert told["python"] == platform.python_version()
    assert told["packages"]["numpy"]
    root = Path(__file__).parents[2]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
    assert environment()["commit"].rstrip("+") == head.stdout.strip()  # type: ignore[attr-defined]
