"""Single files in the layouts that checkpoints are shared in (the inverse of diffusers' readers).

A whole SDXL pipeline in the layout of most checkpoints, and transformers in the layout of their publishers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

Tensors = Mapping[str, torch.Tensor]
_RESNET = {
    "norm1": "in_layers.0", "conv1": "in_layers.2", "time_emb_proj": "emb_layers.1", "norm2": "out_layers.0",
    "conv2": "out_layers.3", "conv_shortcut": "skip_connection",
}  # fmt: skip
_UNET = {
    "time_embedding.linear_1": "time_embed.0", "time_embedding.linear_2": "time_embed.2",
    "add_embedding.linear_1": "label_emb.0.0", "add_embedding.linear_2": "label_emb.0.2",
    "conv_in": "input_blocks.0.0", "conv_norm_out": "out.0", "conv_out": "out.2",
    "mid_block.resnets.0": "middle_block.0", "mid_block.attentions.0": "middle_block.1",
    "mid_block.resnets.1": "middle_block.2",
}  # fmt: skip
_CLIP = {
    "self_attn.out_proj": "attn.out_proj", "layer_norm1": "ln_1", "layer_norm2": "ln_2", "mlp.fc1": "mlp.c_fc",
    "mlp.fc2": "mlp.c_proj",
}  # fmt: skip


def save_single_file(pipe: Any, file: Path) -> Path:
    """Write `pipe` (an SDXL pipeline) into one safetensors file."""
    tensors = {
        **{f"model.diffusion_model.{name}": value for name, value in _unet(pipe.unet)},
        **{f"first_stage_model.{name}": value for name, value in _vae(pipe.vae)},
        **{f"conditioner.embedders.0.transformer.{name}": value for name, value in _first_text(pipe.text_encoder)},
        **{f"conditioner.embedders.1.model.{name}": value for name, value in _second_text(pipe.text_encoder_2)},
    }
    save_file({name: value.detach().clone().contiguous() for name, value in tensors.items()}, file)
    return file


def _renamed(name: str, table: Mapping[str, str]) -> str:
    for ours, theirs in table.items():
        if name == ours or name.startswith(f"{ours}."):
            return theirs + name[len(ours) :]
    return name


def _unet(unet: Any) -> Iterator[tuple[str, torch.Tensor]]:
    layers = unet.config.layers_per_block
    attended = {
        way: ["Cross" in kind for kind in unet.config[f"{way}_block_types"]] for way in ("down", "up")
    }  # fmt: skip
    for name, value in unet.state_dict().items():
        found = re.fullmatch(r"(down|up)_blocks\.(\d+)\.(\w+)\.(\d+)\.(.+)", name)
        if found is None:
            head = _renamed(name, _UNET)
            part = re.fullmatch(r"(middle_block\.[02])\.(.+)", head)
            yield (f"{part[1]}.{_renamed(part[2], _RESNET)}" if part else head), value
            continue
        way, block, kind, layer, rest = found[1], int(found[2]), found[3], int(found[4]), found[5]
        place = block * (layers + 1) + layer + (1 if way == "down" else 0)
        if kind == "resnets":
            inner = f"0.{_renamed(rest, _RESNET)}"
        elif kind == "attentions":
            inner = f"1.{rest}"
        else:
            place = (block + 1) * (layers + 1) - (0 if way == "down" else 1)
            inner = f"0.op.{rest[5:]}" if way == "down" else f"{2 if attended['up'][block] else 1}.{rest}"
        yield f"{'input' if way == 'down' else 'output'}_blocks.{place}.{inner}", value


def _vae(vae: Any) -> Iterator[tuple[str, torch.Tensor]]:
    count = len(vae.config.block_out_channels)
    attention = {"group_norm": "norm", "to_q": "q", "to_k": "k", "to_v": "v", "to_out.0": "proj_out"}
    for name, value in vae.state_dict().items():
        name = name.replace("conv_norm_out", "norm_out").replace("conv_shortcut", "nin_shortcut")
        name = re.sub(r"mid_block\.resnets\.(\d)", lambda found: f"mid.block_{int(found[1]) + 1}", name)
        name = re.sub(r"down_blocks\.(\d+)\.resnets", r"down.\1.block", name)
        name = re.sub(r"down_blocks\.(\d+)\.downsamplers\.0", r"down.\1.downsample", name)
        name = re.sub(r"up_blocks\.(\d+)\.resnets", lambda found: f"up.{count - 1 - int(found[1])}.block", name)
        name = re.sub(
            r"up_blocks\.(\d+)\.upsamplers\.0", lambda found: f"up.{count - 1 - int(found[1])}.upsample", name
        )
        head, _, tail = name.partition("mid_block.attentions.0.")
        if tail:
            name = f"{head}mid.attn_1.{_renamed(tail, attention)}"
            value = value[:, :, None, None] if value.ndim == 2 else value
        yield name, value


def _first_text(encoder: Any) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in encoder.state_dict().items():
        yield (name if name.startswith("text_model.") else f"text_model.{name}"), value


def _second_text(encoder: Any) -> Iterator[tuple[str, torch.Tensor]]:
    tensors = {name.removeprefix("text_model."): value for name, value in encoder.state_dict().items()}
    yield "token_embedding.weight", tensors.pop("embeddings.token_embedding.weight")
    yield "positional_embedding", tensors.pop("embeddings.position_embedding.weight")
    yield "text_projection", tensors.pop("text_projection.weight").T
    for end in ("weight", "bias"):
        yield f"ln_final.{end}", tensors.pop(f"final_layer_norm.{end}")
        for number in range(encoder.config.num_hidden_layers):
            parts = [tensors.pop(f"encoder.layers.{number}.self_attn.{one}_proj.{end}") for one in "qkv"]
            yield f"transformer.resblocks.{number}.attn.in_proj_{end}", torch.cat(parts)
    for name, value in tensors.items():
        found = re.fullmatch(r"encoder\.layers\.(\d+)\.(.+)", name)
        if found is not None:
            yield f"transformer.resblocks.{found[1]}.{_renamed(found[2], _CLIP)}", value


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


def save_gguf(transformer: Any, file: Path) -> Path:
    """Write `transformer` into one GGUF file: matrices whose rows are whole blocks in 8 bits (Q8_0), the rest in F32.

    Its own weights are rounded to what the file holds.
    """
    import gguf

    kind, block = gguf.GGMLQuantizationType.Q8_0, 32
    for value in transformer.parameters():
        if value.ndim == 2 and value.shape[1] % block == 0:
            packed = gguf.quants.quantize(value.detach().float().numpy(), kind)
            value.data = torch.from_numpy(gguf.quants.dequantize(packed, kind))
    writer = gguf.GGUFWriter(file, "katha-test")
    for name, value in _LAYOUTS[type(transformer).__name__](transformer.state_dict()):
        rows = value.detach().float().contiguous().numpy()
        if value.ndim == 2 and value.shape[1] % block == 0:
            writer.add_tensor(name, gguf.quants.quantize(rows, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _flux1(state: Tensors) -> Iterator[tuple[str, torch.Tensor]]:
    yield from _moved(state, _FLUX1_TOP)
    yield from _blocks(state, "transformer_blocks.", "double_blocks.", _FLUX1_DOUBLE, _FUSED)
    yield from _blocks(state, "single_transformer_blocks.", "single_blocks.", _FLUX1_SINGLE, _FUSED_SINGLE)


def _flux2(state: Tensors) -> Iterator[tuple[str, torch.Tensor]]:
    yield from _moved(state, _FLUX2_TOP)
    yield from _blocks(state, "transformer_blocks.", "double_blocks.", _FLUX2_DOUBLE, _FUSED)
    yield from _blocks(state, "single_transformer_blocks.", "single_blocks.", _FLUX2_SINGLE, {})


def _moved(state: Tensors, names: Mapping[str, str]) -> Iterator[tuple[str, torch.Tensor]]:
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
