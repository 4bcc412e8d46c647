"""What goes into a run and comes out of it: the result, and the question put to a reviewing person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from katha.errors import InputFileError, PlanError, RecordError, RenderError, UnfitFrameError
from katha.schema import Board, Candidate, Candidates, Event

__all__ = ["OF_ONE_STORY", "Emit", "ReviewAction", "ReviewChoice", "ReviewRequest", "RunResult", "unheard"]

Emit = Callable[[Event], None]
"""Called with everything that happens, as it happens."""

OF_ONE_STORY = (RenderError, InputFileError, RecordError, PlanError, UnfitFrameError)
"""What leaves one story without a board while the others go on; of any other error (a wrong key, a device that is taken
or too small, a spent budget) the next story would fail, too."""


def unheard(event: Event) -> None:
    """Nobody listens: the machine then carries no events at all."""


ReviewAction = Literal["accept", "reject", "choose", "edit"]


@dataclass(frozen=True)
class RunResult:
    """A finished run. `reused` is True when the folder already held it and nothing was done."""

    out: Path
    scores: dict[str, Any]
    candidates: Candidates
    board: Board
    reused: bool


@dataclass(frozen=True)
class ReviewRequest:
    """What a person is asked before a frame goes in.

    `inserted` are the boards with a frame inserted, best score first (`bridge:SEED`); `proposal` names the one that the
    rule would try, `accepts` and `reason` say what the rule would decide. `panels` is the folder of the images
    (`SHA256.png`), `prompt` what the inserted frames were drawn from.
    """

    story_id: str
    mode: str
    selected: Candidate
    weakest: tuple[int, int]
    weakest_reason: str
    inserted: tuple[Candidate, ...]
    proposal: str
    accepts: bool
    reason: str
    prompt: str
    panels: Path


@dataclass(frozen=True)
class ReviewChoice:
    """The person's choice: take the proposal, keep the board as it was, take `candidate`, or redraw from `prompt`."""

    action: ReviewAction
    candidate: str | None = None
    prompt: str | None = None
