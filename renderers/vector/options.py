"""The options of `vector`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DRAWING_TOKENS = 24_000


@dataclass(frozen=True, kw_only=True)
class VectorOptions:
    """How a language model is asked for drawings."""

    base_url: str | None = None
    """Where the model is, if not where its vendor is."""
    max_tokens: int = DRAWING_TOKENS
    """The longest reply."""
    timeout: float | None = None
    """Seconds that one reply may take."""
    concurrency: int = 8
    """Frames that are drawn at once."""
    draw: Literal["together", "in-order", "packed"] | None = None
    """Frames side by side from the cast (together, the usual way), each with those before it, or several in one reply
    (packed, where a person carries the replies)."""
    rounds: int | None = None
    """Looks at most; 0: none; usually 2."""
    eyes: bool | None = None
    """Whether the model is shown pictures; it is unless a person carries them."""
    sheet: bool = True
    """Whether it looks at the whole board at the end."""
    cast: Path | None = None
    """A cast sheet of your own (SVG), drawn from instead of a new one."""
    contract: Literal["full", "small", "tried"] | None = None
    """How much is asked of the model: full, small (simpler drawings), or tried: what an entrance test of two to three
    calls shows it can do (the usual way for models of this machine; others are asked for all)."""
    letters: bool = False
    """Have frames looked through for letters (`katha[ocr]`), which go back to the model."""
    shares: int | None = None
    """In how many the cast is drawn side by side, each by a call of its own; 1: whole."""
