"""Places: each setting of the vocabulary as layers of motifs, at any time of day and weather."""

from katha.renderers.sketch.settings.draw import Backdrop, draw_setting

__all__ = ["Backdrop", "draw_setting"]
