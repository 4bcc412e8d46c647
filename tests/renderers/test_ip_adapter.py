"""SDXL with pictures of characters, by IP-Adapters of both kinds at toy size, against diffusers' own way."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import save_file
from tiny_diffusion import build

from katha.errors import InputFileError, UsageError
from katha.protocols import FrameRequest
from katha.registry import option_names
from katha.renderers.consistory import ConsistoryRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.placement import Frames, needs_of
from katha.renderers.diffusion.sdxl import PicturedSdxlOptions, SdxlRenderer, strips
from katha.schema import Character

LION = Character(name="lion", kind="lion", appearance="a lion")
MOUSE = Character(name="mouse", kind="mouse", appearance="a mouse")
TREE = Character(name="tree", kind="tree", appearance="a tree")
CROSS, HIDDEN, POOLED = 80, 32, 16


def projection(kind: str) -> dict[str, torch.Tensor]:
    """The part that turns what the image encoder says into tokens: of one vector, or of all its tokens ("plus")."""
    if kind == "plain":
        made = {"proj.weight": torch.randn(4 * CROSS, POOLED), "proj.bias": torch.randn(4 * CROSS)}
        return made | {"norm.weight": torch.ones(CROSS), "norm.bias": torch.zeros(CROSS)}
    inner = 64
    made = {
        "latents": torch.randn(1, 4, inner),
        "norm_out.weight": torch.ones(CROSS),
        "norm_out.bias": torch.zeros(CROSS),
    }
    made |= {"proj_in.weight": torch.randn(inner, HIDDEN) / 6, "proj_in.bias": torch.zeros(inner)}
    made |= {"proj_out.weight": torch.randn(CROSS, inner) / 8, "proj_out.bias": torch.zeros(CROSS)}
    for layer in range(4):
        for norm in ("0.norm1", "0.norm2", "1.0"):
            made |= {
                f"layers.{layer}.{norm}.weight": torch.ones(inner),
                f"layers.{layer}.{norm}.bias": torch.zeros(inner),
            }
        shapes = {"0.to_q": (inner, inner), "0.to_kv": (2 * inner, inner), "0.to_out": (inner, inner)}
        shapes |= {"1.1": (4 * inner, inner), "1.3": (inner, 4 * inner)}
        made |= {f"layers.{layer}.{name}.weight": torch.randn(shape) / 8 for name, shape in shapes.items()}
    return made


def save_adapter(kind: str, model: Path, folder: Path) -> Path:
    """An adapter for the toy model with its image encoder beside it, as they are published."""
    from diffusers import UNet2DConditionModel
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        unet = UNet2DConditionModel.from_pretrained(model / "unet")
        tensors = {f"image_proj.{name}": value for name, value in projection(kind).items()}
        number, channels = 1, unet.config.block_out_channels
        for name in unet.attn_processors:
            if name.endswith("attn1.processor"):
                continue
            at = int(name.split(".")[1]) if not name.startswith("mid") else -1
            size = channels[::-1][at] if name.startswith("up") else channels[at]
            for part in ("k", "v"):
                tensors[f"ip_adapter.{number}.to_{part}_ip.weight"] = torch.randn(size, CROSS) / 3
            number += 2
        folder.mkdir(parents=True)
        save_file({name: value.contiguous() for name, value in tensors.items()}, folder / f"{kind}.safetensors")
        vision = CLIPVisionConfig(
            hidden_size=HIDDEN, intermediate_size=37, projection_dim=POOLED, num_hidden_layers=3, num_attention_heads=4,
            image_size=32, patch_size=8,
        )  # fmt: skip
        CLIPVisionModelWithProjection(vision).save_pretrained(folder / "image_encoder")
    return folder / f"{kind}.safetensors"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A toy model, both adapters, and pictures of two characters."""
    base = tmp_path_factory.mktemp("ip")
    build("sdxl", base / "model")
    for kind in ("plain", "plus"):
        save_adapter(kind, base / "model", base / kind)
    (base / "cast").mkdir()
    Image.radial_gradient("L").resize((48, 40)).convert("RGB").save(base / "cast" / "The_Lion.png")
    Image.linear_gradient("L").resize((40, 48)).convert("RGB").save(base / "cast" / "mouse.jpg")
    yield base
    process_pool().release()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def sdxl(folder: Path, kind: str | None = "plain", **options: Any) -> SdxlRenderer:
    given = {"characters": folder / "cast", "ip_adapter": folder / kind / f"{kind}.safetensors"} if kind else {}
    told = {"steps": 2, "device": "cpu", "any_size": True, **given, **options}
    return SdxlRenderer(str(folder / "model"), PicturedSdxlOptions(**told))


