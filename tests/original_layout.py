"""Transformers as one file in their publishers' layout (the inverse of diffusers' readers)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

__all__ = ["save_original"]

Tensors = Mapping[str, torch.Tensor]
_TOP = {
    "x_embedder": "img_in", "context_embedder": "txt_in", "proj_out": "final_layer.linear",
    "norm_out.linear": "final_layer.adaLN_modulation.1",
}  # fmt: skip
_TIMES = {"linear_1": "in_layer", "linear_2": "out_layer"}
_ATTENTION = {
    "attn.norm_q": "img_attn.norm.query_norm", "attn.norm_k": "img_attn.norm.key_norm",
    "attn.norm_added_q": "txt_attn.norm.query_norm", "attn.norm_added_k": "txt_attn.norm.key_norm",
    "attn.to_out.0": "img_attn.proj", "attn.to_add_out": "txt_attn.proj",
}  # fmt: skip
_FLUX1_TOP = {
    **_TOP,
    **{f"time_text_embed.timestep_embedder.{one}": f"time_in.{other}" for one, other in _TIMES.items()},
    **{f"time_text_embed.text_embedder.{one}": f"vector_in.{other}" for one, other in _TIMES.items()},
    **{f"time_text_embed.guidance_embedder.{one}": f"guidance_in.{other}" for one, other in _TIMES.items()},
}
_FLUX1_DOUBLE = {
    **_ATTENTION, "norm1.linear": "img_mod.lin", "norm1_context.linear": "txt_mod.lin",
    "ff.net.0.proj": "img_mlp.0", "ff.net.2": "img_mlp.2", "ff_context.net.0.proj": "txt_mlp.0",
    "ff_context.net.2": "txt_mlp.2",
}  # fmt: skip
_FLUX1_SINGLE = {
    "norm.linear": "modulation.lin", "attn.norm_q": "norm.query_norm", "attn.norm_k": "norm.key_norm",
    "proj_out": "linear2",
}  # fmt: skip
_FLUX2_TOP = {
    **_TOP,
    **{f"time_guidance_embed.timestep_embedder.{one}": f"time_in.{other}" for one, other in _TIMES.items()},
    **{f"time_guidance_embed.guidance_embedder.{one}": f"guidance_in.{other}" for one, other in _TIMES.items()},
    **{
        f"{name}.linear": f"{name}.lin"
        for name in ("double_stream_modulation_img", "double_stream_modulation_txt", "single_stream_modulation")
    },
}
_FLUX2_DOUBLE = {
    **_ATTENTION, "ff.linear_in": "img_mlp.0", "ff.linear_out": "img_mlp.2", "ff_context.linear_in": "txt_mlp.0",
    "ff_context.linear_out": "txt_mlp.2",
}  # fmt: skip
_FLUX2_SINGLE = {
    "attn.to_qkv_mlp_proj": "linear1", "attn.to_out": "linear2", "attn.norm_q": "norm.query_norm",
    "attn.norm_k": "norm.key_norm",
}  # fmt: skip
_FUSED = {
    "img_attn.qkv": ("attn.to_q", "attn.to_k", "attn.to_v"),
    "txt_attn.qkv": ("attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"),
}
_FUSED_SINGLE = {"linear1": ("attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp")}


def save_original(transformer: Any, file: Path, *, prefix: str = "", dtype: torch.dtype | None = None) -> Path:
    """Write `transformer` (of FLUX.1, FLUX.2 or Qwen-Image) into one safetensors file as it is shared."""
    rows = _LAYOUTS[type(transformer).__name__](transformer.state_dict())
    tensors = {f"{prefix}{name}": value.to(dtype or value.dtype).contiguous() for name, value in rows}
    save_file(tensors, file)
    return file


def _flux1(state: Tensors) -> Iterator[tuple[str, torch.Tensor]]:
    yield from _renamed(state, _FLUX1_TOP)
    yield from _blocks(state, "transformer_blocks.", "double_blocks.", _FLUX1_DOUBLE, _FUSED)
    yield from _blocks(state, "single_transformer_blocks.", "single_blocks.", _FLUX1_SINGLE, _FUSED_SINGLE)


def _flux2(state: Tensors) -> Iterator[tuple[str, torch.Tensor]]:
    yield from _renamed(state, _FLUX2_TOP)
    yield from _blocks(state, "transformer_blocks.", "double_blocks.", _FLUX2_DOUBLE, _FUSED)
    yield from _blocks(state, "single_transformer_blocks.", "single_blocks.", _FLUX2_SINGLE, {})


def _renamed(state: Tensors, names: Mapping[str, str]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in state.items():
        part, _, kind = name.rpartition(".")
        if part in names:
            swapped = torch.cat(value.chunk(2)[::-1]) if part == "norm_out.linear" else value
            yield f"{names[part]}.{kind}", swapped


def _blocks(
    state: Tensors, mine: str, theirs: str, names: Mapping[str, str], fused: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, torch.Tensor]]:
    numbers = sorted({name.split(".")[1] for name in state if name.startswith(mine)}, key=int)
    for number in numbers:
        own = {name.removeprefix(f"{mine}{number}."): value for name, value in state.items()
               if name.startswith(f"{mine}{number}.")}  # fmt: skip
        for name, value in own.items():
            part, _, kind = name.rpartition(".")
            if part in names:
                yield f"{theirs}{number}.{names[part]}.{'scale' if 'norm_' in part else kind}", value
        for whole, parts in fused.items():
            for kind in ("weight", "bias"):
                found = [own[f"{part}.{kind}"] for part in parts if f"{part}.{kind}" in own]
                if found:
                    yield f"{theirs}{number}.{whole}.{kind}", torch.cat(found)


_LAYOUTS: Mapping[str, Callable[[Tensors], Any]] = {
    "FluxTransformer2DModel": _flux1,
    "Flux2Transformer2DModel": _flux2,
    "QwenImageTransformer2DModel": lambda state: state.items(),
}
