"""Small boards for the renderers that share attention, and the plain pipeline to hold them against."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from katha.protocols import FrameRequest
from katha.renderers.shared_attention.denoise import FREEU
from katha.schema import Character

LION = Character(name="Leo", kind="lion", appearance="the lion", anchor_prompt="the lion walks")
MOUSE = Character(name="mouse", kind="mouse", appearance="a small grey mouse")
WOMAN = Character(name="Ann", kind="old woman", appearance="an old woman", anchor_prompt="an old woman at night")


def frame(prompt: str, *characters: Character, scene: int | None = None, seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": 32, "height": 32, **fields}, scene=scene, characters=characters)


def board() -> list[FrameRequest]:
    """Four scenes: the lion alone, the mouse alone, both, and nobody."""
    return [
        frame("the lion roars in the forest", LION, scene=1),
        frame("a small grey mouse walks", MOUSE, scene=2),
        frame("the lion and a small grey mouse at night", LION, MOUSE, scene=3),
        frame("a tree by the river", scene=4),
    ]


def pixels(png: bytes) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.int16)


def plain_pipe(folder: Any) -> Any:
    """The pipeline as a user would set it up for the published settings: DDIM that does not clip."""
    from diffusers import DDIMScheduler, StableDiffusionXLPipeline

    pipe = StableDiffusionXLPipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
    return pipe


def plain_frames(pipe: Any, requests: Sequence[FrameRequest], steps: int, freeu: bool = True) -> list[Any]:
    """What the plain pipeline draws, frame by frame."""
    if freeu:
        pipe.enable_freeu(**FREEU)
    try:
        return [
            np.asarray(
                pipe(
                    request.prompt, generator=torch.Generator().manual_seed(request.seed), width=request.width,
                    height=request.height, num_inference_steps=steps, guidance_scale=5.0,
                    negative_prompt=request.negative_prompt or None,
                ).images[0],
                np.int16,
            )
            for request in requests
        ]  # fmt: skip
    finally:
        pipe.disable_freeu()
