"""People's judgments from plain CSV or JSON Lines, and everything that a file of them has the columns for (Tables 22,
37 to 39): `katha bench calibrate`. One row is one judgment; its columns say what it is about."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.people import agreement as c
from katha.eval_bridge.scoring.scores import intervals
from katha.eval_bridge.scoring.statistics import averages, replicates
from katha.jsonio import iter_lines, loads
from katha.schema import CONDITIONS, DIMENSIONS, MORAL_LABELS
from katha.schema.scores import (
    Calibration,
    HumanRecoverability,
    LabelAgreement,
    PreferenceTest,
    RaterAgreement,
)

# Reading: every cell is parsed as its column says.

Judgment = Mapping[str, Any]
"""One row: the values of the columns of `COLUMNS` that it fills in, and `line`."""

T = TypeVar("T")
_CONFIDENCE = {"low": 1 / 6, "medium": 1 / 2, "high": 5 / 6}
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
    return _CONFIDENCE[value.casefold()] if value.casefold() in _CONFIDENCE else _number(0.0, 1.0)(value)


COLUMNS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("rater", "story_id", "question_id"), str),
    "question_type": _among(*DIMENSIONS),
    "condition": _among(*CONDITIONS),
    "right": _word(_TRUTH, "right or wrong (1 or 0, true or false)"),
    "label": str,
    "target": _among(*MORAL_LABELS),
    **dict.fromkeys(("top1", "top2", "top3"), _among(*MORAL_LABELS, "unclear")),
    **dict.fromkeys(("ncs", "mas", "ees"), _number(1, 5, whole=True)),
    "preference": _number(-2, 2, whole=True),
    **dict.fromkeys(("criterion", "human", "judge"), str),
    "confidence": _confidence,
    **dict.fromkeys(("human_score", "judge_score"), _number()),
    "method": str,
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


# Reporting: a section for each kind of judgment that is there.

Section = BaseModel | dict[str, PreferenceTest]
Made = tuple[Section, list[str]]
"""A section, and what has to be said about it."""
Maker = Callable[[Sequence[Judgment], int, int], Made]
_RATINGS = ("ncs", "mas", "ees")
BOARD_SECTIONS = ("recoverability", "moral", *_RATINGS)
"""What people can say about one method's boards, without a second method or a judge beside it."""


def calibrate(path: Path, resamples: int = 10_000, seed: int = 42) -> Calibration:
    """Return a section for each kind of judgment in the file.

    - `human`, `judge` (labels), `confidence`: agreement and ECE; `human_score`, `judge_score`: rank correlation and
      pairwise agreement.
    - `label` by `rater` and `story_id`: Fleiss' kappa and Krippendorff's nominal alpha.
    - `target`, `top1`, `top2`, `top3`: HMR@1 and HMR@3.
    - `ncs`, `mas`, `ees`: mean, standard deviation, interval, ordinal alpha. `preference` by `criterion`: F.7's test.
    - `question_id`, `question_type`, `condition`, `right`: human recoverability and STG.

    Raises:
        InputFileError, RecordError: see `read_judgments`; or a rater judged the same thing twice; or nothing fits.
    """
    rows = list(read_judgments(path))
    found, notes = _sections(path, rows, list(_SECTIONS), resamples, seed)
    if not found:
        wanted = "; ".join(", ".join(columns) for columns, _, _ in _SECTIONS.values())
        raise RecordError(f"{str(path)!r}: no row has all columns of any kind of judgment.", hint=f"Give {wanted}.")
    return Calibration.model_validate({"rows": len(rows), "notes": notes, **found})


def board_sections(path: Path, rows: Sequence[Judgment], resamples: int, seed: int) -> dict[str, object]:
    """Return the `BOARD_SECTIONS` of judgments that are all about one method's boards, as JSON; None for what they
    do not judge.

    Raises:
        RecordError: a rater judged the same thing twice.
    """
    found, _ = _sections(path, rows, BOARD_SECTIONS, resamples, seed)
    return dict.fromkeys(BOARD_SECTIONS) | {
        name: section.model_dump(mode="json") if isinstance(section, BaseModel) else section
        for name, section in found.items()
    }


def _sections(
    path: Path, rows: Sequence[Judgment], names: Sequence[str], resamples: int, seed: int
) -> tuple[dict[str, Section], list[str]]:
    """The sections of these names that `rows` have the columns for, and what has to be said about them."""
    found: dict[str, Section] = {}
    notes: list[str] = []
    for name, (columns, identity, make) in _SECTIONS.items():
        own = [row for row in rows if all(column in row for column in columns)]
        if own and name in names:
            _refuse_twins(path, own, identity)
            found[name], told = make(own, resamples, seed)
            notes += told
    return found, notes


def _refuse_twins(path: Path, rows: Sequence[Judgment], identity: Sequence[str]) -> None:
    seen: dict[tuple[Any, ...], int] = {}
    for row in rows if identity else ():
        key = tuple(row.get(column) for column in identity)
        if key in seen and "rater" in row:
            raise RecordError(
                f"{str(path)!r}, line {row['line']}: repeats line {seen[key]} ({', '.join(map(str, key))})."
            )
        seen[key] = row["line"]


