"""A story's events to as many parts as there are panels: balanced, and cut where people, place or feeling change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from katha.language import Event

__all__ = ["complete", "salience", "segment"]

_MAX_UNITS = 80
_WEIGHTS = {
    3.0: "free bite",
    2.6: "trapped fall fight chase die throw jump climb hug chop build plant give take blow",
    2.2: "eat push pull swim fly run dig drink carry cook ride dance bow beg play cry",
    1.6: "hide sing sleep laugh shout point",
    1.0: "look talk walk sit think",
}
_NEEDS_OBJECT = frozenset(
    ("take", "carry", "give", "throw", "hug", "free", "bite", "push", "pull", "chase", "fight", "chop")
)
_MUTUAL = frozenset({"hug", "fight"})
_PEAK = 0.5
_WEIGHT_OF = {action: weight for weight, actions in _WEIGHTS.items() for action in actions.split()}


def salience(event: Event) -> float:
    """How much an event is worth drawing: deeds before talk, with somebody or something to be seen."""
    if event.actor is None or event.negated or (event.action is None and event.emotion is None):
        return 0.0
    score = _WEIGHT_OF.get(event.action or "", 0.0)
    if not complete(event):
        score *= 0.4
    score += 0.8 if event.target is not None else 0.3 * min(len(event.props), 1)
    score += 0.7 if event.emotion is not None else 0.0
    score += 0.3 if event.cause is not None else 0.0
    return score * (0.25 if event.speech else 1.0)


def complete(event: Event) -> bool:
    """Whether an event has what its action needs: nobody is seen to hold, give or push nothing."""
    together = event.count > 1 and event.action in _MUTUAL
    return together or event.action not in _NEEDS_OBJECT or event.target is not None or bool(event.props)


def _units(events: Sequence[Event], panels: int) -> list[list[Event]]:
    """What is never cut: the events of one sentence with what is only said after it, or single events where there are
    too few sentences."""
    by_sentence: dict[int, list[Event]] = {}
    for event in events:
        by_sentence.setdefault(event.sentence, []).append(event)
    units: list[list[Event]] = []
    for unit in by_sentence.values():
        if any(salience(event) > 0 and not event.speech for event in unit):
            units.append(unit)
        elif units:
            units[-1].extend(unit)
    if len(units) < panels:
        units = [[event] for event in events if salience(event) > 0]
    size = -(-len(units) // _MAX_UNITS)
    if size > 1:
        units = [[event for unit in units[at : at + size] for event in unit] for at in range(0, len(units), size)]
    return units


def _novelty(before: Sequence[Event], after: Sequence[Event]) -> float:
    """How good a cut between two units is (0 to about 2): new people, another place, another time, another feeling."""
    people = {event.actor for event in before}, {event.actor for event in after}
    score = 0.8 if not people[0] & people[1] else 0.3 if people[0] != people[1] else 0.0
    score += 0.6 if before[-1].setting != after[0].setting else 0.0
    score += 0.4 if before[-1].time != after[0].time else 0.0
    feelings = {event.emotion for event in before} - {None}, {event.emotion for event in after} - {None}
    return score + (0.3 if feelings[0] != feelings[1] else 0.0)


def segment(events: Sequence[Event], panels: int) -> list[list[Event]]:
    """`panels` parts in order, none empty. With too few events the last moments are held (repeated)."""
    units = _units(events, panels)
    if len(units) <= panels:
        held = [units[min(at * len(units) // panels, len(units) - 1)] for at in range(panels)]
        return [list(unit) for unit in held]
    cuts = _best_cuts(units, panels)
    bounds = [0, *cuts, len(units)]
    return [[event for unit in units[start:stop] for event in unit] for start, stop in pairwise(bounds)]


def _best_cuts(units: Sequence[Sequence[Event]], panels: int) -> list[int]:
    """Where to cut, by dynamic programming: squared imbalance of the parts' sizes, less the novelty at the cuts and the
    weight of each part's main event, so that the deeds that matter most each get a part of their own."""
    total, mean = len(units), len(units) / panels
    weights = [max(salience(event) for event in unit) for unit in units]
    novelty = [0.0, *(_novelty(units[at - 1], units[at]) for at in range(1, total)), 0.0]
    best: list[list[tuple[float, int]]] = [[(float("inf"), 0)] * (total + 1) for _ in range(panels + 1)]
    best[0][0] = (0.0, 0)
    for part in range(1, panels + 1):
        for stop in range(part, total + 1):
            best[part][stop] = min(
                (
                    best[part - 1][start][0]
                    + ((stop - start - mean) / mean) ** 2
                    - 0.6 * novelty[stop] * (stop < total)
                    - _PEAK * max(weights[start:stop]),
                    start,
                )
                for start in range(part - 1, stop)
            )
    cuts: list[int] = []
    stop = total
    for part in range(panels, 1, -1):
        stop = best[part][stop][1]
        cuts.append(stop)
    return cuts[::-1]
