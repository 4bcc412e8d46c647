"""One step of editing: what edits make of a board's plan and pictures, what these are worth, and how it is kept.

`editing` is where a person's edits come in; what they change is worked out in `board_edits`, what rests on
it in `rereading`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from katha.agents.context import Plugins, PreparedStory, RunContext, plan_sha256
from katha.agents.critique import finish, judge_boards, measure, write_results
from katha.agents.editor.board_edits import BoardDraft, EditResult, FrameSlot, is_locked
from katha.agents.editor.edits import EDIT, ChangeFrame, Edit, TakeFrame, TalkFrame
from katha.agents.editor.names import name_frames
from katha.agents.editor.rereading import Reread, reread
from katha.agents.folder import RunFolder, RunRecord, RunSummary
from katha.agents.frames import (
    board_requests,
    draw_amended,
    draw_inside,
    insertion_of,
    picture_at,
    source_name,
    together,
)
from katha.agents.pictures import reference_of, unfollowed, unfollowed_things
from katha.agents.redrawing import draw_into, pictured, unmarked
from katha.agents.requests import unfollowed_shots, with_stand_ins
from katha.agents.state import Emit, RunResult
from katha.compass.effects import BY_HAND
from katha.compass.moves import told_kind
from katha.compass.repair import weakest_transition
from katha.config import Settings
from katha.errors import JudgeError, KathaError, OutputFolderError, StoreError, UsageError
from katha.pictures import png_size
from katha.schema import Answer, Board, Candidate, Candidates, Decision, Event, Frame, Plan, StoryRecord
from katha.store import Store

_SHA256 = re.compile(r"[0-9a-f]{64}")
_UNDER_WAY = re.compile(r" Then (?!: ).* by hand\b.*\Z", re.DOTALL)


@dataclass(frozen=True)
class Edited:
    """What an edit left. `drawn`: the frames with a new picture; `remarks`: what was kept or dropped, and why; those of
    them that are about transitions and questions are `reread`."""

    version: str
    result: RunResult
    drawn: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
    reread: tuple[str, ...] = ()


def state_of(folder: RunFolder) -> RunRecord:
    state = folder.read()
    if state is None:
        raise OutputFolderError(f"{str(folder.path)!r} holds no run.", hint="Name the folder of a finished run.")
    return state


@contextmanager
def claimed(run: Path) -> Iterator[RunFolder]:
    """The folder of a finished run, held alone, a change that was killed undone.

    Raises:
        OutputFolderError: there is none, or another katha works in it.
    """
    if not run.exists():
        raise OutputFolderError(f"There is no folder {str(run)!r}.", hint="Name the folder of a finished run.")
    folder = RunFolder(run)
    with folder.claim():
        folder.restore()
        state = folder.read()
        whole = state is not None and state.status != "running" and not state.replay
        if state is None or not whole or folder.load_outcome().failed or not _sound(folder, state):
            raise OutputFolderError(
                f"{str(run)!r} holds no finished run.", hint="Finish it first: run the same `katha run` again."
            )
        yield folder


def _sound(folder: RunFolder, state: RunRecord) -> bool:
    """Return whether every result is as it was left, an edited plan apart.

    Raises:
        PlanError: what stands in `plan.json` is not a plan.
    """
    return not folder.damaged(state) or folder.edited_plan(state) is not None


@dataclass(frozen=True)
class EditSession:
    """A run's folder that is claimed, and what is needed to work on it."""

    folder: RunFolder
    config: Settings
    plugins: Plugins
    store: Store
    emit: Emit

    @property
    def state(self) -> RunRecord:
        """Return what `run.json` says now."""
        return state_of(self.folder)

    def context(
        self, plan: Plan | None = None, story: StoryRecord | None = None, *, glance: bool = False
    ) -> RunContext:
        """The surroundings of the board as it stands, or with another plan and story; `glance` writes nothing."""
        ready = PreparedStory(plan or self.folder.load_plan(), story or self.folder.load_story())
        record = ready.story or self.folder.load_story()
        files = RunSummary(self.folder) if glance else self.folder
        return RunContext.open(record, self.config, self.plugins, self.store, files, ready=ready)


def measured_of(candidates: Candidates) -> Candidate:
    """The candidate that the decision leaves."""
    decision = candidates.decision
    name = (decision.inserted if decision.accepted else decision.selected) or decision.selected
    return next(item for item in candidates.candidates if item.name == name)


# One step: what the edits make of the plan, its pictures, and what they are worth; between a version that is kept and
# its commit.


