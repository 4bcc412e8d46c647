"""A stand-in for ComfyUI's module of that name: its output folder is `COMFYUI_OUTPUT`."""

from __future__ import annotations

import os


def get_output_directory() -> str:
    """Return the folder that nodes write to."""
    return os.environ["COMFYUI_OUTPUT"]
