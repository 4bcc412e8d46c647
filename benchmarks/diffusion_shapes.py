"""The published shapes of SDXL, FLUX and Qwen-Image-Edit as diffusers and transformers classes, with random weights."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["LARGE", "SHAPES", "Shape", "need_table", "random_pipeline"]


@dataclass(frozen=True)
class Shape:
    """One model: its parts by name, what it is computed in, steps a frame, and embeddings in a prompt's place."""

    dtype: str
    denoiser: str
    steps: int
    pipeline: str
    scheduler: tuple[str, Mapping[str, Any]]
    parts: Callable[[], dict[str, Any]]
    inputs: Callable[[Any], dict[str, Any]]


def _clip(width: int, layers: int, heads: int) -> Any:
    from transformers import CLIPTextConfig

    return CLIPTextConfig(
        hidden_size=width, intermediate_size=4 * width, num_hidden_layers=layers, num_attention_heads=heads,
        projection_dim=width, vocab_size=49408,
    )  # fmt: skip


def _vae(**options: Any) -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(128, 256, 512, 512), layers_per_block=2, norm_num_groups=32, sample_size=1024,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, **options,
    )  # fmt: skip


def _sdxl() -> dict[str, Any]:
    from diffusers import UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTextModelWithProjection

    unet = UNet2DConditionModel(
        sample_size=128, block_out_channels=(320, 640, 1280), layers_per_block=2, cross_attention_dim=2048,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), attention_head_dim=(5, 10, 20),
        transformer_layers_per_block=(1, 2, 10), use_linear_projection=True, addition_embed_type="text_time",
        addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816,
    )  # fmt: skip
    return {
        "vae": _vae(latent_channels=4, scaling_factor=0.13025),
        "text_encoder": CLIPTextModel(_clip(768, 12, 12)),
        "text_encoder_2": CLIPTextModelWithProjection(_clip(1280, 32, 20)),
        "unet": unet,
        "tokenizer": None,
        "tokenizer_2": None,
    }


def _flux() -> dict[str, Any]:
    from diffusers import FluxTransformer2DModel
    from transformers import CLIPTextModel, T5Config, T5EncoderModel

    t5 = T5Config(
        d_model=4096, d_kv=64, d_ff=10240, num_layers=24, num_heads=64, vocab_size=32128, is_encoder_decoder=False,
        feed_forward_proj="gated-gelu",
    )  # fmt: skip
    return {
        "vae": _vae(
            latent_channels=16,
            scaling_factor=0.3611,
            shift_factor=0.1159,
            use_quant_conv=False,
            use_post_quant_conv=False,
        ),
        "text_encoder": CLIPTextModel(_clip(768, 12, 12)),
        "text_encoder_2": T5EncoderModel(t5),
        "transformer": FluxTransformer2DModel(guidance_embeds=True),
        "tokenizer": None,
        "tokenizer_2": None,
    }


def _sdxl_inputs(dtype: Any) -> dict[str, Any]:
    import torch

    shapes = {"prompt_embeds": (1, 77, 2048), "pooled_prompt_embeds": (1, 1280)}
    made = {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}
    return made | {f"negative_{name}": torch.zeros_like(value) for name, value in made.items()}


def _flux_inputs(dtype: Any) -> dict[str, Any]:
    import torch

    shapes = {"prompt_embeds": (1, 512, 4096), "pooled_prompt_embeds": (1, 768)}
    return {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}


SHAPES: Mapping[str, Shape] = {
    "sdxl": Shape(
        "float16", "unet", 50, "StableDiffusionXLPipeline",
        ("EulerDiscreteScheduler", {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}),
        _sdxl, _sdxl_inputs,
    ),
    "flux-dev": Shape(
        "bfloat16", "transformer", 28, "FluxPipeline",
        ("FlowMatchEulerDiscreteScheduler", {"use_dynamic_shifting": True}), _flux, _flux_inputs,
    ),
}  # fmt: skip


def _flux2() -> dict[str, Any]:
    from diffusers import AutoencoderKLFlux2, Flux2Transformer2DModel
    from transformers import Mistral3Config, Mistral3ForConditionalGeneration

    return {
        "vae": AutoencoderKLFlux2(),
        "text_encoder": Mistral3ForConditionalGeneration(Mistral3Config(tie_word_embeddings=False)),
        "transformer": Flux2Transformer2DModel(),
    }


def _qwen_edit() -> dict[str, Any]:
    from diffusers import AutoencoderKLQwenImage, QwenImageTransformer2DModel
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    text = {
        "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
        "num_key_value_heads": 4, "vocab_size": 152064,
    }  # fmt: skip
    config = Qwen2_5_VLConfig(text_config=text, vision_config={"hidden_size": 1280, "out_hidden_size": 3584})
    return {
        "vae": AutoencoderKLQwenImage(),
        "text_encoder": Qwen2_5_VLForConditionalGeneration(config),
        "transformer": QwenImageTransformer2DModel(),
    }


LARGE: Mapping[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "flux2-dev": ("Flux2Pipeline", _flux2),
    "qwen-edit": ("QwenImageEditPlusPipeline", _qwen_edit),
}
"""Models whose needs are calculated and never made: pipeline class and parts, in bfloat16."""


def random_pipeline(name: str, device: str = "cpu") -> Any:
    """The pipeline with small random weights, made in its dtype on `device`."""
    import diffusers
    import torch

    shape, before = SHAPES[name], torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, shape.dtype))
    try:
        with torch.device(device):
            parts = shape.parts()
    finally:
        torch.set_default_dtype(before)
    kind, options = shape.scheduler
    return getattr(diffusers, shape.pipeline)(**parts, scheduler=getattr(diffusers, kind)(**options))


def need_table(name: str, pixels: int) -> dict[str, dict[str, int]]:
    """Bytes on device and host for every rung, from headers of weight files that hold no weights."""
    import torch

    from katha.renderers.diffusion.checkpoint import Checkpoint
    from katha.renderers.diffusion.placement import Frames, needs_of

    shape = SHAPES.get(name)
    dtype = shape.dtype if shape else "bfloat16"
    pipeline, make = (shape.pipeline, shape.parts) if shape else LARGE[name]
    with torch.device("meta"):
        parts = {key: part for key, part in make().items() if isinstance(part, torch.nn.Module)}
    with tempfile.TemporaryDirectory() as folder:
        for key, part in parts.items():
            _write_header(Path(folder) / key, part)
        checkpoint = Checkpoint(name, Path(folder), None, "", pipeline, dict.fromkeys(parts, ""), None)
        denoiser = shape.denoiser if shape else "transformer"
        needs = needs_of(checkpoint, dtype, Frames(pixels), denoiser=denoiser)
    return {rung: {"device": need.device, "host": need.host} for rung, need in needs.items()}


def _write_header(folder: Path, part: Any) -> None:
    """A safetensors file of the part's names and shapes; its data are a hole in the file."""
    folder.mkdir()
    rows, end = {}, 0
    for key, value in part.named_parameters():
        size = 2 * value.numel()
        rows[key] = {"dtype": "BF16", "shape": list(value.shape), "data_offsets": [end, end + size]}
        end += size
    header = json.dumps(rows).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + end)
    config = dict(part.config) if hasattr(part, "register_to_config") else {}
    (folder / "config.json").write_text(json.dumps(config, default=str))
