"""Boards that come back: what was changed there since the version that both began with becomes edits here.

A table of shots says some of a board's words, a copy of a run's folder all of it. A change of theirs that this board
has not made otherwise is an edit, which can be undone; one that does not fit is a sentence. Comments are joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from katha.agents.editor.edit_session import state_of
from katha.agents.editor.editing import keep_received, read_board, version_of
from katha.agents.editor.edits import ChangeFrame, Edit, GivePicture, TalkFrame
from katha.agents.editor.talk import BESIDE, Comment, comments_of, status_of
from katha.agents.folder import RunFolder
from katha.errors import InputFileError, UsageError
from katha.jsonio import file_sha256, read_record
from katha.schema import Board, Frame, Plan

FIELDS = (
    "caption", "dialogue", "action", "notes", "sound", "duration", "place", "time_of_day", "shot_size", "shot_angle",
    "camera", "camera_move", "weather", "light", "prompt",
)  # fmt: skip
"""What a person may change of a frame in words, by the names of the edit."""
# A remark names the words that differ on one terminal line.
_SHOWN = 60


@dataclass(frozen=True)
class FrameWords:
    """What is said of one frame. words: by the names of `FIELDS`, as far as it is said here. status: None where this
    copy does not say it."""

    words: Mapping[str, Any]
    status: str | None = None
    comments: Sequence[Comment] = ()


@dataclass
class Merged:
    """What came back: the edits that make it this board's, and what does not fit, a sentence each."""

    edits: list[Edit] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def told_of(frame: Frame, plan: Plan) -> FrameWords:
    """Return all that is said of a frame of a board of `plan`; what nobody said is an empty text, or None."""
    panel = next((item for item in plan.panels if item.index == frame.scene), None) if frame.kind == "scene" else None
    told = panel.model_dump() if panel is not None else {**(frame.model_extra or {}), "prompt": frame.prompt}
    words = {name: told.get(name) or ("" if name != "duration" else None) for name in FIELDS}
    return FrameWords(words, status_of(frame), comments_of(frame))


def version_board(run: Path, name: str) -> tuple[Board, Plan]:
    """Return the board and the plan of a version of a run.

    Raises:
        UsageError: there is no such version.
    """
    place = RunFolder(RunFolder(run).version_folder(name))
    return read_record(place.storyboard, Board), place.load_plan()


def tracked(base: Board, now: Board) -> dict[int, int]:
    """Return which frame of a later board is which of an earlier one, by their numbers: the one with its picture, else
    the one that was drawn from its words, else the one in its place. What is there no more is left out."""
    free = {frame.index: frame for frame in now.frames}
    found: dict[int, int] = {}

    def same_picture(one: Frame, other: Frame) -> bool:
        return one.sha256 == other.sha256

    def same_words(one: Frame, other: Frame) -> bool:
        return one.kind == other.kind and one.prompt == other.prompt

    def same_place(one: Frame, other: Frame) -> bool:
        where = one.kind, one.scene, one.transition
        return len(base.frames) == len(now.frames) and where == (other.kind, other.scene, other.transition)

    for same in (same_picture, same_words, same_place):
        for frame in base.frames:
            if frame.index in found:
                continue
            like = [number for number, other in free.items() if same(frame, other)]
            if like:
                found[frame.index] = min(like, key=lambda number: abs(number - frame.index))
                del free[found[frame.index]]
    return found


def merge_told(
    base: Mapping[int, FrameWords],
    theirs: Mapping[int, FrameWords],
    now: Mapping[int, FrameWords],
    places: Mapping[int, int],
    kinds: Mapping[int, str],
) -> Merged:
    """Return what became of the words of frames, by their numbers in `base`; `places`: their numbers now; `kinds`: by
    the numbers of now."""
    merged = Merged()
    for number, told in theirs.items():
        if number not in places:
            merged.remarks.append(f"Frame {number} is not on this board any more; what is said of it is left out.")
            continue
        at = places[number]
        changed: dict[str, Any] = {}
        for name, value in told.words.items():
            before, here = base[number].words.get(name), now[at].words.get(name)
            if value in (before, here) or (name == "duration" and value is None):
                continue
            if kinds[at] != "scene" and name not in (*BESIDE, "prompt"):
                said = f"Frame {at} was inserted and has no {_plain(name)}; {_quoted(value)} is left out."
                merged.remarks.append(said)
            elif here != before:
                merged.remarks.append(_differ(at, name, here, value))
            else:
                changed[name] = value
        if changed:
            merged.edits.append(ChangeFrame.model_validate({"frame": at, **changed}))
        _merge_talk(merged, base[number], told, now[at], at)
    return merged