def apply(desk: EditSession, edits: Sequence[Edit]) -> Edited:
    """Do `edits` to the board in the folder, as one version.

    Raises:
        JudgeError: questions about it got no answer; the run is as it was.
    """
    folder, state, before = desk.folder, desk.state, desk.folder.load_result(reused=False)
    known = desk.context()
    plan = known.plan(before.board.plan_sha256)
    draft = BoardDraft.of(plan, before.board, known.trajectory())
    for edit in edits:
        draft.apply(edit)
    settled = draft.settled()
    planned = desk.context(settled.plan, known.story())
    _require_references(planned)
    # A person waits for the picture: it is drawn before what only the judging rests on is read.
    early = _stand_alone(planned, settled)
    pictured = picture(planned, before.board, settled, desk.emit) if early else None
    rest = reread(plan, known.story(), settled)
    context = desk.context(rest.plan, rest.story)
    if rest.plan != plan:
        rest = replace(rest, plan=with_stand_ins(context, plan))
        context = desk.context(rest.plan, rest.story)
    frames, drawn, remarks = pictured or picture(context, before.board, settled, desk.emit)
    remarks += tuple(unfollowed(desk.plugins.renderer, desk.config.renderer, plan.characters, rest.plan.characters))
    things, was = (item.visual.props if item.visual is not None else [] for item in (rest.plan, plan))
    remarks += tuple(unfollowed_things(desk.plugins.renderer, desk.config.renderer, was, things))
    remarks += tuple(unfollowed_shots(context, plan, settled.scenes, frames))
    board = before.board.model_copy(update={"frames": frames, "plan_sha256": plan_sha256(rest.plan)})
    if board == before.board and rest.story == known.story() and rest.plan == plan:
        if state.replay:
            folder.write(state.model_copy(update={"replay": state.replay[1:]}))
        name_frames(folder, board, plan)  # a kill may have come between the version and its names
        told = (*settled.remarks, *rest.remarks, *remarks)
        return Edited(state.version, folder.load_result(reused=True), (), told, rest.remarks)
    version = folder.keep_version(state)
    try:
        folder.save_plan(rest.plan, rest.story)
        _judged(context, before, board, _Step(edits, version, settled, rest), desk.emit)
    except KathaError:
        folder.restore()
        raise
    redone = [*state.redone, _entry(edits, state.version)]
    result = finish(
        context, state.model_copy(update={"redone": redone, "version": version, "replay": state.replay[1:]})
    )
    folder.commit_version()
    name_frames(folder, board, rest.plan)
    return Edited(version, result, drawn, (*settled.remarks, *rest.remarks, *remarks), rest.remarks)


def _stand_alone(context: RunContext, settled: EditResult) -> bool:
    """Return whether what is drawn rests on no transition that may be read anew: scenes whose frames stand alone."""
    scenes = all(settled.spots[at].panel is not None for at in settled.draw)
    renderer = context.plugins.renderer
    drawers = filter(None, (renderer, context.plugins.guide_of(renderer)))
    return scenes and not any(map(together, drawers)) and renderer.capabilities.source == "drawn"


def _require_references(context: RunContext) -> None:
    """Refuse a picture of a character or a prop that the run does not keep.

    Raises:
        UsageError: the character or the prop is named.
    """
    plan = context.plan()
    for item in (*plan.characters, *(plan.visual.props if plan.visual is not None else ())):
        sha256 = reference_of(item)
        if sha256 is None:
            continue
        try:
            known = _SHA256.fullmatch(sha256) is not None and bool(picture_at(context, sha256))
        except StoreError:
            known = False
        if not known:
            said = f"The reference picture of {item.name!r} is not a picture that this run keeps."
            hint = "Give the picture itself: in the desk's Cast, or `katha redo RUN --characters DIR`."
            raise UsageError(said, hint=hint)


@dataclass(frozen=True)
class _Step:
    """Edits, the version that they make, and what they came to."""

    edits: Sequence[Edit]
    version: str
    settled: EditResult
    rest: Reread

    @property
    def take(self) -> TakeFrame | None:
        """The only edit, where it draws a frame again and changes nothing else."""
        return _plain_take(self.edits)

    @property
    def name(self) -> str:
        """Return what the board is called among the candidates."""
        return f"redo:{self.take.frame}:{self.take.seed}" if self.take else f"edit:{self.version}"


def _plain_take(edits: Sequence[Edit]) -> TakeFrame | None:
    """The only edit, where it asks for another seed of a whole frame and for nothing else."""
    only = edits[0] if len(edits) == 1 else None
    return only if isinstance(only, TakeFrame) and only.prompt is None and only.mask is None else None


