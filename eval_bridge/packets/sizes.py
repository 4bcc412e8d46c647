"""Pictures at the size at which a judge sees them: made smaller once, before the packet has its hash.

A vendor refuses what is too large and shows its model no more than so many pixels of the rest
(`configs/providers.yaml`). Pictures within the limits keep their bytes, and their packet its hash.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from katha.errors import UsageError
from katha.eval_bridge.packets.packets import clean_image
from katha.pictures import as_png, decoded, png_size
from katha.protocols import Evidence, PictureLimits
from katha.schema import Packet

_KEPT = 256
"""Pictures that are kept as they were made smaller; those of a few dozen boards."""
# Smaller pictures show no faces: a packet that does not fit even so is refused.
_LEAST = 128
_IN_BASE64 = 4 / 3
_SPARE = 0.95
"""A picture of half the pixels has a little more than half the bytes."""


def fitted(width: int, height: int, side: int | None) -> tuple[int, int]:
    """Return the size of a picture that is made smaller, in proportion, until no side is longer than `side`."""
    longest = max(width, height)
    if side is None or longest <= side:
        return width, height
    return max(1, round(width * side / longest)), max(1, round(height * side / longest))


@lru_cache(maxsize=_KEPT)
def smaller(png: bytes, side: int) -> bytes:
    """Return a picture with no side longer than `side`, as PNG; the same bytes every time."""
    from PIL.Image import Resampling

    size = fitted(*png_size(png), side)
    return png if size == png_size(png) else as_png(decoded(png).resize(size, Resampling.LANCZOS))


def fit_packet(packet: Packet, evidence: Evidence, limits: PictureLimits | None) -> tuple[Packet, Evidence]:
    """Return a packet and its evidence as a judge with these limits is shown them: the same where they fit.

    Raises:
        UsageError: there are more pictures than the judge takes.
    """
    if limits is None or not evidence.images:
        return packet, evidence
    if limits.count is not None and len(evidence.images) > limits.count:
        raise UsageError(
            f"The board of {packet.story_id!r} has {len(evidence.images)} pictures; the judge takes at most "
            f"{limits.count} in one call.",
            hint="Give a shorter board, or another judge.",
        )
    shown = fit_images(evidence.images, limits)
    if shown == evidence.images:
        return packet, evidence
    hashes = tuple(clean_image(png).sha256 for png in shown)
    return packet.model_copy(update={"images": hashes}), replace(evidence, images=shown)


@lru_cache(maxsize=16)
def fit_images(images: tuple[bytes, ...], limits: PictureLimits) -> tuple[bytes, ...]:
    """Return pictures as a judge with these limits is shown them: the same where they fit."""
    side = limits.side or max(max(png_size(png)) for png in images)
    shown = tuple(smaller(png, side) for png in images)
    while (excess := _excess(shown, limits)) > 1 and side > _LEAST:
        side = min(side, max(max(png_size(png)) for png in shown))
        side = max(_LEAST, int(side * min(_SPARE, math.sqrt(1 / excess) * _SPARE)))
        shown = tuple(smaller(png, side) for png in images)
    return shown


def _excess(images: tuple[bytes, ...], limits: PictureLimits) -> float:
    """Return how many times the bytes of pictures, as they are sent, are what is allowed."""
    largest = _IN_BASE64 * max(map(len, images))
    return max(largest / (limits.bytes or math.inf), sent_bytes(images) / (limits.request or math.inf))


def sent_bytes(images: Sequence[bytes]) -> int:
    """Return the bytes that pictures have when they are sent."""
    return int(_IN_BASE64 * sum(map(len, images)))
