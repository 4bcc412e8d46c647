"""Adapters, long prompts and the memory ladder of the diffusion renderers."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file, save_file
from tiny_diffusion import save_lora

from katha.agents.requests import in_words
from katha.configs import load_prompt
from katha.errors import InputFileError, UsageError
from katha.jsonio import read_json
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion.checkpoint import read_header
from katha.renderers.diffusion.flux import FluxRenderer
from katha.renderers.diffusion.kontext import KontextRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.placement import Frames, check_fits, light_bytes, needs_of
from katha.renderers.diffusion.sdxl import SdxlRenderer, chunk_tokens

Model = Callable[[str], Path]
TARGETS = ["to_q", "to_v"]
PART = {"sdxl": "unet"}
SEEING = "QwenImageEditPlusPipeline"
GUIDANCE = {"StableDiffusionXLPipeline": 5.0, "FluxPipeline": 3.5, "Flux2Pipeline": 4.0}
GREY = Image.radial_gradient("L").resize((32, 32)).convert("RGB")
LONG = ", ".join(f"an old woman gives the apple to the crocodile at tree number {word}" for word in ("one", "two") * 5)


pytestmark = pytest.mark.usefixtures("toy_diffusion")


@pytest.fixture(scope="module")
def loras(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    folder = tmp_path_factory.mktemp("loras")

    def made(family: str, seed: int) -> Path:
        file = folder / f"{family}{seed}.safetensors"
        return file if file.exists() else save_lora(plain(model(family)), PART.get(family, "transformer"), file,
                                                    targets=TARGETS, seed=seed)  # fmt: skip

    return made


def renderer(folder: Path, **options: Any) -> Any:
    kinds = {"StableDiffusionXLPipeline": SdxlRenderer, SEEING: KontextRenderer}
    kind = kinds.get(read_json(folder / "model_index.json")["_class_name"], FluxRenderer)
    return kind(str(folder), kind.options_class(**{"steps": 1, "device": "cpu", "any_size": True, **options}))


def frame(prompt: str = "The lion roars.", **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, 42, **{"width": 32, "height": 32, "scene": 1, **fields})


def draw(drawer: Any, **fields: Any) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(next(iter(drawer.render_board([frame(**fields)]))))) as image:
        return np.asarray(image.convert("RGB"), np.int16)


def nearly(one: NDArray[np.int16], other: NDArray[np.int16]) -> bool:
    """Equal to one step of 255: the same weights at other addresses may take other vector instructions."""
    return bool(np.abs(one - other).max() <= 1)


def plain(folder: Path) -> Any:
    from diffusers import DiffusionPipeline

    pipe = DiffusionPipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def plainly(pipe: Any) -> NDArray[np.int16]:
    """The plain pipeline's frame; Qwen-Image-Edit's is drawn from a picture."""
    options: dict[str, Any] = {"prompt": "The lion roars.", "guidance_scale": GUIDANCE.get(type(pipe).__name__)}
    if type(pipe).__name__ == SEEING:
        prompt = load_prompt("renderers/kontext_bridge").render(prompt="The lion roars.", names=[], neighbours=1)
        options = {"prompt": prompt, "image": GREY, "true_cfg_scale": 4.0, "negative_prompt": " "}
    image = pipe(
        **options, generator=torch.Generator().manual_seed(42), width=32, height=32, num_inference_steps=1
    ).images[0]
    return np.asarray(image, np.int16)


def drawn(drawer: Any) -> NDArray[np.int16]:
    """The renderer's frame; a bridge beside a picture where the text encoder sees pictures."""
    if drawer.checkpoint.pipeline != SEEING:
        return draw(drawer)
    buffer = io.BytesIO()
    GREY.save(buffer, "PNG")
    png = drawer.insert_frame(frame(), BoardContext((frame(),), (buffer.getvalue(),), 1))
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.int16)


@pytest.mark.filterwarnings("ignore:Already found a `peft_config`")
@pytest.mark.parametrize("family", ["sdxl", "flux", "flux2-dev", "qwen-edit"])
def test_several_adapters_count_with_their_weights(
    model: Model, loras: Callable[[str, int], Path], family: str
) -> None:
    folder, first, second = model(family), loras(family, 1), loras(family, 2)
    pipe = plain(folder)
    bare = plainly(pipe)
    pipe.load_lora_weights(first.parent, weight_name=first.name, adapter_name="a")
    pipe.load_lora_weights(second.parent, weight_name=second.name, adapter_name="b")
    pipe.set_adapters(["a", "b"], [0.5, 2.0])
    wanted = plainly(pipe)
    assert np.array_equal(drawn(renderer(folder, lora=(f"{first}@0.5", f"{second}@2"))), wanted)
    assert not np.array_equal(wanted, bare)
    assert np.array_equal(drawn(renderer(folder, lora=(f"{first}@0",))), bare)
    pipe.set_adapters(["a"], [1.0])
    assert np.array_equal(drawn(renderer(folder, lora=(str(first),))), plainly(pipe))


