"""PDF: storyboard pages, lists, picture books and contact sheets, with embedded fonts and the same bytes each time."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

from katha.app.exports.board import ExportBoard, ExportFrame, ExportOptions, told_isbn
from katha.app.exports.fonts import (
    Fonts,
    as_seen,
    broken,
    has_leftward,
    has_no_blanks,
    is_leftward,
    needs_shaping,
)
from katha.app.exports.lists import told_of
from katha.app.exports.paper import MM, page_size
from katha.app.exports.press import PageBox, PdfInfo, Placed, read_profile, whole
from katha.app.exports.vectors import BORDER, drawn_as_vectors, svg_root, unframed
from katha.app.reports.page import open_picture
from katha.pictures import decode, read_picture
from katha.renderers.pages import FRAMES

if TYPE_CHECKING:
    from reportlab.pdfgen.canvas import Canvas
    from reportlab.platypus import Paragraph

_CONTACT = 4
_TALLEST, _WIDEST = 0.68, 0.62
"""How much of a cell's height, or of its width, a picture takes with words below or beside it, as grids are chosen."""
_WORDY, _ALMOST = 0.42, 0.97
"""How much of a cell's height its words have at most before they are made smaller; which grids count as equal."""
_LARGE = 1.5
"""How much larger words are where a frame is alone on its page."""
_INK, _SOFT, _MARK = "#1f1e26", "#6a6873", "#c2571a"
_BLACK = "cmyk(0,0,0,1)"
"""What a press prints letters with: one ink."""
_CUT = 1.14
_FLOOR = (0.15, 0.26)
"""How much of a book's page its words have at least and at most, below the picture."""
_COVER = 0.2
_LEAST = 0.42
"""How small words are made at most, of their size."""
_FOOT = 9 * MM
"""How much of the foot of a book's page is kept for its number."""
_RIGHT = 80 * MM
"""How wide what stands at the right of a page's head may be."""
_MARGIN, _GAP, _HEAD = 14 * MM, 6 * MM, 10 * MM


Row = tuple[str, str, float, str]
"""A label, words, their size in points and their colour."""
_APART, _SPACE = "\n", 0.35
"""The label of a row with some space above it, and how much, of its size."""
_BELOW = 4
"""Points between a picture and its words."""
Align = Literal["left", "centre", "right"]


