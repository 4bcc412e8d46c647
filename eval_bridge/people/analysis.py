"""Everything that a set of people's judgments has the columns for (Tables 22, 37 to 39): the one analysis under `katha
people score`, `katha bench calibrate` and the human columns of an ablation. Methods are never pooled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from katha.errors import RecordError
from katha.eval_bridge.people import agreement as c
from katha.eval_bridge.people.judgments import Judgment, read_judgments
from katha.eval_bridge.people.pictures import picture_choices
from katha.eval_bridge.people.preferences import by_criterion, preference_pair
from katha.eval_bridge.people.recoverability import RaterAnswers, compare, conditions_of, recoverability
from katha.schema.people import BoardJudgments, Calibration, LabelAgreement, PreferenceTest, RaterAgreement, Rating

BOARD_SECTIONS = ("recoverability", "moral", "ncs", "mas", "ees", "visual")
"""What the human columns of an ablation hold."""
_SHARED = ("text", "none")
"""Conditions without pictures, which no method has a part in."""
Section = BaseModel | Mapping[str, BaseModel]


@dataclass(frozen=True)
class Analysis:
    """How judgments are analysed. where: what a refusal names. notes: what has to be said about the sections made."""

    where: str
    notes: list[str] = field(default_factory=list)

    def whole(self, rows: Sequence[Judgment], *, always: bool = False) -> Calibration:
        """Return every section; with several methods (or `always`) those of one method's boards by method.

        Raises:
            RecordError: a rater judged the same thing twice, or nothing fits.
        """
        names = sorted({row["method"] for row in rows if "method" in row and "against" not in row})
        apart = always or len(names) > 1
        everyone = [row for row in rows if "method" not in row] if apart else rows
        # What was said about the text alone, or without evidence, holds for every method; it is not a section then.
        shared = [row for row in everyone if row.get("condition") in _SHARED] if apart and names else []
        rest = [row for row in everyone if not shared or row.get("condition") not in _SHARED]
        found: dict[str, object] = dict(self.sections([row for row in rest if "against" not in row]))
        if apart:
            found["methods"] = {name: self._method(name, shared, rows) for name in names}
        pairs = self._pairs(rows)
        compared = self._comparisons(rows)
        chosen = self._pictures(rows)
        found |= ({"preferences": pairs} if pairs else {}) | ({"comparisons": compared} if compared else {})
        found |= {"pictures": chosen} if chosen else {}
        if not any(found.values()):
            wanted = "; ".join(", ".join(columns) for columns, _, _ in _SECTIONS.values())
            raise RecordError(f"{self.where}: no row has all columns of any kind of judgment.", hint=f"Give {wanted}.")
        return Calibration.model_validate({"rows": len(rows), "notes": self.notes, **found})

    def sections(self, rows: Sequence[Judgment], names: Iterable[str] | None = None) -> dict[str, Section]:
        """Return the sections of these names (all) that `rows`, all about one method, have the columns for."""
        found: dict[str, Section] = {}
        for name, (columns, identity, make) in _SECTIONS.items():
            own = [row for row in rows if all(column in row for column in columns)]
            if own and (names is None or name in names):
                self._refuse_twins(own, identity)
                found[name] = make(own, self)
        return found

    def _method(self, name: str, shared: Sequence[Judgment], rows: Sequence[Judgment]) -> BoardJudgments:
        own = [row for row in rows if row.get("method") == name and "against" not in row]
        told = replace(self, notes=[])
        found = told.sections([*shared, *own])
        self.notes.extend(f"{name}: {note}" for note in told.notes)
        return BoardJudgments.model_validate(found)

    def _pairs(self, rows: Sequence[Judgment]) -> list[Any]:
        """Return the comparisons of two methods' boards, told apart by task."""
        given: dict[tuple[str, str, str], list[Judgment]] = defaultdict(list)
        for row in rows:
            if "preference" in row and {"method", "against"} <= row.keys():
                given[row.get("task", "pairs"), row["method"], row["against"]].append(row)
        for task, a, b in given:
            if (task, b, a) in given and a != b:
                raise RecordError(
                    f"{self.where}: {a!r} is preferred against {b!r}, and {b!r} against {a!r}.",
                    hint="Name the two always in one order, and turn the sign of the preference.",
                )
        for own in given.values():
            self._refuse_twins(own, _PREFERENCE)
        return [preference_pair((a, b), task, own) for (task, a, b), own in sorted(given.items())]

    def _comparisons(self, rows: Sequence[Judgment]) -> list[Any]:
        columns, _, _ = _SECTIONS["recoverability"]
        own = [row for row in rows if all(column in row for column in columns)]
        if len({row["method"] for row in own if "method" in row}) < 2:
            return []
        homeless = [row["line"] for row in own if "method" not in row and row["condition"] not in _SHARED]
        if homeless:
            raise RecordError(
                f"{self.where}, line {homeless[0]}: it does not say which method's boards it is about.",
                hint="Give the column method; only judgments without pictures can be without it.",
            )
        return compare(RaterAnswers.of(own))

    def _pictures(self, rows: Sequence[Judgment]) -> list[Any]:
        """Return how often each method's pictures were chosen over each other's."""
        given: dict[tuple[str, str], list[Judgment]] = defaultdict(list)
        for row in rows:
            if {"picture", "method", "against", "scene", "story_id", "rater"} <= row.keys():
                given[row["method"], row["against"]].append(row)
        for own in given.values():
            self._refuse_twins(own, ("rater", "story_id", "scene"))
        return [picture_choices(pair, own) for pair, own in sorted(given.items())]

    def _refuse_twins(self, rows: Sequence[Judgment], identity: Sequence[str]) -> None:
        seen: dict[tuple[Any, ...], int] = {}
        for row in rows if identity else ():
            key = tuple(row.get(column) for column in identity)
            if key in seen and "rater" in row:
                told = ", ".join(str(value) for value in key if value is not None)
                raise RecordError(f"{self.where}, line {row['line']}: repeats line {seen[key]} ({told}).")
            seen[key] = row["line"]


