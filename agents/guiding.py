"""The layouts that a board's frames follow: another renderer's frames of the same moments, the guide's.

A layout is drawn before the frame that follows it, and is a frame like any other: it has its own key, is kept, paid for
and reported by itself, and its drawing stands beside it. So a board of the guide that is there already costs nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from katha.agents.context import PreparedStory, RunContext
from katha.agents.pictures import drawable_size
from katha.agents.state import Emit
from katha.jsonio import sha256_hex
from katha.protocols import Renderer
from katha.schema import Board, Event

__all__ = ["guided_by", "layout_name", "layouts_of", "unshown"]


def guided_by(context: RunContext, guide: Renderer) -> RunContext:
    """Return the surroundings in which the guide draws: the same run and plan, in the guide's own style."""
    named = {"renderer": str(context.config.guide), "renderer_options": context.config.guide_options}
    others = dict.fromkeys(("bridge_renderer", "guide"))
    return replace(
        context,
        config=context.config.model_copy(update={**named, **others, "style": ""}),
        plugins=replace(context.plugins, renderer=guide, bridge=None, guide=None),
        size=drawable_size(guide.capabilities, context.size),
        ready=PreparedStory(context.plan().model_copy(update={"style": ""}), context.ready.story),
    )


def layouts_of(board: Board) -> Board:
    """Return the board of the layouts that these frames follow; a frame that follows none stands there itself."""
    told = [
        {"sha256": PurePosixPath(frame.guide).stem, "image": frame.guide, "guide": None} if frame.guide else {}
        for frame in board.frames
    ]
    frames = [frame.model_copy(update=update) for frame, update in zip(board.frames, told, strict=True)]
    return board.model_copy(update={"frames": frames})


def layout_name(guide: bytes) -> str:
    """Return where the layout that a request brings, as PNG, stands in the run's folder."""
    return f"panels/{sha256_hex(guide)}.png"


def unshown(emit: Emit) -> Emit:
    """Return what tells of a layout as of progress within a frame: it is not a frame of the board."""

    def told(event: Event) -> None:
        if event["kind"] == "frame":
            event = Event(stage=event["stage"], kind="progress", message=f"layout of {event['message']}")
        elif "sha256" in event:  # a first version of a layout is not a first version of its frame
            event = Event(stage=event["stage"], kind=event["kind"], message=f"layout of {event['message']}")
        emit(event)

    return told
