"""Motion for animatics: the camera over a picture; the layers of a drawing apart, faded in, eyes that blink.

Nothing is drawn for it, and the board stays as it is. A drawing's layers are its groups, in bands from the farthest to
the nearest. The camera moves as the frame says; where it says nothing, it comes a little closer to what must be seen in
a drawing, and any other picture stands still.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from katha.app.exports.camera import CameraMove, View
from katha.app.exports.vectors import svg_root
from katha.renderers.vector.brief import groups_of
from katha.renderers.vector.raster import SECONDS_PASSED, layers

if TYPE_CHECKING:
    from PIL.Image import Image

_SVG = "{http://www.w3.org/2000/svg}"
_BANDS = 4
"""Depths that move by themselves."""
_NEARER = CameraMove(View(), View(1.07), deep=True)
"""How the camera moves over a drawing of which nobody says it."""
_ALONG = CameraMove(View(1.07, 3 / 7), View(1.07, -3 / 7), deep=True)
"""The same in a wide shot."""
_DEPTH = 0.5
"""How much more the nearest band moves than the farthest."""
_ENTERS = (0.25, 0.75)
"""When a thing that the frame before did not have comes in, in seconds."""
_BLINK = (0.55, 0.14)
"""When eyes blink, as a share of the shot, and for how many seconds."""
_LID = 0.12
"""How much of an eye's height is left in a blink."""


@dataclass(frozen=True)
class Band:
    """Layers that move together. depth: 0 for the farthest, 1 for the nearest. enters: they come into the shot."""

    picture: Image
    shut: Image | None
    depth: float
    enters: bool


class InMotion(ABC):
    """A frame in motion."""

    @abstractmethod
    def at(self, second: float, seconds: float) -> Image:
        """Return the picture at a time of a shot of so many seconds, in RGB."""


@dataclass(frozen=True)
class Still(InMotion):
    """A picture that the camera goes over. picture: in RGB, as much larger than the film as the move comes closer."""

    picture: Image
    size: tuple[int, int]
    way: CameraMove

    def at(self, second: float, seconds: float) -> Image:
        """Return the picture at a time of its shot, in RGB."""
        from PIL import Image

        view = self.way.at(second, seconds)
        (left, top), (wide, tall) = view.window(), self.picture.size
        seen = (left * wide, top * tall, (left + 1 / view.zoom) * wide, (top + 1 / view.zoom) * tall)
        return self.picture.resize(self.size, Image.Resampling.BICUBIC, seen)


