"""`sketch`: the embedded renderer. Works offline, without weights, in milliseconds a frame."""

from katha_sketch.drawing.renderer import SketchRenderer, layered_svg
from katha_sketch.drawing.svg import rasterise

__all__ = ["SketchRenderer", "layered_svg", "rasterise"]
