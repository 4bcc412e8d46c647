"""Frames out of a pipeline: private noise, pixels checked, PNG bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from katha.errors import BlankFrameError

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from katha.protocols import FrameRequest

__all__ = ["check_frame", "frame_name", "generator_of", "to_png"]

_FLAT = 2 / 255


def generator_of(seed: int) -> Generator:
    """A private generator on the CPU: the same noise on every device, and torch's global one is not touched."""
    import torch

    return torch.Generator("cpu").manual_seed(seed)


def frame_name(request: FrameRequest) -> str:
    """What a request draws, in words."""
    return f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"


def check_frame(image: Tensor, request: FrameRequest, who: str) -> None:
    """Refuse a frame that is no picture; `image` has shape (3, H, W) and values 0 to 1 (infinities clipped to them).

    Raises:
        BlankFrameError: it holds NaN (an overflow in half precision), or is black or another colour all over.
    """
    import torch

    what = f"The renderer {who!r} drew {frame_name(request)} with seed {request.seed} as"
    if not bool(torch.isfinite(image).all()):
        raise BlankFrameError(f"{what} NaN.", hint="Another seed may do; if all fail, set dtype=bfloat16 or float32.")
    low, high = image.amin(dim=(1, 2)), image.amax(dim=(1, 2))
    if float((high - low).max()) <= _FLAT:
        raise BlankFrameError(f"{what} one colour.", hint="Another seed or prompt may do.")


def to_png(image: Tensor, processor: Any) -> bytes:
    """PNG bytes of an image of shape (3, H, W), rounded to 8 bits as diffusers rounds."""
    picture = processor.numpy_to_pil(processor.pt_to_numpy(image[None]))[0]
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
