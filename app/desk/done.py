"""What the page says when a change is done, in a short sentence: which frames are drawn again, and what else is new."""

from __future__ import annotations

from collections.abc import Sequence

from katha.agents.editor.edits import (
    AddFrame,
    ChangeFrame,
    DuplicateFrame,
    Edit,
    GivePicture,
    InsertBridge,
    LockFrame,
    MakeMove,
    MoveFrame,
    RemoveFrame,
    SplitFrame,
    TakeFrame,
    TalkFrame,
)


def said_of(edits: Sequence[Edit], drawn: Sequence[int]) -> str:
    """Return what edits have done; drawn: the numbers of the frames with a new picture."""
    given = [edit.frame for edit in edits if isinstance(edit, (GivePicture, TakeFrame))]
    said = list(dict.fromkeys(filter(None, map(_one, edits))))
    said += [
        f"Frame {edit.frame} is saved." for edit in edits if isinstance(edit, ChangeFrame) and edit.frame not in drawn
    ]
    again = [number for number in drawn if number not in given] if not any(map(_moves_frames, edits)) else []
    if again:
        said.append(f"{_frames(again)} {'is' if len(again) == 1 else 'are'} drawn again.")
    return " ".join(said) or "It is saved."


def _moves_frames(edit: Edit) -> bool:
    return isinstance(edit, (AddFrame, DuplicateFrame, InsertBridge, MakeMove, MoveFrame, RemoveFrame, SplitFrame))


def _one(edit: Edit) -> str:
    match edit:
        case GivePicture() | TakeFrame():
            return f"Frame {edit.frame} has its new picture."
        case LockFrame():
            return f"Frame {edit.frame} is {'locked' if edit.locked else 'unlocked'}."
        case TalkFrame():
            return f"What you say of frame {edit.frame} is saved."
        case AddFrame():
            return f"Frame {edit.at} is new."
        case SplitFrame():
            return f"Frame {edit.frame} is two frames now."
        case DuplicateFrame():
            return f"Frame {edit.frame} is there twice now."
        case RemoveFrame():
            return f"Frame {edit.frame} is taken out."
        case MoveFrame():
            return f"Frame {edit.frame} is number {edit.to} now."
        case InsertBridge():
            return "The bridge is in."
        case MakeMove():
            return "The repair is in."
        case _:
            return ""


def _frames(numbers: Sequence[int]) -> str:
    words = [str(number) for number in numbers]
    if len(words) == 1:
        return f"Frame {words[0]}"
    return f"Frames {', '.join(words[:-1])} and {words[-1]}"
