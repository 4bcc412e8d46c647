"""The person's side of `--review`: see the bridge that is proposed, and decide."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from katha.errors import UsageError

if TYPE_CHECKING:
    from katha.agents import ReviewChoice, ReviewRequest

__all__ = ["reviewer"]

_KEYS = {"a": "accept", "r": "reject", "s": "another seed", "e": "edit the prompt"}


def reviewer() -> Callable[[ReviewRequest], ReviewChoice]:
    """The callback that asks the person at the terminal.

    Raises:
        UsageError: there is no terminal to ask at.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--review asks a person, and this is not a terminal.", hint="Leave --review out.")
    return _ask


def _ask(request: ReviewRequest) -> ReviewChoice:
    from rich.console import Console
    from rich.prompt import Prompt

    from katha.agents import ReviewChoice

    console = Console()
    _show(console.print, request)
    keys = ", ".join(f"[b]{key}[/b] {words}" for key, words in _KEYS.items())
    console.print(keys)
    key = Prompt.ask("Your choice", choices=list(_KEYS), default="a" if request.accepts else "r", console=console)
    if key == "s":
        names = [candidate.name for candidate in request.inserted]
        return ReviewChoice("choose", candidate=Prompt.ask("Which one", choices=names, console=console))
    if key == "e":
        console.print(f"Now: {request.prompt}", highlight=False)
        return ReviewChoice("edit", prompt=Prompt.ask("New prompt", default=request.prompt, console=console))
    return ReviewChoice("accept" if key == "a" else "reject")


def _show(say: Callable[..., None], request: ReviewRequest) -> None:
    first, second = request.weakest
    say(f"The weakest transition is {first} to {second}: {request.weakest_reason}", highlight=False)
    say(f"Board as it is: score {request.selected.score.total:.3f}", highlight=False)
    for candidate in request.inserted:
        frame = next(frame for frame in candidate.board.frames if frame.kind != "scene")
        mark = " (proposed)" if candidate.name == request.proposal else ""
        picture = request.panels / f"{frame.sha256}.png"
        say(f"  {candidate.name}: score {candidate.score.total:.3f}{mark}  {picture}", highlight=False)
    say(f"The rule would {'accept' if request.accepts else 'reject'} it: {request.reason}", highlight=False)
