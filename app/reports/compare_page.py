"""`report.html` of a comparison: one self-contained file made from the comparison's files alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from katha.app.reports.page import DIMENSION_WORDS, panel_uri, points
from katha.jsonio import dumps, read_json, write_bytes_atomic
from katha.schema import DIMENSIONS

# ---
# From a comparison's files to what its report shows: plain dictionaries, every number already worded.


_INLINE = 30
_RECOVERED = {"yes": ("Yes", "right"), "partial": ("Partly", "part"), "no": ("No", "wrong"), "none": ("–", "none")}


def build_view(out: Path) -> dict[str, Any]:
    """Everything `compare.html.j2` shows.

    Raises:
        InputFileError: a file of the comparison is missing or broken.
    """
    state, table = read_json(out / "compare.json"), read_json(out / "table.json")
    return {
        "table": table,
        "names": [row["name"] for row in table["methods"]],
        "rows": [_method(row) for row in table["methods"]],
        "comparisons": [_comparison(row) for row in table["comparisons"]],
        "heat": [_heat(name, table["methods"]) for name in DIMENSIONS],
        "stories": [
            _story(story, out, table["methods"], place < _INLINE) for place, story in enumerate(table["stories"])
        ],
        "services": [(row["name"], item) for row in table["methods"] for item in row["services"]],
        "steered": table["questions"] == "all" and any(row["mode"] != "base" for row in table["methods"]),
        "repeat": [
            ("command", shlex.join(state["command"])),
            ("katha", state["katha"]),
            ("shared settings", dumps(state["config"]).strip()),
            *((method["name"], dumps(method["plugins"]).strip()) for method in state["methods"]),
        ],
    }


def _method(row: Mapping[str, Any]) -> dict[str, Any]:
    interval = row["ci95"]
    return {
        "name": row["name"],
        "how": " + ".join([row["planner"], row["renderer"], *([row["mode"]] if row["mode"] != "base" else [])]),
        "seeds": ", ".join(map(str, row["seeds"])),
        "closed": row["closed"],
        "boards": f"{row['boards_valid']} of {row['boards']}",
        "invalid": points(row["invalid_rate"]),
        "interval": f"{interval[0]:.1f} to {interval[1]:.1f}" if interval else "",
        "signature": ", ".join(row["signature"]) or ("\u2013" if row["filtered_stg"] is None else "nothing"),
        **{name: points(row[name]) for name in ("text", "image", "raw_stg", "filtered_stg", "common_valid_stg")},
    }


def _comparison(row: Mapping[str, Any]) -> dict[str, Any]:
    block = {"filtered": "own valid questions", "common_valid": "common valid questions"}[row["block"]]
    interval, p = row["ci95"], row["p_corrected"]
    apart = interval is not None and (interval[0] > 0 or interval[1] < 0) and p is not None and p < 0.05
    lower = row["a"] if (row["difference"] or 0.0) < 0 else row["b"]
    return {
        "pair": f"{row['a']} against {row['b']}",
        "block": block,
        "difference": "–" if row["difference"] is None else f"{row['difference']:+.1f}",
        "interval": f"{interval[0]:+.1f} to {interval[1]:+.1f}" if interval else "no interval",
        "p": "–" if p is None else f"{p:.4f}",
        "n": row["n_stories"],
        "verdict": f"{lower} loses less" if apart else "no difference is shown",
    }


def _heat(dimension: Any, methods: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "name": DIMENSION_WORDS[dimension],
        "cells": [_heat_cell(row["dimensions"].get(dimension)) for row in methods],
    }


def _heat_cell(cell: Mapping[str, Any] | None) -> dict[str, Any]:
    gap = cell["gap"] if cell else None
    return {
        "gap": points(gap),
        "n": cell["n"] if cell else 0,
        "tone": "none" if gap is None else "loss" if gap > 0 else "gain",
        "depth": 0.0 if gap is None else min(60.0, abs(gap) * 0.6),
    }


def _story(story: Mapping[str, Any], out: Path, methods: Sequence[Mapping[str, Any]], inline: bool) -> dict[str, Any]:
    return {
        "id": story["story_id"],
        "title": story["title"],
        "moral": story["moral"],
        "rows": [
            _cell(row, story["methods"][row["name"]], _board(out, row, story["story_id"]) if inline else [])
            for row in methods
        ],
    }


def _cell(row: Mapping[str, Any], cell: Mapping[str, Any], frames: list[dict[str, str]]) -> dict[str, Any]:
    word, tone = _RECOVERED[cell["recovered"]]
    return {
        "name": row["name"],
        "reason": cell["reason"],
        "partly": cell["boards_invalid"] if not cell["reason"] else 0,
        "recovered": word,
        "tone": tone,
        "image": points(cell["image"]),
        "stg": points(cell["stg"]),
        "n": cell["n"],
        "failures": ", ".join(cell["failures"]) or "none",
        "seed": row["seeds"][0],
        "frames": frames,
    }


def _board(out: Path, row: Mapping[str, Any], story_id: str) -> list[dict[str, str]]:
    """The frames of the first seed's board; empty when there is none."""
    state = read_json(out / "compare.json")
    slugs = {method["name"]: method["slug"] for method in state["methods"]}
    folder = out / "boards" / slugs[row["name"]] / str(row["seeds"][0]) / story_id
    if not (folder / "storyboard.json").is_file():
        return []
    frames = read_json(folder / "storyboard.json")["frames"]
    return [
        {
            "uri": panel_uri(folder / frame["image"], small=True),
            "kind": frame["kind"],
            "alt": f"{row['name']}, frame {frame['index']}"
            + ("" if frame["kind"] == "scene" else f" ({frame['kind']})"),
        }
        for frame in frames
    ]


# ---
# `report.html` of a comparison: one self-contained file made from the comparison's files alone.


def write_compare_report(out: Path) -> Path:
    """Write `out/report.html` and return its path. The file asks nothing of the network.

    Raises:
        InputFileError: a file of the comparison is missing or broken.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    own = files("katha.app.reports.templates")

    def source(name: str) -> str:
        return own.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(source), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    shared = files("katha.app.reports.templates").joinpath("report.css").read_text(encoding="utf-8")
    tables = files("katha.app.reports.templates").joinpath("eval.css").read_text(encoding="utf-8")
    css = shared + tables + source("compare.css")
    html = environment.get_template("compare.html.j2").render(view=build_view(out), css=css)
    path = out / "report.html"
    write_bytes_atomic(path, html.encode("utf-8"))
    return path
