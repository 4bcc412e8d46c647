"""Pairs of rows, repair cases by rule, and the sentences that the intervals support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from katha.compass.modes import Row
from katha.compass.score import board_key
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, Outcomes
from katha.eval_bridge.scoring.statistics import compare, correct
from katha.experiments.ablate.folder import RowBoard, StoryResult
from katha.experiments.ablate.tally import Tally
from katha.schema import CONDITIONS, DIMENSIONS, Board

# ---
# Pairs of rows over the same stories: difference, interval and corrected p, or why there is none (Tables 55, 75).


What = Literal["all stories", "equal length"]
Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats, NDArray[np.bool_]]


def compared(
    tally: Tally, pooled: Mapping[str, Floats], pairs: Sequence[tuple[str, str]], what: What
) -> list[dict[str, Any]]:
    """One comparison a pair of rows, corrected together; `nothing` says why a pair has no difference.

    pooled: each row's counts, shape (stories, dimensions, 4).
    """
    even, job = what == "equal length", tally.job
    rows = [(job.suite.row(a), job.suite.row(b)) for a, b in pairs]
    counts = [_equal_length(tally, a, b) if even else _together(tally, pooled, a, b) for a, b in rows]
    found = compare(counts, job.resamples, job.seed)
    # The family is what the suite declares, whatever the data turn out to be.
    correct([item for pair, item in zip(rows, found, strict=True) if _without_gap(*pair) is None])
    return [
        {"a": a.name, "b": b.name, "what": what, **_told(item, _without_gap(a, b), tally.same(a, b, even=even), even)}
        for (a, b), item in zip(rows, found, strict=True)
    ]


def _without_gap(*rows: Row) -> str | None:
    """Why a difference of STG cannot be had from rows scored like that, or None where it can."""
    for row in rows:
        missing = [name for name in ("text", "image") if name not in row.scoring.conditions]
        if missing:
            return f"{row.name} has no answers under {' and '.join(missing)}, so it has no STG"
    return None


def _told(item: Mapping[str, Any], gapless: str | None, same: str | None, even: bool) -> dict[str, Any]:
    """A comparison with `same` (see `Tally.same`) and `nothing`: the reason where there is no difference."""
    nothing = gapless
    if nothing is None and not item["n_stories"]:
        nothing = "no story has a board of both" + (" with equally many frames" if even else "")
    elif nothing is None and same == "all":
        nothing = "these are the same boards"
    elif nothing is None and item["difference"] is None:
        nothing = "no story has valid questions for both"
    if nothing is None:
        return {**item, "same": same, "nothing": None}
    empty = dict.fromkeys(("difference", "image_difference", "ci95", "p_bootstrap", "p_corrected"))
    return {"family": 0, **item, **empty, "same": same, "nothing": nothing}


def _together(tally: Tally, pooled: Mapping[str, Floats], a: Row, b: Row) -> Pair:
    """Pooled counts of two rows, and which stories have a board of both."""
    both: NDArray[np.bool_] = np.all([tally.lengths(row).any(axis=0) for row in (a, b)], axis=0)
    return pooled[a.name], pooled[b.name], both


def _equal_length(tally: Tally, a: Row, b: Row) -> Pair:
    """Pooled counts of two rows from the boards of each story that show equally many frames."""
    ours, theirs = tally.lengths(a), tally.lengths(b)
    equal = (ours[:, None] == theirs[None]) & (ours[:, None] > 0)
    same_a, same_b = equal.any(axis=1), equal.any(axis=0)
    return tally.counts(a).pooled(same_a), tally.counts(b).pooled(same_b), same_a.any(axis=0)


# ---
# What the intervals of a table support, in sentences made by rule from its numbers.


ALPHA = 0.05
Finding = Literal["lower", "higher", "open", "none"]


def finding(row: Mapping[str, Any]) -> Finding:
    """What a comparison supports of `a` against `b`: a lower STG, a higher one, neither, or no interval at all.

    Lower or higher only when the 95% interval leaves out zero and the corrected p is below 5%.
    """
    if row["ci95"] is None:
        return "none"
    low, high = row["ci95"]
    p = row["p_corrected"]
    if p is None or p >= ALPHA or low <= 0.0 <= high:
        return "open"
    return "lower" if high < 0 else "higher"


def conclude(table: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict on the suite's claim, and the sentences that lead to it."""
    sentences = [_sentence(row) for row in table["comparisons"]]
    verdict, words = _verdict(table)
    return {"verdict": verdict, "text": words + _pairs_without_focus(table), "sentences": sentences}


