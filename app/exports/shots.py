"""The shot list: a row a frame with all that is said of it, as CSV or for a spreadsheet; `katha.app.shots` reads it."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from katha.app.exports.archive import write_zip
from katha.app.exports.board import ExportBoard, ExportFrame, ExportOptions

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "frame": "mark",
        "place": "place",
        "time of day": "time_of_day",
        "shot": "shot_size",
        "angle": "shot_angle",
        "camera": "camera",
        "camera move": "camera_move",
        "weather": "weather",
        "light": "light",
        "seconds": "seconds",
        "who": "who",
        "picture": "shows",
        "caption": "caption",
        "dialogue": "dialogue",
        "action": "action",
        "sound": "sound",
        "notes": "notes",
        "status": "status",
        "comments": "comments",
        "id": "id",
    }
)
"""The columns by what stands above them, and what of a frame stands in them."""
_WIDTHS = {
    "id": 18,
    "frame": 10,
    "who": 20,
    "picture": 44,
    "caption": 44,
    "dialogue": 30,
    "action": 24,
    "notes": 24,
    "comments": 30,
}
_QUOTED = re.compile(
    r'"([^"]+)"|\u201c([^\u201d]+)\u201d|\u201e([^\u201c\u201d]+)[\u201c\u201d]|\u00ab([^\u00bb]+)\u00bb'
)
_DAY = datetime(1980, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def listed_who(names: Iterable[str]) -> str:
    """Return who is in a shot as one cell has it."""
    return ", ".join(names)


def speech_in(caption: str) -> str:
    """Return what is spoken in a caption, without its quotation marks; a name in such marks is none."""
    found = [said for match in _QUOTED.finditer(caption) for said in match.groups() if said]
    spoken = [said.strip() for said in found if said.strip()[-1:] in tuple(",.!?\u2026;:-\u2014\u3002\uff01\uff1f")]
    return " ".join(said.rstrip(",;:") for said in spoken)


def shot_id(sheet: ExportBoard, shot: ExportFrame) -> str:
    """Return what a row is known by when it comes back: the version, the frame's number in it, and its picture."""
    return f"v{sheet.version}-{shot.number:02d}-{shot.sha256[:8]}"


def write_shots(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write the list as CSV, or as a workbook where the file's name ends in .xlsx."""
    rows = [_row(sheet, shot) for shot in sheet.shots]
    if target.suffix.lower() == ".xlsx":
        _write_workbook(sheet, rows, target)
        return
    held = io.StringIO(newline="")
    writer = csv.writer(held)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    target.write_bytes(held.getvalue().encode("utf-8-sig"))  # the mark by which spreadsheets know UTF-8


def _row(sheet: ExportBoard, shot: ExportFrame) -> list[str | float]:
    made = ("id", "who", "comments")
    told: dict[str, Any] = {name: getattr(shot, name) for name in COLUMNS.values() if name not in made}
    told["who"] = listed_who(item.name for item in shot.asked.characters)
    told["dialogue"] = shot.dialogue or speech_in(shot.caption)
    told["id"] = shot_id(sheet, shot)
    told["comments"] = " / ".join(f"{one.by}: {one.text}" if one.by else one.text for one in shot.comments)
    told["seconds"] = int(shot.seconds) if shot.seconds == int(shot.seconds) else shot.seconds
    return [told[name] for name in COLUMNS.values()]


def _write_workbook(sheet: ExportBoard, rows: list[list[str | float]], target: Path) -> None:
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    book = Workbook()
    book.properties.creator, book.properties.title = "katha", sheet.title
    book.properties.created = book.properties.modified = _DAY
    page: Any = book.active
    page.title = "shots"
    page.append(list(COLUMNS))
    for row in rows:
        page.append(row)
    for cells in page.iter_rows(min_row=1):
        for cell in cells:
            cell.alignment = Alignment(wrap_text=True, vertical="top")
            if isinstance(cell.value, str):
                cell.data_type = "s"  # a caption that begins with = is not a formula
            if cell.row == 1:
                cell.font = Font(bold=True)
    for at, name in enumerate(COLUMNS, 1):
        page.column_dimensions[get_column_letter(at)].width = _WIDTHS.get(name, 14)
    page.freeze_panes = "B2"
    choice = DataValidation(type="list", formula1='"open,changes,approved"', allow_blank=True)
    letter = get_column_letter(list(COLUMNS).index("status") + 1)
    choice.add(f"{letter}2:{letter}{len(rows) + 1}")
    page.add_data_validation(choice)
    held = io.BytesIO()
    book.save(held)
    with zipfile.ZipFile(held) as archive:  # the same bytes each time: a zip has the time of day
        files = [(name, archive.read(name)) for name in archive.namelist()]
    write_zip(target, [(name, _undated(name, data)) for name, data in files])


def _undated(name: str, data: bytes) -> bytes:
    """Return a part of a workbook without the time at which it was saved."""
    if name != "docProps/core.xml":
        return data
    head, _, rest = data.partition(b"<dcterms:modified")
    kind, _, rest = rest.partition(b">")
    _, _, rest = rest.partition(b"</dcterms:modified>")
    return head + b"<dcterms:modified" + kind + b">1980-01-01T00:00:00Z</dcterms:modified>" + rest
