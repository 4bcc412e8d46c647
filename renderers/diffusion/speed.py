"""`speed=fast`: fewer and cheaper calculations for nearly the same picture. Each shortcut stands in the specification.

The first block's cache leaves out the other blocks at steps at which the first one changes little (ParaAttention's
first-block cache in diffusers); 8-bit floats are torchao's, scaled anew at every call; blocks are compiled one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, Literal

from katha.renderers.diffusion.options import Calling, Rung

Speed = Literal["exact", "fast"]
"""Every calculation as the model was published, or shortcuts that change the picture a little."""
_THRESHOLD = 0.08
"""How much the first block may change, in relation to the step before, for the others to be left out: what diffusers'
guide to ParaAttention takes for FLUX.1 dev."""
_FLOAT8_SINCE = (8, 9)
"""The compute capability from which a CUDA device multiplies 8-bit floats."""


@dataclass(frozen=True)
class Shortcuts:
    """What is taken: the threshold of the first block's cache (None: not used), 8-bit floats, compiled blocks."""

    first_block: float | None = None
    float8: bool = False
    compiled: bool = False

    def spec(self) -> Mapping[str, Any]:
        """Return all of it: any of them can change the pixels."""
        return asdict(self)


def shortcuts_of(calling: Calling, device: str, memory: Rung, *, adapted: bool, steps: int) -> Shortcuts:
    """Return the shortcuts that there are for a pipeline class on `device`.

    adapted: with adapters, which 8-bit layers do not take, or packed weights, which are small already. steps: a
    model of a few steps changes too much between any two of them. Layers that move at every call, or are kept as
    8-bit floats already, are neither compiled nor scaled.
    """
    plain = device.startswith("cuda") and memory in ("full", "model-offload")
    return Shortcuts(
        first_block=_THRESHOLD if calling.first_block and steps > 8 else None,
        float8=plain and not adapted and find_spec("torchao") is not None and _multiplies_float8(device),
        compiled=plain,
    )


def _multiplies_float8(device: str) -> bool:
    import torch

    return torch.cuda.is_available() and torch.cuda.get_device_capability(device) >= _FLOAT8_SINCE


def take_shortcuts(denoiser: Any, shortcuts: Shortcuts) -> None:
    """Change `denoiser` for good; before it is put in its place."""
    if shortcuts.float8:
        from torchao.quantization import Float8DynamicActivationFloat8WeightConfig, quantize_

        quantize_(denoiser, Float8DynamicActivationFloat8WeightConfig())
    if shortcuts.first_block is not None:
        from diffusers import FirstBlockCacheConfig

        denoiser.enable_cache(FirstBlockCacheConfig(threshold=shortcuts.first_block))
    if shortcuts.compiled:
        denoiser.compile_repeated_blocks()


@contextmanager
def one_frame(pipe: Any, denoiser: Any) -> Iterator[None]:
    """Context manager: one call of `pipe`, which finds nothing of an earlier frame, though that one was broken off."""
    if not getattr(denoiser, "is_cache_enabled", False):
        yield
        return
    pipe.maybe_free_model_hooks()
    with denoiser.cache_context("frame"):  # some pipelines name one of their own for each call within this one
        yield
