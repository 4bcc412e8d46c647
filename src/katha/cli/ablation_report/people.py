"""The human columns of a table, worded: which there are, and what each row has in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from katha.cli.report.words import points

__all__ = ["people_columns", "people_words"]

Human = Mapping[str, Any]


def _read(section: str, key: str, form: str) -> Callable[[Human], str | None]:
    def read(human: Human) -> str | None:
        own = human[section]
        return None if own is None or own[key] is None else format(own[key], form)

    return read


def _share(section: str, key: str) -> Callable[[Human], str | None]:
    """A percentage."""
    return _read(section, key, ".1f")


def _number(section: str, key: str) -> Callable[[Human], str | None]:
    """A rating or a correlation."""
    return _read(section, key, ".2f")


_COLUMNS: Sequence[tuple[str, Callable[[Human], str | None]]] = (
    ("human image", _share("recoverability", "image")),
    ("human STG", _share("recoverability", "stg")),
    ("HMR@1", _share("moral", "hmr1")),
    ("HMR@3", _share("moral", "hmr3")),
    ("NCS", _number("ncs", "mean")),
    ("MAS", _number("mas", "mean")),
    ("EES", _number("ees", "mean")),
    ("localization", _share("localization", "right")),
    ("Spearman", _number("human_score", "spearman")),
    ("agreement", _share("agreement", "agreement")),
    ("false accepts", _share("agreement", "false_accept")),
    ("false rejects", _share("agreement", "false_reject")),
    ("defects found", _share("ambiguity_detected", "detected")),
)


def people_words(human: Human) -> list[str]:
    """What people say of one row's boards, one phrase a column that has a value."""
    return [f"{name} {value}" for name, read in _COLUMNS if (value := read(human)) is not None]


def people_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The report's table of judgments: the columns that any row has, and each row's cells; None without any."""
    asked = [row for row in rows if row["human"] is not None]
    used = [(name, read) for name, read in _COLUMNS if any(read(row["human"]) is not None for row in asked)]
    if not used:
        return None
    cells = [(row["mode"], [(name, read(row["human"]) or points(None)) for name, read in used]) for row in asked]
    return {"names": [name for name, _ in used], "rows": cells}
