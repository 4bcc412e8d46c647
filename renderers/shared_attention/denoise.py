"""Denoising on SDXL's UNet with frames that take turns and read one another: the attention processors, the loop over
the steps, and both ends of it, first noise and decoded pixels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from katha.renderers.diffusion.placement import halvings
from katha.renderers.diffusion.renderer import generator_of
from katha.renderers.shared_attention.coupling import Bank, Coupling, Grid, StepRecord, TokenGroup, grid_of

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

FREEU: Mapping[str, float] = {"s1": 0.6, "s2": 0.4, "b1": 1.1, "b2": 1.2}
"""FreeU's factors for SDXL, used by both methods."""
_SHARED = re.compile(r"up_blocks\.\d+\..*\.attn1\.processor")
_OWN = (TokenGroup(None, {}),)


def gathered_attention(
    attn: Any,
    hidden: Tensor,
    frames: Sequence[tuple[TokenGroup, ...]],
    shown: Mapping[int, Tensor],
    query: Tensor | None = None,
) -> Tensor:
    """Return the output of the self-attention layer `attn` over a frame's own tokens and those gathered from others,
    without a dense mask: keys are put together for each group of tokens.

    Args:
        attn: diffusers' `Attention` of a transformer block.
        hidden: (halves * F, n, C), the rows [negative x F, positive x F] (or positive alone); frames of one half are
            coupled only among themselves.
        frames: the groups of each of the F frames; empty: the frame reads its own tokens.
        shown: by source, the hidden states it shows, (halves, K, C).
        query: the projected queries, (halves * F, n, D), where they are not those of `hidden`.
    """
    import torch

    rows, tokens, _ = hidden.shape
    halves = rows // len(frames)
    split = (halves, len(frames), tokens, -1)
    queries = (attn.to_q(hidden) if query is None else query).view(split)
    keys, values = attn.to_k(hidden).view(split), attn.to_v(hidden).view(split)
    projected = {source: (attn.to_k(states), attn.to_v(states)) for source, states in shown.items()}
    out = torch.empty_like(queries)
    for frame, groups in enumerate(frames):
        for group in groups or _OWN:
            read = [(projected[source], places) for source, places in group.reads.items()]
            key = torch.cat([keys[:, frame], *(pair[0][:, places] for pair, places in read)], dim=1)
            value = torch.cat([values[:, frame], *(pair[1][:, places] for pair, places in read)], dim=1)
            if group.queries is None:
                out[:, frame] = _attend(attn.heads, queries[:, frame], key, value)
            else:
                out[:, frame, group.queries] = _attend(attn.heads, queries[:, frame, group.queries], key, value)
    mixed: Tensor = attn.to_out[1](attn.to_out[0](out.view(rows, tokens, -1))) / attn.rescale_output_factor
    return mixed