def test_adapters_are_part_of_what_a_frame_depends_on(model: Model, loras: Callable[[str, int], Path]) -> None:
    file = loras("sdxl", 1)
    specs = [renderer(model("sdxl"), lora=given).spec() for given in ((), (f"{file}@1",), (f"{file}@0.5",))]
    assert specs[0]["lora"] == []
    assert specs[1] != specs[2] != specs[0]


def test_an_adapter_that_does_not_fit_is_refused(
    model: Model, loras: Callable[[str, int], Path], tmp_path: Path
) -> None:
    file = loras("sdxl", 1)
    wide = tmp_path / "wide.safetensors"
    save_file({name: torch.zeros([2 * side for side in value.shape]) for name, value in load_file(file).items()}, wide)
    strange = tmp_path / "strange.safetensors"
    extra = {
        "unet.nowhere.attn.to_q.lora_A.weight": torch.zeros(2, 8),
        "unet.nowhere.attn.to_q.lora_B.weight": torch.zeros(8, 2),
    }
    save_file({**load_file(file), **extra}, strange)
    for given in (wide, strange, loras("flux", 1)):
        with pytest.raises(UsageError, match="does not fit StableDiffusionXLPipeline"):
            draw(renderer(model("sdxl"), lora=(str(given),)))
    others = {"flux": file, "flux2-dev": loras("flux", 1), "qwen-edit": loras("flux", 1)}
    for (family, other), kind in zip(others.items(), ("FluxPipeline", "Flux2Pipeline", SEEING), strict=True):
        with pytest.raises(UsageError, match=f"does not fit {kind}"):
            drawn(renderer(model(family), lora=(str(other),)))
    assert draw(renderer(model("sdxl"), lora=(str(file),))).any()


