"""`katha bench calibrate`: everything that a file of people's judgments has the columns for (Tables 22, 37 to 39)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from katha.errors import RecordError
from katha.eval_bridge.people import agreement as c
from katha.eval_bridge.people.files import Judgment, read_judgments
from katha.eval_bridge.scoring.scores import intervals
from katha.eval_bridge.scoring.statistics import averages, replicates
from katha.schema import CONDITIONS, DIMENSIONS
from katha.schema.scores import (
    Calibration,
    HumanRecoverability,
    LabelAgreement,
    PreferenceTest,
    RankAgreement,
    RaterAgreement,
)

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
    found, notes = _sections(path, rows, [name for name, _, _ in _SECTIONS], resamples, seed)
    if not found:
        wanted = "; ".join(", ".join(columns) for _, columns, _ in _SECTIONS)
        raise RecordError(f"{str(path)!r}: no row has all columns of any kind of judgment.", hint=f"Give {wanted}.")
    return Calibration.model_validate({"rows": len(rows), "notes": notes, **found})


def board_sections(path: Path, rows: Sequence[Judgment], resamples: int, seed: int) -> dict[str, object]:
    """Return the `BOARD_SECTIONS` of judgments that are all about one method's boards, as JSON; None for what they
    do not judge.

    Raises:
        RecordError: a rater judged the same thing twice.
    """
    found, _ = _sections(path, rows, BOARD_SECTIONS, resamples, seed)
    return {name: _plain(found.get(name)) for name in BOARD_SECTIONS}


def _plain(section: Section | None) -> object:
    return section.model_dump(mode="json") if isinstance(section, BaseModel) else section


def _sections(
    path: Path, rows: Sequence[Judgment], names: Sequence[str], resamples: int, seed: int
) -> tuple[dict[str, Section], list[str]]:
    """The sections of these names that `rows` have the columns for, and what has to be said about them."""
    found: dict[str, Section] = {}
    notes: list[str] = []
    for name, columns, make in _SECTIONS:
        own = [row for row in rows if all(column in row for column in columns)]
        if own and name in names:
            _refuse_twins(path, own, name)
            found[name], told = make(own, resamples, seed)
            notes += told
    return found, notes


_IDENTITY = {
    "labels": ("rater", "story_id"),
    "moral": ("rater", "method", "story_id"),
    "ncs": ("rater", "method", "story_id"),
    "mas": ("rater", "method", "story_id"),
    "ees": ("rater", "method", "story_id"),
    "preference": ("rater", "story_id", "criterion"),
    "recoverability": ("rater", "method", "story_id", "question_id", "condition"),
}


def _refuse_twins(path: Path, rows: Sequence[Judgment], name: str) -> None:
    seen: dict[tuple[Any, ...], int] = {}
    keys = _IDENTITY.get(name, ())
    for row in rows:
        key = tuple(row.get(column) for column in keys)
        if key and key in seen and "rater" in row:
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
    judge, human = [row["judge_score"] for row in rows], [row["human_score"] for row in rows]
    rank, pairs = c.rank_correlation(judge, human), c.pairwise_agreement(judge, human)
    notes = ["One side is constant, so spearman is null."] if rank is None else []
    return RankAgreement(n=len(rows), spearman=rank, pairwise_agreement=pairs), notes


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
    given: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        given[row.get("criterion", "overall")].append(row["preference"])
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


_SECTIONS: tuple[tuple[str, tuple[str, ...], Maker], ...] = (
    ("judge_labels", ("judge", "human"), _labels_of_judges),
    ("judge_scores", ("judge_score", "human_score"), _scores_of_judges),
    ("labels", ("rater", "story_id", "label"), _labels),
    ("moral", ("target", "top1"), _moral),
    *((name, ("rater", "story_id", name), _ratings(name)) for name in _RATINGS),
    ("preference", ("preference",), _preference),
    ("recoverability", ("story_id", "question_id", "question_type", "condition", "right"), _recoverability),
)
