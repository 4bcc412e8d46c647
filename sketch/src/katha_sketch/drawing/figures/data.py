"""The drawing data (`draw:` keys) of the vocabulary, by kind and id, and that of a figure with its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from katha.errors import RenderError
from katha_sketch.drawing.figures.rig import FigureSpec
from katha_sketch.drawing.style import darker, lighter, mix
from katha_sketch.vocabulary import ConceptKind, load_vocabulary

__all__ = ["drawing", "drawings", "dressed"]

_KINDS: Mapping[str, ConceptKind] = {
    "characters": "character", "actions": "action", "emotions": "emotion", "attributes": "attribute",
}  # fmt: skip


@cache
def drawings(kind: str) -> Mapping[str, Mapping[str, Any]]:
    """Every `draw:` mapping of one vocabulary file ("characters", "actions", "emotions", "attributes")."""
    return {concept.id: concept.draw for concept in load_vocabulary().concepts(_KINDS[kind])}


def drawing(kind: str, name: str) -> Mapping[str, Any]:
    """The drawing data of one entry.

    Raises:
        RenderError: the vocabulary has no such entry.
    """
    found = drawings(kind).get(name)
    if found is None:
        raise RenderError(
            f"The sketch cannot draw {name!r}: it is not in the vocabulary's {kind}.",
            hint=f"Add it to {kind}.yaml or use one of its ids.",
        )
    return found


def dressed(spec: FigureSpec) -> Mapping[str, Any]:
    """The drawing data of the figure's character with its attributes applied.

    Attribute data: `scale`, `girth` and `head` multiply, `tint` recolours the coat (animals) or the dress (people),
    `coat`, `belly` and `wing` are colours of an animal, `fade` greys the coat and hair, `pattern` replaces the pattern,
    `wears` adds an accessory.

    Raises:
        RenderError: the vocabulary has no such character or attribute.
    """
    draw: dict[str, Any] = dict(drawing("characters", spec.concept))
    for name in spec.attributes:
        change = drawing("attributes", name)
        for key in ("scale", "girth", *({"head"} & change.keys())):
            draw[key] = draw.get(key, 1.0) * change.get(key, 1.0)
        draw |= {key: change[key] for key in ("coat", "belly", "wing") if key in change}
        if "tint" in change:
            _tint(draw, change["tint"])
        if "fade" in change:
            for key in {"coat", "hair", "mane"} & draw.keys():
                draw[key] = mix(draw[key], "#dcdad8", change["fade"])
            draw["aged"] = True
        if "pattern" in change:
            draw["pattern"], draw["marks"] = change["pattern"], change.get("marks", draw.get("marks"))
            if "dress" not in draw:
                draw["markings"] = change.get("markings", draw.get("markings"))
        draw["wears"] = (*draw.get("wears", ()), *change.get("wears", ()))
    return draw


def _tint(draw: dict[str, Any], tint: str) -> None:
    """Recolour what is large and coloured: the dress of a person, the coat and belly of an animal."""
    if "dress" in draw:
        draw["dress"] = tint
        if draw.get("wear") == "vest":
            draw["shirt"], draw["sleeve"], draw["dress"] = tint, tint, darker(tint, 0.3)
    else:
        draw["coat"], draw["belly"] = tint, lighter(tint, 0.55)