def _entry(edits: Sequence[Edit], version: str) -> dict[str, object]:
    """Return what `run.json` keeps of one step."""
    take = _plain_take(edits)
    if take is not None:
        return {"frame": take.frame, "seed": take.seed, "version": version}
    told = [edit.model_dump(mode="json", exclude_none=True) for edit in edits]
    return {"edits": told, "says": said(edits), "version": version}


def said(edits: Sequence[Edit]) -> str:
    """Return what was done, in words without a full stop."""
    alike: dict[str, list[ChangeFrame]] = {}
    told: list[str] = []
    for edit in edits:
        if not isinstance(edit, ChangeFrame):
            told.append(_said(edit))
            continue
        words = edit.model_dump_json(exclude={"frame"})
        if words not in alike:
            told.append(words)
        alike.setdefault(words, []).append(edit)
    done = (_said(alike[item][0], _numbers(alike[item])) if item in alike else item for item in told)
    return "; ".join(one.rstrip(".") for one in done)


def _numbers(edits: Sequence[ChangeFrame]) -> str:
    """The frames that got the same words: "frame 3", "frames 3, 4, 5"."""
    return f"frame{'s' if len(edits) > 1 else ''} {', '.join(str(edit.frame) for edit in edits)}"


_DONE = {
    "picture": "frame {frame} got a picture of your own",
    "amend": "frame {frame} was changed: {words}",
    "add": "a frame was added as number {at}",
    "split": "frame {frame} was split",
    "duplicate": "frame {frame} was doubled",
    "remove": "frame {frame} was removed",
    "move": "frame {frame} was moved to place {to}",
    "new_character": "the character {name} was added",
    "drop_character": "the character {name} was taken off the cast",
    "merge_characters": "the characters {name} and {into} were made one",
    "bridge": "a bridge was put between scenes {pair[0]} and {pair[1]}",
    "plan": "plan.json was edited",
}
"""What was done by an edit that needs no more than its fields to be said."""


def _said(edit: Edit, where: str = "") -> str:
    if edit.op in _DONE:
        return _DONE[edit.op].format_map(edit.model_dump())
    told = edit.model_dump(exclude_none=True, exclude={"op", "frame", "pair", "name"})
    what = " and ".join(name.replace("_", " ") for name in told)
    match edit.op:
        case "take":
            where = " inside a mask" if edit.mask else ""
            words = " from a new prompt" if edit.prompt else ""
            return f"frame {edit.frame} was drawn{where} with seed {edit.seed}{words}"
        case "change":
            return f"{where or f'frame {edit.frame}'} got another {what or 'nothing'}"
        case "lock":
            return f"frame {edit.frame} was {'locked' if edit.locked else 'unlocked'}"
        case "talk":
            return f"frame {edit.frame} got {_talked(edit)}"
        case "character" | "prop":
            return f"the {edit.op} {edit.name} got another {what.replace('new name', 'name') or 'nothing'}"
        case "transition":
            return f"the transition {edit.pair[0]} to {edit.pair[1]} got another {what or 'nothing'}"
        case "repair":
            return f"{told_kind(edit.repair)[0].lower()}{told_kind(edit.repair)[1:]}"
    raise AssertionError(edit.op)


def _talked(edit: TalkFrame) -> str:
    status = f"the status {edit.status}" if edit.status else "no status" if edit.status is not None else ""
    return " and ".join(words for words in ("a comment" if edit.comments else "", status) if words) or "nothing"


