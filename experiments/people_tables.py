"""The tables of a study with people, to be passed on as CSV and LaTeX (Tables 37 to 39, 49 and 50)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from katha.schema import CONDITIONS
from katha.schema.people import BoardJudgments, PeopleScores, PreferencePair, RaterAgreement, Rating
from katha.schema.scores import Interval
from katha.tables import Cell, Column, DataTable, Estimate

_RATED = {"ncs": "NCS", "mas": "MAS", "ees": "EES", "visual": "Visual"}
_BOTH = "Intervals hold for other people and other stories."


def people_tables(scores: PeopleScores) -> list[DataTable]:
    """Return the tables that the scores have numbers for; methods are rows of their own, never pooled."""
    methods: Mapping[str, BoardJudgments] = scores.methods or {"all boards": scores}
    made = [*_boards(methods), *_criteria(methods), *_agreement(methods), *_judges(methods), *_comparisons(scores)]
    return made + [_preferences(pair, number) for number, pair in enumerate(scores.preferences or (), 1)]


def _boards(methods: Mapping[str, BoardJudgments]) -> Iterator[DataTable]:
    rows = []
    for name, own in methods.items():
        seen = own.recoverability
        cells: list[Cell] = [name]
        cells += (
            [Estimate(getattr(seen, key), getattr(seen.ci95_both, key)) for key in ("text", "image", "stg")]
            if (seen is not None)
            else [None] * 3
        )
        cells += [own.moral.hmr1, own.moral.hmr3] if own.moral is not None else [None, None]
        rows.append((*cells, *(_mean(getattr(own, key)) for key in _RATED)))
    if any(cell is not None for row in rows for cell in row[1:]):
        columns = [
            Column(heading="Boards"),
            Column(heading="Text"),
            Column(heading="Image", better="higher"),
            Column(heading="STG", better="lower"),
            *(Column(heading=name, better="higher") for name in ("HMR@1", "HMR@3")),
            *(Column(heading=name, digits=2, better="higher") for name in _RATED.values()),
        ]
        title = "What people recover from the boards, and how they rate them"
        yield DataTable(name="people", title=title, columns=tuple(columns), rows=tuple(rows), notes=(_BOTH,))


def _mean(rating: Rating | None) -> Estimate | None:
    return Estimate(rating.mean, rating.ci95_raters) if rating is not None else None


def _criteria(methods: Mapping[str, BoardJudgments]) -> Iterator[DataTable]:
    rated = {name: own.criteria for name, own in methods.items() if own.criteria}
    if rated:
        asked = list(dict.fromkeys(key for own in rated.values() for key in own))
        rows = [(name, *(_mean(own.get(key)) for key in asked)) for name, own in rated.items()]
        columns = (Column(heading="Boards"), *(Column(heading=key, digits=2, better="higher") for key in asked))
        title = "Mean ratings by criterion, 1 to 5, with intervals over participants"
        yield DataTable(name="people-criteria", title=title, columns=columns, rows=tuple(rows))


def _agreement(methods: Mapping[str, BoardJudgments]) -> Iterator[DataTable]:
    rows: list[tuple[Cell, ...]] = []
    for name, own in methods.items():
        rows += [_agreed(name, "labels", own.labels)] if own.labels is not None else []
        told = own.labels_by_condition or {}
        rows += [_agreed(name, f"labels, {item}", told[item]) for item in CONDITIONS if item in told]
        ratings = {word: getattr(own, key) for key, word in _RATED.items()} | dict(own.criteria or {})
        rows += [
            (name, word, item.n, None, item.krippendorff_alpha) for word, item in ratings.items() if item is not None
        ]
    if rows:
        heads = [Column(heading=text) for text in ("Boards", "What", "Judgments")]
        heads += [Column(heading=text, digits=2) for text in ("Fleiss' kappa", "Krippendorff's alpha")]
        yield DataTable(
            name="people-agreement",
            title="Agreement among participants",
            columns=tuple(heads),
            rows=tuple(rows),
            notes=("Alpha is nominal for labels and ordinal for ratings.",),
        )


def _agreed(name: str, what: str, row: RaterAgreement) -> tuple[Cell, ...]:
    return (name, what, row.n, row.fleiss_kappa, row.krippendorff_alpha)


def _judges(methods: Mapping[str, BoardJudgments]) -> Iterator[DataTable]:
    rows = [
        (
            name,
            judge,
            *(row.agreement[item].agreement if item in row.agreement else None for item in CONDITIONS),
            row.verdicts.get("image"),
            row.image.spearman,
            row.agreement["image"].ece if "image" in row.agreement else None,
        )
        for name, own in methods.items()
        for judge, row in (own.judges or {}).items()
    ]
    if rows:
        heads = [Column(heading="Boards"), Column(heading="Judge")]
        heads += [Column(heading=f"Agreement, {item}", better="higher") for item in CONDITIONS]
        heads += [Column(heading="Same verdict, image", better="higher")]
        heads += [
            Column(heading="Spearman", digits=2, better="higher"),
            Column(heading="ECE", digits=2, better="lower"),
        ]
        title = "Judges beside people"
        yield DataTable(name="people-judges", title=title, columns=tuple(heads), rows=tuple(rows))


def _comparisons(scores: PeopleScores) -> Iterator[DataTable]:
    rows = [
        (
            row.a,
            row.b,
            row.n_stories,
            row.n_questions,
            Estimate(row.difference, row.ci95_both),
            row.p_corrected,
            row.reading,
        )
        for row in scores.comparisons or ()
    ]
    if rows:
        columns = (
            *(Column(heading=text) for text in ("A", "B", "Stories", "Questions")),
            Column(heading="Human STG, A - B", signed=True),
            Column(heading="p, corrected", digits=3),
            Column(heading="Reading"),
        )
        title = "Human STG of two methods on the questions valid for both"
        yield DataTable(
            name="people-comparisons", title=title, columns=columns, rows=tuple(rows), notes=(_BOTH,), best=False
        )


def _preferences(pair: PreferencePair, number: int) -> DataTable:
    rows: list[tuple[Cell, ...]] = []
    for part in (pair.criteria, pair.dimensions, pair.groups):
        for name, row in part.items():
            span: Interval | None = row.ci95_both
            numbers = (row.p_corrected, row.rank_biserial, row.krippendorff_alpha)
            rows.append((name, row.n, Estimate(row.mean, span), *numbers, "preferred" if row.shown else ""))
    columns = (
        Column(heading="Criterion"),
        Column(heading="Judgments"),
        Column(heading="Mean preference", digits=2, signed=True),
        Column(heading="p, corrected", digits=3),
        Column(heading="Rank-biserial", digits=2, signed=True),
        Column(heading="Krippendorff's alpha", digits=2),
        Column(heading="Shown"),
    )
    return DataTable(
        name=f"people-preferences-{number}",
        title=f"Preference for {pair.a} (positive) against {pair.b} ({pair.task})",
        columns=columns,
        rows=tuple(rows),
        notes=(_BOTH,),
        best=False,
    )
