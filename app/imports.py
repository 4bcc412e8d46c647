"""Boards that are drawn already: what `katha run --import` and the desk make of one, to be judged and repaired as any
run is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from katha.agents.context import make_renderer
from katha.agents.editor.imported_boards import told_story
from katha.agents.pictures import check_picture
from katha.app.drawing import load_plan, read_story, settings_for
from katha.config import Settings
from katha.errors import BlankFrameError, InputFileError, UsageError
from katha.jsonio import write_bytes_atomic
from katha.numbering import natural
from katha.ordering import UnorderedNames, order_names
from katha.protocols import allows
from katha.renderers.exported import ALONE
from katha.renderers.folder import SUFFIXES, FolderRenderer
from katha.renderers.projects import SUFFIX
from katha.schema import StoryRecord

FINDS = "weakest_only"
"""The mode of an imported board where nobody is named who could draw a bridge."""
NEEDED = "Nobody was named who could draw a bridge: give --bridge-renderer NAME and another --out to have one proposed."
BOARD_ENDINGS = (SUFFIX, ".pdf", *ALONE, *sorted(SUFFIXES))
"""The endings of files that boards are sent in, one by one."""
_LEAST, _MOST = 2, 24
_PLAIN_NAME = re.compile(r"[^\x00-\x1f\x7f:.][^\x00-\x1f\x7f:]*")
_LONGEST_NAME = 240


@dataclass(frozen=True)
class Imported:
    """A board to be judged. changes: the settings that make a run of it, over the given ones. order: that of its
    pictures in a line, where their names say it."""

    story: StoryRecord
    changes: dict[str, Any]
    order: str = ""


def import_board(
    board: Path,
    story: StoryRecord | Path | str | None = None,
    preset: Settings | str | None = None,
    changes: Mapping[str, Any] | None = None,
    plan: Path | None = None,
    order: str | None = None,
) -> Imported:
    """Return what `run_story` is given to judge and repair a board that is drawn already.

    The renderer is `folder`, there are as many panels as pictures, and where nobody is named who could draw a bridge,
    and no mode, the weakest transition is only found.

    Args:
        board: A `.storyboarder` file, a PDF, what katha exported (cbz, epub, otio, otioz, fcpxml, xml), or a folder: of
            pictures, of a board that `folder` knows, or of a project.
        story: What the board tells; the words in the project unless told.
        preset: Settings, or their name.
        changes: Single settings by name.
        plan: The plan file that the run is given, if any.
        order: What the pictures' names are ordered by, where they have several readings: see `katha.ordering`.

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
    if order is not None:
        given["renderer_options"] = _with_option(given.get("renderer_options"), "order", order)
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
    count, others = renderer.count(record.story_id), " ".join(renderer.left_out(record.story_id))
    if not _LEAST <= count <= _MOST:
        hint = f"Choose them: --renderer-option pages=1-{_MOST}." if count > _MOST else "Give a longer one."
        raise InputFileError(
            f"{str(board)!r} has {count} frame{'s' if count != 1 else ''}; {_LEAST} to {_MOST} are judged at a time.",
            hint=f"{hint} {others}".rstrip(),
        )
    _require_fit(board, count, record, config.panels if given.get("panels") is not None else None, plan, others)
    _require_drawn(renderer, board, record.story_id)
    return Imported(record, {**given, "panels": count}, renderer.order(record.story_id))


def _with_option(options: Any, name: str, value: str) -> Any:
    """Return a renderer's options, as a table or as `KEY=VALUE`, with one more."""
    return {**options, name: value} if isinstance(options, Mapping) else [*(options or ()), f"{name}={value}"]


def name_of_files(names: Sequence[str]) -> str:
    """Return what a board of these files is called: as its project or PDF, else as the folder or the first of them."""
    paths = [PurePosixPath(name.replace("\\", "/")) for name in names]
    whole = next((path for path in paths if path.suffix.lower() not in SUFFIXES), None)
    return whole.stem if whole is not None else paths[0].parent.name or paths[0].stem


