"""Every table of numbers as rows and columns, for CSV and LaTeX beside the pages (`katha.tables`), and as charts.

What a table shows first is what conclusions are drawn from: common-valid STG by the ensemble or the only judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from katha.app.reports.page import headline
from katha.eval_bridge.people.ensemble import EnsembleReport
from katha.eval_bridge.scoring.scores import HEADLINE
from katha.schema import LATENT_DIMENSIONS, Dimension
from katha.schema.people import PeopleScores
from katha.schema.robustness import EvaluatorTable, GroupRow, MatchingRow, PeopleColumns, RankCorrelation, Robustness
from katha.schema.scores import Comparison, JudgeScores, RowDifference, Scores
from katha.schema.tables import AblationTable, CompareTable, HumanColumns, RepairCases, TuningResult
from katha.tables import Cell, Column, DataTable, Estimate

_ONE = "STG, text and image are percentage points on the questions valid for every method, with 95% intervals."


def _name(heading: str = "Method") -> Column:
    return Column(heading=heading)


def _up(heading: str, digits: int = 1) -> Column:
    return Column(heading=heading, digits=digits, better="higher")


def _down(heading: str, digits: int = 1) -> Column:
    return Column(heading=heading, digits=digits, better="lower")


def _number(heading: str, digits: int = 1) -> Column:
    return Column(heading=heading, digits=digits)


_CHANGE = Column(heading="Change of STG", signed=True)


def score_tables(scores: Scores, people: Sequence[PeopleColumns] = ()) -> list[DataTable]:
    """Return the leaderboard (Table 2), latent gaps (Table 56), validity (Table 57), and paired comparisons."""
    shown = {name: entry.judges[judge] for name, entry in scores.methods.items() if (judge := _judge(scores, name))}
    return [
        _leaderboard(scores, shown, {row.method: row for row in people}),
        DataTable(
            name="table-56",
            title="Text-to-image gaps by latent dimension.",
            columns=(_name(), *(_down(_WORDS[name]) for name in LATENT_DIMENSIONS), _down("Avg. gap"), _number("n", 0)),
            rows=tuple(
                (
                    name,
                    *(row.common_valid.dimensions[dimension].gap for dimension in LATENT_DIMENSIONS),
                    row.common_valid.latent_gap,
                    row.common_valid.n,
                )
                for name, row in shown.items()
            ),
            notes=("Percentage points on the questions valid for every method.",),
        ),
        DataTable(
            name="table-57",
            title="Valid questions and STG before and after filtering.",
            columns=(
                *(_name(), _number("Stories", 0), _number("Invalid stories", 0), _number("Questions", 0)),
                *(_number("Valid", 0), _down("Ambiguous"), _down("Raw STG"), _down("Filtered STG")),
                _down("Common-valid STG"),
            ),
            rows=tuple(
                (
                    *(name, scores.methods[name].stories, len(scores.methods[name].invalid_stories)),
                    *(row.raw.n, row.n_valid, row.ambiguity_rate),
                    *(Estimate(block.stg, block.ci95.stg) for block in (row.raw, row.filtered, row.common_valid)),
                )
                for name, row in shown.items()
            ),
        ),
        *([_pairs(scores.comparisons)] if scores.comparisons else []),
    ]


_WORDS: Mapping[Dimension, str] = {
    "causal": "Causal",
    "emotional": "Emotion",
    "consequence": "Consequence",
    "moral": "Moral target",
}


def _judge(scores: Scores, method: str) -> str | None:
    return headline(scores, method).judge


def _leaderboard(scores: Scores, shown: Mapping[str, JudgeScores], people: Mapping[str, PeopleColumns]) -> DataTable:
    visual, human = any(row.visual for row in people.values()), any(row.human_score for row in people.values())

    def rated(name: str) -> Iterator[Cell]:
        own = people.get(name)
        for wanted, found in ((visual, own.visual if own else None), (human, own.human_score if own else None)):
            if wanted:
                yield Estimate(found.mean, found.ci95) if found is not None else None

    rows: list[tuple[Cell, ...]] = []
    for name, row in shown.items():
        block = row.common_valid
        numbers = (
            Estimate(block.text, block.ci95.text),
            Estimate(block.image, block.ci95.image),
            Estimate(block.stg, block.ci95.stg),
            row.moral_target.image,
        )
        rows.append((name, *numbers, *rated(name), block.n))
    wanted = [_up("Visual", 2)] if visual else []
    wanted += [_up("Human score", 2)] if human else []
    told = [item for item in scores.notes if "no story has a board" in item]
    return DataTable(
        name="table-2",
        title="Recoverability from text and from images.",
        columns=(_name(), _up("Text"), _up("Image"), _down("STG"), _up("Moral target"), *wanted, _number("n", 0)),
        rows=tuple(rows),
        notes=(_ONE, *told),
    )


def _pairs(rows: Sequence[Comparison]) -> DataTable:
    return DataTable(
        name="comparisons",
        title="Paired comparisons of STG.",
        columns=(
            *(_name("A"), _name("B"), _name("Judge"), _name("Block"), _number("Stories", 0)),
            *(Column(heading="A minus B", signed=True), _number("p, bootstrap", 4), _number("p, Wilcoxon", 4)),
            *(_number("Family", 0), _number("corrected, bootstrap", 4), _number("corrected, Wilcoxon", 4)),
        ),
        rows=tuple(
            (
                *(row.a, row.b, row.judge, row.block, row.n_stories, Estimate(row.difference, row.ci95)),
                *(row.p_bootstrap, row.wilcoxon.p, row.family, row.p_bootstrap_corrected, row.p_corrected),
            )
            for row in rows
        ),
    )


# What holds a gap up (`katha bench tables`).


def robustness_tables(found: Robustness, repairs: RepairCases | None = None) -> list[DataTable]:
    """Return Table 4 with its groups, the text's ceiling (Table 30), reliability (Table 59) and cases (Table 68), with
    an ablation's repairs among them."""
    return [_controls(found), *_groups(found), *_ceiling(found), _reliability(found), _cases(found, repairs)]