def frame(*who: Character, seed: int = 42) -> FrameRequest:
    return FrameRequest("The lion roars.", seed, 32, 32, scene=1, characters=who)


def pixels(png: bytes) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.int16)


@pytest.mark.parametrize("kind", ["plain", "plus"])
def test_a_frame_is_what_diffusers_draws_from_the_pictures(folder: Path, kind: str) -> None:
    from diffusers import StableDiffusionXLPipeline

    pipe = StableDiffusionXLPipeline.from_pretrained(folder / "model")
    pipe.load_ip_adapter(str(folder / kind), subfolder="", weight_name=f"{kind}.safetensors")
    pipe.set_ip_adapter_scale(0.6)
    pipe.set_progress_bar_config(disable=True)
    shown = [Image.open(folder / "cast" / name).convert("RGB") for name in ("The_Lion.png", "mouse.jpg")]
    generator = torch.Generator().manual_seed(42)
    wanted = pipe(
        prompt="The lion roars.", ip_adapter_image=[shown], generator=generator, width=32, height=32,
        num_inference_steps=2, guidance_scale=5.0,
    ).images[0]  # fmt: skip
    drawn = pixels(next(sdxl(folder, kind, ip_masks="none").render_board([frame(LION, MOUSE)])))
    assert np.abs(drawn - np.asarray(wanted, np.int16)).max() <= 1


@pytest.mark.parametrize("kind", ["plain", "plus"])
def test_each_picture_counts_in_its_own_part_as_with_diffusers_masks(folder: Path, kind: str) -> None:
    from diffusers import StableDiffusionXLPipeline
    from diffusers.image_processor import IPAdapterMaskProcessor

    pipe = StableDiffusionXLPipeline.from_pretrained(folder / "model")
    pipe.load_ip_adapter(str(folder / kind), subfolder="", weight_name=f"{kind}.safetensors")
    pipe.set_ip_adapter_scale(0.6)
    pipe.set_progress_bar_config(disable=True)
    shown = [Image.open(folder / "cast" / name).convert("RGB") for name in ("The_Lion.png", "mouse.jpg")]
    halves = [Image.new("L", (32, 32)) for _ in shown]
    halves[0].paste(255, (0, 0, 16, 32))
    halves[1].paste(255, (16, 0, 32, 32))
    masks = IPAdapterMaskProcessor().preprocess(halves, height=32, width=32)
    wanted = pipe(
        prompt="The lion roars.", ip_adapter_image=[shown], generator=torch.Generator().manual_seed(42), width=32,
        height=32, num_inference_steps=2, guidance_scale=5.0,
        cross_attention_kwargs={"ip_adapter_masks": [masks.reshape(1, 2, 32, 32)]},
    ).images[0]  # fmt: skip
    drawn = pixels(next(sdxl(folder, kind).render_board([frame(LION, MOUSE)])))
    assert np.abs(drawn - np.asarray(wanted, np.int16)).max() <= 1
    unmasked = pixels(next(sdxl(folder, kind, ip_masks="none").render_board([frame(LION, MOUSE)])))
    turned = pixels(next(sdxl(folder, kind).render_board([frame(MOUSE, LION)])))
    assert np.abs(drawn - unmasked).max() > 1
    assert np.abs(drawn - turned).max() > 1


