"""A finished run's board in a person's hands: change it, look at takes, go back and forth, and compare versions.

This is the one way to edit a board; it knows neither a terminal nor a browser. Every function claims the run's folder
for as long as it works, leaves the old version or the new one after a kill, and may be called from any process. What
can be changed is in `katha.agents.editor.edits`.

Every state of the board is a version with a name (`001` is the board as it was drawn), and none is ever lost: `undo`,
`forward` and `go_to` move between them, an edit after an `undo` begins a branch. A person who edits `plan.json` in the
run's folder has made an edit, too: the next call takes it over as a version of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from katha.agents import repairing
from katha.agents.context import Plugins, RunContext, load_plugins, make_writer, require_drawers
from katha.agents.critique import measure
from katha.agents.editor.board_edits import BoardDraft, is_locked
from katha.agents.editor.edit_session import Edited, EditSession, apply, claimed, measured_of, picture, state_of
from katha.agents.editor.edits import (
    AddFrame,
    Edit,
    EditedWords,
    GivePicture,
    InsertBridge,
    MakeMove,
    Pair,
    ReplacePlan,
    TakeFrame,
)
from katha.agents.editor.versions import Version as Version
from katha.agents.editor.versions import diff_versions as diff_versions
from katha.agents.editor.versions import forward as forward
from katha.agents.editor.versions import go_to as go_to
from katha.agents.editor.versions import list_versions as list_versions
from katha.agents.editor.versions import undo as undo
from katha.agents.folder import RunFolder
from katha.agents.frames import next_seed, numbered
from katha.agents.spending import spending
from katha.agents.state import Emit, RunResult, ignore_event
from katha.compass.modes import load_mode
from katha.compass.repair import accept, weakest_transition
from katha.config import Settings, cache_folder, read_settings, refuse_code
from katha.errors import InputFileError, KathaError, OutputFolderError, UsageError
from katha.jsonio import read_record, sha256_hex
from katha.models.calls import noting_calls
from katha.photographs import PictureEdit, prepared_png
from katha.pictures import decode, png_problem, png_size
from katha.planners.base import require_readable
from katha.renderers.references import reference_png
from katha.renderers.vector.raster import rasterise
from katha.renderers.vector.svg import DrawingFault, read_svg, self_contained
from katha.schema import Board, Candidate, Move, Panel, Plan, StoryRecord
from katha.store import Store

_MOVES_BY = "agentic"
"""The mode whose moves are offered for a board, whatever mode it was made by."""
_MOST_OWN = 5_000_000
"""Bytes of a drawing of a person's own."""


@dataclass(frozen=True)
class EditedBoard:
    """The board as it stands. `version` is its name; `locked` the numbers of the frames that are held."""

    version: str
    board: Board
    plan: Plan
    story: StoryRecord
    measured: Candidate
    locked: tuple[int, ...]


@dataclass(frozen=True)
class FrameTake:
    """One picture that a frame could have: `panels/SHA256.png` in the run's folder. `chosen`: it is on the board."""

    frame: int
    seed: int
    prompt: str
    sha256: str
    chosen: bool


@dataclass(frozen=True)
class Proposal:
    """A bridge that could go in, or what a `move` would draw; the picture is of its first frame. `gain` is what the
    score would rise by, `accepts` and `reason` are the rule's."""

    pair: Pair
    seed: int
    prompt: str
    sha256: str
    score: float
    gain: float
    accepts: bool
    reason: str
    move: Move | None = None


@contextmanager
def _opened(
    run: Path, on_event: Emit | None, plugins: Plugins | None, changes: Mapping[str, Any] | None
) -> Iterator[tuple[EditSession, Edited | None]]:
    """A finished run to work on; an edited `plan.json` is taken over first, and what came of it is told."""
    with claimed(run) as folder:
        state = state_of(folder)
        refuse_code(state.config, f"The run in {str(run)!r}", received=True)
        config = read_settings(Settings, state.config).with_plugins(**changes or {})
        require_drawers(changes or {}, [config.renderer, config.bridge_renderer])
        made = plugins or load_plugins(config)
        folder.resume(state.model_copy(update=made.specs()))
        with (
            Store(cache_folder(), owner=state.run_id) as store,
            noting_calls(folder.calls),
            spending(folder, made.budget),
        ):
            desk = EditSession(folder, config, made, store, on_event or ignore_event)
            yield desk, take_plan(desk)


