"""The pixels of every renderer that draws with diffusers, against frames recorded once at toy size.

Run this file as a program to record them anew, which is right only where pixels are meant to change.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin
from shared_boards import LION, MOUSE, board, frame
from tiny_diffusion import build, save_lora, shrink

from katha.protocols import BoardContext
from katha.registry import default_registry
from katha.renderers.diffusion.memory import process_pool

SHEET = Path(__file__).parents[1] / "data" / "drawn_pixels.png"
SIDE, FRAMES = 32, 5
LONG = ", ".join(f"the lion gives the apple to the mouse at tree number {word}" for word in ("one", "two") * 5)
PLAIN: Mapping[str, object] = {"steps": 2, "device": "cpu", "any_size": True}


@dataclass(frozen=True)
class Case:
    """A renderer with a model and options. What it draws: four scenes, and a bridge before the third."""

    renderer: str
    model: str = "sdxl"
    options: Mapping[str, object] = field(default_factory=dict)
    negative: str = ""
    prompt: str = "the lion in the net"
    elsewhere: int = 2
    """How far a value may be from the recorded one on another processor or version, which rounds in other places."""

    def draw(self, folder: Path) -> NDArray[np.uint8]:
        """The frames side by side, of shape (32, 160, 3)."""
        made = default_registry("renderers").configure(f"{self.renderer}:{folder}", {**PLAIN, **self.options})
        requests = [frame(item.prompt, *item.characters, scene=item.scene, negative_prompt=self.negative)
                    for item in board()]  # fmt: skip
        pngs = list(made.render_board(requests))
        bridge = frame(self.prompt, LION, MOUSE, seed=43, kind="bridge", negative_prompt=self.negative)
        pngs.append(made.insert_frame(bridge, BoardContext(tuple(requests), tuple(pngs), 2)))
        return np.concatenate([np.asarray(Image.open(io.BytesIO(png)).convert("RGB")) for png in pngs], axis=1)


CASES: Mapping[str, Case] = {
    "sdxl": Case("sdxl"),
    "sdxl, long prompt": Case("sdxl", options={"negative": "night", "guidance": 3.0}, negative="snow", prompt=LONG),
    "sdxl, scheduler": Case("sdxl", options={"scheduler": "euler-ancestral", "batch": 2}),
    "sdxl, lora": Case("sdxl", "sdxl lora", {"dtype": "bfloat16"}, elsewhere=12),  # eight bits of mantissa
    "flux": Case("flux", "flux", {"true_cfg": 2.0, "negative": "night"}),
    "flux, schnell": Case("flux", "schnell", {"batch": 2}),
    "flux, klein": Case("flux", "klein"),
    "flux, klein base": Case("flux", "klein-base", negative="snow"),
    "flux, dev 2": Case("flux", "flux2-dev"),
    "kontext": Case("kontext", "kontext"),
    "kontext, no portraits": Case("kontext", "kontext", {"portraits": False}),
    "kontext, klein": Case("kontext", "klein"),
    "kontext, qwen": Case("kontext", "qwen-edit", negative="snow"),
    "consistory": Case("consistory", options={"steps": 3}),
    "consistory, one pass": Case("consistory", options={"steps": 3, "injection": False, "anchors": 1, "batch": 3}),
    "consistory, unguided": Case("consistory", options={"steps": 3, "guidance": 1.0, "keep_gib": 0.0}, prompt=LONG),
    "consistory, alone": Case("consistory", options={"sharing": False, "freeu": False}),
    "storydiffusion": Case("storydiffusion", options={"steps": 3, "identity_images": 2}),
    "storydiffusion, portraits": Case(
        "storydiffusion", options={"steps": 3, "identity": "portraits", "identity_images": 2, "separate": False}
    ),
    "storydiffusion, small bank": Case("storydiffusion", options={"steps": 3, "sampling": 0.2, "keep_gib": 0.0}),
}


def here() -> str:
    """What may change the last bit of a frame."""
    import diffusers

    return f"torch {torch.__version__}, diffusers {diffusers.__version__}, {torch.backends.cpu.get_cpu_capability()}"


def made(case: Case, model: Callable[[str], Path]) -> NDArray[np.uint8]:
    """What `case` draws, with an adapter where its model has one."""
    family, _, lora = case.model.partition(" ")
    folder = model(family)
    if not lora:
        return case.draw(folder)
    from diffusers import DiffusionPipeline

    file = folder.parent / "lora.safetensors"
    save_lora(DiffusionPipeline.from_pretrained(folder), "unet", file, targets=["to_q", "to_v"])
    return Case(case.renderer, family, {**case.options, "lora": (f"{file}@0.5",)}).draw(folder)


@pytest.mark.usefixtures("toy_diffusion")
@pytest.mark.parametrize("name", CASES)
def test_the_pixels_are_the_recorded_ones(name: str, model: Callable[[str], Path]) -> None:
    with Image.open(SHEET) as sheet:
        top = list(CASES).index(name) * SIDE
        recorded = np.asarray(sheet.crop((0, top, FRAMES * SIDE, top + SIDE)).convert("RGB"), np.int16)
        same_machine = sheet.info["drawn with"] == here()
    difference = np.abs(made(CASES[name], model).astype(np.int16) - recorded).max()
    assert difference <= (0 if same_machine else CASES[name].elsewhere)


def record() -> None:
    """Draw every case and write the sheet: a row for each."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        os.environ["KATHA_CACHE"] = f"{home}/cache"
        shrink(patch)

        def model(family: str) -> Path:
            folder = Path(home) / family
            return folder if folder.exists() else build(family, folder)

        rows: list[Any] = [made(case, model) for case in CASES.values()]
        process_pool().release()
    told = PngImagePlugin.PngInfo()
    told.add_text("drawn with", here())
    Image.fromarray(np.concatenate(rows)).save(SHEET, pnginfo=told, optimize=True)


if __name__ == "__main__":
    record()
