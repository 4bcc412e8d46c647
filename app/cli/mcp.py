"""The verb that serves other programs over MCP."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli.options import Adapter, GivenOptions, options_from
from katha.app.cli.run import with_adapter
from katha.app.desk.desk import Desk
from katha.config import Settings, resolve
from katha.errors import InputFileError, MissingExtraError
from katha.installing import install_line


@options_from(Settings, leave_out=("review",))
def mcp(
    given: GivenOptions,
    root: Annotated[
        Path, typer.Argument(help="The folder of the runs; nothing outside of it is read or written for a client.")
    ] = Path("out"),
    adapter: Adapter = None,
) -> None:
    """Serve an assistant or another program over MCP, on standard input and output.

    The client starts this command itself. Its tools: plan, run, weakest, propose_bridge, accept, redo, undo, judge and
    export.
    """
    if root.exists() and not root.is_dir():
        raise InputFileError(f"{str(root)!r} is not a folder.", hint="Name the folder that the runs go to.")
    settings = resolve(with_adapter(given, adapter), preset=given.preset)
    try:
        serve = import_module("katha.app.mcp.server").serve
    except ImportError as error:
        if error.name is None or error.name.startswith("katha"):
            raise
        hint = f"Install it: {install_line('mcp')}."
        raise MissingExtraError(f"The server needs {error.name!r}, which is not installed.", hint=hint) from error
    limited = given.budget is not None and given.budget.max_cost is not None
    serve(Desk(root.absolute(), settings, given.budget), limited=limited)
