"""Draws the pictures of the documents again: `python -m docs.make_images`.

It is run by hand, with the stand-in and a browser installed: neither the tests nor the site need it.
"""

from __future__ import annotations

import io
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import opentimelineio
import pypdfium2
from PIL import Image, ImageDraw
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By

from katha import run_story
from katha.app.reports.page import load_run
from katha.app.reports.sheet import write_sheet
from katha_sketch.drawing import rasterise
from katha_sketch.drawing.deeds import draw_creature
from katha_sketch.drawing.figures.rig import Pose
from katha_sketch.drawing.pictograms import Pictogram, draw_pictogram, pictograms
from katha_sketch.drawing.places import draw_place, place_ids
from katha_sketch.drawing.style import PAPER
from katha_sketch.vocabulary import load_vocabulary

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from browser import chromium, resize
from desk import DeskProcess

__all__ = ["main"]

IMAGES = Path(__file__).parent / "images"
EXAMPLES = Path(__file__).parents[1] / "examples"
STORY = "lion_and_mouse"
OWN = "birthday"
RECORDED = "the_coat_in_the_barley"
FIRST = Path(__file__).parent / "tutorial" / "first-board.md"
TUTORIAL = Path(__file__).parent / "tutorial" / "picture-book.md"
_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BRIDGE = "#c9560f"
_WIDTH, _CELL = 1560, 78
_EVERY = 6
"""One pictogram in so many is on the sheet."""
_SETTLED = """
const done = arguments[arguments.length - 1];
const settled = (img) => img.complete || img.getBoundingClientRect().top > innerHeight;
const look = () => {
  const shown = [...document.querySelectorAll("#cards img")], idle = document.body.dataset.ready === "idle";
  idle && shown.length && shown.every(settled) ? done() : setTimeout(look, 50);
};
look();
"""

_READY_TO_DRAW = """const done = arguments[0];
const look = () => {
  if (!document.querySelector('#pen').open) { setTimeout(look, 50); return; }
  document.querySelector('#pen [name=width][value="16"]').checked = true;
  document.querySelector('#pen [name=hue][value="#ffffff"]').checked = true;
  const before = document.querySelector('[data-onion=before]');
  before.value = 35;
  before.dispatchEvent(new Event('input', { bubbles: true }));
  setTimeout(done, 500);
};
look();"""
_OPENED = """
const done = arguments[arguments.length - 1];
const look = () => {
  const layers = [...document.querySelectorAll("#drawing-layers button")];
  const found = layers.find((button) => button.textContent.startsWith("the boy"));
  if (!found) { setTimeout(look, 50); return; }
  found.click();
  requestAnimationFrame(() => requestAnimationFrame(done));
};
look();
"""


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


