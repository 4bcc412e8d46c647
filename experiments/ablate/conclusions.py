"""What a suite's table concludes: pairs of rows, the sentences that the intervals support, and repair cases by rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from katha.compass.modes import Row
from katha.compass.repair import board_key
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT
from katha.eval_bridge.scoring.rows import compare, correct
from katha.eval_bridge.scoring.statistics import averages, story_counts
from katha.experiments.ablate.job import RowBoard, StoryResult
from katha.experiments.ablate.tally import Tally
from katha.schema import Board
from katha.schema.scores import RowDifference
from katha.schema.tables import ChangedQuestion, Conclusion, RepairCase, RepairCases, RowComparison, Verdict

What = Literal["all stories", "equal length"]
Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats, NDArray[np.bool_]]


def compared(
    tally: Tally, pooled: Mapping[str, Floats], pairs: Sequence[tuple[str, str]], what: What
) -> list[RowComparison]:
    """Return one comparison a pair of rows, corrected together (Tables 55, 75); `nothing` says why there is none.

    pooled: each row's counts, shape (stories, dimensions, 4).
    """
    job = tally.job
    rows = [(job.suite.row(a), job.suite.row(b)) for a, b in pairs]
    counts = [_equal_length(tally, a, b) if what == "equal length" else _together(tally, pooled, a, b) for a, b in rows]
    # The family is what the suite declares, whatever the data turn out to be.
    family = sum(_without_gap(*pair) is None for pair in rows)
    found = compare(counts, job.resamples, job.seed)
    return [_comparison(tally, pair, what, item, family) for pair, item in zip(rows, found, strict=True)]


def _without_gap(*rows: Row) -> str | None:
    """Return why a difference of STG cannot be had from rows scored like that, or None where it can."""
    for row in rows:
        missing = [name for name in ("text", "image") if name not in row.scoring.conditions]
        if missing:
            return f"{row.name} has no answers under {' and '.join(missing)}, so it has no STG"
    return None


def _comparison(tally: Tally, pair: tuple[Row, Row], what: What, found: RowDifference, family: int) -> RowComparison:
    """Return what was found of a pair, or without its numbers where there is nothing to compare."""
    even = what == "equal length"
    gapless, same = _without_gap(*pair), tally.same(*pair, even=even)
    nothing = gapless
    if nothing is None and not found.n_stories:
        nothing = "no story has a board of both" + (" with equally many frames" if even else "")
    elif nothing is None and same == "all":
        nothing = "these are the same boards"
    elif nothing is None and found.difference is None:
        nothing = "no story has valid questions for both"
    numbers = dict(found if gapless is not None else correct(found, family))
    if nothing is not None:
        numbers |= dict.fromkeys(("difference", "image_difference", "ci95", "p_bootstrap", "p_corrected"))
    told = {"a": pair[0].name, "b": pair[1].name, "what": what, "same": same, "nothing": nothing}
    return RowComparison.model_validate(numbers | told)


def _together(tally: Tally, pooled: Mapping[str, Floats], a: Row, b: Row) -> Pair:
    """Return pooled counts of two rows, and which stories have a board of both."""
    both: NDArray[np.bool_] = np.all([tally.lengths(row).any(axis=0) for row in (a, b)], axis=0)
    return pooled[a.name], pooled[b.name], both


def _equal_length(tally: Tally, a: Row, b: Row) -> Pair:
    """Return pooled counts of two rows from the boards of each story that show equally many frames."""
    ours, theirs = tally.lengths(a), tally.lengths(b)
    equal = (ours[:, None] == theirs[None]) & (ours[:, None] > 0)
    same_a, same_b = equal.any(axis=1), equal.any(axis=0)
    return tally.counts(a).pooled(same_a), tally.counts(b).pooled(same_b), same_a.any(axis=0)


# What the intervals of a table support, in sentences made by rule from its numbers.


ALPHA = 0.05
Finding = Literal["lower", "higher", "open", "none"]


def finding(row: RowComparison) -> Finding:
    """Return what a comparison supports of `a` against `b`: a lower STG, a higher one, neither, or no interval at all.

    Lower or higher only when the 95% interval leaves out zero and the corrected p is below 5%.
    """
    if row.ci95 is None:
        return "none"
    (low, high), p = row.ci95, row.p_corrected
    if p is None or p >= ALPHA or low <= 0.0 <= high:
        return "open"
    return "lower" if high < 0 else "higher"


def conclude(comparisons: Sequence[RowComparison], focus: str | None, baseline: str) -> Conclusion:
    """Return the verdict on the suite's claim, and one sentence for each comparison."""
    sentences = [_sentence(row) for row in comparisons]
    whole = [row for row in comparisons if row.what == "all stories"]
    verdict: Verdict = "undecided"
    text = f"Only {baseline} was run, so there is nothing to compare it with."
    if whole and focus is None:
        verdict, text = _without_focus(whole, baseline)
    elif whole and focus is not None:
        verdict, text = _of_focus(comparisons, whole, focus, baseline)
    return Conclusion(verdict=verdict, text=text + _pairs_beside(whole, focus, baseline), sentences=sentences)


