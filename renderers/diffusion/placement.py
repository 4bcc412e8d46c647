"""Where a model is while it draws: what each rung of the memory ladder needs, whether that fits, and the hooks that
bring components to the device and set them aside."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from katha.errors import UsageError, first_line
from katha.models.checkpoints import free_bytes
from katha.renderers.diffusion.checkpoint import Checkpoint, Shapes, read_header
from katha.renderers.diffusion.options import DTYPES, Rung, diffusion_data

if TYPE_CHECKING:
    from torch import Tensor

_SKIPPED = (
    *("embed", "shared", "wo$", "lora", "conv_in$", "conv_out$", "proj_out$", "patch_conv$", "lm_head$"),
    r"double_blocks\.\d+\.\w+_mod$",
)
"""Layers that stay in the compute dtype: small ones that matter, those whose dtype a model takes for its own (T5's
`wo`, embeddings and the head that shares their weights, the first layer of Mistral's eye)."""
_TILE = 512
_LIVE_MAPS = 3
_UNET_ATTENTION, _UNET_RESNET, _UNET_FREEU = 20, 3, 28
"""Numbers per token and channel that a transformer block and a residual block of a UNet hold at once; bytes that FreeU
does."""
_BLOCK = 24
"""Numbers per token and channel that a block of a diffusion transformer holds at once."""
_PATCH = 16
"""Pixels of a side that one token of a diffusion transformer stands for."""
_IMAGE_COPIES = 3


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes that drawing needs on the device and in host memory: on a rung, or beyond weights and the decoder, what
    frames that are denoised together hold. resident: on the device, where no component is ever set aside."""

    device: int = 0
    host: int = 0
    resident: int = 0

    def on(self, device: str) -> int:
        """Return what is needed on `device`; on a CPU, host memory is the device's."""
        return self.device + (self.host if device.startswith("cpu") else 0)


@dataclass(frozen=True)
class Frames:
    """What is drawn at once: `batch` frames of `pixels` pixels, in `halves` rows each (two with a negative prompt),
    conditioned on `pictures` pictures of the same size; in `tiling`, the decoder works tile by tile. tokens: of the
    prompt. work: what denoising holds, where it is known better than by the shapes of the denoiser."""

    pixels: int
    batch: int = 1
    halves: int = 1
    pictures: int = 0
    tokens: int = 512
    tiling: bool = False
    work: MemoryNeed | None = None


def needs_of(
    checkpoint: Checkpoint,
    dtype: str,
    frames: Frames,
    *,
    denoiser: str = "",
    loaded: Rung | None = None,
    added: Sequence[Path] = (),
    read: Sequence[Path] = (),
) -> dict[Rung, MemoryNeed]:
    """Return what drawing `frames` needs on each rung; nothing is loaded.

    Beyond weights a frame needs what denoising holds or what decoding does, whichever is more: frames are decoded
    after they are denoised, one at a time. denoiser: the component that is asked at every step; it stays on the
    device together with the decoder. Packed weights take what their files take, and the largest of them once more
    while it is used; rungs on which they cannot be kept are left out. loaded: the rung on which the weights are in
    their place already; there, what is needed beside them.
    """
    width, beyond, packing = DTYPES[dtype], frames.work or MemoryNeed(), checkpoint.packing
    headers = {name: [read_header(file) for file in found] for name, found in checkpoint.weights().items()}
    if added:
        headers[denoiser] = [*headers[denoiser], *map(read_header, added)]
    reading = DTYPES["float32"] * sum(math.prod(shape) for file in read for shape in read_header(file).values())
    sizes = {
        name: [math.prod(shape) for shapes in found for shape in shapes.values()] for name, found in headers.items()
    }
    parts = _kept_bytes(checkpoint, sizes, width, denoiser, added)
    light = {
        name: parts[name] if name == "vae" or name in packing else light_bytes(found, width)
        for name, found in headers.items()
    }
    unpacked = max((width * size for name in packing for size in sizes.get(name, ())), default=0)
    largest = max((width * size for found in sizes.values() for size in found), default=0)
    held = beyond.device if frames.work is not None else _denoising_bytes(checkpoint, width, frames, denoiser)
    frame = max(_decoding_bytes(checkpoint, dtype, frames), held + unpacked)
    total = sum(parts.values())
    aside = beyond.host + reading
    host = {rung: aside + (0 if rung == loaded else total) for rung in get_args(Rung)}
    whole = 0 if loaded == "full" else total
    kept = [diffusion_data().packings[method].rungs for method in packing.values()]
    needs: dict[Rung, MemoryNeed] = {
        "full": MemoryNeed(frame + whole, aside, frame + whole),
        "model-offload": MemoryNeed(_widest(parts, denoiser, frame), host["model-offload"], total + frame),
        "sequential-offload": MemoryNeed(2 * largest + frame, host["sequential-offload"], total + frame),
        "quantized": MemoryNeed(_widest(light, denoiser, frame), host["quantized"], sum(light.values()) + frame),
    }
    return {rung: need for rung, need in needs.items() if all(rung in rungs for rungs in kept)}


def _kept_bytes(
    checkpoint: Checkpoint, sizes: Mapping[str, Sequence[int]], width: int, denoiser: str, added: Sequence[Path]
) -> dict[str, int]:
    """Return the bytes of each component: packed weights take what their files take, others `width` a number."""
    files, more = checkpoint.weights(), sum(file.stat().st_size for file in added)
    return {
        name: sum(file.stat().st_size for file in files[name]) + more * (name == denoiser)
        if name in checkpoint.packing
        else width * sum(found)
        for name, found in sizes.items()
    }


def _widest(parts: Mapping[str, int], denoiser: str, frame: int) -> int:
    """Return the most bytes on the device at once: the text encoders, or what draws and what a frame needs."""
    draws = sum(size for name, size in parts.items() if name in (denoiser, "vae"))
    return max(draws + frame, sum(parts.values()) - draws)


def light_bytes(headers: Sequence[Shapes], width: int) -> int:
    """Return the bytes of a component kept in 8 bits, but for norms (vectors only) and layers that are skipped."""
    shapes = [(name.rsplit(".", 1)[0], shape) for header in headers for name, shape in header.items()]
    matrices = {layer for layer, shape in shapes if len(shape) > 1}
    light = {layer for layer in matrices if not any(re.search(one, layer) for one in _SKIPPED)}
    return sum(math.prod(shape) * (1 if layer in light else width) for layer, shape in shapes)


def _decoding_bytes(checkpoint: Checkpoint, dtype: str, frames: Frames) -> int:
    """Return the bytes of the decoder's last stage, a few maps at full size, in float32 if the checkpoint asks so; and
    of the finished images of the whole batch."""
    config = checkpoint.config("vae")
    multiples = config.get("dim_mult", [1, 2])  # of the first layer's width, in Qwen-Image's configuration
    widths = config.get("block_out_channels") or [config.get("base_dim", 128) * by for by in multiples]
    channels: int = sum(widths[:2])
    width = 4 if dtype == "float16" and config.get("force_upcast", False) else DTYPES[dtype]
    area = min(frames.pixels, _TILE * _TILE) if frames.tiling else frames.pixels
    others = frames.pixels * (frames.batch - 1 + frames.tiling)
    return width * (_LIVE_MAPS * channels * area + _IMAGE_COPIES * 3 * others)


def _denoising_bytes(checkpoint: Checkpoint, width: int, frames: Frames, denoiser: str) -> int:
    """Return the bytes that the denoiser's widest block holds for all rows of the batch."""
    config = checkpoint.config(denoiser) if denoiser else {}
    rows = frames.batch * frames.halves
    if "block_out_channels" in config:
        side = math.ceil(frames.pixels**0.5) >> checkpoint.latent_halvings
        return rows * unet_row_bytes(config, (side, side), width)
    heads = config.get("num_attention_heads") or config.get("n_heads") or 1
    inner = config.get("attention_head_dim", 0) * heads or config.get("hidden_size") or config.get("dim") or 0
    tokens = math.ceil(frames.pixels / _PATCH**2) * (1 + frames.pictures) + frames.tokens
    return int(rows * _BLOCK * tokens * inner * width)


def unet_row_bytes(config: Mapping[str, Any], latent: tuple[int, int], width: int) -> int:
    """Return the bytes of one row of a UNet's batch: the skip connections, and the block that holds most.

    latent: (height, width) of the latent. width: bytes of a number.
    """
    channels, layers = config["block_out_channels"], config["layers_per_block"]
    depth = layers if isinstance(layers, int) else max(layers)
    sizes = [math.prod(grid) for grid in halvings(latent, len(channels) - 1)]
    skips, block = channels[0] * sizes[0], 0
    for level, (own, count) in enumerate(zip(channels, sizes, strict=True)):
        below = min(level + 1, len(channels) - 1)
        skips += depth * own * count + (own * sizes[below] if below > level else 0)
        residual = (_UNET_RESNET * (own + channels[below]) + 2 * own) * count * width
        block = max(block, residual, _UNET_ATTENTION * own * count * width, _UNET_FREEU * own * count)
    return int(skips * width + block)


def halvings(latent: tuple[int, int], count: int) -> list[tuple[int, int]]:
    """Return the grids of `latent` halved 0 to `count` times, rounded up, as a UNet halves from level to level."""
    grids = [latent]
    for _ in range(count):
        height, width = grids[-1]
        grids.append(((height + 1) // 2, (width + 1) // 2))
    return grids


def check_fits(needs: Mapping[Rung, MemoryNeed], rung: Rung, device: str, free: tuple[int, int] | None = None) -> str:
    """Return a sentence that `rung` fits, or refuse (UsageError) with the number of bytes missing and a rung that fits.

    free: bytes on the device and on the host; looked up unless told.
    """
    on_device, on_host = free or (free_bytes(device) or 0, free_bytes("cpu") or 0)

    def lacking(need: MemoryNeed) -> tuple[int, str]:
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


@dataclass(frozen=True)
class ComponentMove:
    """One transfer of a component: its name, whether it came to the device or left it, and its bytes over the bus."""

    name: str
    comes: bool
    nbytes: int


class Parking:
    """Brings a pipeline's components to the device when they are called, and sets others aside for them.

    `drawers` (denoiser and decoder) are there together and stay, frame after frame and board after board, until one of
    the others (the text encoders) is called again; so do these, until something is drawn. What is set aside goes back
    to the copy that the host kept: weights that have not changed are not carried back. `transfers` holds them all.
    """

    def __init__(self, pipe: Any, device: str, drawers: Sequence[str]) -> None:
        """Hook onto every component that computes; all begin on the host."""
        import torch
        from accelerate.hooks import add_hook_to_module

        self.transfers: list[ComponentMove] = []
        self._drawers, self._device = frozenset(drawers), torch.device(device)
        self._parts = {name: part for name, part in pipe.components.items() if isinstance(part, torch.nn.Module)}
        self._kept: dict[str, list[tuple[Tensor, Tensor]]] = {}
        pipe.to("cpu", silence_dtype_warnings=True)
        for name, part in self._parts.items():
            add_hook_to_module(part, _hook(self, name, self._device))

    def bring(self, name: str) -> None:
        """Have the component on the device, and all that it does not draw with off it."""
        if name in self._kept:
            return
        draws = name in self._drawers
        for other in [other for other in self._kept if (other in self._drawers) != draws]:
            self._set_aside(other)
        part = self._parts[name]
        # Of a packed tensor (torchao) `data` is the shell alone: its numbers are held by a tensor that shares them.
        kept = [(tensor, tensor.detach() if _packed(tensor) else tensor.data) for tensor in _tensors(part)]
        try:
            part.to(self._device)
        except Exception:  # no room: what of it is there already gives its room back
            part.to("cpu")
            raise
        self._kept[name] = kept
        self.transfers.append(ComponentMove(name, True, sum(data.nbytes for _, data in kept)))

    def _set_aside(self, name: str) -> None:
        import torch

        changed = 0
        for tensor, data in self._kept.pop(name):
            if _packed(tensor):
                swap: Callable[[Tensor, Tensor], None] = torch.utils.swap_tensors
                swap(tensor, torch.nn.Parameter(data, requires_grad=tensor.requires_grad))
            elif tensor.dtype == data.dtype:
                tensor.data = data
            else:
                changed += tensor.nbytes
        self._parts[name].to("cpu")  # what was made or made anew meanwhile
        self.transfers.append(ComponentMove(name, False, changed))


def _tensors(part: Any) -> Iterator[Tensor]:
    """Yield parameters and buffers, shared ones once."""
    yield from part.parameters()
    yield from part.buffers()


def _packed(tensor: Tensor) -> bool:
    """Return whether a tensor is a shell around tensors that hold its numbers."""
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    return bool(is_traceable_wrapper_subclass(tensor))


def _hook(parking: Parking, name: str, device: Any) -> Any:
    """Return accelerate's kind of hook, by which pipelines also learn where they compute."""
    from accelerate.hooks import ModelHook

    class Bring(ModelHook):  # type: ignore[misc]  # accelerate is not typed
        execution_device = device

        def pre_forward(self, module: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            parking.bring(name)
            return args, kwargs

    return Bring()


def apply_rung(
    pipe: Any, rung: Rung, device: str, dtype: str, denoiser: str, *, tiling: bool = False, resident: bool = False
) -> Parking | None:
    """Put `pipe` on `device` as `rung` says; UsageError where there is no such device.

    resident: quantized weights all stay on the device. Gives what moves components from then on, if any are moved.
    """
    import torch

    parking = None
    try:
        if rung == "quantized":
            _quantize(pipe, dtype, denoiser)
        if rung == "sequential-offload":
            pipe.enable_group_offload(
                onload_device=torch.device(device),
                offload_device=torch.device("cpu"),
                offload_type="leaf_level",
                use_stream=device.startswith("cuda"),  # the next layer comes while this one computes
            )
        elif rung == "model-offload" or (rung == "quantized" and not resident):
            torch.empty(0, device=device)
            parking = Parking(pipe, device, (denoiser, "vae"))
        else:
            pipe.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = first_line(error)
        raise UsageError(f"The model cannot be put on {device!r}: {reason}", hint="Choose another device.") from error
    vae: Any = getattr(pipe, "vae", None)
    if hasattr(vae, "enable_slicing"):
        vae.enable_slicing()
    if tiling and hasattr(vae, "enable_tiling"):
        vae.enable_tiling()
    return parking


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
