"""The nodes: `Katha Plan`, `Katha Judge` and `Katha Bridge Prompt`, over katha's public API.

ComfyUI calls `comfy_entrypoint`, then each node's `execute` with the inputs that its schema names. An IMAGE is a tensor
of shape [frames, height, width, channels] with values in 0..1.
"""

from __future__ import annotations

import hashlib
import io as bytes_io
from pathlib import Path
from typing import Any

import folder_paths
import numpy as np
from comfy_api.latest import ComfyExtension, io
from PIL import Image
from pydantic import ValidationError

import katha
from katha.app.desk.view import DeskBoard, view_of
from katha.compass.repair import insertion
from katha.errors import PlanError, UsageError
from katha.stories import story_of_text

_CATEGORY = "katha"
_STORY = "The story's own words, a few sentences or more."
_UNSCORED = -1.0


class KathaPlan(io.ComfyNode):
    """Plans a story: one prompt a frame."""

    @classmethod
    def define_schema(cls) -> io.Schema:
        """Return what the node takes and gives."""
        return io.Schema(
            node_id="KathaPlan",
            display_name="Katha Plan",
            category=_CATEGORY,
            description="Read a story and plan its frames so that what happens between them can be understood.",
            inputs=[
                io.String.Input("story", multiline=True, tooltip=_STORY),
                io.Int.Input("panels", default=5, min=2, max=24, tooltip="How many frames the board has."),
                io.String.Input("style", default="", optional=True, tooltip="Put before every prompt."),
                io.String.Input("planner", default="rule", optional=True, tooltip="A planner of katha."),
            ],
            outputs=[
                io.String.Output("prompts", is_output_list=True, tooltip="One prompt a frame, in order."),
                io.String.Output("plan", tooltip="The whole plan as JSON, for the other nodes."),
            ],
        )

    @classmethod
    def execute(cls, story: str, panels: int, style: str = "", planner: str = "rule") -> io.NodeOutput:
        """Plan `story`; nothing is drawn."""
        plan = katha.plan_story(_told(story), panels=panels, planner=planner)
        look = f"{style.strip()}. " if style.strip() else ""
        return io.NodeOutput([look + panel.prompt for panel in plan.panels], plan.model_dump_json())


class KathaJudge(io.ComfyNode):
    """Measures what is understood from a board's pictures alone."""

    @classmethod
    def define_schema(cls) -> io.Schema:
        """Return what the node takes and gives."""
        return io.Schema(
            node_id="KathaJudge",
            display_name="Katha Judge",
            category=_CATEGORY,
            description="Ask a judge what the pictures alone tell of a story, and find the cut that tells least.",
            inputs=[
                io.Image.Input("images", tooltip="The frames as a batch, in the order in which they are shown."),
                io.String.Input("story", multiline=True, tooltip=_STORY),
                io.String.Input("judge", default="sketch-reader", tooltip="A judge of katha: openai:MODEL for one."),
                io.String.Input("plan", optional=True, force_input=True, tooltip="What Katha Plan gave, if it did."),
            ],
            outputs=[
                io.Int.Output("weakest", tooltip="The scene before the weakest cut, from 1."),
                io.Float.Output("stg", tooltip="What the pictures lose of the text, in points of 100; -1: no score."),
                io.String.Output("report", tooltip="The path of the report, an HTML file."),
                io.String.Output("reason", tooltip="Why this cut is the weakest."),
            ],
            is_output_node=True,
        )

    @classmethod
    def execute(cls, images: Any, story: str, judge: str, plan: str | None = None) -> io.NodeOutput:
        """Judge the batch `images`; the run is kept in the output folder, and the same call again asks nothing."""
        pngs = _pngs(images)
        if len(pngs) < 2:
            raise UsageError("A board has at least two frames.", hint="Give the frames as one batch of images.")
        told = _told(story)
        name = hashlib.sha256(b"\0".join([told.story_text.encode(), (plan or "").encode(), *pngs])).hexdigest()[:12]
        place = Path(folder_paths.get_output_directory()) / "katha" / name
        frames = place / "frames"
        frames.mkdir(parents=True, exist_ok=True)
        for number, png in enumerate(pngs, start=1):
            file = frames / f"{number}.png"
            if not file.is_file() or file.read_bytes() != png:  # written anew it would be another board
                file.write_bytes(png)
        given = {"plan": _plan(plan)} if plan else {}
        settings = {"renderer": f"folder:{frames}", "judges": (judge,), "mode": "base", "panels": len(pngs)}
        run = katha.run_story(told, out=place / f"run_{_slug(judge)}", **given, **settings).out
        view = view_of(run)
        weakest, stg, reason = _measured(view)
        said = f"STG {stg:.1f}. {reason}" if stg != _UNSCORED else "No question could be scored; see the report."
        return io.NodeOutput(weakest, stg, str(run / "report.html"), reason, ui={"text": [said]})


