"""Paper: the pages of a PDF in points, and of a picture that is printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from katha.app.exports.board import ExportOptions
from katha.errors import UsageError

MM = 72 / 25.4
"""Points of a millimetre."""
_PAGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"a3": (297, 420), "a4": (210, 297), "a5": (148, 210), "letter": (215.9, 279.4), "square": (210, 210)}
)
_CUSTOM = re.compile(r"(\d{2,4}(?:\.\d+)?)x(\d{2,4}(?:\.\d+)?)")
_SMALLEST, _LARGEST = 50, 1_500


def page_size(options: ExportOptions, *, wide: bool = False) -> tuple[float, float]:
    """Return the page's width and height in points; wide: the frames are wider than high, and a page of a named size
    with a single one lies on its side; a list's does always.

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
            f"--page {options.page!r} is not a page size.",
            hint=f"Known: {', '.join(_PAGES)}, or WIDTHxHEIGHT in millimetres from {_SMALLEST} to {_LARGEST}.",
        )
    width, height = (side * MM for side in size)
    single = options.layout == "book" or (options.layout == "storyboard" and options.per_page == 1)
    lies = (wide and single) or options.layout == "list"
    lies = lies and found is None and width < height and not options.portrait
    return (height, width) if options.landscape or lies else (width, height)
