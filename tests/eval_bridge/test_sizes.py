"""Pictures at the size that a vendor shows its model: scaled once, before the packet has its hash."""

from __future__ import annotations

import io

import numpy as np
import pytest
from evals import picture
from PIL import Image

from katha.errors import UsageError
from katha.eval_bridge.judges.anthropic import AnthropicJudge
from katha.eval_bridge.judges.openai import GeminiJudge, OpenAIJudge
from katha.eval_bridge.judges.served import VllmJudge
from katha.eval_bridge.packets.packets import evidence_sha256, make_packet, packet_sha256, scan_packet
from katha.eval_bridge.packets.sizes import fit_packet
from katha.models.client import keyless
from katha.pictures import png_size
from katha.protocols import PictureLimits


def noise(width: int, height: int) -> bytes:
    """A picture that compresses as badly as any."""
    buffer = io.BytesIO()
    pixels = np.random.default_rng(width).integers(0, 255, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def test_small_pictures_keep_their_bytes_and_their_hash() -> None:
    packet, evidence = make_packet("s", "image", [picture(1), picture(2)])
    assert fit_packet(packet, evidence, PictureLimits(side=24, bytes=10_000, request=20_000, count=2)) == (
        packet,
        evidence,
    )
    assert fit_packet(packet, evidence, None) == (packet, evidence)
    text = make_packet("s", "text", (), "A fox sleeps.")
    assert fit_packet(*text, PictureLimits(side=1)) == text


def test_the_size_is_in_the_packet_s_hash() -> None:
    packet, evidence = make_packet("s", "text+image", [noise(300, 200), picture(2)], "A fox sleeps.")
    fitted, shown = fit_packet(packet, evidence, PictureLimits(side=150))
    assert [png_size(png) for png in shown.images] == [(150, 100), (24, 16)]
    assert shown.images[1] == evidence.images[1]
    assert packet_sha256(fitted) == evidence_sha256(shown) != packet_sha256(packet)
    assert fit_packet(fitted, shown, PictureLimits(side=150)) == (fitted, shown)
    assert scan_packet(*fit_packet(*make_packet("s", "image", [noise(300, 200)]), PictureLimits(side=150))).clean


@pytest.mark.parametrize(
    "limits", [PictureLimits(bytes=60_000), PictureLimits(request=120_000), PictureLimits(side=280, request=90_000)]
)
def test_bytes_are_kept_to_by_fewer_pixels(limits: PictureLimits) -> None:
    _, shown = fit_packet(*make_packet("s", "image", [noise(300, 200), noise(301, 200)]), limits)
    sizes = [4 * len(png) / 3 for png in shown.images]
    assert max(sizes) <= (limits.bytes or 1e9)
    assert sum(sizes) <= (limits.request or 1e9)
    assert sum(sizes) > 0.5 * (limits.request or 2 * (limits.bytes or 0))


def test_too_many_pictures_are_refused_before_anything_is_asked() -> None:
    with pytest.raises(UsageError, match="2 pictures; the judge takes at most 1"):
        fit_packet(*make_packet("s", "image", [picture(1), picture(2)]), PictureLimits(count=1))


def test_every_vendor_has_its_limits_and_one_s_own_server_none() -> None:
    with keyless():
        hosted = [AnthropicJudge("claude-haiku-5-5"), OpenAIJudge("gpt-6-luna"), GeminiJudge("gemini-3.8-flash")]
        own = VllmJudge("toy")
    for judge in hosted:
        limits = judge.picture_limits
        assert limits is not None
        assert (limits.side or 0) >= 1_568
        assert (limits.request or 0) <= 28_000_000
        assert "picture" not in str(judge.spec())  # the judge is who it was: its packets say what they hold
    assert own.picture_limits is None
