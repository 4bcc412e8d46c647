"""The drawing data (`draw:` keys) of the vocabulary, by kind and id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from katha.errors import RenderError
from katha.vocabulary import ConceptKind, load_vocabulary

__all__ = ["drawing", "drawings"]

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
