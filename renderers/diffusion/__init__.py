"""Renderers that draw with diffusers' pipelines on this machine. Importing them loads neither torch nor diffusers."""

from katha.renderers.diffusion.checkpoint import Checkpoint, find_checkpoint
from katha.renderers.diffusion.flux import FluxRenderer
from katha.renderers.diffusion.kontext import KontextRenderer
from katha.renderers.diffusion.loading import load_pipeline
from katha.renderers.diffusion.pool import Loaded, PipelinePool, process_pool
from katha.renderers.diffusion.renderer import DiffusionRenderer, Job, Settings
from katha.renderers.diffusion.sdxl import SdxlRenderer

__all__ = [
    "Checkpoint",
    "DiffusionRenderer",
    "FluxRenderer",
    "Job",
    "KontextRenderer",
    "Loaded",
    "PipelinePool",
    "SdxlRenderer",
    "Settings",
    "find_checkpoint",
    "load_pipeline",
    "process_pool",
]