def _controls(found: Robustness) -> DataTable:
    def ranks(control: str, rows: Sequence[RankCorrelation]) -> list[tuple[Cell, ...]]:
        return [(control, f"{row.a} and {row.b}, {row.over}", Estimate(row.rho, row.ci95), None, row.n) for row in rows]

    rows = ranks("Rank correlation of blocks", found.blocks) + ranks("Rank correlation of judges", found.judges)
    half = found.half_data
    if half is not None:
        told = f"{half.halves:,} halves of {half.n_stories} stories"
        rows.append(
            ("Rank correlation with half of the data", told, Estimate(half.rho, half.ci95), None, half.n_methods)
        )
    for group in found.groups:
        words = f"STG by {group.by.replace('_', ' ')}"
        rows += [(words, name, None, mean, len(found.methods)) for name, mean in group.means.items()]
        rows.append((words, "largest minus smallest", None, group.spread, len(group.means)))
    if found.effects is not None:
        effects = found.effects
        rows.append(("Range of STG", "planners, one renderer", None, effects.planner, effects.planner_groups))
        rows.append(("Range of STG", "renderers, one planner", None, effects.renderer, effects.renderer_groups))
    return DataTable(
        name="table-4",
        title="Controls of the gap's validity.",
        columns=(_name("Control"), _name("Of"), _number("Correlation", 2), _number("STG"), _number("n", 0)),
        rows=tuple(rows),
        notes=("Correlations are Spearman's; STG is common-valid, in percentage points.", *found.notes),
        best=False,
    )


def _groups(found: Robustness) -> Iterator[DataTable]:
    for group in found.groups:
        yield DataTable(
            name=f"table-4-{group.by.replace('_', '-')}",
            title=f"STG and ambiguity by {group.by.replace('_', ' ')}.",
            columns=(
                *(_name("Group"), _name(), _number("Stories", 0), _number("Questions", 0), _down("STG")),
                *(_down("Own valid STG"), _down("Raw STG"), _down("Ambiguous")),
            ),
            rows=tuple(map(_group_row, group.rows)),
            notes=("STG: on the questions valid for every method.",),
            best=False,
        )


def _group_row(row: GroupRow) -> tuple[Cell, ...]:
    numbers = (Estimate(row.stg[HEADLINE], row.ci95), row.stg["filtered"], row.stg["raw"], row.ambiguity_rate)
    return (row.group, row.method, row.n_stories, row.n_questions, *numbers)


