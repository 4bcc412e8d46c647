"""The live view of a run: what is being drawn, asked and decided, and the time left. Silent when not on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from katha.schema import Event, Stage

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_TITLES: dict[Stage, str] = {
    "plan": "Planning",
    "render": "Drawing",
    "critique": "Reading the candidates",
    "select": "Choosing a candidate",
    "localize": "Finding the weakest transition",
    "bridge": "Drawing the bridge",
    "decide": "Deciding",
    "judge": "Asking the reporting questions",
    "report": "Writing the run",
}


class _View:
    """One progress row a stage; branches of a stage share its row."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._rows: dict[Stage, TaskID] = {}

    def __call__(self, event: Event) -> None:
        stage = event["stage"]
        row = self._row(stage)
        kind = event["kind"]
        if kind == "started":
            known = self._progress.tasks[row].total or 0
            self._progress.update(row, total=known + event.get("total", 0) or None)
        elif kind == "finished":
            self._progress.update(row, note="")
            if not self._progress.tasks[row].total:
                self._progress.update(row, total=1, completed=1)
        elif kind == "decision":
            self._progress.console.print(f"  {event.get('message', '')}", style="bold", highlight=False)
        else:
            note = event.get("message", "") + (" (kept)" if event.get("reused") else "")
            self._progress.update(row, advance=1, note=note)

    def _row(self, stage: Stage) -> TaskID:
        if stage not in self._rows:
            self._rows[stage] = self._progress.add_task(_TITLES.get(stage, stage), total=None, note="")
        return self._rows[stage]


@contextmanager
def live_view(*, quiet: bool) -> Iterator[Callable[[Event], None] | None]:
    """A callback that shows events on standard error, or None when `quiet` or when that is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(finished_text="[green]\u2713"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("[dim]{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        yield _View(progress)
