"""Boards that are drawn already: what `katha run --import` makes of one, to be judged and repaired as any run is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katha.agents.context import make_renderer
from katha.agents.found import told_story
from katha.app.drawing import load_plan, read_story, settings_for
from katha.errors import InputFileError, UsageError
from katha.renderers.folder import FolderRenderer
from katha.renderers.projects import SUFFIX
from katha.schema import StoryRecord

FINDS = "weakest_only"
"""The mode of an imported board where nobody is named who could draw a bridge."""
NEEDED = "Nobody was named who could draw a bridge: give --bridge-renderer NAME and another --out to have one proposed."
_LEAST, _MOST = 2, 24


@dataclass(frozen=True)
class Imported:
    """A board to be judged. changes: the settings that make a run of it, over the given ones."""

    story: StoryRecord
    changes: dict[str, Any]


def import_board(
    board: Path,
    story: StoryRecord | Path | str | None = None,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    plan: Path | None = None,
) -> Imported:
    """Return what `run_story` is given to judge and repair a board that is drawn already.

    The renderer is `folder`, there are as many panels as pictures, and where nobody is named who could draw a bridge,
    and no mode, the weakest transition is only found.

    Args:
        board: A `.storyboarder` file, a PDF, or a folder: of pictures, of a board that `folder` knows, or of a project.
        story: What the board tells; the words in the project unless told.
        preset: Settings by name.
        changes: Single settings by name.
        plan: The plan file that the run is given, if any.

    Raises:
        UsageError: The board cannot be read, has too few or too many frames, or nothing says what it tells.
    """
    given = dict(changes or {})
    if given.get("renderer") is not None:
        raise UsageError(
            "--import names the pictures, so there is nothing for --renderer to draw.", hint="Leave it out."
        )
    place = _project_in(board)
    given["renderer"] = f"folder:{os.path.abspath(place)}"
    config = settings_for(preset, given)
    if config.bridge_renderer is None and "mode" not in given:
        given["mode"] = FINDS
    renderer = make_renderer(config)
    if not isinstance(renderer, FolderRenderer):
        raise UsageError(f"{config.renderer!r} reads no boards.")
    if story is None:
        record = told_story(renderer.panel_words(), place.stem or place.resolve().name)
    else:
        record = read_story(Path(story) if isinstance(story, str) else story, config.mapping)
    count = renderer.count(record.story_id)
    if not _LEAST <= count <= _MOST:
        hint = f"Choose them: --renderer-option pages=1-{_MOST}." if count > _MOST else "Give a longer one."
        raise InputFileError(
            f"{str(board)!r} has {count} frame{'s' if count != 1 else ''}; {_LEAST} to {_MOST} are judged at a time.",
            hint=hint,
        )
    _require_fit(board, count, record, given.get("panels"), plan)
    return Imported(record, {**given, "panels": count})


def _project_in(board: Path) -> Path:
    """Return the project's file of a folder that holds one, else `board` itself.

    Raises:
        InputFileError: there is no such file or folder, or the folder holds several projects.
    """
    place = board.expanduser()
    if not place.exists():
        raise InputFileError(f"There is no board {str(board)!r}.", hint=f"Give a folder, a {SUFFIX} file or a PDF.")
    projects = sorted(path for path in place.glob(f"*{SUFFIX}") if path.is_file()) if place.is_dir() else []
    if len(projects) > 1:
        raise InputFileError(f"{str(board)!r} holds {len(projects)} projects.", hint=f"Name one: {str(projects[0])!r}.")
    return projects[0] if projects else place


def _require_fit(board: Path, count: int, record: StoryRecord, panels: object, plan: Path | None) -> None:
    """Refuse a story, a plan or a number of panels that is not the board's.

    Raises:
        InputFileError: it has another number of scenes or panels.
    """
    told = {"story": len(record.scenes) or None, "--panels": panels}
    told["plan"] = len(load_plan(plan, record).panels) if plan is not None else None
    for what, number in told.items():
        if number is not None and number != count:
            raise InputFileError(
                f"{str(board)!r} has {count} frames, the {what} {number}.",
                hint="Choose with --renderer-option pages=2-6.",
            )
