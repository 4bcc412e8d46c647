"""The pages of a PDF as pictures; of one that katha made, its frames with their words.

A PDF comes from anywhere, and what reads it is a library in C: it works in a process of its own, within limits of
memory and time, so that a damaged or hostile file is one sentence and nothing else. `python -m katha.renderers.pages`
is that process: it prints one JSON object.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.errors import InputFileError, MissingExtraError, first_line
from katha.installing import install_line
from katha.jsonio import MOST_JSON, loads, read_bytes
from katha.pictures import MAX_BYTES, MAX_PIXELS, as_png, decode
from katha.protocols import PanelWords
from katha.renderers.exported import LONG_SIDE, told_words

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

FRAMES = "KathaFrames"
"""Under this key a PDF of katha's says which frames it holds, where they lie and what is said of them."""
_LEAST_SHARE = 0.01
"""How wide and high a frame is at least, of its page."""
_LINE = 1.0
"""Points of the line around a frame that lie on it."""
_MOST_PAGES = 500
_MOST_OBJECTS = 100_000
_THINNEST = 10
# A PDF is read in a process of its own: a page that takes longer, or more memory, is a trap.
_SECONDS = 60
_MEMORY = 4 * 2**30
_HINT = "Export its pages as pictures, 1.png and on, and give their folder."


class Pages:
    """The pages of one PDF, each a frame; of one that katha made, the frames on them."""

    single = True

    def __init__(self, path: Path) -> None:
        """Count the pages and look at their sizes; none is drawn yet.

        Raises:
            InputFileError: it is not a PDF that can be read, is locked, or a page or a picture in it is too large.
            MissingExtraError: pypdfium2 is not installed.
        """
        self.place = path
        data = read_bytes(path, limit=MAX_BYTES)
        if b"%PDF-" not in data[:1024]:
            raise InputFileError(f"{str(path)!r} is not a PDF.", hint="Give a PDF, a .storyboarder file or a folder.")
        told = self._child([])
        self._frames = _frames_of(told.get("frames"), repr(str(path)), int(told["count"]))
        self._count = len(self._frames) or int(told["count"])
        self.worded = () if self._frames else tuple(int(page) for page in told["worded"])

    def __len__(self) -> int:
        return self._count

    @property
    def words(self) -> tuple[PanelWords, ...]:
        """Return what is said of each frame, where katha made the pages; nothing for any other PDF."""
        return tuple(frame.words for frame in self._frames)

    def pngs(self, places: Sequence[int], story: str) -> Iterator[bytes]:
        """Yield the pages at `places` (from 0) as PNG; `story` is named in errors."""
        with tempfile.TemporaryDirectory(prefix="katha-pages-") as folder:
            self._child([folder, *(self._asked(place) for place in places)])
            for place in places:
                name = f"Page {place + 1} of {story} ({str(self.place)!r})"
                yield as_png(decode(read_bytes(Path(folder) / f"{place}.png", limit=MAX_BYTES), name))

    def _asked(self, place: int) -> str:
        """Return what the process is to draw: a page, or where a frame lies on one."""
        frame = self._frames[place] if self._frames else None
        return f"{place}" if frame is None else f"{place}:{frame.page - 1}:{','.join(map(str, frame.box))}"

    def _child(self, given: Sequence[str]) -> dict[str, Any]:
        command = [sys.executable, "-I", "-m", "katha.renderers.pages", str(self.place.resolve()), *given]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as error:
            raise InputFileError(f"{str(self.place)!r} takes more than {_SECONDS} s to read.", hint=_HINT) from error
        told: dict[str, Any] = {}
        with suppress(ValueError):
            told = json.loads(done.stdout)
        if told.get("missing"):
            hint = f"Install it: {install_line('export')}."
            raise MissingExtraError("A PDF needs 'pypdfium2', which is not installed.", hint=hint)
        if done.returncode or "count" not in told:
            why = told.get("error") or "reading it broke off"
            raise InputFileError(f"{str(self.place)!r} cannot be read: {why}.", hint=_HINT)
        return told


@dataclass(frozen=True)
class _PlacedFrame:
    """A frame that katha laid on a page: its number from 1, and its box as shares of the page from the upper left."""

    words: PanelWords
    page: int
    box: tuple[float, float, float, float]


