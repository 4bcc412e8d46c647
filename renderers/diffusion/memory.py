"""The memory ladder: how much a rung needs, whether it fits, and one pipeline a process."""

from __future__ import annotations

import gc
import math
import os
import re
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_args

from katha.errors import UsageError, first_line
from katha.models.checkpoints import device_models, free_bytes
from katha.renderers.diffusion.checkpoint import Checkpoint, Shapes, read_header
from katha.renderers.diffusion.options import DTYPES, Rung
from katha.renderers.diffusion.prompt_encoding import Encoded
from katha.store import LockTaken, file_lock

_SKIPPED = ("embed", "shared", "wo$", "lora", "conv_in$", "conv_out$", "proj_out$", "patch_conv$", "lm_head$")
"""Layers that stay in the compute dtype: small ones that matter, and those whose dtype a model takes for its own (T5's
`wo`, embeddings and the head that shares their weights, the first layer of Mistral's eye)."""
_TILE = 512
_LIVE_MAPS = 3
_PROMPTS = 512


@dataclass(frozen=True)
class Need:
    """Bytes that drawing needs on the device and in host memory: on a rung, or beyond weights and the decoder, what
    frames that are denoised together hold."""

    device: int = 0
    host: int = 0

    def on(self, device: str) -> int:
        """Return what is needed on `device`; on a CPU, host memory is the device's."""
        return self.device + (self.host if device.startswith("cpu") else 0)


def needs_of(
    checkpoint: Checkpoint,
    dtype: str,
    pixels: int,
    *,
    batch: int = 1,
    tiling: bool = False,
    work: Need | None = None,
    loaded: Rung | None = None,
) -> dict[Rung, Need]:
    """Return what drawing `batch` frames of `pixels` pixels at once needs on each rung; nothing is loaded.

    What a frame needs beyond weights is estimated from the sizes of the decoder's widest layers, its largest consumer,
    or is `work`, if that is more: frames are decoded after they are denoised.

    Args:
        loaded: the rung on which the weights are in their place already; there, what is needed beside them.

    Raises:
        InputFileError: a weight file is broken.
    """
    width, beyond = DTYPES[dtype], work or Need()
    headers = {name: [read_header(file) for file in found] for name, found in checkpoint.weights().items()}
    sizes = {
        name: [math.prod(shape) for shapes in found for shape in shapes.values()] for name, found in headers.items()
    }
    parts = {name: width * sum(found) for name, found in sizes.items()}
    light = {name: parts[name] if name == "vae" else _light_bytes(found, width) for name, found in headers.items()}
    largest = max((width * size for found in sizes.values() for size in found), default=0)
    frame = max(_frame_bytes(checkpoint, dtype, pixels, batch, tiling), beyond.device)
    total = sum(parts.values())
    host = {rung: beyond.host + (0 if rung == loaded else total) for rung in get_args(Rung)}
    return {
        "full": Need(frame + (0 if loaded == "full" else total), beyond.host),
        "model-offload": Need(max(parts.values()) + frame, host["model-offload"]),
        "sequential-offload": Need(2 * largest + frame, host["sequential-offload"]),
        "quantized": Need(max(light.values()) + frame, host["quantized"]),
    }


def _light_bytes(headers: Sequence[Shapes], width: int) -> int:
    """Return the bytes of a component kept in 8 bits, but for norms (vectors only) and layers that are skipped."""
    shapes = [(name.rsplit(".", 1)[0], shape) for header in headers for name, shape in header.items()]
    matrices = {layer for layer, shape in shapes if len(shape) > 1}
    light = {layer for layer in matrices if not any(re.search(one, layer) for one in _SKIPPED)}
    return sum(math.prod(shape) * (1 if layer in light else width) for layer, shape in shapes)


