"""Tables as they are passed on: CSV for programs, LaTeX for papers, from the same typed rows and columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, model_validator

from katha.jsonio import write_bytes_atomic
from katha.schema.scores import Interval

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_ARROWS = {"higher": r" $\uparrow$", "lower": r" $\downarrow$"}
_ABSENT = "--"


class Estimate(NamedTuple):
    """A number with its 95% interval, both None where there is none."""

    value: float | None
    ci95: Interval | None = None


Cell = str | int | float | Estimate | None


class Column(BaseModel):
    """One column: its heading, how many decimals LaTeX shows, whether with a sign, and which direction is better."""

    model_config = ConfigDict(frozen=True)

    heading: str
    digits: int = 1
    signed: bool = False
    better: Literal["higher", "lower"] | None = None


class DataTable(BaseModel):
    """A table: `name` is that of its files, `title` its caption, a row has one cell a column.

    notes: sentences that a reader needs beside it. best: whether LaTeX sets the best number of a column in bold.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    best: bool = True

    @model_validator(mode="after")
    def _whole(self) -> DataTable:
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(f"{self.name!r} cannot be the name of a table's files")
        odd = next((row for row in self.rows if len(row) != len(self.columns)), None)
        if odd is not None:
            raise ValueError(f"the table {self.name!r} has {len(self.columns)} columns, a row has {len(odd)} cells")
        return self

    def csv(self) -> str:
        """Return it as CSV: numbers in full, an empty cell where there is none, and `HEADING low` and `HEADING high`
        behind a column that has intervals."""
        spans = [any(isinstance(row[at], Estimate) for row in self.rows) for at in range(len(self.columns))]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        ends = ("low", "high")
        writer.writerow(
            text
            for column, span in zip(self.columns, spans, strict=True)
            for text in (column.heading, *(f"{column.heading} {end}" for end in ends if span))
        )
        for row in self.rows:
            writer.writerow(
                text for cell, span in zip(row, spans, strict=True) for text in _fields(cell, with_ends=span)
            )
        return out.getvalue()

    def latex(self) -> str:
        """Return it as a LaTeX table (`\\usepackage{booktabs}`): rounded, intervals in brackets, the best in bold."""
        shown = [self._shown(at) for at in range(len(self.columns))]
        numeric = [not any(isinstance(row[at], str) for row in self.rows) for at in range(len(self.columns))]
        heads = (f"{_tex(column.heading)}{_ARROWS.get(column.better or '', '')}" for column in self.columns)
        lines = [
            "% \\usepackage{booktabs}",
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{_tex(self.title)}}}",
            f"\\label{{tab:{self.name}}}",
            f"\\begin{{tabular}}{{{''.join('r' if right else 'l' for right in numeric)}}}",
            "\\toprule",
            f"{' & '.join(heads)} \\\\",
            "\\midrule",
            *(f"{' & '.join(column[at] for column in shown)} \\\\" for at in range(len(self.rows))),
            "\\bottomrule",
            "\\end{tabular}",
            *(f"\\par\\smallskip{{\\footnotesize {_tex(note)}}}" for note in self.notes),
            "\\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def _shown(self, at: int) -> list[str]:
        """Return one column's cells as LaTeX."""
        column, cells = self.columns[at], [row[at] for row in self.rows]
        values = [None if isinstance(cell, str) else number_of(cell) for cell in cells]
        known = [round(value, column.digits) for value in values if value is not None]
        ranked = sorted(known, reverse=column.better == "higher")
        best = ranked[0] if column.better is not None and self.best and len(known) > 1 else None
        shown = []
        for cell, value in zip(cells, values, strict=True):
            text = _tex_cell(cell, column)
            wins = best is not None and value is not None and round(value, column.digits) == best
            shown.append(f"\\textbf{{{text}}}" if wins else text)
        return shown


def number_of(cell: Cell) -> float | None:
    """Return the number in a cell; None for a text or where there is none."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return None if value is None or isinstance(value, str) else float(value)


def write_tables(folder: Path, tables: Iterable[DataTable]) -> list[Path]:
    """Write each table as `NAME.csv` and `NAME.tex`, and return the files."""
    written = []
    for table in tables:
        for ending, text in ((".csv", table.csv()), (".tex", table.latex())):
            path = folder / f"{table.name}{ending}"
            write_bytes_atomic(path, text.encode("utf-8"))
            written.append(path)
    return written


def _parts(cell: Cell) -> tuple[str | float | None, Interval | None]:
    """Return what a cell holds, and its interval."""
    return (cell.value, cell.ci95) if isinstance(cell, Estimate) else (cell, None)


def _fields(cell: Cell, *, with_ends: bool) -> Sequence[str]:
    """Return a cell as one field of CSV, or as three where its column has intervals."""
    value, ends = _parts(cell)
    first = "" if value is None else str(value)
    return [first, *(map(str, ends) if ends is not None else ("", ""))] if with_ends else [first]


def _tex(text: str) -> str:
    """Return a text with LaTeX's own signs escaped, on one line."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


def _tex_cell(cell: Cell, column: Column) -> str:
    value, ends = _parts(cell)
    if isinstance(value, str):
        return _tex(value)
    if value is None:
        return _ABSENT
    told = str(value) if isinstance(value, int) and not column.signed else _tex_number(value, column)
    if ends is None:
        return told
    return f"{told} {{\\scriptsize [{', '.join(_tex_number(end, column) for end in ends)}]}}"


def _tex_number(value: float, column: Column) -> str:
    told = f"{value:{'+' if column.signed else ''}.{column.digits}f}"
    return f"${told}$" if told[0] in "+-" else told
