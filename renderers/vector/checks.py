"""What a program finds wrong in a cast sheet or a frame, each as a sentence that says what to change."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from katha.jsonio import sha256_hex
from katha.renderers.vector.faces import Doubt, face_faults
from katha.renderers.vector.raster import layers
from katha.renderers.vector.svg import (
    ASIDE,
    COLOURS,
    GRADIENTS,
    PAINTS,
    SHAPES,
    Drawing,
    alone,
    closure,
    collisions,
    merged,
    references_of,
    unresolved,
    write_svg,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Gap", "Used", "cast_faults", "filled", "frame_faults", "identity"]

SMALL_SIDE = 320
ALONE_SIDE = 240
"""Of a picture three times as wide and high as the frame."""
SEAM_SIDE = 640
"""Half the usual frame: a seam between two shapes still lets the background through."""
LEAST_SHARE = 0.003
"""Of a frame's pixels, that something which must be seen changes."""
_LEAST_INSIDE = 0.35
_SEEN = 10
"""A change of a channel, of 255, that counts."""
# Alpha or colour above half counts as drawn: antialiased edges fall on either side alike.
_HALF = 127
_OPAQUE = 250
_SMALL_HOLES = 0.05
"""Of a picture, that may be see-through and is closed."""
_RIM = 3
"""Pixels round a hole that say its colour."""
_MUCH = 0.05
"""Of a frame's pixels: what fills as much is seen, however much of it is outside."""
_FLAT = 3
_NAMED = 8
_SHAPED = SHAPES | {"g", "symbol", "svg", "use"}
_OPENED = re.compile(r"""<svg\b(?:[^<>"']|"[^"]*"|'[^']*')*>""")
_HEX = re.compile(r"#(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})")
_FUNCTION = re.compile(r"(?:rgb|hsl)a?\(\s*[-+.\d]+(?:%|deg)?(?:[\s,/]+[-+.\d]+%?){2,3}\s*\)", re.IGNORECASE)
_WORDS = frozenset({"currentcolor", "none", "inherit", "transparent", "context-fill", "context-stroke"})
_TARGETS: Mapping[str, tuple[frozenset[str], str]] = {
    "fill": (PAINTS, "a gradient or pattern"),
    "stroke": (PAINTS, "a gradient or pattern"),
    "clip-path": (frozenset({"clipPath"}), "a clipPath"),
    "mask": (frozenset({"mask"}), "a mask"),
    "filter": (frozenset({"filter"}), "a filter"),
}


class Gap(str):
    """A fault that a program mends: a small part of the picture is see-through."""


class Used(NamedTuple):
    """A part of the cast that a frame uses, and the hash of its definition with all that it uses itself."""

    id: str
    sha256: str


def frame_faults(
    frame: Drawing,
    cast: Drawing | None,
    *,
    size: tuple[int, int],
    characters: Mapping[str, str],
    groups: Sequence[str],
    shot: str = "",
    pictured: Collection[str] = (),
) -> list[str]:
    """Return what is wrong in a frame; a `Doubt` is what may be meant so. characters: the prefix of the ids of each
    that is in it. groups: the ids of what must be seen. shot: its size. pictured: whoever is there as a picture only.

    Raises:
        DrawingFault: it cannot be drawn at all.
    """
    faults = [*_id_faults(frame), *_reference_faults(frame, cast), *_colour_faults(frame)]
    faults += _character_faults(frame, cast, characters, pictured)
    faults += [
        f'Nothing has id="{name}", which must be seen: put what shows it into <g id="{name}">.'
        for name in groups
        if frame.ids.get(name, frame.root) is frame.root
    ]
    width, height = frame.view[2:]
    if abs(width / height / (size[0] / size[1]) - 1) > 0.01:
        faults.append(f'The viewBox is {width:g} x {height:g}: it must be "0 0 {size[0]} {size[1]}".')
    if unresolved(frame, cast) or collisions(frame, cast):
        return faults
    whole = merged(frame, cast)
    expected = [frame.ids[name] for name in groups if frame.ids.get(name, frame.root) is not frame.root]
    return faults + _seen_faults(whole, expected) + face_faults(whole, cast, expected, characters, shot)


