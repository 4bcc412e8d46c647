"""What verbs show: the live view of a run, bars over stories, numbers in columns, and objects for machines.

Views go to standard error. Where that is not a terminal (nohup, Slurm, a notebook), a run says every ten seconds what
is new, and a bar over stories becomes a line a minute.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from katha.app.reports import page
from katha.eval_bridge.judging.answers import Outcome
from katha.schema import Event, Stage
from katha.schema.scores import Comparison
from katha.store import Status
from katha.tables import DataTable, NumberWithInterval, number_of

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from katha.experiments.cluster.progress import Standing
    from katha.experiments.needs import Needs

_LINE_SECONDS = 10.0
_BAR_SECONDS = 60.0
_QUIET_SECONDS = 60.0


class _View:
    """One progress row a stage; branches of a stage share its row."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._rows: dict[Stage, TaskID] = {}

    def __call__(self, event: Event) -> None:
        stage, kind = event["stage"], event["kind"]
        if stage not in self._rows:
            self._rows[stage] = self._progress.add_task(page.STAGE_WORDS.get(stage, stage), total=None, note="")
        row = self._rows[stage]
        if kind == "started":
            known = self._progress.tasks[row].total or 0
            self._progress.update(row, total=known + event.get("total", 0) or None)
        elif kind == "finished":
            self._progress.update(row, note="")
            if not self._progress.tasks[row].total:
                self._progress.update(row, total=1, completed=1)
        elif kind == "progress":
            self._progress.update(row, note=event.get("message", ""))
        elif kind == "decision":
            self._progress.console.print(f"  {event.get('message', '')}", style="bold", highlight=False)
        else:
            note = event.get("message", "") + (" (kept)" if event.get("reused") else "")
            self._progress.update(row, advance=1, note=note)


@contextmanager
def live_view(*, quiet: bool) -> Iterator[Callable[[Event], None] | None]:
    """A callback that shows events on standard error: rows in a terminal, lines in a file; None when `quiet`."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        with _lines(_LINE_SECONDS) as say:
            yield lambda event: say(_sentence(event))
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


def _sentence(event: Event) -> str:
    stage, kind = page.STAGE_WORDS.get(event["stage"], event["stage"]), event["kind"]
    return f"{stage}: {kind if kind in ('started', 'finished') else event.get('message', '')}"


@contextmanager
def _lines(every: float) -> Iterator[Callable[[str], None]]:
    """A callback whose last sentence is written as a line, after so many seconds where there is a new one, and once a
    minute where there is none: whoever reads the lines sees that it goes on."""
    began, ended, latest = time.monotonic(), threading.Event(), [""]

    def hear(sentence: str) -> None:
        latest[0] = sentence

    def write() -> None:
        written, when, since = "", began, "0:00"
        while not ended.wait(every):
            now = time.monotonic()
            minutes, seconds = divmod(round(now - began), 60)
            if latest[0] != written:
                written, when, since = latest[0], now, f"{minutes}:{seconds:02}"
                typer.echo(f"[{since}] {written}", err=True)
            elif written and now - when >= _QUIET_SECONDS:
                when = now
                typer.echo(f"[{minutes}:{seconds:02}] {written} (nothing new since {since}; it goes on)", err=True)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield hear
    finally:
        ended.set()
        writer.join()


@contextmanager
def progress_bar(title: str, words: str = "{}", *, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar: call it with what was done last (`words` say it), how much is done, and of how much. Where standard error
    is not a terminal, a line a minute."""
    if quiet:
        yield lambda what, done, total: None
        return
    if not sys.stderr.isatty():
        with _lines(_BAR_SECONDS) as say:
            yield lambda what, done, total: say(f"{title}: {done:,} of {total:,}. {words.format(what)}")
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda what, done, total: bar.update(task, completed=done, total=total, description=words.format(what))


def workers_view(*, quiet: bool) -> Callable[[Standing, str], None]:
    """Return what tells how the work of several workers stands: a line now and then, and one for each thing to know."""
    told = 0.0

    def heard(standing: Standing, said: str) -> None:
        nonlocal told
        if said:
            typer.echo(said, err=True)
        if not quiet and standing.clock() - told > _LINE_SECONDS:
            told = standing.clock()
            typer.echo(standing.line(), err=True)

    return heard


