"""PDF: storyboard pages, picture books and contact sheets, with embedded fonts and the same bytes each time."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from katha.app.exports.board import ExportOptions, Sheet, Shot
from katha.app.exports.fonts import (
    Fonts,
    as_seen,
    broken,
    has_leftward,
    has_no_blanks,
    is_leftward,
    needs_shaping,
)
from katha.app.exports.vectors import vectors
from katha.errors import UsageError

if TYPE_CHECKING:
    from reportlab.graphics.shapes import Drawing
    from reportlab.pdfgen.canvas import Canvas
    from reportlab.platypus import Paragraph

_MM = 72 / 25.4
_PAGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"a3": (297, 420), "a4": (210, 297), "a5": (148, 210), "letter": (215.9, 279.4), "square": (210, 210)}
)
_CUSTOM = re.compile(r"(\d{2,4}(?:\.\d+)?)x(\d{2,4}(?:\.\d+)?)")
_SMALLEST, _LARGEST = 50, 1_500
_GRIDS = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 5: (2, 3), 6: (2, 3), 7: (3, 3), 8: (3, 3), 9: (3, 3)}
_CONTACT = 4
_TALLEST, _WIDEST = 0.68, 0.62
"""How much of a cell's height, or of its width, a picture takes at most, with words below it or beside it."""
_ALONE, _LARGE = 0.8, 1.5
"""The same for the height where it is alone on its page, and how much larger its words are."""
_INK, _SOFT, _MARK = "#1f1e26", "#6a6873", "#c2571a"
_CUT = 1.14
_FLOOR = 0.22
"""How much of a book's page its words have at least, below the picture."""
_LEAST = 0.42
"""How small words are made at most, of their size."""
_MARGIN, _GAP = 14 * _MM, 6 * _MM


class Box(NamedTuple):
    """A place on a page in points, from its lower left corner."""

    x: float
    y: float
    width: float
    height: float


def page_size(options: ExportOptions, *, wide: bool = False) -> tuple[float, float]:
    """Return the page's width and height in points; wide: the frames are wider than high, and a page of a named size
    with a single one lies on its side.

    Raises:
        UsageError: no such page, or one that is to lie and to stand.
    """
    if options.landscape and options.portrait:
        raise UsageError("A page cannot be --landscape and --portrait.", hint="Leave one of them out.")
    name = options.page.strip().lower()
    found = _CUSTOM.fullmatch(name)
    size = _PAGES.get(name) or ((float(found[1]), float(found[2])) if found else None)
    if size is None or not all(_SMALLEST <= side <= _LARGEST for side in size):
        raise UsageError(
            f"--page {options.page!r} is no page size.",
            hint=f"Known: {', '.join(_PAGES)}, or WIDTHxHEIGHT in millimetres from {_SMALLEST} to {_LARGEST}.",
        )
    width, height = (side * _MM for side in size)
    single = options.layout == "book" or (options.layout == "storyboard" and options.per_page == 1)
    lies = wide and single and found is None and width < height and not options.portrait
    return (height, width) if options.landscape or lies else (width, height)


