"""Scenery: motifs that places are layered of, by name, with the sky and what falls from it."""

from collections.abc import Mapping
from types import ModuleType

from katha_sketch.drawing.settings import air, buildings, indoors, over, plants, terrain, water
from katha_sketch.drawing.settings.stage import Motif

__all__ = ["motifs"]

_MODULES: tuple[ModuleType, ...] = (terrain, plants, water, buildings, indoors, over)


def motifs() -> Mapping[str, Motif]:
    """Every motif by name: the public functions of the modules, and clouds."""
    found = {name: getattr(module, name) for module in _MODULES for name in module.__all__}
    return {**found, "clouds": air.clouds, "cloud_floor": air.cloud_floor}
