"""Deeds, furniture and looks of people as their YAML files have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from katha_sketch.drawing.figures.data import drawing
from katha_sketch.drawing.figures.rig import Pose
from katha_sketch.drawing.tables import entry, load_table, words_of

__all__ = ["PARTNERS", "THINGS", "Deed", "deed", "deed_ids", "deed_words", "people", "pieces"]

THINGS = (
    "hand", "hands", "above", "above_front", "mouth", "mouth_front", "head", "body", "back", "foot", "flying", "front",
    "table", "ground", "ground_front", "under", "around", "behind", "ahead", "worn", "cover", "thought", "ear", "eyes",
    "staff", "roof", "climbed", "over", "dropped", "pictured", "between", "overhead", "slope", "into", "shod", "pan",
    "none",
)  # fmt: skip
"""Where a deed can put a thing."""

PARTNERS = ("front", "side", "ahead", "behind", "carried", "under", "above", "lying", "thought")
"""Where a deed can put the other actor."""


@dataclass(frozen=True)
class Deed:
    """One row of deeds.yaml; see its head for what each field says."""

    id: str
    words: tuple[str, ...]
    pose: Pose
    thing: str = "front"
    far: str = "hand"
    own: str | None = None
    set: str | None = None
    partner: str = "front"
    gap: float = 8.0
    act: str = "stand"
    tool: str | None = None
    tilt: float = 0.0
    trail: str | None = None
    insists: bool = False
    lends: Pose | None = None
    close: float | None = None
    seen: str | None = None
    clasp: bool = False
    near: bool = False
    stock: str | None = None


def deed_ids() -> tuple[str, ...]:
    """Every deed, in the file's order."""
    return tuple(_deeds())


def deed(name: str) -> Deed:
    """One deed.

    Raises:
        RenderError: there is none.
    """
    return entry(_deeds(), name, "deed", "deeds.yaml")


@cache
def deed_words() -> Mapping[str, str]:
    """The deed of each verb (with its particle); the first deed that lists a verb has it."""
    return words_of(_deeds().values())


def people() -> Mapping[str, Any]:
    """The looks of people."""
    return load_table("deeds", "people.yaml")


def pieces() -> Mapping[str, Mapping[str, Any]]:
    """The furniture of deeds."""
    return load_table("deeds", "pieces.yaml")


@cache
def _deeds() -> Mapping[str, Deed]:
    return {name: _read(name, row) for name, row in load_table("deeds", "deeds.yaml").items()}


def _read(name: str, row: Mapping[str, Any]) -> Deed:
    known = {field.name for field in fields(Pose)}
    pose = Pose()
    if "like" in row:
        older = {key: value for key, value in drawing("actions", row["like"]).items() if key in known}
        pose = replace(_pose(older), tool=None)
    pose = replace(pose, **{key: _tuple(value) for key, value in row.get("pose", {}).items()})
    rest = {key: value for key, value in row.items() if key not in ("words", "pose", "like", "lends")}
    lends = _pose(row["lends"]) if "lends" in row else None
    return Deed(id=name, words=tuple(row["words"]), pose=pose, lends=lends, **rest)


def _pose(data: Mapping[str, Any]) -> Pose:
    return Pose(**{key: _tuple(value) for key, value in data.items()})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
