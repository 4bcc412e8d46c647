"""The SDXL renderer, through diffusers' own pipeline class at toy size, loaded from disk as a user's is."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from tiny_diffusion import build

from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer

PROMPTS = ("The lion roars at the small mouse.", "The mouse gnaws the net.", "The lion walks past the tree.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield build("sdxl", tmp_path_factory.mktemp("sdxl") / "model")
    process_pool().release()


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def sdxl(folder: Path, **options: Any) -> SdxlRenderer:
    return SdxlRenderer(str(folder), SdxlOptions(**{"steps": 2, "device": "cpu", **options}))


def frame(prompt: str = PROMPTS[0], seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": 32, "height": 32, "scene": 1, **fields})


def board(seed: int = 42) -> list[FrameRequest]:
    return [frame(prompt, seed, scene=number) for number, prompt in enumerate(PROMPTS, 1)]


def pixels(png: bytes) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.int16)


def plain(folder: Path) -> Any:
    """The pipeline as a user would load it."""
    from diffusers import StableDiffusionXLPipeline

    pipe = StableDiffusionXLPipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def plainly(pipe: Any, request: FrameRequest, **extra: Any) -> NDArray[np.int16]:
    image = pipe(
        request.prompt, generator=torch.Generator().manual_seed(request.seed), width=request.width,
        height=request.height, num_inference_steps=2, **{"guidance_scale": 5.0, **extra},
    ).images[0]  # fmt: skip
    return np.asarray(image, np.int16)


def test_a_frame_is_what_the_plain_pipeline_draws(folder: Path) -> None:
    pipe = plain(folder)
    for request in (frame(), frame(seed=7), frame(PROMPTS[1], width=48, height=24)):
        (png,) = sdxl(folder).render_board([request])
        assert np.array_equal(pixels(png), plainly(pipe, request))


def test_negative_prompts_style_guidance_and_scheduler_reach_the_pipeline(folder: Path) -> None:
    from diffusers import DDIMScheduler

    pipe = plain(folder)
    request = frame(negative_prompt="snow")
    (png,) = sdxl(folder, negative="night", guidance=3.0).render_board([request])
    assert np.array_equal(pixels(png), plainly(pipe, request, negative_prompt="snow, night", guidance_scale=3.0))
    (styled,) = sdxl(folder).render_board([frame(style="watercolour")])
    assert np.array_equal(pixels(styled), plainly(pipe, frame("The lion roars at the small mouse, watercolour")))
    pipe.scheduler = DDIMScheduler.from_config(pipe.scheduler.config)
    (ddim,) = sdxl(folder, scheduler="ddim").render_board([frame()])
    assert np.array_equal(pixels(ddim), plainly(pipe, frame()))
    assert not np.array_equal(pixels(ddim), pixels(next(sdxl(folder).render_board([frame()]))))


def test_a_batch_equals_one_at_a_time(folder: Path) -> None:
    alone = [pixels(png) for png in sdxl(folder).render_board(board())]
    requests = [*board(), frame(PROMPTS[0], 43)]
    together = [pixels(png) for png in sdxl(folder, batch=3).render_board(requests)]
    assert len(together) == 4
    for one, other in zip(alone, together, strict=False):
        assert np.abs(one - other).max() <= 1
    assert not np.array_equal(together[0], together[3])


def test_one_pipeline_is_shared_and_let_go_when_another_is_needed(folder: Path) -> None:
    pool = process_pool()
    pool.release()
    before = pool.loads
    for seed in (1, 2):
        list(sdxl(folder).render_board([frame(seed=seed)]))
    assert pool.loads == before + 1
    list(sdxl(folder, scheduler="ddim").render_board([frame()]))
    assert pool.loads == before + 2


def test_no_global_random_state_is_read_or_left(folder: Path) -> None:
    import random

    renderer = sdxl(folder, scheduler="euler-ancestral")
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    states = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())
    (first,) = renderer.render_board([frame()])
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1:] == (np.random.get_state()[1].tolist(), random.getstate())
    process_pool().release()
    torch.manual_seed(2), np.random.seed(2), random.seed(2)
    assert list(renderer.render_board([frame()])) == [first]


def test_an_inserted_frame_is_drawn_alone(folder: Path) -> None:
    renderer = sdxl(folder)
    pngs = tuple(renderer.render_board(board()))
    request = frame("The mouse walks past the tree.", kind="bridge", scene=None)
    around = BoardContext(tuple(board()), pngs, 1)
    assert [renderer.insert_frame(request, around)] == list(renderer.render_board([request]))
    assert renderer.capabilities.insertion == "alone"


def test_a_part_is_drawn_inside_a_mask_by_the_same_weights(folder: Path) -> None:
    from diffusers import StableDiffusionXLInpaintPipeline

    renderer, mask = sdxl(folder), Image.new("L", (32, 32))
    mask.paste(255, (16, 0, 32, 32))
    hole = io.BytesIO()
    mask.save(hole, "PNG")
    (old,) = renderer.render_board([frame(seed=7)])
    loads = process_pool().loads
    new = renderer.inpaint_frame(frame(PROMPTS[1]), old, hole.getvalue())
    assert process_pool().loads == loads
    other = StableDiffusionXLInpaintPipeline(**plain(folder).components)
    other.set_progress_bar_config(disable=True)
    given = {"image": Image.open(io.BytesIO(old)), "mask_image": mask, "strength": 1.0}
    assert np.array_equal(pixels(new), plainly(other, frame(PROMPTS[1]), **given))
    assert not np.array_equal(pixels(new)[:, 16:], pixels(old)[:, 16:])
    assert np.array_equal(pixels(next(renderer.render_board([frame(seed=7)]))), pixels(old))
