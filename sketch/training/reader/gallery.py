"""The gallery: what each pictogram looks like to the namer, from its drawing alone. No training.

Each is drawn at two sizes, to both sides if it looks to one, on paper and on pieces of two places, and what the namer
makes of these is averaged. `python -m training.reader.gallery` does that anew for the reader that ships, after words or
drawings have changed; it takes a minute.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from katha.jsonio import write_bytes_atomic
from katha_sketch.drawing import rasterise
from katha_sketch.drawing.pictograms import draw_pictogram, pictogram
from katha_sketch.drawing.places import draw_place
from katha_sketch.drawing.style import PAPER
from katha_sketch.drawing.svg import el, group
from katha_sketch.reader.network import CLOSE_SIDE, Gallery, Reader
from training.reader.scenes import drawn_pictograms

__all__ = ["gallery_bytes", "make_gallery", "views"]

_SIZES = ((26.0, 44), (58.0, 110))
"""Heights on the stage, with the pixels of the window's side."""
_REACH = 1.25
_BEHIND = ("kitchen", "street", "forest", "bedroom", "park", "beach", "shop")


@cache
def _backgrounds() -> tuple[Image.Image, ...]:
    places = [draw_place(name, "day", None, 672, 448, 1) for name in _BEHIND]
    drawn = [
        el("svg", place.back, xmlns="http://www.w3.org/2000/svg", width=672, height=448, viewBox="0 0 672 448")
        for place in places
    ]
    return tuple(Image.open(io.BytesIO(rasterise(svg, 672, 448))).convert("RGB") for svg in drawn)


def views(name: str, facing: int) -> Iterator[NDArray[np.float32]]:
    """Yield windows (3, side, side) in 0..1 of one pictogram, as they would be cut from a frame."""
    rng = Random(f"gallery/{name}/{facing}")
    for height, side in _SIZES:
        drawn = draw_pictogram(name, height, facing=facing)
        x0, y0, x1, y1 = drawn.bbox
        half = _REACH * max(x1 - x0, y1 - y0) / 2
        u, v = (x0 + x1) / 2 - half, (y0 + y1) / 2 - half
        box = f"{u:.2f} {v:.2f} {2 * half:.2f} {2 * half:.2f}"
        svg = el("svg", group(drawn.svg), xmlns="http://www.w3.org/2000/svg", width=side, height=side, viewBox=box)
        shape = Image.open(io.BytesIO(rasterise(svg, side, side))).convert("RGBA")
        for behind in (None, *rng.sample(_backgrounds(), 2)):
            canvas = Image.new("RGB", (side, side), PAPER)
            if behind is not None:
                x, y = rng.randrange(behind.width - side), rng.randrange(behind.height - side)
                canvas.paste(behind.crop((x, y, x + side, y + side)))
            canvas.paste(shape, (0, 0), shape)
            seen = canvas.resize((CLOSE_SIDE, CLOSE_SIDE), Image.Resampling.BILINEAR)
            yield (np.asarray(seen).transpose(2, 0, 1) / 255).astype(np.float32)


def make_gallery(reader: Reader, names: Sequence[str] | None = None) -> Gallery:
    """The gallery of `names` (every pictogram that is drawn as such) to this reader's namer."""
    rows: list[str] = []
    vectors: list[NDArray[np.float32]] = []
    for name in drawn_pictograms() if names is None else names:
        for facing in (1,) if pictogram(name).faces == "front" else (1, -1):
            seen = reader.vectors(np.stack(list(views(name, facing))))
            mean = (seen / np.linalg.norm(seen, axis=1, keepdims=True)).mean(axis=0)
            rows.append(name)
            vectors.append(mean / np.linalg.norm(mean))
    return Gallery(tuple(rows), np.stack(vectors).astype(np.float16).astype(np.float32))


def gallery_bytes(gallery: Gallery) -> bytes:
    """The gallery as the file that ships: the same bytes for the same gallery."""
    out = io.BytesIO()
    np.savez_compressed(out, names=np.array(gallery.names), vectors=gallery.vectors.astype(np.float16))
    return out.getvalue()


def main() -> None:
    """Make the gallery of the shipped reader anew."""
    from katha_sketch.reader import load_reader

    folder = Path(__file__).parents[2] / "src" / "katha_sketch" / "reader"
    write_bytes_atomic(folder / "gallery.npz", gallery_bytes(make_gallery(load_reader())))


if __name__ == "__main__":
    main()
