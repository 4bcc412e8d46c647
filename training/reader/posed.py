"""Pictograms by themselves before pieces of drawn frames: many cheap views of each, beside those in the frames."""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from katha.renderers.sketch import rasterise
from katha.renderers.sketch.pictograms import draw_pictogram
from katha.renderers.sketch.svg import el, group
from training.reader.scenes import drawn_pictograms
from training.reader.windows import CLOSE, ROOM

__all__ = ["pose_set"]

Bytes = NDArray[np.uint8]
_REACH = 1.25
_STEP = 40
_SHARE_TIPPED = 0.12
_EACH = 24
"""The most windows of each pictogram by itself."""


def _posed(rng: Random, name: str, frames: Bytes) -> Bytes:
    """One window (with room around it) on a pictogram of a random size before a piece of a random frame."""
    turn = rng.uniform(-70, 70) if rng.random() < _SHARE_TIPPED else 0.0
    drawn = draw_pictogram(
        name, rng.choice((13.0, 20.0, 30.0, 45.0, 65.0, 100.0)), facing=rng.choice((1, -1)), turn=turn
    )
    x0, y0, x1, y1 = drawn.bbox
    half = ROOM * _REACH * max(x1 - x0, y1 - y0) / 2
    u, v = (x0 + x1) / 2 - half, (y0 + y1) / 2 - half
    side = round(ROOM * _REACH * 2 ** rng.uniform(4.2, 7.2))
    svg = el(
        "svg",
        group(drawn.svg),
        xmlns="http://www.w3.org/2000/svg",
        width=side,
        height=side,
        viewBox=f"{u:.2f} {v:.2f} {2 * half:.2f} {2 * half:.2f}",
    )
    shape = Image.open(io.BytesIO(rasterise(svg, side, side))).convert("RGBA")
    frame = frames[rng.randrange(len(frames))]
    piece = min(max(8, side // 2), frame.shape[0] - 1)
    top, left = rng.randrange(frame.shape[0] - piece), rng.randrange(frame.shape[1] - piece)
    canvas = Image.fromarray(np.ascontiguousarray(frame[top : top + piece, left : left + piece])).resize((side, side))
    canvas.paste(shape, (0, 0), shape)
    return np.asarray(canvas.resize((CLOSE, CLOSE), Image.Resampling.BILINEAR))


def _chunk(frames: NDArray[np.uint8], names: Sequence[str], each: int) -> Bytes:
    return np.stack([_posed(Random(f"posed/{name}/{nth}"), name, frames) for name in names for nth in range(each)])


def pose_set(folder: Path, frames: Bytes, key: str, workers: int) -> None:
    """Save windows of every pictogram by itself in `folder`, with their names, before pieces of `frames`, unless they
    were made before under the same `key`."""
    names, each = drawn_pictograms(), max(1, min(_EACH, len(frames) // 100))
    made = f"{key}/{each}"
    if (folder / "posed.key").exists() and (folder / "posed.key").read_text() == made:
        return
    behind = np.stack([frames[nth] for nth in range(min(len(frames), 200))])
    parts = [names[start : start + _STEP] for start in range(0, len(names), _STEP)]
    if workers <= 1:
        windows = [_chunk(behind, part, each) for part in parts]
    else:
        with ProcessPoolExecutor(workers) as pool:
            jobs = [pool.submit(_chunk, behind, part, each) for part in parts]
            windows = [job.result() for job in jobs]
    np.save(folder / "posed.npy", np.concatenate(windows))
    (folder / "posed.txt").write_text("\n".join(name for name in names for _ in range(each)))
    (folder / "posed.key").write_text(made)