def take_plan(desk: EditSession) -> Edited | None:
    """Take over what a person wrote into `plan.json`, as a version of its own; None when there is nothing."""
    folder, state = desk.folder, desk.state
    edited = folder.edited_plan(state)
    if edited is None:
        return None
    require_readable(edited)
    board = read_record(folder.storyboard, Board)
    known = folder.kept_plan(state) or _former(edited, board)
    folder.put_aside(edited, known)
    try:
        done = apply(desk, [ReplacePlan(plan=edited)])
    except KathaError:
        folder.put_back()
        raise
    folder.forget_edited()
    return done


def _former(edited: Plan, board: Board) -> Plan:
    """The plan before it was edited, as far as the board of an older katha knows it: the prompts that were drawn."""
    drawn = {frame.scene: frame.prompt for frame in board.frames if frame.scene is not None}
    panels = [
        panel.model_copy(update={"prompt": drawn.get(panel.index, panel.prompt)})
        for panel in edited.panels
        if panel.index in drawn
    ]
    return edited.model_copy(update={"panels": panels})


def read_board(run: Path) -> EditedBoard:
    """Return the board of a finished run as it stands; nothing is claimed or written.

    Raises:
        OutputFolderError: `run` holds no finished run.
    """
    version, place = _standing(run)
    result = place.load_result(reused=True)
    return EditedBoard(
        version=version,
        board=result.board,
        plan=place.load_plan(),
        story=place.load_story(),
        measured=measured_of(result.candidates),
        locked=tuple(frame.index for frame in result.board.frames if is_locked(frame)),
    )


def count_drawn(run: Path, edits: Sequence[Edit]) -> int:
    """Return how many pictures edits of a finished board would have drawn at most; nothing is claimed or written.

    Raises:
        UsageError: an edit does not fit the board. OutputFolderError: `run` holds no finished run.
    """
    stands = read_board(run)
    draft = BoardDraft.of(stands.plan, stands.board, stands.story.transitions or stands.plan.transitions)
    for edit in edits:
        draft.apply(edit)
    settled = draft.settled()
    return sum(settled.spots[at].given is None for at in settled.draw)


def version_of(run: Path) -> str:
    """Return the name of the version that the board of a finished run stands at; nothing is claimed or written.

    Raises:
        OutputFolderError: `run` holds no finished run.
    """
    return _standing(run)[0]