def filled(source: str, frame: Drawing, cast: Drawing | None) -> str:
    """Return a frame's source with its small holes closed, by a ground in the colour of what is round them."""
    left, top, width, height = frame.view
    (pixels,) = _pixels([(write_svg(merged(frame, cast).root), SEAM_SIDE, max(1, round(SEAM_SIDE * height / width)))])
    holes = pixels[:, :, 3] < _OPAQUE
    padded = np.pad(holes, _RIM)
    near = np.zeros_like(holes)
    for down in range(2 * _RIM + 1):
        for right in range(2 * _RIM + 1):
            near |= padded[down : down + holes.shape[0], right : right + holes.shape[1]]
    red, green, blue = (round(float(value)) for value in np.median(pixels[near & ~holes][:, :3], axis=0))
    ground = (
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="#{red:02x}{green:02x}{blue:02x}"/>'
    )
    opened = _OPENED.search(source)
    at = opened.end() if opened is not None else 0
    return f"{source[:at]}{ground}{source[at:]}"


def cast_faults(
    cast: Drawing, *, prefixes: Mapping[str, str], moods: Mapping[str, Sequence[str]], things: Collection[str] = ()
) -> list[str]:
    """Return what is wrong in a cast sheet. prefixes: of each character's ids. moods: of its heads, by its prefix.
    things: prefixes of those who have no mood in the plan, and may have no head.

    Raises:
        DrawingFault: it cannot be drawn at all.
    """
    faults = [*_id_faults(cast), *_reference_faults(cast, None), *_colour_faults(cast)]
    for name, prefix in prefixes.items():
        wanted = [f"{prefix}-head-{mood}" for mood in moods.get(prefix, ())]
        missing = [head for head in wanted if head not in cast.ids]
        if prefix in things and any(_is_body(found, element, prefix) for found, element in cast.ids.items()):
            continue
        if missing:
            faults.append(f"{name} lacks {_listed(missing)}: draw each head as a part with that id.")
        if not any(_is_body(found, element, prefix) for found, element in cast.ids.items()):
            faults.append(f'{name} has no body: draw it as a part with id="{prefix}-body" or another pose.')
    if unresolved(cast, None):
        return faults
    width, height = cast.view[2:]
    high = max(1, round(SMALL_SIDE * height / width))
    (pixels,) = _pixels([(cast.source(), SMALL_SIDE, high)])
    if _is_flat(pixels):
        faults.append("The cast sheet shows nothing: lay every part out with <use> on a plain background.")
        return faults
    return faults + list(_empty_heads(cast, prefixes, moods))


def identity(frame: Drawing, cast: Drawing) -> dict[str, list[Used]]:
    """Return which of the cast's parts a frame uses itself, by the prefix of their ids, each with its hash."""
    found: dict[str, list[Used]] = {}
    for name in dict.fromkeys(_uses(frame)):
        if name in cast.ids and name not in frame.ids:
            found.setdefault(name.partition("-")[0], []).append(Used(name, _hash(name, cast)))
    return found


def _hash(name: str, cast: Drawing) -> str:
    """Return the hash of a part and all that it uses, whatever else the cast holds."""
    parts = [cast.ids[name], *closure([cast.ids[name]], cast)]
    return sha256_hex("\n".join(sorted({write_svg(part) for part in parts})).encode("utf-8"))


def _id_faults(drawing: Drawing) -> Iterator[str]:
    if drawing.repeated:
        yield f"Several elements have the same id ({_listed(drawing.repeated)}): give each its own."


def _reference_faults(drawing: Drawing, cast: Drawing | None) -> Iterator[str]:
    """Yield references to nothing, to what both have, and to what is of another kind than it must be."""
    missing = unresolved(drawing, cast)
    if missing:
        yield f"Nothing has the ids {_listed(missing)} that are referred to: define them, or use the cast's parts."
    taken = collisions(drawing, cast)
    if taken:
        yield f"The ids {_listed(taken)} are the cast's parts that the frame uses: rename the frame's own."
    wrong: dict[str, None] = {}
    for element in drawing.root.iter():
        for attribute, name in references_of(element):
            target = drawing.ids.get(name)
            if target is None and cast is not None:
                target = cast.ids.get(name)
            kinds, wished = _TARGETS.get(attribute) or _linked(element)
            if target is not None and target.tag not in kinds:
                wrong[f"{attribute} refers to #{name}, a <{target.tag}>: it must be {wished}."] = None
    yield from list(wrong)[:_NAMED]


