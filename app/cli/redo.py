"""`katha redo`: draw one frame of a finished run again; every other frame keeps its bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli import options


def redo(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    frame: Annotated[int, typer.Option("--frame", min=1, help="Which frame of the storyboard, counted from 1.")],
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="The seed to draw it with.")],
    renderer_option: options.RendererOptions = None,
    bridge_option: options.BridgeOptions = None,
    memory: options.Memory = None,
    as_json: options.Json = False,
) -> None:
    """Draw one frame of RUN again with another seed, keep the old version, and judge again what depends on it.

    The options go over the run's own, where they change no picture: another rung of memory, a longer timeout.
    """
    from katha.agents.redo import redo_frame
    from katha.app.cli.options import finished_run, settings_of
    from katha.app.cli.progress import live_view
    from katha.app.cli.summary import tell
    from katha.app.reports.run_page import write_report

    folder = finished_run(run)
    changes = settings_of({"renderer_option": renderer_option, "bridge_option": bridge_option, "memory": memory})
    with live_view(quiet=as_json) as on_event:
        result = redo_frame(folder, frame, seed, on_event=on_event, changes=changes)
    tell(result, write_report(result.out), as_json=as_json)
