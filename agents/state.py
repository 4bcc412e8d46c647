"""The state of the machine, the tasks of its branches, and what goes into a run and comes out of it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, NotRequired, TypedDict, TypeVar

from katha.errors import InputFileError, PlanError, RecordError, RenderError, UnfitFrameError
from katha.eval_bridge.judging.answers import Outcome
from katha.schema import Board, Candidate, Candidates, Coverage, Decision, Event, Move, Record, RepairEvidence, Tried
from katha.schema.scores import Scores

T = TypeVar("T")

Emit = Callable[[Event], None]
"""Called with everything that happens, as it happens."""

OF_ONE_STORY = (RenderError, InputFileError, RecordError, PlanError, UnfitFrameError)
"""What leaves one story without a board while the others go on; of any other error (a wrong key, a device that is taken
or too small, a spent budget) the next story would fail, too."""

ReviewAction = Literal["accept", "reject", "choose", "edit", "seed"]


def ignore_event(event: Event) -> None:
    """Nobody listens: the machine then carries no events at all."""


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
    moves: Mapping[str, Move] = field(default_factory=dict)
    """What each of them changes, by its name, where moves are decided."""


@dataclass(frozen=True)
class ReviewChoice:
    """The person's choice: take the proposal, keep the board as it was, take `candidate`, redraw from `prompt`, or draw
    one more picture with `seed` (None: the next one)."""

    action: ReviewAction
    candidate: str | None = None
    prompt: str | None = None
    seed: int | None = None


@dataclass(frozen=True)
class RunResult:
    """A run that went to its end. `outcome` says what came of asking, and with it whether the run is finished.

    `reused` is True when the folder already held it and nothing was done.
    """

    out: Path
    outcome: Outcome
    scores: Scores
    candidates: Candidates
    board: Board
    reused: bool
    coverage: Coverage | None = None
    """How much of the story's text the plan holds, where its planner reads the text."""
    renewed: tuple[str, ...] = ()
    """What was made again, and what was kept, of a plan that had been changed by hand."""
    notes: tuple[str, ...] = ()
    """What else there is to say of the run: the notes of its `run.json`."""


class InsertionPlace(Record):
    """Where a frame goes in: the transition, why this one, and whether it is weak enough for a frame to go in."""

    pair: tuple[int, int]
    reason: str
    insert: bool


# The state holds records, never pixels: images are named by hash, answers are in the log, plug-ins in the context.
# LangGraph writes a record into a checkpoint by its class and fields; `CHECKPOINTED` lists the classes that it may
# make when it reads one.

CHECKPOINTED = (Board, Candidate, Decision, RepairEvidence, Move, InsertionPlace, ReviewChoice, Tried)


def merge(old: Mapping[str, T] | None, new: Mapping[str, T]) -> dict[str, T]:
    """Reducer: keys of parallel branches side by side, in sorted order; a key written again is replaced."""
    return dict(sorted({**(old or {}), **new}.items()))


def add(old: Mapping[str, float] | None, new: Mapping[str, float]) -> dict[str, float]:
    """Reducer: numbers added up by key."""
    before = old or {}
    return {**before, **{key: before.get(key, 0) + value for key, value in new.items()}}


class RunState(TypedDict, total=False):
    """What passes between the nodes and is kept in `graph.sqlite`."""

    plan_sha256: str
    """The hash of the plan in use (`plan.json`)."""

    boards: Annotated[dict[str, Board], merge]
    """Every board drawn, by candidate name (`candidate:SEED`, `bridge:SEED`)."""

    scored: Annotated[dict[str, Candidate], merge]
    """Every board measured, by the same names."""

    selected: str
    """The name of the base board that goes on."""

    weakest: InsertionPlace | None
    """Where a frame may go in; None when the story has no such place."""

    note: str
    """Why nothing is inserted, when nothing is."""

    bridge_prompt: str | None
    """The prompt that a reviewing person wrote, if any."""

    more_seeds: list[int]
    """The seeds that a reviewing person asked for beside the run's."""

    choice: ReviewChoice | None
    """The reviewing person's choice."""

    rounds: int
    """How many frames were accepted so far."""

    round: int
    """The round of proposals that is under way, from 1."""

    moves: list[Move]
    """What was proposed in this round."""

    evidence: Annotated[list[RepairEvidence], operator.add]
    """What each round's proposals were made from."""

    tried: Annotated[list[Tried], operator.add]
    """The moves of the rounds that were decided."""

    decision: Decision
    """The outcome."""

    timings: Annotated[dict[str, float], add]
    """Seconds spent by stage, over all processes of this run."""


class RenderTask(TypedDict):
    """One branch of `render`: a seed's board."""

    seed: int


class BridgeTask(TypedDict):
    """One branch of `bridge`: the selected board with a frame drawn from `seed` inserted."""

    seed: int
    board: Board
    pair: tuple[int, int]
    prompt: str | None
    move: NotRequired[tuple[str, int, Move] | None]
    """Its round's mark (`move.1`), its number, and what is drawn, where it is a move."""


class CritiqueTask(TypedDict):
    """One branch of `critique`: the board of that name."""

    name: str
    board: Board