def test_an_adapter_that_is_none_is_refused(model: Model, loras: Callable[[str, int], Path], tmp_path: Path) -> None:
    file = loras("sdxl", 1)
    save_file({"weight": torch.zeros(2)}, tmp_path / "none.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"x" * 20)
    refused = {
        "missing.safetensors@0.5": (InputFileError, "There is no LoRA 'missing.safetensors'"),
        f"{file}@much": (UsageError, "weight of the LoRA .* is not a number"),
        str(tmp_path / "none.safetensors"): (UsageError, "holds no LoRA"),
        str(tmp_path / "broken.safetensors"): (InputFileError, "not a whole safetensors file"),
    }
    for given, (kind, message) in refused.items():
        with pytest.raises(kind, match=message):
            renderer(model("sdxl"), lora=(given,))
    with pytest.raises(UsageError, match="given twice"):
        renderer(model("sdxl"), lora=(str(file), f"{file}@0.5"))


def test_chunks_are_everything_and_end_with_words() -> None:
    pieces = ["a</w>", "bc", "d</w>", "e</w>", "fgh", "i", "j", "k", "l</w>"]
    for size in range(1, 10):
        ranges = list(chunk_tokens(pieces, size))
        assert [piece for start, stop in ranges for piece in pieces[start:stop]] == pieces
        assert all(0 < stop - start <= size for start, stop in ranges)
        if size >= 5:
            assert all(pieces[stop - 1].endswith("</w>") for _, stop in ranges)
    assert list(chunk_tokens([], 5)) == [(0, 0)]


def test_no_word_of_a_long_prompt_is_lost(model: Model) -> None:
    drawer = renderer(model("sdxl"))
    drawn = [draw(drawer, prompt=f"{LONG}, {end}") for end in ("by day", "at night")]
    assert not np.array_equal(*drawn)
    negative = [draw(drawer, negative_prompt=f"{LONG}, {end}") for end in ("by day", "at night")]
    assert not np.array_equal(*negative)
    with drawer.pipeline([frame()]) as loaded:
        encoded = drawer.encode(loaded, frame(LONG, negative_prompt="snow"))
        count = len(loaded.pipe.tokenizer(LONG, add_special_tokens=False)["input_ids"])
        assert (
            encoded["prompt_embeds"].shape == encoded["negative_prompt_embeds"].shape == (1, 77 * -(-count // 75), 80)
        )


def test_a_short_prompt_is_read_the_same_beside_a_long_negative(model: Model) -> None:
    drawer = renderer(model("sdxl"))
    with drawer.pipeline([frame()]) as loaded:
        alone = drawer.encode(loaded, frame())["prompt_embeds"]
        beside = drawer.encode(loaded, frame(negative_prompt=LONG))["prompt_embeds"]
        empty, _, _, _ = loaded.pipe.encode_prompt("", do_classifier_free_guidance=False)
    assert torch.equal(beside[:, :77], alone)
    assert torch.equal(beside[:, 77:154], empty)


def test_a_prompt_is_composed_to_the_token_of_the_models_own_tokenizer(model: Model) -> None:
    drawer = renderer(model("sdxl"), long_prompts="refuse")
    able = drawer.capabilities
    assert (able.prompt_family, able.prompt_tokens) == ("clip", 75)
    asked = in_words(frame(style="ink", must_show=tuple(f"thing {at}" for at in range(99))), able, drawer.count_tokens)
    assert 60 < drawer.count_tokens(asked.prompt) <= 75
    assert asked.prompt.endswith("; ink.")
    assert next(iter(drawer.render_board([asked])))
    assert any("what must be seen (1)" in text for text in drawer.remarks())


def test_a_long_prompt_can_be_refused_instead(model: Model) -> None:
    drawer = renderer(model("sdxl"), long_prompts="refuse")
    with pytest.raises(UsageError, match=r"scene 1 has \d+ tokens; the model reads 75"):
        draw(drawer, prompt=LONG)
    with pytest.raises(UsageError, match="the model reads 75"):
        draw(drawer, negative_prompt=LONG)
    assert draw(drawer).any()


@pytest.mark.parametrize("family", ["sdxl", "flux", "flux2-dev", "qwen-edit"])
@pytest.mark.parametrize("rung", ["model-offload", "sequential-offload"])
def test_offloading_changes_no_picture(model: Model, family: str, rung: str) -> None:
    process_pool().release()
    offloaded = drawn(renderer(model(family), memory=rung)), draw(renderer(model(family), memory=rung))
    process_pool().release()
    assert nearly(offloaded[0], drawn(renderer(model(family))))
    assert nearly(offloaded[1], draw(renderer(model(family))))


@pytest.mark.parametrize("family", ["sdxl", "flux", "klein", "flux2-dev", "qwen-edit"])
def test_quantized_weights_take_fewer_bytes_and_draw_nearly_the_same(model: Model, family: str) -> None:
    process_pool().release()
    full = drawn(renderer(model(family)))
    drawer = renderer(model(family), memory="quantized")
    quantized = drawn(drawer)
    assert np.isfinite(quantized).all()
    assert 0 < np.abs(full - quantized).mean() < 40
    with drawer.pipeline([frame()]) as loaded:
        denoiser = getattr(loaded.pipe, drawer.family.denoiser)
        held = sum(weight.numel() * weight.element_size() for weight in denoiser.parameters())
        encoders = {weight.dtype for weight in loaded.pipe.text_encoder.parameters()}
    headers = [read_header(file) for file in drawer.checkpoint.weights()[drawer.family.denoiser]]
    assert held == light_bytes(headers, 4)
    assert held < 0.6 * 4 * sum(math.prod(shape) for shapes in headers for shape in shapes.values())
    assert torch.float8_e4m3fn in encoders
    process_pool().release()


def test_quantized_weights_carry_adapters(model: Model, loras: Callable[[str, int], Path]) -> None:
    process_pool().release()
    options = {"memory": "quantized", "lora": (str(loras("sdxl", 1)),)}
    adapted = draw(renderer(model("sdxl"), **options))
    assert not np.array_equal(adapted, draw(renderer(model("sdxl"), memory="quantized")))
    process_pool().release()


@pytest.mark.parametrize("family", ["sdxl", "flux2-dev", "qwen-edit"])
def test_tiling_is_switched_on(model: Model, family: str) -> None:
    process_pool().release()
    drawer = renderer(model(family), vae_tiling=True)
    wide = draw(drawer, width=96, height=32)
    with drawer.pipeline([frame()]) as loaded:
        assert loaded.pipe.vae.use_tiling
    assert wide.shape == (32, 96, 3)
    assert drawer.spec() != renderer(model(family)).spec()
    process_pool().release()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_dtype_is_the_one_asked_for(model: Model, dtype: str) -> None:
    drawer = renderer(model("sdxl"), dtype=dtype)
    assert draw(drawer).any()
    with drawer.pipeline([frame()]) as loaded:
        assert loaded.pipe.unet.dtype == getattr(torch, dtype)


def test_a_need_is_the_weights_and_the_frame(model: Model) -> None:
    checkpoint = renderer(model("sdxl")).checkpoint
    numbers = {
        name: sum(value.numel() for value in getattr(plain(model("sdxl")), name).state_dict().values())
        for name in ("unet", "vae", "text_encoder", "text_encoder_2")
    }

    def need(rung: Any, **options: Any) -> Any:
        dtype = options.pop("dtype", "float32")
        return needs_of(checkpoint, dtype, Frames(**{"pixels": 0, **options}), denoiser="unet")[rung]

    assert need("full").device == 4 * sum(numbers.values())
    assert need("full", dtype="bfloat16").device == 2 * sum(numbers.values())
    draws = numbers["unet"] + numbers["vae"]
    assert need("model-offload").device == 4 * max(draws, sum(numbers.values()) - draws)
    assert need("model-offload").host == 4 * sum(numbers.values())
    assert need("quantized").device < need("model-offload").device
    assert need("sequential-offload").device < need("model-offload").device
    small, large = need("full", pixels=32 * 32), need("full", pixels=64 * 64)
    assert small.device < large.device < need("full", pixels=64 * 64, batch=2).device
    assert need("full", pixels=64 * 64, batch=8, tiling=True).device > need("full", pixels=64 * 64, batch=8).device / 2
    assert need("full", pixels=4096 * 4096, tiling=True).device < need("full", pixels=4096 * 4096).device


def test_what_does_not_fit_is_refused_with_the_bytes_missing_and_what_fits(model: Model) -> None:
    checkpoint = renderer(model("sdxl")).checkpoint
    needs = needs_of(checkpoint, "float32", Frames(32 * 32), denoiser="unet")
    free = needs["full"].device - 1000
    with pytest.raises(
        UsageError, match=r"needs [\d,]+ bytes on 'cuda': 1,000 are missing on 'cuda'\. --memory model-off"
    ):
        check_fits(needs, "full", "cuda", (free, 10**12))
    with pytest.raises(UsageError, match=r"Draw smaller frames, or use a larger device"):
        check_fits(needs, "full", "cuda", (10, 10**12))
    with pytest.raises(UsageError, match="are missing on the host"):
        check_fits(needs, "model-offload", "cuda", (10**12, needs["model-offload"].host - 1))
    said = check_fits(needs, "full", "cuda", (needs["full"].device, 10**12))
    assert f"{needs['full'].device:,} bytes of" in said


def test_a_device_too_small_is_refused_before_anything_is_loaded(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    process_pool().release()
    loads = process_pool().loads
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 1000})())
    with pytest.raises(UsageError, match=r"The memory rung 'full' needs [\d,]+ bytes on 'cpu': [\d,]+ are missing"):
        draw(renderer(model("sdxl")))
    assert process_pool().loads == loads


def test_another_model_is_let_go_when_there_is_no_room_beside_it(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    from katha.models.checkpoints import device_models

    class Judge:
        closed = False

        def close(self) -> None:
            self.closed = True

    judge = Judge()
    process_pool().release()
    device_models().register("cpu", judge)
    free = {False: 1000, True: 10**12}
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": free[judge.closed]})())
    assert draw(renderer(model("sdxl"))).any()
    assert judge.closed
    with renderer(model("sdxl")).pipeline([frame()]) as loaded:
        first = loaded.pipe
    assert device_models().make_room("cpu", judge)
    loads = process_pool().loads
    with renderer(model("sdxl")).pipeline([frame()]) as loaded:
        assert loaded.pipe is not first
    assert process_pool().loads == loads + 1


def test_the_published_shapes_have_the_published_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from benchmarks.diffusion_shapes import need_table

    sdxl, flux, flux2, qwen = (need_table(name, 0) for name in ("sdxl", "flux-dev", "flux2-dev", "qwen-edit"))
    assert 32e9 < flux2["full"]["device"] / 2 - 24e9 < 33e9
    assert 20e9 < qwen["full"]["device"] / 2 - 8.3e9 < 21e9
    assert 3.4e9 < sdxl["full"]["device"] / 2 < 3.6e9
    assert 16.5e9 < flux["full"]["device"] / 2 < 17e9
    assert 12e9 < flux["quantized"]["device"] < 14e9 < 23e9 < flux["model-offload"]["device"] < 24.5e9


def test_the_figures_in_the_documents_are_the_calculated_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from benchmarks.diffusion_shapes import need_table

    page = (Path(__file__).parents[2] / "docs" / "renderers-diffusion.md").read_text(encoding="utf-8")
    tables = [need_table(name, 1024 * 1024) for name in ("sdxl", "flux-dev", "flux2-dev", "qwen-edit")]
    for rung in tables[0]:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{rung}`"))
        shown = [f"{table[rung]['device'] / 1e9:.1f} GB" for table in tables]
        assert [cell.strip() for cell in row.split("|")[3:7]] == shown


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.parametrize("rung", ["full", "model-offload", "sequential-offload", "quantized"])
def test_every_rung_draws_on_an_accelerator_within_its_need(model: Model, rung: str) -> None:
    process_pool().release()
    torch.cuda.reset_peak_memory_stats()
    assert draw(renderer(model("sdxl"), memory=rung, device="cuda")).any()
    process_pool().release()
