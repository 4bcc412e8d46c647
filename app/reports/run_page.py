"""`report.html` of a run: one self-contained file made from the run's files alone."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from katha.app.cli.summary import headline, unscored
from katha.app.reports.answers import answer_groups
from katha.app.reports.boards import Images, find_candidate, found_in, frame_view, strip
from katha.app.reports.page import DIMENSION_WORDS, Run, load_run, points, signed
from katha.jsonio import write_bytes_atomic
from katha.schema import DIMENSIONS, Candidate

# ---
# From a run's records to what the report's template shows: plain dictionaries, every number already worded.


def build_view(run: Run) -> dict[str, Any]:
    """Everything `report.html.j2` shows."""
    images = Images(run)
    base = find_candidate(run, f"candidate:{run.info['seeds'][0]}") or run.candidates.candidates[0]
    final = _final_candidate(run)
    return {
        "title": run.story.title or run.story.story_id,
        "story": run.story.story_text,
        "embedded": run.board.renderer == "sketch",
        "found": found_in(run),
        "unscored": unscored(run.scores),
        "mode": run.board.mode,
        "verdict": _verdict(run),
        "steering_reported": run.scores["questions"] != "reporting",
        "frozen": run.scores["frozen"],
        "numbers": _numbers(run),
        "dimensions": _dimensions(run),
        "before": strip(
            base.board, base, run, images, "weakest" if base.name == run.candidates.decision.selected else ""
        ),
        "after": strip(run.board, final, run, images, "repaired" if run.candidates.decision.accepted else "weakest"),
        "same": [frame.sha256 for frame in base.board.frames] == [frame.sha256 for frame in run.board.frames],
        "weakest": _weakest(run, images),
        "decision": run.candidates.decision,
        "candidates": [_candidate_row(item, run, images) for item in run.candidates.candidates],
        "groups": answer_groups(run),
        "characters": run.plan.characters,
        "repeat": _repeat(run),
        "notes": list(run.scores.get("notes", [])) + list(run.info.get("notes", [])),
    }


def _final_candidate(run: Run) -> Candidate:
    decision = run.candidates.decision
    name = decision.inserted if decision.accepted else decision.selected
    return find_candidate(run, name) or run.candidates.candidates[0]


def _verdict(run: Run) -> str:
    decision = run.candidates.decision
    inserted = next((frame for frame in run.board.frames if frame.kind != "scene"), None)
    if inserted is not None and inserted.transition is not None:
        first, second = inserted.transition
        what = "A bridge" if inserted.kind == "bridge" else "A frame"
        return f"{what} was inserted between scenes {first} and {second}."
    seeds = {item.board.seed for item in run.candidates.candidates if item.kind == "base"}
    chosen = find_candidate(run, decision.selected)
    if chosen is None or len(seeds) < 2:
        return "The storyboard was kept without an inserted frame."
    return f"The board of seed {chosen.board.seed} was chosen out of {len(seeds)} and kept without an inserted frame."


def _numbers(run: Run) -> list[dict[str, Any]]:
    base = headline(run.scores, "base")
    final = headline(run.scores, run.board.mode if run.board.mode in run.scores["methods"] else "base")
    rows = (
        ("Recoverable from the images", "image", "Higher is better.", True),
        ("Semantic Trajectory Gap (text minus image)", "stg", "Lower is better.", False),
    )
    return [
        {
            "name": name,
            "hint": hint,
            "before": points(base[key]),
            "after": points(final[key]),
            "before_value": base[key],
            "after_value": final[key],
            "change": signed(base[key], final[key]),
            "better": _better(base[key], final[key], up),
            "valid": f"{final['n_valid']} of {final['n_questions']} reporting questions are valid",
            "judge": final["judge"],
        }
        for name, key, hint, up in rows
    ]


def _better(before: float | None, after: float | None, up: bool) -> str:
    if before is None or after is None or before == after:
        return "same"
    return "better" if (after > before) == up else "worse"


def _dimensions(run: Run) -> list[dict[str, Any]]:
    mode = run.board.mode if run.board.mode in run.scores["methods"] else "base"
    before, after = _dimension_block(run, "base"), _dimension_block(run, mode)
    rows = []
    for dimension in DIMENSIONS:
        old, new = before.get(dimension, {}), after.get(dimension, {})
        rows.append(
            {
                "name": DIMENSION_WORDS[dimension],
                "n": new.get("n", 0),
                "text": points(new.get("text")),
                "before": points(old.get("image")),
                "after": points(new.get("image")),
                "text_value": new.get("text"),
                "before_value": old.get("image"),
                "after_value": new.get("image"),
            }
        )
    return rows


def _dimension_block(run: Run, method: str) -> dict[str, Any]:
    judges = run.scores["methods"][method]["judges"]
    judge = headline(run.scores, method)["judge"]
    block: dict[str, Any] = judges[judge]["filtered"]["dimensions"] if judge else {}
    return block


def _weakest(run: Run, images: Images) -> dict[str, Any] | None:
    decision = run.candidates.decision
    if decision.weakest is None:
        return None
    first, second = decision.weakest
    record = next(
        (item for item in run.story.transitions or run.plan.transitions if item.pair == decision.weakest), None
    )
    fields = (
        []
        if record is None
        else [
            ("Action", record.action),
            ("Causality", record.causality),
            ("Intention", record.intention),
            ("Emotion", record.emotion),
            ("Consequence", record.consequence),
            ("Moral target", record.moral_target),
        ]
    )
    tried = find_candidate(run, decision.inserted) or find_candidate(run, decision.selected)
    board = tried.board if tried is not None else run.board
    around = [item for item in board.frames if item.scene in decision.weakest or item.transition == decision.weakest]
    bridge = next((frame for frame in around if frame.kind != "scene"), None)
    return {
        "pair": f"{first} to {second}",
        "reason": decision.weakest_reason,
        "fields": [(name, value) for name, value in fields if value],
        "prompt": bridge.prompt if bridge else None,
        "frames": [frame_view(frame, run, images, small=True) for frame in around],
    }


def _candidate_row(item: Candidate, run: Run, images: Images) -> dict[str, Any]:
    settings, score, decision = run.candidates.settings, item.score, run.candidates.decision
    terms = (
        ("Recoverability", settings.lambda_r, score.recoverability, "+"),
        ("Transition coverage", settings.lambda_t, score.coverage, "+"),
        ("Copy penalty", settings.lambda_p, score.copy_penalty, "\u2212"),
    )
    chosen = item.name == decision.selected
    inserted = item.name == decision.inserted
    return {
        "name": item.name,
        "title": _candidate_title(item, found_in(run) is not None),
        "mark": "accepted" if inserted and decision.accepted else "tried" if inserted else "selected" if chosen else "",
        "total": f"{score.total:.3f}",
        "terms": [
            {
                "name": name,
                "sign": sign,
                "weight": f"{weight:g}",
                "value": "-" if value is None else f"{value:.3f}",
                "share": 100 * (value or 0.0),
                "kind": "term" if sign == "+" else "minus",
            }
            for name, weight, value, sign in terms
        ],
        "frames": [frame_view(frame, run, images, small=True) for frame in item.board.frames],
    }


def _candidate_title(item: Candidate, found: bool) -> str:
    scenes = sorted({frame.seed for frame in item.board.frames if frame.kind == "scene"})
    title = "The board as it was found" if found else f"Seed {', '.join(map(str, scenes))}"
    inserted = next((frame for frame in item.board.frames if frame.kind != "scene"), None)
    if inserted is None:
        return title
    what = "a bridge" if inserted.kind == "bridge" else "an extra frame"
    return f"{title}, with {what} of seed {inserted.seed}"


def _repeat(run: Run) -> list[tuple[str, str]]:
    from katha.jsonio import dumps

    info = run.info
    names = ("command", "katha", "seeds", "config", "planner", "renderer", "bridge_renderer", "services", "judges",
             "similarity", "matching", "prompts", "versions", "paid", "timings")  # fmt: skip
    rows = [(name, info[name]) for name in names if info.get(name) is not None]
    rows.append(("plan_sha256", run.board.plan_sha256))
    words: dict[str, Callable[[Any], str]] = {"command": shlex.join, "seeds": lambda value: ", ".join(map(str, value))}
    return [
        (name.replace("_", " "), value if isinstance(value, str) else words.get(name, dumps)(value).strip())
        for name, value in rows
    ]


# ---
# `report.html`: one self-contained file made from a run's files alone, to be looked at, printed and passed on.


def write_report(run: Path) -> Path:
    """Write `run/report.html` and return its path. The file asks nothing of the network.

    Raises:
        InputFileError: a file of the run is missing or broken.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("katha.app.reports.templates")

    def source(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(source), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.get_template("report.html.j2")
    html = template.render(view=build_view(load_run(run)), css=source("report.css"), js=source("report.js"))
    path = run / "report.html"
    write_bytes_atomic(path, html.encode("utf-8"))
    return path
