"""A board as the report shows it: its frames, and between them how much of each transition was recovered."""

from __future__ import annotations

from typing import Any

from katha.cli.report.load import Run, panel_uri
from katha.cli.report.words import percent
from katha.schema import Board, Candidate, Frame, TransitionScore

__all__ = ["Images", "find_candidate", "found_in", "frame_view", "strip"]


class Images:
    """Panels as data URIs, each read once: whole for the boards, small for the candidates side by side."""

    def __init__(self, run: Run) -> None:
        self._panels = run.folder / "panels"
        self._known: dict[tuple[str, bool], str] = {}

    def uri(self, sha256: str, small: bool) -> str:
        """The panel of that hash."""
        key = (sha256, small)
        if key not in self._known:
            self._known[key] = panel_uri(self._panels / f"{sha256}.png", small=small)
        return self._known[key]


def find_candidate(run: Run, name: str | None) -> Candidate | None:
    """The candidate of that name, if there is one."""
    return next((item for item in run.candidates.candidates if item.name == name), None)


def strip(board: Board, candidate: Candidate, run: Run, images: Images, tag: str) -> list[dict[str, Any]]:
    """Frames and, between the frames of two scenes, the transition that joins them; `tag` marks the weakest."""
    scores = {score.pair: score for score in candidate.transitions}
    weakest = run.candidates.decision.weakest
    cells: list[dict[str, Any]] = []
    last_scene: int | None = None
    for frame in board.frames:
        pair = frame.transition if frame.transition is not None else _pair(last_scene, frame.scene)
        if pair is not None and pair in scores:
            cells.append(_gap(scores.pop(pair), tag if weakest == pair else ""))
        cells.append(frame_view(frame, run, images))
        cells[-1]["bare"] = frame.kind != "scene" and frame is not board.frames[-1]
        last_scene = frame.scene if frame.scene is not None else last_scene
    return cells


def _pair(first: int | None, second: int | None) -> tuple[int, int] | None:
    return None if first is None or second is None else (first, second)


def frame_view(frame: Frame, run: Run, images: Images, small: bool = False) -> dict[str, Any]:
    """What is shown of one frame; `small` for a thumbnail."""
    captions = {panel.index: panel.caption or panel.prompt for panel in run.plan.panels}
    if frame.kind == "scene":
        caption = captions.get(frame.scene or 0, "")
        name = f"Scene {frame.scene}"
    else:
        caption = frame.prompt
        name = "Bridge" if frame.kind == "bridge" else "Extra frame"
        name += f", drawn by {frame.renderer}" if frame.renderer else ""
    return {
        "cell": "frame",
        "kind": frame.kind,
        "index": frame.index,
        "name": name,
        "caption": caption,
        "alt": f"Frame {frame.index}, {name.lower()}: {caption}",
        "uri": images.uri(frame.sha256, small),
        "seed": None if frame.kind == "scene" and found_in(run) else frame.seed,
        "prompt": frame.prompt,
        "sha256": frame.sha256,
    }


def found_in(run: Run) -> str | None:
    """The folder of a board that somebody else made; its scenes have no seed. None for a board that was drawn."""
    spec = run.info.get("renderer") or {}
    return str(spec["path"]) if spec.get("name") == "folder" else None


def _gap(score: TransitionScore, tag: str) -> dict[str, Any]:
    value = score.recoverability
    first, second = score.pair
    judged = f"{percent(value)} of {score.n_questions} steering questions" if value is not None else "not asked"
    return {
        "cell": "gap",
        "pair": f"{first}\u2192{second}",
        "value": value if value is not None else (1.0 if score.covered else 0.0),
        "label": percent(value) if value is not None else ("covered" if score.covered else "not covered"),
        "long": f"Transition from scene {first} to {second}: {judged}; similarity {score.similarity:.2f}.",
        "tag": tag,
    }
