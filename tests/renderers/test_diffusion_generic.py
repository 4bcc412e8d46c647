"""`diffusers:` against the pipelines themselves: equal pixels, and what is told before anything is loaded."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from katha.errors import UnfitFrameError, UsageError
from katha.protocols import FrameRequest
from katha.renderers.diffusion.generic import GenericOptions, GenericRenderer
from katha.renderers.diffusion.renderer import generator_of
from katha.testing import check_renderer

Model = Callable[[str], Path]
FAMILIES = (
    *("sdxl", "flux", "klein", "z-image", "qwen-image", "sd3"),
    *("chroma", "hidream", "krea2", "lumina2", "sana"),
)
CALLED = {"sana": ("use_resolution_binning=false",)}
"""Arguments without which a family does not draw pictures of toy size."""
PROMPTS = ("The lion roars at the small mouse.", "The mouse gnaws the net.")

pytestmark = pytest.mark.usefixtures("toy_diffusion")


def made(folder: Path, **options: Any) -> GenericRenderer:
    given = {"steps": 2, "device": "cpu", "any_size": True, **options}
    return GenericRenderer(str(folder), GenericOptions(**given))


def frame(prompt: str = PROMPTS[0], seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": 32, "height": 32, "scene": 1, **fields})


def pixels(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)))


@pytest.mark.filterwarnings("ignore:`FluxPosEmbed` is deprecated:FutureWarning")  # of Chroma's own module
@pytest.mark.parametrize("family", FAMILIES)
def test_frames_are_those_of_the_pipeline(model: Model, family: str) -> None:
    import diffusers

    drawer = made(model(family), guidance=3.0, negative="rain", call=CALLED.get(family, ()))
    found = [pixels(png) for png in drawer.render_board([frame(prompt, seed) for seed, prompt in enumerate(PROMPTS)])]
    pipe = diffusers.DiffusionPipeline.from_pretrained(model(family))
    pipe.set_progress_bar_config(disable=True)
    away = {"negative_prompt": "rain"} if "negative_prompt" in drawer.parameters else {}
    for seed, prompt in enumerate(PROMPTS):
        scale = {drawer.scale: 3.0}
        images = pipe(
            prompt=prompt, width=32, height=32, num_inference_steps=2, generator=generator_of(seed), **away, **scale,
            **drawer.options.arguments,
        ).images  # fmt: skip
        assert (np.asarray(images[0]) == found[seed]).all()
    assert (found[0] != found[1]).any()


def test_a_batch_is_drawn_at_once_and_the_contract_is_kept(model: Model) -> None:
    requests = [frame(prompt, seed) for seed, prompt in enumerate(PROMPTS)]
    single = [pixels(png) for png in made(model("sd3")).render_board(requests)]
    together = [pixels(png) for png in made(model("sd3"), batch=2).render_board(requests)]
    assert all(np.abs(a.astype(int) - b).max() <= 1 for a, b in zip(single, together, strict=True))
    assert "insertion" in check_renderer(lambda: made(model("sd3")), size=(32, 32))


def test_what_is_not_told_is_the_pipeline_s_own(model: Model) -> None:
    qwen, sd3 = (GenericRenderer(str(model(name)), GenericOptions(device="cpu")) for name in ("qwen-image", "sd3"))
    assert (qwen.steps, qwen.guidance, qwen.scale, qwen.prompt_tokens) == (50, 4.0, "true_cfg_scale", 512)
    assert (sd3.steps, sd3.guidance, sd3.scale, sd3.prompt_tokens) == (28, 7.0, "guidance_scale", 256)
    sdxl = GenericRenderer(str(model("sdxl")), GenericOptions(device="cpu"))
    assert (sdxl.steps, sdxl.prompt_tokens, sdxl.family.denoiser) == (50, 75, "unet")


def test_a_distilled_checkpoint_is_drawn_in_its_few_steps(model: Model, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model("krea2"), tmp_path / "krea2"))
    base = GenericRenderer(str(folder), GenericOptions(device="cpu"))
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps({**index, "is_distilled": True}))
    distilled = GenericRenderer(str(folder), GenericOptions(device="cpu"))
    assert (base.steps, base.guidance) == (28, 4.5)
    assert (distilled.steps, distilled.guidance) == (8, 0.0)


def test_options_are_arguments_of_the_call(model: Model) -> None:
    plain = made(model("sd3"))
    skipped = made(model("sd3"), call=("clip_skip=1",))
    assert skipped.spec()["call"] == {"clip_skip": 1}
    first, second = (pixels(next(iter(drawer.render_board([frame()])))) for drawer in (plain, skipped))
    assert (first != second).any()
    with pytest.raises(UsageError, match=r"takes no 'seeds'.*clip_skip"):
        made(model("sd3"), call=("seeds=3",))
    with pytest.raises(UsageError, match="not an argument of a pipeline"):
        made(model("sd3"), call=("clip_skip",))


def test_what_cannot_be_drawn_is_told_before_loading(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="needs a checkpoint"):
        GenericRenderer()
    monkeypatch.setattr(GenericRenderer, "parameters", {"image": None, "prompt": None})
    with pytest.raises(UsageError, match="takes no width, height, num_inference_steps, generator"):
        made(model("sd3"))


def test_a_prompt_that_would_be_cut_is_refused(model: Model) -> None:
    with pytest.raises(UnfitFrameError, match=r"tokens; the model reads 75"):
        next(iter(made(model("sdxl")).render_board([frame("the lion roars at the mouse " * 30)])))


def test_parts_move_as_for_the_other_renderers(model: Model) -> None:
    whole = pixels(next(iter(made(model("sd3")).render_board([frame()]))))
    moved = pixels(next(iter(made(model("sd3"), memory="model-offload").render_board([frame()]))))
    assert (whole == moved).all()
    assert torch.get_num_threads() == 1
