"""The memory ladder: how much a rung needs, whether it fits, and one pipeline a process."""

from __future__ import annotations

import gc
import math
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from katha.errors import UsageError, first_line
from katha.models.checkpoints import process_tenants
from katha.renderers.diffusion.checkpoint import Checkpoint
from katha.renderers.diffusion.prompt_encoding import PromptCache
from katha.renderers.diffusion.weights import Header, read_header
from katha.store import LockTaken, file_lock

# ---
# The memory ladder: how much a rung needs, whether it fits, and how a pipeline is put on it.
#
#     full                 everything on the device     model-offload        one component at a time on the device,
# the others in host memory     sequential-offload   one layer at a time; slow     quantized            denoiser and
# text encoders kept as 8-bit floats, computed in the run's dtype, one at a time
#
# What a frame needs beyond weights is estimated from the sizes of the decoder's widest layers, its largest consumer,
# or of what frames that share hold while they are denoised (`Work`), if that is more.


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


# ---
# One pipeline a process: seeds and modes share it, and it is let go when another one needs its device.


@dataclass
class Loaded:
    """A pipeline in memory, the prompts that it has read, and the most pixels and bytes of work that were found to
    fit beside it."""

    pipe: Any
    prompts: PromptCache = field(default_factory=PromptCache)
    checked: tuple[int, int] | None = None


class PipelinePool:
    """Holds at most one pipeline. `loads` counts how often one was loaded."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._key: str | None = None
        self._loaded: Loaded | None = None
        self._held = ExitStack()
        self.loads = 0

    @contextmanager
    def use(self, key: str, device: str, load: Callable[[], Any]) -> Iterator[Loaded]:
        """The pipeline of `key`, loaded by `load` unless it is the one in memory; nobody else uses it meanwhile.

        Raises:
            UsageError: another process draws on `device`.
        """
        with self._lock:
            if self._loaded is None or self._key != key:
                self.release()
                with ExitStack() as held:
                    held.enter_context(hold_device(device))
                    self._loaded, self._key = Loaded(load()), key
                    process_tenants().move_in(device, self)
                    self._held = held.pop_all()
                self.loads += 1
            yield self._loaded

    def release(self) -> None:
        """Let go of the pipeline, its memory and its device."""
        with self._lock:
            if self._loaded is None:
                return
            self._key = self._loaded = None
            process_tenants().move_out(self)
            gc.collect()
            _empty_caches()
            self._held.close()  # last: who waits for the device finds its memory free

    def close(self) -> None:
        """What another model calls that needs the device (`katha.models.checkpoints`)."""
        self.release()


@cache
def process_pool() -> PipelinePool:
    """The pool that all renderers of this process share."""
    return PipelinePool()


@contextmanager
def hold_device(device: str) -> Iterator[None]:
    """Keep other processes of this user off an accelerator; a CPU is not held.

    Raises:
        UsageError: another process has it.
    """
    if device.startswith("cpu"):
        yield
        return
    folder = Path(tempfile.gettempdir()) / f"katha-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(folder / f"{_device_name(device)}.lock", wait=False))
        except LockTaken as error:
            raise UsageError(
                f"Another katha run draws on {device!r}.",
                hint="Wait until it is done, or give --renderer-option device=",
            ) from error
        yield


def _device_name(device: str) -> str:
    """A name that is the same in every process, whatever devices are hidden from it."""
    import torch

    if device.startswith("cuda") and torch.cuda.is_available():
        index = torch.device(device).index
        return f"cuda-{torch.cuda.get_device_properties(torch.cuda.current_device() if index is None else index).uuid}"
    return device.replace(":", "-")


def _empty_caches() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()
