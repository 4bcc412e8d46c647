"""How much of a face is seen in a frame, and how large it is: heads of the cast in what must be seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

import numpy as np

from katha.configs import load_config
from katha.renderers.vector.raster import layers
from katha.renderers.vector.svg import Drawing, alone, closure, write_svg

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Doubt", "face_faults"]

_SIDE = 320
_HALF = 127
_AWAY = frozenset({"back"})
"""Heads of which no face is seen."""
_TURNED = frozenset({"back", "down"})
_FACE_SIDE = 480
_DIFFERS = 40
"""A change of a channel, of 255, by which two moods differ."""
_FEWEST = 20
"""Pixels of a face by which it can be told."""
_MOST_MOODS = 3
_FILTER = '<filter id="{0}"><feFlood flood-color="{1}"/><feComposite in2="SourceGraphic" operator="in"/></filter>'
_MARKS = {"katha-mark-one": "#ff00ff", "katha-mark-two": "#00ff00"}
"""A head is drawn in one colour and in the other: where the two pictures differ, it is seen."""
_HEAD = re.compile(r"#(\w+)-head-([\w-]+)")


class Doubt(str):
    """A fault that may be meant: it is told where the model looks anyway, and nothing is sent back for it."""


@dataclass(frozen=True)
class _Face:
    """A head in a frame: whose, in which mood, in what group, how much of it is seen, how high, of the frame's."""

    prefix: str
    mood: str
    group: str
    seen: float
    height: float


def face_faults(
    whole: Drawing, cast: Drawing | None, groups: Sequence[Element], prefixes: Mapping[str, str], shot: str
) -> list[str]:
    """Return which faces are covered or too small; a `Doubt` where a hat or a hand covers a head whose eyes and mouth
    are seen, and where a face that need not be seen is large enough.

    whole: a frame with the parts that it uses. cast: where they are from. groups: what must be seen. prefixes: the
    prefix of the ids of each character that is in it. shot: its size, "" where none is told.
    """
    limits = load_config("vector.yaml")["faces"]
    names = {prefix: name for name, prefix in prefixes.items()}
    heads = [(group, *found) for group in groups for found in _heads(group) if found[1] in names]
    faces = list(_measured(whole, heads))
    faults: list[str] = []
    for prefix in dict.fromkeys(face.prefix for face in faces):
        own = [face for face in faces if face.prefix == prefix]
        best = max(own, key=lambda face: face.seen)
        if best.seen < 1 - limits["covered"]:
            said = (
                f'{1 - best.seen:.0%} of the head "{prefix}-head-{best.mood}" of {names[prefix]} in '
                f'id="{best.group}" is covered by what is drawn later: move one of the two, or draw the head after it.'
            )
            looked = (found for found in heads if found[2] == prefix)
            clear = any(_hidden(whole, cast, head, mood) < limits["features"] for _, head, _, mood in looked)
            faults.append(Doubt(said) if clear else said)
    least = limits["height"].get(shot, 0.0)
    largest = max((face.height for face in faces), default=least)
    if largest < least:
        said = (
            f"The largest face of what must be seen is {largest:.0%} of the frame's height, too small for a shot that "
            f"is {shot}: make it at least {least:.0%}."
        )
        others = [(whole.root, *found) for found in _heads(whole.root) if found[1] in names]
        large = any(face.height >= least and face.seen >= 1 - limits["covered"] for face in _measured(whole, others))
        faults.append(Doubt(said) if large else said)
    return faults


def _hidden(whole: Drawing, cast: Drawing | None, head: Element, mood: str) -> float:
    """Return the share of a face that is covered in a frame, as the more generous of two ways has it: of the pixels in
    which its moods differ (brows, lids, mouth), and of the part of a head in which eyes and mouth are."""
    width, height = whole.view[2:]
    size = (_FACE_SIDE, max(1, round(_FACE_SIDE * height / width)))
    view = " ".join(f"{edge:g}" for edge in whole.view)
    prefix = head.get("href", "").partition("-head-")[0][1:]
    pupils = [item for item in whole.root.iter("use") if item.get("href", "").startswith(f"#{prefix}-pupil")]
    bare = {item: {"display": "none"} for item in pupils}
    asked = [(_marked(whole.root, head, mark, bare), *size) for mark in _MARKS]
    asked += [(text, *size) for text in _in_moods(whole, cast, head, prefix, mood, view)]
    one, other, own, *moods = (np.asarray(picture, dtype=np.int16) for picture in layers(asked))
    seen = np.abs(one - other)[:, :, :3].max(axis=2) > _HALF
    drawn = own[:, :, 3] > _HALF
    places = [_middle(drawn)]
    if moods:
        places.append(drawn & np.any([np.abs(own - mood).max(axis=2) > _DIFFERS for mood in moods], axis=0))
    shares = [1 - float((seen & place).sum() / place.sum()) for place in places if place.sum() >= _FEWEST]
    return min(shares, default=0.0)


