"""What holds for every family of the diffusion renderers, each through its own diffusers classes at toy size."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from katha.errors import BlankFrameError, UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion.flux import FluxRenderer
from katha.renderers.diffusion.kontext import KontextRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.renderer import DiffusionRenderer, DrawingJob
from katha.renderers.diffusion.sdxl import SdxlRenderer
from katha.schema import Character

PROMPTS = ("The lion roars at the small mouse.", "The mouse gnaws the net.", "The lion walks past the tree.")
LION = Character(name="lion", kind="lion", appearance="the lion", anchor_prompt="The lion, wide shot")
CASES: Mapping[str, tuple[type[DiffusionRenderer], str]] = {
    "sdxl": (SdxlRenderer, "sdxl"),
    "flux1": (FluxRenderer, "flux"),
    "flux2": (FluxRenderer, "flux2-dev"),
    "klein": (FluxRenderer, "klein-base"),
    "z-image": (FluxRenderer, "z-image"),
    "kontext": (KontextRenderer, "kontext"),
    "flux2-pictures": (KontextRenderer, "flux2-dev"),
    "klein-kv": (KontextRenderer, "klein-kv"),
    "qwen": (KontextRenderer, "qwen-edit"),
}
every_family = pytest.mark.parametrize("case", CASES)


pytestmark = pytest.mark.usefixtures("toy_diffusion")


@pytest.fixture
def make(model: Callable[[str], Path]) -> Callable[..., Any]:
    def made(case: str, **options: Any) -> Any:
        kind, family = CASES[case]
        return kind(
            str(model(family)), kind.options_class(**{"steps": 2, "device": "cpu", "any_size": True, **options})
        )

    return made


def frame(prompt: str = PROMPTS[0], seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": 32, "height": 32, "scene": 1, "characters": (LION,), **fields})


def board(seed: int = 42) -> list[FrameRequest]:
    return [frame(prompt, seed, scene=number) for number, prompt in enumerate(PROMPTS, 1)]


def refused(renderer: Any, request: FrameRequest) -> bool:
    try:
        renderer.check_prompt(request)
    except UsageError:
        return True
    return False


def insert(renderer: Any, images: tuple[bytes, ...]) -> bytes:
    bridge = frame("The mouse walks.", kind="bridge", scene=None)
    png: bytes = renderer.insert_frame(bridge, BoardContext(tuple(board()), images, 1))
    return png


@every_family
def test_no_global_random_state_is_read_or_left(make: Callable[..., Any], case: str) -> None:
    drawn = []
    for seed in (1, 2):
        torch.manual_seed(seed), np.random.seed(seed), random.seed(seed)
        states = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())
        process_pool().release()
        renderer = make(case)
        images = tuple(renderer.render_board(board()))
        drawn.append((*images, insert(renderer, images)))
        assert torch.equal(states[0], torch.get_rng_state())
        assert states[1:] == (np.random.get_state()[1].tolist(), random.getstate())
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 4


@every_family
def test_text_encoders_run_once_for_each_distinct_prompt(make: Callable[..., Any], case: str) -> None:
    renderer = make(case, **({"portraits": False} if CASES[case][0] is KontextRenderer else {}))
    process_pool().release()
    ran: list[str] = []
    with renderer.pipeline(board()) as loaded:
        loaded.pipe.text_encoder.register_forward_hook(lambda *_: ran.append("prompt"))
    for seed in (42, 123, 2026):
        assert len(list(renderer.render_board(board(seed)))) == 3
    negatives = 1 if case in {"klein", "qwen"} else 0
    assert len(ran) == len(PROMPTS) + negatives
    process_pool().release()


@every_family
def test_the_same_floats_in_a_batch_and_alone(make: Callable[..., Any], case: str) -> None:
    renderer = make(case)
    with renderer.pipeline(board()) as loaded:
        jobs = [DrawingJob(request, renderer.encode(loaded, request)) for request in board()]
        batch = renderer.draw(loaded.pipe, jobs)
        single = torch.cat([renderer.draw(loaded.pipe, [job]) for job in jobs])
    assert batch.shape == (3, 3, 32, 32)
    assert float((batch - single).abs().max()) < 1e-4
    assert float(batch.std()) > 0.01


@pytest.mark.parametrize("case", [name for name in CASES if name != "sdxl"])
def test_a_prompt_that_the_model_cannot_read_is_refused_with_the_numbers(make: Callable[..., Any], case: str) -> None:
    renderer = make(case)
    loads = process_pool().loads
    limit = renderer.prompt_tokens
    with pytest.raises(UsageError, match=rf"scene 2 has \d+ tokens; the model reads {limit}"):
        next(renderer.render_board([frame(), frame("the lion roars " * limit, scene=2)]))
    assert process_pool().loads == loads
    count = max(renderer.reader.count(PROMPTS[0]), 8)
    with pytest.raises(UsageError, match=rf"1 to {limit} for this model, not {limit + 1}"):
        make(case, prompt_tokens=limit + 1)
    with pytest.raises(UsageError, match=rf"has \d+ tokens; the model reads {count - 1}"):
        next(make(case, prompt_tokens=count - 1).render_board([frame(f"{PROMPTS[0]} {PROMPTS[1]}")]))


@pytest.mark.parametrize("case", [name for name in CASES if name != "sdxl"])
def test_the_last_word_of_the_longest_prompt_counts(make: Callable[..., Any], case: str) -> None:
    renderer = make(case)
    fits = 0
    for step in (256, 64, 16, 4, 1):  # the longest that is not refused
        while not refused(renderer, frame("the " * (fits + step) + "roars")):
            fits += step
    assert fits > 150
    one, other = (next(renderer.render_board([frame("the " * (fits - 8) + end)])) for end in ("roars", "gnaws"))
    assert one != other


@every_family
def test_a_broken_frame_is_a_typed_failure(make: Callable[..., Any], case: str) -> None:
    renderer = make(case, steps=1)
    whole = next(renderer.render_board([frame()]))
    with renderer.pipeline(board()) as loaded, torch.no_grad():
        bias = loaded.pipe.vae.decoder.conv_out.bias
        kept = bias.clone()
        bias.fill_(-1e6)
        with pytest.raises(BlankFrameError, match="the bridge frame with seed 42 as one colour"):
            insert(renderer, (whole,) * 3)
        bias.fill_(float("nan"))
        with pytest.raises(BlankFrameError, match="with seed 42 as NaN"):
            next(renderer.render_board([frame()]))
        bias.copy_(kept)
    assert next(renderer.render_board([frame()])) == whole


@every_family
def test_a_size_that_the_model_cannot_draw_is_refused(make: Callable[..., Any], case: str) -> None:
    renderer = make(case, any_size=False)
    loads = process_pool().loads
    step, side = renderer.family.size_multiple, renderer.capabilities.default_size[0]
    for width, height, message in [
        (side, side + 1, f"Sides are multiples of {step}"),
        (8 * side, side, "was trained for about"),
        (5 * side // 2, side // 2, "more than 4 times the other"),
    ]:
        with pytest.raises(UsageError, match=message):
            next(renderer.render_board([frame(width=width, height=height)]))
    assert process_pool().loads == loads


def test_the_wrong_family_is_named(model: Callable[[str], Path]) -> None:
    for family, kind, wanted in [
        ("qwen-edit", FluxRenderer, "is a QwenImageEditPlusPipeline, and 'flux' draws with FluxPipeline or"),
        ("qwen-edit", SdxlRenderer, "is a QwenImageEditPlusPipeline, and 'sdxl' draws with"),
        ("flux2-dev", SdxlRenderer, "is a Flux2Pipeline, and 'sdxl' draws with"),
        ("flux", KontextRenderer, r"is a FluxPipeline, and 'kontext' draws with .* or QwenImageEditPlusPipeline"),
    ]:
        with pytest.raises(UsageError, match=wanted):
            kind(str(model(family)))


def test_options_that_would_change_nothing_are_refused(make: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=r"true_cfg is for FLUX\.1 models"):
        make("flux2", true_cfg=4.0)
    for case, options in (("flux1", {}), ("flux2", {}), ("klein", {"guidance": 1.0})):
        with pytest.raises(UsageError, match="The option negative changes nothing"):
            make(case, negative="snow", **options)
    for case, options in (("flux1", {"true_cfg": 2.0}), ("klein", {}), ("qwen", {})):
        assert make(case, negative="snow", **options).options.negative == "snow"