def write_pdf(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write the board as PDF, laid out as the options say; what the sketch drew stays vectors."""
    from reportlab.pdfgen.canvas import Canvas

    width, height = page_size(options, wide=sheet.width > sheet.height)
    bleed = options.bleed * _MM if options.layout == "book" else 0.0
    canvas = Canvas(str(target), pagesize=(width + 2 * bleed, height + 2 * bleed), invariant=1, pageCompression=1)
    canvas.setTitle(sheet.title)
    canvas.setCreator("katha")
    canvas.setSubject(f"{len(sheet.shots)} frames; bridges: {_bridges(sheet)}")
    page = _Page(canvas, Fonts(options.font).checked(sheet), width, height, bleed)
    for shot in sheet.shots:
        page.know(shot, vectors(shot))
    if options.layout == "book" and options.text == "facing":
        canvas._doc.Catalog.setPageLayout("TwoPageRight")  # odd pages on the right, as they will be bound
    {"storyboard": _storyboard, "book": _book, "contact": _contact}[options.layout](page, sheet, options)
    canvas.save()


def _bridges(sheet: Sheet) -> str:
    return ", ".join(str(shot.number) for shot in sheet.shots if shot.kind == "bridge") or "none"


class _Page:
    """A canvas with a margin, fonts and a way to write words that never overflow their box."""

    def __init__(self, canvas: Canvas, fonts: Fonts, width: float, height: float, bleed: float) -> None:
        self.canvas, self.fonts, self.width, self.height, self.bleed = canvas, fonts, width, height, bleed
        self.known: dict[Path, str] = {}
        self.drawings: dict[int, Drawing] = {}

    def know(self, shot: Shot, svg: str | None) -> None:
        """Take a frame's vectors, where it has some that a PDF shows alike: svglib loses what a circle clips."""
        if svg is not None and "<clipPath" not in svg:
            from svglib.svglib import svg2rlg

            self.drawings[shot.number] = svg2rlg(io.BytesIO(svg.encode()))

    def begin(self) -> None:
        """Say where the paper is cut, and move the origin there."""
        if self.bleed:
            self.canvas.setTrimBox((self.bleed, self.bleed, self.bleed + self.width, self.bleed + self.height))
            self.canvas.translate(self.bleed, self.bleed)

    def words(self, rows: Sequence[tuple[str, str, float, str]], box: Box, *, centre: bool = False) -> None:
        """Write rows of (label, text, size in points, colour) from the box's top or in its middle.

        They are made smaller where they would not fit, and end in an ellipsis where even that is too much.
        """
        told = [row for row in rows if row[1].strip()]
        made: list[Paragraph] = []
        heights: list[float] = []
        for shrink in (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, _LEAST):
            made = [self._paragraph(row, shrink, box.width, centre) for row in told]
            heights = [item.wrap(box.width, 10_000)[1] for item in made]
            if sum(heights) <= box.height:
                break
        top = box.y + box.height - (max(0.0, box.height - sum(heights)) / 2 if centre else 0.0)
        for row, item, tall in zip(told, made, heights, strict=True):
            fitting = (item, tall) if top - tall >= box.y - 1 else self._cut(row, tall, top - box.y, box.width, centre)
            if fitting is None:
                break
            fitting[0].drawOn(self.canvas, box.x, top - fitting[1])
            top -= fitting[1]

    def _paragraph(self, row: tuple[str, str, float, str], shrink: float, width: float, centre: bool) -> Paragraph:
        """Return a row as a paragraph; words that run from right to left are put into lines and into order here."""
        from reportlab.lib.styles import ParagraphStyle
        from reportlab.platypus import Paragraph

        label, text, size, colour = row
        points, leftward = size * shrink, is_leftward(text)
        told = f"{label} {text}" if label else text
        style = ParagraphStyle(
            "words", fontName=self._name(self.fonts.best(text)), fontSize=points, leading=points * 1.3,
            textColor=colour, alignment=1 if centre else 2 if leftward else 0, shaping=needs_shaping(text),
            wordWrap=_wrap(text),
        )  # fmt: skip
        if not has_leftward(text):
            return Paragraph(self._markup(told), style)
        lines = broken(told, width - 1, lambda part: self._width(part, points))
        return Paragraph("<br/>".join(self._markup(as_seen(line, leftward)) for line in lines), style)

    def _cut(
        self, row: tuple[str, str, float, str], tall: float, room: float, width: float, centre: bool
    ) -> tuple[Paragraph, float] | None:
        """Return as much of a row as there is room for, with an ellipsis; None where there is room for no line."""
        label, text, size, colour = row
        while len(text) > 1 and room >= size * _LEAST * 1.3:
            text = text[: int(len(text) * min(0.95, room / tall))].rstrip()
            item = self._paragraph((label, f"{text}\u2026", size, colour), _LEAST, width, centre)
            tall = item.wrap(width, 10_000)[1]
            if tall <= room + 1:
                return item, tall
        return None

    def _width(self, text: str, points: float) -> float:
        """How wide words are in points, each shaped by itself as it will be drawn."""
        from reportlab.pdfbase.pdfmetrics import stringWidth
        from reportlab.pdfbase.ttfonts import shapeStr

        runs = [(self._name(font), part) for word in text.split() for font, part in self.fonts.runs(word)]
        blanks = stringWidth(" ", self._name(self.fonts.best(text)), points) * text.count(" ")
        wide: float = sum(stringWidth(shapeStr(part, name, points), name, points) for name, part in runs) + blanks
        return wide

    def _markup(self, text: str) -> str:
        return "".join(f'<font name="{self._name(font)}">{escape(part)}</font>' for font, part in self.fonts.runs(text))

    def _name(self, font: Path) -> str:
        from reportlab.pdfbase import pdfmetrics
        from reportlab.pdfbase.ttfonts import TTFont

        if font not in self.known:
            name = f"katha{len(self.known)}-{font.stem}"
            pdfmetrics.registerFont(TTFont(name, str(font)))
            self.known[font] = name
        return self.known[font]

    def picture(self, shot: Shot, box: Box, *, bleeds: bool = False) -> Box:
        """Draw a frame whole in the middle of a box and return where it lies.

        One that `bleeds` covers all of the box, where that cuts off no more than an eighth of it.
        """
        from reportlab.graphics import renderPDF
        from reportlab.lib.utils import ImageReader

        drawing, image = self.drawings.get(shot.number), ImageReader(str(shot.picture))
        wide, tall = image.getSize()
        least, most = sorted((box.width / wide, box.height / tall))
        fill = bleeds and most / least <= _CUT
        scale = most if fill else least
        width, height = wide * scale, tall * scale
        placed = Box(box.x + (box.width - width) / 2, box.y + (box.height - height) / 2, width, height)
        self.canvas.saveState()
        clip = self.canvas.beginPath()
        clip.rect(*(box if fill else placed))
        self.canvas.clipPath(clip, stroke=0)
        if drawing is not None:
            self.canvas.translate(placed.x, placed.y)
            self.canvas.scale(width / drawing.width, height / drawing.height)
            renderPDF.draw(drawing, self.canvas, 0, 0)
        else:
            self.canvas.drawImage(image, *placed)
        self.canvas.restoreState()
        return placed

    def frame(self, box: Box, colour: str, weight: float) -> None:
        """Draw a line around a box."""
        self.canvas.setStrokeColor(colour)
        self.canvas.setLineWidth(weight)
        self.canvas.rect(*box, stroke=1, fill=0)


def _wrap(text: str) -> str | None:
    """Say that words are broken between any two letters, where a script has no blanks."""
    return "CJK" if any(map(has_no_blanks, text)) else None


def _seconds(value: float) -> str:
    return f"{value:g} s"


def _storyboard(page: _Page, sheet: Sheet, options: ExportOptions) -> None:
    """Draw a grid of frames with number, time, caption, dialogue, action and notes."""
    columns, rows = _GRIDS[options.per_page]
    if (page.width > page.height) != (columns > rows):
        columns, rows = rows, columns
    pages = -(-len(sheet.shots) // options.per_page)
    head = 10 * _MM
    cell_width = (page.width - 2 * _MARGIN - (columns - 1) * _GAP) / columns
    cell_height = (page.height - 2 * _MARGIN - head - (rows - 1) * _GAP) / rows
    for number in range(pages):
        page.begin()
        title = [("", sheet.title, 13, _INK)]
        page.words(title, Box(_MARGIN, page.height - _MARGIN - head, page.width - 2 * _MARGIN - 90, head))
        told = [("", f"page {number + 1} of {pages}, {_seconds(sheet.seconds)}", 8, _SOFT)]
        page.words(told, Box(page.width - _MARGIN - 85, page.height - _MARGIN - head, 85, head))
        shots = sheet.shots[number * options.per_page : (number + 1) * options.per_page]
        for at, shot in enumerate(shots):
            x = _MARGIN + at % columns * (cell_width + _GAP)
            y = page.height - _MARGIN - head - (at // columns + 1) * cell_height - at // columns * _GAP
            _cell(page, sheet, shot, Box(x, y, cell_width, cell_height), alone=options.per_page == 1)
        page.canvas.showPage()


def _cell(page: _Page, sheet: Sheet, shot: Shot, box: Box, *, alone: bool) -> None:
    """Draw a frame with its words below it, or beside it where it is larger so; alone: it has the page to itself."""
    ratio = sheet.width / sheet.height
    below = min(box.width, box.height * (_ALONE if alone else _TALLEST) * ratio)
    beside = min(box.width * _WIDEST, box.height * ratio)
    wide = max(below, beside)
    tall = wide / ratio
    top = box.y + box.height
    left = box.x + (box.width - wide) / 2 if alone and wide == below else box.x
    placed = page.picture(shot, Box(left, top - tall, wide, tall))
    bridge = shot.kind != "scene"
    page.frame(placed, _MARK if bridge else _SOFT, 2.0 if bridge else 0.5)
    larger = _LARGE if alone else 1.0
    rows = [
        ("", f"{shot.mark} \u00b7 {_seconds(shot.seconds)}", 9.0 * larger, _MARK if bridge else _SOFT),
        ("", shot.caption, 10.0 * larger, _INK),
        ("Dialogue:", shot.dialogue, 9.0 * larger, _INK),
        ("Action:", shot.action, 9.0 * larger, _INK),
        ("Notes:", shot.notes, 9.0 * larger, _SOFT),
    ]
    if wide == below:
        page.words(rows, Box(left, box.y, wide if alone else box.width, box.height - tall - 4))
    else:
        page.words(rows, Box(left + wide + _GAP, box.y, box.width - wide - _GAP, box.height))


def _contact(page: _Page, sheet: Sheet, options: ExportOptions) -> None:
    """Draw all frames small, numbered and named, as many to a page as fit."""
    columns = _CONTACT if page.width > page.height else _CONTACT - 1
    width = (page.width - 2 * _MARGIN - (columns - 1) * _GAP) / columns
    tall = width * sheet.height / sheet.width
    height = tall + (14 if options.plain else 34)
    head = 10 * _MM
    rows = max(1, int((page.height - 2 * _MARGIN - head + _GAP) // (height + _GAP)))
    for first in range(0, len(sheet.shots), rows * columns):
        page.begin()
        page.words(
            [("", sheet.title, 13, _INK)],
            Box(_MARGIN, page.height - _MARGIN - head, page.width - 2 * _MARGIN, head),
        )
        for at, shot in enumerate(sheet.shots[first : first + rows * columns]):
            x = _MARGIN + at % columns * (width + _GAP)
            y = page.height - _MARGIN - head - (at // columns + 1) * height - at // columns * _GAP
            placed = page.picture(shot, Box(x, y + height - tall, width, tall))
            if shot.kind != "scene":
                page.frame(placed, _MARK, 2.0)
            told = [("", shot.mark, 8.0, _SOFT), ("", "" if options.plain else shot.caption, 8.0, _INK)]
            page.words(told, Box(x, y, width, height - tall - 3))
        page.canvas.showPage()


def _book(page: _Page, sheet: Sheet, options: ExportOptions) -> None:
    """Draw a cover, then a frame a page (or words on the left page and their picture on the right one).

    The cover is a right page, as page 1 of every bound book: what follows it lies open in pairs.
    """
    whole = Box(-page.bleed, -page.bleed, page.width + 2 * page.bleed, page.height + 2 * page.bleed)
    band = page.height * 0.2
    page.begin()
    page.picture(sheet.shots[0], Box(whole.x, band, whole.width, whole.y + whole.height - band), bleeds=True)
    _middle(page, sheet.title, Box(_MARGIN, 0, page.width - 2 * _MARGIN, band), 30)
    page.canvas.showPage()
    for shot in sheet.shots:
        page.begin()
        if options.text == "facing":
            _middle(page, _said(shot), Box(_MARGIN, _MARGIN, page.width - 2 * _MARGIN, page.height - 2 * _MARGIN), 20)
            page.canvas.showPage()
            page.begin()
            page.picture(shot, whole, bleeds=True)
        elif not _said(shot):
            page.picture(shot, whole, bleeds=True)
        else:
            tall = min(whole.y + whole.height - page.height * _FLOOR, whole.width * sheet.height / sheet.width)
            floor = whole.y + whole.height - tall
            page.picture(shot, Box(whole.x, floor, whole.width, tall))
            size = min(28.0, max(16.0, 16.0 * floor / (page.height * _FLOOR)))
            box = Box(_MARGIN, _MARGIN * 0.5, page.width - 2 * _MARGIN, floor - _MARGIN * 0.7)
            _middle(page, _said(shot), box, size)
        page.canvas.showPage()


def _said(shot: Shot) -> str:
    """Return a book's words for a frame; a frame that the story itself does not have has none."""
    return (shot.dialogue or shot.caption) if shot.kind == "scene" else ""


def _middle(page: _Page, text: str, box: Box, size: float) -> None:
    """Write words in the middle of a box."""
    page.words([("", text, size, _INK)], box, centre=True)
