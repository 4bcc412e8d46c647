"""A shot list that comes back: the rows of a table become edits of the board that they were made of."""

from __future__ import annotations

import csv
import io
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from katha.agents.editor.editing import read_board
from katha.agents.editor.merging import FrameWords, Merged, merge_told, told_of, tracked, version_board
from katha.agents.editor.names import caption_of
from katha.agents.editor.talk import STATUSES
from katha.app.exports.board import words_of
from katha.app.exports.reading import standing
from katha.app.exports.shots import COLUMNS, speech_in
from katha.errors import InputFileError, MissingExtraError, UsageError, first_line
from katha.intake.decoding import decode_file
from katha.schema import Board, FrameKind, Plan

_MOST_BYTES, _MOST_UNPACKED, _MOST_ROWS, _MOST_COLUMNS = 20_000_000, 200_000_000, 5_000, 100
_LONGEST, _MOST_SECONDS = 4_000, 3_600
_ID = re.compile(r"v(\d{3,9})-(\d{1,4})-([0-9a-f]{8})")
_SHOWN_ONLY = ("id", "frame", "who", "comments")
_FIELDS: Mapping[str, str] = {
    column: {"seconds": "duration", "picture": "prompt"}.get(column, name)
    for column, name in COLUMNS.items()
    if column not in (*_SHOWN_ONLY, "status")
}
"""What of a frame the cells of a column change, by the column."""


def merge_shots(run: Path, path: Path) -> Merged:
    """Return the edits that a shot list makes of a board, and what does not fit, a sentence each.

    A cell counts where it differs from the version that the list was made of. A row without an id is of the frame of
    that number as the board is now.

    Raises:
        InputFileError: it is not a shot list, or a cell holds what cannot be; the row and the column are named.
    """
    head, *rows = _rows(path) or [[]]
    columns = _columns(head, path)
    view = read_board(run)
    boards = {"": (view.board, view.plan)}
    now = {frame.index: told_of(frame, view.plan) for frame in view.board.frames}
    kinds = {frame.index: frame.kind for frame in view.board.frames}
    merged = Merged()
    stray = [name for at, name in enumerate(head) if at not in columns.values() and name.strip()]
    if stray:
        merged.remarks.append(f"Not read of {path.name!r}: the column {', '.join(map(repr, stray[:5]))}.")
    for number, row in enumerate(rows, 2):
        cells = {name: row[at].strip() if at < len(row) else "" for name, at in columns.items()}
        if not any(cells.values()):
            continue
        where = f"{path.name!r}, row {number}"
        version, frame = _frame_of(cells, where)
        if version not in boards:
            try:
                boards[version] = version_board(run, version)
            except UsageError as error:
                raise InputFileError(f"{where}: this board has no version {version!r}.", hint=error.hint) from error
        board, plan = boards[version]
        base = {item.index: told_of(item, plan) for item in board.frames}
        shown = {item.index: caption_of(item, plan) for item in board.frames}
        drawn = {item.index: item.kind for item in board.frames}
        if frame not in base:
            raise InputFileError(f"{where}: there is no frame {frame}.", hint=f"It has frames 1 to {len(base)}.")
        places = tracked(board, view.board) if version else {item: item for item in base}
        told = _told(cells, base[frame], shown[frame], drawn[frame], where)
        found = merge_told(base, {frame: told}, now, places, kinds)
        if "who" in cells and _names(cells["who"]) != _shown_in(board, plan, frame, cells["who"]):
            merged.remarks.append(
                f"Row {number}: who is in frame {frame} is changed at the desk, in its editor; "
                f"{cells['who'][:80]!r} is left out."
            )
        merged.edits += found.edits
        merged.remarks += [f"Row {number}: {remark}" for remark in found.remarks]
    return merged


def _columns(head: Sequence[str], path: Path) -> dict[str, int]:
    """Return the place of each known column."""
    named = {" ".join(name.split()).casefold(): at for at, name in reversed(list(enumerate(head)))}
    found = {name: named[name] for name in COLUMNS if name in named}
    if not {"id", "frame"} & set(found) or len(found) < 2:
        raise InputFileError(
            f"{str(path)!r} is not a shot list: its first row has to name the columns, 'id' or 'frame' among them.",
            hint="Make one: katha export RUN --to shots.",
        )
    return found


def _shown_in(board: Board, plan: Plan, frame: int, told: str) -> list[str]:
    """Return who is in a frame; of an inserted one, which names them in its prompt alone, those that are told."""
    scenes = [item.scene for item in board.frames if item.index == frame and item.kind == "scene"]
    if not scenes:
        return _names(told)
    return sorted(name for panel in plan.panels if panel.index in scenes for name in panel.characters)


