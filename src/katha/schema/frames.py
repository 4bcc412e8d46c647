"""Results as tables for notebooks: a data frame where pandas is installed, HTML without it."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, get_args, get_origin

from pydantic import BaseModel

from katha.errors import MissingExtraError
from katha.installing import install_line

if TYPE_CHECKING:
    import pandas

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]
_MOST_ROWS = 60


class Tabular:
    """What a result inherits that is a table at heart."""

    @abstractmethod
    def table_rows(self) -> Iterator[Row]:
        """Yield its rows, by column."""
        ...

    def to_frame(self) -> pandas.DataFrame:
        """Return it as a data frame, a row a line and a column a number.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            made = importlib.import_module("pandas")
        except ImportError as error:
            raise MissingExtraError("A data frame needs pandas.", hint=install_line("stats")) from error
        frame: pandas.DataFrame = made.DataFrame(list(self.table_rows()))
        return frame

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        rows = list(self.table_rows())
        columns = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_told(row.get(name)))}</td>" for name in columns) + "</tr>"
            for row in rows[:_MOST_ROWS]
        )
        more = f"<p>{len(rows) - _MOST_ROWS:,} more rows: to_frame().</p>" if len(rows) > _MOST_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _told(value: Cell) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def flat(record: BaseModel, prefix: str = "") -> dict[str, Cell]:
    """Return the numbers and texts of a record by name: of an interval its ends, of a record inside what it holds.

    Lists and tables inside are left out.
    """
    found: dict[str, Cell] = {}
    for name, field in type(record).model_fields.items():
        value: object = getattr(record, name)
        spans = any(get_origin(kind) is tuple for kind in (field.annotation, *get_args(field.annotation)))
        if value is None and spans:
            found |= {f"{prefix}{name}_low": None, f"{prefix}{name}_high": None}
        elif value is None or isinstance(value, (str, int, float)):
            found[f"{prefix}{name}"] = value
        elif isinstance(value, BaseModel):
            found |= flat(value, f"{prefix}{name}_")
        elif isinstance(value, tuple) and len(value) == 2 and all(isinstance(end, (int, float)) for end in value):
            found |= {f"{prefix}{name}_low": value[0], f"{prefix}{name}_high": value[1]}
    return found
