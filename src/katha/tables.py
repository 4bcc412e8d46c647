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
    "†": r"\textdagger{}",
}
_ARROWS = {"higher": r" $\uparrow$", "lower": r" $\downarrow$"}
_ABSENT = "--"
_MOST_COLUMNS = 6
"""A table of more columns is set over both columns of a page that has two."""
_DAGGER = "{\\textsuperscript{\\textdagger}}"


class NumberWithInterval(NamedTuple):
    """A number with its 95% interval, both None where there is none. dagger: LaTeX marks it (a note says for what)."""

    value: float | None
    ci95: Interval | None = None
    dagger: bool = False


Cell = str | int | float | NumberWithInterval | None


class Column(BaseModel):
    """One column: its heading, how many decimals LaTeX shows, whether with a sign, and which direction is better."""

    model_config = ConfigDict(frozen=True)

    heading: str
    digits: int = 1
    signed: bool = False
    better: Literal["higher", "lower"] | None = None


class DataTable(BaseModel):
    """A table: `name` is that of its files, `title` its caption, a row has one cell a column.

    notes: sentences that a reader needs beside it. best: whether LaTeX sets in bold what is shown to be
    the best of a column.
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
        spans = [any(isinstance(row[at], NumberWithInterval) for row in self.rows) for at in range(len(self.columns))]
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
        """Return it as a LaTeX table (`booktabs`, `siunitx`, `graphicx`): rounded, numbers by their decimal point,
        intervals under their numbers, no wider than a column.

        A number is in bold where its interval holds none of the others' and theirs not it: a best point alone is no
        finding.
        """
        places = range(len(self.columns))
        numeric = [not any(isinstance(row[at], str) for row in self.rows) for at in places]
        shown = [self._shown(at, number) for at, number in zip(places, numeric, strict=True)]
        spans = [[_tex_span(row[at], self.columns[at]) for row in self.rows] for at in places]
        heads = (
            f"{{{told}}}" if number else told
            for number, column in zip(numeric, self.columns, strict=True)
            for told in [f"{_tex(column.heading)}{_ARROWS.get(column.better or '', '')}"]
        )
        kind, body = "table*" if len(self.columns) > _MOST_COLUMNS else "table", []
        for row in range(len(self.rows)):
            below = any(column[row] for column in spans)
            body.append(f"{' & '.join(column[row] for column in shown)} \\\\{'[-0.5ex]' if below else ''}")
            if below:
                body.append(f"{' & '.join(column[row] for column in spans)} \\\\")
        lines = [
            "% \\usepackage{booktabs,siunitx,graphicx} \\sisetup{detect-all}",
            f"\\begin{{{kind}}}",
            "\\centering",
            f"\\caption{{{_tex(self.title)}}}",
            f"\\label{{tab:{self.name}}}",
            "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
            f"\\begin{{tabular}}{{{''.join(self._format(at) if numeric[at] else 'l' for at in places)}}}",
            "\\toprule",
            f"{' & '.join(heads)} \\\\",
            "\\midrule",
            *body,
            "\\bottomrule",
            "\\end{tabular}}",
            *(f"\\par\\smallskip{{\\footnotesize {_tex(note)}}}" for note in self.notes),
            f"\\end{{{kind}}}",
        ]
        return "\n".join(lines) + "\n"

    def _shown(self, at: int, number: bool) -> list[str]:
        """Return one column's cells as LaTeX."""
        column, cells = self.columns[at], [row[at] for row in self.rows]
        best = _shown_best(cells, column) if self.best else None
        told = [_tex_cell(cell, column, number) for cell in cells]
        return [f"\\bfseries {text}" if at == best else text for at, text in enumerate(told)]

    def _format(self, at: int) -> str:
        """Return the `S` column of siunitx for one column's numbers: signs, digits before and behind the point."""
        column, cells = self.columns[at], [row[at] for row in self.rows]
        told = [text for cell in cells if (text := _tex_number(cell, column)) is not None]
        whole = max((len(text.lstrip("+-").split(".")[0]) for text in told), default=1)
        behind = max((len(text.partition(".")[2]) for text in told), default=0)
        sign = "+" if any(text[0] in "+-" for text in told) else ""
        plus = ",retain-explicit-plus" if column.signed else ""
        space = f",table-space-text-post={_DAGGER}" if any(_daggered(cell) for cell in cells) else ""
        return f"S[table-format={sign}{whole}.{behind}{plus}{space}]"


def _shown_best(cells: Sequence[Cell], column: Column) -> int | None:
    """Return where the number is that is better than all others by intervals that do not meet; None where none is."""
    known = [(at, cell) for at, cell in enumerate(cells) if not isinstance(cell, str) and number_of(cell) is not None]
    if column.better is None or len(known) < 2:
        return None
    sign = 1.0 if column.better == "higher" else -1.0
    at = max(known, key=lambda item: sign * (number_of(item[1]) or 0.0))[0]
    spans = {
        place: cell.ci95 for place, cell in known if isinstance(cell, NumberWithInterval) and cell.ci95 is not None
    }
    if len(spans) < len(known):
        return None
    low = min(sign * end for end in spans[at])
    apart = all(max(sign * end for end in span) < low for place, span in spans.items() if place != at)
    return at if apart else None


def number_of(cell: Cell) -> float | None:
    """Return the number in a cell; None for a text or where there is none."""
    value = cell.value if isinstance(cell, NumberWithInterval) else cell
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
    return (cell.value, cell.ci95) if isinstance(cell, NumberWithInterval) else (cell, None)


def _fields(cell: Cell, *, with_ends: bool) -> Sequence[str]:
    """Return a cell as one field of CSV, or as three where its column has intervals."""
    value, ends = _parts(cell)
    first = "" if value is None else str(value)
    return [first, *(map(str, ends) if ends is not None else ("", ""))] if with_ends else [first]


def _tex(text: str) -> str:
    """Return a text with LaTeX's own signs escaped, on one line."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


def _tex_cell(cell: Cell, column: Column, number: bool) -> str:
    """Return a cell for LaTeX; in a column of numbers what is none is in braces."""
    value, _ = _parts(cell)
    if isinstance(value, str):
        return _tex(value)
    told = _tex_number(cell, column)
    if told is None:
        return f"{{{_ABSENT}}}" if number else _ABSENT
    return f"{told}{_DAGGER}" if _daggered(cell) else told


def _tex_span(cell: Cell, column: Column) -> str:
    """Return a cell's interval for the line under its number; nothing where there is none."""
    ends = _parts(cell)[1]
    return "" if ends is None else f"{{\\scriptsize [{', '.join(_rounded(end, column) for end in ends)}]}}"


def _tex_number(cell: Cell, column: Column) -> str | None:
    """Return a cell's number, rounded; None of a text or where there is none."""
    value, _ = _parts(cell)
    if value is None or isinstance(value, str):
        return None
    return str(value) if isinstance(value, int) and not column.signed else _rounded(value, column)


def _rounded(value: float, column: Column) -> str:
    return f"{value:{'+' if column.signed else ''}.{column.digits}f}"


def _daggered(cell: Cell) -> bool:
    return isinstance(cell, NumberWithInterval) and cell.dagger
