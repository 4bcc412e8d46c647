"""`sketch`: the embedded renderer. Works offline, without weights, in milliseconds a frame."""

from katha.renderers.sketch.compose import Composition, Placed, compose, compose_scene
from katha.renderers.sketch.renderer import SketchRenderer
from katha.renderers.sketch.svg import rasterise

__all__ = ["Composition", "Placed", "SketchRenderer", "compose", "compose_scene", "rasterise"]
