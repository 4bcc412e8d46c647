"""What one drawing of a board works with: the pipeline, the denoiser, the rules, and encoded prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from katha.protocols import FrameRequest
from katha.renderers.sharing.board import Part
from katha.renderers.sharing.coupling import Coupling
from katha.renderers.sharing.denoise import Conditioning, Denoiser, Trajectory
from katha.renderers.sharing.grids import Grid
from katha.renderers.sharing.latents import latent_grid, noise_of
from katha.renderers.sharing.maps import SubjectMaps
from katha.renderers.sharing.rules import SharingRules

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Studio"]

Encode = Callable[[FrameRequest], Mapping[str, "Tensor"]]


class Studio:
    """Makes trajectories: frames with their first noise, their text and their part in the sharing."""

    def __init__(self, pipe: Any, denoiser: Denoiser, rules: SharingRules, guidance: float, encode: Encode) -> None:
        self.pipe, self.denoiser, self.rules = pipe, denoiser, rules
        self._halves = 2 if guidance > 1 else 1
        self._encode = encode

    def trajectory(self, parts: Sequence[Part], *, maps: bool) -> Trajectory:
        """`parts` to be denoised together, from their first noise; `maps`: watched for where their subjects are."""
        import torch

        texts = [self._text(request) for request, _ in parts]
        grid: Grid = latent_grid(self.pipe, parts[0][0].width, parts[0][0].height)
        dtype = texts[0].embeds.dtype
        coupling = Coupling(
            [member for _, member in parts], self.rules, grid, SubjectMaps() if maps else None, self._halves,
            [text.embeds.shape[1] for text in texts],
        )  # fmt: skip
        noise = [noise_of(self.pipe, request.seed, grid, dtype) for request, _ in parts]
        return Trajectory(torch.cat(noise), texts, coupling)

    def _text(self, request: FrameRequest) -> Conditioning:
        import torch

        device, encoded = self.pipe._execution_device, self._encode(request)
        names = ("negative_", "")[-self._halves :]
        return Conditioning(
            torch.cat([encoded[f"{name}prompt_embeds"] for name in names]).to(device),
            torch.cat([encoded[f"{name}pooled_prompt_embeds"] for name in names]).to(device),
        )
