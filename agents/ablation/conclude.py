"""What the intervals of a table support, in sentences made by rule from its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

__all__ = ["ALPHA", "conclude", "finding"]

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
    return {"verdict": verdict, "text": words, "sentences": sentences}


def _sentence(row: Mapping[str, Any]) -> str:
    what = f"{row['a']} against {row['b']}" + (", boards of equal length" if row["what"] == "equal length" else "")
    if row["difference"] is None:
        return f"{what}: no story has valid questions for both, so nothing is compared."
    stories = f"{row['n_stories']} {'story' if row['n_stories'] == 1 else 'stories'}"
    size = f"STG {row['difference']:+.1f} points on {stories}"
    if row["ci95"] is None:
        return f"{what}: {size}; too few for an interval, so nothing is concluded."
    low, high = row["ci95"]
    p = "" if row["p_corrected"] is None else f", corrected p {row['p_corrected']:.3f}"
    supports = {
        "lower": f"{row['a']} loses less.",
        "higher": f"{row['a']} loses more.",
        "open": f"no difference is shown ({_why_open(row)}).",
    }[finding(row)]
    return f"{what}: {size} (95% {low:+.1f} to {high:+.1f}{p}): {supports}"


def _why_open(row: Mapping[str, Any]) -> str:
    low, high = row["ci95"]
    if low <= 0.0 <= high:
        return "the interval holds zero"
    return f"the interval leaves out zero, but not after correction for {row['family']} comparisons"


def _verdict(table: Mapping[str, Any]) -> tuple[str, str]:
    """By rule: the focus must beat the baseline, and every row of its pairs, each with an interval that says so."""
    focus, base = table["focus"], table["baseline"]
    if focus is None:
        rows = [row for row in table["comparisons"] if row["what"] == "all stories"]
        return _plain(rows)
    gain = next((row for row in table["comparisons"] if (row["a"], row["b"]) == (focus, base)), None)
    pairs = [row for row in table["comparisons"] if row["a"] == focus and row["b"] != base]
    if gain is None or finding(gain) == "none":
        return "undecided", f"There are too few stories to say whether {focus} improves on {base}."
    if finding(gain) == "higher":
        return "refuted", f"{focus} is worse than {base}: its interval lies above zero."
    if finding(gain) == "open":
        return "not shown", f"That {focus} improves on {base} is not shown: {_why_open(gain)}."
    return _against_controls(focus, base, pairs)


def _against_controls(focus: str, base: str, pairs: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    even = [row for row in pairs if row["what"] == "equal length"]
    open_ones = [row["b"] for row in even if finding(row) in ("open", "none")]
    worse = [row["b"] for row in even if finding(row) == "higher"]
    if worse:
        text = f"{focus} improves on {base}, but at equal length it is worse than {', '.join(worse)}."
        return "refuted", text
    if open_ones:
        text = (
            f"{focus} improves on {base}; at equal length it is not shown to differ from {', '.join(open_ones)}, "
            "so the gain may come from what these have too."
        )
        return "partly shown", text
    return "shown", f"{focus} improves on {base} and on every control at equal length."


def _plain(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    lower = [row["a"] for row in rows if finding(row) == "lower"]
    higher = [row["a"] for row in rows if finding(row) == "higher"]
    if not lower and not higher:
        return "open", "No row is shown to differ from the baseline."
    parts = [f"lower STG: {', '.join(lower)}"] if lower else []
    parts += [f"higher STG: {', '.join(higher)}"] if higher else []
    return "shown", f"Shown against the baseline: {'; '.join(parts)}."