def picture(
    context: RunContext, old: Board, settled: EditResult, emit: Emit
) -> tuple[list[Frame], tuple[int, ...], tuple[str, ...]]:
    """The edited board's frames, the numbers of those that were drawn, and remarks on those that could not be."""
    laid = [_laid(context, spot, at) for at, spot in enumerate(settled.spots, 1)]
    found = context.plugins.renderer.capabilities.source == "found"
    draw, remarks = [], []
    for at in settled.draw:
        spot = settled.spots[at]
        if not found or spot.panel is None or spot.frame is None or spot.fresh:
            draw.append(at)
            continue
        who = context.config.renderer
        remarks.append(f"Frame {at + 1} keeps its picture, since {who!r} found it and drew none; its words changed.")
    board = old.model_copy(update={"frames": laid})
    if draw:
        emit(Event(stage="render", kind="started", total=len(draw)))
        own = {at: given for at in draw if (given := settled.spots[at].given) is not None}
        for at, sha256 in own.items():
            laid[at] = _given(context, laid[at], sha256, emit)
        masks = {at: mask for at in draw if (mask := settled.spots[at].mask) is not None}
        for at, mask in masks.items():
            laid[at] = _inpainted(context, board, at, mask, emit)
        amended = {at: asked for at in draw if (asked := settled.spots[at].amended) is not None}
        for at, (words, part) in amended.items():
            laid[at] = _amended(context, board, at, words, part, emit)
        board = board.model_copy(update={"frames": laid})
        done = masks.keys() | own.keys() | amended.keys()
        for at, frame in draw_into(context, board, [at for at in draw if at not in done], emit):
            laid[at] = frame
            board = board.model_copy(update={"frames": laid})
        emit(Event(stage="render", kind="finished"))
    were = [spot.frame.sha256 if spot.frame is not None else None for spot in settled.spots]
    _mark_stale(laid, were, set(settled.draw))
    return laid, tuple(at + 1 for at in draw if laid[at].sha256 != were[at]), tuple(remarks)


def _mark_stale(laid: list[Frame], were: Sequence[str | None], drawn: Collection[int]) -> None:
    """Mark the inserted frames that stayed while a picture of one of their two scenes was changed."""
    changed = {frame.scene for at, frame in enumerate(laid) if frame.sha256 != were[at]}
    for at, frame in enumerate(laid):
        if frame.transition is not None and at not in drawn and not changed.isdisjoint(frame.transition):
            laid[at] = frame.model_copy(update={"stale": True})


def _laid(context: RunContext, spot: FrameSlot, number: int) -> Frame:
    """The frame of a spot, before it is drawn: with the picture that it has, if any."""
    scene = spot.panel.index if spot.panel is not None else None
    prompt = spot.panel.prompt if spot.panel is not None else spot.prompt
    if spot.panel is None and spot.between is not None and not prompt:
        prompt = insertion_of(context, spot.between).prompt
    if spot.frame is None:
        renderer = context.config.bridge_renderer if spot.panel is None else None
        new = Frame(
            index=number,
            kind=spot.kind,
            scene=scene,
            transition=spot.between,
            image="",
            sha256="",
            prompt=prompt,
            seed=spot.seed,
            renderer=renderer,
        )
        return _keeping(new, spot.beside)
    held = spot.locked and spot.frame.prompt != prompt
    told = {
        "index": number,
        "scene": scene,
        "transition": spot.between,
        "prompt": spot.frame.prompt if held else prompt,
        "seed": spot.seed,
    }
    if spot.frame.panel is not None and (spot.panel is not None or told["prompt"] != spot.frame.prompt):
        told["panel"] = None  # the plan says it now, or other words do
    if spot.locked != is_locked(spot.frame):
        told["locked"] = spot.locked
    return _keeping(spot.frame.model_copy(update=told), spot.beside)


def _keeping(frame: Frame, beside: Mapping[str, Any]) -> Frame:
    """Return a frame that keeps more of its own, by name; what is None it keeps no more."""
    if not beside:
        return frame
    own = {name: value for name, value in frame.model_dump().items() if beside.get(name, value) is not None}
    return Frame.model_validate({**own, **{name: value for name, value in beside.items() if value is not None}})


def _given(context: RunContext, frame: Frame, sha256: str, emit: Emit) -> Frame:
    """The frame with a person's own picture.

    Raises:
        UsageError: the run keeps no such picture, or it is of another size than the board's.
    """
    try:
        png = picture_at(context, sha256)
    except StoreError:
        raise UsageError("The picture is none that this run keeps.", hint="Give the drawing itself.") from None
    size = png_size(picture_at(context, frame.sha256)) if frame.sha256 else png_size(png)
    if png_size(png) != size:
        wide, high = png_size(png)
        raise UsageError(f"The picture has {wide}x{high} pixels, the board {size[0]}x{size[1]}.")
    emit(Event(stage="render", kind="frame", message=f"frame {frame.index}, your own picture", sha256=sha256))
    told = {"sha256": sha256, "image": f"panels/{sha256}.png", "source": source_name(context, sha256), "guide": None}
    return frame.model_copy(update={**told, "own": True, **unmarked(frame, "inpainted", "stale")})


