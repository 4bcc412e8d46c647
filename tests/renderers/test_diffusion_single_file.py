"""Single files as they are shared for other programs (a whole SDXL, a transformer of FLUX.1, FLUX.2 or Qwen-Image), and
checkpoints whose weights are packed into fewer bits."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file, save_file
from single_files import save_gguf, save_original, save_single_file
from tiny_diffusion import save_lora

from katha.errors import InputFileError, MissingExtraError, UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion.flux import FluxRenderer
from katha.renderers.diffusion.kontext import KontextRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.placement import Frames, Parking, needs_of
from katha.renderers.diffusion.sdxl import SdxlRenderer

Model = Callable[[str], Path]
PREFIX = "model.diffusion_model."


pytestmark = pytest.mark.usefixtures("toy_diffusion")


def renderer(kind: type[Any], given: Path, **options: Any) -> Any:
    return kind(str(given), kind.options_class(**{"steps": 1, "device": "cpu", "any_size": True, **options}))


def frame(**fields: Any) -> FrameRequest:
    return FrameRequest("The lion roars.", 42, **{"width": 32, "height": 32, "scene": 1, **fields})


def draw(drawer: Any) -> NDArray[np.int16]:
    """A scene and a bridge beside it, one under the other."""
    scene = next(iter(drawer.render_board([frame()])))
    bridge = drawer.insert_frame(frame(scene=None, kind="bridge"), BoardContext((frame(),), (scene,), 1))
    return np.concatenate([pixels(scene), pixels(bridge)])


def pixels(png: bytes) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.int16)


def nearly(one: NDArray[np.int16], other: NDArray[np.int16]) -> bool:
    """Equal to one step of 255: the same weights at other addresses may take other vector instructions."""
    return bool(np.abs(one - other).max() <= 1)


def plain(folder: Path) -> Any:
    from diffusers import DiffusionPipeline

    return DiffusionPipeline.from_pretrained(folder)


def test_a_whole_sdxl_file_draws_what_its_folder_draws(model: Model, tmp_path: Path) -> None:
    file = save_single_file(plain(model("sdxl")), tmp_path / "model.safetensors")
    drawer = renderer(SdxlRenderer, file, base=str(model("sdxl")))
    assert nearly(draw(drawer), draw(renderer(SdxlRenderer, model("sdxl"))))
    assert drawer.spec()["revision"] != renderer(SdxlRenderer, model("sdxl")).spec()["revision"]


def test_a_whole_file_that_lacks_weights_is_refused(model: Model, tmp_path: Path) -> None:
    file = save_single_file(plain(model("sdxl")), tmp_path / "model.safetensors")
    save_file({name: value for name, value in load_file(file).items() if "text_projection" not in name}, file)
    with pytest.raises(InputFileError, match="lacks weights of the text_encoder_2"):
        draw(renderer(SdxlRenderer, file, base=str(model("sdxl"))))


@pytest.mark.parametrize(
    ("kind", "family", "prefix"),
    [
        (FluxRenderer, "flux2-dev", ""), (FluxRenderer, "flux2-dev", PREFIX), (FluxRenderer, "klein", PREFIX),
        (KontextRenderer, "flux2-dev", ""), (KontextRenderer, "qwen-edit", ""), (KontextRenderer, "qwen-edit", PREFIX),
    ],
)  # fmt: skip
def test_a_transformer_draws_what_its_folder_draws(
    model: Model, tmp_path: Path, kind: type[Any], family: str, prefix: str
) -> None:
    """The base may lack the transformer's weights, as it does where only the file was downloaded."""
    base = Path(shutil.copytree(model(family), tmp_path / "base"))
    file = save_original(plain(model(family)).transformer, tmp_path / "model.safetensors", prefix=prefix)
    if prefix:  # a whole checkpoint of another program: what is not the transformer's comes from the base
        save_file({**load_file(file), "first_stage_model.decoder.conv_in.weight": torch.zeros(2)}, file)
    next((base / "transformer").glob("*.safetensors")).unlink()
    assert nearly(draw(renderer(kind, file, base=str(base))), draw(renderer(kind, model(family))))