def _sentence(row: Mapping[str, Any]) -> str:
    even = row["what"] == "equal length"
    what = f"{row['a']} against {row['b']}" + (", boards of equal length" if even else "")
    if row["nothing"] is not None:
        return f"{what}: {row['nothing']}: nothing to compare."
    stories = f"{row['n_stories']} {'story' if row['n_stories'] == 1 else 'stories'}"
    size = f"STG {row['difference']:+.1f} points on {stories}"
    if row["ci95"] is None:
        return f"{what}: {size}; too few for an interval, so nothing is concluded."
    low, high = row["ci95"]
    p = "" if row["p_corrected"] is None else f", corrected p {p_words(row['p_corrected'])} by {_nonzero(row)}"
    measured = row["same"] == "boards"
    supports = {
        "lower": "a lower STG is measured on the same boards." if measured else f"{row['a']} loses less.",
        "higher": "a higher STG is measured on the same boards." if measured else f"{row['a']} loses more.",
        "open": f"no difference is shown ({_why_open(row)}).",
    }[finding(row)]
    return f"{what}: {size} (95% {low:+.1f} to {high:+.1f}{p}): {supports}"


def _nonzero(row: Mapping[str, Any]) -> str:
    """How many stories carry the test: those whose two boards differ."""
    count = row["wilcoxon"]["n_nonzero"]
    return f"{count} {'story that differs' if count == 1 else 'stories that differ'}"


def _why_open(row: Mapping[str, Any]) -> str:
    low, high = row["ci95"]
    if low <= 0.0 <= high:
        return "the interval holds zero"
    if row["family"] == 1:
        return "the interval leaves out zero, but p is not below 5%"
    return f"the interval leaves out zero, but not after correction for {row['family']} comparisons"


def p_words(value: float) -> str:
    """A p-value with three decimals, the smallest as a bound."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _verdict(table: Mapping[str, Any]) -> tuple[str, str]:
    """By rule: the focus must beat the baseline, and every row of its pairs, each with an interval that says so."""
    focus, base = table["focus"], table["baseline"]
    rows = [row for row in table["comparisons"] if row["what"] == "all stories"]
    if not rows:
        return "undecided", f"Only {base} was run, so there is nothing to compare it with."
    if focus is None:
        return _plain(rows, base)
    gain = next((row for row in rows if (row["a"], row["b"]) == (focus, base)), None)
    if gain is None or finding(gain) == "none":
        return "undecided", f"There are too few stories to say whether {focus} improves on {base}."
    if finding(gain) == "higher":
        return "refuted", f"{focus} is worse than {base}: its interval lies above zero."
    if finding(gain) == "open":
        return "not shown", f"That {focus} improves on {base} is not shown: {_why_open(gain)}."
    controls = dict.fromkeys(row["b"] for row in table["comparisons"] if row["a"] == focus and row["b"] != base)
    return _against_controls(focus, base, [_decisive(table["comparisons"], focus, name) for name in controls])


def _decisive(rows: Sequence[Mapping[str, Any]], focus: str, control: str) -> Mapping[str, Any]:
    """The comparison that decides about a control: at equal length, unless equally long boards are the same boards."""
    pair = {row["what"]: row for row in rows if (row["a"], row["b"]) == (focus, control)}
    even = pair.get("equal length")
    return pair["all stories"] if even is None or even["same"] == "all" else even


def _against_controls(focus: str, base: str, decisive: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    better = [_control(row) for row in decisive if finding(row) == "lower"]
    unclear = [_control(row) for row in decisive if finding(row) in ("open", "none")]
    worse = [_control(row) for row in decisive if finding(row) == "higher"]
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


def _control(row: Mapping[str, Any]) -> str:
    """A control with the boards that it was compared on."""
    return f"{row['b']} (equal length)" if row["what"] == "equal length" else f"{row['b']} (all stories)"


def _pairs_without_focus(table: Mapping[str, Any]) -> str:
    """What the suite's pairs show that are about neither its focus nor its baseline."""
    rows = [row for row in table["comparisons"] if row["what"] == "all stories"]
    pairs = [row for row in rows if row["a"] != table["focus"] and row["b"] != table["baseline"]]
    words = {"lower": "less", "higher": "more"}
    shown = [f"{row['a']} loses {words[found]} than {row['b']}" for row in pairs if (found := finding(row)) in words]
    if not pairs:
        return ""
    return f" In pairs: {'; '.join(shown)}." if shown else " In pairs, no row is shown to differ from the other."


def _plain(rows: Sequence[Mapping[str, Any]], base: str) -> tuple[str, str]:
    lower = [row["a"] for row in rows if row["b"] == base and finding(row) == "lower"]
    higher = [row["a"] for row in rows if row["b"] == base and finding(row) == "higher"]
    if all(finding(row) == "none" for row in rows):
        return "undecided", f"There are too few stories to say whether a row differs from {base}."
    if not lower and not higher:
        return "open", f"No row is shown to differ from {base}."
    parts = [f"lower STG: {', '.join(lower)}"] if lower else []
    parts += [f"higher STG: {', '.join(higher)}"] if higher else []
    measured = " on the same boards, so this is about how they are measured" if _all_same(rows) else ""
    return "measured" if measured else "shown", f"Shown against {base}{measured}: {'; '.join(parts)}."


def _all_same(rows: Sequence[Mapping[str, Any]]) -> bool:
    return all(row["same"] == "boards" for row in rows)


