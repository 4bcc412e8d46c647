"""`speed=fast` and the schedulers of distilled adapters: what is left out, that it is said, and that exact is exact."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from katha.errors import UsageError
from katha.protocols import FrameRequest
from katha.renderers.diffusion.flux import FluxOptions, FluxRenderer
from katha.renderers.diffusion.kontext import KontextRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.options import Calling, diffusion_data
from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer
from katha.renderers.diffusion.speed import Shortcuts, shortcuts_of, take_shortcuts

Model = Callable[[str], Path]
STEPS = 10

pytestmark = pytest.mark.usefixtures("toy_diffusion")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("katha.renderers.diffusion.speed._THRESHOLD", 50.0)  # random weights change much at every step
    process_pool().release()
    yield
    process_pool().release()


def made(kind: Any, folder: Path, **options: Any) -> Any:
    given = {"steps": STEPS, "device": "cpu", "any_size": True, **options}
    return kind(str(folder), kind.options_class(**given))


def frame(prompt: str = "The lion roars.", seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": 32, "height": 32, "scene": 1, **fields})


def grey(png: bytes) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.int16)


@pytest.mark.parametrize(
    ("kind", "family"), [(FluxRenderer, "flux"), (KontextRenderer, "kontext"), (KontextRenderer, "qwen-edit")]
)
def test_blocks_are_left_out_where_little_changes(model: Model, kind: Any, family: str) -> None:
    drawer = made(kind, model(family), speed="fast")
    first = next(drawer.render_board([frame()]))
    ran: list[str] = []
    with drawer.pipeline([frame()]) as loaded:
        assert loaded.pipe.transformer.is_cache_enabled
        blocks = [block for name in ("transformer_blocks", "single_transformer_blocks")
                  for block in getattr(loaded.pipe.transformer, name, [])]  # fmt: skip
        blocks[0].attn.register_forward_hook(lambda *_: ran.append("first"))
        blocks[-1].attn.register_forward_hook(lambda *_: ran.append("last"))
    again = [next(drawer.render_board([item])) for item in (frame(seed=1), frame())]
    assert ran.count("first") >= 2 * STEPS
    assert ran.count("last") < ran.count("first")
    assert again[1] == first, "nothing of an earlier frame is left"
    process_pool().release()
    exact = made(kind, model(family))
    assert drawer.spec()["speed"] == {"first_block": 50.0, "float8": False, "compiled": False}
    assert "speed" not in exact.spec()
    plain = next(exact.render_board([frame()]))
    assert np.abs(grey(plain) - grey(first)).mean() > 0
    assert plain == next(made(kind, model(family), speed="exact").render_board([frame()]))


def test_a_frame_that_was_broken_off_leaves_nothing(model: Model) -> None:
    drawer = made(FluxRenderer, model("flux"), speed="fast")
    whole = next(drawer.render_board([frame()]))
    calls: list[int] = []
    with drawer.pipeline([frame()]) as loaded:

        def fail(*_: object) -> None:
            calls.append(1)
            if len(calls) == 5:
                raise torch.OutOfMemoryError("full")

        handle = loaded.pipe.transformer.register_forward_pre_hook(fail)
    with pytest.raises(Exception, match="ran out of memory"):
        next(drawer.render_board([frame(seed=9)]))
    handle.remove()
    assert next(drawer.render_board([frame()])) == whole


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("flux2-dev", {}, "would change nothing for Flux2Pipeline with 10 steps"),
        ("schnell", {"steps": 4}, "would change nothing for FluxPipeline with 4 steps"),
        ("flux", {"batch": 2}, "one frame at a time"),
        ("flux", {"speed": "faster"}, "There is no speed 'faster'. Use exact, fast"),
    ],
)
def test_what_helps_nobody_is_refused(model: Model, family: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(FluxRenderer, model(family), **{"speed": "fast", **options}).spec()
    assert message in f"{caught.value.message} {caught.value.hint}"


def test_an_accelerator_compiles_and_takes_8_bits_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr("katha.renderers.diffusion.speed.find_spec", lambda name: object())
    calling = Calling(away="never")

    def found(memory: Any = "full", adapted: bool = False) -> Shortcuts:
        return shortcuts_of(calling, "cuda:1", memory, adapted=adapted, steps=50)

    assert found() == found("model-offload") == Shortcuts(None, float8=True, compiled=True)
    assert found(adapted=True) == Shortcuts(compiled=True)
    assert found("quantized") == found("sequential-offload") == Shortcuts()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    assert found() == Shortcuts(compiled=True)
    monkeypatch.setattr("katha.renderers.diffusion.speed.find_spec", lambda name: None)
    assert not found().float8


def test_blocks_are_compiled_one_by_one(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    drawer = made(FluxRenderer, model("flux"))
    with drawer.pipeline([frame()]) as loaded:
        monkeypatch.setattr(torch.nn.Module, "compile", lambda self: compiled.append(type(self).__name__))
        take_shortcuts(loaded.pipe.transformer, Shortcuts(compiled=True))
    assert compiled == ["FluxTransformerBlock", "FluxSingleTransformerBlock"]


@pytest.mark.parametrize("name", ["euler-trailing", "ddim-trailing", "lcm", "tcd"])
def test_distilled_adapters_have_their_schedulers(model: Model, name: str) -> None:
    import diffusers

    row = diffusion_data().schedulers[name]
    pipe = diffusers.StableDiffusionXLPipeline.from_pretrained(model("sdxl"))
    pipe.set_progress_bar_config(disable=True)
    pipe.scheduler = getattr(diffusers, row.kind).from_config(pipe.scheduler.config, **row.settings)
    pipe.scheduler.set_timesteps(4)
    if "trailing" in name:
        assert [round(float(step)) for step in pipe.scheduler.timesteps] == [999, 749, 499, 249]
    wanted = pipe(
        "The lion roars.", generator=torch.Generator().manual_seed(42), width=32, height=32, num_inference_steps=4,
        guidance_scale=0.0,
    ).images[0]  # fmt: skip
    drawer = made(SdxlRenderer, model("sdxl"), scheduler=name, steps=4, guidance=0.0)
    assert np.array_equal(grey(next(drawer.render_board([frame()]))), np.asarray(wanted, np.int16))
    assert drawer.spec()["scheduler"] == name


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sdxl-turbo", (4, 0.0, None)),
        ("SDXL-Lightning", (4, 0.0, "euler-trailing")),
        ("sdxl_lightning_8step", (8, 0.0, "euler-trailing")),
        ("sdxl_lightning_1step_x0", (1, 0.0, "euler-trailing")),
        ("stable-diffusion-xl-base-1.0", (50, 5.0, None)),
    ],
)
def test_distilled_checkpoints_are_drawn_as_they_were_distilled(
    model: Model, tmp_path: Path, name: str, told: tuple[int, float, str | None]
) -> None:
    folder = tmp_path / name
    folder.symlink_to(model("sdxl"), target_is_directory=True)
    drawer = SdxlRenderer(str(folder), SdxlOptions(device="cpu", any_size=True))
    assert (drawer.steps, drawer.guidance, drawer.scheduler) == told
    assert drawer.spec()["scheduler"] == told[2]
    assert bool([text for text in drawer.remarks() if "as a checkpoint of its kind" in text]) == (told[0] < 50)
    own = SdxlRenderer(str(folder), SdxlOptions(device="cpu", any_size=True, steps=7, guidance=3.0, scheduler="ddim"))
    assert (own.steps, own.guidance, own.scheduler) == (7, 3.0, "ddim")
    assert own.remarks() == []


def test_the_scheduler_tells_a_distilled_checkpoint_whatever_its_name(model: Model, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model("sdxl"), tmp_path / "mine"))
    path = folder / "scheduler" / "scheduler_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "timestep_spacing": "trailing"}))
    drawer = SdxlRenderer(str(folder), SdxlOptions(device="cpu", any_size=True))
    assert (drawer.steps, drawer.guidance) == (4, 0.0)


def test_a_base_and_a_dedistilled_model_are_told_by_their_names(model: Model, tmp_path: Path) -> None:
    cases = (("z-image", "Z-Image", 50), ("z-image", "Z-Image-Turbo", 8), ("schnell", "flux-de-distill", 28))
    for kind, name, steps in cases:
        folder = tmp_path / name
        folder.symlink_to(model(kind), target_is_directory=True)
        drawer = FluxRenderer(str(folder), FluxOptions(device="cpu", any_size=True))
        assert drawer.steps == steps
