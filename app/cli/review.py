"""The person's side of `--review`: the bridge before it is decided, and then the whole board, frame by frame."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from katha.agents.editor.editing import EditedBoard, draw_takes, edit_board, read_board, undo
from katha.agents.editor.edits import ChangeFrame, Edit, LockFrame, RemoveFrame, TakeFrame
from katha.agents.editor.names import caption_of, frame_names, name_takes, speaking_name
from katha.agents.folder import RunFolder
from katha.agents.state import ReviewChoice, ReviewRequest
from katha.app.cli.console import live_view
from katha.app.cli.pictures import launch, show
from katha.app.reports.run_page import write_report
from katha.errors import KathaError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

_FRAME = {"t": "takes", "p": "another prompt", "l": "lock or unlock", "x": "remove", "b": "back"}


def at_terminal() -> bool:
    """Return whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def reviewer(opened: bool = False) -> Callable[[ReviewRequest], ReviewChoice]:
    """Return the callback that asks the person at the terminal; opened: pictures are also opened in their own program.

    Raises:
        UsageError: there is no terminal to ask at.
    """
    if not at_terminal():
        raise UsageError("--review asks a person, and this is not a terminal.", hint="Leave --review out.")
    return _Reviewer(opened)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _asked(console: Console, question: str, choices: Sequence[str], default: str) -> str:
    from rich.prompt import Prompt

    return Prompt.ask(question, choices=list(choices), default=default, console=console)


def _keys(console: Console, keys: dict[str, str]) -> None:
    console.print(", ".join(f"[b]{key}[/b] {words}" for key, words in keys.items()))


class _Reviewer:
    """Asks about one inserted frame until something is decided; it remembers the prompts, so that one can go back."""

    def __init__(self, opened: bool) -> None:
        self._console, self._opened = _console(), opened
        self._former: list[str] = []

    def __call__(self, request: ReviewRequest) -> ReviewChoice:
        from rich.prompt import Prompt

        self._tell(request)
        takes = [str(number) for number in range(1, len(request.inserted) + 1)]
        keys = {"a": "accept", "r": "reject", "s": "another seed", "e": "another prompt"}
        keys |= {"b": "back to the prompt before"} if self._former else {}
        _keys(self._console, {**keys, f"1 to {len(takes)}": "take that one"})
        default = "a" if request.accepts else "r"
        key = _asked(self._console, "Your choice", [*keys, *takes], default)
        if key == "s":
            return ReviewChoice("seed")
        if key == "e":
            self._console.print(f"Now: {request.prompt}", markup=False)
            prompt = Prompt.ask("New prompt", default=request.prompt, console=self._console)
            self._former.append(request.prompt)
            return ReviewChoice("edit", prompt=prompt)
        if key == "b":
            return ReviewChoice("edit", prompt=self._former.pop())
        if key in takes:
            return ReviewChoice("choose", candidate=request.inserted[int(key) - 1].name)
        return ReviewChoice("accept" if key == "a" else "reject")

    def _tell(self, request: ReviewRequest) -> None:
        def say(words: str) -> None:
            self._console.print(words, markup=False)

        folder = RunFolder(request.panels.parent)
        told: list[tuple[int, str, str]] = []
        first, second = request.weakest
        for item in request.inserted:
            frame = next(frame for frame in item.board.frames if frame.transition is not None)
            told.append((len(told) + 1, f"bridge_seed_{frame.seed}", frame.sha256))
        paths = name_takes(folder, told)
        say(f"The weakest transition is {first} to {second}: {request.weakest_reason}")
        say(f"Board as it is: score {request.selected.score.total:.3f}")
        show(self._console, paths)
        launch(paths if self._opened else [])
        for number, (item, path) in enumerate(zip(request.inserted, paths, strict=True), 1):
            mark = " (proposed)" if item.name == request.proposal else ""
            say(f"  {number}. {item.name}: score {item.score.total:.3f}{mark}  {path}")
        say(f"The rule would {'accept' if request.accepts else 'reject'} it: {request.reason}")


