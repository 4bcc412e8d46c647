"""`katha bench calibrate`: everything that a file of people's judgments has the columns for (Tables 22, 37 to 39)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from katha.errors import RecordError
from katha.eval_bridge.people import agreement as c
from katha.eval_bridge.people.files import read_judgments
from katha.eval_bridge.scoring.statistics import averages, interval, replicates
from katha.schema import CONDITIONS, DIMENSIONS

Row = Mapping[str, Any]
_RATINGS = ("ncs", "mas", "ees")
BOARD_SECTIONS = ("recoverability", "moral", *_RATINGS)
"""What people can say about one method's boards, without a second method or a judge beside it."""


def calibrate(path: Path, resamples: int = 10_000, seed: int = 42) -> dict[str, Any]:
    """A section for each kind of judgment in the file.

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
    found: dict[str, Any] = {"rows": len(rows), "notes": []}
    for name, columns, section in _SECTIONS:
        own = [row for row in rows if all(column in row for column in columns)]
        if own:
            _refuse_twins(path, own, name)
            found[name] = section(own, resamples, seed)
            found["notes"] += found[name].pop("notes", [])
    if len(found) == 2:
        wanted = "; ".join(", ".join(columns) for _, columns, _ in _SECTIONS)
        raise RecordError(f"{str(path)!r}: no row has all columns of any kind of judgment.", hint=f"Give {wanted}.")
    return found


def board_sections(path: Path, rows: Sequence[Row], resamples: int, seed: int) -> dict[str, Any]:
    """The `BOARD_SECTIONS` of judgments that are all about one method's boards; None for what they do not judge.

    Raises:
        RecordError: a rater judged the same thing twice.
    """
    found: dict[str, Any] = dict.fromkeys(BOARD_SECTIONS)
    for name, columns, section in _SECTIONS:
        own = [row for row in rows if all(column in row for column in columns)]
        if own and name in found:
            _refuse_twins(path, own, name)
            found[name] = section(own, resamples, seed)
            found[name].pop("notes", None)
    return found


_IDENTITY = {
    "labels": ("rater", "story_id"),
    "moral": ("rater", "method", "story_id"),
    "ncs": ("rater", "method", "story_id"),
    "mas": ("rater", "method", "story_id"),
    "ees": ("rater", "method", "story_id"),
    "preference": ("rater", "story_id", "criterion"),
    "recoverability": ("rater", "method", "story_id", "question_id", "condition"),
}


def _refuse_twins(path: Path, rows: Sequence[Row], name: str) -> None:
    seen: dict[tuple[Any, ...], int] = {}
    keys = _IDENTITY.get(name, ())
    for row in rows:
        key = tuple(row.get(column) for column in keys)
        if key and key in seen and "rater" in row:
            raise RecordError(
                f"{str(path)!r}, line {row['line']}: repeats line {seen[key]} ({', '.join(map(str, key))})."
            )
        seen[key] = row["line"]


def _labels_of_judges(rows: Sequence[Row], resamples: int, seed: int) -> dict[str, Any]:
    judge, human = [row["judge"] for row in rows], [row["human"] for row in rows]
    value = c.agreement(judge, human)
    found: dict[str, Any] = {"n": len(rows), "agreement": None if value is None else 100.0 * value}
    sure = [row for row in rows if "confidence" in row]
    found["ece"] = c.calibration_error([row["confidence"] for row in sure], [r["judge"] == r["human"] for r in sure])
    found["notes"] = [] if sure else ["No confidence is given, so ece is null."]
    return found


def _scores_of_judges(rows: Sequence[Row], resamples: int, seed: int) -> dict[str, Any]:
    judge, human = [row["judge_score"] for row in rows], [row["human_score"] for row in rows]
    found = {
        "n": len(rows),
        "spearman": c.rank_correlation(judge, human),
        "pairwise_agreement": c.pairwise_agreement(judge, human),
    }
    missing = found["spearman"] is None
    return {**found, "notes": ["One side is constant, so spearman is null."] if missing else []}


def _ratings_by_rater(rows: Iterable[Row], column: str) -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in rows:
        table[row["rater"]][row["story_id"]] = row[column]
    return table


def _labels(rows: Sequence[Row], resamples: int, seed: int) -> dict[str, Any]:
    given = c.by_key(rows, "story_id", "label")
    even = len({len(labels) for labels in given.values()}) == 1
    alpha = c.krippendorff_alpha(_ratings_by_rater(rows, "label"), "nominal")
    kappa = c.fleiss_kappa(given) if even else None
    note = "Stories have different numbers of labels, so fleiss_kappa is null; alpha takes missing labels."
    return {"n": len(given), "fleiss_kappa": kappa, "krippendorff_alpha": alpha, "notes": [] if even else [note]}


def _moral(rows: Sequence[Row], resamples: int, seed: int) -> dict[str, Any]:
    choices = [(row["target"], [row[name] for name in ("top1", "top2", "top3") if name in row]) for row in rows]
    short = sum(len(chosen) < 3 for _, chosen in choices)
    notes = [f"{short} rows name fewer than three labels; HMR@3 takes those that are there."] if short else []
    return {**c.moral_recoverability(choices), "notes": notes}


def _ratings(column: str) -> Callable[[Sequence[Row], int, int], dict[str, Any]]:
    def section(rows: Sequence[Row], resamples: int, seed: int) -> dict[str, Any]:
        alpha = c.krippendorff_alpha(_ratings_by_rater(rows, column), "ordinal")
        return {**c.rating(c.by_key(rows, "story_id", column), resamples, seed), "krippendorff_alpha": alpha}

    return section


def _preference(rows: Sequence[Row], resamples: int, seed: int) -> dict[str, Any]:
    given: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        given[row.get("criterion", "overall")].append(row["preference"])
    return {name: c.preference_test(values, len(given)) for name, values in sorted(given.items())}


def _recoverability(rows: Sequence[Row], resamples: int, seed: int) -> dict[str, Any]:
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
    found = _human_block(counts, resamples, seed)
    dimensions = {
        name: None if not total[0] else 100.0 * float(total[1] - total[2]) / float(total[0])
        for name, total in zip(DIMENSIONS, counts.sum(axis=0), strict=True)
    }
    note = f"{len(cells) - len(whole)} questions lack a condition and are left out."
    return {
        "n_questions": len(cells),
        "n_valid": len(valid),
        "ambiguity_rate": 100.0 * (len(whole) - len(valid)) / len(whole) if whole else None,
        **found,
        "gaps": dimensions,
        "notes": [note] if len(whole) < len(cells) else [],
    }


def _human_block(counts: Any, resamples: int, seed: int) -> dict[str, Any]:
    text, image, both = (None if np.isnan(value) else 100.0 * float(value) for value in averages(counts.sum(axis=0)))
    ci95: dict[str, Any] = {"text": None, "image": None, "stg": None}
    if len(counts) > 1 and resamples and text is not None:
        drawn = replicates(counts[None], resamples, seed)[:, 0]
        ci95 = {
            "text": interval(drawn[:, 0]),
            "image": interval(drawn[:, 1]),
            "stg": interval(drawn[:, 0] - drawn[:, 1]),
        }
    stg = text - image if text is not None and image is not None else None
    return {"text": text, "image": image, "text_image": both, "stg": stg, "ci95": ci95}


_SECTIONS: tuple[tuple[str, tuple[str, ...], Callable[[Sequence[Row], int, int], dict[str, Any]]], ...] = (
    ("judge_labels", ("judge", "human"), _labels_of_judges),
    ("judge_scores", ("judge_score", "human_score"), _scores_of_judges),
    ("labels", ("rater", "story_id", "label"), _labels),
    ("moral", ("target", "top1"), _moral),
    *((name, ("rater", "story_id", name), _ratings(name)) for name in _RATINGS),
    ("preference", ("preference",), _preference),
    ("recoverability", ("story_id", "question_id", "question_type", "condition", "right"), _recoverability),
)