def _frame_bytes(checkpoint: Checkpoint, dtype: str, pixels: int, batch: int, tiling: bool) -> int:
    """Return the bytes of the decoder's last stage: a few maps at full size, in float32 if the checkpoint asks so."""
    config = checkpoint.config("vae")
    multiples = config.get("dim_mult", [1, 2])  # of the first layer's width, in Qwen-Image's configuration
    widths = config.get("block_out_channels") or [config.get("base_dim", 128) * by for by in multiples]
    channels: int = sum(widths[:2])
    width = 4 if dtype == "float16" and config.get("force_upcast", False) else DTYPES[dtype]
    area = min(pixels, _TILE * _TILE) if tiling else pixels * batch
    return _LIVE_MAPS * channels * area * width


def check_fits(needs: Mapping[Rung, Need], rung: Rung, device: str, free: tuple[int, int] | None = None) -> str:
    """Return a sentence that `rung` fits, or refuse.

    Args:
        needs: of every rung; one that fits is named where this one does not.
        free: bytes on the device and on the host; looked up unless told.

    Raises:
        UsageError: no such device, or too little memory; the number of bytes missing is named.
    """
    on_device, on_host = free or (free_bytes(device) or 0, free_bytes("cpu") or 0)

    def lacking(need: Need) -> tuple[int, str]:
        return max((need.on(device) - on_device, repr(device)), (need.host - on_host, "the host"))

    wanted, (missing, where) = needs[rung].on(device), lacking(needs[rung])
    if missing > 0:
        fitting = [name for name, other in needs.items() if lacking(other)[0] <= 0]
        hint = f"--memory {fitting[0]} fits." if fitting else "Draw smaller frames, or use a larger device."
        raise UsageError(
            f"The memory rung {rung!r} needs {wanted:,} bytes on {device!r}: {missing:,} are missing on {where}.",
            hint=hint,
        )
    return f"The memory rung {rung!r} fits: {wanted:,} bytes of {on_device:,} free on {device!r}."


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


@dataclass
class Loaded:
    """A pipeline in memory, the prompts that it has read last (on the CPU), and the most pixels and bytes of work that
    were found to fit beside it."""

    pipe: Any
    prompts: OrderedDict[str, Encoded] = field(default_factory=OrderedDict)
    checked: tuple[int, int] | None = None

    def encoded(self, key: str, encode: Callable[[], Encoded]) -> Encoded:
        """Return what was encoded under `key`, from `encode` the first time."""
        if key not in self.prompts:
            self.prompts[key] = {name: value.cpu() for name, value in encode().items()}
            while len(self.prompts) > _PROMPTS:
                self.prompts.popitem(last=False)
        self.prompts.move_to_end(key)
        return self.prompts[key]


class PipelinePool:
    """At most one pipeline a process: seeds and modes share it. `loads` counts how often one was loaded."""

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
                    device_models().register(device, self)
                    self._held = held.pop_all()
                self.loads += 1
            yield self._loaded

    def release(self) -> None:
        """Let go of the pipeline, its memory and its device."""
        with self._lock:
            if self._loaded is None:
                return
            self._key = self._loaded = None
            device_models().release(self)
            gc.collect()
            import torch

            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            elif torch.backends.mps.is_available():
                torch.mps.empty_cache()
            self._held.close()  # last: who waits for the device finds its memory free

    close = release
    """What `DeviceModels` calls when another model needs the device."""


@cache
def process_pool() -> PipelinePool:
    """Return the pool that all renderers of this process share."""
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
    import torch

    name = device.replace(":", "-")
    if device.startswith("cuda") and torch.cuda.is_available():  # the same in every process, whatever is hidden from it
        index = torch.device(device).index
        name = f"cuda-{torch.cuda.get_device_properties(torch.cuda.current_device() if index is None else index).uuid}"
    folder = Path(tempfile.gettempdir()) / f"katha-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(folder / f"{name}.lock", wait=False))
        except LockTaken as error:
            raise UsageError(
                f"Another katha run draws on {device!r}.",
                hint="Wait until it is done, or give --renderer-option device=",
            ) from error
        yield
