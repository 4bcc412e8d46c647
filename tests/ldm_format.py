"""An SDXL pipeline as one file in the layout that most checkpoints are shared in (the inverse of diffusers' reader)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

__all__ = ["save_single_file"]

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
