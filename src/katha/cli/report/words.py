"""Numbers and names as the report words them."""

from __future__ import annotations

from katha.schema import Dimension

__all__ = ["DIMENSION_WORDS", "percent", "points", "signed"]

DIMENSION_WORDS: dict[Dimension, str] = {
    "action_visibility": "Action",
    "causal": "Cause",
    "emotional": "Emotion",
    "consequence": "Consequence",
    "temporal_order": "Order",
    "moral": "Moral",
}


def points(value: float | None) -> str:
    """Percentage points with one decimal, or a dash."""
    return "\u2013" if value is None else f"{value:.1f}"


def percent(fraction: float | None) -> str:
    """A fraction of 0 to 1 in whole per cent, or a dash."""
    return "\u2013" if fraction is None else f"{100 * fraction:.0f}%"


def signed(before: float | None, after: float | None) -> str:
    """The change in percentage points with its sign, or a dash."""
    return "\u2013" if before is None or after is None else f"{after - before:+.1f}"
