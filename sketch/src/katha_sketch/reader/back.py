"""Whether each picture of a board shows what it was drawn from, as its reader sees it."""

from __future__ import annotations

from collections.abc import Sequence

from katha_sketch.reader.claims import Claim, read_statement
from katha_sketch.reader.moments import Moment, likelihoods

__all__ = ["read_back"]


def read_back(meant: Sequence[str], moments: Sequence[Moment]) -> list[bool]:
    """Return of each moment, a picture's, whether it shows what it was drawn from, the text of `meant` beside it.

    It does where what is seen speaks for that text, and more than what is seen of any picture that was drawn from a
    text with other claims: a board whose pictures are exchanged shows one of its texts on average, one of equal
    pictures none. A text of which nothing can be looked for is not found.
    """
    claims = [_claims(text) for text in meant]
    found: list[bool] = []
    for own, moment in zip(claims, moments, strict=True):
        others = [other for told, other in zip(claims, moments, strict=True) if told != own]
        best = max((_spoken(own, other) for other in others), default=0.0)
        found.append(bool(own) and _spoken(own, moment) > max(best, 0.0))
    return found


def _claims(text: str) -> tuple[Claim, ...]:
    """What a text claims that can be looked for: deeds and feelings, else who and what is there."""
    claims = read_statement(text).claims
    return tuple(dict.fromkeys(one for one in claims if one.tells)) or claims


def _spoken(claims: Sequence[Claim], moment: Moment) -> float:
    """How much likelier than by chance a picture shows all of it, as a logarithm."""
    return sum(likelihoods(claim, [moment])[0] for claim in claims)