def _labels_of_judges(rows: Sequence[Judgment], resamples: int, seed: int) -> Made:
    value = c.agreement([row["judge"] for row in rows], [row["human"] for row in rows])
    sure = [row for row in rows if "confidence" in row]
    ece = c.calibration_error([row["confidence"] for row in sure], [row["judge"] == row["human"] for row in sure])
    found = LabelAgreement(n=len(rows), agreement=None if value is None else 100.0 * value, ece=ece)
    return found, [] if sure else ["No confidence is given, so ece is null."]


def _scores_of_judges(rows: Sequence[Judgment], resamples: int, seed: int) -> Made:
    found = c.rank_agreement([row["judge_score"] for row in rows], [row["human_score"] for row in rows])
    return found, ["One side is constant, so spearman is null."] if found.spearman is None else []


def _alpha(rows: Iterable[Judgment], column: str, level: c.Level) -> float | None:
    """Krippendorff's alpha of a column, by rater and story."""
    table: dict[str, dict[str, object]] = defaultdict(dict)
    for row in rows:
        table[row["rater"]][row["story_id"]] = row[column]
    return c.krippendorff_alpha(table, level)


def _labels(rows: Sequence[Judgment], resamples: int, seed: int) -> Made:
    given = c.by_key(rows, "story_id", "label")
    even = len({len(labels) for labels in given.values()}) == 1
    note = "Stories have different numbers of labels, so fleiss_kappa is null; alpha takes missing labels."
    kappa = c.fleiss_kappa(given) if even else None
    found = RaterAgreement(n=len(given), fleiss_kappa=kappa, krippendorff_alpha=_alpha(rows, "label", "nominal"))
    return found, [] if even else [note]


def _moral(rows: Sequence[Judgment], resamples: int, seed: int) -> Made:
    choices = [(row["target"], [row[name] for name in ("top1", "top2", "top3") if name in row]) for row in rows]
    short = sum(len(chosen) < 3 for _, chosen in choices)
    notes = [f"{short} rows name fewer than three labels; HMR@3 takes those that are there."] if short else []
    return c.moral_recoverability(choices), notes


def _ratings(column: str) -> Maker:
    def section(rows: Sequence[Judgment], resamples: int, seed: int) -> Made:
        values = c.by_key(rows, "story_id", column)
        return c.rating(values, resamples, seed, _alpha(rows, column, "ordinal")), []

    return section


def _preference(rows: Sequence[Judgment], resamples: int, seed: int) -> Made:
    given = c.by_key(({"criterion": "overall", **row} for row in rows), "criterion", "preference")
    return {name: c.preference_test(values, len(given)) for name, values in sorted(given.items())}, []


def _recoverability(rows: Sequence[Judgment], resamples: int, seed: int) -> Made:
    """Eqs. 56 to 59: the mean over raters, then questions, then dimensions, on the questions that most raters get
    right under text and image together (ties are wrong)."""
    cells: dict[tuple[str, str], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    kinds: dict[tuple[str, str], str] = {}
    for row in rows:
        key = (row["story_id"], row["question_id"])
        if kinds.setdefault(key, row["question_type"]) != row["question_type"]:
            raise RecordError(f"Line {row['line']}: question {key[1]!r} has two types.")
        cells[key][row["condition"]].append(row["right"])
    whole = {key: given for key, given in cells.items() if all(name in given for name in CONDITIONS)}
    valid = {key for key, given in whole.items() if 2 * sum(given["text+image"]) > len(given["text+image"])}
    stories = sorted({story for story, _ in cells})
    counts = np.zeros((len(stories), len(DIMENSIONS), 1 + len(CONDITIONS)))
    for key in sorted(valid):
        at = (stories.index(key[0]), DIMENSIONS.index(kinds[key]))
        counts[at] += [1.0, *(float(np.mean(whole[key][name])) for name in CONDITIONS)]
    text, image, both = (None if np.isnan(value) else 100.0 * float(value) for value in averages(counts.sum(axis=0)))
    enough = len(counts) > 1 and resamples and text is not None
    found = HumanRecoverability(
        n_questions=len(cells),
        n_valid=len(valid),
        ambiguity_rate=100.0 * (len(whole) - len(valid)) / len(whole) if whole else None,
        text=text,
        image=image,
        text_image=both,
        stg=text - image if text is not None and image is not None else None,
        ci95=intervals(replicates(counts[None], resamples, seed)[:, 0] if enough else None),
        gaps={
            name: None if not total[0] else 100.0 * float(total[1] - total[2]) / float(total[0])
            for name, total in zip(DIMENSIONS, counts.sum(axis=0), strict=True)
        },
    )
    lacking = len(cells) - len(whole)
    return found, [f"{lacking} questions lack a condition and are left out."] if lacking else []


_BOARD = ("rater", "method", "story_id")
_SECTIONS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Maker]] = {
    "judge_labels": (("judge", "human"), (), _labels_of_judges),
    "judge_scores": (("judge_score", "human_score"), (), _scores_of_judges),
    "labels": (("rater", "story_id", "label"), ("rater", "story_id"), _labels),
    "moral": (("target", "top1"), _BOARD, _moral),
    **{name: (("rater", "story_id", name), _BOARD, _ratings(name)) for name in _RATINGS},
    "preference": (("preference",), ("rater", "story_id", "criterion"), _preference),
    "recoverability": (
        ("story_id", "question_id", "question_type", "condition", "right"),
        (*_BOARD, "question_id", "condition"),
        _recoverability,
    ),
}
"""What a section needs of a row, what a rater may judge once only (nothing: no such rule), and who makes it."""
