"""What a command says when it is done, or when it is asked what it would do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from katha.agents.state import RunResult
    from katha.eval_bridge.judging.budget import Estimate
    from katha.experiments.evaluate import EvalResult

# ---
# What a run says when it is done: where the report is, and the numbers before and after.


_LINE = "  {name:<14}{frames:>7}{text:>10}{image:>10}{stg:>10}{valid:>17}"


def headline(scores: dict[str, Any], method: str) -> dict[str, Any]:
    """The filtered block of one method, by the ensemble where there is one, else by its only judge."""
    judges = scores["methods"][method]["judges"]
    judge = "ensemble" if "ensemble" in judges else next(iter(judges), None)
    if judge is None:
        return {"judge": None, "text": None, "image": None, "stg": None, "n_valid": 0, "n_questions": 0}
    block = judges[judge]
    filtered = block["filtered"]
    return {
        "judge": judge,
        "text": filtered["text"],
        "image": filtered["image"],
        "stg": filtered["stg"],
        "n_valid": block["n_valid"],
        "n_questions": block["n_questions"],
    }


def unscored(scores: dict[str, Any]) -> list[str]:
    """Why a board has no numbers: the notes that say so, one a board and judge."""
    from katha.eval_bridge.scoring.scores import UNSCORED

    return [note for note in scores["notes"] if f": {UNSCORED}." in note]


def tell(result: RunResult, report: Path, *, as_json: bool) -> None:
    """Print the outcome of a run, as text or as one JSON object."""
    methods = {name: headline(result.scores, name) for name in result.scores["methods"]}
    decision = result.candidates.decision
    if as_json:
        value = {
            "story_id": result.board.story_id,
            "out": str(result.out),
            "report": str(report),
            "mode": result.board.mode,
            "frames": len(result.board.frames),
            "accepted": decision.accepted,
            "weakest": decision.weakest,
            "reason": decision.reason,
            "reused": result.reused,
            "methods": methods,
        }
        typer.echo(json.dumps(value, ensure_ascii=False))
        return
    scenes = sum(frame.kind == "scene" for frame in result.board.frames)
    typer.echo(_LINE.format(name="", frames="frames", text="text", image="image", stg="STG", valid="valid questions"))
    for name, row in methods.items():
        frames = scenes if name == "base" else len(result.board.frames)
        typer.echo(
            _LINE.format(
                name="before" if name == "base" else name,
                frames=frames,
                text=_points(row["text"]),
                image=_points(row["image"]),
                stg=_points(row["stg"]),
                valid=f"{row['n_valid']} of {row['n_questions']}",
            )
        )
    for note in unscored(result.scores):
        typer.echo(note)
    typer.echo(decision.reason)
    typer.echo(f"Report: {report}")


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


# ---
# What `katha eval` says when it is done, or when it is asked what it would do.


_eval_summary_LINE = "  {name:<22}{stories:>8}{text:>8}{image:>8}{stg:>8}{interval:>18}{valid:>16}"
_ENDS = {
    "budget_stopped": "The budget stopped it. The same command with a larger one goes on where it stopped.",
    "incomplete": "Some questions got no answer. The same command asks them again.",
}


def tell_estimate(sums: Mapping[str, Estimate], invalid: Mapping[str, Mapping[str, str]], *, as_json: bool) -> None:
    """Print what asking would take, judge by judge."""
    judges = {
        name: {
            "calls": item.calls,
            "reused": item.reused,
            "input_tokens": item.input_tokens,
            "output_tokens": item.output_tokens,
            "cost": item.cost,
        }
        for name, item in sums.items()
    }
    if as_json:
        typer.echo(json.dumps({"dry_run": True, "judges": judges, "invalid": invalid}, ensure_ascii=False))
        return
    for name, item in sums.items():
        cost = "price unknown" if item.cost is None else f"about ${item.cost:.2f}"
        typer.echo(
            f"  {name}: {item.calls:,} calls ({item.reused:,} more are in the cache), about {item.input_tokens:,} "
            f"tokens in and {item.output_tokens:,} out, {cost}"
        )
    _tell_invalid(invalid)
    typer.echo("Nothing was asked.")


def tell_result(result: EvalResult, report: Path, *, as_json: bool) -> None:
    """Print the outcome of an evaluation, as text or as one JSON object."""
    methods = {name: headline(result.scores, name) for name in result.scores["methods"]}
    state = result.state
    if as_json:
        value = {
            "out": str(result.out),
            "report": str(report),
            "reused": result.reused,
            "methods": methods,
            **{key: state[key] for key in ("status", "stories", "questions", "statuses", "calls", "kept", "invalid")},
            **{key: state[key] for key in ("leakage", "controls", "budget")},
        }
        typer.echo(json.dumps(value, ensure_ascii=False))
        return
    header = ("board", "stories", "text", "image", "STG", "95%", "valid")
    typer.echo(
        _eval_summary_LINE.format(
            **dict(zip(("name", "stories", "text", "image", "stg", "interval", "valid"), header, strict=True))
        )
    )
    for name, row in methods.items():
        typer.echo(_line(name, row, result.scores["methods"][name]))
    for note in unscored(result.scores):
        typer.echo(note)
    _tell_invalid(state["invalid"])
    for item in state["controls"]:
        typer.echo(f"Control {item['control']} ({item['judge']}): {item['reading']}")
    typer.echo(
        f"Leakage scan: {state['leakage']['packets']} image-only packets, {len(state['leakage']['found'])} found."
    )
    for name, call in state["calls"].items():
        if call["reuse"]:
            checked, flipped = call["reuse"]["checked"], call["reuse"]["flipped"]
            typer.echo(f"Prefix reuse ({name}): {checked:,} replies were asked again without it, {flipped:,} changed.")
    if state["leakage"]["pictures_read"]:
        leakage = state["leakage"]
        typer.echo(f"Words drawn into pictures: {len(leakage['drawn'])} lines in {leakage['pictures_read']} pictures.")
    if state["status"] in _ENDS:
        typer.echo(_ENDS[state["status"]])
    typer.echo(f"Report: {report}")


def _line(name: str, row: Mapping[str, Any], method: Mapping[str, Any]) -> str:
    ci = method["judges"][row["judge"]]["filtered"]["ci95"]["stg"] if row["judge"] else None
    return _eval_summary_LINE.format(
        name=name[:22],
        stories=method["stories"],
        text=_points(row["text"]),
        image=_points(row["image"]),
        stg=_points(row["stg"]),
        interval=f"[{ci[0]:.1f}, {ci[1]:.1f}]" if ci else "-",
        valid=f"{row['n_valid']} of {row['n_questions']}",
    )


def _tell_invalid(invalid: Mapping[str, Mapping[str, str]]) -> None:
    for name, reasons in invalid.items():
        for story, reason in list(reasons.items())[:8]:
            typer.echo(f"  {name}, {story}: not judged, {reason.removesuffix('.')}.", err=True)
        if len(reasons) > 8:
            typer.echo(f"  {name}: {len(reasons) - 8} more stories were not judged; see eval.json.", err=True)
