"""What a panel shows because the story has not let go of it: a thing that somebody still wants or looks at."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from katha.language import Event
from katha.planners.cast import Key, role_key

__all__ = ["Aims", "spoken_of"]

_SEEKING = frozenset({"look", "jump", "climb", "point"})
_GETTING = frozenset({"take", "carry", "eat", "drink", "give", "throw", "free"})
_USED_UP = frozenset({"eat", "drink"})
_FEW = 2


@dataclass
class Aims:
    """What each character has in view, and the place where it is: gone once it is taken, or left behind."""

    seen: dict[Key, tuple[str, str | None]] = field(default_factory=dict)

    def follow(self, events: Sequence[Event]) -> None:
        """Remember what the events aim at. A deed that fails ("could not reach the grapes") aims as well."""
        for event in events:
            target = event.target
            if event.speech or event.actor is None or target is None or target not in event.props:
                continue
            if event.action in _SEEKING:
                self.seen[role_key(event)] = (target, event.setting)
            elif event.action in _GETTING and not event.negated:
                self.seen = {key: aim for key, aim in self.seen.items() if aim[0] != target}

    def of(self, key: Key, setting: str | None) -> str | None:
        """The thing that a character has in view in this place, if any."""
        thing, where = self.seen.get(key, (None, None))
        return thing if where == setting else None

    def aimed(self, event: Event) -> Event:
        """`event` with what its actor has in view: as the target of a leap without one, or else just there."""
        thing = self.of(role_key(event), event.setting)
        if thing is None or thing in event.props:
            return event
        target = thing if event.target is None and event.action in _SEEKING else event.target
        return replace(event, target=target, props=(*event.props, thing))


def spoken_of(events: Sequence[Event], main: Event, keys: Collection[Key], shown: Collection[str]) -> list[str]:
    """One thing that the part tells of up to the main event, or speaks of later, where the main event's own are few.

    Only what somebody in the picture says or does something with in the same place, and is not used up.
    """
    if len(shown) >= _FEW:
        return []
    told = [event for event in events if not event.negated and (event.speech or event.sentence <= main.sentence)]
    near = [event for event in told if role_key(event) in keys and event.setting == main.setting]
    used = {event.target for event in near if event.action in _USED_UP} | {thing for one in near for thing in one.lost}
    return [thing for event in near for thing in event.props if thing not in used and thing not in shown][:1]