def _linked(element: Element) -> tuple[frozenset[str], str]:
    """Return what the href of an element may refer to."""
    if element.tag in GRADIENTS:
        return GRADIENTS, "a gradient"
    return (PAINTS, "a pattern") if element.tag == "pattern" else (_SHAPED, "a group, symbol or shape")


def _colour_faults(drawing: Drawing) -> Iterator[str]:
    wrong = dict.fromkeys(
        (name, value)
        for element in drawing.root.iter()
        for name, value in element.attrib.items()
        if name in COLOURS and not _is_colour(value)
    )
    for name, value in list(wrong)[:_NAMED]:
        yield f'{name}="{value[:40]}" is not a colour: write # and 3 or 6 digits, a CSS name, or url(#paint).'


def _is_colour(value: str) -> bool:
    rest = re.sub(r"^url\([^)]*\)\s*", "", value)
    if not rest and rest != value:
        return True
    return bool(
        _HEX.fullmatch(rest) or _FUNCTION.fullmatch(rest) or rest.lower() in _WORDS or rest.lower() in _colour_names()
    )


@cache
def _colour_names() -> frozenset[str]:
    from PIL.ImageColor import colormap

    return frozenset(colormap)


def _character_faults(
    frame: Drawing, cast: Drawing | None, characters: Mapping[str, str], pictured: Collection[str]
) -> Iterator[str]:
    """Yield the characters of whom the frame draws no part of the cast; of those in a photograph a doubt."""
    known = cast.ids if cast is not None else {}
    used = {name for name in _uses(frame) if name in known and name not in frame.ids}
    for name, prefix in characters.items():
        if not any(one.startswith(f"{prefix}-") for one in used):
            said = (
                f'No part of {name} is drawn, who is named for this frame: use the parts "{prefix}-..." of the cast, '
                "unless they are not to be seen in it."
            )
            yield Doubt(said) if name in pictured else said


def _uses(frame: Drawing) -> Iterator[str]:
    """Yield what the frame's own elements draw by `use`, directly or through its own parts."""
    waiting, seen = [frame.root], {frame.root}
    while waiting:
        element = waiting.pop()
        # What stands aside is drawn where something refers to it; its own content is then drawn, too.
        inner = [child for child in element if child.tag not in ASIDE]
        if element.tag == "use":
            name = element.get("href", "#")[1:]
            yield name
            inner += [frame.ids[name]] if name in frame.ids else []
        fresh = [child for child in inner if child not in seen]
        seen.update(fresh)
        waiting += reversed(fresh)


def _is_body(name: str, element: Element, prefix: str) -> bool:
    rest = name.removeprefix(f"{prefix}-")
    aside = rest == name or rest.startswith(("head", "pupil", "skull", "eye"))
    return not aside and element.tag in _SHAPED


def _seen_faults(whole: Drawing, expected: Sequence[Element]) -> list[str]:
    """Return what the pixels show: bare places, one colour, and what must be seen and is not."""
    left, top, width, height = whole.view
    small = (SMALL_SIDE, max(1, round(SMALL_SIDE * height / width)))
    tiny = (ALONE_SIDE, max(1, round(ALONE_SIDE * height / width)))
    wide = f"{left - width:g} {top - height:g} {3 * width:g} {3 * height:g}"
    text = write_svg(whole.root)
    asked = [(text, SEAM_SIDE, max(1, round(SEAM_SIDE * height / width))), (text, *small)]
    for element in expected:
        asked.append((write_svg(whole.root, {element: {"display": "none"}}), *small))
        asked.append((write_svg(alone(whole, element, wide)), *tiny))
    full, base, *rest = _pixels(asked)
    if _is_flat(full):
        return ["The picture is one colour all over: draw what the frame must show."]
    faults = list(_bare(full, whole.view))
    for place, element in enumerate(expected):
        faults += _group_faults(element, base, rest[2 * place], rest[2 * place + 1][:, :, 3])
    return faults