def review_board(run: Path, opened: bool = False) -> None:
    """Go through a finished board with the person at the terminal: any frame, any number of times, until it is good.

    opened: takes are also opened in their own program.
    """
    console = _console()
    while True:
        view = read_board(run)
        numbers = [str(frame.index) for frame in view.board.frames]
        _tell_board(console, run, view)
        keys = {f"1 to {len(numbers)}": "change that frame", "u": "undo", "d": "done"}
        _keys(console, keys)
        key = _asked(console, "Which frame", [*numbers, "u", "d"], "d")
        if key == "d":
            return
        try:
            if key == "u":
                undo(run)
            else:
                _review_frame(console, run, view, int(key), opened)
            write_report(run)
        except KathaError as error:
            console.print(str(error), markup=False)


def _tell_board(console: Console, run: Path, view: EditedBoard) -> None:
    names = frame_names(view.board, view.plan)
    show(console, [run / "panels" / f"{frame.sha256}.png" for frame in view.board.frames])
    console.print(f"Version {view.version}, score {view.measured.score.total:.3f}", markup=False)
    for frame, name in zip(view.board.frames, names, strict=True):
        lock = " (locked)" if frame.index in view.locked else ""
        console.print(f"  {frame.index}. {caption_of(frame, view.plan)}{lock}  {run / 'frames' / name}", markup=False)


def _review_frame(console: Console, run: Path, view: EditedBoard, number: int, opened: bool) -> None:
    """Ask what is to be done to one frame, and do it."""
    from rich.prompt import Prompt

    frame = view.board.frames[number - 1]
    console.print(f"Frame {number} was drawn from: {frame.prompt}", markup=False)
    _keys(console, _FRAME)
    key = _asked(console, "What", list(_FRAME), "b")
    if key == "t":
        choose_take(console, run, number, 3, None, opened)
        return
    edits: dict[str, Edit] = {
        "l": LockFrame(frame=number, locked=number not in view.locked),
        "x": RemoveFrame(frame=number),
    }
    if key == "p":
        edits["p"] = ChangeFrame(frame=number, prompt=Prompt.ask("New prompt", default=frame.prompt, console=console))
    if key in edits:
        with live_view(quiet=False) as on_event:
            done = edit_board(run, [edits[key]], base=view.version, on_event=on_event)
        for remark in done.remarks:
            console.print(remark, markup=False)


def choose_take(console: Console, run: Path, number: int, count: int, prompt: str | None, opened: bool = False) -> bool:
    """Draw takes of one frame and let the person choose; whether another than the one on the board was chosen."""
    paths, seeds = tell_takes(console, run, number, count, prompt)
    launch(paths if opened else [])
    key = _asked(console, "Which take", [str(at) for at in range(1, len(paths) + 1)], "1")
    if key == "1":
        return False
    edit = TakeFrame(frame=number, seed=seeds[int(key) - 1], prompt=prompt)
    with live_view(quiet=False) as on_event:
        edit_board(run, [edit], on_event=on_event)
    return True


def tell_takes(
    console: Console, run: Path, number: int, count: int, prompt: str | None
) -> tuple[list[Path], list[int]]:
    """Draw takes of one frame, put them into `takes/` under their names, and show them numbered; paths and seeds."""
    with live_view(quiet=False) as on_event:
        takes = draw_takes(run, number, count=count, prompt=prompt, on_event=on_event)
    view = read_board(run)
    said = speaking_name(number, caption_of(view.board.frames[number - 1], view.plan))
    told = [(at, f"frame_{said}_seed_{take.seed}", take.sha256) for at, take in enumerate(takes, 1)]
    paths = name_takes(RunFolder(run), told)
    show(console, paths)
    for at, (take, path) in enumerate(zip(takes, paths, strict=True), 1):
        mark = " (on the board)" if take.chosen else ""
        console.print(f"  {at}. seed {take.seed}{mark}  {path}", markup=False)
    return paths, [take.seed for take in takes]
