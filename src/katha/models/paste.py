"""`paste`: a language model in any chat window. A person carries each prompt there and each reply back.

Every exchange is a pair of files, `NNN-prompt.txt` and `NNN-reply.txt`. A prompt is known again by its text, so that a
run that was stopped finds its replies and asks nothing twice. A reply may be saved as the file, pasted into the
terminal and ended by a line that is a single dot, or brought by a program (`waiting`, `bring`), as the desk does.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from katha.configs import load_prompt
from katha.errors import ModelError, OutputFolderError, UsageError
from katha.jsonio import write_bytes_atomic
from katha.models.base import Completion, Heard, Turn

FOLDER = "KATHA_PASTE"
"""The variable that names the folder of prompts and replies."""
_USUAL = Path("out") / "paste"
_WAITS = "waits.txt"
"""Holds the number of the exchange that is waited for, and in its second line what was wrong with the last reply."""
_LOG = logging.getLogger("katha")
_LOOK = 0.25
_MOST_BYTES = 4_000_000
_NUMBER = re.compile(r"(\d{3,6})-prompt\.txt")
_END = re.compile(r"(?:^|\r?\n)\.\r?\n\Z")
_CLIPBOARDS = (("wl-copy",), ("xclip", "-selection", "clipboard"), ("pbcopy",), ("clip",))
_TURN = threading.Lock()
"""One exchange at a time: a person has one clipboard."""


@dataclass(frozen=True)
class PastedExchange:
    """A prompt that a reply is waited for: its number, its text, the files of its pictures in the same folder, and
    what was wrong with the last reply ("": there was none). `whole`: what a chat that knows nothing of it is given."""

    number: str
    text: str
    pictures: tuple[str, ...] = ()
    problem: str = ""
    whole: str = ""


def usual_folder() -> Path:
    """Return the folder of prompts and replies: KATHA_PASTE, or out/paste."""
    return Path(os.environ.get(FOLDER) or _USUAL)


def awaited(folder: Path) -> tuple[str, str] | None:
    """Return the number of the exchange that a run waits for, and what was wrong with its last reply; None where none
    does. It reads one short file."""
    try:
        number, _, problem = (folder / _WAITS).read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    if not re.fullmatch(r"\d{3,6}", number) or (folder / f"{number}-reply.txt").is_file():
        return None
    return number, problem


def waiting(folder: Path) -> PastedExchange | None:
    """Return the exchange in `folder` that a run waits for; None where none does, or nobody can read it."""
    asked = awaited(folder)
    if asked is None:
        return None
    number, problem = asked
    try:
        whole = (folder / f"{number}-prompt.txt").read_text(encoding="utf-8")
        text = (folder / f"{number}-again.txt").read_text(encoding="utf-8") if problem else whole
    except (OSError, UnicodeDecodeError):
        return None
    pictures = sorted(path.name for path in folder.glob(f"{number}-picture-*.png"))
    return PastedExchange(number, text, tuple(pictures), problem, whole)


def bring(folder: Path, number: str, text: str) -> None:
    """Bring the reply to the exchange that waits.

    Raises:
        UsageError: it is empty, or another exchange waits by now. OutputFolderError: it cannot be written.
    """
    known = waiting(folder)
    if known is None or known.number != number:
        raise UsageError("No reply to that prompt is waited for.", hint="Look at the prompt that waits now.")
    if not text.strip():
        raise UsageError("The reply is empty.", hint="Copy the whole reply of the chat window.")
    try:
        write_bytes_atomic(folder / f"{number}-reply.txt", text.encode("utf-8"))
    except OSError as error:
        raise OutputFolderError(f"{str(folder)!r} cannot hold the reply: {error.strerror or error}.") from error


def give_up(folder: Path) -> None:
    """End the wait for a reply, if there is one; the same command waits for it again."""
    (folder / _WAITS).unlink(missing_ok=True)


class Keyboard(Protocol):
    """Where a person pastes."""

    def read(self) -> str:
        """Return what came since last time, waiting a moment at most."""


class PasteModel:
    """A language model whose replies a person brings from any chat window. Safe between threads, one by one."""

    by_hand = True
    """No call of it is one that a budget counts."""

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        timeout: float | None = None,
        max_tokens: int | None = None,
        keyboard: Keyboard | None = None,
    ) -> None:
        """folder: of prompts and replies; KATHA_PASTE or out/paste unless told. timeout: seconds that one reply may
        take; for ever unless told. max_tokens: of no meaning here. keyboard: the terminal unless told.
        """
        self.folder = Path(folder) if folder else usual_folder()
        self._timeout, self._keyboard = timeout, keyboard

    def spec(self) -> Mapping[str, Any]:
        """Return its name: which model answers, only the person knows."""
        return {"name": "paste"}

    def complete(
        self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: Heard | None = None
    ) -> Completion:
        """Return the reply that a person brings, or the one that is in the folder already.

        Raises:
            OutputFolderError: the folder cannot be written. ModelError: no reply came in time.
        """
        pictures = turns[-1].images if turns else ()
        prompt = load_prompt("paste/whole").render(
            turns=turns,
            pictures=len(pictures),
            schema=json.dumps(schema, ensure_ascii=False) if schema is not None else "",
        )
        with _TURN:
            try:
                place = self._place(prompt, pictures)
                text = self._reply(place, prompt, schema)
            except OSError as error:
                said = f"{str(self.folder)!r} cannot hold prompts and replies: {error.strerror or error}."
                raise OutputFolderError(said, hint=f"Set {FOLDER} to another folder.") from error
        return Completion("ok", text, usage={"model": "paste", "tokens": {}, "cost": 0.0})

    def _place(self, prompt: str, pictures: Sequence[bytes]) -> str:
        """Return the number of the exchange that has this prompt, a new one where none has."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data, last = prompt.encode("utf-8"), 0
        for path in sorted(self.folder.iterdir()):
            found = _NUMBER.fullmatch(path.name)
            if found is not None:
                last = max(last, int(found[1]))
                if path.stat().st_size == len(data) and path.read_bytes() == data:
                    return found[1]
        place = f"{last + 1:03}"
        for number, png in enumerate(pictures, 1):
            write_bytes_atomic(self.folder / f"{place}-picture-{number}.png", png)
        write_bytes_atomic(self.folder / f"{place}-prompt.txt", data)
        return place

    def _reply(self, place: str, prompt: str, schema: Mapping[str, Any] | None) -> str:
        """Return the first usable reply to an exchange, asking the person until there is one."""
        path, told = self.folder / f"{place}-reply.txt", ""
        while True:
            if not path.is_file():
                if not told:
                    self._tell(place, self.folder / f"{place}-prompt.txt", prompt)
                with self._waits(place, told):
                    self._wait(path)
            text = path.read_bytes()[:_MOST_BYTES].decode("utf-8", "replace").strip()
            problem, usable = _checked(text, schema)
            if not problem:
                return usable
            wrong = sum(1 for _ in self.folder.glob(f"{place}-wrong-*.txt")) + 1
            path.replace(self.folder / f"{place}-wrong-{wrong}.txt")
            again = load_prompt("paste/again").render(problem=problem, schema=schema is not None)
            asked = self.folder / f"{place}-again.txt"
            write_bytes_atomic(asked, again.encode("utf-8"))
            _LOG.warning("That reply cannot be used: %s", problem)
            self._tell(place, asked, again)
            told = problem

    @contextmanager
    def _waits(self, place: str, problem: str) -> Iterator[None]:
        """Say in the folder which exchange is waited for, to programs that bring replies."""
        note = self.folder / _WAITS
        write_bytes_atomic(note, f"{place}\n{problem}".encode())
        try:
            yield
        finally:
            note.unlink(missing_ok=True)

    def _tell(self, place: str, path: Path, text: str) -> None:
        copied = " (it is in the clipboard)" if _at_terminal() and _copy(text) else ""
        pasted = " or paste it here and end with a line that is a single dot" if self._typed() is not None else ""
        _LOG.warning(
            "Give %s to a language model%s. Save its reply as %s%s.",
            *(path, copied, self.folder / f"{place}-reply.txt", pasted),
        )

    def _typed(self) -> Keyboard | None:
        if self._keyboard is not None:
            return self._keyboard
        return _Terminal() if _Terminal.usable() else None

    def _wait(self, path: Path) -> None:
        """Wait until the file is there and no longer grows, or until its text is pasted; then it is there."""
        began, size, keyboard = time.monotonic(), -1, self._typed()
        typed = ""
        with _raw(keyboard):
            while True:
                if path.is_file() and path.stat().st_size and path.stat().st_size == size:
                    return
                size = path.stat().st_size if path.is_file() else -1
                if keyboard is None:
                    time.sleep(_LOOK)
                else:
                    typed += keyboard.read()
                    if _END.search(typed):
                        write_bytes_atomic(path, _END.sub("\n", typed).encode("utf-8"))
                        return
                if not (self.folder / _WAITS).is_file():
                    raise ModelError(
                        f"The wait for the reply to {path.name.replace('reply', 'prompt')!r} was ended.",
                        hint="Give the same command again: it waits for the same reply.",
                    )
                if self._timeout is not None and time.monotonic() - began > self._timeout:
                    raise ModelError(
                        f"No reply came to {str(path.name).replace('reply', 'prompt')!r} in {self._timeout:g} s.",
                        hint="Give the same command again: it waits for the same reply.",
                    )


