"""A denoising loop in which sources and readers advance together, on attention processors set for as long as it
runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from katha.renderers.diffusion.images import generator_of
from katha.renderers.shared_attention.attention import Bank, Grid, StepRecord, gathered_attention, halvings
from katha.renderers.shared_attention.coupling import Coupling

if TYPE_CHECKING:
    from torch import Tensor

# ---
# The two ends of a drawing: noise as the plain pipeline draws it, and latents to pixels as it decodes them.


def latent_grid(pipe: Any, width: int, height: int) -> Grid:
    """The latent's (height, width) of a frame in pixels."""
    return height // pipe.vae_scale_factor, width // pipe.vae_scale_factor


def make_scheduler(pipe: Any, steps: int) -> Any:
    """DDIM with the checkpoint's noise schedule and `steps` steps; the pipeline's own scheduler is not touched.

    DDIM keeps nothing from step to step, so that frames can take turns. Latents are never clipped, whatever the class's
    default.
    """
    from diffusers import DDIMScheduler

    scheduler = DDIMScheduler.from_config(pipe.scheduler.config, clip_sample=False)
    scheduler.set_timesteps(steps, device=pipe._execution_device)
    return scheduler


def noise_of(pipe: Any, seed: int, grid: Grid, dtype: Any) -> Tensor:
    """The first latent (1, C, h, w) of a frame: that of the plain pipeline with a private generator of `seed`."""
    from diffusers.utils.torch_utils import randn_tensor

    shape = (1, pipe.unet.config.in_channels, *grid)
    noise: Tensor = randn_tensor(shape, generator=generator_of(seed), device=pipe._execution_device, dtype=dtype)
    return noise


def size_conditioning(pipe: Any, width: int, height: int, dtype: Any) -> Tensor:
    """SDXL's size conditioning (1, 6) of an uncropped frame."""
    size, projection = (height, width), pipe.text_encoder_2.config.projection_dim
    ids: Tensor = pipe._get_add_time_ids(size, (0, 0), size, dtype=dtype, text_encoder_projection_dim=projection)
    return ids.to(pipe._execution_device)


def decode(pipe: Any, latents: Tensor) -> Tensor:
    """The image (3, H, W), values 0 to 1, of latents (1, C, h, w); in float32 where half precision would overflow."""
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


# ---
# Diffusers' hooks: the attention processors of a UNet, set for as long as frames are drawn and put back afterwards.


FREEU: Mapping[str, float] = {"s1": 0.6, "s2": 0.4, "b1": 1.1, "b2": 1.2}
"""FreeU's factors for SDXL, used by both methods."""

_SHARED = re.compile(r"up_blocks\.\d+\..*\.attn1\.processor")


class Hub:
    """Joins a UNet's attention layers with the coupling whose frames are in the call. Without one they are plain."""

    def __init__(self) -> None:
        self.coupling: Coupling | None = None
        self.features: Tensor | None = None
        self.wants_features = False

    def keep_features(self, module: Any, inputs: Any, output: Tensor) -> None:
        """Forward hook: keep the block's output, (halves * F, C, h, w), when it is wanted."""
        if self.wants_features:
            self.features = output


class SelfAttention:
    """The processor of a self-attention layer. Where nothing is shared, the one it replaces computes the output."""

    def __init__(self, layer: str, hub: Hub, shares: bool, plain: Any) -> None:
        self._layer, self._hub, self._shares, self._plain = layer, hub, shares, plain

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,
    ) -> Tensor:
        """The layer's output, of the shape of `hidden_states` (rows, n, C)."""
        coupling = self._hub.coupling
        if coupling is None:
            plain: Tensor = self._plain(attn, hidden_states)
            return plain
        return coupling.changed(self._layer, self._attend(coupling, attn, hidden_states))

    def _attend(self, coupling: Coupling, attn: Any, hidden: Tensor) -> Tensor:
        groups = coupling.groups(self._layer, hidden.shape[1]) if self._shares else None
        shown = coupling.shown(self._layer, hidden, groups) if groups is not None else {}
        if self._shares and coupling.watching:
            coupling.keep_query(self._layer, attn.to_q(hidden))
        query = coupling.query(self._layer, attn, hidden) if self._shares else None
        if query is None and not shown:
            plain: Tensor = self._plain(attn, hidden)
            return plain
        return gathered_attention(attn, hidden, groups or [()] * len(coupling.members), shown, query)