def _merge_talk(merged: Merged, base: FrameWords, theirs: FrameWords, now: FrameWords, at: int) -> None:
    fresh = [comment for comment in theirs.comments if comment not in now.comments]
    status = theirs.status
    if status is not None and status not in (base.status, now.status):
        if now.status != base.status:
            merged.remarks.append(_differ(at, "status", now.status, status))
            status = None
    else:
        status = None
    if fresh or status is not None:
        merged.edits.append(TalkFrame.model_validate({"frame": at, "comments": fresh, "status": status}))


def _differ(at: int, name: str, here: object, there: object) -> str:
    return (
        f"Frame {at}, {_plain(name)}: changed here to {_quoted(here)} and there to {_quoted(there)}; "
        "what is here stays."
    )


def _plain(name: str) -> str:
    return {"duration": "seconds", "shot_size": "shot", "shot_angle": "angle"}.get(name, name.replace("_", " "))


def _quoted(value: object) -> str:
    text = str(value) if value is not None else ""
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}\u2026")


def merge_run(run: Path, other: Path) -> Merged:
    """Return what was changed in a copy of a run's folder: words, times, statuses, comments and pictures.

    Their pictures are kept in this run. Frames that were added, taken away or moved there, and what was changed of the
    cast, are sentences: where they belong is a person's to say.

    Raises:
        UsageError: `other` is not a copy of this run, or is the same folder. OutputFolderError: it is not a finished
        run.
    """
    if run.resolve() == other.resolve():
        raise UsageError(f"{str(other)!r} is the run itself.", hint="Name the copy that came back.")
    ours, theirs = read_board(run), read_board(other)
    name = _common(run, other)
    if name is None or theirs.plan.story_id != ours.plan.story_id:
        raise UsageError(f"{str(other)!r} is not a copy of {str(run)!r}: they have no version in common.")
    board, plan = version_board(run, name)
    here, there = tracked(board, ours.board), tracked(board, theirs.board)
    frames = {frame.index: frame for frame in board.frames}
    now = {frame.index: frame for frame in ours.board.frames}
    changed = {frame.index: frame for frame in theirs.board.frames}
    merged = merge_told(
        {number: told_of(frame, plan) for number, frame in frames.items()},
        {number: told_of(changed[at], theirs.plan) for number, at in there.items()},
        {number: told_of(frame, ours.plan) for number, frame in now.items()},
        here,
        {number: frame.kind for number, frame in now.items()},
    )
    for number, at in there.items():
        if number in here:
            _merge_picture(merged, run, other, (frames[number], changed[at], now[here[number]]))
    merged.remarks += _structure(board, theirs.board, there)
    for one in theirs.plan.characters:
        if one not in plan.characters and one not in ours.plan.characters:
            merged.remarks.append(f"The character {one.name!r} was changed there; change it here by hand.")
    return merged


def _common(run: Path, other: Path) -> str | None:
    """Return the latest version of `other`'s line that this run has, too, byte for byte; None where there is none."""
    folder, copy = RunFolder(run), RunFolder(other)
    name: str | None = version_of(other)
    while name is not None:
        there = RunFolder(copy.version_folder(name))
        if name in folder.version_names():
            here = RunFolder(folder.version_folder(name))
            pairs = [(here.storyboard, there.storyboard), (here.plan, there.plan)]
            if all(file_sha256(one) == file_sha256(two) for one, two in pairs):
                return name
        redone = state_of(there).redone
        name = str(redone[-1]["version"]) if redone else None
    return None


def _merge_picture(merged: Merged, run: Path, other: Path, frames: tuple[Frame, Frame, Frame]) -> None:
    """Take over a picture that was drawn anew there; of a frame as it was, there, and here."""
    was, there, here = frames
    if there.sha256 in (was.sha256, here.sha256):
        return
    if here.sha256 != was.sha256:
        merged.remarks.append(f"Frame {here.index} has another picture here and there; the one here stays.")
        return
    copy = RunFolder(other)
    png = copy.panel(there.sha256)
    if png is None:
        merged.remarks.append(f"The new picture of frame {here.index} is missing in {str(other)!r}; it is left out.")
        return
    try:
        kept = keep_received(run, png, copy.source(there.sha256), here.index)
    except InputFileError as error:
        merged.remarks.append(f"{error.message.rstrip('.')}; it is left out.")
        return
    merged.edits.append(GivePicture(frame=here.index, picture=kept))


def _structure(base: Board, theirs: Board, places: Mapping[int, int]) -> list[str]:
    """Return what they did to the order of frames, a sentence each."""
    added = [str(frame.index) for frame in theirs.frames if frame.index not in places.values()]
    gone = [str(frame.index) for frame in base.frames if frame.index not in places]
    order = [places[number] for number in sorted(places)]
    said = [f"New there, and not taken over: frame {', '.join(added)}."] if added else []
    said += [f"Taken away there, and kept here: frame {', '.join(gone)} of the board that was sent."] if gone else []
    return said + (["Frames were moved there; the order here stays."] if order != sorted(order) else [])
