"""Props of the sketch renderer: things, drawn from the vocabulary's `draw:` entries."""

from __future__ import annotations

from katha.renderers.sketch.props.drawing import Drawn, draw_prop

__all__ = ["Drawn", "draw_prop"]
