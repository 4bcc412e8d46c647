"""What a suite's table concludes: pairs of rows, the sentences that the intervals support, and repair cases by rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from katha.compass.modes import Row
from katha.compass.repair import board_key
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT
from katha.eval_bridge.scoring.rows import RowCounts, compare, correct
from katha.eval_bridge.scoring.scores import BLOCKS, disagree
from katha.eval_bridge.scoring.statistics import averages, story_counts
from katha.experiments.ablate.job import RowBoard, StoryResult
from katha.experiments.ablate.tally import Tally
from katha.schema import Board
from katha.schema.scores import RowDifference
from katha.schema.tables import ChangedQuestion, Conclusion, RepairCase, RepairCases, RowComparison, Verdict

ROW_BLOCKS = (*BLOCKS, "rest")
"""The questions that rows are compared on: the blocks of `scores.json`, and those that no prompt gave away."""
What = Literal["all stories", "equal length"]
Floats = NDArray[np.float64]
Blocks = Mapping[str, Floats]
"""One row's counts by block, each of shape (stories, dimensions, 4)."""


def compared(tally: Tally, pooled: Mapping[str, Blocks], pairs: Sequence[tuple[str, str]]) -> list[RowComparison]:
    """Return one comparison a pair of rows, corrected together (Tables 55, 75); `nothing` says why there is none.

    pooled: each row's counts, by row and block (see `blocks_of`).
    """
    job = tally.job
    rows = [(job.suite.row(a), job.suite.row(b)) for a, b in pairs]
    found: dict[str, list[RowDifference]] = {}
    for block in ROW_BLOCKS:
        counts = [(pooled[a.name][block], pooled[b.name][block], _have_both(tally, a, b)) for a, b in rows]
        found[block] = compare(counts, job.resamples, job.seed)
    numbers = zip(*(found[block] for block in ROW_BLOCKS), strict=True)
    return [_comparison(tally, pair, *item) for pair, item in zip(rows, numbers, strict=True)]


def blocks_of(tally: Tally, row: Row) -> dict[str, RowCounts]:
    """Return the counts of one row on each block of questions."""
    return {
        "raw": tally.counts(row, filtered=False),
        "filtered": tally.counts(row),
        "common_valid": tally.counts(row, common=True),
        "rest": tally.counts(row, rest=True),
    }


def _without_gap(*rows: Row) -> str | None:
    """Return why a difference of STG cannot be had from rows scored like that, or None where it can."""
    for row in rows:
        if row.lacks:
            return f"{row.name} has no answers under {' and '.join(row.lacks)}, so it has no STG"
    return None


def _comparison(
    tally: Tally,
    pair: tuple[Row, Row],
    raw: RowDifference,
    own: RowDifference,
    common: RowDifference,
    rest: RowDifference,
) -> RowComparison:
    """Return what was found of a pair, or without its numbers where there is nothing to compare."""
    family, alike = tally.job.suite.family, pair[0].scored_like(pair[1])
    gapless, same = _without_gap(*pair), tally.same(*pair)
    nothing = gapless or tally.circular(*pair)
    headline = common if alike else own
    if nothing is None and not own.n_stories:
        nothing = "no story has a board of both"
    elif nothing is None and same == "all":
        nothing = "these are the same boards"
    empty = nothing is None and headline.difference is None
    numbers = dict(own if gapless is not None else correct(own, family))
    told: dict[str, object] = {"a": pair[0].name, "b": pair[1].name, "same": same, "nothing": nothing}
    designed = (pair[0].name, pair[1].name) in tally.job.suite.controls and tally.equally_long(*pair)
    told["what"] = "equal length" if designed else "all stories"
    if nothing is not None:
        numbers |= dict.fromkeys(("difference", "image_difference", "ci95", "p_bootstrap", "p_corrected"))
        numbers |= {"p_bootstrap_corrected": None}
    elif alike:
        told |= {"common_valid": correct(common, family), "raw": correct(raw, family)}
        told |= {"rest": correct(rest, family) if any(tally.given_away.values()) else None}
        told["disagree"] = disagree((common.difference, own.difference, raw.difference))
    if empty:  # what stands beside the headline is kept
        told["nothing"] = f"no question is valid for {'all rows that are scored alike' if alike else 'both'}"
    return RowComparison.model_validate(numbers | told)


