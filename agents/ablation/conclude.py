"""What the intervals of a table support, in sentences made by rule from its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

__all__ = ["ALPHA", "conclude", "finding", "p_words"]

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