def calibrate(path: Path) -> Calibration:
    """Return a section for each kind of judgment in the file (see docs/judgments.md, section 9).

    Raises:
        InputFileError, RecordError: see `read_judgments`; or a rater judged the same thing twice; or nothing fits.
    """
    return Analysis(repr(str(path))).whole(list(read_judgments(path)))


def board_sections(path: Path, rows: Sequence[Judgment]) -> dict[str, object]:
    """Return the `BOARD_SECTIONS` of judgments that are all about one method's boards, as JSON; None for what they
    do not judge.

    Raises:
        RecordError: a rater judged the same thing twice.
    """
    found = Analysis(repr(str(path))).sections(rows, BOARD_SECTIONS)
    return dict.fromkeys(BOARD_SECTIONS) | {
        name: section.model_dump(mode="json") if isinstance(section, BaseModel) else section
        for name, section in found.items()
    }


# One section each.


def _labels_of_judges(rows: Sequence[Judgment], by: Analysis) -> Section:
    value = c.agreement([row["judge"] for row in rows], [row["human"] for row in rows])
    sure = [row for row in rows if "confidence" in row]
    ece = c.calibration_error([row["confidence"] for row in sure], [row["judge"] == row["human"] for row in sure])
    if not sure:
        by.notes.append("No confidence is given, so ece is null.")
    return LabelAgreement(n=len(rows), agreement=None if value is None else 100.0 * value, ece=ece)


def _scores_of_judges(rows: Sequence[Judgment], by: Analysis) -> Section:
    found = c.rank_agreement([row["judge_score"] for row in rows], [row["human_score"] for row in rows])
    if found.spearman is None:
        by.notes.append("One side is constant, so spearman is null.")
    return found


def _scores_within_raters(rows: Sequence[Judgment], by: Analysis) -> Section:
    """Judges beside what each rater says in units of its own spread (VCMS, App. D), averaged over an item's raters."""
    given: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        given[row["rater"]].append(row["human_score"])
    spread = {name: (float(np.mean(own)), float(np.std(own))) for name, own in given.items()}
    flat = sorted(name for name, (_, width) in spread.items() if width == 0.0)
    if flat:
        by.notes.append(f"{', '.join(flat)}: one score for everything, so that it ranks nothing and is left out.")
    judged: dict[str, list[float]] = defaultdict(list)
    said: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        mean, width = spread[row["rater"]]
        if width > 0.0:
            item = _item(row) or str(row["line"])
            said[item].append((row["human_score"] - mean) / width)
            judged[item].append(row["judge_score"])
    items = list(said)
    return c.rank_agreement(
        [float(np.mean(judged[name])) for name in items], [float(np.mean(said[name])) for name in items]
    )


