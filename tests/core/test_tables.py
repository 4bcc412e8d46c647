"""Tables as CSV and LaTeX: numbers in full in the one, rounded with intervals and the best in bold in the other."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from pydantic import ValidationError

from katha.tables import Column, DataTable, Estimate, number_of, write_tables

_COLUMNS = (
    Column(heading="Method"),
    Column(heading="STG", better="lower"),
    Column(heading="Change", digits=2, signed=True, better="higher"),
    Column(heading="Boards"),
)


def _table(**changes: object) -> DataTable:
    rows = (
        ("full_100%", Estimate(21.4321, (20.0, 23.25)), -1.239, 12),
        ("a & b", Estimate(21.4444), 0.0, 3),
        ("none", None, None, None),
    )
    return DataTable.model_validate(
        {"name": "table-2", "title": "STG by method", "columns": _COLUMNS, "rows": rows, **changes}
    )


def test_csv_holds_every_number_in_full_and_the_ends_of_intervals() -> None:
    rows = list(csv.DictReader(_table().csv().splitlines()))
    assert list(rows[0]) == ["Method", "STG", "STG low", "STG high", "Change", "Boards"]
    assert rows[0] == {
        "Method": "full_100%",
        "STG": "21.4321",
        "STG low": "20.0",
        "STG high": "23.25",
        "Change": "-1.239",
        "Boards": "12",
    }
    assert set(rows[1].values()) == {"a & b", "21.4444", "", "0.0", "3"}
    assert set(rows[2].values()) == {"none", ""}


def test_latex_rounds_escapes_and_marks_the_best() -> None:
    told = _table(notes=("50% of stories",)).latex()
    assert r"full\_100\% & \textbf{21.4 {\scriptsize [20.0, 23.2]}} & $-1.24$ & 12 \\" in told
    assert r"a \& b & \textbf{21.4} & \textbf{$+0.00$} & 3 \\" in told, "what rounds to the best ties with it"
    assert r"none & -- & -- & -- \\" in told
    assert r"Method & STG $\downarrow$ & Change $\uparrow$ & Boards \\" in told
    assert r"\begin{tabular}{lrrr}" in told
    assert r"{\footnotesize 50\% of stories}" in told
    assert r"\textbf" not in _table(best=False).latex()


def test_a_table_alone_in_its_column_is_not_the_best() -> None:
    assert r"\textbf" not in _table(rows=(("only", 1.0, 2.0, 3),)).latex()


@pytest.mark.parametrize("changes", [{"name": "../up"}, {"name": ""}, {"rows": (("short",),)}])
def test_what_is_no_table_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        _table(**changes)


def test_cells_keep_their_kind() -> None:
    row = _table().rows[0]
    assert [type(cell) for cell in row] == [str, Estimate, float, int]
    assert [number_of(cell) for cell in row] == [None, 21.4321, -1.239, 12.0]


def test_files_lie_beside_each_other(tmp_path: Path) -> None:
    written = write_tables(tmp_path, [_table()])
    assert [path.name for path in written] == ["table-2.csv", "table-2.tex"]
    assert written[0].read_text(encoding="utf-8") == _table().csv()