def _have_both(tally: Tally, a: Row, b: Row) -> NDArray[np.bool_]:
    """Return which stories have a board of both rows."""
    both: NDArray[np.bool_] = np.all([tally.lengths(row).any(axis=0) for row in (a, b)], axis=0)
    return both


# What the intervals of a table support, in sentences made by rule from its numbers.


ALPHA = 0.05
Finding = Literal["lower", "higher", "open", "none"]


def finding(row: RowComparison) -> Finding:
    """Return what a comparison supports of `a` against `b`: a lower STG, a higher one, neither, or no interval at all.

    Lower or higher only when the 95% interval leaves out zero and both corrected p are below 5%, on the block that
    conclusions are drawn from.
    """
    told = row.headline
    if told.ci95 is None or row.nothing is not None:
        return "none"
    (low, high), ps = told.ci95, (told.p_corrected, told.p_bootstrap_corrected)
    if any(p is None or p >= ALPHA for p in ps) or low <= 0.0 <= high:
        return "open"
    return "lower" if high < 0 else "higher"


def conclude(comparisons: Sequence[RowComparison], focus: str | None, baseline: str) -> Conclusion:
    """Return the verdict on the suite's claim, and one sentence for each comparison.

    Pairs that are equally long by design decide what the focus's gain comes from; without any, the focus's other pairs.
    """
    verdict: Verdict = "undecided"
    text = f"Only {baseline} was run, so there is nothing to compare it with."
    if comparisons and focus is None:
        verdict, text = _without_focus(comparisons, baseline)
    elif comparisons and focus is not None:
        verdict, text = _of_focus(comparisons, focus, baseline)
    beside = _pairs_beside(comparisons, focus, baseline)
    return Conclusion(verdict=verdict, text=text + beside, sentences=[_sentence(row) for row in comparisons])