def _frames_of(told: object, where: str, pages: int) -> list[_PlacedFrame]:
    """Return the frames of a PDF that katha made, from what it says of itself; none for what does not say it."""
    if not isinstance(told, str) or not told or len(told) > MOST_JSON:
        return []
    try:
        value = loads(told)
    except ValueError:
        return []
    rows = value.get("frames") if isinstance(value, dict) else None
    found = []
    for at, row in enumerate(rows if isinstance(rows, list) else (), 1):
        page, box = (row.get("page"), row.get("box")) if isinstance(row, dict) else (None, None)
        sides = [float(side) for side in box if isinstance(side, (int, float))] if isinstance(box, list) else []
        inside = len(sides) == 4 and all(-1 <= side <= 2 for side in sides) and min(sides[2:]) > _LEAST_SHARE
        if not isinstance(page, int) or not 1 <= page <= pages or not inside:
            return []
        found.append(_PlacedFrame(told_words(row, f"{where}, frame {at}"), page, (*sides,)))  # type: ignore[arg-type]
    return found


# What follows runs in the process that reads the file.


def _look(document: PdfDocument) -> list[int]:
    """Return the numbers of the pages that hold words.

    Raises:
        ValueError: a page or a picture in it is too large, or there are none or too many.
    """
    count = len(document)
    if not 0 < count <= _MOST_PAGES:
        raise ValueError(f"it has {count} pages; 1 to {_MOST_PAGES} are read")
    worded: list[int] = []
    for at in range(count):
        page = document[at]
        sides = page.get_size()
        if not all(math.isfinite(side) and side > 0 for side in sides) or max(sides) > _THINNEST * min(sides):
            raise ValueError(f"page {at + 1} is {sides[0]:g} x {sides[1]:g} points, which is not a page")
        _require_small(page, at + 1)
        if page.get_textpage().count_chars() > 0:
            worded.append(at + 1)
        page.close()
    return worded


def _require_small(page: PdfPage, number: int) -> None:
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    for seen, item in enumerate(page.get_objects()):
        if seen >= _MOST_OBJECTS:
            raise ValueError(f"page {number} holds more than {_MOST_OBJECTS:,} things")
        if item.type == FPDF_PAGEOBJ_IMAGE:
            width, height = item.get_px_size()
            if width * height > MAX_PIXELS:
                raise ValueError(
                    f"a picture on page {number} has {width} x {height} pixels; at most {MAX_PIXELS:,} are read"
                )


def _draw(document: PdfDocument, folder: Path, asked: Sequence[str]) -> None:
    for one in asked:
        place, _, frame = one.partition(":")
        number, _, box = frame.partition(":")
        page = document[int(number or place)]
        width, height = page.get_size()
        crop, longest = (0.0, 0.0, 0.0, 0.0), max(width, height)
        if box:
            x, y, wide, tall = (float(side) for side in box.split(","))
            # The line around a frame is not its own.
            left, top = max(0.0, x * width) + _LINE, max(0.0, y * height) + _LINE
            right, bottom = (max(0.0, (1 - x - wide) * width) + _LINE, max(0.0, (1 - y - tall) * height) + _LINE)
            crop = (left, bottom, right, top)
            longest = max(width - left - right, height - top - bottom)
        picture = page.render(scale=LONG_SIDE / longest, crop=crop, may_draw_forms=False)
        picture.to_pil().convert("RGB").save(folder / f"{place}.png")
        page.close()


def _limit() -> None:
    """Take no more memory and time than a page needs, where the system can hold a process to that."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))


def _main(given: Sequence[str]) -> int:
    """Look at a PDF and, with a folder and places, draw its pages into it."""
    _limit()
    told: dict[str, Any]
    try:
        from pypdfium2 import PdfDocument

        document = PdfDocument(given[0])
        worded = _look(document)
        if len(given) > 1:
            _draw(document, Path(given[1]), given[2:])
        told = {"count": len(document), "worded": worded, "frames": document.get_metadata_value(FRAMES)}
    except ImportError:
        told = {"missing": True}
    except Exception as error:  # whatever a library raises over a file from anywhere is a sentence
        told = {"error": first_line(error)[:200].rstrip(".")}
    sys.stdout.write(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