def test_strips_are_in_the_order_of_the_cast_and_cover_the_frame() -> None:
    masks = strips([True, False, True], 9, 2)
    assert masks.shape == (1, 2, 2, 9)
    assert masks[0, :, 0].tolist() == [[1] * 3 + [0] * 6, [0] * 6 + [1] * 3]
    assert strips([True] * 5, 16, 4).sum(1).tolist() == [[[1.0] * 16] * 4]


def test_pictures_change_what_is_drawn_and_text_stays(folder: Path) -> None:
    renderer = sdxl(folder)
    lion, mouse, both, nobody = (
        next(renderer.render_board([frame(*who)])) for who in ((LION,), (MOUSE,), (LION, MOUSE), (TREE,))
    )
    assert len({lion, mouse, both, nobody}) == 4
    other = FrameRequest("A night at sea.", 42, 32, 32, scene=1, characters=(LION,))
    assert next(renderer.render_board([other])) != lion
    assert next(sdxl(folder, ip_scale=0.1).render_board([frame(LION)])) != lion
    plain = next(sdxl(folder, None).render_board([frame(LION)]))
    assert plain not in {lion, mouse, both}
    sheet = replace(frame(LION), pictures=((LION.name, (folder / "cast" / "mouse.jpg").read_bytes()),))
    assert next(renderer.render_board([sheet])) == next(renderer.render_board([frame(MOUSE)])), "the sheet's goes first"
    assert (renderer.capabilities.pictures, sdxl(folder, None).capabilities.pictures) == (True, False)


def test_a_batch_draws_what_single_frames_are(folder: Path) -> None:
    requests = [frame(LION, seed=1), frame(LION, seed=2), frame(LION, MOUSE, seed=3), frame(seed=4)]
    requests += [frame(LION, TREE, seed=5), frame(TREE, LION, seed=6)]
    together = [pixels(png) for png in sdxl(folder, batch=4).render_board(requests)]
    for one, request in zip(together, requests, strict=True):
        assert np.abs(one - pixels(next(sdxl(folder).render_board([request])))).max() <= 1


def test_pictures_are_read_once_and_the_encoder_is_let_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import CLIPVisionModelWithProjection

    process_pool().release()
    loads, load = [], CLIPVisionModelWithProjection.from_pretrained

    def counted(*words: Any, **told: Any) -> Any:
        loads.append(words)
        return load(*words, **told)

    monkeypatch.setattr(CLIPVisionModelWithProjection, "from_pretrained", counted)
    renderer = sdxl(folder)
    list(renderer.render_board([frame(LION, seed=seed) for seed in range(3)]))
    assert len(loads) == 1
    with renderer.pipeline([frame()]) as loaded:
        assert loaded.pipe.image_encoder is None


