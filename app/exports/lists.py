"""The list of a board's frames with all that is said of them, which goes with exports and brings their words back."""

from __future__ import annotations

from typing import Any

from katha.app.exports.board import WORDS, ExportBoard, ExportFrame

LIST = "frames.json"
"""What the list of a board's frames is called that goes with its pictures."""
_ALWAYS = ("caption", "dialogue", "action", "notes")
"""Words that a list has though nobody wrote them."""
_LISTED = ("number", "kind", "caption", *WORDS, "status", "seconds", "sha256", "prompt")


def listing(sheet: ExportBoard, suffix: str) -> dict[str, Any]:
    """Return what a folder of frames holds, for programs; words that nobody wrote are left out."""
    return {
        "story_id": sheet.story_id,
        "title": sheet.title,
        "frames": [{"file": f"{shot.name}{suffix}", **told_of(shot)} for shot in sheet.shots],
    }


def told_of(shot: ExportFrame) -> dict[str, Any]:
    """Return what is known of a frame, by the names of `ExportFrame`; words that nobody wrote are left out."""
    told = {key: getattr(shot, key) for key in _LISTED}
    return {key: value for key, value in told.items() if value != "" or key in _ALWAYS}