def _ceiling(found: Robustness) -> Iterator[DataTable]:
    yield DataTable(
        name="text-ceiling",
        title="What the text alone reaches.",
        columns=(
            *(_name(), _up("Text"), _up("Image"), _up("Image of text"), _number("Only together", 0)),
            *(_down("STG"), _down("STG without these"), _number("Valid", 0)),
        ),
        rows=tuple(
            (row.method, row.text, row.image, row.reached, row.only_together, row.stg, row.stg_without, row.n_valid)
            for row in found.ceiling
        ),
        notes=("Only together: valid questions that neither the text nor the images alone answer (Table 30).",),
    )
    yield DataTable(
        name="table-30",
        title="Outcomes under the three conditions.",
        columns=(_name(), *map(_name, ("Text", "Image", "Both")), _number("Questions", 0), _number("Share")),
        rows=tuple(
            (
                row.method,
                *("right" if value else "wrong" for value in (item.text, item.image, item.text_image)),
                item.n,
                item.share,
            )
            for row in found.ceiling
            for item in row.patterns
        ),
    )


def _reliability(found: Robustness) -> DataTable:
    return DataTable(
        name="table-59-reliability",
        title="Split-half reliability of a board's STG.",
        columns=(_name(), _up("STG reliability", 2), _number("Boards", 0)),
        rows=tuple((row.method, Estimate(row.value, row.ci95), row.n_boards) for row in found.reliability),
    )


def _cases(found: Robustness, repairs: RepairCases | None) -> DataTable:
    rows: list[tuple[Cell, ...]] = [
        (case.group, case.method or "", case.story_id, case.title, case.dimension or "", case.stg, case.gap, None)
        for case in found.cases.cases
    ]
    for case in repairs.cases if repairs is not None else ():
        rows.append(
            (f"repair_{case.group}", case.after, case.story_id, case.title, "", case.stg_after, None, case.delta)
        )
    return DataTable(
        name="table-68",
        title="Qualitative cases by rule.",
        columns=(
            *(*map(_name, ("Group", "Method", "Story", "Title", "Dimension")), *map(_number, ("STG", "Gap"))),
            Column(heading="Change by repair", signed=True),
        ),
        rows=tuple(rows),
        notes=(found.cases.rule, *([repairs.rule] if repairs is not None else [])),
    )


def ensemble_table(report: EnsembleReport) -> DataTable:
    """Return Table 62: each judge, the majority and the human-calibrated ensemble against people."""
    return DataTable(
        name="table-62",
        title="Single judges and ensembles against people.",
        columns=(_name("Judge"), _up("Human acc."), _up("Spearman", 2), _up("Pairwise agr.", 2), _down("ECE", 3)),
        rows=tuple(
            (name, row.agreement, row.spearman, row.pairwise_agreement, row.ece)
            for name, row in report.measured.items()
        ),
        notes=(f"{report.n} labelled answers of {report.stories} stories; the fitted ensemble across folds.",),
    )


def matching_table(rows: Sequence[MatchingRow]) -> DataTable:
    """Return Table 61: matching rules on labelled pairs and beside people."""
    return DataTable(
        name="table-61",
        title="Matching rules for open answers.",
        columns=(
            *(_name("Rule"), _down("False accept"), _down("False reject"), _up("Human corr.", 2)),
            *(_number("Pairs", 0), _number("Boards", 0)),
        ),
        rows=tuple(
            (row.rule, row.false_accept, row.false_reject, row.human_correlation, row.n_pairs, row.n_boards)
            for row in rows
        ),
    )


def evaluator_data_table(found: EvaluatorTable) -> DataTable:
    """Return Table 58 or 60: other questions, or scoring without one control."""
    return DataTable(
        name=f"table-{found.table}",
        title=found.title,
        columns=(
            *(_name("Row"), _name("Evaluator"), _up("Image"), _down("STG"), _up("Localization")),
            *(_up("Human corr.", 2), _down("Ambiguity leakage"), _number("Valid", 0), _number("Scored", 0)),
        ),
        rows=tuple(
            (
                *(row.row, row.evaluator, Estimate(row.image, row.image_ci95), Estimate(row.stg, row.stg_ci95)),
                Estimate(row.localization.right, row.localization.ci95) if row.localization is not None else None,
                row.human_score.spearman if row.human_score is not None else None,
                *(row.ambiguity_leakage, row.n_valid, row.n_scored),
            )
            for row in found.rows
        ),
        notes=tuple(found.notes),
    )