@pytest.mark.timeout(900)
def test_a_flux_1_transformer_of_eight_bit_floats_is_read_at_its_published_width(model: Model, tmp_path: Path) -> None:
    """diffusers divides FLUX.1's fused layers at 3072, so this is the real width with one block of each kind."""
    from diffusers import FluxTransformer2DModel

    base, wide = Path(shutil.copytree(model("flux"), tmp_path / "base")), tmp_path / "wide.safetensors"
    config = json.loads((base / "transformer" / "config.json").read_text())
    config |= {"num_attention_heads": 24, "attention_head_dim": 128, "axes_dims_rope": [16, 56, 56]}
    shutil.rmtree(base / "transformer")
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        transformer = FluxTransformer2DModel.from_config(config).to(torch.float8_e4m3fn)
    transformer.to_empty(device="cpu")
    transformer.save_config(base / "transformer")
    noise = torch.Generator().manual_seed(0)
    for value in transformer.parameters():
        part = torch.randn(min(value.numel(), 65_537), generator=noise) * (value.shape[-1] ** -0.5)
        value.data = part.to(value.dtype).repeat(-(-value.numel() // part.numel()))[: value.numel()].view(value.shape)
    save_original(transformer, wide)
    options = {"dtype": "bfloat16", "prompt_tokens": 16}
    try:
        read = pixels(next(iter(renderer(FluxRenderer, wide, base=str(base), **options).render_board([frame()]))))
        process_pool().release()
        transformer.to(torch.bfloat16).save_pretrained(base / "transformer")
        whole = pixels(next(iter(renderer(FluxRenderer, base, **options).render_board([frame()]))))
        assert whole.std() > 1
        assert nearly(read, whole)
    finally:  # half a gigabyte and a whole one, which pytest would keep
        process_pool().release()
        wide.unlink()
        shutil.rmtree(base)


def test_a_flux_1_transformer_of_another_width_is_refused(model: Model, tmp_path: Path) -> None:
    file = save_original(plain(model("flux")).transformer, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=r"holds a FLUX\.1 transformer 32 wide; diffusers reads .* at a width of 3072"):
        renderer(FluxRenderer, file, base=str(model("flux")))


@pytest.mark.parametrize(
    ("file_of", "kind", "base", "message"),
    [
        ("flux", FluxRenderer, "schnell", "the file has a guidance embedding, the base has none"),
        ("schnell", FluxRenderer, "flux", "the base has a guidance embedding, the file has none"),
        ("flux", FluxRenderer, "flux2-dev", "holds a FLUX.1 transformer, and the base .* has a Flux2Transformer"),
        ("flux2-dev", FluxRenderer, "flux", "holds a FLUX.2 transformer, and the base .* has a FluxTransformer2DModel"),
        ("klein", FluxRenderer, "flux2-dev", "the base has a guidance embedding"),
        ("qwen-edit", KontextRenderer, "kontext", "holds a Qwen-Image transformer, and the base"),
        ("qwen-edit", FluxRenderer, "flux", "holds a Qwen-Image transformer, which 'flux' cannot draw with"),
        ("flux2-dev", SdxlRenderer, "sdxl", "holds a FLUX.2 transformer, which 'sdxl' cannot draw with"),
    ],
)
def test_a_transformer_of_another_model_than_its_base_is_refused(
    model: Model, tmp_path: Path, file_of: str, kind: type[Any], base: str, message: str
) -> None:
    file = save_original(plain(model(file_of)).transformer, tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=message):
        renderer(kind, file, base=str(model(base)))


@pytest.mark.parametrize(
    "change",
    [lambda names: [name for name in names if name != "img_in.weight"], lambda names: [*names, "double_blocks.1.x"]],
    ids=["few", "many"],
)
def test_a_transformer_with_too_few_or_too_many_weights_is_refused(
    model: Model, tmp_path: Path, change: Callable[[list[str]], list[str]]
) -> None:
    file = save_original(plain(model("klein")).transformer, tmp_path / "model.safetensors")
    tensors = load_file(file)
    save_file({name: tensors.get(name, torch.zeros(3)) for name in change(list(tensors))}, file)
    with pytest.raises(InputFileError, match=r"holds [\d,]+ numbers; the transformer of its base has [\d,]+\. Give"):
        draw(renderer(FluxRenderer, file, base=str(model("klein"))))


@pytest.mark.parametrize(
    "packed", ["double_blocks.0.img_attn.qkv.scale_weight", "scaled_fp8", "double_blocks.0.img_mlp.0.weight.absmax"]
)
def test_a_file_packed_for_another_program_is_refused(model: Model, tmp_path: Path, packed: str) -> None:
    file = save_original(plain(model("flux2-dev")).transformer, tmp_path / "model.safetensors")
    save_file({**load_file(file), packed: torch.ones(1)}, file)
    with pytest.raises(UsageError, match=f"is packed for another program: it holds '{packed}'"):
        renderer(FluxRenderer, file, base=str(model("flux2-dev")))


@pytest.mark.parametrize(
    ("kind", "family", "options"),
    [
        (FluxRenderer, "klein", {}), (FluxRenderer, "flux2-dev", {"memory": "model-offload"}),
        (KontextRenderer, "qwen-edit", {}),
    ],
)  # fmt: skip
def test_a_gguf_file_draws_what_its_weights_draw(
    model: Model, tmp_path: Path, kind: type[Any], family: str, options: dict[str, Any]
) -> None:
    """Held against a folder of the same numbers as floats; the weights stay packed in memory."""
    whole = plain(Path(shutil.copytree(model(family), tmp_path / "whole")))
    file = save_gguf(whole.transformer, tmp_path / "model.gguf")
    whole.transformer.save_pretrained(tmp_path / "whole" / "transformer")
    drawer = renderer(kind, file, base=str(model(family)), **options)
    assert nearly(draw(drawer), draw(renderer(kind, tmp_path / "whole", **options)))
    with drawer.pipeline([frame()]) as loaded:
        layers = [type(layer).__name__ for layer in loaded.pipe.transformer.modules()]
    assert layers.count("GGUFLinear") > 10
    assert drawer.spec()["packing"] == {"transformer": "gguf"}
    assert "gguf" in drawer.spec()["versions"]


def test_an_adapter_fits_on_a_gguf_file(model: Model, tmp_path: Path) -> None:
    whole = plain(Path(shutil.copytree(model("flux2-dev"), tmp_path / "whole")))
    file = save_gguf(whole.transformer, tmp_path / "model.gguf")
    whole.transformer.save_pretrained(tmp_path / "whole" / "transformer")
    given = {"lora": (f"{save_lora(whole, 'transformer', tmp_path / 'lora.safetensors', targets=['to_q'])}@1",)}
    adapted = draw(renderer(FluxRenderer, file, base=str(model("flux2-dev")), **given))
    assert nearly(adapted, draw(renderer(FluxRenderer, tmp_path / "whole", **given)))
    assert not nearly(adapted, draw(renderer(FluxRenderer, tmp_path / "whole")))


def test_a_gguf_file_that_cannot_be_read_says_why(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, file = str(model("flux2-dev")), save_gguf(plain(model("flux2-dev")).transformer, tmp_path / "model.gguf")
    with pytest.raises(UsageError, match=r"packed by 'gguf': it is kept small already.*full or model-offload"):
        renderer(FluxRenderer, file, base=base, memory="quantized")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(InputFileError, match="not a whole GGUF file"):
        renderer(FluxRenderer, cut, base=base)
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingExtraError, match=r"needs gguf.*pip install .*\[packed\]"):
        renderer(FluxRenderer, file, base=base)


def packed_folder(model: Model, place: Path, config: Any) -> Path:
    """A FLUX.1 whose transformer diffusers has packed and written."""
    from diffusers import FluxTransformer2DModel

    folder = Path(shutil.copytree(model("flux"), place / "packed"))
    packed = FluxTransformer2DModel.from_pretrained(
        model("flux") / "transformer", quantization_config=config, dtype=torch.bfloat16
    )
    shutil.rmtree(folder / "transformer")
    packed.save_pretrained(folder / "transformer")
    return folder


@pytest.mark.parametrize(
    ("name", "memory"), [("Int8WeightOnlyConfig", "model-offload"), ("Float8WeightOnlyConfig", "full")]
)
def test_a_folder_packed_by_torchao_draws(model: Model, tmp_path: Path, name: str, memory: Any) -> None:
    """As the folder of floats does, but for what 8 bits lose; and each time the same."""
    pytest.importorskip("torchao")
    import torchao.quantization
    from diffusers import TorchAoConfig

    folder = packed_folder(model, tmp_path, TorchAoConfig(getattr(torchao.quantization, name)()))
    drawer = renderer(FluxRenderer, folder, memory=memory)
    found = draw(drawer)
    assert drawer.spec()["packing"] == {"transformer": "torchao"}
    assert drawer.spec()["dtype"] == "bfloat16"
    with drawer.pipeline([frame()]) as loaded:
        assert "8Tensor" in type(loaded.pipe.transformer.proj_out.weight).__name__
    away = np.abs(found - draw(renderer(FluxRenderer, model("flux"), dtype="bfloat16"))).mean()
    assert 0 < away < 8
    process_pool().release()
    assert (draw(drawer) == found).all()


def test_packed_weights_leave_the_device_when_another_model_needs_it() -> None:
    pytest.importorskip("torchao")
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    class Pipe:
        """Two packed components."""

        def __init__(self) -> None:
            self.components = {
                name: torch.nn.Sequential(torch.nn.Linear(32, 32, bias=False))
                for name in ("text_encoder", "transformer")
            }
            for part in self.components.values():
                quantize_(part, Int8WeightOnlyConfig())

        def to(self, *where: object, **told: object) -> None:
            """It is on the host already."""

    pipe = Pipe()

    def held(name: str) -> set[str]:
        weight = pipe.components[name][0].weight
        return {getattr(weight, part).device.type for part in weight.__tensor_flatten__()[0]}

    before = pipe.components["text_encoder"][0].weight.dequantize().clone()
    parking = Parking(pipe, "meta", ("transformer", "vae"))
    parking.bring("text_encoder")
    assert held("text_encoder") == {"meta"}
    parking.bring("transformer")
    assert held("text_encoder") == {"cpu"}
    assert held("transformer") == {"meta"}
    assert torch.equal(pipe.components["text_encoder"][0].weight.dequantize(), before)


def test_packed_weights_that_are_not_read_here_say_why(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(model("flux"), tmp_path / "packed"))
    path = folder / "transformer" / "config.json"

    def packed_by(method: str, **options: Any) -> Any:
        path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": {"quant_method": method}}))
        return renderer(FluxRenderer, folder, **options)

    with pytest.raises(UsageError, match=r"packed by 'quanto', which is not read here.*gguf, torchao"):
        packed_by("quanto")
    with pytest.raises(UsageError, match=r"packed by bitsandbytes, which diffusers reads on cuda only, not on 'cpu'"):
        packed_by("bitsandbytes")
    with pytest.raises(UsageError, match=r"packed by 'bitsandbytes': it is kept small already.*--memory full"):
        packed_by("bitsandbytes", memory="model-offload", device="cuda")
    looked_for = "katha.renderers.diffusion.checkpoint.find_spec"
    monkeypatch.setattr(looked_for, lambda name: None)
    with pytest.raises(MissingExtraError, match=r"that needs torchao.*pip install .*\[packed\]"):
        packed_by("torchao")


def test_packed_weights_need_what_their_files_hold(model: Model, tmp_path: Path) -> None:
    pipe = plain(model("flux2-dev"))
    floats = save_original(pipe.transformer, tmp_path / "model.safetensors")
    file = save_gguf(pipe.transformer, tmp_path / "model.gguf")
    needs = [
        needs_of(renderer(FluxRenderer, one, base=str(model("flux2-dev"))).checkpoint, "float32", Frames(32 * 32))
        for one in (floats, file)
    ]
    saved = floats.stat().st_size - file.stat().st_size
    assert saved > 0.5 * floats.stat().st_size
    assert 0.8 * saved < needs[0]["full"].device - needs[1]["full"].device < 1.1 * saved
    assert set(needs[1]) == {"full", "model-offload"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
def test_a_folder_packed_by_bitsandbytes_draws(model: Model, tmp_path: Path) -> None:
    from diffusers import BitsAndBytesConfig

    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
    drawer = renderer(FluxRenderer, packed_folder(model, tmp_path, config), device="cuda")
    found = draw(drawer)
    assert drawer.spec()["packing"] == {"transformer": "bitsandbytes"}
    assert np.abs(found - draw(renderer(FluxRenderer, model("flux"), device="cuda"))).mean() < 16
