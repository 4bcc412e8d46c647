"""The tables of studies as rows and columns, for CSV and LaTeX beside `table.json`, `tuning.json` and `people.json`."""

from __future__ import annotations

from katha.app.reports.data_tables import COMMON_NOTE, count, dagger, higher, lower, pairs_table, text
from katha.eval_bridge.scoring.gate import doubts
from katha.schema.people import HumanRecoverability, PeopleScores
from katha.schema.scores import RowDifference
from katha.schema.tables import AblationTable, CompareTable, HumanColumns, TuningResult
from katha.tables import Cell, Column, DataTable, NumberWithInterval

_CHANGE = Column(heading="Change of STG", signed=True)


def ablation_tables(table: AblationTable) -> list[DataTable]:
    """Return the rows of a suite, its comparisons, and what people say of the rows where they were asked."""
    made = [_ablation_rows(table), _ablation_pairs(table)]
    if any(row.human is not None for row in table.rows):
        made.append(_ablation_people(table))
    return made


def _ablation_rows(table: AblationTable) -> DataTable:
    rows: list[tuple[Cell, ...]] = []
    reliable = any(row.stg_reliability is not None for row in table.rows)
    for row in table.rows:
        shown = row.headline
        if shown is None:
            rows.append((row.mode, *[None] * (13 if reliable else 12)))
            continue
        rows.append(
            (
                *(
                    row.mode,
                    shown.text,
                    NumberWithInterval(shown.image, shown.image_ci95),
                    NumberWithInterval(shown.stg, shown.stg_ci95),
                ),
                *(NumberWithInterval(shown.delta_stg, shown.ci95), shown.p_corrected, shown.p_bootstrap_corrected),
                *(row.stg, row.raw.stg if row.raw is not None else None, shown.n, row.valid, row.scored, row.frames),
                *((row.stg_reliability,) if reliable else ()),
            )
        )
    return DataTable(
        name="table",
        title=table.about,
        columns=(
            *(
                text("Row"),
                higher("Text"),
                higher("Image"),
                lower("STG"),
                _CHANGE,
                count("p, Wilcoxon", 3),
            ),
            *(count("p, bootstrap", 3), lower("Own STG"), lower("Raw STG")),
            *(count(words, 0) for words in ("Common", "Valid", "Scored")),
            *(count("Frames", 2), *([higher("STG reliability", 2)] if reliable else [])),
        ),
        rows=tuple(rows),
        notes=(
            f"Change: against {table.baseline}; p corrected. {table.conclusion.text}",
            *doubts((row.mode, row.thin, row.inspect) for row in table.rows),
        ),
    )


def _ablation_pairs(table: AblationTable) -> DataTable:
    def numbers(row: RowDifference) -> tuple[Cell, ...]:
        tested = (row.p_corrected, row.p_bootstrap_corrected)
        return (row.n_stories, NumberWithInterval(row.difference, row.ci95), *tested, row.family)

    return DataTable(
        name="comparisons",
        title=f"Comparisons of the suite {table.suite}.",
        columns=(
            *(
                text("A"),
                text("B"),
                text("On"),
                count("Stories", 0),
                Column(heading="A minus B", signed=True),
            ),
            *(
                count("corrected, Wilcoxon", 4),
                count("corrected, bootstrap", 4),
                count("Family", 0),
            ),
        ),
        rows=tuple((row.a, row.b, row.what, *numbers(row.headline)) for row in table.comparisons),
    )


def _ablation_people(table: AblationTable) -> DataTable:
    def cells(own: HumanColumns | None, leakage: float | None) -> tuple[Cell, ...]:
        if own is None:
            return (None,) * 8
        local, score, agreed = own.localization, own.human_score, own.agreement
        return (
            NumberWithInterval(local.right, local.ci95) if local else None,
            score.spearman if score else None,
            leakage,
            agreed.agreement if agreed else None,
            agreed.false_accept if agreed else None,
            agreed.false_reject if agreed else None,
            NumberWithInterval(own.visual.mean, own.visual.ci95) if own.visual else None,
            NumberWithInterval(own.human_mean.mean, own.human_mean.ci95) if own.human_mean else None,
        )

    return DataTable(
        name="people",
        title=f"The suite {table.suite} beside people.",
        columns=(
            *(text("Row"), higher("Localization"), higher("Human corr.", 2), lower("Ambiguity leakage")),
            *(
                higher("Agreement"),
                lower("False accept"),
                lower("False reject"),
                higher("Visual", 2),
                higher("Human score", 2),
            ),
        ),
        rows=tuple((row.mode, *cells(row.human, row.ambiguity_leakage)) for row in table.rows),
    )


