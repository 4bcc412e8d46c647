"""What a picture can show of an event of a text."""

from __future__ import annotations

from dataclasses import dataclass

from katha_sketch.data import load_config
from katha_sketch.english import Event, Reading
from katha_sketch.reader.claims import claim_of

_NOTHING = frozenset({None, "stand"})
_FAMILIES = {deed: row.split()[0] for row in load_config("questions.yaml")["drawn_alike"] for deed in row.split()}
"""Deeds that nobody tells apart in a picture by the first of them: who asks looks like who answers."""


@dataclass(frozen=True)
class Sight:
    """A deed as it is drawn: its class, those that look alike as one; the mood; the classes of the things in it, each
    thing by itself. None and nothing where no picture shows them."""

    deed: str | None = None
    mood: str | None = None
    things: tuple[frozenset[str], ...] = ()

    @property
    def plain(self) -> bool:
        """Whether a picture shows it at all."""
        return bool(self.mood or self.things) or self.deed not in _NOTHING

    def apart(self, other: Sight) -> bool:
        """Whether a picture shows it otherwise than the other: another deed, or done to another thing."""
        if (self.deed, self.mood) != (other.deed, other.mood):
            return True
        mine, theirs = frozenset().union(*self.things), frozenset().union(*other.things)
        return bool(mine and theirs) and not mine & theirs


def sight_of(reading: Reading, event: Event) -> Sight:
    """Return what a picture can show of one event of a text."""
    claim = claim_of(reading, event)
    if claim is None or claim.negated:
        return Sight()
    terms = [term for term in (claim.target, *claim.also) if term is not None and term.looks and not term.living]
    return Sight(_FAMILIES.get(claim.deed or "", claim.deed), claim.mood, tuple(term.looks for term in terms))
