"""What a suite's table concludes: pairs of rows, the sentences that the intervals support, and repair cases by rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from katha.compass.modes import SuiteRow
from katha.compass.repair import board_key
from katha.eval_bridge.scoring.gate import CANNOT
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT
from katha.eval_bridge.scoring.rows import RowCounts, compare, correct
from katha.eval_bridge.scoring.scores import BLOCKS, disagree
from katha.eval_bridge.scoring.statistics import averages, story_counts
from katha.experiments.ablate import power
from katha.experiments.ablate.job import RowBoard, StoryResult
from katha.experiments.ablate.tally import SuiteFolder
from katha.schema import Board
from katha.schema.scores import RowDifference
from katha.schema.tables import ChangedQuestion, Conclusion, RepairCase, RepairCases, RowComparison, Verdict

ROW_BLOCKS = (*BLOCKS, "rest", "unguessed")
"""The questions that rows are compared on: the blocks of `scores.json`, and those that no prompt gave away."""
What = Literal["all stories", "equal length"]
Floats = NDArray[np.float64]
Blocks = Mapping[str, Floats]
"""One row's counts by block, each of shape (stories, dimensions, 4)."""


def compared(tally: SuiteFolder, pooled: Mapping[str, Blocks], pairs: Sequence[tuple[str, str]]) -> list[RowComparison]:
    """Return one comparison a pair of rows, corrected together (Tables 55, 75); `nothing` says why there is none.

    pooled: each row's counts, by row and block (see `blocks_of`).
    """
    job = tally.job
    rows = [(job.suite.row(a), job.suite.row(b)) for a, b in pairs]
    first = pairs.index(job.suite.primary) if job.suite.primary in pairs else None
    idle = [
        at
        for at, pair in enumerate(rows)
        if _without_gap(*pair) or _unmeasured(tally, *pair) or tally.same(*pair) == "all"
    ]
    found: dict[str, list[RowDifference]] = {}
    for block in ROW_BLOCKS:
        counts = [(pooled[a.name][block], pooled[b.name][block], _have_both(tally, a, b)) for a, b in rows]
        made = compare(counts, job.resamples, job.seed)
        found[block] = correct(made, job.suite.secondary, first, idle)
    numbers = zip(*(found[block] for block in ROW_BLOCKS), strict=True)
    return [_comparison(tally, pair, *item) for pair, item in zip(rows, numbers, strict=True)]


def blocks_of(tally: SuiteFolder, row: SuiteRow) -> dict[str, RowCounts]:
    """Return the counts of one row on each block of questions."""
    return {
        "raw": tally.counts(row, filtered=False),
        "filtered": tally.counts(row),
        "common_valid": tally.counts(row, common=True),
        "rest": tally.counts(row, common=True, without=set().union(*tally.given_away.values())),
        "unguessed": tally.counts(row, common=True, without=tally.guessed(row) or ()),
    }


def _unmeasured(tally: SuiteFolder, *rows: SuiteRow) -> str | None:
    """Return which row cannot be measured, and why; None where all can."""
    told = ((row.name, tally.unmeasured(row)) for row in rows)
    return next((f"{name} {CANNOT} ({why})" for name, why in told if why is not None), None)


def _without_gap(*rows: SuiteRow) -> str | None:
    """Return why a difference of STG cannot be had from rows scored like that, or None where it can."""
    for row in rows:
        if row.lacks:
            return f"{row.name} has no answers under {' and '.join(row.lacks)}, so it has no STG"
    return None


def _comparison(
    tally: SuiteFolder,
    pair: tuple[SuiteRow, SuiteRow],
    raw: RowDifference,
    own: RowDifference,
    common: RowDifference,
    rest: RowDifference,
    unguessed: RowDifference,
) -> RowComparison:
    """Return what was found of a pair, or without its numbers where there is nothing to compare."""
    alike = pair[0].scored_like(pair[1])
    gapless, same = _without_gap(*pair), tally.same(*pair)
    nothing = gapless or tally.circular(*pair)
    headline = common if alike else own
    if nothing is None and not own.n_stories:
        nothing = "no story has a board of both"
    elif nothing is None and same == "all":
        nothing = "these are the same boards"
    nothing = nothing or _unmeasured(tally, *pair)
    empty = nothing is None and headline.difference is None
    numbers = dict(own) | ({"family": 0} if gapless is not None else {})
    names = (pair[0].name, pair[1].name)
    told: dict[str, object] = {"a": names[0], "b": names[1], "same": same, "nothing": nothing}
    told["role"] = "primary" if names == tally.job.suite.primary else "secondary"
    designed = names in tally.job.suite.controls and tally.equally_long(*pair)
    told["what"] = "equal length" if designed else "all stories"
    if nothing is not None:
        numbers |= dict.fromkeys(("difference", "image_difference", "ci95", "p_bootstrap", "p_corrected"))
        numbers |= {"p_bootstrap_corrected": None}
    elif alike:
        told |= {"common_valid": common, "raw": raw}
        told |= {"rest": rest if any(tally.given_away.values()) else None}
        told |= {"unguessed": unguessed if tally.guessed(pair[0]) is not None else None}
        told["disagree"] = disagree((common.difference, own.difference, raw.difference))
    if empty:  # what stands beside the headline is kept
        told["nothing"] = f"no question is valid for {'all rows that are scored alike' if alike else 'both'}"
    return RowComparison.model_validate(numbers | told)


def _have_both(tally: SuiteFolder, a: SuiteRow, b: SuiteRow) -> NDArray[np.bool_]:
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