def _group_faults(
    element: Element, base: NDArray[np.uint8], without: NDArray[np.uint8], alone: NDArray[np.uint8]
) -> Iterator[str]:
    """Yield why what must be seen is not: it is outside, covered, or too small."""
    name = f'id="{element.get("id")}"'
    drawn = alone > _SEEN
    changed = (np.abs(base[:, :, :3].astype(np.int16) - without[:, :, :3]).max(axis=2) > _SEEN).mean()
    if not drawn.any() and changed < LEAST_SHARE:
        yield f"{name} must be seen and draws nothing: put its shapes into it."
        return
    share, held = (alone[_middle(alone)] > _HALF).mean(), drawn[_middle(alone)].sum() / max(1, drawn.sum())
    if drawn.any() and held < _LEAST_INSIDE:
        said = f"{name} must be seen and only {held:.0%} of it is inside the picture: move it into the frame."
        yield Doubt(said) if changed >= _MUCH else said
    elif changed < LEAST_SHARE:
        seen = f"changes {changed:.2%} of the picture's pixels"
        if share >= 2 * LEAST_SHARE:
            why = "something drawn later hides it, or it has the colour of what is behind"
            yield f"{name} must be seen and {seen}: {why}."
        else:
            yield f"{name} must be seen and {seen}: draw it larger."


def _middle(wide: NDArray[np.uint8]) -> tuple[slice, slice]:
    """Return where the frame is in a picture three times as wide and high."""
    rows, columns = wide.shape
    return slice(rows // 3, rows - rows // 3), slice(columns // 3, columns - columns // 3)


def _bare(full: NDArray[np.uint8], view: tuple[float, float, float, float]) -> Iterator[str]:
    """Yield where the picture is see-through."""
    holes = full[:, :, 3] < _OPAQUE
    if not holes.any():
        return
    rows, columns = np.flatnonzero(holes.any(axis=1)), np.flatnonzero(holes.any(axis=0))
    across, down = view[2] / full.shape[1], view[3] / full.shape[0]
    box = (
        f"x {view[0] + columns[0] * across:.0f} to {view[0] + (columns[-1] + 1) * across:.0f}, "
        f"y {view[1] + rows[0] * down:.0f} to {view[1] + (rows[-1] + 1) * down:.0f}"
    )
    said = (
        f"The picture is see-through in {max(holes.mean(), 0.0001):.2%} of it ({box}): let an opaque background reach "
        "the edges, and shapes that meet overlap by 2."
    )
    yield Gap(said) if holes.mean() <= _SMALL_HOLES else said


def _is_flat(pixels: NDArray[np.uint8]) -> bool:
    """Return whether a picture is one colour all over, laid on white."""
    alpha = pixels[:, :, 3:].astype(np.float32) / 255
    laid = pixels[:, :, :3] * alpha + 255 * (1 - alpha)
    return bool((laid.max(axis=(0, 1)) - laid.min(axis=(0, 1)) <= _FLAT).all())


def _empty_heads(cast: Drawing, prefixes: Mapping[str, str], moods: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield heads that draw nothing, and moods of one character that look the same."""
    heads = [
        (name, f"{prefix}-head-{mood}")
        for name, prefix in prefixes.items()
        for mood in moods.get(prefix, ())
        if f"{prefix}-head-{mood}" in cast.ids
    ]
    pictures = _pixels([(_head(cast, head), _HEAD_SIDE, _HEAD_SIDE) for _, head in heads])
    seen: dict[str, list[tuple[str, NDArray[np.uint8]]]] = {}
    for (name, head), picture in zip(heads, pictures, strict=True):
        if not (picture[:, :, 3] > _SEEN).any():
            yield f'id="{head}" draws nothing round its origin: draw the head with its chin at 0,0.'
            continue
        for other, known in seen.get(name, ()):
            if (np.abs(known.astype(np.int16) - picture).max(axis=2) > _SEEN).mean() < LEAST_SHARE / 3:
                yield f'id="{head}" and id="{other}" look the same: let brows, lids and mouth differ strongly.'
        seen.setdefault(name, []).append((head, picture))


_HEAD_SIDE = 128


def _head(cast: Drawing, head: str) -> str:
    """Return an SVG of one head alone."""
    root = Element("svg", {"viewBox": "-200 -300 400 400"})
    root.append(Element("use", {"href": f"#{head}"}))
    return write_svg(merged(Drawing(root), cast).root)


def _pixels(asked: Sequence[tuple[str, int, int]]) -> list[NDArray[np.uint8]]:
    """Return pictures as rows of RGBA pixels."""
    return [np.asarray(picture, dtype=np.uint8) for picture in layers(asked)]


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    told = ", ".join(f'"{name}"' for name in found[:_NAMED])
    return f"{told} and {len(found) - _NAMED} more" if len(found) > _NAMED else told
