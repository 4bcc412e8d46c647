"""Progress events that the state machine streams and the command line shows."""

from __future__ import annotations

from typing import Literal, TypedDict

__all__ = ["Event", "Stage"]

Stage = Literal["plan", "render", "critique", "select", "localize", "bridge", "decide", "judge", "report"]


class Event(TypedDict, total=False):
    """One event. `kind`: a stage `started` or `finished`, a `frame` drawn, an `answer` given, a `decision` taken.

    `total` is the number of steps of this stage that are known, `reused` says that nothing was paid for the step.
    """

    stage: Stage
    kind: Literal["started", "finished", "frame", "answer", "decision"]
    message: str
    total: int
    reused: bool
