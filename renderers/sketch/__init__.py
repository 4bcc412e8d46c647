"""`sketch`: the embedded renderer. Works offline, without weights, in milliseconds a frame."""

from katha.renderers.sketch.renderer import SketchRenderer, layered_svg
from katha.renderers.sketch.svg import rasterise

__all__ = ["SketchRenderer", "layered_svg", "rasterise"]
