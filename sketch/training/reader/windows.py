"""Windows cut from training pictures, larger than the reader's by `ROOM`, so that each can be shifted and scaled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from katha_sketch.reader.network import (
    BODY_SIDE,
    CLOSE_SIDE,
    Window,
    acting_windows,
    cut,
    mark,
    window_on,
)
from training.reader.labels import FrameLabels

__all__ = ["CLOSE", "ROOM", "Windows", "cut_windows", "load_windows", "save_windows"]

ROOM = 1.4
CLOSE, _BODY = round(ROOM * CLOSE_SIDE), round(ROOM * BODY_SIDE)
Bytes = NDArray[np.uint8]
Named = tuple[str, str, str]


@dataclass(frozen=True)
class Windows:
    """n figures and m props.

    heads: (n, s, s, 3), bodies: (n, t, t, 3), props: (m, s, s, 3). marks: (n, 3), the head in its body's window (of the
    reader's size, without the room). figures: concept, action and emotion of each, "" where it does not count (the
    concept of an actor without a rig, which is no figure); things: concept of each.
    """

    heads: Sequence[Bytes]
    bodies: Sequence[Bytes]
    marks: NDArray[np.float32]
    figures: Sequence[Named]
    props: Sequence[Bytes]
    things: Sequence[str]


def cut_windows(pixels: Bytes, labels: FrameLabels) -> Windows:
    """The windows of everything in one picture that counts."""
    from PIL import Image

    picture = Image.fromarray(pixels)

    def view(window: Window, side: int) -> Bytes:
        return cut(picture, window.x, window.y, ROOM * window.half, side)

    figures = [item for item in labels.items if item.kind == "character" and item.counts]
    props = [item for item in labels.items if item.kind == "prop" and item.counts]
    acting = [item for item in props if item.action is not None]
    pairs = [(window_on("head", one.x, one.y, one.radius), window_on("body", *one.window)) for one in figures]
    pairs += [acting_windows(*item.window) for item in acting]
    heads, bodies = [head for head, _ in pairs], [body for _, body in pairs]
    return Windows(
        [view(window, CLOSE) for window in heads],
        [view(window, _BODY) for window in bodies],
        np.array([mark(head, body) for head, body in zip(heads, bodies, strict=True)], dtype=np.float32).reshape(-1, 3),
        [(item.concept, item.action or "", item.emotion or "") for item in figures]
        + [("", item.action or "", item.emotion or "") for item in acting],
        [view(window_on("prop", *item.window), CLOSE) for item in props],
        [item.concept for item in props],
    )


def save_windows(folder: Path, start: int, found: Sequence[Windows]) -> None:
    """One file for each kind of window of the chunk that begins at picture `start`."""
    for name, side in (("heads", CLOSE), ("bodies", _BODY), ("props", CLOSE)):
        windows = [window for one in found for window in getattr(one, name)]
        np.save(folder / f"{name}-{start:06}.npy", np.array(windows, dtype=np.uint8).reshape(-1, side, side, 3))
    names = [named for one in found for named in one.figures]
    things = [thing for one in found for thing in one.things]
    marks = np.concatenate([np.zeros((0, 3), np.float32), *(one.marks for one in found)])
    np.savez(folder / f"names-{start:06}.npz", figures=np.array(names), things=np.array(things), marks=marks)


def load_windows(folder: Path, starts: Iterable[int]) -> Windows:
    """Every chunk's windows, one after the other, and those of pictograms by themselves; pictures stay on the disk
    until they are looked at."""
    kept = [start for start in starts if (folder / f"names-{start:06}.npz").exists()]
    names = [np.load(folder / f"names-{start:06}.npz") for start in kept]

    def views(name: str) -> list[Bytes]:
        chunks = [np.load(folder / f"{name}-{start:06}.npy", mmap_mode="r") for start in kept]
        return [chunk[nth] for chunk in chunks for nth in range(len(chunk))]

    posed = np.load(folder / "posed.npy", mmap_mode="r") if (folder / "posed.npy").exists() else []
    alone = (folder / "posed.txt").read_text().split("\n") if len(posed) else []
    return Windows(
        views("heads"),
        views("bodies"),
        np.concatenate([one["marks"] for one in names]),
        [(str(a), str(b), str(c)) for one in names for a, b, c in one["figures"]],
        [*views("props"), *posed],
        [*(str(thing) for one in names for thing in one["things"]), *alone],
    )