def put_files(place: Path, files: Sequence[tuple[str, bytes]], order: str | None = None) -> Path:
    """Write the files of a board, as a browser sends them, into the new folder `place`; gives what `import_board` takes
    as the board.

    Pictures alone are numbered in the order of their names (2 before 10; shots, not takes; or by `order`); beside a
    project they keep their names, in `images/`, whatever folder they came from. Names are anybody's: of a path the last
    part counts, and one that leads elsewhere is refused before anything is written.

    Raises:
        InputFileError: a file of another kind, a name that is not a plain name or comes twice, names that can be read
        in two orders, or several boards at once.
    """
    named: dict[str, bytes] = {}
    for given, data in files:
        parts = [part for part in re.split(r"[\\/]", given) if part]
        name = parts[-1] if parts else ""
        if ".." in parts or not _PLAIN_NAME.fullmatch(name) or len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
            raise InputFileError(f"{given[:100]!r} is not a name of a file.", hint="Give it a plain name.")
        if Path(name).suffix.lower() not in BOARD_ENDINGS:
            raise InputFileError(
                f"{name[:100]!r} is of no board: pictures, a PDF, a {SUFFIX} file or what katha exported are "
                f"({', '.join(ALONE)})."
            )
        if name.casefold() in {known.casefold() for known in named}:
            raise InputFileError(f"There are two files {name[:100]!r}.", hint="Give each its own name.")
        named[name] = data
    whole = [name for name in named if Path(name).suffix.lower() not in SUFFIXES]
    project = len(whole) == 1 and Path(whole[0]).suffix.lower() == SUFFIX
    if len(whole) > 1 or (whole and not project and len(named) > 1) or not named:
        raise InputFileError("These files are not one board.", hint=f"Give pictures, or a PDF, or one {SUFFIX} file.")
    for at, name in enumerate(list(named) if whole else _in_order(list(named), order), 1):
        beside = place / "images" / name if project else place / f"frame_{at:03d}{Path(name).suffix.lower()}"
        write_bytes_atomic(place / name if name in whole else beside, named[name])
    return place / whole[0] if whole else place


def _in_order(names: Sequence[str], by: str | None) -> list[str]:
    """Return pictures in the order of their names; where those say none, as a file manager sorts them.

    Raises:
        InputFileError: they say more than one.
    """
    try:
        order = order_names(names, by, gaps=True)
    except UnorderedNames as error:
        raise InputFileError(f"{error.message[0].upper()}{error.message[1:]}.", hint=error.hint) from error
    return list(order.names) if order is not None and not order.left_out else sorted(names, key=natural)


def _project_in(board: Path) -> Path:
    """Return the project's file of a folder that holds one, else `board` itself.

    Raises:
        InputFileError: there is no such file or folder, or the folder holds several projects.
    """
    place = board.expanduser()
    if not place.exists():
        raise InputFileError(f"There is no board {str(board)!r}.", hint=f"Give a folder, a {SUFFIX} file or a PDF.")
    projects = sorted(path for path in place.glob(f"*{SUFFIX}") if path.is_file()) if place.is_dir() else []
    if not projects and place.is_dir():  # a project that was made from a script has a folder for each scene
        projects = sorted(
            (path for path in place.glob(f"storyboards/*/*{SUFFIX}")), key=lambda path: natural(path.name)
        )
    if len(projects) > 1:
        what = "projects" if projects[0].parent == place else "scenes, each a board of its own"
        raise InputFileError(f"{str(board)!r} holds {len(projects)} {what}.", hint=f"Name one: {str(projects[0])!r}.")
    return projects[0] if projects else place


def _require_drawn(renderer: FolderRenderer, board: Path, story_id: str) -> None:
    """Refuse a board with a page of one colour, and any picture that cannot be read, before a run is begun.

    Raises:
        InputFileError: there is one; it is named, with the pages that can be judged without it.
    """
    blank, whole = [], []
    for place, png in renderer.pictures(story_id):
        try:
            check_picture(png, None, "folder")
        except BlankFrameError:
            blank.append(place + 1)
        else:
            whole.append(place + 1)
    if blank:
        several = len(blank) > 1
        named = f"{'Pages' if several else 'Page'} {', '.join(map(str, blank))} of {str(board)!r}"
        hint = f"Leave {'them' if several else 'it'} out: --renderer-option pages={','.join(map(str, whole))}."
        fewer = "Give a board with pictures on its pages."
        raise InputFileError(
            f"{named} {'are' if several else 'is'} of one colour, with nothing to judge.",
            hint=hint if len(whole) >= _LEAST else fewer,
        )


def _require_fit(
    board: Path, count: int, record: StoryRecord, panels: int | None, plan: Path | None, others: str
) -> None:
    """Refuse a story, a plan or a number of panels that is not the board's; others: which pictures were left out.

    Raises:
        InputFileError: it has another number of scenes or panels.
    """
    told = {"story": len(record.scenes) or None, "--panels": panels}
    told["plan"] = len(load_plan(plan, record).panels) if plan is not None else None
    for what, number in told.items():
        if number is not None and not allows(number, count):
            raise InputFileError(
                f"{str(board)!r} has {count} frames, the {what} {number}.",
                hint=f"Choose with --renderer-option pages=2-6. {others}".rstrip(),
            )
