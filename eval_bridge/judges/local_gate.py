"""The gate of prefix reuse: a sample of questions is asked again the naive way, and answers that flip are counted."""

from __future__ import annotations

from dataclasses import dataclass

from katha.errors import JudgeError, UsageError
from katha.jsonio import digest

__all__ = ["ReuseGate"]

_SCALE = 0x1_0000_0000


@dataclass
class ReuseGate:
    """rate: the share of questions checked, 0 to 1. Above `limit` flips per check, from `least` checks on, it stops."""

    rate: float = 0.0
    limit: float = 0.05
    least: int = 20
    checked: int = 0
    flipped: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate <= 1.0:
            raise UsageError(f"verify_reuse is a share between 0 and 1, not {self.rate!r}.")

    @property
    def flip_rate(self) -> float | None:
        """Flips per check; None before the first."""
        return self.flipped / self.checked if self.checked else None

    def wants(self, packet: str, prompt: str) -> bool:
        """Whether the question with these hashes is in the sample; the same ones in every run."""
        return int(digest([packet, prompt])[:8], 16) < self.rate * _SCALE

    def record(self, reused: str, naive: str) -> str:
        """Count one comparison of raw replies: `same` or `flipped`.

        Raises:
            JudgeError: too many flipped.
        """
        self.checked += 1
        self.flipped += reused != naive
        if self.checked >= self.least and self.flipped > self.limit * self.checked:
            raise JudgeError(
                f"Prefix reuse changed {self.flipped} of {self.checked} replies; at most {self.limit:.0%} may change.",
                hint="Use reuse='off', or a wider dtype.",
            )
        return "same" if reused == naive else "flipped"