def _checked(text: str, schema: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return what is wrong with a reply ("": nothing), and what of it can be used."""
    if not text:
        return "it is empty.", ""
    if schema is None:
        return "", text
    start, end = text.find("{"), text.rfind("}")
    if start < 0:
        return "it holds no JSON object.", ""
    try:
        json.loads(text[start : end + 1] if end > start else text[start:], strict=False)
    except (ValueError, RecursionError) as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        return f"its JSON is broken or cut off{where} ({getattr(error, 'msg', 'too deep')}).", ""
    return "", text[start : end + 1]


# The terminal and the clipboard.


def _at_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _copy(text: str) -> bool:
    """Put a text into the clipboard, where a program for it is here; return whether it is."""
    for command in _CLIPBOARDS:
        if shutil.which(command[0]) is None:
            continue
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                command,
                input=text.encode("utf-16" if command[0] == "clip" else "utf-8"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=3,
                check=False,
            )
            if done.returncode == 0:
                return True
    return False


class _Terminal:
    """Standard input, read without waiting for it. Lines may be of any length: a terminal by itself cuts at 4,095."""

    @staticmethod
    def usable() -> bool:
        """Return whether a person can paste here, in a system whose terminals can be read so."""
        try:
            import termios
        except ImportError:
            return False
        return hasattr(termios, "ICANON") and sys.stdin is not None and sys.stdin.isatty()

    def read(self) -> str:
        """Return what was typed or pasted within a moment."""
        import select

        ready, _, _ = select.select([sys.stdin], [], [], _LOOK)
        return os.read(sys.stdin.fileno(), 1 << 16).decode("utf-8", "replace") if ready else ""


@contextmanager
def _raw(keyboard: Keyboard | None) -> Iterator[None]:
    """Have the terminal hand over what is pasted as it comes, and not show it: it is long. Ctrl-C stays what it is."""
    if not isinstance(keyboard, _Terminal):
        yield
        return
    import termios

    place = sys.stdin.fileno()
    before = termios.tcgetattr(place)
    changed = termios.tcgetattr(place)
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(place, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(place, termios.TCSADRAIN, before)
