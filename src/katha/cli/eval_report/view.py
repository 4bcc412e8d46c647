"""From an evaluation's files to what its report shows: plain dictionaries, every number already worded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from katha.cli.eval_report.plots import calibration_plots, confidence_lines
from katha.cli.eval_report.stories import story_pages, story_views
from katha.cli.report.words import DIMENSION_WORDS, points
from katha.jsonio import iter_lines, loads, read_json
from katha.schema import DIMENSIONS

__all__ = ["build_pages", "build_view"]

_LEFT_SHOWN = 300
_BLOCKS = (
    ("filtered", "Each board's own valid set"),
    ("common_valid", "Questions valid for every board"),
    ("raw", "Every scored question, before the filter"),
)
_WHY = {
    "invalid_story": "no board that can be judged",
    "unscored": "not scored: a condition has no answer",
    "ambiguous": "ambiguous: wrong even with text and images",
}


def build_view(out: Path) -> dict[str, Any]:
    """Everything `eval.html.j2` shows.

    Raises:
        InputFileError: a file of the evaluation is missing or broken.
    """
    state, scores = read_json(out / "eval.json"), read_json(out / "scores.json")
    judges = _judges(scores)
    left = _read_left(out)
    stories = story_views(out, state, left)
    return {
        "steered": scores["questions"] != "reporting" and any(story["steered"] for story in stories),
        "state": state,
        "scores": scores,
        "judges": judges,
        "headline": judges[0] if judges else None,
        "boards": [_leaderboard(scores, judge) for judge in judges],
        "heat": _heat(scores, judges[0]) if judges else None,
        "comparisons": _comparisons(scores, judges[0]) if judges else [],
        "morals": _morals(scores, judges[0]) if judges else [],
        "pairs": _pairs(scores),
        "controls": [_control(item) for item in state["controls"]],
        "confidence": confidence_lines(state["confidence"]),
        "plots": calibration_plots(state["confidence"]),
        "invalid": [(name, sorted(reasons.items())) for name, reasons in state["invalid"].items()],
        "left_counts": [{**item, "why": _WHY[item["why"]]} for item in state["left"]],
        "left": [_left(item) for item in left if not judges or item["judge"] == judges[0]][:_LEFT_SHOWN],
        "left_total": sum(not judges or item["judge"] == judges[0] for item in left),
        "stories": stories,
        "repeat": _repeat(state),
    }


def build_pages(out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and content of each page of those stories that the report does not hold itself.

    Raises:
        InputFileError: a file of the evaluation is missing or broken.
    """
    yield from story_pages(out, read_json(out / "eval.json"), _read_left(out))


def _read_left(out: Path) -> list[dict[str, Any]]:
    path = out / "left.jsonl"
    return [loads(line) for _, line in iter_lines(path)] if path.exists() else []


