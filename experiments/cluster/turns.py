"""The stages of a command one after another in its own process: models that do not fit together take turns."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from katha.errors import UsageError
from katha.experiments.cluster.standing import OnWorkers, Standing, unheard
from katha.experiments.cluster.work import Done, Failed, Item, Onward, Station, Work


class Turns:
    """Does the work of one command where there are no workers: everything of one stage, then everything of the next.

    A renderer that does not fit beside a judge is loaded once for all items and not once for each. What a station
    raises is raised: what is done is in the cache, and the command comes back to it. Stations, and their models with
    them, stay from one `drain` to the next.
    """

    def __init__(self, heard: OnWorkers = unheard) -> None:
        self._heard = heard
        self._stations: dict[str, Station] = {}

    def drain(self, work: Work, owner: str, logs: Path | None = None) -> Standing:
        """Do everything of `work` that can be done; what went on and on is left to the command.

        Raises:
            KathaError: what an item, `work.items` or `work.keep` raises.
        """
        standing, queues = Standing(total=work.total), dict[str, deque[Item]]()
        for item in work.items:
            queues.setdefault(item.stage, deque()).append(item)
        while queues:
            stage = max(queues, key=lambda name: len(queues[name]))  # of equal ones, the first that came up
            waiting = queues.pop(stage)
            standing.working.clear()
            standing.working[stage] = 1
            while waiting:
                self._do(waiting.popleft(), work, queues, standing)
                self._heard(standing, "")
        return standing

    def _do(self, item: Item, work: Work, queues: dict[str, deque[Item]], standing: Standing) -> None:
        if item.stage not in self._stations:
            if work.home is None:
                raise UsageError("This work needs workers.")
            self._stations[item.stage] = work.home(item.stage)
        ending = self._stations[item.stage](item.load)
        if isinstance(ending, Onward):
            standing.onward[item.stage] += 1
            queues.setdefault(ending.stage, deque()).append(Item(ending.stage, item.name, ending.load))
        elif isinstance(ending, Failed):
            standing.fail(ending.cause)
        elif isinstance(ending, Done):
            work.keep(item, ending.value)
            standing.done[item.stage] += 1
