"""Characters of the sketch: every animal and person of the vocabulary, with looks, actions and feelings."""

from katha.renderers.sketch.figures.draw import draw_figure
from katha.renderers.sketch.figures.rig import Figure, FigureSpec

__all__ = ["Figure", "FigureSpec", "draw_figure"]
