"""Props of the sketch renderer: things, drawn from shapes in YAML."""

from __future__ import annotations

from katha.renderers.sketch.props.drawing import Drawn, draw_prop

__all__ = ["Drawn", "draw_prop"]