class KathaBridgePrompt(io.ComfyNode):
    """Writes the prompt of a frame between two scenes."""

    @classmethod
    def define_schema(cls) -> io.Schema:
        """Return what the node takes and gives."""
        return io.Schema(
            node_id="KathaBridgePrompt",
            display_name="Katha Bridge Prompt",
            category=_CATEGORY,
            description="The prompt of a frame that shows what happens between a scene and the next.",
            inputs=[
                io.String.Input("plan", force_input=True, tooltip="What Katha Plan gave."),
                io.Int.Input("weakest", default=1, min=1, max=23, tooltip="The scene before the cut, from 1."),
            ],
            outputs=[
                io.String.Output("prompt", tooltip="What the bridge is to show."),
                io.String.Output("negative", tooltip="What it is not to show."),
            ],
        )

    @classmethod
    def execute(cls, plan: str, weakest: int) -> io.NodeOutput:
        """Return the prompts of the bridge after scene `weakest`."""
        known = _plan(plan)
        found = next((item for item in known.transitions if item.from_scene == weakest), None)
        if found is None:
            last = len(known.panels) - 1
            raise UsageError(
                f"The plan says nothing of what follows scene {weakest}.", hint=f"Its cuts follow scenes 1 to {last}."
            )
        bridge = insertion("transition", known, found, known.story_id)
        return io.NodeOutput(bridge.prompt, bridge.negative_prompt)


class KathaExtension(ComfyExtension):
    """The nodes of this package."""

    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        """Return every node."""
        return [KathaPlan, KathaJudge, KathaBridgePrompt]


async def comfy_entrypoint() -> KathaExtension:
    """Return what ComfyUI registers."""
    return KathaExtension()


def _told(story: str) -> katha.Story:
    """The story, whatever its words: they are no file's name."""
    if not story.strip():
        raise UsageError("The story is empty.", hint="Write a few sentences into the field story.")
    return story_of_text(story.strip())


def _plan(text: str) -> katha.Plan:
    try:
        return katha.Plan.model_validate_json(text)
    except ValidationError as error:
        raise PlanError("This is no plan.", hint="Connect the output `plan` of Katha Plan.") from error


def _pngs(images: Any) -> list[bytes]:
    """The frames of a batch as PNG files."""
    batch = np.asarray(images.detach().cpu() if hasattr(images, "detach") else images, dtype=np.float64)
    if batch.ndim != 4 or batch.shape[-1] not in (3, 4):
        raise UsageError(f"Images have the shape {batch.shape}, not [frames, height, width, 3].")
    made = []
    for pixels in (batch[..., :3].clip(0.0, 1.0) * 255.0).round().astype(np.uint8):
        out = bytes_io.BytesIO()
        Image.fromarray(pixels).save(out, "PNG")
        made.append(out.getvalue())
    return made


def _measured(view: DeskBoard) -> tuple[int, float, str]:
    cut, numbers = view.weakest, view.numbers
    stg = numbers.lost if numbers is not None and numbers.lost is not None else _UNSCORED
    return (cut.pair[0], stg, cut.reason) if cut is not None else (0, stg, "No transition has a question.")


def _slug(judge: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in judge)[:60]
