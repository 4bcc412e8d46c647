"""Frames, boards, what the Semantic Compass measured on them (`candidates.json`), and the progress events of a run."""

from __future__ import annotations

from typing import Literal, TypedDict

from pydantic import ConfigDict, Field

from katha.schema.story import Record

# ---
# Frames and boards. Images are files named by the sha256 of their bytes; records hold names, never pixels.


FrameKind = Literal["scene", "bridge", "extra"]


class Frame(Record):
    """One drawn frame. A scene frame has `scene`; a bridge or extra frame has the `transition` it stands in.

    `seed` is the one it was drawn with. `renderer` is set when another renderer than the board's drew it.
    """

    index: int = Field(ge=1)
    kind: FrameKind = "scene"
    scene: int | None = None
    transition: tuple[int, int] | None = None
    image: str
    sha256: str
    prompt: str
    seed: int
    renderer: str | None = None


class Board(Record):
    """The ordered frames of one story, as written to `storyboard.json`."""

    story_id: str
    method: str
    mode: str
    planner: str
    renderer: str
    seed: int
    plan_sha256: str
    frames: list[Frame]


# ---
# What the Semantic Compass measured and decided, as written to `candidates.json`.


class CompassSettings(Record):
    """Weights and thresholds of Eqs. 24 to 27 and Algorithm 1.

    Recoverability enters Eq. 24 as a fraction (0 to 1), like coverage and copy penalty. `delta` and `gamma` are
    similarities (-1 to 1); a transition is repaired when it scores below `repair_threshold` (0 to 1).
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    lambda_r: float = Field(default=1.0, ge=0)
    lambda_t: float = Field(default=0.5, ge=0)
    lambda_p: float = Field(default=0.5, ge=0)
    delta: float = Field(default=0.5, ge=-1, le=1)
    gamma: float = Field(default=0.95, ge=-1, le=1)
    repair_threshold: float = Field(default=0.75, ge=0, le=1)


class TransitionScore(Record):
    """One transition of one candidate, scored on its adjacent frames (Eq. 27). `recoverability` in 0..1, or None
    when it has no steering question; `similarity` is Eq. 25's maximum before thresholding; `adjacent` is the largest
    similarity of neighbouring frames in it (Eq. 26 before thresholding)."""

    pair: tuple[int, int]
    recoverability: float | None
    n_questions: int
    similarity: float
    covered: bool
    copied: bool
    adjacent: float = 0.0
    note: str | None = None


class CandidateScore(Record):
    """Eq. 24 for one candidate, every term in 0..1. `recoverability` is None when no steering question was scored."""

    recoverability: float | None
    coverage: float
    copy_penalty: float
    total: float


class Candidate(Record):
    """A board that was considered: a seed's base board, or the selected board with a frame inserted."""

    name: str
    kind: Literal["base", "inserted"]
    board: Board
    score: CandidateScore
    transitions: list[TransitionScore]


class Decision(Record):
    """The outcome of Algorithm 1 in words and numbers. `weakest` is None for a mode that never localizes."""

    selected: str
    weakest: tuple[int, int] | None = None
    weakest_reason: str | None = None
    inserted: str | None = None
    accepted: bool = False
    reason: str
    reviewed: bool = False


class Candidates(Record):
    """`candidates.json`: every board considered, its score, and the decision."""

    format: Literal[1] = 1
    story_id: str
    mode: str
    settings: CompassSettings
    candidates: list[Candidate]
    decision: Decision


# ---
# Progress events that the state machine streams and the command line shows.


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
