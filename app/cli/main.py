"""`katha`: the Typer application, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import signal
import sys
import traceback
from collections import UserDict
from importlib import import_module
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

import katha
from katha.errors import KathaError

_INTERRUPTED = 130
_YOUNG = 50_000
"""New objects between two looks for circles of garbage: with Python's 700, a tenth of a command's time is looking."""
_STOPPED = "Stopped. What is done is kept: give the same command again to go on."


class _Verb(NamedTuple):
    """Where a verb is (`module:name`), and the first line of its help, which the list of verbs shows."""

    place: str
    summary: str


VERBS = {
    "run": _Verb("run:run", "Draw STORY, find the transition that cannot be read from the images, and repair it."),
    "plan": _Verb(
        "run:plan",
        "Print the plan of STORY: characters, one prompt a frame, and the transitions that must be readable.",
    ),
    "read": _Verb(
        "read:read",
        "Show what FILE is read as: its kind, scenes, cast, shots and words, and what of it is not read and why.",
    ),
    "cast": _Verb("run:cast", "Draw the cast sheet of STORY as SVG, and no frame: change it, and draw boards from it."),
    "redo": _Verb(
        "redo:redo",
        "Change frames of RUN by hand, keep the version before, and judge again what depends on it.",
    ),
    "desk": _Verb(
        "desk:desk",
        "Open the desk in a browser: paste a story, draw it, change its board by hand, and export it.",
    ),
    "mcp": _Verb(
        "mcp:mcp",
        "Serve an assistant or another program over MCP, on standard input and output.",
    ),
    "cut": _Verb(
        "cut:cut",
        "Cut a comic, a picture book or a film into the frames of a board, to be previewed and corrected by hand.",
    ),
    "compare": _Verb(
        "studies:compare",
        "Compare renderers (or planners, or modes) on STORIES by what their boards lose of the story (STG).",
    ),
    "export": _Verb(
        "export:export",
        "Take the board of RUN to another tool: pages, a book, pictures, a film, an edit timeline; or its answers.",
    ),
    "report": _Verb("run:report", "Write RUN/report.html again and print where it is."),
    "eval": _Verb(
        "studies:evaluate",
        "Judge the boards of STORIES under text, image and text+image, and write scores and a report.",
    ),
    "metrics": _Verb(
        "metrics:metrics", "Measure BOARDS by the metrics of other papers, and hold them against STG where it is known."
    ),
    "ablate": _Verb("studies:ablate", "Run every row of a suite over STORIES, and say what the differences support."),
    "tune": _Verb(
        "studies:tune",
        "Choose candidate count, weights and thresholds on validation STORIES, and freeze them with what they rest on.",
    ),
    "renderers": _Verb("plugins:renderers", "List the renderers: what each is, and what it can do."),
    "planners": _Verb("plugins:planners", "List the planners."),
    "judges": _Verb("plugins:judges", "List the judges."),
    "doctor": _Verb(
        "plugins:doctor",
        "Show which keys, servers and devices are there, what would run with them, and what to do next.",
    ),
    "score": _Verb(
        "score:score",
        "Score answers to the questions of STORIES and write scores.json. Asks no judge and needs no images.",
    ),
    "bench": _Verb(
        "bench:bench",
        "KathaBench-25K, or any file of its schema: check, count, divide; measure a matcher; compare with people.",
    ),
    "people": _Verb("people:people", "Ask people about boards and records: make pages, and score what they hand back."),
    "store": _Verb(
        "store:store", "Look after the store that commands share: KATHA_CACHE, or KATHA_STORE and KATHA_OBJECTS."
    ),
    "jobs": _Verb("jobs:jobs", "List, watch, stop and resume commands that use workers (--workers, --cluster)."),
    "new": _Verb("plugins:new", "Write the skeleton of a plug-in of your own."),
    "train": _Verb("train:train", "Train what can be trained."),
}


class _Commands(UserDict[str, Any]):
    """The verbs by name; a verb's module is imported when its command is taken out, and not to list the names."""

    def __getitem__(self, name: str) -> Any:
        if isinstance(self.data[name], _Verb):
            module, _, attribute = VERBS[name].place.partition(":")
            verb = getattr(import_module(f"katha.app.cli.{module}"), attribute)
            command = typer.main.get_group(verb) if isinstance(verb, typer.Typer) else _command(name, verb)
            command.name, self.data[name] = name, command
        return self.data[name]


