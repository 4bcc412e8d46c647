"""A denoising loop in which sources and readers advance together, one step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from katha.renderers.sharing.bank import Bank, StepRecord
from katha.renderers.sharing.coupling import Coupling
from katha.renderers.sharing.wiring import Hub, shared_grids

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Conditioning", "Denoiser", "Trajectory", "lockstep"]


@dataclass(frozen=True)
class Conditioning:
    """One frame's text: `embeds` (halves, L, D), `pooled` (halves, P): [negative, positive] or [positive]."""

    embeds: Tensor
    pooled: Tensor


@dataclass
class Trajectory:
    """F frames denoised together: `latents` (F, C, h, w), their text, and the state that their layers share."""

    latents: Tensor
    texts: Sequence[Conditioning]
    coupling: Coupling
    features: Tensor | None = None
    _text: tuple[Tensor, Tensor] | None = field(default=None, repr=False)

    def text(self) -> tuple[Tensor, Tensor]:
        """Embeddings (halves * F, L, D), short ones continued with zeros that no layer reads, and pooled vectors."""
        import torch
        from torch.nn.functional import pad

        if self._text is None:
            longest = max(item.embeds.shape[1] for item in self.texts)
            embeds = [pad(item.embeds, (0, 0, 0, longest - item.embeds.shape[1])) for item in self.texts]
            pooled = [item.pooled for item in self.texts]
            self._text = torch.stack(embeds, 1).flatten(0, 1), torch.stack(pooled, 1).flatten(0, 1)
        return self._text


class Denoiser:
    """What every trajectory of a board shares: UNet, scheduler, guidance, and SDXL's size conditioning (1, 6).

    The scheduler must keep no state from step to step (DDIM): trajectories take turns with it.
    """

    def __init__(self, unet: Any, hub: Hub, scheduler: Any, guidance: float, time_ids: Tensor) -> None:
        self._unet, self._hub, self._scheduler = unet, hub, scheduler
        self._guidance, self._time_ids = guidance, time_ids

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self._scheduler.timesteps)

    def nearest_step(self, timestep: int) -> int:
        """The step whose timestep is nearest to `timestep`: not every number of steps has it."""
        return int((self._scheduler.timesteps - timestep).abs().argmin())

    def advance(self, run: Trajectory, step: int, record: StepRecord | None, features: bool = False) -> None:
        """One step of `run`; with `features`, the output of the first up block is left in `run.features`."""
        import torch

        coupling, timestep = run.coupling, self._scheduler.timesteps[step]
        grids = shared_grids(self._unet, coupling.latent)
        with torch.no_grad():
            coupling.begin(record, step, self.steps, grids, run.latents.device)
            weight = coupling.query_weight()
            if weight is not None:
                coupling.watch()
                self._ask(run, timestep)
                coupling.blend(weight)
            self._hub.wants_features = features
            noise = self._guided(self._ask(run, timestep))
            run.latents = self._scheduler.step(noise, timestep, run.latents, return_dict=False)[0]
            coupling.end()
        if features and self._hub.features is not None:
            run.features = self._hub.features[-len(coupling.members) :]
        self._hub.features, self._hub.wants_features = None, False

    def _ask(self, run: Trajectory, timestep: Tensor) -> Tensor:
        import torch

        halves = run.coupling.halves
        scaled = self._scheduler.scale_model_input(torch.cat([run.latents] * halves), timestep)
        text, pooled = run.text()
        conditions = {"text_embeds": pooled, "time_ids": self._time_ids.to(text).expand(len(scaled), -1)}
        self._hub.coupling = run.coupling
        try:
            noise: Tensor = self._unet(
                scaled, timestep, encoder_hidden_states=text, added_cond_kwargs=conditions, return_dict=False
            )[0]
        finally:
            self._hub.coupling = None
        return noise

    def _guided(self, noise: Tensor) -> Tensor:
        if self._guidance <= 1:
            return noise
        negative, positive = noise.chunk(2)
        return negative + self._guidance * (positive - negative)


def lockstep(
    denoiser: Denoiser,
    sources: Sequence[Trajectory],
    readers: Sequence[Trajectory],
    bank: Bank,
    phase: str,
    features_at: int | None = None,
) -> None:
    """Denoise `readers` in step with `sources`, or with what `bank` kept of them (none given).

    The first step shares nothing: there are no masks yet, and layouts come apart there.
    """
    for step in range(denoiser.steps):
        record = bank.open(phase, step)
        for run in [*sources, *readers]:
            denoiser.advance(run, step, record if step else None, features=step == features_at)
        bank.close(phase, step, record)
