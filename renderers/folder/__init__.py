"""`folder`: boards that anyone else made, in the layouts of `configs/boards.yaml`, to be judged and repaired."""

from katha.renderers.folder.layouts import Layout, find_board, load_layouts
from katha.renderers.folder.pictures import read_picture
from katha.renderers.folder.renderer import FolderRenderer

__all__ = ["FolderRenderer", "Layout", "find_board", "load_layouts", "read_picture"]
