"""The drawn training set: pictures in memory-mapped files at the reader's two sizes, labels and windows beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.jsonio import write_json
from katha_sketch.drawing import rasterise
from katha_sketch.drawing.scenes import Scene, frame_scene
from katha_sketch.drawing.style import LOOKS, in_look
from katha_sketch.reader.network import FINER, HEIGHT, WIDTH, coarse, fit_into, to_input
from training.reader.labels import FrameLabels, Item, label_frame
from training.reader.negatives import TEST_PHOTOS, TRAIN_PHOTOS, jpeg, negative, photographs, softened
from training.reader.scenes import pose_set, random_scene, told_scenes
from training.reader.windows import Windows, cut_windows, load_windows, save_windows

__all__ = ["TRAIN", "Drawn", "Sample", "draw_set", "sample", "told_file"]

TRAIN = "train"
_SIZES = ((768, 512), (768, 512), (768, 512), (512, 512), (640, 360), (1024, 768))
_SHARE_NEGATIVE = 0.07
_SHARE_STYLED = 0.08
_SHARE_LOOSE = 0.15
_SHARE_FULL = 0.75
_SHARE_WORN = 0.3
_SHARE_TOLD = {TRAIN: 0.5, "calibration": 0.5, "stories": 1.0}
"""How many of a split's frames are moments of stories."""
_STEP = 100


@dataclass(frozen=True)
class Sample:
    """One input of shape (FINER * HEIGHT, FINER * WIDTH, 3) and its labels; None for a picture that is no sketch."""

    pixels: NDArray[np.uint8]
    labels: FrameLabels | None


def _worn(pixels: NDArray[np.uint8], rng: Random) -> NDArray[np.uint8]:
    """Saved as JPEG, or made smaller and larger again: what happens to pictures on their way."""
    if rng.random() < 0.5:
        return jpeg(pixels, rng.randrange(50, 96))
    return softened(pixels, rng.uniform(0.38, 0.9))


def told_file(folder: Path, split: str) -> Path:
    """Where the scenes of stories are kept that a split draws beside random ones."""
    return folder / f"{split}.told"


def sample(seed: int, split: str, told: Sequence[Scene] = ()) -> Sample:
    """The picture number `seed` of a split, now and then a scene of `told`; the same call draws the same picture."""
    rng = Random(f"{split}/{seed}")
    training = split == TRAIN
    width, height = rng.choice(_SIZES)
    if told and rng.random() < _SHARE_TOLD[split]:
        scene = rng.choice(told)
    else:
        scene = random_scene(rng, training and rng.random() < _SHARE_FULL)
    frame = frame_scene(scene, width, height, rng.randrange(2**32), loose=rng.random() < _SHARE_LOOSE)
    style = rng.choice(sorted(LOOKS)) if rng.random() < _SHARE_STYLED else "colour"
    fit = fit_into(width, height)
    scale = min(1.0, FINER * fit.scale)
    png = rasterise(in_look(frame.svg, style), round(width * scale), round(height * scale))
    pixels = to_input(png)
    if rng.random() >= _SHARE_NEGATIVE:
        if training and rng.random() < _SHARE_WORN:
            pixels = _worn(pixels, rng)
        return Sample(pixels, label_frame(scene, frame, width, height, fit))
    photos = photographs(TRAIN_PHOTOS if training else TEST_PHOTOS)
    other = negative(rng.randrange(2**32), coarse(pixels), photos)
    return Sample(other.repeat(FINER, axis=0).repeat(FINER, axis=1), None)


@dataclass(frozen=True)
class Drawn:
    """A drawn set: N pictures, uint8, memory-mapped, and N labels. Of a training set (N, HEIGHT, WIDTH, 3), with the
    `windows` cut from the finer pictures; of the others (N, FINER * HEIGHT, FINER * WIDTH, 3)."""

    pixels: NDArray[np.uint8]
    labels: list[FrameLabels | None]
    windows: Windows | None = None


def _shape(split: str, count: int) -> tuple[int, int, int, int]:
    times = 1 if split == TRAIN else FINER
    return (count, times * HEIGHT, times * WIDTH, 3)


def _chunk(folder: str, split: str, key: str, start: int, stop: int) -> None:
    """Draw the pictures `start` to `stop`, unless they were drawn before under the same `key`; their labels are written
    last, so that drawing that was broken off goes on where it was."""
    rows_file = _rows_file(Path(folder), split, start)
    known: dict[str, Any] = json.loads(rows_file.read_text()) if rows_file.exists() else {"key": None}
    if known["key"] == key and len(known["labels"]) >= stop - start:
        return
    shape = _shape(split, stop - start)
    offset = start * int(np.prod(shape[1:]))
    pixels = np.memmap(Path(folder) / f"{split}.u8", dtype=np.uint8, mode="r+", offset=offset, shape=shape)
    rows: list[dict[str, Any] | None] = []
    found: list[Windows] = []
    told = told_scenes(told_file(Path(folder), split))
    for index in range(start, stop):
        one = sample(index, split, told)
        pixels[index - start] = coarse(one.pixels) if split == TRAIN else one.pixels
        if split == TRAIN and one.labels is not None:
            found.append(cut_windows(one.pixels, one.labels))
        rows.append(None if one.labels is None else asdict(one.labels))
    pixels.flush()
    if split == TRAIN:
        save_windows(Path(folder), start, found)
    write_json(rows_file, {"key": key, "labels": rows})


def _rows_file(folder: Path, split: str, start: int) -> Path:
    return folder / f"{split}-{start:06}.json"


def draw_set(folder: Path, split: str, count: int, key: str, workers: int = 2) -> Drawn:
    """Draw `count` pictures of `split` into `folder`, but for those that were drawn before under the same `key`."""
    folder.mkdir(parents=True, exist_ok=True)
    picture_file, shape = folder / f"{split}.u8", _shape(split, count)
    bounds = [(start, min(start + _STEP, count)) for start in range(0, count, _STEP)]
    with picture_file.open("ab") as held:
        held.truncate(max(held.tell(), int(np.prod(shape))))
    _each_of(partial(_chunk, str(folder), split, key), bounds, workers)
    pixels = np.memmap(picture_file, dtype=np.uint8, mode="r", shape=shape)
    windows = None
    if split == TRAIN:
        pose_set(folder, pixels, key, workers)
        windows = load_windows(folder, range(0, count, _STEP))
    rows = [row for start, _ in bounds for row in json.loads(_rows_file(folder, split, start).read_text())["labels"]]
    return Drawn(pixels, [_labels(row) for row in rows[:count]], windows)


def _each_of(work: Callable[[int, int], None], bounds: Sequence[tuple[int, int]], workers: int) -> None:
    if workers <= 1:
        for start, stop in bounds:
            work(start, stop)
        return
    with ProcessPoolExecutor(workers) as pool:
        for job in [pool.submit(work, start, stop) for start, stop in bounds]:
            job.result()


def _labels(row: dict[str, Any] | None) -> FrameLabels | None:
    if row is None:
        return None
    items = (Item(**{**item, "window": tuple(item["window"])}) for item in row["items"])
    return FrameLabels(tuple(items), row["setting"], row["time"])