def p_words(value: float) -> str:
    """Return a p-value with three decimals, the smallest as a bound."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _sentence(row: RowComparison) -> str:
    what = f"{row.a} against {row.b}" + (", equally long by design" if row.what == "equal length" else "")
    if row.nothing is not None:
        return f"{what}: {row.nothing}: nothing to compare."
    told = row.headline
    stories = f"{told.n_stories} {'story' if told.n_stories == 1 else 'stories'}"
    size = f"STG {told.difference:+.1f} points on {stories}{_beside(row)}"
    if told.ci95 is None:
        return f"{what}: {size}; too few for an interval, so nothing is concluded."
    low, high = told.ci95
    count = told.wilcoxon.n_nonzero
    carried = f"{count} {'story that differs' if count == 1 else 'stories that differ'}"
    p = "" if told.p_corrected is None else f", corrected p {p_words(told.p_corrected)} by {carried}"
    measured = row.same == "boards"
    supports = {
        "lower": "a lower STG is measured on the same boards." if measured else f"{row.a} loses less.",
        "higher": "a higher STG is measured on the same boards." if measured else f"{row.a} loses more.",
        "open": f"no difference is shown ({_why_open(row)}).",
    }[finding(row)]
    return f"{what}: {size} (95% {low:+.1f} to {high:+.1f}{p}): {supports}"


def _beside(row: RowComparison) -> str:
    """Return the difference on the other blocks, where the rows are scored alike."""
    if row.common_valid is None or row.raw is None:
        return ""
    own, raw = (change_words(value) for value in (row.difference, row.raw.difference))
    warning = "; the signs disagree" if row.disagree else ""
    return f" [common valid; own valid {own}, raw {raw}{warning}]"


def change_words(value: float | None) -> str:
    """Return a difference in points, or a hyphen."""
    return "-" if value is None else f"{value:+.1f}"


def _why_open(row: RowComparison) -> str:
    told = row.headline
    if told.ci95 is not None and told.ci95[0] <= 0.0 <= told.ci95[1]:
        return "the interval holds zero"
    if told.family == 1:
        return "the interval leaves out zero, but p is not below 5%"
    return f"the interval leaves out zero, but not after correction for {told.family} comparisons"


def _of_focus(rows: Sequence[RowComparison], focus: str, base: str) -> tuple[Verdict, str]:
    """Decide by rule: the focus must beat the baseline, and every control pair its second row, each by an interval."""
    gain = next((row for row in rows if (row.a, row.b) == (focus, base)), None)
    if gain is not None and gain.same == "all":
        return "undecided", f"{focus} has the boards of {base} here, so there is nothing to decide."
    if gain is None or finding(gain) == "none":
        return "undecided", f"There are too few stories to say whether {focus} improves on {base}."
    if finding(gain) == "higher":
        return "refuted", f"{focus} is worse than {base}: its interval lies above zero."
    if finding(gain) == "open":
        return "not shown", f"That {focus} improves on {base} is not shown: {_why_open(gain)}."
    by_design = [row for row in rows if row.what == "equal length"]
    others = [row for row in rows if row.a == focus and row.b != base]
    return _against_controls(focus, base, by_design or others, named=bool(by_design))


def _against_controls(focus: str, base: str, rows: Sequence[RowComparison], *, named: bool) -> tuple[Verdict, str]:
    def found(*wanted: Finding) -> str:
        return ", ".join(f"{row.a} on {row.b}" if named else row.b for row in rows if finding(row) in wanted)

    better, unclear, worse = found("lower"), found("open", "none"), found("higher")
    gain = f"{focus} improves on {base}"
    if not rows:
        return "shown", f"{gain}."
    if named:
        beaten = f" At equal length and budget {better.replace(' on ', ' improves on ')}." if better else ""
        if worse:
            return "refuted", f"{gain}. At equal length and budget it is the other way: worse are {worse}.{beaten}"
        if unclear:
            rest = f" Not shown at equal length and budget: {unclear}; so the gain may come from what these have too."
            return "partly shown", f"{gain}.{beaten}{rest}"
        return "shown", f"{gain}.{beaten}"
    if worse:
        return "refuted", f"{gain}, but it is worse than {worse}."
    beaten = f" and on {better}" if better else ""
    if unclear:
        rest = "so the gain may come from what these have too"
        return "partly shown", f"{gain}{beaten}. It is not shown to differ from {unclear}, {rest}."
    return "shown", f"{gain}{beaten}: on every control."


def _pairs_beside(rows: Sequence[RowComparison], focus: str | None, base: str) -> str:
    """Return what the suite's pairs show that are about neither its focus nor its baseline nor its controls."""
    by_design = any(row.what == "equal length" for row in rows)
    rest = [row for row in rows if row.b != base and row.what != "equal length"]
    pairs = [row for row in rest if by_design or row.a != focus]
    words = {"lower": "less", "higher": "more"}
    shown = [f"{row.a} loses {words[found]} than {row.b}" for row in pairs if (found := finding(row)) in words]
    if not pairs:
        return ""
    return f" In pairs: {'; '.join(shown)}." if shown else " In pairs, no row is shown to differ from the other."


def _without_focus(rows: Sequence[RowComparison], base: str) -> tuple[Verdict, str]:
    lower, higher = (
        [row.a for row in rows if row.b == base and finding(row) == wanted] for wanted in ("lower", "higher")
    )
    if all(finding(row) == "none" for row in rows):
        return "undecided", f"There are too few stories to say whether a row differs from {base}."
    if not lower and not higher:
        return "open", f"No row is shown to differ from {base}."
    parts = [f"lower STG: {', '.join(lower)}"] if lower else []
    parts += [f"higher STG: {', '.join(higher)}"] if higher else []
    # Rows that only ask or score otherwise have the baseline's own boards: a lower STG is no better board then.
    measured = all(row.same == "boards" for row in rows)
    how = " on the same boards, so this is about how they are measured" if measured else ""
    return "measured" if measured else "shown", f"Shown against {base}{how}: {'; '.join(parts)}."


# Repair cases by rule (Sec. K.2, Table 68): successes, boundaries and harms, chosen by numbers and never by eye.


_EACH = 3
NOTHING = 1e-9
"""A smaller change is the rounding of an average."""

