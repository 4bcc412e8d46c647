"""What ViStoryBench's measures ask about a shot: its script, and who is on stage, from whatever the board has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from katha.eval_bridge.metrics.boards import MetricBoard
from katha.schema import Panel, Scene

REALISTIC = "realistic_human"
"""The tag of a photographed character, whose identity the paper measures by faces; all others by CLIP."""


@dataclass(frozen=True)
class ShotScript:
    """A shot's script: the setting without characters, the camera, and what the characters do. Empty where not told."""

    setting: str = ""
    camera: str = ""
    action: str = ""
    characters: tuple[str, ...] = ()


def shot_script(board: MetricBoard, scene: int | None) -> ShotScript:
    """Return a scene's script: ViStoryBench's own fields, else the plan's place and shot and the scene's text."""
    if scene is None:
        return ShotScript()
    scenes = board.record.scenes
    told = scenes[scene - 1] if scene <= len(scenes) else None
    panels = [panel for panel in board.plan.panels if panel.index == scene] if board.plan is not None else []
    panel = panels[0] if panels else None
    names = tuple(told.characters) if told is not None and told.characters else _names(panel)
    return ShotScript(
        setting=_extra(told, "setting_description") or _joined(panel, "place", "time_of_day"),
        camera=_extra(told, "shot_perspective") or _joined(panel, "shot_size", "shot_angle"),
        action=_extra(told, "static_shot") or board.text_of(scene) or "",
        characters=names,
    )


def character_tags(board: MetricBoard) -> Mapping[str, str]:
    """Return the tag of each character of a ViStoryBench story; empty for others."""
    found = (board.record.model_extra or {}).get("cast")
    return {str(name): str(row.get("tag", "")) for name, row in found.items()} if isinstance(found, Mapping) else {}


def _extra(scene: Scene | None, field: str) -> str:
    value: Any = (scene.model_extra or {}).get(field) if scene is not None else None
    return value.strip() if isinstance(value, str) else ""


def _joined(panel: Panel | None, *fields: str) -> str:
    values = [str(getattr(panel, field)).strip() for field in fields] if panel is not None else []
    return ", ".join(value for value in values if value and value != "unclear")


def _names(panel: Panel | None) -> tuple[str, ...]:
    return tuple(panel.characters) if panel is not None else ()