def _item(row: Judgment) -> str:
    return " ".join(str(row[name]) for name in ("method", "story_id", "question_id", "condition") if name in row)


def _labels(rows: Sequence[Judgment], by: Analysis) -> RaterAgreement:
    """Fleiss' kappa takes items of as many labels each: the most frequent number from two on."""
    given: dict[str, list[str]] = defaultdict(list)
    table: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        given[_item(row)].append(row["label"])
        table[row["rater"]][_item(row)] = row["label"]
    sizes = Counter(len(labels) for labels in given.values() if len(labels) > 1)
    most = max(sizes, key=lambda size: (sizes[size], size), default=0)
    kept = {item: labels for item, labels in given.items() if len(labels) == most}
    lost = len(given) - len(kept)
    if lost:
        by.notes.append(
            f"{lost} of {len(given)} labelled items have not {most or 'two'} labels each, as most have: "
            "fleiss_kappa is without them; alpha takes missing labels."
        )
    return RaterAgreement(
        n=len(given),
        fleiss_kappa=c.fleiss_kappa(kept),
        krippendorff_alpha=c.krippendorff_alpha(table, "nominal"),
        n_kappa=len(kept),
    )


def _labels_by_condition(rows: Sequence[Judgment], by: Analysis) -> Section:
    quiet = replace(by, notes=[])
    return {name: _labels([row for row in rows if row["condition"] == name], quiet) for name in conditions_of(rows)}


def _moral(rows: Sequence[Judgment], by: Analysis) -> Section:
    choices = [(row["target"], [row[name] for name in ("top1", "top2", "top3") if name in row]) for row in rows]
    short = sum(len(chosen) < 3 for _, chosen in choices)
    if short:
        by.notes.append(f"{short} rows name fewer than three labels; HMR@3 takes those that are there.")
    return c.moral_recoverability(choices)


def _rating(rows: Sequence[Judgment], column: str) -> Rating:
    return c.rating([(row["rater"], row["story_id"], row[column]) for row in rows])


def _ratings(column: str) -> Callable[[Sequence[Judgment], Analysis], Section]:
    return lambda rows, by: _rating(rows, column)


def _criteria(rows: Sequence[Judgment], by: Analysis) -> Section:
    names = sorted({row["criterion"] for row in rows}, key=lambda name: (len(name), name))
    return {name: _rating([row for row in rows if row["criterion"] == name], "rating") for name in names}


def _preference(rows: Sequence[Judgment], by: Analysis) -> Mapping[str, PreferenceTest]:
    return by_criterion(rows)


def _recoverability(rows: Sequence[Judgment], by: Analysis) -> Section:
    # All are about one method (and maybe several boards of it), so none is told apart.
    people = RaterAnswers.of([{name: value for name, value in row.items() if name != "method"} for row in rows])
    found, told = recoverability(people, 0)
    by.notes.extend(told)
    return found


_BOARD = ("rater", "method", "story_id")
_RATED = ("ncs", "mas", "ees", "visual", "identity", "environment", "aesthetics")
_PREFERENCE = ("rater", "story_id", "criterion", "method", "against", "task")
_LABEL = ("rater", "story_id", "label")
_ASKED = (*_BOARD, "question_id", "condition")
_SECTIONS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Sequence[Judgment], Analysis], Section]]] = {
    "judge_labels": (("judge", "human"), (), _labels_of_judges),
    "judge_scores": (("judge_score", "human_score"), (), _scores_of_judges),
    "judge_scores_within_raters": (("rater", "judge_score", "human_score"), (), _scores_within_raters),
    "labels": (_LABEL, _ASKED, _labels),
    "labels_by_condition": ((*_LABEL, "condition"), (), _labels_by_condition),
    "moral": (("target", "top1"), _BOARD, _moral),
    **{name: (("rater", "story_id", name), _BOARD, _ratings(name)) for name in _RATED},
    "criteria": (("rater", "story_id", "criterion", "rating"), (*_BOARD, "criterion"), _criteria),
    "preference": (("preference",), ("rater", "story_id", "criterion"), _preference),
    "recoverability": (("story_id", "question_id", "question_type", "condition", "right"), _ASKED, _recoverability),
}
"""Of each section: the columns it needs, the key that a rater may judge once (empty: no such rule), and its builder."""
