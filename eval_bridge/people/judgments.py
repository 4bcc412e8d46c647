"""People's judgments from plain CSV or JSON Lines. One row is one judgment; its columns say what it is about."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from katha.errors import InputFileError, RecordError
from katha.jsonio import iter_lines, loads
from katha.schema import ASKED, DIMENSIONS, MORAL_LABELS

Judgment = Mapping[str, Any]
"""One row: the values of the columns of `COLUMNS` that it fills in, and `line`."""

T = TypeVar("T")
CONFIDENCE = {"low": 1 / 6, "medium": 1 / 2, "high": 5 / 6}
"""A confidence in words is the middle of its third of the scale."""

_TRUTH = {"1": True, "true": True, "right": True, "yes": True, "0": False, "false": False, "wrong": False, "no": False}


def _number(low: float = -math.inf, high: float = math.inf, *, whole: bool = False) -> Callable[[str], float]:
    def parse(value: str) -> float:
        number = float(value)
        if not low <= number <= high or (whole and number != int(number)):
            bounds = f" from {low:g} to {high:g}" if math.isfinite(high - low) else ""
            raise ValueError(f"it must be a {'whole ' if whole else ''}number{bounds}")
        return int(number) if whole else number

    return parse


def _word(known: Mapping[str, T], told: str) -> Callable[[str], T]:
    def parse(value: str) -> T:
        folded = value.casefold().replace(" ", "_")
        if folded not in known:
            raise ValueError(f"it must be {told}")
        return known[folded]

    return parse


def _among(*allowed: str) -> Callable[[str], str]:
    return _word({name: name for name in allowed}, f"one of {', '.join(allowed)}")


def _confidence(value: str) -> float:
    return CONFIDENCE[value.casefold()] if value.casefold() in CONFIDENCE else _number(0.0, 1.0)(value)


COLUMNS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("rater", "story_id", "question_id"), str),
    "question_type": _among(*DIMENSIONS),
    "condition": _among(*ASKED),
    "right": _word(_TRUTH, "right or wrong (1 or 0, true or false)"),
    "label": str,
    "target": _among(*MORAL_LABELS),
    **dict.fromkeys(("top1", "top2", "top3"), _among(*MORAL_LABELS, "unclear")),
    **dict.fromkeys(("ncs", "mas", "ees", "visual", "rating"), _number(1, 5, whole=True)),
    **dict.fromkeys(("identity", "environment", "aesthetics"), _number(0, 4, whole=True)),
    "preference": _number(-2, 2, whole=True),
    "picture": _number(-1, 1, whole=True),
    "scene": _number(1, whole=True),
    **dict.fromkeys(("criterion", "human", "judge"), str),
    "confidence": _confidence,
    **dict.fromkeys(("human_score", "judge_score"), _number()),
    **dict.fromkeys(("method", "against", "group"), str),
    "task": _among("pairs", "bridge", "pictures"),
    "failing": _among(*DIMENSIONS),
}
"""The columns that are understood; others are ignored. An empty cell is a missing value."""


def read_judgments(path: Path) -> Iterator[Judgment]:
    """Stream rows with the values that are there, each parsed; `line` is the row's line number.

    Raises:
        InputFileError: the file cannot be read, or has none of the columns. RecordError: a value is not what its
            column holds; file, line and column are named.
    """
    rows = _json_rows(path) if path.suffix.lower() in (".jsonl", ".json", ".ndjson") else _csv_rows(path)
    known = False
    for number, raw in rows:
        known = known or any(name in COLUMNS for name in raw)
        row = {name: _cell(path, number, name, value) for name, value in raw.items() if name in COLUMNS and value != ""}
        yield {"line": number, **row}
    if not known:
        raise InputFileError(
            f"{str(path)!r} has no column that is understood.",
            hint=f"Known: {', '.join(COLUMNS)}; see docs/protocol.md.",
        )


def _cell(path: Path, number: int, name: str, value: str) -> Any:
    try:
        return COLUMNS[name](value)
    except ValueError as error:
        why = str(error) if str(error).startswith("it must") else "it must be a number"
        raise RecordError(f"{str(path)!r}, line {number}, column {name!r}: {value!r} is wrong: {why}.") from error


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    lines = (line for _, line in iter_lines(path))
    reader = csv.DictReader(lines, strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise RecordError(
                    f"{str(path)!r}, line {reader.line_num}: the row has not as many cells as the header."
                )
            yield reader.line_num, {name.strip(): value.strip() for name, value in row.items()}
    except csv.Error as error:
        raise InputFileError(f"{str(path)!r}, line {reader.line_num} is not CSV: {error}.") from error


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in iter_lines(path):
        try:
            value = loads(line)
        except ValueError as error:
            raise InputFileError(f"{str(path)!r}, line {number} is not JSON: {error}.") from error
        if not isinstance(value, dict):
            raise RecordError(f"{str(path)!r}, line {number} is not a JSON object.")
        yield number, {name: _cell_text(item) for name, item in value.items() if item is not None}


def _cell_text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value)
