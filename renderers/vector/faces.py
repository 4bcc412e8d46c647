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
from katha.renderers.vector.svg import Drawing, alone, write_svg

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["face_faults"]

_SIDE = 320
_HALF = 127
_AWAY = frozenset({"back"})
"""Heads of which no face is seen."""
_FILTER = '<filter id="{0}"><feFlood flood-color="{1}"/><feComposite in2="SourceGraphic" operator="in"/></filter>'
_MARKS = {"katha-mark-one": "#ff00ff", "katha-mark-two": "#00ff00"}
"""A head is drawn in one colour and in the other: where the two pictures differ, it is seen."""
_HEAD = re.compile(r"#(\w+)-head-([\w-]+)")


@dataclass(frozen=True)
class _Face:
    """A head in a frame: whose, in which mood, in what group, how much of it is seen, how high, of the frame's."""

    prefix: str
    mood: str
    group: str
    seen: float
    height: float


def face_faults(whole: Drawing, groups: Sequence[Element], prefixes: Mapping[str, str], shot: str) -> list[str]:
    """Return which faces are covered or too small. whole: a frame with the parts that it uses. groups: what must be
    seen. prefixes: the prefix of the ids of each character that is in it. shot: its size, "" where none is told."""
    limits = load_config("vector.yaml")["faces"]
    names = {prefix: name for name, prefix in prefixes.items()}
    heads = [(group, *found) for group in groups for found in _heads(group) if found[1] in names]
    faces = list(_measured(whole, heads))
    faults = []
    for prefix in dict.fromkeys(face.prefix for face in faces):
        best = max((face for face in faces if face.prefix == prefix), key=lambda face: face.seen)
        if best.seen < 1 - limits["covered"]:
            faults.append(
                f'{1 - best.seen:.0%} of the head "{prefix}-head-{best.mood}" of {names[prefix]} in '
                f'id="{best.group}" is covered by what is drawn later: move one of the two, or draw the head after it.'
            )
    least = limits["height"].get(shot, 0.0)
    largest = max((face.height for face in faces), default=least)
    if largest < least:
        faults.append(
            f"The largest face of what must be seen is {largest:.0%} of the frame's height, too small for a shot that "
            f"is {shot}: make it at least {least:.0%}."
        )
    return faults


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


def _marked(root: Element, head: Element, mark: str) -> str:
    """Return the drawing with one head in one flat colour."""
    text = write_svg(root, {head: {"filter": f"url(#{mark})"}})
    start = text.index(">") + 1
    return text[:start] + _FILTER.format(mark, _MARKS[mark]) + text[start:]
