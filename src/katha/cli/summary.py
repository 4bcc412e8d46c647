"""What a run says when it is done: where the report is, and the numbers before and after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from katha.agents import RunResult

__all__ = ["headline", "tell", "unscored"]

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
    from katha.eval_bridge.scores import UNSCORED

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
