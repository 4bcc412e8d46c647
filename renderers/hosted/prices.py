"""What a picture of an image service costs, by its row of `configs/providers.yaml`: by tokens, or by the picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from katha.models.client import Vendor

_PROMPT_TOKENS = 1_000
"""Of a prompt, for a price that a frame has at most."""


def picture_price(vendor: Vendor, quality: str | None, sent: int, size: tuple[int, int]) -> float | None:
    """Return the US dollars of one picture of `size` in pixels, drawn from `sent` pictures; the dearest quality where
    it is not told; None where no price is known."""
    card = vendor.card
    pixels, sent = size[0] * size[1], min(sent, card["references"])
    if card.get("dollars"):
        return _by_picture(card["dollars"], quality, sent, pixels)
    qualities: Mapping[str, int] = card["picture_tokens"]
    if not qualities:
        return None
    tokens = float(_of_quality(qualities, quality))
    if card["picture_pixels"]:
        tokens *= max(1.0, pixels / card["picture_pixels"])
    counted = {"text": _PROMPT_TOKENS, "image": sent * card["sent_tokens"], "output": round(tokens)}
    return vendor.cost(counted)


def _by_picture(dollars: Mapping[str, Any], quality: str | None, sent: int, pixels: int) -> float:
    drawn = dollars["edited"] if sent and "edited" in dollars else dollars["drawn"]
    further = max(0, math.ceil(pixels / dollars["pixels"]) - 1) if "pixels" in dollars else 0
    return float(_of_quality(drawn, quality) + further * dollars.get("more", 0.0) + sent * dollars.get("sent", 0.0))


def _of_quality(rows: Mapping[str, float], quality: str | None) -> float:
    return rows.get(quality or "", max(rows.values()))
