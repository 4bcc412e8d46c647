"""The noun table and the packed pictograms, read once, and the bodies of those that are a head alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from katha.errors import RenderError
from katha_sketch.drawing.props import draw_prop
from katha_sketch.drawing.props.shapes import read_shape
from katha_sketch.drawing.svg import number
from katha_sketch.drawing.tables import load_table

__all__ = [
    "ACTING",
    "FACES",
    "KINDS",
    "STANDS",
    "Layer",
    "Noun",
    "Pictogram",
    "find_noun",
    "heads",
    "nouns",
    "pictogram",
    "pictograms",
    "with_body",
]

Box = tuple[float, float, float, float]

KINDS = (
    "person", "animal", "plant", "food", "drink", "vehicle", "building", "furniture", "tool", "container", "document",
    "device", "toy", "instrument", "clothing", "sport", "sky", "landscape", "thing",
)  # fmt: skip
"""What a noun can be; a stand-in is chosen by it."""

STANDS = ("ground", "hand", "table", "wall", "sky", "water")
"""Where a thing is found when the story does not say."""

ACTING = ("yes", "moves", "no")
"""Whether it does things of its own accord, can be moved by somebody inside, or only stands there."""

FACES = ("left", "right", "front")
"""Which way the pictogram looks."""


@dataclass(frozen=True)
class Pictogram:
    """One drawing of the set with what is true of the thing: its real height in centimetres is that of `box`.

    `layers` are drawn one over the other, in units of the drawing; `box` (x0, y0, x1, y1) is what they cover.
    """

    id: str
    kind: str
    cm: float
    stands: str
    acts: str
    faces: str
    layers: tuple[Layer, ...]
    box: Box


@dataclass(frozen=True)
class Noun:
    """One noun of the table: the pictogram that shows it and the height of this thing."""

    word: str
    pictogram: str
    kind: str
    cm: float
    stands: str
    acts: str


def pictogram(name: str) -> Pictogram:
    """The pictogram of this id.

    Raises:
        RenderError: there is none.
    """
    found = pictograms().get(name)
    if found is None:
        raise RenderError(
            f"The sketch has no pictogram {name!r}.", hint="Its ids are in the first column of nouns.tsv."
        )
    return found


def find_noun(word: str) -> Noun | None:
    """The entry of a noun (singular, any case), or None when nothing in the set shows it."""
    return nouns().get(word.strip().lower())


@cache
def pictograms() -> Mapping[str, Pictogram]:
    """Every pictogram by id, in the table's order."""
    return _Pictograms()


class _Pictograms(Mapping[str, Pictogram]):
    """The tables are read once; a pictogram's shapes are laid out when it is first asked for, for a board needs few."""

    def __init__(self) -> None:
        self._bodies: Mapping[str, Any] = json.loads(_text("bodies.json"))
        self._extra = _extra()
        self._made: dict[str, Pictogram] = {}
        self._rows: dict[str, list[str]] = {row[0]: row for row in _rows()} | {name: [] for name in self._extra}

    def __getitem__(self, name: str) -> Pictogram:
        if name not in self._made:
            self._made[name] = self._make(name, self._rows[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def _make(self, name: str, row: Sequence[str]) -> Pictogram:
        if not row:
            own = self._extra[name]
            svg, box = _drawn(own)
            acts = own.get("acts", "no")
            return Pictogram(name, own["kind"], float(own["cm"]), own["stands"], acts, "front", ((svg, "", 1.0),), box)
        _, kind, cm, stands, acts, faces, _ = row
        x0, y0, x1, y1 = self._bodies[name]["box"]
        layers, box = with_body(name, self._bodies[name]["body"], (x0, y0, x1, y1))
        return Pictogram(name, kind, float(cm), stands, acts, faces, layers, box)


@cache
def nouns() -> Mapping[str, Noun]:
    """Every noun by its word in lower case. `puppy=28` in a row is a word with a height of its own."""
    found: dict[str, Noun] = {}
    for name, kind, cm, stands, acts, _, words in _rows():
        for entry in words.split("; "):
            word, _, own = entry.partition("=")
            found[word.lower()] = Noun(word, name, kind, float(own or cm), stands, acts)
    for name, row in _extra().items():
        for entry in row["nouns"]:
            word, _, own = entry.partition("=")
            noun = Noun(word, name, row["kind"], float(own or row["cm"]), row["stands"], row.get("acts", "no"))
            found.setdefault(word.lower(), noun)
    return found


def _drawn(row: Mapping[str, Any]) -> tuple[str, Box]:
    """The shapes of an extra row as SVG with their box."""
    if "prop" in row:
        drawn = draw_prop(row["prop"])
        return drawn.svg, drawn.bbox
    parts = [read_shape(head, str(geometry)).at(0.0) for entry in row["shapes"] for head, geometry in entry.items()]
    x0s, y0s, x1s, y1s = zip(*(box for _, box in parts), strict=True)
    return "".join(svg for svg, _ in parts), (min(x0s), min(y0s), max(x1s), max(y1s))


def _extra() -> Mapping[str, Mapping[str, Any]]:
    return load_table("pictograms", "extra.yaml")


def _rows() -> list[list[str]]:
    return [line.split("\t") for line in _text("nouns.tsv").splitlines()[1:]]


def _text(name: str) -> str:
    return resources.files("katha_sketch.drawing.pictograms").joinpath(name).read_text(encoding="utf-8")


Layer = tuple[str, str, float]
"""SVG, the transform that puts it, and how much that enlarges it (an outline is made thinner by as much)."""

_STAND_FOR = {"coat": "pink", "belly": "purple"}
_WRITTEN = {"coat": "#eda7a7", "belly": "#8d6aa8"}
"""Two colours of the palette that no body uses stand for the head's own until the shapes are written."""


def heads() -> tuple[str, ...]:
    """The pictograms that have a body of heads.yaml."""
    return tuple(_data()["heads"])


def with_body(name: str, body: str, box: Box) -> tuple[tuple[Layer, ...], Box]:
    """The pictogram's layers, its body of heads.yaml first, and what they cover; one layer when it needs no body."""
    row = _data()["heads"].get(name)
    if row is None:
        return ((body, "", 1.0),), box
    drawn, (x0, y0, x1, y1) = _body(row["body"], row["coat"], row["belly"])
    wide, x, y = _data()["bodies"][row["body"]]["head"]
    scale = wide / (box[2] - box[0])
    tall = scale * (box[3] - box[1])
    middle = number(-(box[0] + box[2]) / 2)
    put = f"translate({number(x)} {number(y)}) scale({scale:.4f}) translate({middle} {number(-box[3])})"
    left, top, right = min(x0, x - wide / 2), min(y0, y - tall), max(x1, x + wide / 2)
    return ((drawn, "", 1.0), (body, put, scale)), (left, top, right, y1)


@cache
def _body(kind: str, coat: str, belly: str) -> tuple[str, Box]:
    parts, boxes = [], []
    for entry in _data()["bodies"][kind]["shapes"]:
        for head, geometry in entry.items():
            for name, colour in _STAND_FOR.items():
                head = head.replace(f" {name} ", f" {colour} ")
            svg, box = read_shape(head, str(geometry)).at(0.0)
            parts.append(svg.replace(_WRITTEN["coat"], coat).replace(_WRITTEN["belly"], belly))
            boxes.append(box)
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return "".join(parts), (min(x0s), min(y0s), max(x1s), max(y1s))


def _data() -> Mapping[str, Any]:
    return load_table("pictograms", "heads.yaml")
