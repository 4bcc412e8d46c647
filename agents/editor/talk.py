"""What people say about the frames of a board: comments and a status, kept in `storyboard.json` with the frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from katha.schema import Frame

Status = Literal["open", "changes", "approved"]
"""What was decided about a frame: nothing yet, it is to be changed, it is good."""
STATUSES: tuple[Status, ...] = get_args(Status)
BESIDE = ("caption", "dialogue", "action", "notes", "sound", "duration")
"""The words that an inserted frame may have, beside what it is drawn from: it is not a panel of the plan, and keeps
them itself."""


class Comment(BaseModel):
    """One remark. at: when, as in ISO 8601."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    text: str = Field(min_length=1, max_length=4000)
    by: str = Field(default="", max_length=200)
    at: str = Field(default="", max_length=40)


def comments_of(frame: Frame) -> tuple[Comment, ...]:
    """Return what was said about a frame, oldest first; what is no comment is left out."""
    told = (frame.model_extra or {}).get("comments")
    return tuple(comment for item in (told if isinstance(told, list) else ()) if (comment := _read(item)) is not None)


def _read(item: object) -> Comment | None:
    try:
        return Comment.model_validate(item)
    except ValidationError:
        return None


def status_of(frame: Frame) -> Status | Literal[""]:
    """Return what was decided about a frame; "" where nobody did."""
    told = (frame.model_extra or {}).get("status")
    return next((status for status in STATUSES if status == told), "")


def joined(*several: Iterable[Comment]) -> list[Comment]:
    """Return the comments of several copies of a frame, each once, in the order of their times."""
    every = dict.fromkeys(comment for comments in several for comment in comments)
    return sorted(every, key=lambda comment: comment.at)


def kept(comments: Sequence[Comment]) -> list[dict[str, Any]]:
    """Return comments as a frame keeps them."""
    return [comment.model_dump(exclude_defaults=True) for comment in comments]


def beside(frame: Frame) -> Mapping[str, Any]:
    """Return the words that an inserted frame has of its own."""
    told = frame.model_extra or {}
    return {name: told[name] for name in BESIDE if name in told}
