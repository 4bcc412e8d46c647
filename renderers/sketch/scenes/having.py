"""What two people have between them: a load that both carry, and what each gives the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from katha.renderers.sketch.scenes.wearing import Wearing

__all__ = ["Having"]


class Having(Wearing):
    """Puts things between two."""

    def _carried_by_two(self, agents: Sequence[str], held: str) -> None:
        """Two with a large thing between them, face to face."""
        first, other = (self._id(key) for key in agents)
        self.things[held] = replace(self.things[held], held_by=first, role="object")
        for key, target in zip(agents, (other, first), strict=True):
            self.actors[key] = replace(self.actors[key], deed="carry_together", target=target)

    def _exchanged(self, held: str, other: str) -> None:
        """Each of two has one of what they exchange."""
        one = replace(self.things[held], count=1)
        self.things[held] = one
        self.things[f"{held} too"] = replace(one, id=f"{held} too", held_by=other)