def _pairs(scores: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Pair accuracy and confusion by board and judge; nothing where no pair was asked."""
    return [
        {
            "method": method,
            "judge": judge,
            "accuracy": points(row["pair_accuracy"]),
            "ci": _interval(row["ci95"]),
            "confusion": points(row["confusion"]),
            "n": row["n"],
            "unscored": row["n_unscored"],
        }
        for method, judges in scores.get("contrastive", {}).get("methods", {}).items()
        for judge, row in judges.items()
    ]


def _judges(scores: Mapping[str, Any]) -> list[str]:
    """The ensemble first, then the judges by name."""
    names = sorted({judge for method in scores["methods"].values() for judge in method["judges"]})
    return sorted(names, key=lambda name: (name != "ensemble", name))


def _leaderboard(scores: Mapping[str, Any], judge: str) -> dict[str, Any]:
    return {
        "judge": judge,
        "blocks": [{"name": title, "rows": _rows(scores, judge, block)} for block, title in _BLOCKS],
    }


def _rows(scores: Mapping[str, Any], judge: str, block: str) -> list[dict[str, Any]]:
    """The methods, the smallest gap first; those without a number last. Bars share one axis."""
    entries = [(name, method, method["judges"].get(judge)) for name, method in scores["methods"].items()]
    known = [entry[block] for _, _, entry in entries if entry and entry[block]["stg"] is not None]
    ends = [end for item in known for end in (item["ci95"]["stg"] or [item["stg"]])]
    low, high = min([0.0, *ends, *(item["stg"] for item in known)]), max([1.0, *ends, *(item["stg"] for item in known)])
    rows = [_row(name, method, entry, block, low, high) for name, method, entry in entries]
    return sorted(rows, key=lambda row: (row["value"] is None, row["value"], row["name"]))


def _row(
    name: str, method: Mapping[str, Any], entry: Mapping[str, Any] | None, block: str, low: float, high: float
) -> dict[str, Any]:
    values = entry[block] if entry else {"n": 0, "text": None, "image": None, "stg": None, "latent_gap": None}
    ci = entry[block]["ci95"] if entry else {"text": None, "image": None, "stg": None}

    def place(value: float) -> float:
        return 100.0 * (value - low) / (high - low)

    stg, interval = values["stg"], ci["stg"]
    ends = interval or ([stg, stg] if stg is not None else None)
    return {
        "name": name,
        "value": stg,
        "stories": method["stories"],
        "left": len(method["invalid_stories"]),
        "valid": f"{values['n']} of {entry['n_questions']}" if entry else "–",
        "unscored": entry["n_unscored"] if entry else "–",
        "ambiguity": points(entry["ambiguity_rate"]) if entry else "–",
        **{key: points(values[key]) for key in ("text", "image", "stg", "latent_gap")},
        **{f"{key}_ci": _interval(ci[key]) for key in ("text", "image", "stg")},
        "zero": place(0.0),
        "bar": None
        if stg is None or ends is None
        else (place(min(0.0, stg)), place(max(0.0, stg)), place(ends[0]), place(ends[1])),
    }


def _interval(value: Sequence[float] | None) -> str:
    return f"{value[0]:.1f} to {value[1]:.1f}" if value else ""


def _heat(scores: Mapping[str, Any], judge: str) -> dict[str, Any]:
    """Gaps by dimension and method (filtered): deeper is a larger loss in the images."""
    known = [name for name in scores["methods"] if judge in scores["methods"][name]["judges"]]
    methods = [row["name"] for row in _rows(scores, judge, "filtered") if row["name"] in known]
    rows = []
    for dimension in DIMENSIONS:
        cells = [scores["methods"][name]["judges"][judge]["filtered"]["dimensions"][dimension] for name in methods]
        rows.append({"name": DIMENSION_WORDS[dimension], "cells": [_cell(cell) for cell in cells]})
    return {"methods": methods, "rows": rows}


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    gap = cell["gap"]
    return {
        "gap": points(gap),
        "n": cell["n"],
        "text": points(cell["text"]),
        "image": points(cell["image"]),
        "tone": "none" if gap is None else "loss" if gap > 0 else "gain",
        "depth": 0.0 if gap is None else min(60.0, abs(gap) * 0.6),
    }


def _comparisons(scores: Mapping[str, Any], judge: str) -> list[dict[str, Any]]:
    return [
        {
            "pair": f"{item['a']} against {item['b']}",
            "block": dict(_BLOCKS)[item["block"]],
            "n": item["n_stories"],
            "difference": points(item["difference"]),
            "ci": _interval(item["ci95"]),
            "p": _p(item["p_bootstrap"]),
            "wilcoxon": _p(item["wilcoxon"]["p"]),
            "corrected": _p(item["p_corrected"]),
        }
        for item in scores["comparisons"]
        if item["judge"] == judge
    ]


def _morals(scores: Mapping[str, Any], judge: str) -> list[dict[str, str]]:
    """Moral-target recoverability by board, beside its two baselines; nothing where no target is a label."""
    found = [(name, method["judges"].get(judge)) for name, method in scores["methods"].items()]
    return [
        {"name": name, **{key: points(value) for key, value in entry["moral_target"].items()}}
        for name, entry in found
        if entry and entry["moral_target"]["text"] is not None
    ]


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _control(item: Mapping[str, Any]) -> dict[str, Any]:
    focus = item.get("focus") or item
    again = item["control"] == "repeat"
    verdicts = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("none", "–")}
    name, sign = verdicts[item["passes"]]
    return {
        "control": item["control"],
        "judge": item["judge"],
        "n": focus["n"],
        "unscored": item["n_unscored"],
        "what": "same answer"
        if again
        else DIMENSION_WORDS[item["dimension"]]
        if item["dimension"]
        else "all questions",
        "value": points(item["agreement"] if again else focus["image"]),
        "ci": _interval(focus["ci95"]),
        "board": "" if again else points(focus["board"]),
        "chance": "" if again else points(focus["chance"]),
        "unclear": "" if again else points(item["unclear"]),
        "verdict": name,
        "sign": sign,
        "reading": item["reading"],
    }


def _left(item: Mapping[str, Any]) -> dict[str, Any]:
    return {**item, "why": _WHY[item["why"]], "dimension": DIMENSION_WORDS[item["dimension"]]}


def _repeat(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    from katha.jsonio import dumps

    names = ("command", "katha", "config", "boards", "judges", "prompts", "statuses", "calls", "budget", "leakage")
    words = {"command": " ".join(state["command"])}
    shown = [(name, words.get(name, state[name])) for name in names]
    return [(name, value if isinstance(value, str) else dumps(value).strip()) for name, value in shown]