def _standing(run: Path) -> tuple[str, RunFolder]:
    """The version that a board stands at, and where its files are: one that a killed change began from is not left."""
    folder = RunFolder(run)
    state, pending = state_of(folder), folder.pending_version()
    place = RunFolder(folder.versions / pending) if pending is not None else folder
    if not place.whole():
        raise OutputFolderError(
            f"{str(run)!r} holds no finished run.", hint="Finish it first: run the same `katha run` again."
        )
    return pending or state.version, place


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
        OutputFolderError: `run` is not a finished run, or its plug-ins have changed.
        KathaError: drawing or judging failed; the run is as it was.
    """
    with _opened(run, on_event, plugins, changes) as (desk, written):
        if base is not None and base != desk.state.version:
            raise UsageError(
                f"The board is version {desk.state.version} by now, and this was said of version {base}.",
                hint="Look at the board as it is, and say it again.",
            )
        if not edits:
            if written is None:
                raise UsageError("There is nothing to do.", hint="Name a frame, or edit plan.json in the run's folder.")
            return written
        done = apply(desk, edits)
        if written is None:
            return done
        return replace(
            done,
            remarks=(*written.remarks, *done.remarks),
            drawn=(*written.drawn, *done.drawn),
            reread=(*written.reread, *done.reread),
        )


def redo_frame(
    run: Path,
    frame: int,
    seed: int,
    on_event: Emit | None = None,
    *,
    plugins: Plugins | None = None,
    changes: Mapping[str, Any] | None = None,
) -> RunResult:
    """Draw frame number `frame` (from 1) with `seed`; the rest is as in `edit_board`.

    A call that was killed leaves the old version or the new one; the same call again finishes it.
    """
    edit = TakeFrame(frame=frame, seed=seed)
    return edit_board(run, [edit], on_event=on_event, plugins=plugins, changes=changes).result


def keep_picture(run: Path, data: bytes, what: str = "The picture") -> str:
    """Keep a picture of a character in the run, as a PNG without metadata; its sha256 is what an edit names it by.

    The board does not change (`ChangeCharacter.reference` puts it on a sheet), so that nothing is claimed.

    Raises:
        InputFileError: it is not a picture that can be used; the sentence begins with `what`.
        OutputFolderError: `run` holds no run.
    """
    folder = RunFolder(run)
    state, png = state_of(folder), reference_png(data, what)
    sha256 = sha256_hex(png)
    folder.add_panel(sha256, png)
    with Store(cache_folder(), owner=state.run_id) as store:  # lost files are made again from there
        store.blobs.put(png)
    return sha256


def keep_drawing(run: Path, source: bytes, frame: int) -> str:
    """Keep an SVG of a person's own in the run, for frame number `frame` (from 1); the sha256 of its picture.

    What an editor adds of its own (layers' names, guides) is left out. `GivePicture` puts it on the board.

    Raises:
        InputFileError: it is not a drawing that can be used. UsageError: there is no such frame.
        OutputFolderError: `run` holds no run.
    """
    folder = RunFolder(run)
    state, frames = state_of(folder), read_board(run).board.frames
    if not 1 <= frame <= len(frames):
        raise UsageError(f"There is no frame {frame}.", hint=f"The storyboard has frames 1 to {len(frames)}.")
    try:
        size = png_size(folder.panel(frames[frame - 1].sha256) or b"")
        svg = self_contained(read_svg(source, most_bytes=_MOST_OWN, lenient=True), None)
        png = rasterise(svg, *size)
    except DrawingFault as fault:
        raise InputFileError(f"The drawing for frame {frame} cannot be used: {fault}") from None
    return _keep(folder, state.run_id, png, svg)


def keep_received(run: Path, png: bytes, source: bytes | None, frame: int) -> str:
    """Keep a picture of a copy of this run, for frame number `frame`, with its drawing where it has one; its sha256.

    Raises:
        InputFileError: it is not a picture or drawing that can be used, or of another size than the board's.
    """
    folder, what = RunFolder(run), f"The picture for frame {frame}"
    state = state_of(folder)
    problem = png_problem(png)
    if problem is not None:
        raise InputFileError(f"{what} {problem}.")
    decode(png, what)
    size = png_size(folder.panel(read_board(run).board.frames[frame - 1].sha256) or png)
    if png_size(png) != size:
        raise InputFileError(f"{what} has {png_size(png)[0]}x{png_size(png)[1]} pixels, the board {size[0]}x{size[1]}.")
    try:
        svg = read_svg(source, most_bytes=_MOST_OWN, lenient=True) if source is not None else None
    except DrawingFault as fault:
        raise InputFileError(f"The drawing for frame {frame} cannot be used: {fault}") from None
    return _keep(folder, state.run_id, png, self_contained(svg, None) if svg is not None else None)


def prepared_own(run: Path, data: bytes, how: PictureEdit | None = None, what: str = "The picture") -> bytes:
    """Return a picture of a person's own as a PNG of the size of the board's frames; nothing is kept.

    Raises:
        InputFileError: it is not a picture that can be used; the sentence begins with `what`.
        OutputFolderError: `run` holds no finished run.
    """
    folder, frames = RunFolder(run), read_board(run).board.frames
    panel = next((png for frame in frames if (png := folder.panel(frame.sha256)) is not None), None)
    if panel is None:
        raise OutputFolderError(f"The pictures of {str(run)!r} are lost.", hint=f"Bring them back: katha run {run}.")
    return prepared_png(data, what, png_size(panel), how)


def keep_own(run: Path, data: bytes, how: PictureEdit | None = None, what: str = "The picture") -> str:
    """Keep a picture of a person's own (a drawing, a photograph of one), made ready for the board's frames; its sha256
    is what `GivePicture` names it by.

    Raises:
        InputFileError: it is not a picture that can be used; the sentence begins with `what`.
        OutputFolderError: `run` holds no finished run.
    """
    folder = RunFolder(run)
    return _keep(folder, state_of(folder).run_id, prepared_own(run, data, how, what))


def _keep(folder: RunFolder, owner: str, png: bytes, svg: str | None = None) -> str:
    """Put a picture, and its drawing, into the run's folder and the store; return its sha256."""
    folder.add_panel(sha256 := sha256_hex(png), png)
    with Store(cache_folder(), owner=owner) as store:
        store.blobs.put(png)
        if svg is not None:
            folder.add_source(sha256, svg.encode("utf-8"))
            store.frames.put_source(sha256, svg.encode("utf-8"))
    return sha256


def copied_from(run: Path, other: Path, frame: int, at: int | None = None) -> list[Edit]:
    """Return the edits that put frame number `frame` of the board in `other` on the board in `run`, before its frame
    `at`, or last; its words come with it, and of its cast whoever is in both.

    Raises:
        UsageError: there is no such frame. OutputFolderError: one of the folders holds no finished run.
    """
    theirs, ours = read_board(other), read_board(run)
    if not 1 <= frame <= len(theirs.board.frames):
        hint = f"That storyboard has frames 1 to {len(theirs.board.frames)}."
        raise UsageError(f"There is no frame {frame} in {str(other)!r}.", hint=hint)
    taken = theirs.board.frames[frame - 1]
    png = RunFolder(other).panel(taken.sha256)
    if png is None:
        raise UsageError(f"The picture of frame {frame} in {str(other)!r} is lost.", hint=f"Run: katha run {other}.")
    own = [panel for panel in theirs.plan.panels if panel.index == taken.scene]
    panel = taken.panel or next(iter(own), Panel(index=1, prompt=taken.prompt))
    cast = {item.name for item in ours.plan.characters}
    told = {name: value for name in EditedWords.model_fields if (value := panel.model_dump().get(name))}
    told |= {"characters": [name for name in panel.characters if name in cast], "prompt": panel.prompt}
    place = len(ours.board.frames) + 1 if at is None else at
    added = AddFrame.model_validate({"at": place, "seed": taken.seed, **told})
    return [added, GivePicture(frame=place, picture=keep_own(run, png))]


def find_frames(run: Path, words: str) -> tuple[int, ...]:
    """Return the numbers of the frames of which something that is said of them holds all of these words, whatever their
    capitals: a caption, a prompt, a place, a character, anything of their panels."""
    view, wanted = read_board(run), words.casefold().split()
    panels = {panel.index: panel for panel in view.plan.panels}
    found = []
    for frame in view.board.frames:
        panel = frame.panel or panels.get(frame.scene or 0)
        told = [frame.prompt, frame.kind, *(map(str, panel.model_dump().values()) if panel is not None else ())]
        text = " ".join(told).casefold()
        if wanted and all(word in text for word in wanted):
            found.append(frame.index)
    return tuple(found)


# Pictures to choose from; the board does not change.


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
) -> tuple[FrameTake, ...]:
    """Return takes of one frame, the one on the board first; the board does not change (`TakeFrame` chooses one).

    seeds: which to draw; without them `count` new ones. prompt: drawn instead of the frame's own.
    """
    with _opened(run, on_event, plugins, changes) as (desk, _):
        known = desk.context(glance=True)
        board = desk.folder.load_result(reused=True).board
        if not 1 <= frame <= len(board.frames):
            raise UsageError(f"There is no frame {frame}.", hint=f"The storyboard has frames 1 to {len(board.frames)}.")
        old = board.frames[frame - 1]
        takes = [FrameTake(frame, old.seed, old.prompt, old.sha256, chosen=True)]
        for seed in seeds or _new_seeds(old.seed, count):
            draft = BoardDraft.of(known.plan(), board, known.trajectory())
            draft.apply(TakeFrame(frame=frame, seed=seed, prompt=prompt))
            settled = draft.settled()
            context = desk.context(settled.plan, known.story(), glance=True)
            frames, _, _ = picture(context, board, settled, desk.emit)
            new = frames[frame - 1]
            takes.append(FrameTake(frame, new.seed, new.prompt, new.sha256, chosen=False))
        return tuple(takes)