def _inpainted(context: RunContext, board: Board, at: int, mask: str, emit: Emit) -> Frame:
    """The frame at a position (from 0) with what its words say inside `mask`, and what it was made of."""
    frame, request = board.frames[at], board_requests(context, board)[at]
    renderer = context.plugins.renderer if frame.kind == "scene" else context.plugins.inserter
    sha256 = draw_inside(context, request, frame.sha256, mask, emit, renderer)
    made = pictured(context, frame, request, sha256)
    return made.model_copy(update={"inpainted": {"picture": frame.sha256, "mask": mask}})


def _amended(context: RunContext, board: Board, at: int, words: str, part: str, emit: Emit) -> Frame:
    """The frame at a position (from 0) with the change in its drawing that a person asks for."""
    frame, request = board.frames[at], board_requests(context, board)[at]
    renderer = context.plugins.renderer if frame.kind == "scene" else context.plugins.inserter
    sha256 = draw_amended(context, request, frame.sha256, (words, part), emit, renderer)
    return pictured(context, frame, request, sha256)


def _judged(context: RunContext, before: RunResult, board: Board, step: _Step, emit: Emit) -> None:
    """Measure and judge an edited board and write its results.

    Raises:
        JudgeError: a question got no answer.
    """
    mode = context.mode.name
    candidate = measure(context, step.name, board.model_copy(update={"method": step.name}), emit)
    candidates = _decided(before, candidate, step)
    final = board.model_copy(update={"method": mode})
    boards = {mode: final}
    if step.rest.asked_anew and mode != "base":
        boards = {"base": before.candidates.candidates[0].board.model_copy(update={"method": "base"}), **boards}
    names = {item.name for item in candidates.candidates}
    asked = {item.question_id for item in context.story().recoverability_questions}

    def keep(row: Answer) -> bool:
        ours = row.role == "reporting" or row.method is None or row.method.split("/")[0] in names
        return ours and row.question_id in asked

    judge_boards(context, boards, emit, text=step.rest.asked_anew)
    write_results(context, candidates, final, keep)
    emit(Event(stage="decide", kind="decision", message=candidates.decision.reason))
    outcome = context.folder.load_outcome(context.engine.outcome.outcome().first)
    if outcome.failed:
        what = f"Frame {step.take.frame}" if step.take else "The board"
        raise JudgeError(f"{what} stays as it was. {' '.join(map(str.strip, outcome.sentences()))}")


def _decided(before: RunResult, new: Candidate, step: _Step) -> Candidates:
    """The candidates with `new` as the board that the decision leaves, and a sentence on how it came about."""
    decision, former = before.candidates.decision, measured_of(before.candidates)
    take = step.take
    if take is not None:
        old = before.board.frames[take.frame - 1]
        what = f"frame {take.frame} was drawn again by hand with seed {take.seed} instead of {old.seed}"
    else:
        what = f"{said(step.edits)}, by hand"
    scored = former.score.measured and new.score.measured
    went = f"; the score went from {former.score.total:.3f} to {new.score.total:.3f}" if scored else ""
    inserted = [frame for frame in new.board.frames if frame.kind != "scene"]
    changes: dict[str, object] = {"reason": f"{_UNDER_WAY.sub('', decision.reason)} Then {what}{went}."}
    if inserted and (decision.inserted or take is None):
        changes |= {"accepted": True, "inserted": new.name}
    else:
        changes |= {"accepted": False, "selected": new.name}
    if take is None:
        changes |= _weakest(new, inserted, decision)
        if not inserted and step.settled.scenes != {number: number for number in step.settled.scenes}:
            changes["inserted"] = None
    kept = [item for item in before.candidates.candidates if not item.name.startswith(BY_HAND)]
    told = decision.model_copy(update=changes)
    return before.candidates.model_copy(update={"candidates": [*kept, new], "decision": told})


def _weakest(new: Candidate, inserted: Sequence[Frame], decision: Decision) -> dict[str, object]:
    """Return where the edited board is weakest, or where its frame was inserted, as the report shows it."""
    if inserted and inserted[-1].transition is not None:
        pair = inserted[-1].transition
        return {"weakest": pair, "weakest_reason": decision.weakest_reason if decision.weakest == pair else None}
    found = weakest_transition(new.transitions)
    return {"weakest": found.pair if found else None, "weakest_reason": found.reason if found else None}


def replay(desk: EditSession) -> RunResult:
    """Do once more what was done by hand before the run's files were lost, and were made again from the cache."""
    while todo := desk.state.replay:
        told = todo[0].get("edits") or [{"op": "take", "frame": todo[0]["frame"], "seed": todo[0]["seed"]}]
        apply(desk, [EDIT.validate_python(item) for item in (told if isinstance(told, list) else [])])
    return desk.folder.load_result(reused=False)
