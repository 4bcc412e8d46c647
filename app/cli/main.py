"""`katha`: the Typer application, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from katha import __version__
from katha.app.cli import bench, inspect, new, plan, redo, run, score, train
from katha.app.cli import bench as building
from katha.app.cli import bench as plan_quality
from katha.app.cli import report as report_command
from katha.app.cli.ablate import ablate
from katha.app.cli.compare import compare
from katha.app.cli.eval import evaluate
from katha.app.cli.tune import tune
from katha.errors import KathaError

_INTERRUPTED = 130

app = typer.Typer(
    name="katha",
    help="Turn a story into a storyboard that can be understood from its images alone, measure it, and repair it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"katha {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks. It may stand anywhere.")] = False,
) -> None:
    """Options that hold for every verb."""


app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("redo")(redo.redo)
app.command("compare")(compare)
app.command("report")(report_command.report)
app.command("eval")(evaluate)
app.command("ablate")(ablate)
app.command("tune")(tune)
app.command("renderers")(inspect.renderers)
app.command("planners")(inspect.planners)
app.command("judges")(inspect.judges)
app.command("doctor")(inspect.doctor)
app.command("score")(score.score)
bench.bench.command("plans")(plan_quality.plans)
bench.bench.command("questions")(building.questions)
bench.bench.command("variants")(building.variants)
app.add_typer(bench.bench, name="bench")
app.add_typer(new.new, name="new")
app.add_typer(train.train, name="train")


def main() -> None:
    """The console script. A person sees a sentence; the traceback only with `--debug`."""
    debug = "--debug" in sys.argv[1:]
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    try:
        app(args=arguments)
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            print("katha: Stopped. What is done is kept: give the same command again to go on.", file=sys.stderr)
        raise
    except KathaError as error:
        _fail(str(error), error.exit_code, debug)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        _fail(f"Unexpected {type(error).__name__}: {error} Run it again with --debug to see where.", 1, debug)


def _fail(message: str, code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    print(f"katha: {message}", file=sys.stderr)
    sys.exit(code)
