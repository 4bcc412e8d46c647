"""A reader that knows what was drawn: it separates the judge's rules from how well the shipped weights read pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from katha.eval_bridge.reader import Concepts, FigureReading, FrameReading, PropReading, Reader, load_concepts
from katha.jsonio import sha256_hex
from katha.renderers.sketch import Composition, rasterise


class KnowingReader(Reader):
    """Reads pictures that `draw` made by their layout, and every other picture as an empty sheet."""

    def __init__(self) -> None:
        self.concepts: Concepts = load_concepts()
        self._known: dict[str, FrameReading] = {}

    def draw(self, frame: Composition) -> bytes:
        """The PNG of `frame`, known from now on."""
        png = rasterise(frame.svg, frame.width, frame.height)
        self._known[sha256_hex(png)] = _reading(frame)
        return png

    def spec(self) -> Mapping[str, Any]:
        return {"name": "knowing", "version": "1", "weights": "none"}

    def read_many(self, pictures: Iterable[bytes]) -> list[FrameReading]:
        empty = FrameReading((), (), {"none": 1.0}, {"day": 1.0}, 1.0)
        return [self._known.get(sha256_hex(picture), empty) for picture in pictures]


def _reading(frame: Composition) -> FrameReading:
    figures, props = [], []
    for placed in frame.placed:
        x0, y0, x1, y1 = placed.bbox
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        if placed.kind == "character":
            does, feels = {placed.action or "none": 1.0}, {placed.emotion or "none": 1.0}
            figures.append(FigureReading(placed.concept, 1.0, x, y, does, feels))
        else:
            props.append(PropReading(placed.concept, 1.0, x, y))
    return FrameReading(tuple(figures), tuple(props), {frame.setting or "none": 1.0}, {frame.time or "day": 1.0}, 1.0)
