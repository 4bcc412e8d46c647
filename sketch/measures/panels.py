"""Milliseconds a panel: the sketch renderer beside rasterising an empty drawing, the reader beside decoding the PNG."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from PIL import Image

from katha.protocols import FrameRequest
from katha_sketch.drawing import SketchRenderer, rasterise
from katha_sketch.reader import load_reader

__all__ = ["measure_reader", "measure_sketch"]

_PROMPTS = (
    "Forest by day. The angry lion roars at the small grey mouse. The mouse is afraid. A net, a tree.",
    "River in the evening. The happy monkey gives the apple to the crocodile.",
    "Snow by day. The sad grasshopper begs the ant. A grain.",
    "Palace at night. The king talks to the queen. The old woman carries the basket. A throne, a lamp.",
    "Market by day. The merchant gives the coin to the boy. The dog chases the cat. A cart, a drum, a sack.",
)
_SEEDS = (42, 123, 2026)
_WIDTH, _HEIGHT = 768, 512


def _requests() -> list[FrameRequest]:
    return [FrameRequest(prompt, seed, _WIDTH, _HEIGHT) for prompt in _PROMPTS for seed in _SEEDS]


def _ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def measure_sketch() -> dict[str, Any]:
    """Median over fifteen panels after a warm-up."""
    renderer = SketchRenderer()
    empty = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"/>'
    list(renderer.render_board(_requests()[:1]))
    ours = [_ms(lambda one=request: list(renderer.render_board([one]))) for request in _requests()]
    theirs = [_ms(lambda: rasterise(empty, _WIDTH, _HEIGHT)) for _ in ours]
    return {
        "ms_per_panel": round(median(ours), 1),
        "slowest_ms": round(max(ours), 1),
        "target_ms": 100,
        "baseline": "rasterising an empty drawing of the same size",
        "baseline_ms": round(median(theirs), 1),
        "ratio": round(median(ours) / median(theirs), 1),
    }


def _decode(png: bytes) -> None:
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").resize((288, 192))


def measure_reader() -> dict[str, Any]:
    """Median over fifteen panels after a warm-up, one thread."""
    reader = load_reader()
    panels = list(SketchRenderer().render_board(_requests()))
    reader.read(panels[0])
    ours = [_ms(lambda one=png: reader.read(one)) for png in panels]
    theirs = [_ms(lambda one=png: _decode(one)) for png in panels]
    return {
        "ms_per_panel": round(median(ours), 1),
        "slowest_ms": round(max(ours), 1),
        "target_ms": 40,
        "baseline": "decoding and resizing the PNG with Pillow",
        "baseline_ms": round(median(theirs), 1),
        "ratio": round(median(ours) / median(theirs), 1),
    }


if __name__ == "__main__":
    print(json.dumps({"sketch": measure_sketch(), "reader": measure_reader()}))
