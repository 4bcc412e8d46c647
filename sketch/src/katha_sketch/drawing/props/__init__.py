"""Props of the sketch renderer: things, drawn from shapes in YAML."""

from __future__ import annotations

from katha_sketch.drawing.props.drawing import Drawn, draw_prop

__all__ = ["Drawn", "draw_prop"]