def compare_tables(table: CompareTable) -> list[DataTable]:
    """Return the methods of a comparison and their differences."""
    closed = [row.name for row in table.methods if row.closed]
    marked = dagger(table.comparisons, {row.name: row.common_valid_stg for row in table.methods}, closed)
    best = marked.method if marked is not None else None
    methods = DataTable(
        name="table",
        title="Methods on the same stories, plans and questions.",
        columns=(
            *(
                text(),
                text("Planner"),
                text("Renderer"),
                text("Mode"),
                count("Boards", 0),
                count("Frames"),
                lower("Invalid"),
            ),
            *(higher("Text"), higher("Image"), lower("STG"), lower("Own STG"), lower("Raw STG"), lower("Latent gap")),
            *(lower("Ambiguous"), count("Common", 0), count("Valid", 0), count("Scored", 0)),
        ),
        rows=tuple(
            (
                *(row.name, row.planner, row.renderer, row.mode, row.boards, row.frames, row.invalid_rate),
                *(
                    row.common_valid_text,
                    row.common_valid_image,
                    NumberWithInterval(row.common_valid_stg, row.common_valid_ci95, row.name == best),
                ),
                *(NumberWithInterval(row.filtered_stg, row.ci95), row.raw_stg, row.latent_gap, row.ambiguity_rate),
                *(row.n_common, row.n_valid, row.n_scored),
            )
            for row in table.methods
        ),
        notes=(
            COMMON_NOTE,
            *([marked.note] if marked is not None else []),
            *([f"Closed services, which are no baseline: {', '.join(closed)}."] if closed else []),
            *doubts((row.name, row.thin, row.inspect) for row in table.methods),
        ),
    )
    return [methods, *([pairs_table(table.comparisons)] if table.comparisons else [])]


def tuning_tables(found: TuningResult) -> list[DataTable]:
    """Return the setting that was chosen beside the one before it, and STG along each setting."""
    chosen = DataTable(
        name="setting",
        title="The setting that was chosen.",
        columns=(text("Setting"), count("Chosen", 3), count("Before", 3)),
        rows=tuple((name, float(value), float(found.default[name])) for name, value in found.setting.items()),
    )
    curve = DataTable(
        name="curve",
        title="STG along each setting, the others as chosen.",
        columns=(
            *(
                text("Setting"),
                count("Value", 3),
                text("Chosen"),
                lower("STG"),
                count("Repaired"),
            ),
            Column(heading="Against the choice", signed=True),
        ),
        rows=tuple(
            (
                *(name, float(point.value), "yes" if point.chosen else "", NumberWithInterval(point.stg, point.ci95)),
                *(point.repaired, NumberWithInterval(point.difference, point.difference_ci95)),
            )
            for name, points in found.curve.items()
            for point in points
        ),
        best=False,
    )
    return [chosen, curve]


# What people say (Tables 37 to 39 and 49 to 51), beside `people.json`.


_RATINGS = ("visual", "ncs", "mas", "ees")
_FROM_ZERO = ("identity", "environment", "aesthetics")


def people_tables(scores: PeopleScores) -> list[DataTable]:
    """Return ratings, human recoverability, preferences and judges beside people, as far as anybody judged them."""
    made = [
        _people_ratings(scores),
        _people_recoverability(scores),
        _people_comparisons(scores),
        _people_agreement(scores),
        _people_preferences(scores),
        _people_pictures(scores),
        _people_judges(scores),
    ]
    return [table for table in made if table.rows]


def _people_ratings(scores: PeopleScores) -> DataTable:
    rows: list[tuple[Cell, ...]] = []
    for method, own in (scores.methods or {"": scores}).items():
        named = {name.upper() if name != "visual" else "Visual": getattr(own, name) for name in _RATINGS}
        named |= {f"{name.capitalize()} (0 to 4)": getattr(own, name) for name in _FROM_ZERO}
        for name, row in {**named, **(own.criteria or {})}.items():
            if row is not None:
                told = (NumberWithInterval(row.mean, row.ci95), row.sd, row.krippendorff_alpha, row.n)
                rows.append((method, name, *told))
    return DataTable(
        name="ratings",
        title="Ratings from 1 to 5.",
        columns=(
            *(Column(heading="Method"), Column(heading="Criterion"), Column(heading="Mean", digits=2)),
            *(Column(heading="SD", digits=2), Column(heading="Alpha", digits=2), count("n", 0)),
        ),
        rows=tuple(rows),
        notes=("Intervals are over stories.",),
    )


def _people_pictures(scores: PeopleScores) -> DataTable:
    return DataTable(
        name="pictures",
        title="Which method's picture of a scene people chose.",
        columns=(
            *(Column(heading="Chosen"), Column(heading="Over"), higher("Win rate"), Column(heading="Chance")),
            *(Column(heading="p", digits=4), Column(heading="Kappa", digits=3), count("Undecided", 0)),
            *(count("Responses", 0), count("Pairs", 0)),
        ),
        rows=tuple(
            (
                *(row.a, row.b, NumberWithInterval(row.rate, row.ci95), row.chance, row.p, row.kappa),
                *(row.undecided, row.responses, row.pairs),
            )
            for row in scores.pictures or ()
        ),
        notes=("p is of the one-sided binomial test, which takes responses to be independent.",),
    )


