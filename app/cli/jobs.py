"""`katha jobs list|watch|stop|resume`: commands that use workers, by the files that they keep in their folders."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli.console import echo_json
from katha.app.cli.options import Json
from katha.experiments.cluster.jobs import ClusterJob, find_job, find_jobs
from katha.experiments.cluster.progress import duration

_ABOUT = "List, watch, stop and resume commands that use workers (--workers, --cluster)."
_NOTHING = "nothing handed out yet"

jobs = typer.Typer(help=_ABOUT, no_args_is_help=True, add_completion=False)
Out = Annotated[Path, typer.Argument(help="The folder that the command writes (its --out).")]


@jobs.command("list")
def listed(
    folder: Annotated[Path, typer.Argument(help="Where to look; folders in it are looked into, too.")] = Path("out"),
    as_json: Json = False,
) -> None:
    """List the commands with workers that write into FOLDER: how each stands, and how it was given."""
    found = list(find_jobs(folder))
    if as_json:
        echo_json([_row(job) for job in found])
        return
    for job in found:
        record = job.record
        took, stands = duration(record.updated - record.begun), record.standing.line or _NOTHING
        typer.echo(f"{job.out}: {job.status} ({took} on {record.host}): {stands}")
        typer.echo(f"  katha {' '.join(record.command)}")
    if not found:
        typer.echo(f"No command with workers has written into {folder}.")


@jobs.command("watch")
def watch(
    out: Out,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between two lines.")] = 10.0,
    as_json: Json = False,
) -> None:
    """Say how the command that writes OUT stands, again and again, until it has ended."""
    while True:
        job = find_job(out)
        if as_json:
            echo_json(_row(job))
        else:
            when = datetime.fromtimestamp(job.record.updated, UTC).strftime("%H:%M:%S")
            typer.echo(f"{when} {job.status}: {job.record.standing.line or _NOTHING}")
        if not job.alive:
            return
        time.sleep(every)


@jobs.command("stop")
def stop(out: Out) -> None:
    """Stop the command that writes OUT. What is done is kept."""
    if not find_job(out).stop():
        typer.echo("It was asked to end, and is still at work: it lets go when what it is at is kept.", err=True)
        raise typer.Exit(1)
    typer.echo(f"Stopped. Go on with: katha jobs resume {out}")


@jobs.command("resume")
def resume(out: Out) -> None:
    """Give the command that writes OUT again, where it was given: it goes on where it stopped."""
    job = find_job(out)
    words, folder = job.again()
    typer.echo(f"katha {' '.join(job.record.command)}", err=True)
    raise typer.Exit(subprocess.run(words, cwd=folder).returncode)


def _row(job: ClusterJob) -> dict[str, object]:
    return {"out": str(job.out), "alive": job.alive} | job.record.model_dump(mode="json") | {"status": job.status}
