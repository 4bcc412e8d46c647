"""`report.html` of a comparison: validity and gap of every method, their differences, and stories side by side."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from katha.app.reports.boards import pictures
from katha.app.reports.charts import shade
from katha.app.reports.page import Picture, read_record, write_page
from katha.jsonio import dumps, read_json
from katha.schema import DIMENSIONS, Board
from katha.schema.scores import Comparison
from katha.schema.tables import CompareTable, MethodRow

_INLINE = 30
"""So many stories are shown with their pictures."""
_RECOVERED = {"yes": ("Yes", "right"), "partial": ("Partly", "part"), "no": ("No", "wrong"), "none": ("–", "none")}
_BLOCKS = {"filtered": "own valid questions", "common_valid": "common valid questions"}


def write_compare_report(out: Path) -> Path:
    """Write `out/report.html` and return its path.

    Raises:
        InputFileError: a file of the comparison is missing or broken.
    """
    state, table = read_json(out / "compare.json"), read_record(out / "table.json", CompareTable)
    slugs = {method["name"]: method["slug"] for method in state["methods"]}
    shown = [story.story_id for story in table.stories[:_INLINE]]
    boards = {
        (row.name, story): _pictures(out / "boards" / slugs[row.name] / str(row.seeds[0]) / story, row)
        for row in table.methods
        for story in shown
    }
    return write_page(
        out / "report.html",
        "compare.html.j2",
        table=table,
        boards=boards,
        dimensions=DIMENSIONS,
        blocks=_BLOCKS,
        recovered=_RECOVERED,
        shade=shade,
        reading=_reading,
        steered=table.questions == "all" and any(row.mode != "base" for row in table.methods),
        repeat=_repeat(state),
    )


def _reading(row: Comparison) -> str:
    """What a difference supports: its interval and its corrected p must both say so."""
    apart = row.ci95 is not None and (row.ci95[0] > 0 or row.ci95[1] < 0)
    if not apart or row.p_corrected is None or row.p_corrected >= 0.05:
        return "no difference is shown"
    return f"{row.a if (row.difference or 0.0) < 0 else row.b} loses less"


def _pictures(folder: Path, row: MethodRow) -> list[Picture]:
    """The frames of the first seed's board; none where there is no board."""
    if not (folder / "storyboard.json").is_file():
        return []
    frames = read_record(folder / "storyboard.json", Board).frames
    return pictures(row.name, [(frame.index, frame.kind, folder / frame.image) for frame in frames])


def _repeat(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("command", shlex.join(state["command"])),
        ("katha", state["katha"]),
        ("shared settings", dumps(state["config"]).strip()),
        *((method["name"], dumps(method["plugins"]).strip()) for method in state["methods"]),
    ]
