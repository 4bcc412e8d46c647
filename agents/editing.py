"""A finished run's board in a person's hands: change it, look at takes, go back and forth, and compare versions.

This is the one way to edit a board; it knows neither a terminal nor a browser. Every function claims the run's folder
for as long as it works, leaves the old version or the new one after a kill, and may be called from any process. What
can be changed is in `katha.agents.edits`.

Every state of the board is a version with a name (`001` is the board as it was drawn), and none is ever lost: `undo`,
`forward` and `go_to` move between them, an edit after an `undo` begins a branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katha.agents.context import Plugins
from katha.agents.edits import Edit, Pair
from katha.agents.state import Emit, RunResult
from katha.schema import Board, Candidate, Frame, Plan, StoryRecord


@dataclass(frozen=True)
class BoardView:
    """The board as it stands. `version` is its name; `locked` the numbers of the frames that are held."""

    version: str
    board: Board
    plan: Plan
    story: StoryRecord
    measured: Candidate
    locked: tuple[int, ...]


@dataclass(frozen=True)
class Edited:
    """What an edit left. `drawn`: the frames with a new picture; `remarks`: what was kept or dropped, and why."""

    version: str
    result: RunResult
    drawn: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Take:
    """One picture that a frame could have: `panels/SHA256.png` in the run's folder. `chosen`: it is on the board."""

    frame: int
    seed: int
    prompt: str
    sha256: str
    chosen: bool


@dataclass(frozen=True)
class Proposal:
    """A bridge that could go in. `gain` is what the score would rise by, `accepts` and `reason` are the rule's."""

    pair: Pair
    seed: int
    prompt: str
    sha256: str
    score: float
    gain: float
    accepts: bool
    reason: str


@dataclass(frozen=True)
class Version:
    """One state of the board. `says` is what was done to get it from `parent`; `score` Eq. 24's total."""

    name: str
    parent: str | None
    says: str
    frames: tuple[Frame, ...]
    score: float | None
    current: bool


@dataclass(frozen=True)
class Change:
    """One difference between two versions.

    what: "frame 3", "panel 2, prompt", "character fox, appearance". before, after: in words; None where there is
    nothing on that side. pictures: the hashes of a frame's picture before and after.
    """

    what: str
    before: str | None
    after: str | None
    pictures: tuple[str | None, str | None] | None = None


def read_board(run: Path) -> BoardView:
    """Return the board of a finished run as it stands; nothing is claimed or written.

    Raises:
        OutputFolderError: `run` holds no finished run.
    """
    raise NotImplementedError


def edit_board(
    run: Path,
    edits: Sequence[Edit],
    *,
    base: str | None = None,
    on_event: Emit | None = None,
    plugins: Plugins | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Edited:
    """Do `edits` in order as one step: draw what they change, read its transitions again, judge what depends on it.

    base: the version that the person saw; refused when the board is another by now. changes: settings that go over the
    run's own and change no picture (`memory`, options of the renderers). plugins: made before, to save their start.

    Raises:
        UsageError: an edit cannot be done (no such frame, a locked one), or `base` is not the current version.
        OutputFolderError: `run` is no finished run, or its plug-ins have changed.
        KathaError: drawing or judging failed; the run is as it was.
    """
    raise NotImplementedError


def draw_takes(
    run: Path,
    frame: int,
    seeds: Sequence[int] = (),
    *,
    count: int = 3,
    prompt: str | None = None,
    on_event: Emit | None = None,
    plugins: Plugins | None = None,
    changes: Mapping[str, Any] | None = None,
) -> tuple[Take, ...]:
    """Return takes of one frame, the one on the board first; the board does not change (`TakeFrame` chooses one).

    seeds: which to draw; without them `count` new ones. prompt: drawn instead of the frame's own.
    """
    raise NotImplementedError


def propose_bridge(
    run: Path,
    pair: Pair | None = None,
    seeds: Sequence[int] = (),
    *,
    prompt: str | None = None,
    on_event: Emit | None = None,
    plugins: Plugins | None = None,
    changes: Mapping[str, Any] | None = None,
) -> tuple[Proposal, ...]:
    """Draw and measure bridges for the weakest transition, or for `pair`, best first; `InsertBridge` takes one."""
    raise NotImplementedError


def undo(run: Path) -> Edited:
    """Go back to the version that the current one was made from.

    Raises:
        UsageError: the board is as it was drawn.
    """
    raise NotImplementedError


def forward(run: Path) -> Edited:
    """Go forth to the version that was made last from the current one.

    Raises:
        UsageError: nothing was made from it.
    """
    raise NotImplementedError


def go_to(run: Path, version: str) -> Edited:
    """Go to any version.

    Raises:
        UsageError: there is none of that name.
    """
    raise NotImplementedError


def list_versions(run: Path) -> tuple[Version, ...]:
    """Return every version in the order in which they were made."""
    raise NotImplementedError


def diff_versions(run: Path, before: str | None = None, after: str | None = None) -> tuple[Change, ...]:
    """Return what differs between two versions: unless told, the current one and the one that it was made from."""
    raise NotImplementedError
