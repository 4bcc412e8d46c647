"""Storyboards drawn by a language model as SVG: one cast, frames that use it, pictures by resvg."""

from katha.renderers.vector.renderer import VectorRenderer

__all__ = ["VectorRenderer"]
