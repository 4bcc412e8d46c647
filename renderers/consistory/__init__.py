"""ConsiStory (arXiv 2402.03286): subjects that stay the same in the frames of a board, without training."""

from katha.renderers.consistory.renderer import ConsistoryRenderer

__all__ = ["ConsistoryRenderer"]