def _new_seeds(seed: int, count: int) -> list[int]:
    found = [next_seed(seed)]
    while len(found) < count:
        found.append(next_seed(found[-1]))
    return found


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
    """Draw and measure bridges for the weakest transition, or for `pair`, best first; `InsertBridge` takes one.

    Raises:
        UsageError: there is a frame in every transition, or in `pair`, or nobody can draw one.
    """
    with _opened(run, on_event, plugins, changes) as (desk, _):
        known = desk.context(glance=True)
        if desk.plugins.inserter.capabilities.insertion == "none":
            who = desk.config.bridge_renderer or desk.config.renderer
            raise UsageError(f"The renderer {who!r} cannot draw a bridge.", hint="Give --bridge-renderer NAME.")
        result = desk.folder.load_result(reused=True)
        measured = measured_of(result.candidates)
        used = {item.transition for item in result.board.frames}
        weakest = weakest_transition([item for item in measured.transitions if item.pair not in used])
        where = pair or (weakest.pair if weakest is not None else None)
        if where is None:
            raise UsageError("There is no transition without a frame in it.", hint="Name one by its two scenes.")
        found = [
            _proposed(desk, known, result.board, measured, InsertBridge(pair=where, seed=seed, prompt=prompt))
            for seed in seeds or known.config.seeds
        ]
        return tuple(sorted(found, key=lambda item: -item.score))


