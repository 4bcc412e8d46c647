"""From an ablation's files to what its report shows: plain dictionaries, every number already worded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from katha.agents.ablation.conclude import p_words
from katha.cli.ablation_report.people import people_columns
from katha.cli.report.load import panel_uri
from katha.cli.report.words import DIMENSION_WORDS, points
from katha.jsonio import dumps, read_json

__all__ = ["build_view"]

_TONES = {"shown": "better", "partly shown": "mixed", "refuted": "worse"}
_GROUPS = {
    "success": ("Successes", "The repairs that lowered the gap most."),
    "boundary": ("Boundaries", "Repairs that changed least."),
    "harm": ("Harms", "The repairs that raised the gap most."),
}


def build_view(out: Path) -> dict[str, Any]:
    """Everything `ablation.html.j2` shows.

    Raises:
        InputFileError: a file of the ablation is missing or broken.
    """
    table, state = read_json(out / "table.json"), read_json(out / "ablation.json")
    low, high = _axis(table["rows"])
    return {
        "table": table,
        "tone": _TONES.get(table["conclusion"]["verdict"], "open"),
        "rows": [_row(row, table, low, high) for row in table["rows"] if row["not_run"] is None],
        "not_run": [(row["mode"], row["not_run"]) for row in table["rows"] if row["not_run"] is not None],
        "zero": _place(0.0, low, high),
        "comparisons": [_comparison(row) for row in table["comparisons"]],
        "groups": _groups(table["cases"], out),
        "cases": table["cases"],
        "steered": any(row["steered"] for row in table["rows"]),
        "sketch": "sketch-reader" in table["judges"],
        "lock": state["lock"],
        "repeat": _repeat(state),
        "moral": any("chance" in row for row in table["rows"]),
        "measured": table["conclusion"]["verdict"] == "measured",
        "apart": any(row["improved"] is not None for row in table["rows"]),
        "uneven": any(row["stories"] not in (None, table["stories"]) for row in table["rows"]),
        "people": people_columns(table["rows"]),
        "leaks": any(row["ambiguity_leakage"] for row in table["rows"]),
    }


def _axis(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """One axis for all changes of STG, zero within it."""
    values = [value for row in rows for value in (row["delta_stg"], *(row["ci95"] or ())) if value is not None]
    return min([-1.0, *values]), max([1.0, *values])


def _place(value: float, low: float, high: float) -> float:
    return 100.0 * (value - low) / (high - low)


def _row(row: Mapping[str, Any], table: Mapping[str, Any], low: float, high: float) -> dict[str, Any]:
    change, ends = row["delta_stg"], row["ci95"]
    bar = None
    if change is not None:
        span = ends or [change, change]
        bar = [_place(value, low, high) for value in (min(0.0, change), max(0.0, change), *span)]
    return {
        "name": row["mode"],
        "about": row["about"],
        "base": row["mode"] == table["baseline"],
        "focus": row["mode"] == table["focus"],
        "steered": row["steered"],
        "change": "" if change is None else f"{change:+.1f}",
        "ci": interval(ends),
        "p": p_value(row["p_corrected"]),
        "bar": bar,
        "tone": "" if change is None or _same(row, table) else "loss" if change > 0 else "gain",
        "text": points(row["text"]),
        "image": points(row["image"]),
        "stg": points(row["stg"]),
        "image_ci": _plain(row["image_ci95"]),
        "stg_ci": _plain(row["stg_ci95"]),
        "stories": row["stories"],
        "left": len(row["invalid_stories"]),
        "valid": f"{row['valid']:,} of {row['scored']:,}",
        "frames": "–" if row["frames"] is None else f"{row['frames']:.2f}",
        "drawn": f"{row['frames_rendered']:,}",
        "asked": f"{row['questions_asked']:,}",
        "bridges": f"{row['accepted_bridges']:.1f}".removesuffix(".0"),
        "copies": "–" if row["copy_rate"] is None else f"{points(row['copy_rate'])}%",
        "leakage": points(row["ambiguity_leakage"]),
        "moved": "" if row["improved"] is None else f"{points(row['improved'])}% / {points(row['harmed'])}%",
        "chance": points(row.get("chance")),
    }


def _same(row: Mapping[str, Any], table: Mapping[str, Any]) -> bool:
    """Whether the row has the baseline's boards, so that its change is neither gain nor loss."""
    pair = (row["mode"], table["baseline"])
    return any((item["a"], item["b"]) == pair and item["same"] is not None for item in table["comparisons"])


def interval(value: Sequence[float] | None) -> str:
    """A difference's interval, signed."""
    return f"{value[0]:+.1f} to {value[1]:+.1f}" if value else ""


def _plain(value: Sequence[float] | None) -> str:
    return f"{value[0]:.1f} to {value[1]:.1f}" if value else ""


def p_value(value: float | None) -> str:
    """A corrected p-value, or a dash."""
    return "–" if value is None else p_words(value)


def _comparison(row: Mapping[str, Any]) -> dict[str, Any]:
    change = row["difference"]
    return {
        "pair": f"{row['a']} against {row['b']}",
        "what": row["what"],
        "n": row["n_stories"],
        "change": "–" if change is None else f"{change:+.1f}",
        "ci": interval(row["ci95"]) or "–",
        "p": p_value(row["p_corrected"]),
    }


def _groups(cases: Mapping[str, Any] | None, out: Path) -> list[dict[str, Any]]:
    found = []
    for group, (title, what) in _GROUPS.items() if cases else ():
        own = [_case(case, out) for case in (cases or {})["cases"] if case["group"] == group]
        found.append({"title": title, "what": what, "cases": own})
    return found


def _case(case: Mapping[str, Any], out: Path) -> dict[str, Any]:
    kept = set(case["frames_before"])
    frames = [
        {
            "uri": panel_uri(out / "panels" / f"{frame['sha256']}.png", small=True),
            "new": frame["sha256"] not in kept,
            "alt": f"Frame {frame['index']}" + (", inserted" if frame["sha256"] not in kept else ""),
        }
        for frame in case["frames"]
    ]
    weakest = case["weakest"]
    return {
        "title": case["title"] or case["story_id"],
        "id": case["story_id"],
        "before": points(case["stg_before"]),
        "after": points(case["stg_after"]),
        "change": f"{case['delta']:+.1f}",
        "valid": case["n_valid"],
        "where": f"scenes {weakest[0]} and {weakest[1]}" if weakest else "a random place",
        "reason": case["reason"],
        "frames": frames,
        "questions": [{**item, "dimension": DIMENSION_WORDS[item["dimension"]]} for item in case["questions"]],
    }


def _repeat(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    shown = [("command", " ".join(state["command"])), ("katha", state["katha"])]
    return shown + [(name, dumps(state[name]).strip()) for name in ("config", "suite", "lock", "plugins", "prompts")]
