"""Tables as CSV and LaTeX: numbers in full in the one, rounded with intervals and the best in bold in the other."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from pydantic import ValidationError

from katha.tables import Column, DataTable, NumberWithInterval, number_of, write_tables

_COLUMNS = (
    Column(heading="Method"),
    Column(heading="STG", better="lower"),
    Column(heading="Change", digits=2, signed=True, better="higher"),
    Column(heading="Boards"),
)


def _table(**changes: object) -> DataTable:
    rows = (
        ("full_100%", NumberWithInterval(21.4321, (20.0, 23.25)), -1.239, 12),
        ("a & b", NumberWithInterval(21.4444), 0.0, 3),
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


def test_latex_rounds_escapes_and_fits_a_column() -> None:
    told = _table(notes=("50% of stories",)).latex()
    assert "full\\_100\\% & 21.4 & -1.24 & 12 \\\\[-0.5ex]\n & {\\scriptsize [20.0, 23.2]} &  &  \\\\\n" in told
    assert r"a \& b & 21.4 & +0.00 & 3 \\" in told
    assert r"none & {--} & {--} & {--} \\" in told
    assert r"Method & {STG $\downarrow$} & {Change $\uparrow$} & {Boards} \\" in told
    columns = "S[table-format=2.1]S[table-format=+1.2,retain-explicit-plus]S[table-format=2.0]"
    assert rf"\begin{{tabular}}{{l{columns}}}" in told
    assert r"\begin{table}" in told
    assert r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%" in told
    assert r"{\footnotesize 50\% of stories}" in told
    assert r"\bfseries" not in told, "a best point is no finding"


@pytest.mark.parametrize(
    ("spans", "marked"),
    [
        (((20.0, 22.0), (23.0, 25.0), (24.0, 30.0)), 1),
        (((20.0, 23.5), (23.0, 25.0), (24.0, 30.0)), 0),
        (((20.0, 22.0), None, (24.0, 30.0)), 0),
    ],
)
def test_what_is_better_by_intervals_that_do_not_meet_is_bold(
    spans: tuple[tuple[float, float] | None, ...], marked: int
) -> None:
    rows = tuple((f"m{at}", NumberWithInterval(21.0 + 2 * at, span), None, None) for at, span in enumerate(spans))
    told = _table(rows=rows).latex()
    assert told.count(r"\bfseries") == marked
    assert (r"m0 & \bfseries 21.0" in told) == bool(marked)
    assert r"\bfseries" not in _table(rows=rows, best=False).latex()


def test_a_table_alone_in_its_column_is_not_the_best() -> None:
    assert r"\bfseries" not in _table(rows=(("only", NumberWithInterval(1.0, (0.0, 2.0)), 2.0, 3),)).latex()


def test_what_is_marked_has_a_dagger_and_many_columns_take_the_page() -> None:
    rows = (
        ("best", NumberWithInterval(21.0, (20.0, 22.0), dagger=True), None, 3),
        ("next", NumberWithInterval(30.0), None, 3),
    )
    told = _table(rows=rows, notes=("†: loses less than next",)).latex()
    assert r"best & 21.0{\textsuperscript{\textdagger}} & {--} & 3 " in told
    assert r"S[table-format=2.1,table-space-text-post={\textsuperscript{\textdagger}}]" in told
    assert r"{\footnotesize \textdagger{}: loses less than next}" in told
    wide = DataTable(name="wide", title="Wide", columns=_COLUMNS * 2, rows=tuple(row * 2 for row in rows))
    assert r"\begin{table*}" in wide.latex()


@pytest.mark.parametrize("changes", [{"name": "../up"}, {"name": ""}, {"rows": (("short",),)}])
def test_what_is_no_table_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        _table(**changes)


def test_cells_keep_their_kind() -> None:
    row = _table().rows[0]
    assert [type(cell) for cell in row] == [str, NumberWithInterval, float, int]
    assert [number_of(cell) for cell in row] == [None, 21.4321, -1.239, 12.0]


def test_files_lie_beside_each_other(tmp_path: Path) -> None:
    written = write_tables(tmp_path, [_table()])
    assert [path.name for path in written] == ["table-2.csv", "table-2.tex"]
    assert written[0].read_text(encoding="utf-8") == _table().csv()
