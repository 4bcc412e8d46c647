"""Where a story is cut: into how many panels, and which sentences each of them stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, pairwise

from katha_sketch.planner.acts import Beat, planning
from katha_sketch.planner.moments import Story

__all__ = ["panels_of", "parts_of"]

_NEVER = float("inf")


def parts_of(story: Story, panels: int) -> list[list[Beat]]:
    """Return `panels` parts in order, none without an event; with too few events the last moments are held."""
    units = _units(story, panels)
    if len(units) <= panels:
        return [list(units[min(at * len(units) // panels, len(units) - 1)]) for at in range(panels)]
    return _Cuts(story, units, panels).parts(panels)


def panels_of(story: Story) -> int:
    """Return how many panels a story calls for: as few as show nearly all of it, one or two events in each."""
    table = planning("panels")
    units = _units(story, int(table["least"]))
    parts = max(1, len(story.reading.text.split()) // int(table["part"]))
    acts = sum(len(one) - 1 for one in story.acts)
    most = min(int(table["most"]) * parts + min(acts, int(table["acts"]) * parts), int(table["all"]), len(units))
    if most <= 2:
        return 2
    return _Cuts(story, units, most).best(float(table["each"]))


def _units(story: Story, panels: int) -> list[list[Beat]]:
    """What is never cut: a sentence with an event, or an act of it that no picture shows with its others, and what
    follows without one; or single events where there are fewer of these than panels."""
    units: list[list[Beat]] = []
    early: list[Beat] = []
    for beat in story.beats:
        if beat.events:
            for act in story.acts[beat.sentence.index]:
                if story.share(act):
                    units.append([*early, act])
                    early = []
                elif units:
                    units[-1].append(act)
                else:
                    early.append(act)
        elif units:
            units[-1].append(beat)
        else:
            early.append(beat)
    units = units or [early]
    if len(units) < panels:
        units = [
            [*([] if at else [one for one in unit if one is not beat and not one.events]), single]
            for unit in units
            for beat in unit
            if beat.events
            for at, single in enumerate(_singles(beat))
        ]
    size = -(-len(units) // int(planning("cuts")["most_units"]))
    return [[*chain.from_iterable(units[at : at + size])] for at in range(0, len(units), size or 1)]


def _singles(beat: Beat) -> list[Beat]:
    pairs = zip(beat.events, beat.weights, strict=True)
    return [replace(beat, events=(event,), weights=(weight,)) for event, weight in pairs]


class _Cuts:
    """The best cuts of some units into up to `most` parts, by dynamic programming.

    A part costs each of its visible sentences that its picture does not show, less what that picture is worth; a cut
    earns how new is what follows it, and parts of equal length are a little better.
    """

    def __init__(self, story: Story, units: Sequence[Sequence[Beat]], most: int) -> None:
        self._story, self._units = story, units
        self._table = planning("cuts")
        novelty = [self._novelty(units[at - 1], units[at]) for at in range(1, len(units))]
        self._new = [0.0, *(self._table["novelty"] * one for one in novelty), 0.0]
        self._best = self._solve(most)

    def best(self, each: float) -> int:
        """Return the number of parts that costs least when every part costs `each` more."""
        total = len(self._units)
        counts = range(2, len(self._best))
        return min(counts, key=lambda count: (self._best[count][total][0] + each * count, count))

    def parts(self, count: int) -> list[list[Beat]]:
        """Return the units in `count` parts."""
        cuts = [len(self._units)]
        for part in range(count, 0, -1):
            cuts.append(self._best[part][cuts[-1]][1])
        return [[*chain.from_iterable(self._units[start:stop])] for start, stop in pairwise(cuts[::-1])]

    def _solve(self, most: int) -> list[list[tuple[float, int]]]:
        """For each number of parts and each end, the least cost and where the last part begins."""
        total, costs = len(self._units), self._costs
        best = [[(_NEVER, 0)] * (total + 1) for _ in range(most + 1)]
        best[0][0] = (0.0, 0)
        for part in range(1, most + 1):
            mean = total / part
            for stop in range(part, total + 1):
                best[part][stop] = min(
                    (best[part - 1][start][0] + costs[start][stop] - self._new[stop]
                     + self._table["balance"] * ((stop - start - mean) / mean) ** 2, start)
                    for start in range(part - 1, stop)
                )  # fmt: skip
        return best

    @cached_property
    def _costs(self) -> list[list[float]]:
        """What each part from one unit up to another costs."""
        total, shown = len(self._units), float(planning("picture")["shown"])
        where = {event.id: at for at, unit in enumerate(self._units) for beat in unit for event in beat.events}
        worth = [[0.0] * (total + 1) for _ in range(total + 1)]
        for picture in self._story.pictures:
            at = [where[event.id] for event in picture.events]
            low, high = min(at), max(at) + 1
            worth[low][high] = max(worth[low][high], picture.value)
        costs = [[0.0] * (total + 1) for _ in range(total + 1)]
        for start in range(total - 1, -1, -1):
            visible: dict[tuple[int, int], float] = {}
            for stop in range(start + 1, total + 1):
                visible |= {
                    (beat.sentence.index, beat.start): self._story.share(beat)
                    for beat in self._units[stop - 1]
                    if beat.sentence.visible
                }
                worth[start][stop] = max(worth[start][stop], worth[start][stop - 1], worth[start + 1][stop])
                costs[start][stop] = shown * sum(visible.values()) - worth[start][stop]
        return costs

    def _novelty(self, before: Sequence[Beat], after: Sequence[Beat]) -> float:
        """How good a cut is (0 to about 2.5): new people, another place, another time, another feeling."""
        table = self._table
        who = [
            {key for beat in side for event in beat.events for key in self._story.people(event)}
            for side in (before, after)
        ]
        first, second = before[-1].sentence, next(beat.sentence for beat in after if beat.events)
        score = table["all_new"] if not who[0] & who[1] else table["some_new"] if who[0] != who[1] else 0.0
        places = [one.place.entity or one.place.noun if one.place else None for one in (first, second)]
        score += table["place"] * (places[0] != places[1]) + table["time"] * (first.time != second.time)
        score += table["paragraph"] * (first.paragraph != second.paragraph)
        moods = [{event.feeling for beat in side for event in beat.events} - {None} for side in (before, after)]
        return float(score + table["mood"] * (moods[0] != moods[1]))
