"""StoryDiffusion (consistent self-attention): frames that read an identity bank of each of their characters."""

from katha.renderers.storydiffusion.renderer import StoryDiffusionRenderer

__all__ = ["StoryDiffusionRenderer"]