def write_pdf(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write the board as PDF, laid out as the options say; drawings stay vectors."""
    from reportlab.pdfgen.canvas import Canvas

    width, height = page_size(options, wide=sheet.width > sheet.height)
    book = options.layout == "book"
    bleed = options.bleed * MM if book else 0.0
    profile = read_profile(options.icc) if options.icc is not None and book else None
    fonts = Fonts(options.font).checked(sheet)
    known = {font: _registered(0, font) for font in (fonts.best(sheet.title),)}
    pages = io.BytesIO()
    canvas = Canvas(
        pages, pagesize=(width + 2 * bleed, height + 2 * bleed), invariant=1, pageCompression=1,
        initialFontName=next(iter(known.values())), lang=options.language,
    )  # fmt: skip
    canvas.setTitle(sheet.title)
    canvas.setCreator("katha")
    canvas.setAuthor(options.author)
    canvas.setSubject(f"{len(sheet.shots)} frames; bridges: {_bridges(sheet)}")
    page = _Page(canvas, fonts, known, width, height, bleed, _BLACK if profile is not None else _INK)
    page.know(sheet.shots)
    if book and options.text == "facing":
        canvas._doc.Catalog.setPageLayout("TwoPageRight")  # odd pages on the right, as they will be bound
    {"storyboard": _storyboard, "list": _list, "book": _book, "contact": _contact}[options.layout](page, sheet, options)
    canvas.save()
    told = PdfInfo(
        sheet.title, options.author, {f"/{FRAMES}": _frames(page, sheet, width + 2 * bleed, height + 2 * bleed)}
    )
    target.write_bytes(whole(pages.getvalue(), page.placed, page.drawings, told, profile))


def _frames(page: _Page, sheet: ExportBoard, width: float, height: float) -> str:
    """Return the list of the frames and where each lies, as shares of its page from the upper left."""
    places = {item.number: item for item in page.placed}  # of several the last: the first one of a book is its cover's
    rows = []
    for shot in sheet.shots:
        at, (x, y, wide, tall) = places[shot.number].page + 1, places[shot.number].box
        box = [round(side, 6) for side in (x / width, 1 - (y + tall) / height, wide / width, tall / height)]
        rows.append({**told_of(shot), "page": at, "box": box})
    return json.dumps({"title": sheet.title, "frames": rows}, ensure_ascii=False)


def _drawing_page(svg: str) -> bytes | None:
    """Return a drawing as a PDF of one page; None where it cannot be read."""
    import typst

    root = ElementTree.fromstring(svg)
    _, _, wide, tall = (float(number) for number in root.attrib["viewBox"].replace(",", " ").split())
    page = f'#set page(width: {wide}pt, height: {tall}pt, margin: 0pt)\n#image("/frame.svg", width: 100%, height: 100%)'
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "frame.svg").write_text(svg, "utf-8")
        (Path(folder) / "page.typ").write_text(page, "utf-8")
        try:
            return bytes(typst.compile(str(Path(folder) / "page.typ"), root=folder, timestamp=0))
        except typst.TypstError:
            return None


def _bridges(sheet: ExportBoard) -> str:
    return ", ".join(str(shot.number) for shot in sheet.shots if shot.kind == "bridge") or "none"


def _registered(number: int, font: Path) -> str:
    """Make a font known to the PDF library, and return the name that it has there."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    name = f"katha{number}-{font.stem}"
    pdfmetrics.registerFont(TTFont(name, str(font)))
    return name


def _bordered(svg: str) -> bool:
    """Return whether a drawing has a border of its own."""
    return any(item.get("id") == BORDER for item in svg_root(svg))


class _Page:
    """A canvas with a margin, fonts and a way to write words that never overflow their box."""

    def __init__(
        self,
        canvas: Canvas,
        fonts: Fonts,
        known: dict[Path, str],
        width: float,
        height: float,
        bleed: float,
        ink: str = _INK,
    ) -> None:
        self.ink = ink
        self.canvas, self.fonts, self.width, self.height, self.bleed = canvas, fonts, width, height, bleed
        self.known = known
        self.drawings: dict[int, bytes] = {}
        self.bordered: set[str] = set()
        self.placed: list[Placed] = []

    def know(self, shots: Sequence[ExportFrame]) -> None:
        """Take the vectors of the frames that have some.

        Frames of one renderer look alike: their own border goes where all of them are vectors, else all keep it and the
        page draws no second one.
        """
        found = {shot.number: drawn_as_vectors(shot) for shot in shots}
        pixels = {shot.drawn_by for shot in shots if found[shot.number] is None}
        for shot in shots:
            svg = found[shot.number]
            if svg is None:
                continue
            bare = unframed(svg) or svg
            if shot.drawn_by in pixels and _bordered(svg):
                self.bordered.add(shot.drawn_by)
                bare = svg
            drawing = _drawing_page(bare)
            if drawing is not None:
                self.drawings[shot.number] = drawing

    def begin(self) -> None:
        """Say where the paper is cut, and move the origin there."""
        cut = (self.bleed, self.bleed, self.bleed + self.width, self.bleed + self.height)
        self.canvas.setTrimBox(cut)
        self.canvas.setBleedBox((0, 0, self.width + 2 * self.bleed, self.height + 2 * self.bleed))
        self.canvas.translate(self.bleed, self.bleed)

    def words(self, rows: Sequence[Row], box: PageBox, align: Align = "left", *, low: bool = False) -> None:
        """Write rows from the box's top, or in its middle, or with `low` at its foot; ragged lines in the
        middle are made of equal length.

        They are made smaller where they would not fit, and end in an ellipsis where even that is too much.
        """
        told = [row for row in rows if row[1].strip()]
        made: list[Paragraph] = []
        heights: list[float] = []
        for shrink in (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, _LEAST):
            made = [self._paragraph(row, shrink, box.width, align) for row in told]
            plain = [item.wrap(box.width, 10_000)[1] for item in made]
            above = [_above(row, shrink) for row in told]
            # The space goes before the words get smaller.
            room = min(1.0, max(0.0, box.height - sum(plain)) / (sum(above) or 1.0))
            heights = [tall + room * space for tall, space in zip(plain, above, strict=True)]
            if sum(heights) <= box.height:
                if align == "centre":
                    made = [
                        self._balanced(row, shrink, box.width, tall) for row, tall in zip(told, heights, strict=True)
                    ]
                break
        spare = max(0.0, box.height - sum(heights))
        top = box.y + box.height - (spare if low else spare / 2 if align == "centre" else 0.0)
        for row, item, tall in zip(told, made, heights, strict=True):
            fitting = (item, tall) if top - tall >= box.y - 1 else self._cut(row, tall, top - box.y, box.width, align)
            if fitting is None:
                break
            fitting[0].drawOn(self.canvas, box.x, top - fitting[1])
            top -= fitting[1]

    def tall(self, rows: Sequence[Row], width: float) -> float:
        """Return how much height rows need in their full size."""
        told = [row for row in rows if row[1].strip()]
        heights: list[float] = [
            self._paragraph(row, 1.0, width, "left").wrap(width, 10_000)[1] + _above(row, 1.0) for row in told
        ]
        return sum(heights)

    def _balanced(self, row: Row, shrink: float, width: float, tall: float) -> Paragraph:
        """Return a row in as many lines as it takes, none of them much shorter than the others."""
        for share in (0.5, 0.6, 0.7, 0.8, 0.9):
            item = self._paragraph(row, shrink, width, "centre", width * (1 - share) / 2)
            if item.wrap(width, 10_000)[1] <= tall:
                return item
        item = self._paragraph(row, shrink, width, "centre")
        item.wrap(width, 10_000)
        return item

    def _paragraph(self, row: Row, shrink: float, width: float, align: Align, indent: float = 0.0) -> Paragraph:
        """Return a row as a paragraph; words that run from right to left are put into lines and into order here."""
        from reportlab.lib.styles import ParagraphStyle
        from reportlab.platypus import Paragraph

        label, text, size, colour = row
        points, leftward = size * shrink, is_leftward(text)
        told = f"{label} {text}".strip() if label else text
        style = ParagraphStyle(
            "words", fontName=self._name(self.fonts.best(text)), fontSize=points, leading=points * 1.3,
            textColor=colour, alignment=1 if align == "centre" else 2 if leftward or align == "right" else 0,
            shaping=needs_shaping(text), wordWrap=_wrap(text), leftIndent=indent, rightIndent=indent,
        )  # fmt: skip
        if not has_leftward(text):
            return Paragraph(self._markup(told), style)
        lines = broken(told, width - 2 * indent - 1, lambda part: self._width(part, points))
        return Paragraph("<br/>".join(self._markup(as_seen(line, leftward)) for line in lines), style)

    def _cut(self, row: Row, tall: float, room: float, width: float, align: Align) -> tuple[Paragraph, float] | None:
        """Return as much of a row as there is room for, with an ellipsis; None where there is room for no line."""
        label, text, size, colour = row
        while len(text) > 1 and room >= size * _LEAST * 1.3:
            text = text[: int(len(text) * min(0.95, room / tall))].rstrip()
            item = self._paragraph((label, f"{text}\u2026", size, colour), _LEAST, width, align)
            tall = item.wrap(width, 10_000)[1]
            if tall <= room + 1:
                return item, tall
        return None

    def _width(self, text: str, points: float) -> float:
        """Return how wide words are in points, each shaped by itself as it will be drawn."""
        from reportlab.pdfbase.pdfmetrics import stringWidth
        from reportlab.pdfbase.ttfonts import shapeStr

        runs = [(self._name(font), part) for word in text.split() for font, part in self.fonts.runs(word)]
        blanks = stringWidth(" ", self._name(self.fonts.best(text)), points) * text.count(" ")
        wide: float = sum(stringWidth(shapeStr(part, name, points), name, points) for name, part in runs) + blanks
        return wide

    def _markup(self, text: str) -> str:
        return "".join(f'<font name="{self._name(font)}">{escape(part)}</font>' for font, part in self.fonts.runs(text))

    def _name(self, font: Path) -> str:
        if font not in self.known:
            self.known[font] = _registered(len(self.known), font)
        return self.known[font]

    def picture(self, shot: ExportFrame, box: PageBox, *, bleeds: bool = False) -> PageBox:
        """Draw a frame whole in the middle of a box and return where it lies.

        One that `bleeds` covers all of the box, where that cuts off no more than an eighth of it.
        """
        from reportlab.lib.utils import ImageReader

        image = ImageReader(str(shot.picture))
        wide, tall = image.getSize()
        least, most = sorted((box.width / wide, box.height / tall))
        fill = bleeds and most / least <= _CUT
        scale = most if fill else least
        width, height = wide * scale, tall * scale
        placed = PageBox(box.x + (box.width - width) / 2, box.y + (box.height - height) / 2, width, height)
        paper = placed._replace(x=placed.x + self.bleed, y=placed.y + self.bleed)
        drawn = shot.number in self.drawings
        self.placed.append(Placed(self.canvas.getPageNumber() - 1, shot.number, paper, drawn))
        if drawn:  # what bleeds is cut by the paper
            return placed
        self.canvas.saveState()
        clip = self.canvas.beginPath()
        clip.rect(*(box if fill else placed))
        self.canvas.clipPath(clip, stroke=0)
        self.canvas.drawImage(image, *placed)
        self.canvas.restoreState()
        return placed

    @staticmethod
    def covers(shot: ExportFrame, box: PageBox) -> bool:
        """Return whether a picture covers a box without losing more than an eighth of itself."""
        with open_picture(shot.picture) as picture:
            shape = box.width / box.height * picture.height / picture.width
        return 1 / _CUT <= shape <= _CUT

    def frame(self, box: PageBox, colour: str, weight: float) -> None:
        """Draw a line around a box."""
        self.canvas.setStrokeColor(colour)
        self.canvas.setLineWidth(weight)
        self.canvas.rect(*box, stroke=1, fill=0)

    def line(self, x: float, y: float, width: float) -> None:
        """Draw a thin line to the right."""
        self.canvas.setStrokeColor(_SOFT)
        self.canvas.setLineWidth(0.4)
        self.canvas.line(x, y, x + width, y)


def _above(row: Row, shrink: float) -> float:
    """Return the space above a row, in points."""
    return _SPACE * row[2] * shrink if row[0] == _APART else 0.0


def _wrap(text: str) -> str | None:
    """Say that words are broken between any two letters, where a script has no blanks."""
    return "CJK" if any(map(has_no_blanks, text)) else None


def _seconds(value: float) -> str:
    return f"{value:g} s"


def _grid(frames: int, box: PageBox, ratio: float) -> tuple[int, int]:
    """Return the columns and rows that make frames largest, words below or beside them; few columns where equal."""
    shapes = [(columns, -(-frames // columns)) for columns in range(1, frames + 1)]
    wide = [max(_widths(_cell(box, *shape), ratio)) for shape in shapes]
    return next(shape for shape, width in zip(shapes, wide, strict=True) if width >= max(wide) * _ALMOST)


def _cell(box: PageBox, columns: int, rows: int) -> tuple[float, float]:
    """Return width and height of a cell of a grid in a box."""
    return (box.width - (columns - 1) * _GAP) / columns, (box.height - (rows - 1) * _GAP) / rows


def _widths(cell: tuple[float, float], ratio: float) -> tuple[float, float]:
    """Return how wide a picture is in a cell with its words below it, and beside it."""
    return min(cell[0], cell[1] * _TALLEST * ratio), min(cell[0] * _WIDEST, cell[1] * ratio)


def _storyboard(page: _Page, sheet: ExportBoard, options: ExportOptions) -> None:
    """Draw a grid of frames with number, time, caption, dialogue, action and notes.

    Frames are as large as the words leave room for: a row's words have the height that the longest of them needs.
    """
    head, ratio = _HEAD, sheet.width / sheet.height
    body = PageBox(_MARGIN, _MARGIN, page.width - 2 * _MARGIN, page.height - 2 * _MARGIN - head)
    columns, rows = _grid(options.per_page, body, ratio)
    cell = _cell(body, columns, rows)
    below, beside = _widths(cell, ratio)
    pages = _paged(sheet.shots, options.per_page, columns)
    told = {shot.number: _told(shot, _LARGE if options.per_page == 1 else 1.0) for shot in sheet.shots}

    def needs(width: float, shots: Sequence[ExportFrame]) -> list[float]:
        """Return how high the words of each row are; where they are too many, they will be made smaller."""
        lines = [shots[at : at + columns] for at in range(0, len(shots), columns)]
        most = cell[1] * _WORDY
        return [min(most, _BELOW + max(page.tall(told[shot.number], width) for shot in line)) for line in lines]

    wide = beside
    if below >= beside:
        wide = min(cell[0], body.height * ratio / rows)
        while any(
            sum(needs(cell[0], shots)) + rows * wide / ratio > body.height - (rows - 1) * _GAP for shots in pages
        ):
            wide *= 0.98
    left = body.x + ((cell[0] - wide) / 2 if options.per_page == 1 and below >= beside else 0.0)
    for number, shots in enumerate(pages, 1):
        page.begin()
        _head(page, sheet, options, (number, len(pages)))
        deep = needs(cell[0], shots) if below >= beside else [cell[1] - wide / ratio] * rows
        spare = (body.height - rows * wide / ratio - (rows - 1) * _GAP) / rows - sum(deep) / len(deep)
        top = body.y + body.height
        for row, words in enumerate(deep):
            tall = wide / ratio + words + max(0.0, spare)
            for at, shot in enumerate(shots[row * columns : (row + 1) * columns]):
                box = PageBox(left + at * (cell[0] + _GAP), top - tall, cell[0] + body.x - left, tall)
                _frame(page, shot, told[shot.number], box, (wide, wide / ratio), aside=below < beside)
            top -= tall + _GAP
        page.canvas.showPage()


def _paged(shots: Sequence[ExportFrame], per_page: int, columns: int) -> list[Sequence[ExportFrame]]:
    """Return the frames of each page; rows are shared out where the last page would have less than half of them."""
    count, rows = -(-len(shots) // per_page), -(-len(shots) // columns)
    if per_page % columns or 2 * (len(shots) - (count - 1) * per_page) >= per_page:
        return [shots[at : at + per_page] for at in range(0, len(shots), per_page)]
    ends = [columns * -(-rows * number // count) for number in range(count + 1)]
    return [shots[begin:end] for begin, end in pairwise(ends)]


def _head(page: _Page, sheet: ExportBoard, options: ExportOptions, number: tuple[int, int]) -> None:
    """Draw the head of a page: logo, title; date, version, number of the page, and how long the board stands."""
    top = page.height - _MARGIN - _HEAD
    left = _MARGIN + (_logo(page, options.logo, PageBox(_MARGIN, top + 3, 40 * MM, _HEAD - 1)) if options.logo else 0.0)
    page.words([("", sheet.title, 13, _INK)], PageBox(left, top, page.width - _MARGIN - left - _RIGHT, _HEAD))
    told = [options.date, f"version {sheet.version}" if sheet.version else ""]
    told += [f"page {number[0]} of {number[1]}", _seconds(round(sheet.seconds, 3))]
    said = " \u00b7 ".join(part for part in told if part)
    page.words([("", said, 8, _SOFT)], PageBox(page.width - _MARGIN - _RIGHT, top, _RIGHT, _HEAD - 5), "right")


def _logo(page: _Page, path: Path, box: PageBox) -> float:
    """Draw a logo at the left of a box and return how much of its width that takes."""
    from reportlab.lib.utils import ImageReader

    picture = ImageReader(decode(read_picture(path, f"The logo {str(path)!r}"), f"The logo {str(path)!r}"))
    wide, tall = picture.getSize()
    scale = min(box.width / wide, box.height / tall)
    page.canvas.drawImage(picture, box.x, box.y, wide * scale, tall * scale)
    return float(wide * scale) + _GAP / 2


def _told(shot: ExportFrame, larger: float) -> list[Row]:
    """Return the words that stand with a frame on a storyboard page."""
    colour = _SOFT if shot.kind == "scene" else _MARK
    how = " \u00b7 ".join(part for part in (shot.mark, _seconds(shot.seconds), shot.shot, shot.filmed) if part)
    return [
        ("", how, 9.0 * larger, colour),
        ("", shot.scene, 9.0 * larger, _SOFT),
        (_APART, shot.caption, 10.0 * larger, _INK),
        ("Dialogue:", shot.spoken, 9.0 * larger, _INK),
        ("Action:", shot.action, 9.0 * larger, _INK),
        ("Sound:", shot.sound, 9.0 * larger, _SOFT),
        ("Notes:", shot.notes, 9.0 * larger, _SOFT),
    ]


_COLUMNS = (
    ("No.", 0.06), ("", 0.17), ("Scene", 0.12), ("Shot", 0.11), ("Camera", 0.11), ("What happens", 0.29),
    ("Notes", 0.14),
)  # fmt: skip
"""The columns of a list: what stands above each, and its share of the width."""


def _cells(shot: ExportFrame) -> list[list[Row]]:
    """Return what stands in the columns of a list beside a frame's picture."""
    colour = _SOFT if shot.kind == "scene" else _MARK
    happens = [("", shot.caption, 9.0, _INK), ("", _quoted(shot.spoken), 9.0, _INK), ("", shot.action, 8.0, _SOFT)]
    return [
        [("", shot.mark, 9.0, colour), ("", _seconds(shot.seconds), 8.0, _SOFT)],
        [],
        [("", shot.scene, 8.5, _INK)],
        [("", shot.shot, 8.5, _INK)],
        [("", shot.filmed, 8.5, _INK)],
        happens,
        [("", shot.notes, 8.5, _INK), ("Sound:", shot.sound, 8.5, _SOFT)],
    ]


def _quoted(words: str) -> str:
    return f"\u201c{words}\u201d" if words and words[0] not in '"\u201c\u00ab' else words


def _list(page: _Page, sheet: ExportBoard, options: ExportOptions) -> None:
    """Draw a row a frame: its number and time, picture, scene, shot, camera, what happens and notes."""
    body = page.width - 2 * _MARGIN
    widths = [share * body for _, share in _COLUMNS]
    lefts = [_MARGIN + sum(widths[:at]) for at in range(len(widths))]
    inner = [width - _GAP / 2 for width in widths]
    picture = inner[1] * sheet.height / sheet.width
    top, bottom = page.height - _MARGIN - _HEAD - 14, _MARGIN
    rows = []
    for shot in sheet.shots:
        cells = _cells(shot)
        words = max(page.tall(cell, width) for cell, width in zip(cells, inner, strict=True))
        rows.append((shot, cells, min(top - bottom, max(picture, words) + 12)))
    pages: list[list[tuple[ExportFrame, list[list[Row]], float]]] = [[]]
    for row in rows:
        if pages[-1] and sum(tall for _, _, tall in pages[-1]) + row[2] > top - bottom:
            pages.append([])
        pages[-1].append(row)
    for number, told in enumerate(pages, 1):
        page.begin()
        _head(page, sheet, options, (number, len(pages)))
        for (name, _), x, width in zip(_COLUMNS, lefts, inner, strict=True):
            page.words([("", name, 8, _SOFT)], PageBox(x, top, width, 12))
        y = top
        for shot, cells, tall in told:
            page.line(_MARGIN, y, body)
            placed = page.picture(shot, PageBox(lefts[1], y - 6 - picture, inner[1], picture))
            if shot.kind != "scene":
                page.frame(placed, _MARK, 2.0)
            for cell, x, width in zip(cells, lefts, inner, strict=True):
                page.words(cell, PageBox(x, y - tall + 3, width, tall - 9))
            y -= tall
        page.line(_MARGIN, y, body)
        page.canvas.showPage()


def _frame(
    page: _Page, shot: ExportFrame, told: Sequence[Row], box: PageBox, size: tuple[float, float], *, aside: bool
) -> None:
    """Draw a frame at the top of a box, with its words below it, or aside."""
    wide, tall = size
    placed = page.picture(shot, PageBox(box.x, box.y + box.height - tall, wide, tall))
    bridge = shot.kind != "scene"
    if bridge or shot.drawn_by not in page.bordered:
        page.frame(placed, _MARK if bridge else _SOFT, 2.0 if bridge else 0.5)
    if aside:
        page.words(told, PageBox(box.x + wide + _GAP, box.y, box.width - wide - _GAP, box.height))
    else:
        page.words(told, PageBox(box.x, box.y, box.width, box.height - tall - _BELOW))


def _contact(page: _Page, sheet: ExportBoard, options: ExportOptions) -> None:
    """Draw all frames small, numbered and named, as many to a page as fit."""
    columns = _CONTACT if page.width > page.height else _CONTACT - 1
    width = (page.width - 2 * _MARGIN - (columns - 1) * _GAP) / columns
    tall = width * sheet.height / sheet.width
    height = tall + (14 if options.plain else 34)
    head = _HEAD
    rows = max(1, int((page.height - 2 * _MARGIN - head + _GAP) // (height + _GAP)))
    for first in range(0, len(sheet.shots), rows * columns):
        page.begin()
        _head(page, sheet, options, (first // (rows * columns) + 1, -(-len(sheet.shots) // (rows * columns))))
        for at, shot in enumerate(sheet.shots[first : first + rows * columns]):
            x = _MARGIN + at % columns * (width + _GAP)
            y = page.height - _MARGIN - head - (at // columns + 1) * height - at // columns * _GAP
            placed = page.picture(shot, PageBox(x, y + height - tall, width, tall))
            if shot.kind != "scene":
                page.frame(placed, _MARK, 2.0)
            told = [("", shot.mark, 8.0, _SOFT), ("", "" if options.plain else shot.caption, 8.0, _INK)]
            page.words(told, PageBox(x, y, width, height - tall - 3))
        page.canvas.showPage()


def _book(page: _Page, sheet: ExportBoard, options: ExportOptions) -> None:
    """Draw a cover, an imprint, a title page, then a frame a page (or words on the left page and their picture on the
    right one), and bare pages until their number is a multiple of what a sheet of paper holds.

    The cover is a right page, as page 1 of every bound book: what follows it lies open in pairs.
    """
    whole_page = PageBox(-page.bleed, -page.bleed, page.width + 2 * page.bleed, page.height + 2 * page.bleed)
    width = page.width - 2 * _MARGIN
    page.begin()
    floor = _plate(page, sheet, sheet.shots[0], whole_page, page.height * _COVER)
    size = min(54.0, 30.0 * max(1.0, floor / (page.height * _COVER) * 0.7))
    page.words([("", sheet.title, size, page.ink)], PageBox(_MARGIN, 0, width, floor), "centre")
    page.canvas.showPage()
    _front(page, sheet, options)
    least, most = (share * page.height for share in _FLOOR)
    needed = max(page.tall([("", said, 17.0, _INK) for said in shot.said], width) for shot in sheet.shots)
    for shot in sheet.shots:
        page.begin()
        if options.text == "facing":
            size = min(32.0, max(16.0, page.height * 0.04))
            page.words(_lines(page, shot, size), PageBox(_MARGIN, _MARGIN, width, page.height - 2 * _MARGIN), "centre")
            _folio(page)
            page.canvas.showPage()
            page.begin()
            page.picture(shot, whole_page, bleeds=True)
        elif not shot.said and page.covers(shot, whole_page):
            page.picture(shot, whole_page, bleeds=True)
        else:
            floor = _plate(page, sheet, shot, whole_page, min(most, max(least, needed + _MARGIN)))
            size = min(28.0, max(17.0, 16.0 * floor / (page.height * _FLOOR[1])))
            told = PageBox(_MARGIN, _FOOT, width, floor - _FOOT - _MARGIN * 0.2)
            page.words(_lines(page, shot, size), told, "centre")
            _folio(page)
        page.canvas.showPage()
    while (page.canvas.getPageNumber() - 1) % options.multiple:
        page.begin()
        page.canvas.showPage()


def _front(page: _Page, sheet: ExportBoard, options: ExportOptions) -> None:
    """Draw the imprint, on the back of the cover, and the title page."""
    width = page.width - 2 * _MARGIN
    page.begin()
    made = [options.publisher, options.date]
    lines = [sheet.title, f"Words and pictures: {options.author}" if options.author else ""]
    lines += [", ".join(part for part in made if part), f"ISBN {told_isbn(options.isbn)}" if options.isbn else ""]
    lines += [f"Drawn with katha ({sheet.renderer})"]
    page.words(
        [("", line, 8.0, page.ink) for line in lines], PageBox(_MARGIN, _MARGIN, width, 9 * 8.0 * 1.3), "left", low=True
    )
    page.canvas.showPage()
    page.begin()
    size = min(44.0, max(22.0, page.height * 0.055))
    page.words(
        [("", sheet.title, size, page.ink)], PageBox(_MARGIN, page.height * 0.45, width, page.height * 0.3), "centre"
    )
    by = [("", options.author, size * 0.45, page.ink)]
    page.words(by, PageBox(_MARGIN, page.height * 0.3, width, page.height * 0.15), "centre")
    below = [("", options.publisher, size * 0.35, page.ink)]
    page.words(below, PageBox(_MARGIN, _MARGIN, width, size), "centre")
    page.canvas.showPage()


def _folio(page: _Page) -> None:
    """Write the number of a book's page at its foot."""
    number = [("", str(page.canvas.getPageNumber()), 8.0, page.ink)]
    page.words(number, PageBox(_MARGIN, _FOOT * 0.3, page.width - 2 * _MARGIN, _FOOT * 0.6), "centre")


def _plate(page: _Page, sheet: ExportBoard, shot: ExportFrame, whole_page: PageBox, floor: float) -> float:
    """Draw a picture at the top of a book's page and return how high the paper below it is, at least `floor`.

    It runs over the edges of the paper on three sides, or stands free of all of them where it is too high for that.
    """
    tall = whole_page.width * sheet.height / sheet.width
    top = whole_page.y + whole_page.height
    if tall <= top - floor:
        page.picture(shot, PageBox(whole_page.x, top - tall, whole_page.width, tall))
        return top - tall
    page.picture(shot, PageBox(_MARGIN, floor, page.width - 2 * _MARGIN, page.height - floor - 0.7 * _MARGIN))
    return floor


def _lines(page: _Page, shot: ExportFrame, size: float) -> list[Row]:
    """Return a book's words for a frame."""
    return [("", said, size, page.ink) for said in shot.said]