@pytest.mark.parametrize("kind", ["plain", "plus"])
def test_encoder_and_adapter_are_in_the_estimate(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import CLIPVisionModelWithProjection

    process_pool().release()
    peaks, load = [0], CLIPVisionModelWithProjection.from_pretrained

    def nbytes(part: torch.nn.Module) -> int:
        return sum(weight.nbytes for weight in part.parameters())

    def counted(*words: Any, **told: Any) -> Any:
        peaks.append(nbytes(load(*words, **told)))
        return load(*words, **told)

    monkeypatch.setattr(CLIPVisionModelWithProjection, "from_pretrained", counted)
    renderer = sdxl(folder, kind)
    next(renderer.render_board([frame(LION)]))
    with renderer.pipeline([frame(LION)]) as loaded:
        parts = [part for part in loaded.pipe.components.values() if isinstance(part, torch.nn.Module)]
        weights, adapted = sum(map(nbytes, parts)), nbytes(loaded.pipe.unet)
    added, read = renderer.beside
    need = needs_of(renderer.checkpoint, "float32", Frames(0, tokens=0), denoiser="unet", added=added, read=read)
    assert need["full"].on("cpu") >= weights + max(peaks)
    assert need["full"].on("cpu") <= 1.05 * (weights + max(peaks))
    assert need["full"].host == need["model-offload"].host - need["full"].device >= max(peaks) > 0
    without = needs_of(renderer.checkpoint, "float32", Frames(0, tokens=0), denoiser="unet")
    assert need["full"].device - without["full"].device >= adapted - nbytes(fresh_unet(folder))
    assert need["quantized"].device > without["quantized"].device
    process_pool().release()
    lacking = renderer._check_memory(32 * 32, None, loaded=False)["full"].on("cpu") - 1
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": lacking})())
    with pytest.raises(UsageError, match=r"1 are missing on 'cpu'"):
        next(renderer.render_board([frame(LION)]))


def fresh_unet(folder: Path) -> torch.nn.Module:
    from diffusers import UNet2DConditionModel

    unet: torch.nn.Module = UNet2DConditionModel.from_pretrained(folder / "model" / "unet")
    return unet


def test_the_spec_tells_pictures_weight_and_adapter_apart_and_nothing_else_changes(folder: Path) -> None:
    plain = sdxl(folder, None).spec()
    assert not set(plain) & {"characters", "reference", "ip_adapter", "ip_encoder", "ip_scale"}
    specs = [sdxl(folder).spec(), sdxl(folder, ip_scale=0.2).spec(), sdxl(folder, "plus").spec()]
    specs.append(sdxl(folder, ip_masks="none").spec())
    specs.append(sdxl(folder, characters=None, reference=(f"lion={folder / 'cast' / 'The_Lion.png'}",)).spec())
    assert len({str(spec) for spec in specs}) == 5
    assert str(folder) not in str(specs)


def test_pictures_of_nobody_are_told_and_frames_drawn_together_take_no_adapter(folder: Path) -> None:
    renderer = sdxl(folder)
    list(renderer.render_board([frame(TREE)]))
    assert any("is of a character of this board (tree)" in remark for remark in renderer.remarks())
    assert "ip_adapter" in option_names(SdxlRenderer)
    assert "ip_adapter" not in option_names(ConsistoryRenderer)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ip_adapter": None}, "by an IP-Adapter, and none is named.*hf download h94/IP-Adapter"),
        ({"characters": None}, "changes nothing without pictures"),
        ({"ip_adapter": Path("none.safetensors")}, "There is no IP-Adapter 'none.safetensors'"),
        ({"ip_adapter": "unet"}, "holds no IP-Adapter"),
        ({"ip_masks": "halves"}, "no way of masking 'halves'. Use strips, none"),
        ({"ip_encoder": Path("nowhere")}, "needs its image encoder, which is not in 'nowhere'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(folder: Path, options: dict[str, Any], words: str) -> None:
    if options.get("ip_adapter") == "unet":
        options = {"ip_adapter": folder / "model" / "unet" / "diffusion_pytorch_model.safetensors"}
    with pytest.raises((UsageError, InputFileError), match=words):
        sdxl(folder, **options)


def test_an_adapter_for_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    tensors = load_file(folder / "plain" / "plain.safetensors")
    tensors["ip_adapter.1.to_k_ip.weight"] = torch.randn(7, CROSS)
    del tensors["ip_adapter.3.to_k_ip.weight"]
    save_file(tensors, tmp_path / "other.safetensors")
    encoder = folder / "plain" / "image_encoder"
    process_pool().release()
    with pytest.raises(UsageError, match=r"The IP-Adapter 'other.safetensors' does not fit StableDiffusionXLPipeline"):
        next(sdxl(folder, ip_adapter=tmp_path / "other.safetensors", ip_encoder=encoder).render_board([frame(LION)]))
