"""Denoising on SDXL's UNet with frames that take turns, and both ends of it: first noise and decoded pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from katha.renderers.diffusion.images import generator_of
from katha.renderers.shared_attention.attention_processor import Hub, shared_grids
from katha.renderers.shared_attention.coupling import Bank, Coupling, Grid, StepRecord

if TYPE_CHECKING:
    from torch import Tensor


def latent_grid(pipe: Any, width: int, height: int) -> Grid:
    """Return the latent's (height, width) of a frame in pixels."""
    return height // pipe.vae_scale_factor, width // pipe.vae_scale_factor


def make_scheduler(pipe: Any, steps: int) -> Any:
    """Return DDIM with the checkpoint's noise schedule and `steps` steps; the pipeline's own scheduler is not touched.

    DDIM keeps nothing from step to step, so that frames can take turns. Latents are never clipped, whatever the class's
    default.
    """
    from diffusers import DDIMScheduler

    scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
    scheduler.set_timesteps(steps, device=pipe._execution_device)
    return scheduler


def noise_of(pipe: Any, seed: int, grid: Grid, dtype: Any) -> Tensor:
    """Return a frame's first latent (1, C, h, w): that of the plain pipeline with a private generator of `seed`."""
    from diffusers.utils.torch_utils import randn_tensor

    shape = (1, pipe.unet.config.in_channels, *grid)
    noise: Tensor = randn_tensor(shape, generator=generator_of(seed), device=pipe._execution_device, dtype=dtype)
    return noise


def size_conditioning(pipe: Any, width: int, height: int, dtype: Any) -> Tensor:
    """Return SDXL's size conditioning (1, 6) of an uncropped frame."""
    size, projection = (height, width), pipe.text_encoder_2.config.projection_dim
    ids: Tensor = pipe._get_add_time_ids(size, (0, 0), size, dtype=dtype, text_encoder_projection_dim=projection)
    return ids.to(pipe._execution_device)


def decode(pipe: Any, latents: Tensor) -> Tensor:
    """Return the image (3, H, W), values 0 to 1, of latents (1, C, h, w); in float32 where half precision overflows."""
    import torch

    config, dtype = pipe.vae.config, pipe.vae.dtype
    upcast = dtype == torch.float16 and config.force_upcast
    with torch.no_grad():
        if upcast:
            pipe.vae.to(dtype=torch.float32)
        scaled = latents.to(pipe.vae.dtype)
        mean, spread = (getattr(config, name, None) for name in ("latents_mean", "latents_std"))
        if mean is not None and spread is not None:
            centre, width = (scaled.new_tensor(list(item)).view(1, -1, 1, 1) for item in (mean, spread))
            scaled = scaled * width / config.scaling_factor + centre
        else:
            scaled = scaled / config.scaling_factor
        try:
            image = pipe.vae.decode(scaled, return_dict=False)[0]
        finally:
            if upcast:
                pipe.vae.to(dtype=dtype)
    picture: Tensor = pipe.image_processor.postprocess(image, output_type="pt")[0]
    return picture


@dataclass(frozen=True)
class Conditioning:
    """One frame's text: `embeds` (halves, L, D), `pooled` (halves, P): [negative, positive] or [positive]."""

    embeds: Tensor
    pooled: Tensor


class Trajectory:
    """F frames denoised together: `latents` (F, C, h, w), their text, and the state that their layers share.

    embeds: (halves * F, L, D); short ones are continued with zeros that no layer reads. pooled: (halves * F, P).
    features: the output of the first up block, (F, C, h, w), where it was asked for.
    """

    def __init__(self, latents: Tensor, texts: Sequence[Conditioning], coupling: Coupling) -> None:
        import torch
        from torch.nn.functional import pad

        self.latents, self.coupling = latents, coupling
        longest = max(item.embeds.shape[1] for item in texts)
        embeds = [pad(item.embeds, (0, 0, 0, longest - item.embeds.shape[1])) for item in texts]
        self.embeds = torch.stack(embeds, 1).flatten(0, 1)
        self.pooled = torch.stack([item.pooled for item in texts], 1).flatten(0, 1)
        self.features: Tensor | None = None


class Denoiser:
    """What every trajectory of a board shares: UNet, scheduler, guidance, and SDXL's size conditioning (1, 6).

    The scheduler must keep no state from step to step (DDIM): trajectories take turns with it.
    """

    def __init__(self, unet: Any, hub: Hub, scheduler: Any, guidance: float, time_ids: Tensor) -> None:
        self._unet, self._hub, self._scheduler = unet, hub, scheduler
        self._guidance, self._time_ids = guidance, time_ids
        self.halves = 2 if guidance > 1 else 1

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self._scheduler.timesteps)

    def nearest_step(self, timestep: int) -> int:
        """Return the step whose timestep is nearest to `timestep`: not every number of steps has it."""
        return int((self._scheduler.timesteps - timestep).abs().argmin())

    def run(
        self,
        sources: Sequence[Trajectory],
        readers: Sequence[Trajectory],
        bank: Bank,
        phase: str,
        features_at: int | None = None,
    ) -> None:
        """Denoise `readers` in step with `sources`, or with what `bank` kept of them (none given).

        The first step shares nothing: there are no masks yet, and layouts come apart there. At the step `features_at`
        every trajectory's `features` are kept.
        """
        for step in range(self.steps):
            record = bank.open(phase, step)
            for run in [*sources, *readers]:
                self._advance(run, step, record if step else None, features=step == features_at)
            bank.close(phase, step, record)

    def _advance(self, run: Trajectory, step: int, record: StepRecord | None, features: bool) -> None:
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
            noise = self._ask(run, timestep)
            if self._guidance > 1:
                negative, positive = noise.chunk(2)
                noise = negative + self._guidance * (positive - negative)
            run.latents = self._scheduler.step(noise, timestep, run.latents, return_dict=False)[0]
            coupling.end()
        if features and self._hub.features is not None:
            run.features = self._hub.features[-len(coupling.members) :]
        self._hub.features, self._hub.wants_features = None, False

    def _ask(self, run: Trajectory, timestep: Tensor) -> Tensor:
        """Return the UNet's noise (halves * F, C, h, w)."""
        import torch

        scaled = self._scheduler.scale_model_input(torch.cat([run.latents] * run.coupling.halves), timestep)
        time_ids = self._time_ids.to(run.embeds).expand(len(scaled), -1)
        conditions = {"text_embeds": run.pooled, "time_ids": time_ids}
        self._hub.coupling = run.coupling
        try:
            noise: Tensor = self._unet(
                scaled, timestep, encoder_hidden_states=run.embeds, added_cond_kwargs=conditions, return_dict=False
            )[0]
        finally:
            self._hub.coupling = None
        return noise