def p_words(value: float) -> str:
    """Return a p-value with three decimals, the smallest as a bound."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _sentence(row: RowComparison) -> str:
    what = f"{row.a} against {row.b}" + (", boards of equal length" if row.what == "equal length" else "")
    if row.nothing is not None:
        return f"{what}: {row.nothing}: nothing to compare."
    stories = f"{row.n_stories} {'story' if row.n_stories == 1 else 'stories'}"
    size = f"STG {row.difference:+.1f} points on {stories}"
    if row.ci95 is None:
        return f"{what}: {size}; too few for an interval, so nothing is concluded."
    low, high = row.ci95
    count = row.wilcoxon.n_nonzero
    carried = f"{count} {'story that differs' if count == 1 else 'stories that differ'}"
    p = "" if row.p_corrected is None else f", corrected p {p_words(row.p_corrected)} by {carried}"
    measured = row.same == "boards"
    supports = {
        "lower": "a lower STG is measured on the same boards." if measured else f"{row.a} loses less.",
        "higher": "a higher STG is measured on the same boards." if measured else f"{row.a} loses more.",
        "open": f"no difference is shown ({_why_open(row)}).",
    }[finding(row)]
    return f"{what}: {size} (95% {low:+.1f} to {high:+.1f}{p}): {supports}"


def _why_open(row: RowComparison) -> str:
    if row.ci95 is not None and row.ci95[0] <= 0.0 <= row.ci95[1]:
        return "the interval holds zero"
    if row.family == 1:
        return "the interval leaves out zero, but p is not below 5%"
    return f"the interval leaves out zero, but not after correction for {row.family} comparisons"


def _of_focus(
    comparisons: Sequence[RowComparison], whole: Sequence[RowComparison], focus: str, base: str
) -> tuple[Verdict, str]:
    """Decide by rule: the focus must beat the baseline and every row of its pairs, each by an interval that says so."""
    gain = next((row for row in whole if (row.a, row.b) == (focus, base)), None)
    if gain is None or finding(gain) == "none":
        return "undecided", f"There are too few stories to say whether {focus} improves on {base}."
    if finding(gain) == "higher":
        return "refuted", f"{focus} is worse than {base}: its interval lies above zero."
    if finding(gain) == "open":
        return "not shown", f"That {focus} improves on {base} is not shown: {_why_open(gain)}."
    controls = dict.fromkeys(row.b for row in comparisons if row.a == focus and row.b != base)
    return _against_controls(focus, base, [_decisive(comparisons, focus, name) for name in controls])


def _decisive(rows: Sequence[RowComparison], focus: str, control: str) -> RowComparison:
    """Return the comparison that decides about a control: at equal length, unless equally long boards are the same."""
    pair = {row.what: row for row in rows if (row.a, row.b) == (focus, control)}
    even = pair.get("equal length")
    return pair["all stories"] if even is None or even.same == "all" else even


def _against_controls(focus: str, base: str, decisive: Sequence[RowComparison]) -> tuple[Verdict, str]:
    def found(*wanted: Finding) -> list[str]:
        return [f"{row.b} ({row.what})" for row in decisive if finding(row) in wanted]

    better, unclear, worse = found("lower"), found("open", "none"), found("higher")
    if worse:
        return "refuted", f"{focus} improves on {base}, but it is worse than {', '.join(worse)}."
    if not decisive:
        return "shown", f"{focus} improves on {base}."
    beaten = f" and on {', '.join(better)}" if better else ""
    if unclear:
        rest = "so the gain may come from what these have too"
        text = f"{focus} improves on {base}{beaten}. It is not shown to differ from {', '.join(unclear)}, {rest}."
        return "partly shown", text
    return "shown", f"{focus} improves on {base}{beaten}: on every control."


def _pairs_beside(whole: Sequence[RowComparison], focus: str | None, base: str) -> str:
    """Return what the suite's pairs show that are about neither its focus nor its baseline."""
    pairs = [row for row in whole if row.a != focus and row.b != base]
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
    before = next((item.method for item in result.boards if board_key(item.board.frames) == look), None)
    if before is None or not {before, board.method} <= set(outcomes.methods):
        return None
    cells = [outcomes.cells[outcomes.methods.index(name), -1] for name in (before, board.method)]
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
        after=board.method,
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