# ---
# Repair cases by rule (Sec. K.2, Table 68): successes, boundaries and harms, chosen by numbers and never by eye.


_EACH = 3
_TEXT, _IMAGE, _BOTH = range(3)
_RULE = (
    "Every accepted repair whose board before it was judged too is measured by its change of STG on the reporting "
    f"questions valid for both boards. Success: the {_EACH} largest falls. Harm: the {_EACH} largest rises. Boundary: "
    f"the {_EACH} smallest changes of the rest. Ties go by story id."
)


def repair_cases(tally: Tally) -> dict[str, Any] | None:
    """The cases of the suite's focus row, and how often its repairs harm; None for a suite without one."""
    if tally.job.suite.focus is None:
        return None
    row = tally.job.suite.row(tally.job.suite.focus)
    found: list[dict[str, Any]] = []
    repaired = 0
    for result in tally.results:
        for board in result.boards:
            if board.row == row.name and board.before is not None:
                repaired += 1
                case = _case(tally, row, result, board)
                found += [case] if case is not None else []
    worse = sum(case["image_change"] < -1e-9 for case in found)
    better = sum(case["image_change"] > 1e-9 for case in found)
    return {
        "row": row.name,
        "rule": _RULE,
        "repaired": repaired,
        "measured": len(found),
        "harmed": worse,
        "improved": better,
        "harm_rate": 100.0 * worse / len(found) if found else None,
        "cases": _chosen(found),
    }


def _chosen(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    falls = sorted((c for c in found if c["delta"] < -1e-9), key=lambda c: (c["delta"], c["story_id"]))[:_EACH]
    rises = sorted((c for c in found if c["delta"] > 1e-9), key=lambda c: (-c["delta"], c["story_id"]))[:_EACH]
    taken = {case["story_id"] for case in (*falls, *rises)}
    rest = [case for case in found if case["story_id"] not in taken]
    small = sorted(rest, key=lambda c: (abs(c["delta"]), c["story_id"]))[:_EACH]
    groups = (("success", falls), ("boundary", small), ("harm", rises))
    return [{"group": group, **case} for group, cases in groups for case in cases]


def _case(tally: Tally, row: Row, result: StoryResult, board: RowBoard) -> dict[str, Any] | None:
    """One repair before and after; None when the board before was not judged or no question is valid for both."""
    before = _judged_as(result, board.before)
    outcomes = tally.outcomes(row)
    if before is None or not {before, board.method} <= set(outcomes.methods):
        return None
    cells = [outcomes.cells[outcomes.methods.index(name), -1] for name in (before, board.method)]
    own = outcomes.story_of == outcomes.stories.index(result.story_id)
    right = [item == RIGHT for item in cells]
    scored = own & (cells[0] != MISSING).all(axis=0) & (cells[1] != MISSING).all(axis=0)
    valid = scored & right[0][_BOTH] & right[1][_BOTH]
    if not valid.any():
        return None
    stg = [_mean(outcomes, item[_TEXT], valid) - _mean(outcomes, item[_IMAGE], valid) for item in right]
    seen = [_mean(outcomes, item[_IMAGE], scored) for item in right]
    return {
        "story_id": result.story_id,
        "title": result.title,
        "before": before,
        "after": board.method,
        "stg_before": 100.0 * stg[0],
        "stg_after": 100.0 * stg[1],
        "delta": 100.0 * (stg[1] - stg[0]),
        "image_change": 100.0 * (seen[1] - seen[0]),
        "n_valid": int(valid.sum()),
        "weakest": board.decision.weakest,
        "reason": board.decision.reason,
        "frames": [frame.model_dump(mode="json") for frame in board.board.frames],
        "frames_before": [frame.sha256 for frame in board.before.frames] if board.before else [],
        "questions": _changed(outcomes, scored, right),
    }


def _judged_as(result: StoryResult, board: Board | None) -> str | None:
    """The method under which a board of that very look was judged."""
    wanted = board_key(board.frames) if board is not None else None
    return next((item.method for item in result.boards if board_key(item.board.frames) == wanted), None)


def _mean(outcomes: Outcomes, right: NDArray[np.bool_], kept: NDArray[np.bool_]) -> float:
    """The mean over the dimensions that have a question, in 0..1."""
    rates = [
        float(right[own].mean()) for at in range(len(DIMENSIONS)) if (own := kept & (outcomes.dimension_of == at)).any()
    ]
    return float(np.mean(rates)) if rates else 0.0


def _changed(outcomes: Outcomes, scored: NDArray[np.bool_], right: list[NDArray[np.bool_]]) -> list[dict[str, Any]]:
    """The questions whose verdict from the images changed."""
    image = CONDITIONS.index("image")
    return [
        {
            "question": outcomes.questions[at].question,
            "dimension": outcomes.questions[at].question_type,
            "gold": outcomes.questions[at].gold_answer,
            "before": bool(right[0][image, at]),
            "after": bool(right[1][image, at]),
        }
        for at in np.flatnonzero(scored & (right[0][image] != right[1][image]))
    ]