# A reader keeps no more; the page has every pair.
_MOST_SENTENCES = 7


def conclude(
    comparisons: Sequence[RowComparison],
    focus: str | None,
    baseline: str,
    *,
    asked: tuple[str, str] | None = None,
    steering: str | None = None,
) -> Conclusion:
    """Return the verdict on the suite's primary contrast, and at most seven sentences, harm before gain.

    focus: the row whose contrast with the baseline is meant where none is declared. asked: the declared contrast, where
    one of its rows was not run. steering: what choosing by the judge is worth.
    """
    chosen = next((row for row in comparisons if row.role == "primary"), None)
    if chosen is None and asked is None and focus is not None:
        chosen = next((row for row in comparisons if (row.a, row.b) == (focus, baseline)), None)
    rest = [row for row in comparisons if row is not chosen]
    verdict, text = _of_primary(chosen) if chosen is not None else _without_primary(comparisons, baseline, asked)
    able = power.found(chosen) if chosen is not None and finding(chosen) == "open" else None
    instead = [sentence_of(row) for row in rest[:2]] if chosen is None and asked is not None else []
    sentences = [*instead, *_shown(rest), *filter(None, (steering, able)), *_open(chosen, rest)]
    return Conclusion(verdict=verdict, text=text, sentences=sentences[: _MOST_SENTENCES - 1])


def _of_primary(row: RowComparison) -> tuple[Verdict, str]:
    verdicts: dict[Finding, Verdict] = {"lower": "shown", "higher": "refuted", "open": "not shown", "none": "undecided"}
    verdict = verdicts[finding(row)]
    return "measured" if verdict == "shown" and row.same == "boards" else verdict, sentence_of(row)


def _without_primary(rows: Sequence[RowComparison], base: str, asked: tuple[str, str] | None) -> tuple[Verdict, str]:
    if asked is not None:
        return "undecided", f"The suite's contrast, {asked[0]} against {asked[1]}, was not run."
    if not rows:
        return "undecided", f"Only {base} was run, so there is nothing to compare it with."
    found = {finding(row) for row in rows}
    if found == {"none"}:
        return "undecided", f"There are too few stories to say whether a row differs from {base}."
    if not found & {"lower", "higher"}:
        return "open", "No row is shown to differ from another."
    measured = all(row.same == "boards" for row in rows)
    how = ": the boards are the same, so this is about how they are measured" if measured else ""
    return "measured" if measured else "shown", f"Rows are shown to differ{how}."


def _shown(rows: Sequence[RowComparison]) -> list[str]:
    """Return what is shown beside the primary contrast, corrected together: harm first."""
    found = []
    for wanted, words in (("higher", "Shown to lose more"), ("lower", "Shown to lose less")):
        pairs = [row for row in rows if finding(row) == wanted]
        told = "; ".join(f"{row.a} than {row.b} ({_size(row)})" for row in pairs)
        found += [f"{words}, of {pairs[0].headline.family} secondary contrasts: {told}."] if pairs else []
    return found


def _size(row: RowComparison) -> str:
    told = row.headline
    low, high = told.ci95 or (0.0, 0.0)
    return f"{change_words(told.difference)}, {low:+.1f} to {high:+.1f}"


def _open(primary: RowComparison | None, rows: Sequence[RowComparison]) -> list[str]:
    """Return what is not shown: at equal length and budget by name, all others by their number."""
    found = []
    level = [row for row in rows if row.what == "equal length" and finding(row) in ("open", "none")]
    if level and primary is not None:
        told = ", ".join(f"{row.a} on {row.b}" for row in level)
        found.append(f"Not shown at equal length and budget: {told}; so a gain may come from what these have too.")
    others = [row for row in rows if row not in level and row.nothing is None and finding(row) in ("open", "none")]
    if others:
        found.append(f"No difference is shown in {len(others)} further {'pair' if len(others) == 1 else 'pairs'}.")
    if idle := [row for row in rows if row.nothing is not None]:
        found.append(f"{len(idle)} {'pair has' if len(idle) == 1 else 'pairs have'} nothing to compare.")
    return found


def p_words(value: float) -> str:
    """Return a p-value with three decimals, the smallest as a bound."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def sentence_of(row: RowComparison) -> str:
    """Return one comparison as a sentence: the difference, its interval, p, and what they support."""
    what = f"{row.a} against {row.b}" + (", equally long by design" if row.what == "equal length" else "")
    if row.nothing is not None:
        return f"{what}: {row.nothing}: nothing to compare."
    told = row.headline
    stories = f"{told.n_stories} {'story' if told.n_stories == 1 else 'stories'}"
    size = f"STG {told.difference:+.1f} points on {stories}{_beside(row)}"
    if told.ci95 is None:
        return f"{what}: {size}; too few stories hold a question for an interval, so nothing is concluded."
    low, high = told.ci95
    count = told.wilcoxon.n_nonzero
    carried = f"{count} {'story that differs' if count == 1 else 'stories that differ'}"
    kind = "p" if told.family == 1 else "corrected p"
    p = "" if told.p_corrected is None else f", {kind} {p_words(told.p_corrected)} by {carried}"
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


def repair_cases(tally: SuiteFolder) -> RepairCases | None:
    """Return the cases of the suite's focus row, and how often its repairs harm; None for a suite without one."""
    if tally.job.suite.focus is None or tally.unmeasured(tally.job.suite.row(tally.job.suite.focus)) is not None:
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


def _case(tally: SuiteFolder, row: SuiteRow, result: StoryResult, board: RowBoard, old: Board) -> RepairCase | None:
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