def propose_moves(
    run: Path,
    *,
    on_event: Emit | None = None,
    plugins: Plugins | None = None,
    changes: Mapping[str, Any] | None = None,
) -> tuple[Move, ...]:
    """Return the moves that may make the weakest transition readable, from what the judges missed; nothing is drawn.

    `try_move` draws and measures one, `MakeMove` takes it.

    Raises:
        UsageError: no steering question was missed, or nothing was proposed.
    """
    with _opened(run, on_event, plugins, changes) as (desk, _):
        known = _repairing(desk)
        result = desk.folder.load_result(reused=True)
        measured = measured_of(result.candidates)
        weakest = weakest_transition(measured.transitions)
        if weakest is None:
            raise UsageError("The board has no transition that could be repaired.")
        made = repairing.propose(known, result.board, weakest.pair, (), 1, desk.emit)
        if not made.moves:
            raise UsageError(made.why or "Nothing was proposed.", hint="Draw a bridge, or change a frame in words.")
        return tuple(made.moves)


def try_move(
    run: Path,
    move: Move,
    seeds: Sequence[int] = (),
    *,
    on_event: Emit | None = None,
    plugins: Plugins | None = None,
    changes: Mapping[str, Any] | None = None,
) -> tuple[Proposal, ...]:
    """Draw and measure a move with each seed, best first; the board does not change.

    Raises:
        UsageError: it cannot be drawn on the board as it is.
    """
    with _opened(run, on_event, plugins, changes) as (desk, _):
        known = desk.context(glance=True)
        result = desk.folder.load_result(reused=True)
        measured = measured_of(result.candidates)
        found = [
            _proposed(desk, known, result.board, measured, MakeMove(repair=move, seed=seed))
            for seed in seeds or known.config.seeds
        ]
        return tuple(sorted(found, key=lambda item: -item.score))


def _repairing(desk: EditSession) -> RunContext:
    """Return the board's surroundings with a writer of moves."""
    config = desk.config.model_copy(update={"mode": _MOVES_BY})
    writer = desk.plugins.writer or make_writer(config, desk.plugins.planner, desk.plugins.budget)
    mode, plugins = load_mode(_MOVES_BY), replace(desk.plugins, writer=writer)
    return replace(desk.context(glance=True), mode=mode, plugins=plugins)


def _proposed(
    desk: EditSession, known: RunContext, board: Board, measured: Candidate, edit: InsertBridge | MakeMove
) -> Proposal:
    draft = BoardDraft.of(known.plan(), board, known.trajectory())
    draft.apply(edit)
    settled = draft.settled()
    context = replace(desk.context(settled.plan, known.story(), glance=True), measured=known.measured)
    frames, drawn, _ = picture(context, board, settled, desk.emit)
    move = edit.repair if isinstance(edit, MakeMove) else None
    tried = board.model_copy(update={"frames": numbered(frames), "method": f"{edit.op}:{edit.seed}"})
    candidate = measure(known, tried.method, tried, desk.emit)
    verdict = accept(measured, candidate, known.config.compass)
    new = frames[(drawn or (edit.pair[1],))[0] - 1]
    gain = candidate.score.total - measured.score.total
    told = (candidate.score.total, gain, verdict.accepted, verdict.reason)
    return Proposal(edit.pair, new.seed, new.prompt, new.sha256, *told, move=move)
