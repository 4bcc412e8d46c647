"""`report.html`: one self-contained file made from a run's files alone, to be looked at, printed and passed on."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from katha.cli.report.load import load_run
from katha.cli.report.sheet import write_sheet
from katha.cli.report.view import build_view
from katha.jsonio import write_bytes_atomic

__all__ = ["load_run", "write_report", "write_sheet"]


def write_report(run: Path) -> Path:
    """Write `run/report.html` and return its path. The file asks nothing of the network.

    Raises:
        InputFileError: a file of the run is missing or broken.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("katha.cli.report")

    def source(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(source), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.get_template("report.html.j2")
    html = template.render(view=build_view(load_run(run)), css=source("report.css"), js=source("report.js"))
    path = run / "report.html"
    write_bytes_atomic(path, html.encode("utf-8"))
    return path
