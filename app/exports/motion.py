"""Motion for animatics: the camera over a picture; the layers of a drawing apart, faded in, eyes that blink.

Nothing is drawn for it, and the board stays as it is. A drawing's layers are its groups, in bands from the farthest to
the nearest. The camera moves as the frame says, and stands still where it says nothing: no move that nobody asked for
cuts a picture. One that is asked for over a drawing keeps faces and balloons inside, as far as it can.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from katha.app.exports.camera import HELD, NEARER, CameraMove, View, aimed
from katha.app.exports.eyelids import Lid, eyelids
from katha.app.exports.vectors import svg_root
from katha.renderers.vector.brief import groups_of
from katha.renderers.vector.raster import SECONDS_PASSED, layers

if TYPE_CHECKING:
    from PIL.Image import Image

_SVG = "{http://www.w3.org/2000/svg}"
_SMALL = 320
"""How many pixels wide a drawing is in which things are looked for."""
_BANDS = 4
"""Depths that move by themselves."""
_DEPTH = 2 * (NEARER - 1)
"""How much more the nearest band moves than the farthest."""
_ENTERS = (0.25, 0.75)
"""When a thing that the frame before did not have comes in, in seconds."""
_BLINK = 0.14
"""For how many seconds eyes are shut, once a shot."""
_BLINKS = (0.2, 0.35, 0.4017, 0.65)
"""When the heads of a shot blink, as shares of it: the earliest, how much later the first one, how much later each next
one, and the span that this goes around in."""
_KEPT = re.compile(r"-head\b|balloon|bubble|speech|thought")
"""The parts of a drawing that no move is to cut."""


@dataclass(frozen=True)
class Band:
    """Layers that move together. depth: 0 for the farthest, 1 for the nearest. enters: they come into the shot. lids:
    when each head blinks, as a share of the shot, and its lids."""

    picture: Image
    depth: float
    enters: bool
    lids: Sequence[tuple[float, Sequence[Lid]]] = ()

    def seen(self, shut: frozenset[float]) -> Image:
        """Return the picture with the eyes shut of who blinks at these shares of the shot."""
        closed = [lid for share, lids in self.lids if share in shut for lid in lids]
        if not closed:
            return self.picture
        out = self.picture.copy()
        for lid in closed:
            out.alpha_composite(lid.picture, lid.place)
        return out


class InMotion(ABC):
    """A frame in motion."""

    @property
    def moves(self) -> bool:
        """Return whether anything changes while it stands."""
        return True

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
        move: CameraMove | None = None,
    ) -> None:
        """before: the ids of what the frame before shows. move: the camera's; it stands still unless told."""
        self.svg, self.size, self.must_show, self.before = svg, size, tuple(must_show), before
        self.move = move or HELD
        self._last: tuple[object, Image] | None = None

    def at(self, second: float, seconds: float) -> Image:
        """Return the picture at a time of its shot, in RGB."""
        from PIL import Image

        view = self.way.at(second, seconds)
        shut = frozenset(
            share
            for band in self.bands
            for share, _ in band.lids
            if share * seconds <= second < share * seconds + _BLINK and seconds > 4 * _BLINK
        )
        come = _shown(second) if any(band.enters for band in self.bands) else 1.0
        state = view, shut, come
        if self._last is None or self._last[0] != state:  # most pictures of a still shot are the one before
            out = Image.new("RGBA", self.size, "white")
            for band in self.bands:
                self._laid(out, band.seen(shut), view, band.depth, come if band.enters else 1.0)
            self._last = state, out.convert("RGB")
        return self._last[1]

    @property
    def moves(self) -> bool:
        """Return whether the camera moves, something comes in, or eyes blink."""
        return self.way != HELD or any(band.enters or band.lids for band in self.bands)

    @cached_property
    def way(self) -> CameraMove:
        """The camera's move over this drawing: towards what must be seen, with faces and balloons inside."""
        width, height = self.size
        if self.move == HELD:
            return HELD
        box = self._box([part for layer in self._layers if (part := _pruned(layer)) is not None])
        return aimed(self.move, (self.focus[0] / width, self.focus[1] / height), box)

    def _box(self, layers: Sequence[Element]) -> tuple[float, float, float, float] | None:
        """Return where layers have something, in shares of the frame; None where they have nothing."""
        picture = self._picture(layers, _SMALL)
        box = picture.getbbox()
        if box is None:
            return None
        wide, tall = picture.size
        return box[0] / wide, box[1] / tall, box[2] / wide, box[3] / tall

    def _laid(self, out: Image, picture: Image, view: View, depth: float, opacity: float) -> None:
        """Lay a band over a picture, as the camera sees it then."""
        from PIL import Image

        box = picture.getbbox()
        if box is None or opacity == 0:
            return
        width, height = self.size
        more = 1 + _DEPTH * (depth - 0.5) if self.way.deep else 1.0
        zoom = 1 + (view.zoom - 1) * more
        x, y = width / 2, height / 2
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
        box = self._box([layer for layer in self._layers if layer.get("id") in self._groups])
        left, top, right, bottom = box or (0.0, 0.0, 1.0, 1.0)
        return (left + right) / 2 * width, (top + bottom) / 2 * height

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
        closest = 1 + (self.way.closest - 1) * NEARER
        side = round(self.size[0] * closest)
        heads = 0
        found: list[Band] = []
        for place, part in enumerate(parts):
            picture = self._picture(part, side)
            lids: list[tuple[float, Sequence[Lid]]] = []
            for who in sorted({_whose(eye) for eye in _eyes(part[0])}):
                closed = eyelids(picture, self._picture([_blind(part[0], who), *part[1:]], side))
                lids += [(_instant(heads), closed)] if closed else []
                heads += 1
            found.append(Band(picture, place / last, self._enters(part[0]), lids))
        return found

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


def _whose(eye: Element) -> str:
    """Return the prefix of the head that a pair of pupils is of."""
    return eye.get("href", "").partition("-pupil")[0]


def _instant(head: int) -> float:
    """Return when a head blinks, as a share of its shot: no two of the first ten of them at the same time."""
    first, later, step, span = _BLINKS
    return first + (later + head * step) % span


def _blind(layer: Element, who: str) -> Element:
    """Return a layer without the pupils of a head."""
    found = deepcopy(layer)
    above = {child: parent for parent in found.iter() for child in parent}
    for eye in _eyes(found):
        if _whose(eye) == who and eye in above:
            above[eye].remove(eye)
    return found


def _pruned(element: Element) -> Element | None:
    """Return of a layer what no move is to cut, where it stands; None where it has nothing of the kind."""
    inside = [part for child in element if (part := _pruned(child)) is not None]
    if not inside:  # a group is often called after all that is in it: what is farthest inside counts
        named = element.get("href", ""), element.get("id", "")
        return element if any(map(_KEPT.search, named)) else None
    out = Element(element.tag, element.attrib)
    out.extend(inside)
    return out