def _in_moods(whole: Drawing, cast: Drawing | None, head: Element, prefix: str, mood: str, view: str) -> Iterator[str]:
    """Yield drawings of a head alone, where it stands in a frame: as it is, and in other moods that the cast has."""
    yield write_svg(alone(whole, head, view))
    known = cast.ids if cast is not None else {}
    others = [name for name in known if name.startswith(f"{prefix}-head-") and name.rpartition("-")[2] not in _TURNED]
    for name in [name for name in others if name != f"{prefix}-head-{mood}"][:_MOST_MOODS]:
        root = Element(whole.root.tag, whole.root.attrib)
        holder = Element("defs")
        if cast is not None:
            needed = [known[name], *closure([known[name]], cast)]
            holder.extend(part for part in dict.fromkeys(needed) if part.get("id") not in whole.ids)
        root.append(holder)
        root.extend(whole.root)
        text = write_svg(alone(Drawing(root), head, view, [name]), {head: {"href": f"#{name}"}})
        yield text


def _middle(drawn: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where eyes and mouth are in a head: below the forehead, above the chin, between the ears."""
    place = np.zeros_like(drawn)
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    if rows.size:
        high, wide = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
        top, bottom = rows[0] + round(0.38 * high), rows[0] + round(0.95 * high)
        place[top:bottom, columns[0] + round(0.1 * wide) : columns[0] + round(0.9 * wide)] = True
    return place & drawn


def _heads(group: Element) -> Iterator[tuple[Element, str, str]]:
    """Yield the heads that a group uses: where, of which prefix, in which mood."""
    for element in group.iter("use"):
        found = _HEAD.fullmatch(element.get("href", ""))
        if found is not None and found[2] not in _AWAY:
            yield element, found[1], found[2]


def _measured(whole: Drawing, heads: Sequence[tuple[Element, Element, str, str]]) -> Iterator[_Face]:
    left, top, width, height = whole.view
    high = max(1, round(_SIDE * height / width))
    wide = f"{left - width:g} {top - height:g} {3 * width:g} {3 * height:g}"
    asked = []
    for _, head, _, _ in heads:
        asked += [(_marked(whole.root, head, mark), _SIDE, high) for mark in _MARKS]
        asked.append((write_svg(alone(whole, head, wide)), 3 * _SIDE, 3 * high))
    pictures = [np.asarray(picture, dtype=np.int16) for picture in layers(asked)]
    for place, (group, _, prefix, mood) in enumerate(heads):
        one, other, head_alone = pictures[3 * place : 3 * place + 3]
        drawn = head_alone[:, :, 3] > _HALF
        inside = drawn[high : 2 * high, _SIDE : 2 * _SIDE]
        if inside.any():
            seen = (np.abs(one - other)[:, :, :3].max(axis=2) > _HALF).sum() / inside.sum()
            yield _Face(prefix, mood, group.get("id", ""), min(1.0, float(seen)), _rows(drawn) / high)


def _rows(drawn: NDArray[np.bool_]) -> int:
    """Return how many rows there are from the first that something is in to the last."""
    found = np.flatnonzero(drawn.any(axis=1))
    return int(found[-1] - found[0] + 1)


def _marked(root: Element, head: Element, mark: str, also: Mapping[Element, Mapping[str, str]] | None = None) -> str:
    """Return the drawing with one head in one flat colour. also: what else is changed."""
    text = write_svg(root, {**(also or {}), head: {"filter": f"url(#{mark})"}})
    start = text.index(">") + 1
    return text[:start] + _FILTER.format(mark, _MARKS[mark]) + text[start:]
