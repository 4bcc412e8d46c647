"""katha in ComfyUI: plan a story, judge a board of any workflow, and write the prompt of the bridge that it lacks."""

from .nodes import comfy_entrypoint

__all__ = ["comfy_entrypoint"]
