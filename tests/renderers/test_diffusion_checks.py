"""Bad input and bad surroundings of the diffusion renderers: refused before anything is drawn, with what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_diffusion import build

from katha.errors import BlankFrameError, InputFileError, KathaError, MissingExtraError, RenderError, UsageError
from katha.protocols import FrameRequest
from katha.renderers.diffusion.flux import FluxRenderer
from katha.renderers.diffusion.kontext import KontextRenderer
from katha.renderers.diffusion.memory import hold_device, process_pool
from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer

Model = Callable[[str], Path]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    folder = tmp_path_factory.mktemp("models")
    yield lambda family: folder / family if (folder / family).exists() else build(family, folder / family)
    process_pool().release()


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def copy(model: Model, tmp_path: Path) -> Callable[[str], Path]:
    return lambda family: Path(shutil.copytree(model(family), tmp_path / f"copy-{family}"))


def sdxl(folder: Path, **options: Any) -> SdxlRenderer:
    return SdxlRenderer(str(folder), SdxlOptions(**{"steps": 1, "device": "cpu", **options}))


def frame(prompt: str = "The lion roars.", **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, 42, **{"width": 32, "height": 32, "scene": 1, **fields})


def draw(renderer: Any, **fields: Any) -> bytes:
    return next(iter(renderer.render_board([frame(**fields)])))


def test_listing_renderers_imports_neither_torch_nor_diffusers() -> None:
    code = (
        "import sys; from katha.app.cli.main import main\n"
        "sys.argv = ['katha', 'renderers']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert not {'torch', 'diffusers', 'transformers', 'peft', 'accelerate'} & set(sys.modules), 'heavy'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("sdxl", "flux", "kontext"):
        assert name in done.stdout


def test_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from katha.models import checkpoints

    monkeypatch.setattr(checkpoints, "find_spec", lambda name: None if name in ("diffusers", "peft") else object())
    with pytest.raises(MissingExtraError, match=r"'sdxl' needs diffusers, peft\. .*pip install .*\[local\]"):
        SdxlRenderer("anything")


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (
            SdxlRenderer,
            r'stabilityai/stable-diffusion-xl-base-1.0 --include "\*.json" --include "\*.txt" '
            r'--include "\*.fp16.safetensors"',
        ),
        (FluxRenderer, "black-forest-labs/FLUX.1-dev"),
        (KontextRenderer, "black-forest-labs/FLUX.1-Kontext-dev"),
    ],
)
def test_weights_that_are_not_here_name_the_command_that_fetches_them(kind: Any, wanted: str) -> None:
    with pytest.raises(UsageError, match=f"not on this machine.*hf download {wanted}`"):
        kind()
    with pytest.raises(UsageError, match=r"hf download someone/something --revision v2`"):
        kind("someone/something", kind.options_class(revision="v2"))
    with pytest.raises(UsageError, match=r'something --include .* --include "\*.fp16.safetensors"` where'):
        kind("someone/something", kind.options_class(variant="fp16"))


def test_the_16_bit_files_are_proposed_with_the_option_that_reads_them() -> None:
    with pytest.raises(UsageError, match=r"there is a network and give --renderer-option variant=fp16, or give its"):
        SdxlRenderer()
    with pytest.raises(UsageError, match="there is a network, or give its folder"):
        SdxlRenderer(None, SdxlOptions(variant="fp16"))


def test_a_lost_network_is_told_and_what_is_there_is_kept() -> None:
    with pytest.raises(UsageError, match=r"cannot be fetched: .*hf download someone/something`: what is there"):
        SdxlRenderer("someone/something", SdxlOptions(download=True))


def test_the_variant_that_is_asked_for_is_the_one_that_is_fetched(
    copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from diffusers import StableDiffusionXLPipeline

    asked: list[dict[str, Any]] = []

    def download(name: str, **arguments: Any) -> Path:
        asked.append({"name": name, **arguments})
        return copy("sdxl")

    monkeypatch.setattr(StableDiffusionXLPipeline, "download", download)
    with pytest.raises(InputFileError, match="holds no weights of the variant 'fp16'"):
        sdxl(Path("someone/lions"), variant="fp16", revision="v2", download=True)
    assert asked == [{"name": "someone/lions", "revision": "v2", "variant": "fp16", "use_safetensors": True}]


def test_a_checkpoint_in_the_cache_of_the_hub_is_found_by_its_name(model: Model, tmp_path: Path) -> None:
    commit = "a" * 40
    home = tmp_path / "hub" / "models--someone--lions"
    shutil.copytree(model("sdxl"), home / "snapshots" / commit)
    for ref in ("main", "v2"):
        (home / "refs").mkdir(exist_ok=True)
        (home / "refs" / ref).write_text(commit)
    for options in ({}, {"revision": "v2"}, {"revision": commit}):
        renderer = sdxl(Path("someone/lions"), **options)
        assert renderer.spec()["revision"] == commit
    assert draw(renderer) == draw(sdxl(model("sdxl")))


def test_the_wrong_family_is_named(model: Model) -> None:
    with pytest.raises(UsageError, match="is a FluxPipeline, and 'sdxl' draws with StableDiffusionXLPipeline"):
        sdxl(model("flux"))
    with pytest.raises(UsageError, match="is a StableDiffusionXLPipeline, and 'flux' draws with FluxPipeline"):
        FluxRenderer(str(model("sdxl")))
    with pytest.raises(UsageError, match="is a FluxPipeline, and 'kontext' draws with"):
        KontextRenderer(str(model("flux")))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ("cond_stage_model.transformer.x", "a Stable Diffusion 1 or 2 checkpoint"),
        ("conditioner.embedders.0.model.x", "the SDXL refiner"),
        ("double_blocks.0.img_attn.x", "a FLUX.1 transformer"),
        ("model.diffusion_model.double_blocks.0.img_attn.x", "a FLUX.1 transformer"),
        ("lora_unet_x.lora_down.weight", "a LoRA"),
        ("unet.down_blocks.0.lora_A.weight", "a LoRA"),
        ("transformer.transformer_blocks.0.attn.to_q.lora_A.weight", "a LoRA"),
        ("something.else", "no checkpoint that is known here"),
    ],
)
def test_a_single_file_of_another_kind_is_named(tmp_path: Path, tensor: str, message: str) -> None:
    save_file({tensor: torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=f"holds {message}, which 'sdxl' cannot draw with"):
        sdxl(tmp_path / "model.safetensors")


def test_a_single_file_needs_its_configuration(tmp_path: Path) -> None:
    save_file({"conditioner.embedders.1.model.x": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=r"needs the configuration of 'stabilityai/.*base=FOLDER"):
        sdxl(tmp_path / "model.safetensors")
    (tmp_path / "model.ckpt").write_bytes(b"pickle")
    with pytest.raises(InputFileError, match=r"no \.safetensors or \.gguf file"):
        sdxl(tmp_path / "model.ckpt")


def test_paths_that_are_no_checkpoint_are_refused(model: Model, tmp_path: Path) -> None:
    for name in ("./missing", "/nowhere/at/all", "a/b/c"):
        with pytest.raises(InputFileError, match="There is no checkpoint"):
            SdxlRenderer(name)
    with pytest.raises(InputFileError, match=r"holds no model_index\.json"):
        sdxl(tmp_path)
    with pytest.raises(UsageError, match="A folder has no revision"):
        sdxl(model("sdxl"), revision="main")
    with pytest.raises(InputFileError, match="holds no weights of the variant 'fp16'"):
        sdxl(model("sdxl"), variant="fp16")


def test_a_variant_is_read_when_asked_for(copy: Callable[[str], Path]) -> None:
    from diffusers import StableDiffusionXLPipeline

    folder = copy("sdxl")
    pipe = StableDiffusionXLPipeline.from_pretrained(folder)
    with torch.no_grad():
        pipe.unet.conv_out.bias.add_(0.5)
    pipe.save_pretrained(folder, variant="fp16")
    assert draw(sdxl(folder)) != draw(sdxl(folder, variant="fp16"))


def damage_lose_folder(folder: Path) -> None:
    shutil.rmtree(folder / "vae")


def damage_cut(folder: Path) -> None:
    file = folder / "unet" / "diffusion_pytorch_model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def damage_garble(folder: Path) -> None:
    (folder / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"\xff" * 64)


def damage_lose_tensor(folder: Path) -> None:
    file = folder / "unet" / "diffusion_pytorch_model.safetensors"
    tensors = load_file(file)
    tensors.pop("conv_in.weight")
    save_file(tensors, file, metadata={"format": "pt"})


def damage_lose_text_tensor(folder: Path) -> None:
    file = next((folder / "text_encoder").glob("*.safetensors"))
    tensors = load_file(file)
    tensors.pop(next(name for name in tensors if name.endswith("final_layer_norm.weight")))
    save_file(tensors, file, metadata={"format": "pt"})


def damage_reshape(folder: Path) -> None:
    file = folder / "vae" / "diffusion_pytorch_model.safetensors"
    tensors = load_file(file)
    tensors["decoder.conv_in.weight"] = torch.zeros(3, 3, 3, 3)
    save_file(tensors, file, metadata={"format": "pt"})


def damage_lose_tokenizer(folder: Path) -> None:
    for file in (folder / "tokenizer").iterdir():
        file.unlink()


def damage_index(folder: Path) -> None:
    (folder / "model_index.json").write_text("{}")


def damage_offsets(folder: Path) -> None:
    rows = json.dumps({"conv_in.weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, "4 bytes"]}}).encode()
    file = folder / "unet" / "diffusion_pytorch_model.safetensors"
    file.write_bytes(len(rows).to_bytes(8, "little") + rows + bytes(4))


def damage_pipe(folder: Path) -> None:
    file = folder / "unet" / "diffusion_pytorch_model.safetensors"
    file.unlink()
    os.mkfifo(file)


def damage_tokenizer(folder: Path) -> None:
    for file in (folder / "tokenizer").glob("*.json"):
        file.write_text('{"cut": ')


def damage_config(**values: Any) -> Callable[[Path], None]:
    """Values in the configuration of the denoiser that no such model has."""

    def damage(folder: Path) -> None:
        path = folder / "unet" / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_lose_folder, "lacks its 'vae'"),
        (damage_cut, "is cut off"),
        (damage_garble, "not a whole safetensors file"),
        (damage_lose_tensor, "unet, lacks 1 weights, the first 'conv_in.weight'"),
        (damage_lose_text_tensor, "text_encoder, lacks 1 weights"),
        (damage_reshape, "cannot be loaded"),
        (damage_lose_tokenizer, "lacks its 'tokenizer'"),
        (damage_index, "names no pipeline"),
        (damage_offsets, "not a whole safetensors file"),
        (damage_pipe, "not a regular file"),
        (damage_tokenizer, "cannot be loaded"),
        (damage_config(sample_size="large"), "holds what cannot be"),
        (damage_config(block_out_channels=7), "holds what cannot be"),
        (damage_config(layers_per_block=None), "holds what cannot be"),
        (damage_config(cross_attention_dim="wide"), "cannot be loaded"),
    ],
)
def test_a_damaged_checkpoint_is_never_drawn_with(
    copy: Callable[[str], Path], damage: Callable[[Path], None], message: str
) -> None:
    folder = copy("sdxl")
    damage(folder)
    with pytest.raises(InputFileError, match=message):
        draw(sdxl(folder))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps is at least 1"),
        ({"batch": 0}, "batch is at least 1"),
        ({"memory": "tiny"}, "no memory rung 'tiny'. Use full, model-offload"),
        ({"dtype": "float128"}, "no dtype 'float128'. Use float32"),
        ({"scheduler": "magic"}, "no scheduler 'magic'. Known: ddim"),
        ({"device": "toaster"}, "'toaster'"),
        ({"device": "meta"}, "cannot be put on 'meta'"),
        ({"device": "cuda:x"}, "cannot be put on 'cuda:x'"),
    ],
)
def test_an_option_that_cannot_be_is_refused(model: Model, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        draw(sdxl(model("sdxl"), **options))


def test_a_damaged_tokenizer_is_told_where_prompts_are_counted(copy: Callable[[str], Path]) -> None:
    folder = copy("sdxl")
    damage_tokenizer(folder)
    with pytest.raises(InputFileError, match=r"tokenizer, cannot be read.*Download the whole checkpoint again"):
        draw(sdxl(folder, long_prompts="refuse"))


def test_a_device_that_is_not_there_is_told_before_anything_is_read(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine with two accelerators, where torch's own errors are an AssertionError and others."""

    def unknown(*_: object) -> None:
        raise AssertionError("Invalid device id")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name in ("get_device_properties", "mem_get_info", "memory_reserved"):
        monkeypatch.setattr(torch.cuda, name, unknown)
    monkeypatch.setattr("katha.renderers.diffusion.renderer.load_pipeline", unknown)
    with pytest.raises(UsageError, match=r"cannot be put on 'cuda:9'.*Choose one of cpu, cuda:0, cuda:1"):
        draw(sdxl(model("sdxl"), device="cuda:9"))