_TEXT, _IMAGE, _BOTH = range(3)
_RULE = (
    "Every accepted repair whose board before it was judged too is measured by its change of STG on the reporting "
    f"questions valid for both boards. Success: the {_EACH} largest falls. Harm: the {_EACH} largest rises. Boundary: "
    f"the {_EACH} smallest changes of the rest. Ties go by story id."
)


def repair_cases(tally: Tally) -> RepairCases | None:
    """Return the cases of the suite's focus row, and how often its repairs harm; None for a suite without one."""
    if tally.job.suite.focus is None:
        return None
    row = tally.job.suite.row(tally.job.suite.focus)
    repaired = [
        (result, board, board.before)
        for result in tally.results
        for board in result.boards
        if board.row == row.name and board.before is not None
    ]
    found = [case for repair in repaired if (case := _case(tally, row, *repair)) is not None]
    worse = sum(case.image_change < -NOTHING for case in found)
    return RepairCases(
        row=row.name,
        rule=_RULE,
        repaired=len(repaired),
        measured=len(found),
        harmed=worse,
        improved=sum(case.image_change > NOTHING for case in found),
        harm_rate=100.0 * worse / len(found) if found else None,
        cases=_chosen(found),
    )


def _chosen(found: Sequence[RepairCase]) -> list[RepairCase]:
    """Return the cases that are shown, each in its group."""
    falls = sorted((case for case in found if case.delta < -NOTHING), key=lambda case: (case.delta, case.story_id))
    rises = sorted((case for case in found if case.delta > NOTHING), key=lambda case: (-case.delta, case.story_id))
    taken = {case.story_id for case in (*falls[:_EACH], *rises[:_EACH])}
    rest = [case for case in found if case.story_id not in taken]
    small = sorted(rest, key=lambda case: (abs(case.delta), case.story_id))
    groups = (("success", falls), ("boundary", small), ("harm", rises))
    return [case.model_copy(update={"group": group}) for group, cases in groups for case in cases[:_EACH]]


def _case(tally: Tally, row: Row, result: StoryResult, board: RowBoard, old: Board) -> RepairCase | None:
    """Return one repair; None where the board before it was not judged or no question is valid for both."""
    look, outcomes = board_key(old.frames), tally.outcomes(row)
    known = [item for item in result.boards if item.judge in (None, board.judge)]
    before = next((item.method for item in known if board_key(item.board.frames) == look), None)
    if before is None or not {before, board.method} <= set(outcomes.methods):
        return None
    at = -1 if board.judge is None else outcomes.judges.index(board.judge)
    cells = [outcomes.cells[outcomes.methods.index(name), at] for name in (before, board.method)]
    own = outcomes.story_of == outcomes.stories.index(result.story_id)
    right = [item == RIGHT for item in cells]
    scored = own & (cells[0] != MISSING).all(axis=0) & (cells[1] != MISSING).all(axis=0)
    valid = scored & right[0][_BOTH] & right[1][_BOTH]
    if not valid.any():
        return None
    both = [averages(story_counts(item, valid, outcomes.dimension_of, 1)[0]) for item in right]
    stg = [float(item[_TEXT] - item[_IMAGE]) for item in both]
    seen = [float(averages(story_counts(item, scored, outcomes.dimension_of, 1)[0])[_IMAGE]) for item in right]
    return RepairCase(
        group="boundary",  # until `_chosen` has seen all of them
        story_id=result.story_id,
        title=result.title,
        before=before,
        after=board.label,
        stg_before=100.0 * stg[0],
        stg_after=100.0 * stg[1],
        delta=100.0 * (stg[1] - stg[0]),
        image_change=100.0 * (seen[1] - seen[0]),
        n_valid=int(valid.sum()),
        weakest=board.decision.weakest,
        reason=board.decision.reason,
        frames=board.board.frames,
        frames_before=[frame.sha256 for frame in old.frames],
        questions=[
            ChangedQuestion(
                question=outcomes.questions[at].question,
                dimension=outcomes.questions[at].question_type,
                gold=outcomes.questions[at].gold_answer,
                before=bool(right[0][_IMAGE, at]),
                after=bool(right[1][_IMAGE, at]),
            )
            for at in np.flatnonzero(scored & (right[0][_IMAGE] != right[1][_IMAGE]))
        ],
    )
