"""katha: a story in, a storyboard out whose transitions can be understood from the images alone."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("katha")