def echo_json(value: object) -> None:
    """Print one JSON object for machines."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def points(value: float | None) -> str:
    """Percentage points with one decimal, or a hyphen: a terminal may have no dash."""
    return page.points(value, none="-")


def interval(ends: Sequence[float] | None, form: str = ".1f") -> str:
    """The ends of a 95% interval, or a hyphen."""
    return page.interval(ends, form) or "-"


def comparison(row: Comparison, judge: str = "") -> str:
    """Return what two methods differ by in STG, in one sentence."""
    span = f", {interval(row.ci95)}" if row.ci95 else ""
    p = f", corrected p {row.p_corrected:.4f} of {row.family}" if row.p_corrected is not None else ""
    pair = f"{row.a} against {row.b}" + (f", {judge}" if judge else "")
    words = {"raw": "raw", "filtered": "own valid", "common_valid": "common valid", "unguessed": "unguessed"}
    others = [
        f"{words[name]} {value:+.1f}"
        for name, value in row.differences.items()
        if name != row.block and value is not None
    ]
    beside = f"; {', '.join(others)}" + (": the blocks disagree in sign" if row.disagree else "") if others else ""
    return f"{pair}: STG differs by {row.difference:+.1f}{span}{p} ({row.n_stories:,} stories{beside})"


_UNLOCKED = "The lock is not looked into: seeds and candidates are counted as the settings have them."


def tell_needs(needs: Needs, as_json: bool, *, locked: bool = False) -> None:
    """Print what a command would draw and ask, and that nothing was done."""
    if locked:
        needs = needs.model_copy(update={"notes": (*needs.notes, _UNLOCKED)})
    if as_json:
        echo_json(needs.model_dump(mode="json") | {"cost": needs.cost})
        return
    for need in needs.needs:
        tokens = f", about {need.input_tokens:,} tokens in and {need.output_tokens:,} out" if need.input_tokens else ""
        price = "" if need.cost == 0.0 else ", price unknown" if need.cost is None else f", about ${need.cost:.2f}"
        typer.echo(f"  {need.kind:<10}{need.name}: {need.calls:,}{tokens}{price}")
        if need.note:
            typer.echo(f"            not on this machine: {need.note}")
    total = "unknown, since a price is" if needs.cost is None else f"about ${needs.cost:.2f}"
    told = "1 story" if needs.stories == 1 else f"{needs.stories:,} stories"
    typer.echo(f"{told}, dollars in all: {total}.")
    for note in needs.notes:
        typer.echo(note)
    paid = sum(need.calls for need in needs.needs if need.cost != 0.0)
    if paid:
        unheld = "" if needs.cost is not None else "; --max-cost is refused, since it cannot hold"
        typer.echo(f"To stop there: --max-calls {paid}{unheld}.")
    typer.echo("Nothing was drawn or asked.")


_DOES = {"plans": "plans", "pictures": "draws", "answers": "judges", "verdicts": "compares answers"}


def tell_choice(needs: Needs) -> None:
    """Say on standard error who plans, draws and judges, and what that costs at most, before it begins."""
    who = ", ".join(f"{need.name} {_DOES[need.kind]} ({need.calls:,})" for need in needs.needs)
    price = "" if needs.cost == 0 else ", at an unknown price" if needs.cost is None else f", ${needs.cost:.2f}"
    typer.echo(f"At most: {who}{price}.", err=True)
    if needs.unjudged:
        typer.echo(needs.unjudged, err=True)


def tell_table(table: DataTable) -> None:
    """Print a table's texts and numbers, a row a line."""
    typer.echo(table.title)
    for row in table.rows:
        words = ", ".join(cell for cell in row if isinstance(cell, str))
        numbers = []
        for column, cell in zip(table.columns, row, strict=True):
            value = number_of(cell)
            if value is not None:
                span = interval(cell.ci95, f".{column.digits}f") if isinstance(cell, NumberWithInterval) else "-"
                told = f"{value:.{column.digits}f}" + (f" ({span})" if span != "-" else "")
                numbers.append(f"{column.heading} {told}")
        typer.echo(f"  {words}: {', '.join(numbers) or '-'}")


def tell_outcome(outcome: Outcome) -> None:
    """Print what a person is to know of missing answers, and what the judges' servers had in their prefix caches."""
    for sentence in [*outcome.sentences(), *outcome.cached()]:
        typer.echo(sentence)


def end(outcome: Outcome, status: Status = "finished") -> None:
    """Leave a command whose questions failed, or could not be scored at all, with exit code 1."""
    if outcome.exit_code or status == "incomplete":
        raise typer.Exit(1)


def tell_order(line: str) -> None:
    """Print in which order the pictures of a board are taken, on standard error, before anything is asked."""
    typer.echo(f"Order of {line}", err=True)
