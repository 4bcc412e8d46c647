"""What makes a plan drawable, each a switch that an ablation can turn off (`--planner-option without=shots`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from katha.errors import UsageError

__all__ = ["ABOUT", "Switches"]

ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "sheets": "a sheet and an anchor prompt for each character",
        "look": "the same look in every prompt that names the character",
        "place": "place and time of day of each scene",
        "links": "a visible sign for each abstract phrase",
        "shots": "shot size and angle chosen for what must be read",
        "questions": "recoverability questions with accepted answers",
    }
)
"""Each switch and what it adds."""


@dataclass(frozen=True)
class Switches:
    """Which parts of a plan are made. `look` needs `sheets`."""

    sheets: bool = True
    look: bool = True
    place: bool = True
    links: bool = True
    shots: bool = True
    questions: bool = True

    @classmethod
    def without(cls, names: Iterable[str]) -> Switches:
        """Everything but `names`.

        Raises:
            UsageError: there is no such switch.
        """
        off = set(names)
        unknown = sorted(off - ABOUT.keys())
        if unknown:
            raise UsageError(f"A plan has no part {unknown[0]!r}.", hint=f"Known: {', '.join(ABOUT)}.")
        if "sheets" in off:
            off.add("look")
        return cls(**dict.fromkeys(off, False))

    def off(self) -> list[str]:
        """The names of what is turned off."""
        return [item.name for item in fields(self) if not getattr(self, item.name)]
