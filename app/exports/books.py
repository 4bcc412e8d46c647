"""Books for readers: a comic book archive and a fixed-layout EPUB 3, the same bytes each time."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from html import escape
from itertools import accumulate
from pathlib import Path
from xml.etree import ElementTree

from katha.app.exports.archive import write_zip
from katha.app.exports.board import ExportBoard, ExportFrame, ExportOptions
from katha.app.exports.fonts import has_no_blanks
from katha.app.exports.lists import listing
from katha.app.exports.pictures import files_of
from katha.app.exports.sizes import box_of, fitted
from katha.app.exports.vectors import drawn_as_vectors
from katha.jsonio import dumps
from katha.pictures import as_png
from katha.renderers.exported import LISTS

_SHELF = (1600, 2400)
"""Pixels that a cover is fitted into: shops ask for 1,600 on a side."""
_LONGEST_ALT = 300
_DAY = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_SMALLEST, _LETTER, _IDEOGRAPH = 8, 0.6, 1.05
"""The smallest size of words in pixels, and how wide letters are at most on average, in sizes."""
_LINE = "\n"
_MODIFIED = "1980-01-01T00:00:00Z"
_CONTAINER = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>\n'
)
_TYPES = {
    ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp",
}  # fmt: skip


def write_cbz(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write the frames in order with `ComicInfo.xml` (bridges are bookmarked), and the list that brings them back."""
    info = ElementTree.Element("ComicInfo")
    told = {"Title": sheet.title, "Summary": sheet.text, "Writer": options.author, "Publisher": options.publisher}
    for name, value in told.items():
        if value:
            ElementTree.SubElement(info, name).text = value
    ElementTree.SubElement(info, "PageCount").text = str(len(sheet.shots))
    ElementTree.SubElement(info, "LanguageISO").text = options.language
    pages = ElementTree.SubElement(info, "Pages")
    for at, shot in enumerate(sheet.shots):
        page = {"Image": str(at), "Type": "FrontCover" if at == 0 else "Story"}
        if shot.kind != "scene":
            page["Bookmark"] = shot.kind
        ElementTree.SubElement(pages, "Page", page)
    text = ElementTree.tostring(info, encoding="utf-8", xml_declaration=True)
    frames = list(files_of(sheet, options))
    write_zip(target, [("ComicInfo.xml", text), *frames, (LISTS[".cbz"], _list(sheet, [name for name, _ in frames]))])


def _list(sheet: ExportBoard, names: Iterable[str]) -> bytes:
    """Return the list of a board's frames in the files of these names."""
    told = listing(sheet, "")
    told["frames"] = [{**row, "file": name} for row, name in zip(told["frames"], names, strict=True)]
    return dumps(told).encode("utf-8")