def _people_recoverability(scores: PeopleScores) -> DataTable:
    found = {name: own.recoverability for name, own in (scores.methods or {"": scores}).items()}
    guessed = any(row is not None and row.none is not None for row in found.values())
    gains = (Column(heading="No evidence"), higher("Image gain")) if guessed else ()

    def told(name: str, row: HumanRecoverability) -> tuple[Cell, ...]:
        spans = row.ci95_both
        added = (
            (NumberWithInterval(row.none, spans.none), NumberWithInterval(row.gain_image, spans.gain_image))
            if guessed
            else ()
        )
        return (
            *(
                name,
                NumberWithInterval(row.text, spans.text),
                NumberWithInterval(row.image, spans.image),
                NumberWithInterval(row.stg, spans.stg),
            ),
            *(*added, row.ambiguity_rate, row.n_valid, row.n_questions),
        )

    return DataTable(
        name="recoverability",
        title="What people recover.",
        columns=(
            *(Column(heading="Method"), higher("Text"), higher("Image"), Column(heading="STG", better="lower")),
            *(*gains, Column(heading="Ambiguous", better="lower"), count("Valid", 0), count("Questions", 0)),
        ),
        rows=tuple(told(name, row) for name, row in found.items() if row is not None),
        notes=("Intervals are for other participants and other stories at once.",),
    )


def _people_comparisons(scores: PeopleScores) -> DataTable:
    return DataTable(
        name="comparisons",
        title="Human STG of A minus that of B on the questions valid for both.",
        columns=(
            *(Column(heading="A"), Column(heading="B"), Column(heading="Difference", signed=True)),
            *(Column(heading="p, corrected", digits=4), count("Stories"), count("Questions"), text("Reading")),
        ),
        rows=tuple(
            (
                *(row.a, row.b, NumberWithInterval(row.difference, row.ci95_both)),
                *(row.p_corrected, row.n_stories, row.n_questions, row.reading),
            )
            for row in scores.comparisons or ()
        ),
        notes=("Intervals are for other participants and other stories at once.",),
        best=False,
    )


def _people_agreement(scores: PeopleScores) -> DataTable:
    rows: list[tuple[Cell, ...]] = []
    for name, own in (scores.methods or {"": scores}).items():
        told = [("all", own.labels), *(own.labels_by_condition or {}).items()]
        rows += [
            (name, what, row.fleiss_kappa, row.krippendorff_alpha, row.n, None, None)
            for what, row in told
            if row is not None
        ]
        if own.moral is not None:
            rows.append((name, "moral", None, None, own.moral.n, own.moral.hmr1, own.moral.hmr3))
    return DataTable(
        name="agreement",
        title="Agreement of participants on labels, and the moral labels that they name.",
        columns=(
            *(Column(heading="Method"), Column(heading="Condition")),
            *(Column(heading="Fleiss' kappa", digits=2), Column(heading="Krippendorff's alpha", digits=2), count("n")),
            *(higher("HMR@1"), higher("HMR@3")),
        ),
        rows=tuple(rows),
        notes=("Alpha is nominal.",),
    )


def _people_preferences(scores: PeopleScores) -> DataTable:
    return DataTable(
        name="preferences",
        title="Preferences from -2 to 2, positive for A.",
        columns=(
            *(Column(heading=name) for name in ("A", "B", "Task", "Criterion")),
            *(Column(heading="Mean", digits=2, signed=True), Column(heading="p, both, corrected", digits=4)),
            *(Column(heading="Rank-biserial", digits=2, signed=True), count("n", 0)),
        ),
        rows=tuple(
            (
                *(pair.a, pair.b, pair.task, name, NumberWithInterval(test.mean, test.ci95_both)),
                *(test.p_both_corrected, test.rank_biserial, test.n),
            )
            for pair in scores.preferences or ()
            for name, test in pair.criteria.items()
        ),
        best=False,
    )


def _people_judges(scores: PeopleScores) -> DataTable:
    return DataTable(
        name="judges",
        title="Judges beside people.",
        columns=(
            *(Column(heading="Method"), Column(heading="Judge"), higher("Spearman", 2), higher("Pairwise agr.", 2)),
            *(
                count("Boards", 0),
                *(higher(f"Same verdict, {name}") for name in ("text", "image", "text+image")),
            ),
        ),
        rows=tuple(
            (
                *(name, judge, row.image.spearman, row.image.pairwise_agreement, row.image.n),
                *(row.verdicts.get("text"), row.verdicts.get("image"), row.verdicts.get("text+image")),
            )
            for name, own in (scores.methods or {}).items()
            for judge, row in (own.judges or {}).items()
        ),
    )