class CrossAttention:
    """The processor of a cross-attention layer: its output is that of the processor it stands in for, its maps go to
    the coupling.

    Prompts of one call may differ in length: each frame attends to its own words only, as it does alone.
    """

    def __init__(self, hub: Hub, maps: bool, plain: Any) -> None:
        self._hub, self._maps, self._plain = hub, maps, plain

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,
    ) -> Tensor:
        """The layer's output, of the shape of `hidden_states` (rows, n, C)."""
        import torch

        coupling, text = self._hub.coupling, encoder_hidden_states
        if coupling is not None and self._maps and text is not None:
            coupling.look(attn, hidden_states, text)
        if coupling is None or text is None or len(set(coupling.lengths)) < 2:
            plain: Tensor = self._plain(attn, hidden_states, text, attention_mask)
            return plain
        rows = [
            self._plain(attn, hidden_states[row : row + 1], text[row : row + 1, :length])
            for row, length in enumerate(coupling.lengths * coupling.halves)
        ]
        return torch.cat(rows)


@contextmanager
def wired(unet: Any, freeu: bool) -> Iterator[Hub]:
    """A hub on `unet`, with FreeU or without. Processors, FreeU and hooks are as before when it ends."""
    before, factors = unet.attn_processors, _freeu_factors(unet)
    hub = Hub()
    deepest = f"up_blocks.{next(number for number, block in enumerate(unet.up_blocks) if _attends(block))}."
    handle = unet.up_blocks[0].register_forward_hook(hub.keep_features)
    try:
        unet.set_attn_processor({name: _processor(name, old, hub, deepest, unet) for name, old in before.items()})
        unet.enable_freeu(**FREEU) if freeu else unet.disable_freeu()
        yield hub
    finally:
        handle.remove()
        unet.set_attn_processor(before)
        for block, values in zip(unet.up_blocks, factors, strict=True):
            for name, value in values.items():
                setattr(block, name, value)


def shared_grids(unet: Any, latent: Grid) -> list[Grid]:
    """The grids of the layers that share, deepest first: up block i of n works on the latent halved n - 1 - i times."""
    deepest_first = halvings(latent, len(unet.up_blocks) - 1)[::-1]
    return [grid for grid, block in zip(deepest_first, unet.up_blocks, strict=True) if _attends(block)]


def attention_layers(unet: Any, latent: Grid) -> dict[str, tuple[Grid, int]]:
    """The self-attention layers: name to their grid and the width of their hidden states."""
    grids = halvings(latent, len(unet.up_blocks) - 1)
    return {
        name: (
            grids[_level(name, len(grids) - 1)],
            unet.get_submodule(name.removesuffix(".processor")).to_q.in_features,
        )
        for name in unet.attn_processors
        if name.endswith("attn1.processor")
    }


def shared_layers(unet: Any, latent: Grid) -> dict[str, tuple[Grid, int]]:
    """Those of the self-attention layers that share."""
    return {name: found for name, found in attention_layers(unet, latent).items() if _SHARED.fullmatch(name)}


def _level(name: str, deepest: int) -> int:
    """How often the latent is halved where the layer `name` works."""
    part, number = name.split(".")[:2]
    if part == "mid_block":
        return deepest
    return int(number) if part == "down_blocks" else deepest - int(number)


def shown_bytes(unet: Any, latent: Grid, halves: int) -> int:
    """Bytes of the hidden states of all tokens of one frame in all sharing layers at one step."""
    tokens = sum(grid[0] * grid[1] * width for grid, width in shared_layers(unet, latent).values())
    return int(tokens * halves * unet.dtype.itemsize)


def _attends(block: Any) -> bool:
    return len(getattr(block, "attentions", ())) > 0


def _freeu_factors(unet: Any) -> list[dict[str, Any]]:
    return [{name: getattr(block, name, None) for name in FREEU} for block in unet.up_blocks]


def _processor(name: str, old: Any, hub: Hub, deepest: str, unet: Any) -> Any:
    """The processor of one layer. Maps come from the deepest grid: its up block, the down block across, the middle."""
    if name.endswith("attn1.processor"):
        return SelfAttention(name, hub, _SHARED.fullmatch(name) is not None, old)
    level = len(unet.up_blocks) - 1 - int(deepest.split(".")[1])
    maps = name.startswith((deepest, f"down_blocks.{level}.", "mid_block."))
    return CrossAttention(hub, maps, old)


# ---
# A denoising loop in which sources and readers advance together, one step at a time.


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