def write_epub(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write a fixed-layout EPUB 3: a cover, then a frame a page with its words below; drawings stay vectors.

    It says what EPUB Accessibility 1.1 asks for: how it can be read, and what is in it that helps.
    """
    width, height = sheet.width, sheet.height
    foot = max(120, round(height * 0.22))
    images = {shot.number: _image(shot, options) for shot in sheet.shots}
    front = _front(sheet, images[sheet.shots[0].number][0], options)
    body = {
        "cover": _cover(sheet, images[sheet.shots[0].number][0], options, foot),
        **{
            f"page{shot.number:03d}": _page(sheet, shot, images[shot.number][0], options.language, foot)
            for shot in sheet.shots
        },
    }
    files: list[tuple[str, bytes]] = [
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", _CONTAINER.encode()),
        ("OEBPS/content.opf", _package(sheet, images, front[0], options, list(body)).encode("utf-8")),
        ("OEBPS/nav.xhtml", _nav(sheet, options.language).encode("utf-8")),
        ("OEBPS/style.css", _style(width, height, foot).encode("utf-8")),
    ]
    files += [(f"OEBPS/{name}.xhtml", text.encode("utf-8")) for name, text in body.items()]
    files += [(f"OEBPS/{name}", data) for name, data in dict([*images.values(), front]).items()]
    files.append((LISTS[".epub"], _list(sheet, [name for name, _ in images.values()])))
    write_zip(target, files)


def _image(shot: ExportFrame, options: ExportOptions) -> tuple[str, bytes]:
    """Return the name and bytes of a frame's picture: its drawing where it has one."""
    drawing, box = drawn_as_vectors(shot), box_of(options)
    if drawing is not None:
        return f"{shot.name}.svg", drawing.encode("utf-8")
    if box is not None:
        return f"{shot.name}.png", as_png(fitted(shot, box))
    return f"{shot.name}{shot.picture.suffix}", shot.picture.read_bytes()


def _front(sheet: ExportBoard, name: str, options: ExportOptions) -> tuple[str, bytes]:
    """Return the picture that shops and shelves show, which takes pixels; of a drawing as many as they ask for."""
    first = sheet.shots[0]
    if name.endswith(".svg"):
        box = box_of(options) or _SHELF
        return f"{first.name}.png", as_png(fitted(first, box, drawn_as_vectors(first)))
    return name, first.picture.read_bytes() if options.size is None else as_png(
        fitted(first, box_of(options) or _SHELF)
    )


def _html(title: str, language: str, size: tuple[int, int], body: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" '
        f'lang="{language}" xml:lang="{language}"><head><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width={size[0]}, height={size[1]}"/>'
        f'<link rel="stylesheet" type="text/css" href="style.css"/></head><body>{body}</body></html>\n'
    )


def _cover(sheet: ExportBoard, image: str, options: ExportOptions, foot: int) -> str:
    alt = f"{sheet.title}: {_described(sheet.shots[0])}"
    by = f'<p dir="auto">{escape(options.author)}</p>' if options.author else ""
    body = (
        f'<section epub:type="cover"><img src="{escape(image)}" alt="{escape(alt)}" role="doc-cover"/>'
        f'<h1 dir="auto">{escape(sheet.title)}</h1>{by}</section>'
    )
    return _html(sheet.title, options.language, (sheet.width, sheet.height + foot), body)


def _page(sheet: ExportBoard, shot: ExportFrame, name: str, language: str, foot: int) -> str:
    words = _LINE.join(shot.said)
    size, fitting = _fitted(words, sheet.width, foot)
    smaller = f' style="font-size: {size}px; padding: {size // 2}px {size}px"' if size < _points(foot) else ""
    number = f'<span id="p{shot.number}" epub:type="pagebreak" role="doc-pagebreak" aria-label="{shot.number}"></span>'
    image = f'<img src="{escape(name)}" alt="{escape(_described(shot))}"/>'
    told = f'<p dir="auto"{smaller}>{escape(fitting).replace(_LINE, "<br/>")}</p>'
    body = f'<section epub:type="bodymatter">{number}{image}{told}</section>'
    return _html(f"{sheet.title}, {shot.number}", language, (sheet.width, sheet.height + foot), body)


def _described(shot: ExportFrame) -> str:
    """Return what is to be seen, for those who do not see it: what the frame was drawn from, where that is no more than
    a few sentences, else its caption."""
    return shot.prompt if 0 < len(shot.prompt) <= _LONGEST_ALT else shot.caption


def _points(foot: int) -> int:
    """The size of a page's words in pixels, where they are few."""
    return max(14, foot // 6)


def _fitted(words: str, width: int, foot: int) -> tuple[int, str]:
    """Return the size of words in pixels, smaller where they are many, and the words as far as even the smallest fit.

    The reader's font is not known here, so that a letter counts as wide as those of wide fonts are on average.
    """

    def room(size: int) -> float:
        lines = max(1, int((foot - size) / (1.25 * size)) - words.count(_LINE))  # what is spoken begins a line
        return lines * max(1.0, width / size - 2)

    taken = [_IDEOGRAPH if has_no_blanks(letter) else _LETTER for letter in words]
    size = _points(foot)
    while size > _SMALLEST and sum(taken) > room(size):
        size -= 1
    if sum(taken) <= room(size):
        return size, words
    fits = sum(1 for upto in accumulate(taken) if upto <= room(size) - 1)
    return size, f"{words[:fits].rstrip()}\u2026"


def _style(width: int, height: int, foot: int) -> str:
    size = _points(foot)
    return (
        f"html, body {{ margin: 0; width: {width}px; height: {height + foot}px; background: #fff; }}\n"
        f"img {{ display: block; width: {width}px; height: {height}px; object-fit: contain; }}\n"
        f"p, h1 {{ margin: 0; padding: {size // 2}px {size}px; font: {size}px/1.25 serif; text-align: center; }}\n"
        f"h1 {{ font-size: {2 * size}px; }}\n"
    )


def _nav(sheet: ExportBoard, language: str) -> str:
    """Return the table of contents, the list of pages, and where the cover and the story begin."""

    def row(shot: ExportFrame, words: str, anchor: str = "") -> str:
        return f'<li><a href="page{shot.number:03d}.xhtml{anchor}">{escape(words)}</a></li>'

    rows = "".join(row(shot, shot.caption or shot.mark) for shot in sheet.shots)
    pages = "".join(row(shot, str(shot.number), f"#p{shot.number}") for shot in sheet.shots)
    first = f'<li><a epub:type="bodymatter" href="page{sheet.shots[0].number:03d}.xhtml">Start</a></li>'
    body = (
        f'<nav epub:type="toc" role="doc-toc" aria-label="Contents"><h1>{escape(sheet.title)}</h1><ol>{rows}</ol></nav>'
        f'<nav epub:type="page-list" role="doc-pagelist" aria-label="Pages" hidden=""><ol>{pages}</ol></nav>'
        '<nav epub:type="landmarks" aria-label="Landmarks" hidden=""><ol>'
        f'<li><a epub:type="cover" href="cover.xhtml">Cover</a></li>{first}</ol></nav>'
    )
    return _html(sheet.title, language, (sheet.width, sheet.height), body)


_ACCESS = (
    ("schema:accessMode", "visual"), ("schema:accessMode", "textual"),
    ("schema:accessModeSufficient", "textual"), ("schema:accessModeSufficient", "visual,textual"),
    ("schema:accessibilityFeature", "alternativeText"), ("schema:accessibilityFeature", "readingOrder"),
    ("schema:accessibilityFeature", "tableOfContents"), ("schema:accessibilityFeature", "pageNavigation"),
    ("schema:accessibilityFeature", "structuralNavigation"),
    ("schema:accessibilityHazard", "none"),
    ("schema:accessibilitySummary", "Every page has a picture with a description, and the words of the story below it. "
     "Nothing flashes, moves or sounds."),
    ("pageBreakSource", "none"),
)  # fmt: skip
"""What EPUB Accessibility 1.1 has a book say of itself. Conformance is its publisher's to claim."""


def _package(
    sheet: ExportBoard, images: Mapping[int, tuple[str, bytes]], front: str, options: ExportOptions, pages: list[str]
) -> str:
    """Return the package document: metadata, every file, and the order of reading."""
    identifier = uuid.uuid5(uuid.NAMESPACE_OID, "".join(shot.sha256 for shot in sheet.shots) + sheet.title)
    own = f"urn:isbn:{options.isbn}" if options.isbn else f"urn:uuid:{identifier}"
    items = ['<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>']
    items.append('<item id="style" href="style.css" media-type="text/css"/>')
    items += [f'<item id="{page}" href="{page}.xhtml" media-type="application/xhtml+xml"/>' for page in pages]
    names = {f"image{number:03d}": name for number, (name, _) in images.items()}
    for item, name in {**names, **({} if front in names.values() else {"front": front})}.items():
        cover = ' properties="cover-image"' if name == front else ""
        kind = _TYPES.get(Path(name).suffix.lower(), "image/png")
        items.append(f'<item id="{item}" href="{escape(name)}" media-type="{kind}"{cover}/>')
    spine = "".join(f'<itemref idref="{page}"/>' for page in pages)
    bridges = " ".join(str(shot.number) for shot in sheet.shots if shot.kind == "bridge")
    dated = options.date if _DAY.fullmatch(options.date) else ""
    known = {"creator": options.author, "publisher": options.publisher, "date": dated}
    known["description"] = f"Inserted frames: {bridges}" if bridges else ""
    told = "".join(f"<dc:{name}>{escape(value)}</dc:{name}>" for name, value in known.items() if value)
    access = "".join(f'<meta property="{name}">{escape(value)}</meta>' for name, value in _ACCESS)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" '
        f'xml:lang="{escape(options.language)}">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="id">{own}</dc:identifier><dc:title>{escape(sheet.title)}</dc:title>'
        f"<dc:language>{escape(options.language)}</dc:language>{told}"
        f'<meta property="dcterms:modified">{_MODIFIED}</meta>'
        '<meta property="rendition:layout">pre-paginated</meta><meta property="rendition:spread">auto</meta>'
        f"{access}</metadata><manifest>{''.join(items)}</manifest><spine>{spine}</spine></package>\n"
    )
