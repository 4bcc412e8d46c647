"""Books for readers: a comic book archive and a fixed-layout EPUB 3, the same bytes each time."""

from __future__ import annotations

import uuid
import zipfile
from collections.abc import Iterable, Mapping
from html import escape
from itertools import accumulate
from pathlib import Path
from xml.etree import ElementTree

from katha.app.exports.board import ExportOptions, Sheet, Shot
from katha.app.exports.fonts import has_no_blanks
from katha.app.exports.vectors import drawn_as_vectors

_SMALLEST, _LETTER, _IDEOGRAPH = 8, 0.6, 1.05
"""The smallest size of words in pixels, and how wide letters are at most on average, in sizes."""
_LINE = "\n"
_DATE = (1980, 1, 1, 0, 0, 0)
_MODIFIED = "1980-01-01T00:00:00Z"
_CONTAINER = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>\n'
)
_TYPES = {
    ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp",
}  # fmt: skip


def write_zip(target: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a zip of stored files in this order, without times of the day."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files:
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)


def write_cbz(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write the frames in order with `ComicInfo.xml` (bridges are bookmarked)."""
    info = ElementTree.Element("ComicInfo")
    for name, value in (("Title", sheet.title), ("Summary", sheet.text), ("PageCount", str(len(sheet.shots)))):
        ElementTree.SubElement(info, name).text = value
    pages = ElementTree.SubElement(info, "Pages")
    for at, shot in enumerate(sheet.shots):
        told = {"Image": str(at), "Type": "FrontCover" if at == 0 else "Story"}
        if shot.kind != "scene":
            told["Bookmark"] = shot.kind
        ElementTree.SubElement(pages, "Page", told)
    text = ElementTree.tostring(info, encoding="utf-8", xml_declaration=True)
    frames = ((f"{shot.name}{shot.picture.suffix}", shot.picture.read_bytes()) for shot in sheet.shots)
    write_zip(target, [("ComicInfo.xml", text), *frames])


def write_epub(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write a fixed-layout EPUB 3: a cover, then a frame a page with its words below; drawings stay vectors."""
    width, height = sheet.width, sheet.height
    foot = max(120, round(height * 0.22))
    shots = list(sheet.shots)
    images = {shot.number: _image(shot) for shot in shots}
    files: list[tuple[str, bytes]] = [
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", _CONTAINER.encode()),
    ]
    body = {
        "cover": _cover(sheet, images[shots[0].number][0], options.language, foot),
        **{
            f"page{shot.number:03d}": _page(sheet, shot, images[shot.number][0], options.language, foot)
            for shot in shots
        },
    }
    files.append(("OEBPS/content.opf", _package(sheet, images, options.language, list(body)).encode("utf-8")))
    files.append(("OEBPS/nav.xhtml", _nav(sheet, options.language).encode("utf-8")))
    files.append(("OEBPS/style.css", _style(width, height, foot).encode("utf-8")))
    files += [(f"OEBPS/{name}.xhtml", text.encode("utf-8")) for name, text in body.items()]
    files += [(f"OEBPS/{name}", data) for name, data in dict([*images.values(), _front(sheet)]).items()]
    write_zip(target, files)


def _image(shot: Shot) -> tuple[str, bytes]:
    """Return the name and bytes of a frame's picture: its drawing where it has one."""
    drawing = drawn_as_vectors(shot)
    if drawing is not None:
        return f"{shot.name}.svg", drawing.encode("utf-8")
    return f"{shot.name}{shot.picture.suffix}", shot.picture.read_bytes()


def _front(sheet: Sheet) -> tuple[str, bytes]:
    """Return the picture that shops and shelves show, which takes pixels."""
    first = sheet.shots[0]
    return f"{first.name}{first.picture.suffix}", first.picture.read_bytes()


def _html(title: str, language: str, size: tuple[int, int], body: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" '
        f'lang="{language}" xml:lang="{language}"><head><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width={size[0]}, height={size[1]}"/>'
        f'<link rel="stylesheet" type="text/css" href="style.css"/></head><body>{body}</body></html>\n'
    )


def _cover(sheet: Sheet, image: str, language: str, foot: int) -> str:
    body = f'<img src="{escape(image)}" alt=""/><h1 dir="auto">{escape(sheet.title)}</h1>'
    return _html(sheet.title, language, (sheet.width, sheet.height + foot), body)


def _page(sheet: Sheet, shot: Shot, name: str, language: str, foot: int) -> str:
    words = _LINE.join(shot.said)
    alt = shot.caption or shot.prompt
    size, fitting = _fitted(words, sheet.width, foot)
    smaller = f' style="font-size: {size}px; padding: {size // 2}px {size}px"' if size < _points(foot) else ""
    image = f'<img src="{escape(name)}" alt="{escape(alt)}"/>'
    body = f'{image}<p dir="auto"{smaller}>{escape(fitting).replace(_LINE, "<br/>")}</p>'
    return _html(f"{sheet.title}, {shot.number}", language, (sheet.width, sheet.height + foot), body)


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


def _nav(sheet: Sheet, language: str) -> str:
    rows = "".join(
        f'<li><a href="page{shot.number:03d}.xhtml">{escape(shot.caption or shot.mark)}</a></li>'
        for shot in sheet.shots
    )
    body = f'<nav epub:type="toc"><h1>{escape(sheet.title)}</h1><ol>{rows}</ol></nav>'
    return _html(sheet.title, language, (sheet.width, sheet.height), body)


def _package(sheet: Sheet, images: Mapping[int, tuple[str, bytes]], language: str, pages: list[str]) -> str:
    """Return the package document: metadata, every file, and the order of reading."""
    identifier = uuid.uuid5(uuid.NAMESPACE_OID, "".join(shot.sha256 for shot in sheet.shots) + sheet.title)
    items = ['<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>']
    items.append('<item id="style" href="style.css" media-type="text/css"/>')
    items += [f'<item id="{page}" href="{page}.xhtml" media-type="application/xhtml+xml"/>' for page in pages]
    front, _ = _front(sheet)
    names = {f"image{number:03d}": name for number, (name, _) in images.items()}
    for item, name in {**names, **({} if front in names.values() else {"front": front})}.items():
        cover = ' properties="cover-image"' if name == front else ""
        kind = _TYPES.get(Path(name).suffix.lower(), "image/png")
        items.append(f'<item id="{item}" href="{escape(name)}" media-type="{kind}"{cover}/>')
    spine = "".join(f'<itemref idref="{page}"/>' for page in pages)
    bridges = " ".join(str(shot.number) for shot in sheet.shots if shot.kind == "bridge")
    noted = f"<dc:description>Inserted frames: {bridges}</dc:description>" if bridges else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="id">urn:uuid:{identifier}</dc:identifier><dc:title>{escape(sheet.title)}</dc:title>'
        f"<dc:language>{escape(language)}</dc:language>{noted}"
        f'<meta property="dcterms:modified">{_MODIFIED}</meta>'
        '<meta property="rendition:layout">pre-paginated</meta><meta property="rendition:spread">auto</meta>'
        f"</metadata><manifest>{''.join(items)}</manifest><spine>{spine}</spine></package>\n"
    )