def _names(cell: str) -> list[str]:
    return sorted(name for part in cell.split(",") if (name := part.strip()))


def _frame_of(cells: Mapping[str, str], where: str) -> tuple[str, int]:
    """Return the version and the frame in it that a row is of; "" for the board as it is."""
    told = cells.get("id", "")
    found = _ID.fullmatch(told)
    if found is not None:
        return found[1], int(found[2])
    number = re.match(r"\d{1,4}(?!\d)", cells.get("frame", ""))
    if told or number is None:
        said = f"{where}: {told!r} is not an id of a frame" if told else f"{where}: no id and no number names its frame"
        raise InputFileError(f"{said}.", hint="Leave the column 'id' as it was exported.")
    return "", int(number[0])


def _told(cells: Mapping[str, str], base: FrameWords, caption: str, kind: FrameKind, where: str) -> FrameWords:
    """Return what a row says; what is as it was exported is as `base` has it. caption: what stood there as one."""
    usual = standing(words_of(kind, caption, str(base.words.get("dialogue") or "")))
    words: dict[str, Any] = {}
    for column, name in _FIELDS.items():
        if column not in cells:
            continue
        cell, before = cells[column], base.words.get(name)
        if name == "duration":
            seconds = _seconds(cell, where)
            words[name] = before if seconds is None or seconds == (before or usual) else seconds
            continue
        if len(cell) > _LONGEST:
            raise InputFileError(f"{where}, {column!r}: {len(cell):,} letters; at most {_LONGEST:,} are read.")
        stood = caption if name == "caption" else str(before or "")
        if name == "dialogue":
            stood = stood or speech_in(caption)
        same = " ".join(stood.split()) == " ".join(cell.split())
        words[name] = before if same or (name == "prompt" and not cell) else cell
    status = cells.get("status")
    if status is not None and status.casefold() not in ("", *STATUSES):
        raise InputFileError(f"{where}, 'status': {status[:40]!r} is none.", hint=f"Known: {', '.join(STATUSES)}.")
    return FrameWords(words, status.casefold() if status is not None else None)


def _seconds(cell: str, where: str) -> float | None:
    """Return a number of seconds; None for an empty cell. A comma may stand for the point."""
    if not cell:
        return None
    try:
        seconds = float(cell.replace(",", ".").removesuffix("s").strip())
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _MOST_SECONDS:
        raise InputFileError(
            f"{where}, 'seconds': {cell[:40]!r} is not a number above 0, at most {_MOST_SECONDS:,}.", hint="Write 2.5."
        )
    return seconds


def _rows(path: Path) -> list[list[str]]:
    """Return the rows of a table, the head first.

    Raises:
        InputFileError: it is none. MissingExtraError: a workbook needs openpyxl.
    """
    rows = list(_workbook(path)) if path.suffix.lower() in (".xlsx", ".xlsm") else _text(path)
    if len(rows) > _MOST_ROWS:
        raise InputFileError(f"{str(path)!r} has more than the {_MOST_ROWS:,} rows that are read.")
    return rows


def _text(path: Path) -> list[list[str]]:
    text = decode_file(path, limit=_MOST_BYTES).text
    first = text.partition("\n")[0]
    mark = max((",", ";", "\t"), key=first.count)
    try:
        return list(islice(csv.reader(io.StringIO(text, newline=""), delimiter=mark), _MOST_ROWS + 1))
    except csv.Error as error:
        raise InputFileError(f"{str(path)!r} is not a table: {error}.", hint="Save it as CSV.") from error


def _workbook(path: Path) -> Iterator[list[str]]:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        hint = "Install it: pip install 'katha[export]', or save the table as CSV."
        raise MissingExtraError("A workbook needs 'openpyxl', which is not installed.", hint=hint) from error
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(item.file_size for item in archive.infolist()) > _MOST_UNPACKED:
                raise ValueError("it holds too much")
        with path.open("rb") as file:
            page: Any = load_workbook(file, read_only=True, data_only=True).worksheets[0]
            rows = list(page.iter_rows(max_row=_MOST_ROWS + 1, max_col=_MOST_COLUMNS, values_only=True))
    except FileNotFoundError as error:
        raise InputFileError(f"There is no file {str(path)!r}.") from error
    except Exception as error:  # whatever a library raises over a file from anywhere is a sentence
        said = f"{str(path)!r} cannot be read: {first_line(error)[:200].rstrip('.')}."
        raise InputFileError(said, hint="Save it as .xlsx or CSV again.") from error
    for row in rows:
        yield ["" if cell is None else str(cell) for cell in row]
