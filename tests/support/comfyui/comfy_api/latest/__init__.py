"""The names of ComfyUI's V3 node interface that the nodes use: `ComfyExtension` and `io`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from comfy_api.latest import io

__all__ = ["ComfyExtension", "io"]


class ComfyExtension(ABC):
    """A package of nodes."""

    async def on_load(self) -> None:
        """Prepare what the nodes share."""
        return

    @abstractmethod
    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        """Return the nodes."""