# The tables of studies.


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
                *(row.mode, shown.text, Estimate(shown.image, shown.image_ci95), Estimate(shown.stg, shown.stg_ci95)),
                *(Estimate(shown.delta_stg, shown.ci95), shown.p_corrected, shown.p_bootstrap_corrected),
                *(row.stg, row.raw.stg if row.raw is not None else None, shown.n, row.valid, row.scored, row.frames),
                *((row.stg_reliability,) if reliable else ()),
            )
        )
    return DataTable(
        name="table",
        title=table.about,
        columns=(
            *(_name("Row"), _up("Text"), _up("Image"), _down("STG"), _CHANGE, _number("p, Wilcoxon", 3)),
            *(_number("p, bootstrap", 3), _down("Own STG"), _down("Raw STG")),
            *(_number(words, 0) for words in ("Common", "Valid", "Scored")),
            *(_number("Frames", 2), *([_up("STG reliability", 2)] if reliable else [])),
        ),
        rows=tuple(rows),
        notes=(f"Change: against {table.baseline}; p corrected. {table.conclusion.text}",),
    )


def _ablation_pairs(table: AblationTable) -> DataTable:
    def numbers(row: RowDifference) -> tuple[Cell, ...]:
        tested = (row.p_corrected, row.p_bootstrap_corrected)
        return (row.n_stories, Estimate(row.difference, row.ci95), *tested, row.family)

    return DataTable(
        name="comparisons",
        title=f"Comparisons of the suite {table.suite}.",
        columns=(
            *(_name("A"), _name("B"), _name("On"), _number("Stories", 0), Column(heading="A minus B", signed=True)),
            *(_number("corrected, Wilcoxon", 4), _number("corrected, bootstrap", 4), _number("Family", 0)),
        ),
        rows=tuple((row.a, row.b, row.what, *numbers(row.headline)) for row in table.comparisons),
    )


def _ablation_people(table: AblationTable) -> DataTable:
    def cells(own: HumanColumns | None, leakage: float | None) -> tuple[Cell, ...]:
        if own is None:
            return (None,) * 8
        local, score, agreed = own.localization, own.human_score, own.agreement
        return (
            Estimate(local.right, local.ci95) if local else None,
            score.spearman if score else None,
            leakage,
            agreed.agreement if agreed else None,
            agreed.false_accept if agreed else None,
            agreed.false_reject if agreed else None,
            Estimate(own.visual.mean, own.visual.ci95) if own.visual else None,
            Estimate(own.human_mean.mean, own.human_mean.ci95) if own.human_mean else None,
        )

    return DataTable(
        name="people",
        title=f"The suite {table.suite} beside people.",
        columns=(
            *(_name("Row"), _up("Localization"), _up("Human corr.", 2), _down("Ambiguity leakage")),
            *(_up("Agreement"), _down("False accept"), _down("False reject"), _up("Visual", 2), _up("Human score", 2)),
        ),
        rows=tuple((row.mode, *cells(row.human, row.ambiguity_leakage)) for row in table.rows),
    )


def compare_tables(table: CompareTable) -> list[DataTable]:
    """Return the methods of a comparison and their differences."""
    methods = DataTable(
        name="table",
        title="Methods on the same stories, plans and questions.",
        columns=(
            *(_name(), _name("Planner"), _name("Renderer"), _name("Mode"), _number("Boards", 0), _down("Invalid")),
            *(_up("Text"), _up("Image"), _down("STG"), _down("Own STG"), _down("Raw STG"), _down("Latent gap")),
            *(_down("Ambiguous"), _number("Common", 0), _number("Valid", 0), _number("Scored", 0)),
        ),
        rows=tuple(
            (
                *(row.name, row.planner, row.renderer, row.mode, row.boards, row.invalid_rate),
                *(row.common_valid_text, row.common_valid_image, Estimate(row.common_valid_stg, row.common_valid_ci95)),
                *(Estimate(row.filtered_stg, row.ci95), row.raw_stg, row.latent_gap, row.ambiguity_rate),
                *(row.n_common, row.n_valid, row.n_scored),
            )
            for row in table.methods
        ),
        notes=(_ONE,),
    )
    return [methods, *([_pairs(table.comparisons)] if table.comparisons else [])]


