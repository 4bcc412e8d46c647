"""The memory ladder: how much a rung needs, whether it fits, and how a pipeline is put on it.

    full                 everything on the device
    model-offload        one component at a time on the device, the others in host memory
    sequential-offload   one layer at a time; slow
    quantized            denoiser and text encoders kept as 8-bit floats, computed in the run's dtype, one at a time

What a frame needs beyond weights is estimated from the sizes of the decoder's widest layers, its largest consumer, or
of what frames that share hold while they are denoised (`Work`), if that is more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from katha.errors import UsageError, first_line
from katha.renderers.diffusion.checkpoint import Checkpoint
from katha.renderers.diffusion.weights import Header, read_header

__all__ = ["DTYPES", "Need", "Rung", "Work", "apply_rung", "check_fits", "free_bytes", "need_of"]

Rung = Literal["full", "model-offload", "sequential-offload", "quantized"]
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""What can be computed in, with its bytes."""
_SKIPPED = ("embed", "shared", "wo$", "lora", "conv_in$", "conv_out$", "proj_out$", "patch_conv$", "lm_head$")
"""Layers that stay in the compute dtype: small ones that matter, and those whose dtype a model takes for its own (T5's
`wo`, embeddings and the head that shares their weights, the first layer of Mistral's eye)."""
_TILE = 512
_LIVE_MAPS = 3


@dataclass(frozen=True)
class Work:
    """Bytes that drawing takes beyond weights and the decoder, on the device and in host memory: what frames that are
    denoised together hold."""

    device: int = 0
    host: int = 0


@dataclass(frozen=True)
class Need:
    """Bytes that a rung needs on the device, and in host memory."""

    rung: Rung
    device: int
    host: int


def need_of(
    checkpoint: Checkpoint,
    rung: Rung,
    dtype: str,
    pixels: int,
    *,
    batch: int = 1,
    tiling: bool = False,
    work: Work | None = None,
    loaded: bool = False,
) -> Need:
    """What drawing `batch` frames of `pixels` pixels at once needs on `rung`; nothing is loaded.

    work: what denoising holds; frames are decoded after it. loaded: the weights are in their place already, and what
    is needed beside them is asked.

    Raises:
        UsageError: there is no such rung. InputFileError: a weight file is broken.
    """
    if rung not in get_args(Rung):
        raise UsageError(f"There is no memory rung {rung!r}.", hint=f"Use {', '.join(get_args(Rung))}.")
    width = DTYPES[dtype]
    headers = {name: [read_header(file) for file in found] for name, found in checkpoint.weights().items()}
    parts = {name: width * sum(header.numbers for header in found) for name, found in headers.items()}
    largest = max((width * header.largest for found in headers.values() for header in found), default=0)
    more = work or Work()
    frame = max(_frame_bytes(checkpoint, dtype, pixels, batch, tiling), more.device)
    total = sum(parts.values())
    host = more.host + (0 if loaded else total)
    light = {name: parts[name] if name == "vae" else _light_bytes(found, width) for name, found in headers.items()}
    held = {
        "full": Need(rung, frame + (0 if loaded else total), more.host),
        "model-offload": Need(rung, max(parts.values()) + frame, host),
        "sequential-offload": Need(rung, 2 * largest + frame, host),
        "quantized": Need(rung, max(light.values()) + frame, host),
    }
    return held[rung]


def _light_bytes(headers: Sequence[Header], width: int) -> int:
    """Bytes of a component whose layers are kept in 8 bits, but for norms (vectors only) and those that are skipped."""
    shapes = [(name.rsplit(".", 1)[0], shape) for header in headers for name, shape in header.shapes.items()]
    matrices = {layer for layer, shape in shapes if len(shape) > 1}
    light = {layer for layer in matrices if not any(re.search(one, layer) for one in _SKIPPED)}
    return sum(math.prod(shape) * (1 if layer in light else width) for layer, shape in shapes)


