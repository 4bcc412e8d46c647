"""`sketch`: the embedded renderer. Works offline, without weights, in milliseconds a frame."""

from katha.renderers.sketch.compose import Composition, Placed, compose, compose_scene, rasterise
from katha.renderers.sketch.layers import layered_svg
from katha.renderers.sketch.renderer import SketchRenderer

__all__ = ["Composition", "Placed", "SketchRenderer", "compose", "compose_scene", "layered_svg", "rasterise"]