@pytest.mark.parametrize(
    ("width", "height", "message"),
    [
        (30, 32, "multiples of 8"),
        (8, 8, "trained for about 1,024 pixels. Choose 205 to 2,355 pixels, or give any_size=true"),
        (64, 64, "trained for about 1,024 pixels"),
        (8, 72, "more than 4 times the other"),
    ],
)
def test_a_size_that_the_model_cannot_draw_is_refused(model: Model, width: int, height: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        draw(sdxl(model("sdxl")), width=width, height=height)


def test_any_size_draws_what_the_model_was_not_trained_for(model: Model) -> None:
    from katha.pictures import png_size

    assert png_size(draw(sdxl(model("sdxl"), any_size=True), width=72, height=8)) == (72, 8)
    assert sdxl(model("sdxl")).capabilities.default_size == (32, 32)


@pytest.mark.parametrize("broken", ["nan", "infinite", "black"])
def test_a_broken_frame_is_a_typed_failure(model: Model, broken: str) -> None:
    renderer = sdxl(model("sdxl"))
    with renderer.pipeline([frame()]) as loaded, torch.no_grad():
        bias = loaded.pipe.vae.decoder.conv_out.bias
        kept = bias.clone()
        bias.fill_({"nan": float("nan"), "infinite": float("inf"), "black": -1e6}[broken])
    try:
        with pytest.raises(
            BlankFrameError, match=f"scene 1 with seed 42 as {'NaN' if broken == 'nan' else 'one colour'}"
        ):
            draw(renderer)
    finally:
        with torch.no_grad():
            bias.copy_(kept)
    assert draw(renderer)


def test_a_device_that_runs_out_of_memory_says_what_to_do(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = sdxl(model("sdxl"))

    def full(*args: object, **kwargs: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with renderer.pipeline([frame()]) as loaded:
        monkeypatch.setattr(loaded.pipe.unet, "forward", full)
    with pytest.raises(RenderError, match=r"out of memory on the rung 'full'\. Give a lower --memory rung"):
        draw(renderer)
    process_pool().release()


def test_two_runs_on_one_device_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    other = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from katha.renderers.diffusion.memory import hold_device\n"
        "with hold_device('xpu:0'): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", other, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match="Another katha run draws on 'xpu:0'"), hold_device("xpu:0"):
            pass
        with hold_device("xpu:1"), hold_device("cpu"):
            pass
        process.stdin.close()
        process.wait()
    with hold_device("xpu:0"):
        pass


def test_errors_are_one_sentence_for_a_user(model: Model) -> None:
    with pytest.raises(KathaError) as caught:
        sdxl(model("flux"))
    assert "\n" not in str(caught.value)
    assert json.dumps(sdxl(model("sdxl")).spec())
