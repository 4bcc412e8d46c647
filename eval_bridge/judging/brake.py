"""The brake of a judge: after so many replies in a row that nobody can read, no more are bought."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from katha.errors import JudgeError
from katha.protocols import Judge, JudgeReply
from katha.schema import AnswerStatus

MOST = 20
"""Unreadable replies in a row after which a judge is asked no more."""
UNREADABLE: frozenset[AnswerStatus] = frozenset(("unparseable", "truncated"))
_HINT = "Once it is mended, a new --out asks all again; --keep-going asks the rest as it is."


class Brake:
    """Counts over every thread that asks one judge. Until a judge has given its first readable reply, no more calls are
    under way than it may waste; then it is never waited for."""

    def __init__(self, most: int | None = MOST) -> None:
        """most: replies in a row; None: it never brakes."""
        self._most = most
        self._free = threading.Condition()
        self._row = self._under_way = 0
        self._read = False
        self._said = ""

    @property
    def spent(self) -> bool:
        """Return whether the judge is asked no more."""
        return self._most is not None and self._row >= self._most

    def begin_at(self, row: int, said: str) -> None:
        """Count from `row` unreadable replies, which an earlier command bought; `said`: what was wrong."""
        with self._free:
            self._row, self._said = max(self._row, row), said

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Hold the place of one call to the judge, which is called `name` in errors.

        Raises:
            JudgeError: too many replies in a row could not be read.
        """
        with self._free:
            while self._most is not None and not self._read and not self.spent and self._held >= self._most:
                self._free.wait()
            if self.spent:
                raise JudgeError(
                    f"The judge {name!r} gave {self._row} replies in a row that cannot be read: {self._said}. "
                    "They are kept, and nothing more is asked.",
                    hint=_HINT,
                )
            self._under_way += 1
        try:
            yield
        finally:
            with self._free:
                self._under_way -= 1
                self._free.notify_all()

    @property
    def _held(self) -> int:
        return self._row + self._under_way

    def heard(self, replies: Sequence[JudgeReply]) -> None:
        """Count the replies of one call: one that can be read is enough; what never came says nothing."""
        with self._free:
            if any(reply.status == "ok" for reply in replies):
                self._row, self._read = 0, True
            elif replies and all(reply.status in UNREADABLE for reply in replies):
                self._row += 1
                self._said = (replies[0].error or replies[0].status).rstrip(".")
            self._free.notify_all()


def brake_of(judge: Judge) -> Brake:
    """Return the brake of a judge: one for all engines that ask it."""
    brake = judge.__dict__.setdefault("_brake", Brake())
    assert isinstance(brake, Brake)
    return brake


def release_brake(judge: Judge) -> None:
    """Never brake this judge."""
    judge.__dict__["_brake"] = Brake(None)