def _attend(heads: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return the softmax attention of (halves, Q, D) over (halves, K, D), `heads` heads."""
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in (query, key, value))
    return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def concept_maps(attn: Any, hidden: Tensor, text: Tensor, columns: Sequence[Sequence[Sequence[int]]]) -> Tensor:
    """Return how much each token looks at the words of each subject: (F, S, n), float32, the mean over heads and words.

    Args:
        attn: a cross-attention layer.
        hidden: (F, n, C), the positive half.
        text: (F, L, D).
        columns: for each frame and subject the positions of its words in `text`; a subject without words has zeros.
    """
    import torch

    query = attn.to_q(hidden).unflatten(2, (attn.heads, -1)).transpose(1, 2)
    key = attn.to_k(text).unflatten(2, (attn.heads, -1)).transpose(1, 2)
    maps = torch.zeros(len(columns), len(columns[0]), hidden.shape[1], device=hidden.device)
    for frame, subjects in enumerate(columns):
        if not any(subjects):
            continue
        scores = (query[frame] @ key[frame].transpose(1, 2)).float() * attn.scale
        probabilities = scores.softmax(-1).mean(0)
        for subject, words in enumerate(subjects):
            if words:
                maps[frame, subject] = probabilities[:, list(words)].mean(1)
    return maps


@dataclass
class Hub:
    """Joins a UNet's attention layers with the coupling whose frames are in the call. Without one they are plain."""

    coupling: Coupling | None = None
    features: Tensor | None = None
    wants_features: bool = False

    def keep_features(self, module: Any, inputs: Any, output: Tensor) -> None:
        """Keep the block's output, (halves * F, C, h, w), when it is wanted (a forward hook)."""
        if self.wants_features:
            self.features = output


class SharedSelfAttnProcessor:
    """The processor of a self-attention layer. Where nothing is shared, the one it replaces computes the output."""

    def __init__(self, layer: str, hub: Hub, plain: Any) -> None:
        self._layer, self._hub, self._plain = layer, hub, plain
        self._shares = _SHARED.fullmatch(layer) is not None

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        temb: Tensor | None = None,
    ) -> Tensor:
        """Return the layer's output, of the shape of `hidden_states` (rows, n, C)."""
        coupling, layer = self._hub.coupling, self._layer
        query: Tensor | None = None
        shown: dict[int, Tensor] = {}
        groups: list[tuple[TokenGroup, ...]] | None = None
        if coupling is not None and self._shares:
            groups = coupling.groups(layer, hidden_states.shape[1])
            shown = coupling.shown(layer, hidden_states, groups) if groups is not None else {}
            query = coupling.query(layer, attn, hidden_states)
        if coupling is None or (query is None and not shown):
            output: Tensor = self._plain(attn, hidden_states)
        else:
            output = gathered_attention(attn, hidden_states, groups or [()] * len(coupling.members), shown, query)
        return output if coupling is None else coupling.changed(layer, output)


class MappedCrossAttnProcessor:
    """The processor of a cross-attention layer: its output is that of the processor it stands in for, its maps go to
    the coupling. Prompts of one call may differ in length: each frame attends to its own words only, as alone."""

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
        """Return the layer's output, of the shape of `hidden_states` (rows, n, C)."""
        import torch

        coupling, text = self._hub.coupling, encoder_hidden_states
        if coupling is None or text is None:
            plain: Tensor = self._plain(attn, hidden_states, text, attention_mask)
            return plain
        frames = len(coupling.members)
        if self._maps and coupling.maps is not None and not coupling.watching:
            words = [member.words for member in coupling.members]  # the positive half comes last
            maps = concept_maps(attn, hidden_states[-frames:], text[-frames:], words)
            coupling.maps.add(maps, grid_of(hidden_states.shape[1], coupling.latent))
        if len(set(coupling.lengths)) < 2:
            whole: Tensor = self._plain(attn, hidden_states, text, attention_mask)
            return whole
        rows = [
            self._plain(attn, hidden_states[row : row + 1], text[row : row + 1, :length])
            for row, length in enumerate(coupling.lengths * coupling.halves)
        ]
        return torch.cat(rows)


@contextmanager
def wired(unet: Any, freeu: bool) -> Iterator[Hub]:
    """Context manager: a hub on `unet`, with FreeU or without. Processors, FreeU and hooks are then as they were."""
    before, hub = unet.attn_processors, Hub()
    # Maps come from the deepest grid that has attention: up, down and middle.
    deepest = next(number for number, block in enumerate(unet.up_blocks) if _attends(block))
    mapped = (f"up_blocks.{deepest}.", f"down_blocks.{len(unet.up_blocks) - 1 - deepest}.", "mid_block.")
    processors = {
        name: SharedSelfAttnProcessor(name, hub, old)
        if name.endswith("attn1.processor")
        else MappedCrossAttnProcessor(hub, name.startswith(mapped), old)
        for name, old in before.items()
    }
    factors = [{name: getattr(block, name, None) for name in FREEU} for block in unet.up_blocks]
    handle = unet.up_blocks[0].register_forward_hook(hub.keep_features)
    try:
        unet.set_attn_processor(processors)
        unet.enable_freeu(**FREEU) if freeu else unet.disable_freeu()
        yield hub
    finally:
        handle.remove()
        unet.set_attn_processor(before)
        for block, values in zip(unet.up_blocks, factors, strict=True):
            for name, value in values.items():
                setattr(block, name, value)


