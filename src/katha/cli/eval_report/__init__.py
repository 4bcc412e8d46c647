"""`report.html` of an evaluation: one self-contained file made from the evaluation's files alone."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from katha.cli.eval_report.stories import STORY_PAGES
from katha.cli.eval_report.view import build_pages, build_view
from katha.jsonio import write_bytes_atomic

__all__ = ["write_eval_report"]


def write_eval_report(out: Path) -> Path:
    """Write `out/report.html`, and pages of the stories that are not in it; return its path. Nothing asks the network.

    Raises:
        InputFileError: a file of the evaluation is missing or broken.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    own, shared = files("katha.cli.eval_report"), files("katha.cli.report")

    def source(name: str) -> str:
        return own.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(source), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    css = shared.joinpath("report.css").read_text(encoding="utf-8") + source("eval.css")
    pages = out / STORY_PAGES
    written = set()
    for name, page in build_pages(out):
        pages.mkdir(exist_ok=True)
        html = environment.get_template("stories.html.j2").render(page=page, css=css)
        write_bytes_atomic(pages / name, html.encode("utf-8"))
        written.add(name)
    for old in pages.glob("*.html"):
        if old.name not in written:
            old.unlink()
    html = environment.get_template("eval.html.j2").render(view=build_view(out), css=css)
    path = out / "report.html"
    write_bytes_atomic(path, html.encode("utf-8"))
    return path
