"""Scores and what holds them up as rows and columns, for CSV and LaTeX (`katha.tables`) and as charts.

What a table shows first is what conclusions are drawn from: common-valid STG by the ensemble or the only judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from katha.app.reports.page import own_numbers
from katha.eval_bridge.people.ensemble import EnsembleReport
from katha.eval_bridge.scoring.gate import doubts
from katha.eval_bridge.scoring.scores import HEADLINE
from katha.schema import LATENT_DIMENSIONS, Dimension
from katha.schema.robustness import EvaluatorTable, GroupRow, MatchingRow, PeopleColumns, RankCorrelation, Robustness
from katha.schema.scores import Comparison, JudgeScores, Scores
from katha.schema.tables import RepairCases
from katha.tables import Cell, Column, DataTable, NumberWithInterval

COMMON_NOTE = "STG, text and image are percentage points on the questions valid for every method, with 95% intervals."


def text(heading: str = "Method") -> Column:
    """Return a column of texts."""
    return Column(heading=heading)


def higher(heading: str, digits: int = 1) -> Column:
    """Return a column in which more is better."""
    return Column(heading=heading, digits=digits, better="higher")


def lower(heading: str, digits: int = 1) -> Column:
    """Return a column in which less is better."""
    return Column(heading=heading, digits=digits, better="lower")


def count(heading: str, digits: int = 1) -> Column:
    """Return a column of numbers that are neither good nor bad."""
    return Column(heading=heading, digits=digits)


DAGGER_LEVEL = 0.01
"""Table 2's level for the paired bootstrap's corrected p."""


class Dagger(NamedTuple):
    """Which method loses less than the strongest other one that is under control, by the rule of Table 2."""

    method: str
    over: str

    @property
    def note(self) -> str:
        """The sentence under the table."""
        return f"†: loses less than {self.over}, the strongest of the others (corrected paired bootstrap, p < 0.01)."


def dagger(
    comparisons: Iterable[Comparison], stg: Mapping[str, float | None], closed: Collection[str] = ()
) -> Dagger | None:
    """Return the method with the least STG where the paired bootstrap, corrected, shows it to lose less than the
    strongest of the others; closed services are no baseline, as in the paper, and have no dagger."""
    known = sorted((value, name) for name, value in stg.items() if value is not None and name not in closed)
    if len(known) < 2:
        return None
    best, over = known[0][1], known[1][1]
    tested = [row.p_bootstrap_corrected for row in comparisons if row.headline and {row.a, row.b} == {best, over}]
    return Dagger(best, over) if any(p is not None and p < DAGGER_LEVEL for p in tested) else None


def score_tables(scores: Scores, people: Sequence[PeopleColumns] = ()) -> list[DataTable]:
    """Return the leaderboard (Table 2), latent gaps (Table 56), validity (Table 57), and paired comparisons."""
    shown = {name: entry.judges[judge] for name, entry in scores.methods.items() if (judge := _judge(scores, name))}
    return [
        _leaderboard(scores, shown, {row.method: row for row in people}),
        DataTable(
            name="table-56",
            title="Text-to-image gaps by latent dimension.",
            columns=(
                text(),
                *(lower(_WORDS[name]) for name in LATENT_DIMENSIONS),
                lower("Avg. gap"),
                count("n", 0),
            ),
            rows=tuple(
                (
                    name,
                    *(row.common_valid.dimensions[dimension].gap for dimension in LATENT_DIMENSIONS),
                    row.common_valid.latent_gap,
                    row.common_valid.n,
                )
                for name, row in shown.items()
            ),
            notes=("Percentage points on the questions valid for every method.", *_doubts(shown)),
        ),
        DataTable(
            name="table-57",
            title="Valid questions and STG before and after filtering.",
            columns=(
                *(
                    text(),
                    count("Stories", 0),
                    count("Invalid stories", 0),
                    count("Questions", 0),
                ),
                *(count("Valid", 0), lower("Ambiguous"), lower("Raw STG"), lower("Filtered STG")),
                lower("Common-valid STG"),
            ),
            rows=tuple(
                (
                    *(name, scores.methods[name].stories, len(scores.methods[name].invalid_stories)),
                    *(row.raw.n, row.n_valid, row.ambiguity_rate),
                    *(
                        NumberWithInterval(block.stg, block.ci95.stg)
                        for block in (row.raw, row.filtered, row.common_valid)
                    ),
                )
                for name, row in shown.items()
            ),
        ),
        *([pairs_table(scores.comparisons)] if scores.comparisons else []),
    ]


def _doubts(shown: Mapping[str, JudgeScores]) -> list[str]:
    return doubts((name, row.common_valid.thin, row.common_valid.inspect) for name, row in shown.items())


_WORDS: Mapping[Dimension, str] = {
    "causal": "Causal",
    "emotional": "Emotion",
    "consequence": "Consequence",
    "moral": "Moral target",
}


def _judge(scores: Scores, method: str) -> str | None:
    return own_numbers(scores, method).judge


def _leaderboard(scores: Scores, shown: Mapping[str, JudgeScores], people: Mapping[str, PeopleColumns]) -> DataTable:
    visual, human = any(row.visual for row in people.values()), any(row.human_score for row in people.values())

    def rated(name: str) -> Iterator[Cell]:
        own = people.get(name)
        for wanted, found in ((visual, own.visual if own else None), (human, own.human_score if own else None)):
            if wanted:
                yield NumberWithInterval(found.mean, found.ci95) if found is not None else None

    marked = dagger(scores.comparisons, {name: row.common_valid.stg for name, row in shown.items()})
    rows: list[tuple[Cell, ...]] = []
    for name, row in shown.items():
        block = row.common_valid
        numbers = (
            NumberWithInterval(block.text, block.ci95.text),
            NumberWithInterval(block.image, block.ci95.image),
            NumberWithInterval(block.stg, block.ci95.stg, marked is not None and marked.method == name),
            row.moral_target.image,
        )
        rows.append((name, *numbers, *rated(name), block.n))
    wanted = [higher("Visual", 2)] if visual else []
    wanted += [higher("Human score", 2)] if human else []
    told = [item for item in scores.notes if "no story has a board" in item]
    return DataTable(
        name="table-2",
        title="Recoverability from text and from images.",
        columns=(
            text(),
            higher("Text"),
            higher("Image"),
            lower("STG"),
            higher("Moral target"),
            *wanted,
            count("n", 0),
        ),
        rows=tuple(rows),
        notes=(COMMON_NOTE, *([marked.note] if marked is not None else []), *told, *_doubts(shown)),
    )


def pairs_table(rows: Sequence[Comparison]) -> DataTable:
    """Return paired comparisons of methods."""
    return DataTable(
        name="comparisons",
        title="Paired comparisons of STG.",
        columns=(
            *(
                text("A"),
                text("B"),
                text("Judge"),
                text("Block"),
                count("Stories", 0),
            ),
            *(
                Column(heading="A minus B", signed=True),
                count("p, bootstrap", 4),
                count("p, Wilcoxon", 4),
            ),
            *(
                count("Family", 0),
                count("corrected, bootstrap", 4),
                count("corrected, Wilcoxon", 4),
            ),
        ),
        rows=tuple(
            (
                *(row.a, row.b, row.judge, row.block, row.n_stories, NumberWithInterval(row.difference, row.ci95)),
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
        return [
            (control, f"{row.a} and {row.b}, {row.over}", NumberWithInterval(row.rho, row.ci95), None, row.n)
            for row in rows
        ]

    rows = ranks("Rank correlation of blocks", found.blocks) + ranks("Rank correlation of judges", found.judges)
    half = found.half_data
    if half is not None:
        told = f"{half.halves:,} halves of {half.n_stories} stories"
        rows.append(
            (
                "Rank correlation with half of the data",
                told,
                NumberWithInterval(half.rho, half.ci95),
                None,
                half.n_methods,
            )
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
        columns=(
            text("Control"),
            text("Of"),
            count("Correlation", 2),
            count("STG"),
            count("n", 0),
        ),
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
                *(
                    text("Group"),
                    text(),
                    count("Stories", 0),
                    count("Questions", 0),
                    lower("STG"),
                ),
                *(lower("Own valid STG"), lower("Raw STG"), lower("Ambiguous")),
            ),
            rows=tuple(map(_group_row, group.rows)),
            notes=("STG: on the questions valid for every method.",),
            best=False,
        )


def _group_row(row: GroupRow) -> tuple[Cell, ...]:
    numbers = (NumberWithInterval(row.stg[HEADLINE], row.ci95), row.stg["filtered"], row.stg["raw"], row.ambiguity_rate)
    return (row.group, row.method, row.n_stories, row.n_questions, *numbers)


def _ceiling(found: Robustness) -> Iterator[DataTable]:
    yield DataTable(
        name="text-ceiling",
        title="What the text alone reaches.",
        columns=(
            *(
                text(),
                higher("Text"),
                higher("Image"),
                higher("Image of text"),
                count("Only together", 0),
            ),
            *(lower("STG"), lower("STG without these"), count("Valid", 0)),
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
        columns=(
            text(),
            *map(text, ("Text", "Image", "Both")),
            count("Questions", 0),
            count("Share"),
        ),
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
        columns=(text(), higher("STG reliability", 2), count("Boards", 0)),
        rows=tuple((row.method, NumberWithInterval(row.value, row.ci95), row.n_boards) for row in found.reliability),
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
            *(
                *map(text, ("Group", "Method", "Story", "Title", "Dimension")),
                *map(count, ("STG", "Gap")),
            ),
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
        columns=(
            text("Judge"),
            higher("Human acc."),
            higher("Spearman", 2),
            higher("Pairwise agr.", 2),
            lower("ECE", 3),
        ),
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
            *(text("Rule"), lower("False accept"), lower("False reject"), higher("Human corr.", 2)),
            *(count("Pairs", 0), count("Boards", 0)),
        ),
        rows=tuple(
            (row.rule, row.false_accept, row.false_reject, row.human_correlation, row.n_pairs, row.n_boards)
            for row in rows
        ),
    )


def evaluator_data_table(found: EvaluatorTable) -> DataTable:
    """Return Table 3, 54, 58, 60 or 72: other questions or prompts, or scoring without one control."""
    return DataTable(
        name=f"table-{found.table}",
        title=found.title,
        columns=(
            *(text("Row"), text("Evaluator"), higher("Image"), lower("STG"), higher("Localization")),
            *(
                higher("Human corr.", 2),
                lower("Ambiguity leakage"),
                count("Valid", 0),
                count("Scored", 0),
            ),
        ),
        rows=tuple(
            (
                *(
                    row.row,
                    row.evaluator,
                    NumberWithInterval(row.image, row.image_ci95),
                    NumberWithInterval(row.stg, row.stg_ci95),
                ),
                NumberWithInterval(row.localization.right, row.localization.ci95)
                if row.localization is not None
                else None,
                row.human_score.spearman if row.human_score is not None else None,
                *(row.ambiguity_leakage, row.n_valid, row.n_scored),
            )
            for row in found.rows
        ),
        notes=tuple(found.notes),
    )