def shared_grids(unet: Any, latent: Grid) -> list[Grid]:
    """Return the grids of the layers that share, deepest first: up block i of n works on the latent halved n - 1 - i
    times."""
    deepest_first = halvings(latent, len(unet.up_blocks) - 1)[::-1]
    return [grid for grid, block in zip(deepest_first, unet.up_blocks, strict=True) if _attends(block)]


def attention_layers(unet: Any, latent: Grid) -> dict[str, tuple[Grid, int]]:
    """Return the self-attention layers: name to their grid and the width of their hidden states."""
    grids, found = halvings(latent, len(unet.up_blocks) - 1), {}
    for name in unet.attn_processors:
        if name.endswith("attn1.processor"):
            part, number = name.split(".")[:2]
            level = -1 if part == "mid_block" else int(number) if part == "down_blocks" else -1 - int(number)
            found[name] = (grids[level], unet.get_submodule(name.removesuffix(".processor")).to_q.in_features)
    return found


def shared_layers(unet: Any, latent: Grid) -> dict[str, tuple[Grid, int]]:
    """Return those of the self-attention layers that share."""
    return {name: found for name, found in attention_layers(unet, latent).items() if _SHARED.fullmatch(name)}


def shown_bytes(unet: Any, latent: Grid, halves: int) -> int:
    """Return the bytes of the hidden states of all tokens of one frame in all sharing layers at one step."""
    tokens = sum(grid[0] * grid[1] * width for grid, width in shared_layers(unet, latent).values())
    return int(tokens * halves * unet.dtype.itemsize)


def _attends(block: Any) -> bool:
    return len(getattr(block, "attentions", ())) > 0


def make_scheduler(pipe: Any, steps: int) -> Any:
    """Return DDIM with the checkpoint's noise schedule and `steps` steps; the pipeline's own scheduler is not touched.

    DDIM keeps nothing from step to step, so that frames can take turns. Latents are never clipped.
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
    with _unflowing(pipe.vae) as vae:
        scaled, factor, moments = latents.to(vae.dtype), vae.config.scaling_factor, _moments(vae, latents)
        scaled = scaled / factor if moments is None else scaled * moments[1] / factor + moments[0]
        image = vae.decode(scaled, return_dict=False)[0]
    picture: Tensor = pipe.image_processor.postprocess(image, output_type="pt")[0]
    return picture


def encode(pipe: Any, picture: Image, dtype: Any) -> Tensor:
    """Return the latents (1, C, h, w) of a picture whose sides are multiples of the decoder's; the inverse of `decode`,
    with the encoder's most likely latents."""
    pixels = pipe.image_processor.preprocess(picture.convert("RGB"))
    with _unflowing(pipe.vae) as vae:
        found = vae.encode(pixels.to(pipe._execution_device, vae.dtype)).latent_dist.mode()
        factor, moments = vae.config.scaling_factor, _moments(vae, found)
        latents: Tensor = found * factor if moments is None else (found - moments[0]) / moments[1] * factor
    return latents.to(dtype)


@contextmanager
def _unflowing(vae: Any) -> Iterator[Any]:
    """Context manager: the decoder in float32 where half precision overflows, without gradients; then as it was."""
    import torch

    dtype = vae.dtype
    upcast = dtype == torch.float16 and vae.config.force_upcast
    with torch.no_grad():
        if upcast:
            vae.to(dtype=torch.float32)
        try:
            yield vae
        finally:
            if upcast:
                vae.to(dtype=dtype)