def follow(page: Path, folder: Path) -> None:
    """Write the files of a tutorial into `folder` and run its commands there."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for language, title, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if title:
            (folder / title).write_text(text, encoding="utf-8")
        if language == "sh":
            subprocess.run(
                ["sh", "-e"], input=text, text=True, cwd=folder, env={**os.environ, "PATH": path}, check=True
            )


def book_sheet(book: Path, target: Path, pages: tuple[int, ...] = (0, 2, 3, 4), size: int = 380) -> None:
    """Pages of a PDF side by side: of a book its cover, its title page and the first with a picture."""
    document = pypdfium2.PdfDocument(book)
    sheet = Image.new("RGB", (len(pages) * (size + 12) + 12, size + 24), "#8d8d8d")
    for number, place in enumerate(pages):
        page = document[place]
        drawn = page.render(scale=size / page.get_height()).to_pil().convert("RGB")
        sheet.paste(drawn.resize((size, size)), (12 + number * (size + 12), 12))
    sheet.quantize(255).save(target, optimize=True)


def takes_strip(takes: Path, target: Path, size: tuple[int, int] = (384, 256)) -> None:
    """The pictures that a frame could have, side by side."""
    files = sorted(takes.glob("*.png"))
    strip = Image.new("RGB", (len(files) * (size[0] + 8) - 8, size[1]), PAPER)
    for number, file in enumerate(files):
        with Image.open(file) as picture:
            strip.paste(picture.convert("RGB").resize(size), (number * (size[0] + 8), 0))
    strip.quantize(255).save(target, optimize=True)


def timeline_strip(otioz: Path, target: Path, height: int = 150) -> None:
    """The clips of a timeline, each as wide as it is long, over a ruler of seconds; bridges have an orange edge."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        timeline = opentimelineio.adapters.read_from_file(str(otioz), extract_to_directory=folder)
        clips = list(timeline.find_clips())
        seconds = [clip.source_range.duration.to_seconds() for clip in clips]
        scale = _WIDTH / sum(seconds)
        strip, left = Image.new("RGB", (_WIDTH, height + 34), "#2b2b30"), 0.0
        pen = ImageDraw.Draw(strip)
        for clip, long in zip(clips, seconds, strict=True):
            width = round(long * scale) - 4
            with Image.open(place / clip.media_reference.target_url) as picture:
                whole = picture.convert("RGB")
            whole.thumbnail((width - 8, height - 8))
            edge = _BRIDGE if any(marker.name == "bridge" for marker in clip.markers) else "#55555c"
            pen.rectangle((left + 2, 0, left + 2 + width, height), fill=edge)
            middle = (round(left) + 2 + (width - whole.width) // 2, (height - whole.height) // 2)
            strip.paste(whole, middle)
            left += long * scale
        for second in range(int(sum(seconds)) + 1):
            pen.line(
                (second * scale, height + 6, second * scale, height + (20 if second % 5 == 0 else 12)), fill="#bbbbbb"
            )
            if second % 5 == 0:
                pen.text((second * scale + 4, height + 14), f"{second} s", fill="#dddddd", font_size=15)
    strip.quantize(255).save(target, optimize=True)


def board_images() -> None:
    """The boards of a fable and of the ordinary story of the first tutorial, as `katha run` leaves them."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        texts = {title: text for _, title, text in _BLOCK.findall(FIRST.read_text(encoding="utf-8")) if title}
        own = work / f"{OWN}.txt"
        own.write_text(texts[own.name], encoding="utf-8")
        for name, story in ((STORY, EXAMPLES / f"{STORY}.txt"), (OWN, own)):
            made = load_run(run_story(story, out=work / name).out)
            sheet = write_sheet(made.board, work / name, work / f"{name}.png", made.plan)
            with Image.open(sheet) as picture:
                picture.convert("RGB").quantize(255).save(IMAGES / f"{name}.png", optimize=True)


def tutorial_images() -> None:
    """The board, the book and the timeline of the tutorial, which is followed for them."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        follow(TUTORIAL, work)
        with Image.open(work / "lantern.png") as sheet:
            sheet.convert("RGB").quantize(255).save(IMAGES / "lantern_board.png", optimize=True)
        takes_strip(work / "out" / "lantern" / "takes", IMAGES / "lantern_takes.png")
        book_sheet(work / "lantern.pdf", IMAGES / "lantern_book.png")
        timeline_strip(work / "lantern.otioz", IMAGES / "lantern_timeline.png")


def desk_images(size: tuple[int, int] = (1440, 1110), width: int = 1080) -> None:
    """A recorded board at the desk: its story and its cards, the drawing of one frame with a figure chosen, and the pen
    over it, with the frame before."""
    recorded = EXAMPLES / "recorded" / RECORDED
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run = work / "run"
        run_story(recorded / "story.json", replay=recorded / "board.katha", out=run)
        with DeskProcess(work, run) as desk, chromium(work / "profile") as driver:
            resize(driver, *size)
            driver.get(desk.address)
            driver.set_script_timeout(60)
            driver.execute_async_script(_SETTLED)
            _keep(driver.get_screenshot_as_png(), width, IMAGES / "desk.png")
            resize(driver, size[0], 800)
            for button in ("[data-focus=edit2]", "#edit-drawing"):
                driver.execute_script("document.querySelector(arguments[0]).click()", button)
            driver.execute_async_script(_OPENED)
            _keep(driver.get_screenshot_as_png(), width, IMAGES / "desk_drawing.png")
            driver.get("about:blank")
            driver.get(f"{desk.address}/frame/2/pen")
            driver.execute_async_script(_READY_TO_DRAW)
            canvas = driver.find_element(By.ID, "pen-canvas")
            pen = ActionChains(driver, duration=60).move_to_element_with_offset(canvas, -80, -90).click_and_hold()
            for step in range(25):  # a curl of wind before the captain
                pen.move_by_offset(round(14 * math.cos(step / 3)) + 3, round(14 * math.sin(step / 3)))
            pen.release().perform()
            _keep(driver.get_screenshot_as_png(), width, IMAGES / "desk_pen.png")


def _keep(picture: bytes, width: int, target: Path) -> None:
    """Write a screenshot, smaller, in few colours."""
    shown = Image.open(io.BytesIO(picture)).convert("RGB")
    small = shown.resize((width, round(shown.height * width / shown.width)), Image.Resampling.LANCZOS)
    small.quantize(255).save(target, optimize=True)


def main() -> None:
    """Draw every picture of the documents."""
    IMAGES.mkdir(exist_ok=True)
    board_images()
    tutorial_images()
    desk_images()
    vocabulary_sheet(IMAGES.parents[1] / "sketch" / "docs" / "images" / "vocabulary.png")


if __name__ == "__main__":
    main()
