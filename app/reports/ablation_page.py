"""`report.html` of an ablation: one self-contained file made from the ablation's files alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from katha.app.reports.page import DIMENSION_WORDS, panel_uri, points
from katha.experiments.ablate.conclusions import p_words
from katha.jsonio import dumps, read_json, write_bytes_atomic

# ---
# The human columns of a table, worded: which there are, and what each row has in them.


Human = Mapping[str, Any]


def _read(section: str, key: str, form: str) -> Callable[[Human], str | None]:
    def read(human: Human) -> str | None:
        own = human[section]
        return None if own is None or own[key] is None else format(own[key], form)

    return read


def _share(section: str, key: str) -> Callable[[Human], str | None]:
    """A percentage."""
    return _read(section, key, ".1f")


def _number(section: str, key: str) -> Callable[[Human], str | None]:
    """A rating or a correlation."""
    return _read(section, key, ".2f")


_COLUMNS: Sequence[tuple[str, Callable[[Human], str | None]]] = (
    ("human image", _share("recoverability", "image")),
    ("human STG", _share("recoverability", "stg")),
    ("HMR@1", _share("moral", "hmr1")),
    ("HMR@3", _share("moral", "hmr3")),
    ("NCS", _number("ncs", "mean")),
    ("MAS", _number("mas", "mean")),
    ("EES", _number("ees", "mean")),
    ("localization", _share("localization", "right")),
    ("Spearman", _number("human_score", "spearman")),
    ("agreement", _share("agreement", "agreement")),
    ("false accepts", _share("agreement", "false_accept")),
    ("false rejects", _share("agreement", "false_reject")),
    ("defects found", _share("ambiguity_detected", "detected")),
)


def people_words(human: Human) -> list[str]:
    """What people say of one row's boards, one phrase a column that has a value."""
    return [f"{name} {value}" for name, read in _COLUMNS if (value := read(human)) is not None]


def people_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The report's table of judgments: the columns that any row has, and each row's cells; None without any."""
    asked = [row for row in rows if row["human"] is not None]
    used = [(name, read) for name, read in _COLUMNS if any(read(row["human"]) is not None for row in asked)]
    if not used:
        return None
    cells = [(row["mode"], [(name, read(row["human"]) or points(None)) for name, read in used]) for row in asked]
    return {"names": [name for name, _ in used], "rows": cells}


# ---
# From an ablation's files to what its report shows: plain dictionaries, every number already worded.


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


# ---
# `report.html` of an ablation: one self-contained file made from the ablation's files alone.


def write_ablation_report(out: Path) -> Path:
    """Write `out/report.html` and return its path. The file asks nothing of the network.

    Raises:
        InputFileError: a file of the ablation is missing or broken.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    own = files("katha.app.reports.templates")

    def source(name: str) -> str:
        return own.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(source), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    sheets = (
        files("katha.app.reports.templates").joinpath("report.css"),
        files("katha.app.reports.templates").joinpath("eval.css"),
        own.joinpath("ablation.css"),
    )
    css = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    html = environment.get_template("ablation.html.j2").render(view=build_view(out), css=css)
    path = out / "report.html"
    write_bytes_atomic(path, html.encode("utf-8"))
    return path
