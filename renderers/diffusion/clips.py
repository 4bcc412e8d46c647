"""A video model as a renderer of single frames: which of a clip's pictures is the frame, and what lies between two.

A scene is a keyframe of the clip that its prompt makes. A bridge is the middle of the clip that begins with the frame
before it and ends with the frame after it, where the pipeline takes both (Wan 2.1 and 2.2 image to video).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from katha.errors import UsageError
from katha.pictures import decode
from katha.renderers.diffusion.checkpoint import Checkpoint

if TYPE_CHECKING:
    from torch import Tensor

_BEATS = ("scale_factor_temporal", "temporal_compression_ratio")
"""What decoders call the number of pictures that one latent stands for."""


@dataclass(frozen=True)
class Clip:
    """The pictures that a pipeline draws at once, and the number of them that one latent stands for.

    keyframe: the place of the frame, from 0, the first picture, to 1, the last.
    """

    frames: int
    beat: int
    keyframe: float = 0.5

    @property
    def latents(self) -> int:
        """The number of latents that the denoiser holds."""
        return (self.frames - 1) // self.beat + 1

    def taken(self, videos: Tensor, place: float | None = None) -> Tensor:
        """Return one picture of each video, (B, 3, H, W) of (B, F, 3, H, W); the keyframe unless a `place` is told."""
        found: Tensor = videos[:, round((videos.shape[1] - 1) * (self.keyframe if place is None else place))]
        return found


def clip_of(
    parameters: Mapping[str, inspect.Parameter], checkpoint: Checkpoint, frames: int | None, keyframe: float | None
) -> Clip | None:
    """Return what a pipeline with these arguments draws; None where it draws pictures and not videos.

    frames, keyframe: options; None is the default of the call, and the middle.

    Raises:
        UsageError: an option of a video for a model of pictures, a place outside of the clip, or a number of pictures
        that the decoder does not make.
    """
    if "num_frames" not in parameters:
        if (frames, keyframe) != (None, None):
            name = "frames" if frames is not None else "keyframe"
            raise UsageError(f"{checkpoint.pipeline} draws pictures, not videos: it has no {name!r}.")
        return None
    config, default = checkpoint.config("vae"), parameters["num_frames"].default
    beat = next((config[name] for name in _BEATS if isinstance(config.get(name), int)), 1)
    count = frames or (default if isinstance(default, int) else 1)
    if count < 1 or (count - 1) % beat:
        near = max(0, round((count - 1) / beat)) * beat + 1
        hint = f"Give frames={near}, or {near + beat}." if beat > 1 else "Give at least 1."
        raise UsageError(f"{checkpoint.name!r} draws no clip of {count} pictures.", hint=hint)
    place = 0.5 if keyframe is None else keyframe
    if not 0 <= place <= 1:
        raise UsageError(f"keyframe is 0 to 1, not {place:g}.", hint="0 is a clip's first picture, 1 its last.")
    return Clip(count, beat, place)


def between_arguments(names: Sequence[str], pictures: Sequence[bytes], size: tuple[int, int]) -> dict[str, Any]:
    """Return the pipeline's arguments for a clip that begins with the first picture and ends with the last, at a
    board's end the same one, each cut to `size` (width, height)."""
    from PIL import Image, ImageOps

    shown = [ImageOps.fit(decode(data), size, Image.Resampling.LANCZOS) for data in (pictures[0], pictures[-1])]
    return dict(zip(names, shown, strict=True))