def _command(name: str, verb: Any) -> Any:
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=_CONTEXT)
    alone.command(name)(verb)
    return typer.main.get_command(alone)


class _LazyGroup(TyperGroup):
    """A group whose list of verbs is printed from `VERBS`, and whose verbs are imported when they are called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands(VERBS)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the verbs, without importing one."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what stands for a verb in a list; `resolve_command` gives the verb itself."""
        known = VERBS.get(cmd_name)
        return TyperCommand(cmd_name, help=known.summary) if known is not None else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the verb that `args` name, imported."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, self.commands[name] if name is not None and found is not None else found, rest


_CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="katha",
    cls=_LazyGroup,
    help="Turn a story into a storyboard that can be understood from its images alone, measure it, and repair it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"katha {katha.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks. It may stand anywhere.")] = False,
) -> None:
    """Options that hold for every verb."""


class _Stopped(BaseException):
    """The system asks the process to end (SIGTERM, SIGHUP): what is held is let go of on the way out."""


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # who asks twice does not want to wait
    raise _Stopped(128 + number)


def _listen() -> None:
    """Install signal handlers, and log on standard error what a server makes people wait for."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("katha: %(message)s"))
    log = logging.getLogger("katha")
    log.handlers, log.propagate = [handler], False
    # torchao's import has torch warn its developers of a call that is going away; nobody here can act on it.
    logging.getLogger("torch.utils._pytree").setLevel(logging.ERROR)


def _leave() -> None:
    """Spare the last look for garbage, at everything there is, which only finds what ends anyway. Not after torch:
    bindings that it brings tell on standard output of what was never looked at."""
    if "torch" not in sys.modules:
        gc.freeze()


def main() -> None:
    """The console script. A person sees a sentence; the traceback only with `--debug`."""
    debug = "--debug" in sys.argv[1:]
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    try:
        _write_utf8()
        gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
        atexit.register(_leave)
        _listen()
        app(args=arguments)
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            print(f"katha: {_STOPPED}", file=sys.stderr)
        _flush(debug)
        raise
    except _Stopped as stop:
        print(f"katha: {_STOPPED}", file=sys.stderr)
        sys.exit(stop.args[0])
    except KathaError as error:
        _fail(str(error), error.exit_code, debug)
    except BrokenPipeError:
        _close_output()
        sys.exit(1)
    except MemoryError:
        _fail("There is not enough memory for this. What is done is kept.", 1, debug)
    except OSError as error:
        _close_output()
        where = f" {error.filename!r}" if error.filename else ""
        _fail(f"The system refused to read or write{where}: {error.strerror or error}.", 1, debug)
    except Exception as error:
        _fail(f"Unexpected {type(error).__name__}: {error} Run it again with --debug to see where.", 1, debug)


def _write_utf8() -> None:
    """Print in UTF-8 where the system's code page could not hold a story (Windows, redirected); a terminal that has
    another shows what it has no letter for by its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush(debug: bool) -> None:
    """Have everything printed reach standard output, or say that it cannot (a full disk behind `>`)."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _close_output()
    except OSError as error:
        _close_output()
        _fail(f"Cannot write to standard output: {error.strerror or error}.", 1, debug)


def _close_output() -> None:
    """Let nothing that is left in the buffer be written when the interpreter ends: it would fail again, and be told."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


def _fail(message: str, code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    print(f"katha: {message.encode('utf-8', 'backslashreplace').decode('utf-8')}", file=sys.stderr)
    sys.exit(code)