class Moving(InMotion):
    """A drawing in motion."""

    def __init__(
        self,
        svg: str,
        size: tuple[int, int],
        must_show: Sequence[str] = (),
        *,
        before: frozenset[str] = frozenset(),
        wide: bool = False,
        move: CameraMove | None = None,
    ) -> None:
        """before: the ids of what the frame before shows. move: the camera's; unless told it comes closer to what must
        be seen, or in a `wide` shot goes to the side."""
        self.svg, self.size, self.must_show, self.before = svg, size, tuple(must_show), before
        self.way = move or (_ALONG if wide else _NEARER)

    def at(self, second: float, seconds: float) -> Image:
        """Return the picture at a time of its shot, in RGB."""
        from PIL import Image

        view = self.way.at(second, seconds)
        blinks = _BLINK[0] * seconds <= second < _BLINK[0] * seconds + _BLINK[1] and seconds > 4 * _BLINK[1]
        out = Image.new("RGBA", self.size, "white")
        for band in self.bands:
            picture = band.shut if blinks and band.shut is not None else band.picture
            self._laid(out, picture, view, band.depth, _shown(second) if band.enters else 1.0)
        return out.convert("RGB")

    def _laid(self, out: Image, picture: Image, view: View, depth: float, opacity: float) -> None:
        """Lay a band over a picture, as the camera sees it then."""
        from PIL import Image

        box = picture.getbbox()
        if box is None or opacity == 0:
            return
        width, height = self.size
        more = 1 + _DEPTH * (depth - 0.5) if self.way.deep else 1.0
        zoom = 1 + (view.zoom - 1) * more
        x, y = self.focus if self.way.straight else (width / 2, height / 2)
        side, rise = (-length * share * (zoom - 1) / 2 for length, share in ((width, view.across), (height, view.down)))
        fine = picture.width / width
        # Where a place of the band, which is drawn larger, is seen: zoomed from the focus, moved to the side.
        left, right = (x + side + (edge / fine - x) * zoom for edge in (box[0], box[2]))
        top, bottom = (y + rise + (edge / fine - y) * zoom for edge in (box[1], box[3]))
        into = (max(0, int(left)), max(0, int(top)), min(width, int(right) + 2), min(height, int(bottom) + 2))
        if into[0] >= into[2] or into[1] >= into[3]:
            return
        across = fine * (x + (into[0] - x - side) / zoom)
        down = fine * (y + (into[1] - y - rise) / zoom)
        found = picture.transform(
            (into[2] - into[0], into[3] - into[1]),
            Image.Transform.AFFINE,
            (fine / zoom, 0, across, 0, fine / zoom, down),
            Image.Resampling.BILINEAR,
        )
        if opacity < 1:
            found.putalpha(found.getchannel("A").point(lambda alpha: round(alpha * opacity)))
        out.alpha_composite(found, into[:2])

    @cached_property
    def focus(self) -> tuple[float, float]:
        """The middle of what must be seen, in pixels of the film; of the frame, where that is empty."""
        width, height = self.size
        boxes = [
            box
            for layer in self._layers
            if layer.get("id") in self._groups and (box := self._picture([layer], 160).getbbox()) is not None
        ]
        if not boxes:
            return width / 2, height / 2
        left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
        right, bottom = max(box[2] for box in boxes), max(box[3] for box in boxes)
        scale = width / 160
        return (left + right) / 2 * scale, min(float(height), (top + bottom) / 2 * scale)

    @cached_property
    def bands(self) -> Sequence[Band]:
        """The layers in bands; what comes in and whoever blinks is a band of its own."""
        own = [self._enters(layer) or bool(_eyes(layer)) for layer in self._layers]
        size = max(1, -(-len(own) // _BANDS))
        parts: list[list[Element]] = []
        for number, layer in enumerate(self._layers):
            fresh = not parts or own[number] or own[number - 1] or len(parts[-1]) >= size
            parts += [[layer]] if fresh else []
            parts[-1] += [] if fresh else [layer]
        last = max(1, len(parts) - 1)
        closest = 1 + (self.way.closest - 1) * (1 + _DEPTH / 2)
        side = round(self.size[0] * closest)
        return [
            Band(
                self._picture(part, side),
                self._picture([_shut(layer, self._root) for layer in part], side) if _eyes(part[0]) else None,
                place / last,
                self._enters(part[0]),
            )
            for place, part in enumerate(parts)
        ]

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of the layers."""
        return frozenset(layer.get("id", "") for layer in self._layers) - {""}

    def _enters(self, layer: Element) -> bool:
        """Return whether a thing that must be seen was not in the frame before; people are there from the beginning."""
        name = layer.get("id", "")
        people = any("-head" in item.get("href", "") for item in layer.iter(f"{_SVG}use"))
        return bool(self.before) and name in self._groups and name not in self.before and not people

    @cached_property
    def _groups(self) -> frozenset[str]:
        return frozenset(group.id for group in groups_of(self.must_show))

    @cached_property
    def _root(self) -> Element:
        return svg_root(self.svg)

    @cached_property
    def _layers(self) -> list[Element]:
        return [item for item in self._root if item.tag not in (f"{_SVG}defs", f"{_SVG}title", f"{_SVG}desc")]

    def _picture(self, part: Sequence[Element], side: int) -> Image:
        """Return layers alone, `side` pixels wide, on nothing."""
        root = Element(self._root.tag, self._root.attrib)
        root.extend([item for item in self._root if item.tag == f"{_SVG}defs"])
        root.extend(part)
        return _drawn(root, side, max(1, round(side * self.size[1] / self.size[0])))


def _drawn(root: Element, width: int, height: int) -> Image:
    return layers([(ElementTree.tostring(root, "unicode"), width, height)], seconds=SECONDS_PASSED)[0]


def _shown(second: float) -> float:
    """Return how much of a thing that comes in is there."""
    begin, end = _ENTERS
    return min(1.0, max(0.0, (second - begin) / (end - begin)))


def _eyes(layer: Element) -> list[Element]:
    return [item for item in layer.iter(f"{_SVG}use") if "pupil" in item.get("href", "")]


def _shut(layer: Element, root: Element) -> Element:
    """Return a layer whose eyes are nearly shut."""
    found = deepcopy(layer)
    for eye in _eyes(found):
        middle = _middle(eye.get("href", ""), root) + float(eye.get("y", 0))
        flat = f"translate(0 {middle * (1 - _LID):.2f}) scale(1 {_LID})"
        eye.set("transform", f"{eye.get('transform', '')} {flat}".strip())
    return found


def _middle(href: str, root: Element) -> float:
    """Return how far below its origin the middle of a pair of pupils is."""
    lone = Element(root.tag, {"viewBox": "-200 -300 400 400"})
    lone.extend([item for item in root if item.tag == f"{_SVG}defs"])
    lone.append(Element(f"{_SVG}use", {"href": href}))
    box = _drawn(lone, 400, 400).getbbox()
    return (box[1] + box[3]) / 2 - 300 if box is not None else 0.0
