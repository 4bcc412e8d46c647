"""A room of desks over one folder: one for each board that is open, and one where stories are read.

Every board has a desk of its own, so that a story is begun while another one is drawn or waits for a choice. They share
one turn: of all of them one works at a time, and whoever waits for a person does not hold the others up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from katha.app.desk.boards import Listed, Removed, RunLibrary
from katha.app.desk.choices import FormChoices, choices_of, sample
from katha.app.desk.desk import STORY, Brought, Cost, Desk, PastedStory, Price
from katha.app.desk.typed import Typed
from katha.config import Settings
from katha.errors import InputFileError, UsageError
from katha.eval_bridge.judging.budget import Budget

T = TypeVar("T")


class Working(BaseModel):
    """Work that is under way on a board. `waits`: what it waits for; `asks`: it waits for a person."""

    model_config = ConfigDict(frozen=True)

    run: str
    name: str
    asks: bool
    waits: str = ""


class Spending(BaseModel):
    """Dollars and calls that were paid for, the limit in dollars, if there is one, and exchanges with a chat window."""

    model_config = ConfigDict(frozen=True)

    dollars: float
    calls: int
    limit: float | None = None
    by_hand: int = 0


class Begun(BaseModel):
    """A board whose work was begun, by its name; empty where it costs something and nobody has agreed yet."""

    model_config = ConfigDict(frozen=True)

    run: str
    cost: Cost | None = None


class Room:
    """Every desk of one `katha desk`."""

    def __init__(self, home: Path, settings: Settings, budget: Budget | None = None) -> None:
        """home: the folder of the boards. settings: what new stories are drawn with. budget: over what is paid for."""
        self.budget = budget or Budget()  # what is spent is counted, limited or not
        self.front = Desk(home, settings, self.budget)
        self.boards = RunLibrary(home)
        self._desks: dict[str, Desk] = {}
        self._begun: dict[str, PastedStory | Brought] = {}
        self._ticks = 0
        self._beginning, self._choosing = threading.Lock(), threading.Lock()
        self._choices: dict[bool, FormChoices] = {}
        self._samples: dict[tuple[str, str], bytes | None] = {}
        self._look_after_typed()

    @property
    def typed(self) -> Typed:
        """Return what was typed and not saved."""
        return self.front.typed

    @property
    def ticks(self) -> int:
        """A number that is another whenever a page has something new to show."""
        return self._ticks + sum(desk.ticks for desk in self._all())

    def _all(self) -> list[Desk]:
        return [self.front, *list(self._desks.values())]

    def desk(self, run: str | None) -> Desk:
        """Return the desk of the board of that name, opened if it was not; None: the one where stories are read.

        Raises:
            InputFileError: there is no such run.
        """
        if run is None:
            return self.front
        known = self._desks.get(run)
        if known is not None and known.run is not None:
            return known
        place = self.boards.place(run)
        if place is None and known is not None and known.progress.failed:
            return known  # what became of it is told
        if place is None:
            raise InputFileError(f"There is no board called {run!r} here.", hint="It was renamed, moved or taken away.")
        with self._beginning:
            return self._desks.setdefault(run, self.front.beside(place)) if known is None else self._put(run, place)

    def _put(self, run: str, place: Path) -> Desk:
        self._forget(run)
        self._desks[run] = self.front.beside(place)
        return self._desks[run]

    def _forget(self, run: str) -> None:
        gone = self._desks.pop(run, None)
        if gone is not None:
            self._ticks += gone.ticks + 1

    @property
    def spent(self) -> Spending:
        """Return what was paid for since the desk was opened."""
        by_hand = len(self.front.exchanged)
        return Spending(dollars=self.budget.cost, calls=self.budget.paid, limit=self.budget.max_cost, by_hand=by_hand)

    def choices(self, *, everything: bool) -> FormChoices:
        """Return what can be chosen for a new story; looked up once."""
        with self._choosing:
            if everything not in self._choices:
                self._choices[everything] = choices_of(self.front.settings, everything=everything)
            return self._choices[everything]

    def sample(self, renderer: str, style: str) -> bytes | None:
        """Return a small picture in a style; None where there is none."""
        with self._choosing:
            if (renderer, style) not in self._samples:
                self._samples[renderer, style] = sample(renderer, style)
            return self._samples[renderer, style]

    def working(self) -> list[Working]:
        """Return what is under way, on every board."""
        return [
            Working(run=run, name=now.name, asks=now.asks, waits=now.waits)
            for run, desk in list(self._desks.items())
            if (now := desk.progress).running
        ]

    def runs(self) -> list[Listed]:
        """Return the boards, the last changed first; the status of one that is worked on is what it does."""
        busy = {item.run: "asks you" if item.asks else "waits" if item.waits else "at work" for item in self.working()}
        return [item.model_copy(update={"status": busy.get(item.name, item.status)}) for item in self.boards.listed()]

    def removed(self) -> list[Removed]:
        """Return the boards that were taken away and can be put back."""
        return self.boards.removed()

    def waiting(self) -> dict[str, str]:
        """Return the stories that were typed and whose drawing broke off before it was planned: key and title."""
        busy = {f"{STORY} {item.run}" for item in self.working()}
        forms = self.typed.forms().items()
        return {
            key: str(values.get("title") or str(values.get("text", ""))[:60])
            for key, values in forms
            if key.startswith(f"{STORY} ") and key not in busy
        }

    def draw(self, told: PastedStory, *, agreed: bool) -> Begun:
        """Keep a story and begin to draw it, on a desk of its own.

        Raises:
            UsageError: as for `Desk.draw`; or this very story is being drawn.
        """

        def begin(desk: Desk) -> None:
            desk.draw(told, agreed=agreed)

        return Begun(run=self._begin(told, begin))

    def take_in(self, brought: Brought, *, agreed: bool) -> Begun:
        """Keep a board that is drawn already and begin to judge it, on a desk of its own, if it is free or `agreed`.

        Raises:
            UsageError: as for `Desk.take_in`; or this very board is being looked at.
        """
        costs: list[Cost] = []
        run = self._begin(brought, lambda desk: costs.append(desk.take_in(brought, agreed=agreed)))
        return Begun(run=run, cost=costs[0])

    def _begin(self, what: PastedStory | Brought, begin: Callable[[Desk], None]) -> str:
        with self._beginning:
            for item in self.working():
                if self._begun.get(item.run) == what:
                    raise UsageError(f"{item.name} is under way.", hint="Look at it, wait for it, or stop it.")
            desk = self.front.beside()
            begin(desk)
            run = desk.begun
            if not run:
                return ""
            self._forget(run)
            self._desks[run], self._begun[run] = desk, what
            self.front.forget_draft()
            return run

    def copy(self, run: str, to: str, frames: Sequence[int], *, agreed: bool) -> Price | None:
        """Begin to put copies of frames of the board `run` at the end of the board `to`; the price, where it is paid
        for and nobody has agreed.

        Raises:
            InputFileError: there is no such run. UsageError: as for `Desk.copy_in`, or both are the same board.
        """
        source = self.boards.place(run)
        if source is None or run == to:
            raise UsageError("A frame is copied to another board.", hint="Double it to have it twice on one.")
        return self.desk(to).copy_in(source, frames, agreed=agreed)

    def rename(self, run: str, title: str) -> None:
        """Give a board another title; empty: its story's own.

        Raises:
            InputFileError: there is no such run. UsageError: the title is too long.
        """
        self.boards.rename(run, title)
        self.desk(run).look_again()

    def remove(self, run: str) -> str:
        """Take a board away, and return the key that `restore` brings it back by.

        Raises:
            InputFileError: there is no such run. UsageError: it is worked on.
        """
        with self._beginning:
            known = self._desks.get(run)
            if known is not None and known.progress.running:
                raise UsageError(
                    f"{known.progress.name} is under way.", hint="Stop it first, then take the board away."
                )
            key = self.boards.remove(run)
            self._forget(run)
            return key

    def restore(self, key: str) -> str:
        """Put back a board that was taken away, and return its name.

        Raises:
            InputFileError, UsageError: as for `RunLibrary.restore`.
        """
        run = self.boards.restore(key)
        self._ticks += 1
        return run

    def delete(self, key: str) -> None:
        """Delete a board that was taken away, for good.

        Raises:
            InputFileError: there is none of that key.
        """
        self.boards.delete(key)
        self._ticks += 1

    def take_up(self, key: str) -> None:
        """Put a story whose drawing broke off into the form of a new story; what stands there waits in its place.

        Raises:
            UsageError: there is none of that key.
        """
        if key not in self.waiting():
            raise UsageError("That story is not waiting any more.", hint="Look at the list again.")
        self.typed.exchange(key, STORY)
        self._ticks += 1

    def stop(self) -> None:
        """Stop everything that is under way."""
        for desk in self._all():
            desk.worker.stop()

    def join(self, timeout: float) -> bool:
        """Wait until nothing is under way; False when that took longer than `timeout` seconds for one of them."""
        return all(desk.worker.join(timeout) for desk in self._all())

    def _look_after_typed(self) -> None:
        """What was typed for stories that were planned before a crash is kept as boards; of the others one is shown."""
        for key in self.typed.forms():
            if key.startswith(f"{STORY} "):
                place = self.boards.place(key.removeprefix(f"{STORY} "))
                if place is not None and (place / "plan.json").is_file():
                    self.typed.keep(key, None)
                else:
                    self.typed.move(key, STORY)
