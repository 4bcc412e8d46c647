"""Draws the pictures of the documents again: `python docs/make_images.py` after `make story`."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from katha.app.reports.page import load_run
from katha.app.reports.sheet import write_sheet
from katha.renderers.sketch import rasterise
from katha.renderers.sketch.deeds import draw_creature
from katha.renderers.sketch.figures.rig import Pose
from katha.renderers.sketch.pictograms import Pictogram, draw_pictogram, pictograms
from katha.renderers.sketch.places import draw_place, place_ids
from katha.renderers.sketch.style import PAPER
from katha.vocabulary import load_vocabulary

__all__ = ["main"]

IMAGES = Path(__file__).parent / "images"
STORY = "lion_and_mouse"
_WIDTH, _CELL = 1560, 78
_EVERY = 6
"""One pictogram in so many is on the sheet."""


def _grid(drawings: list[str], top: float, cell: float, scale: float) -> tuple[str, float]:
    """The drawings in rows from `top`, and where the next block begins."""
    columns = int(_WIDTH // cell)
    placed = [
        f'<g transform="translate({(nth % columns + 0.5) * cell:.1f} {top + (nth // columns + 0.9) * cell:.1f}) '
        f'scale({scale})">{svg}</g>'
        for nth, svg in enumerate(drawings)
    ]
    return "".join(placed), top + (-(-len(drawings) // columns)) * cell + 12


def _thing(one: Pictogram) -> str:
    """A pictogram as large as its cell allows."""
    x0, y0, x1, y1 = one.box
    return draw_pictogram(one.id, 60 * min(1.0, (y1 - y0) / (x1 - x0))).svg


def _places(top: float) -> tuple[str, float]:
    columns, width, height = 8, _WIDTH / 8, 130
    parts = []
    for nth, name in enumerate(place_ids()):
        back = draw_place(name, "day", None, int(width) - 6, height - 6, 7)
        x, y = nth % columns * width + 3, top + nth // columns * height + 3
        parts.append(f'<svg x="{x}" y="{y}" width="{width - 6}" height="{height - 6}">{back.back}</svg>')
    return "".join(parts), top + (-(-len(place_ids()) // columns)) * height


def vocabulary_sheet(target: Path) -> None:
    """Every character and place, and some of the pictograms, on one sheet."""
    creatures = (draw_creature(concept.id, (), Pose()) for concept in load_vocabulary().concepts("character"))
    figures = [body.behind + body.svg for body in creatures]
    people, y = _grid(figures, 10, 120, 0.78)
    things, y = _grid([_thing(one) for one in list(pictograms().values())[::_EVERY]], y, _CELL, 1)
    places, y = _places(y)
    body = f'<rect width="100%" height="100%" fill="{PAPER}"/>{people}{things}{places}'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y:.0f}">{body}</svg>'
    png = rasterise(svg, _WIDTH, round(y))
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").quantize(128).save(target, optimize=True)


def main() -> None:
    """Draw every picture of the documents; the storyboard comes from `make story`."""
    IMAGES.mkdir(exist_ok=True)
    vocabulary_sheet(IMAGES / "vocabulary.png")
    run = Path("out") / STORY
    if (run / "storyboard.json").is_file():
        write_sheet(load_run(run).board, run, IMAGES / f"{STORY}.png")


if __name__ == "__main__":
    main()
