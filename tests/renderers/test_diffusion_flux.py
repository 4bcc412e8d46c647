"""The FLUX renderer, through diffusers' own pipeline classes at toy size, loaded from disk."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from tiny_diffusion import build

from katha.protocols import FrameRequest
from katha.renderers.diffusion.flux import FluxOptions, FluxRenderer
from katha.renderers.diffusion.memory import process_pool

PROMPTS = ("The lion roars at the small mouse.", "The mouse gnaws the net.", "The lion walks past the tree.")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    folder = tmp_path_factory.mktemp("flux")
    yield lambda family: folder / family if (folder / family).exists() else build(family, folder / family)
    process_pool().release()


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def flux(folder: Path, **options: Any) -> FluxRenderer:
    return FluxRenderer(str(folder), FluxOptions(**{"steps": 2, "device": "cpu", "any_size": True, **options}))


def frame(prompt: str = PROMPTS[0], seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": 32, "height": 32, "scene": 1, **fields})


def pixels(png: bytes) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.int16)


def plain(folder: Path) -> Any:
    from diffusers import DiffusionPipeline

    pipe = DiffusionPipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def plainly(pipe: Any, request: FrameRequest, **extra: Any) -> NDArray[np.int16]:
    image = pipe(
        prompt=request.prompt, generator=torch.Generator().manual_seed(request.seed), width=request.width,
        height=request.height, num_inference_steps=2, **extra,
    ).images[0]  # fmt: skip
    return np.asarray(image, np.int16)


@pytest.mark.parametrize(
    ("family", "steps", "guidance", "tokens"),
    [
        ("flux", 28, 3.5, 512),
        ("schnell", 4, 0.0, 256),
        ("klein", 4, 1.0, 512),
        ("klein-base", 50, 4.0, 512),
        ("klein-kv", 4, 1.0, 512),
        ("z-image", 8, 0.0, 512),
        ("flux2-dev", 50, 4.0, 512),
    ],
)
def test_a_checkpoint_says_itself_which_flux_it_is(
    model: Callable[[str], Path], family: str, steps: int, guidance: float, tokens: int
) -> None:
    renderer = flux(model(family), steps=None)
    assert (renderer.steps, renderer.guidance, renderer.prompt_tokens) == (steps, guidance, tokens)
    assert renderer.capabilities.prompt_tokens == tokens


@pytest.mark.parametrize(
    ("family", "guidance"),
    [("flux", 3.5), ("schnell", 0.0), ("klein-base", 4.0), ("klein-kv", None), ("z-image", 0.0), ("flux2-dev", 4.0)],
)
def test_a_frame_is_what_the_plain_pipeline_draws(
    model: Callable[[str], Path], family: str, guidance: float | None
) -> None:
    pipe, renderer = plain(model(family)), flux(model(family))
    extra = {"max_sequence_length": 256} if family == "schnell" else {}
    if guidance is not None:
        extra |= {"guidance_scale": guidance}
    for request in (frame(), frame(PROMPTS[1], 7, width=48)):
        (png,) = renderer.render_board([request])
        assert np.array_equal(pixels(png), plainly(pipe, request, **extra))


def test_z_image_is_guided_away_and_drawn_in_batches(model: Callable[[str], Path]) -> None:
    pipe, request = plain(model("z-image")), frame(negative_prompt="snow")
    (guided,) = flux(model("z-image"), guidance=4.0).render_board([request])
    assert np.array_equal(pixels(guided), plainly(pipe, request, guidance_scale=4.0, negative_prompt="snow"))
    requests = [frame(seed=seed) for seed in (1, 2, 3)]
    alone = [next(flux(model("z-image")).render_board([one])) for one in requests]
    for one, other in zip(flux(model("z-image"), batch=3).render_board(requests), alone, strict=True):
        assert np.abs(pixels(one) - pixels(other)).max() <= 1


def test_a_negative_prompt_counts_with_true_guidance_only(model: Callable[[str], Path]) -> None:
    pipe, request = plain(model("flux")), frame(negative_prompt="snow")
    (guided,) = flux(model("flux"), negative="night", true_cfg=3.0).render_board([request])
    wanted = plainly(pipe, request, guidance_scale=3.5, negative_prompt="snow, night", true_cfg_scale=3.0)
    assert np.array_equal(pixels(guided), wanted)
    (free,) = flux(model("flux")).render_board([request])
    assert np.array_equal(pixels(free), plainly(pipe, frame(), guidance_scale=3.5))


def test_a_negative_prompt_steers_a_model_that_is_not_distilled(model: Callable[[str], Path]) -> None:
    renderer = flux(model("klein-base"))
    drawn = [next(renderer.render_board([frame(negative_prompt=text)])) for text in ("", "snow")]
    assert drawn[0] != drawn[1]


def test_every_word_of_a_long_prompt_reaches_the_second_encoder(model: Callable[[str], Path]) -> None:
    head = ", ".join(f"the lion walks past tree number {word}" for word in ("one", "two", "three", "four", "five") * 3)
    one, other = frame(f"{head}, by day"), frame(f"{head}, at night")
    renderer = flux(model("flux"))
    assert 75 < renderer.reader.count(one.prompt) <= 512
    first, second = renderer.render_board([one, other])
    assert first != second
