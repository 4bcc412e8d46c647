"""`report.html` of a comparison: one self-contained file made from the comparison's files alone."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from katha.cli.compare_report.view import build_view
from katha.jsonio import write_bytes_atomic

__all__ = ["write_compare_report"]


def write_compare_report(out: Path) -> Path:
    """Write `out/report.html` and return its path. The file asks nothing of the network.

    Raises:
        InputFileError: a file of the comparison is missing or broken.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    own = files("katha.cli.compare_report")

    def source(name: str) -> str:
        return own.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(source), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    shared = files("katha.cli.report").joinpath("report.css").read_text(encoding="utf-8")
    tables = files("katha.cli.eval_report").joinpath("eval.css").read_text(encoding="utf-8")
    css = shared + tables + source("compare.css")
    html = environment.get_template("compare.html.j2").render(view=build_view(out), css=css)
    path = out / "report.html"
    write_bytes_atomic(path, html.encode("utf-8"))
    return path