def tuning_tables(found: TuningResult) -> list[DataTable]:
    """Return the setting that was chosen beside the one before it, and STG along each setting."""
    chosen = DataTable(
        name="setting",
        title="The setting that was chosen.",
        columns=(_name("Setting"), _number("Chosen", 3), _number("Before", 3)),
        rows=tuple((name, float(value), float(found.default[name])) for name, value in found.setting.items()),
    )
    curve = DataTable(
        name="curve",
        title="STG along each setting, the others as chosen.",
        columns=(
            *(_name("Setting"), _number("Value", 3), _name("Chosen"), _down("STG"), _number("Repaired")),
            Column(heading="Against the choice", signed=True),
        ),
        rows=tuple(
            (
                *(name, float(point.value), "yes" if point.chosen else "", Estimate(point.stg, point.ci95)),
                *(point.repaired, Estimate(point.difference, point.difference_ci95)),
            )
            for name, points in found.curve.items()
            for point in points
        ),
        best=False,
    )
    return [chosen, curve]


# What people say (Tables 37 to 39 and 49 to 51), beside `people.json`.


_RATINGS = ("visual", "ncs", "mas", "ees")


def people_tables(scores: PeopleScores) -> list[DataTable]:
    """Return ratings, human recoverability, preferences and judges beside people, as far as anybody judged them."""
    made = [
        _people_ratings(scores),
        _people_recoverability(scores),
        _people_preferences(scores),
        _people_judges(scores),
    ]
    return [table for table in made if table.rows]


def _people_ratings(scores: PeopleScores) -> DataTable:
    rows: list[tuple[Cell, ...]] = []
    for method, own in (scores.methods or {"": scores}).items():
        named = {name.upper() if name != "visual" else "Visual": getattr(own, name) for name in _RATINGS}
        for name, row in {**named, **(own.criteria or {})}.items():
            if row is not None:
                told = (Estimate(row.mean, row.ci95), row.sd, row.krippendorff_alpha, row.n)
                rows.append((method, name, *told))
    return DataTable(
        name="ratings",
        title="Ratings from 1 to 5.",
        columns=(
            *(Column(heading="Method"), Column(heading="Criterion"), Column(heading="Mean", digits=2)),
            *(Column(heading="SD", digits=2), Column(heading="Alpha", digits=2), _number("n", 0)),
        ),
        rows=tuple(rows),
        notes=("Intervals resample stories.",),
    )


def _people_recoverability(scores: PeopleScores) -> DataTable:
    found = {name: own.recoverability for name, own in (scores.methods or {"": scores}).items()}
    return DataTable(
        name="recoverability",
        title="What people recover.",
        columns=(
            *(Column(heading="Method"), _up("Text"), _up("Image"), Column(heading="STG", better="lower")),
            *(Column(heading="Ambiguous", better="lower"), _number("Valid", 0), _number("Questions", 0)),
        ),
        rows=tuple(
            (
                *(name, Estimate(row.text, row.ci95_both.text), Estimate(row.image, row.ci95_both.image)),
                *(Estimate(row.stg, row.ci95_both.stg), row.ambiguity_rate, row.n_valid, row.n_questions),
            )
            for name, row in found.items()
            if row is not None
        ),
        notes=("Intervals are for other participants and other stories at once.",),
    )


def _people_preferences(scores: PeopleScores) -> DataTable:
    return DataTable(
        name="preferences",
        title="Preferences from -2 to 2, positive for A.",
        columns=(
            *(Column(heading=name) for name in ("A", "B", "Task", "Criterion")),
            *(Column(heading="Mean", digits=2, signed=True), Column(heading="p, both, corrected", digits=4)),
            *(Column(heading="Rank-biserial", digits=2, signed=True), _number("n", 0)),
        ),
        rows=tuple(
            (
                *(pair.a, pair.b, pair.task, name, Estimate(test.mean, test.ci95_both)),
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
            *(Column(heading="Method"), Column(heading="Judge"), _up("Spearman", 2), _up("Pairwise agr.", 2)),
            *(_number("Boards", 0), *(_up(f"Same verdict, {name}") for name in ("text", "image", "text+image"))),
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