def _frame_bytes(checkpoint: Checkpoint, dtype: str, pixels: int, batch: int, tiling: bool) -> int:
    """The decoder's last stage: a few feature maps at full size, in float32 where the checkpoint asks for it."""
    config = checkpoint.config("vae")
    multiples = config.get("dim_mult", [1, 2])  # of the first layer's width, in Qwen-Image's configuration
    widths = config.get("block_out_channels") or [config.get("base_dim", 128) * by for by in multiples]
    channels: int = sum(widths[:2])
    width = 4 if dtype == "float16" and config.get("force_upcast", False) else DTYPES[dtype]
    area = min(pixels, _TILE * _TILE) if tiling else pixels * batch
    return _LIVE_MAPS * channels * area * width


def free_bytes(device: str) -> tuple[int, int]:
    """Free bytes on the device and in host memory; on a CPU both are the same. What torch holds in reserve is free."""
    import psutil
    import torch

    host = int(psutil.virtual_memory().available)
    if device.startswith("cuda"):
        there = torch.device(device)
        reserve = torch.cuda.memory_reserved(there) - torch.cuda.memory_allocated(there)
        return int(torch.cuda.mem_get_info(there)[0]) + reserve, host
    return host, host


def check_fits(need: Need, device: str, others: Mapping[str, Need], free: tuple[int, int] | None = None) -> str:
    """Say that `need` fits, or refuse. `others`: the needs of the other rungs, for the hint.

    Raises:
        UsageError: no such device, or too little memory; the number of bytes missing is named.
    """
    on_device, on_host = free or free_bytes(device)

    def lacking(one: Need) -> tuple[int, str]:
        return max((_on_device(one, device) - on_device, repr(device)), (one.host - on_host, "the host"))

    wanted, (missing, where) = _on_device(need, device), lacking(need)
    if missing > 0:
        fitting = [name for name, other in others.items() if lacking(other)[0] <= 0]
        hint = f"--memory {fitting[0]} fits." if fitting else "Draw smaller frames, or use a larger device."
        raise UsageError(
            f"The memory rung {need.rung!r} needs {wanted:,} bytes on {device!r}: {missing:,} are missing on {where}.",
            hint=hint,
        )
    return f"The memory rung {need.rung!r} fits: {wanted:,} bytes of {on_device:,} free on {device!r}."


def _on_device(need: Need, device: str) -> int:
    """What is needed on the device; on a CPU, host memory is the device's."""
    return need.device + (need.host if device.startswith("cpu") else 0)


def apply_rung(pipe: Any, rung: Rung, device: str, dtype: str, denoiser: str, *, tiling: bool = False) -> None:
    """Put `pipe` on `device` as `rung` says.

    Raises:
        UsageError: there is no such device.
    """
    import torch

    try:
        if rung == "quantized":
            _quantize(pipe, dtype, denoiser)
        if rung == "sequential-offload":
            pipe.enable_group_offload(
                onload_device=torch.device(device), offload_device=torch.device("cpu"), offload_type="leaf_level"
            )
        elif rung == "model-offload" or (rung == "quantized" and not device.startswith("cpu")):
            pipe.enable_model_cpu_offload(device=device)
        else:
            pipe.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = first_line(error)
        raise UsageError(f"The model cannot be put on {device!r}: {reason}", hint="Choose another device.") from error
    if tiling:
        pipe.vae.enable_tiling()


def _quantize(pipe: Any, dtype: str, denoiser: str) -> None:
    """Denoiser and text encoders stored as 8-bit floats (e4m3); every layer is widened while it computes."""
    import torch
    from diffusers.hooks import apply_layerwise_casting

    for name, part in pipe.components.items():
        if isinstance(part, torch.nn.Module) and (name == denoiser or name.startswith("text_encoder")):
            apply_layerwise_casting(
                part,
                storage_dtype=torch.float8_e4m3fn,
                compute_dtype=getattr(torch, dtype),
                skip_modules_pattern=_SKIPPED,
            )