def _moments(vae: Any, like: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return mean and deviation of a picture's latents by channel, where the checkpoint tells them."""
    mean, deviation = (getattr(vae.config, name, None) for name in ("latents_mean", "latents_std"))
    if mean is None or deviation is None:
        return None
    centre, width = (like.new_tensor(list(item), dtype=vae.dtype).view(1, -1, 1, 1) for item in (mean, deviation))
    return centre, width


@dataclass(frozen=True)
class Conditioning:
    """One frame's text: `embeds` (halves, L, D), `pooled` (halves, P): [negative, positive] or [positive]."""

    embeds: Tensor
    pooled: Tensor


class SharedLatents:
    """F frames denoised together: `latents` (F, C, h, w), their text, and the state that their layers share.

    embeds: (halves * F, L, D); short ones are continued with zeros that no layer reads. pooled: (halves * F, P).
    features: the output of the first up block, (F, C, h, w), where it was asked for. given: by frame, the latents
    (1, C, h, w) of a picture that is not drawn but read: at every step it has as much noise as the others.
    """

    def __init__(
        self,
        latents: Tensor,
        texts: Sequence[Conditioning],
        coupling: Coupling,
        given: Mapping[int, Tensor] | None = None,
    ) -> None:
        import torch
        from torch.nn.functional import pad

        self.latents, self.coupling = latents, coupling
        self._given = {at: (clean, latents[at : at + 1].clone()) for at, clean in (given or {}).items()}
        longest = max(item.embeds.shape[1] for item in texts)
        embeds = [pad(item.embeds, (0, 0, 0, longest - item.embeds.shape[1])) for item in texts]
        self.embeds = torch.stack(embeds, 1).flatten(0, 1)
        self.pooled = torch.stack([item.pooled for item in texts], 1).flatten(0, 1)
        self.features: Tensor | None = None

    def set_given(self, scheduler: Any, timestep: Tensor) -> None:
        """Put the pictures that are read into the latents, with the noise of `timestep`."""
        for at, (clean, noise) in self._given.items():
            self.latents[at : at + 1] = scheduler.add_noise(clean, noise, timestep[None])


@dataclass(frozen=True)
class Denoiser:
    """What every trajectory of a board shares: UNet, guidance, SDXL's size conditioning (1, 6), and a scheduler that
    keeps no state from step to step (DDIM), as trajectories take turns with it."""

    unet: Any
    hub: Hub
    scheduler: Any
    guidance: float
    time_ids: Tensor

    @property
    def halves(self) -> int:
        """Rows of the UNet's batch for a frame: two with guidance."""
        return 2 if self.guidance > 1 else 1

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.scheduler.timesteps)

    def nearest_step(self, timestep: int) -> int:
        """Return the step whose timestep is nearest to `timestep`: not every number of steps has it."""
        return int((self.scheduler.timesteps - timestep).abs().argmin())

    def run(
        self,
        sources: Sequence[SharedLatents],
        readers: Sequence[SharedLatents],
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

    def _advance(self, run: SharedLatents, step: int, record: StepRecord | None, features: bool) -> None:
        import torch

        coupling, timestep = run.coupling, self.scheduler.timesteps[step]
        grids = shared_grids(self.unet, coupling.latent)
        with torch.no_grad():
            run.set_given(self.scheduler, timestep)
            coupling.begin(record, step, self.steps, grids, run.latents.device)
            weight = coupling.query_weight()
            if weight is not None:
                coupling.watch()
                self._ask(run, timestep)
                coupling.blend(weight)
            self.hub.wants_features = features
            noise = self._ask(run, timestep)
            if self.guidance > 1:
                negative, positive = noise.chunk(2)
                noise = negative + self.guidance * (positive - negative)
            run.latents = self.scheduler.step(noise, timestep, run.latents, return_dict=False)[0]
            coupling.end()
        if features and self.hub.features is not None:
            run.features = self.hub.features[-len(coupling.members) :]
        self.hub.features, self.hub.wants_features = None, False

    def _ask(self, run: SharedLatents, timestep: Tensor) -> Tensor:
        """Return the UNet's noise (halves * F, C, h, w)."""
        import torch

        scaled = self.scheduler.scale_model_input(torch.cat([run.latents] * run.coupling.halves), timestep)
        time_ids = self.time_ids.to(run.embeds).expand(len(scaled), -1)
        conditions = {"text_embeds": run.pooled, "time_ids": time_ids}
        self.hub.coupling = run.coupling
        try:
            noise: Tensor = self.unet(
                scaled, timestep, encoder_hidden_states=run.embeds, added_cond_kwargs=conditions, return_dict=False
            )[0]
        finally:
            self.hub.coupling = None
        return noise
