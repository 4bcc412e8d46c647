"""The two ends of a drawing: noise as the plain pipeline draws it, and latents to pixels as it decodes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from katha.renderers.diffusion.frames import generator_of
from katha.renderers.sharing.grids import Grid

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["decode", "latent_grid", "make_scheduler", "noise_of", "size_conditioning"]


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
