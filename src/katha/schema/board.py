"""Frames and boards. Images are files named by the sha256 of their bytes; records hold names, never pixels."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from katha.schema.story import Record

__all__ = ["Board", "Frame", "FrameKind"]

FrameKind = Literal["scene", "bridge", "extra"]


class Frame(Record):
    """One drawn frame. A scene frame has `scene`; a bridge or extra frame has the `transition` it stands in.

    `seed` is the one it was drawn with. `renderer` is set when another renderer than the board's drew it.
    """

    index: int = Field(ge=1)
    kind: FrameKind = "scene"
    scene: int | None = None
    transition: tuple[int, int] | None = None
    image: str
    sha256: str
    prompt: str
    seed: int
    renderer: str | None = None


class Board(Record):
    """The ordered frames of one story, as written to `storyboard.json`."""

    story_id: str
    method: str
    mode: str
    planner: str
    renderer: str
    seed: int
    plan_sha256: str
    frames: list[Frame]
