"""The drawn training set: pictures in memory-mapped files at the reader's two sizes, labels and windows beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.reader.network import FINER, HEIGHT, WIDTH, coarse, fit_into, to_input
from katha.renderers.sketch import rasterise
from katha.renderers.sketch.looks import LOOKS, in_look
from katha.renderers.sketch.scenes import frame_scene
from training.reader.labels import FrameLabels, Item, label_frame
from training.reader.negatives import TEST_PHOTOS, TRAIN_PHOTOS, jpeg, negative, photographs, softened
from training.reader.posed import pose_set
from training.reader.scenes import random_scene
from training.reader.windows import Windows, cut_windows, load_windows, save_windows

__all__ = ["TRAIN", "Drawn", "Sample", "draw_set", "sample"]

TRAIN = "train"
_SIZES = ((768, 512), (768, 512), (768, 512), (512, 512), (640, 360), (1024, 768))
_SHARE_NEGATIVE = 0.07
_SHARE_STYLED = 0.08
_SHARE_LOOSE = 0.15
_SHARE_FULL = 0.75
_SHARE_WORN = 0.3
_STEP = 100
_POSED = 16
"""The most windows of each pictogram by itself."""


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


def sample(seed: int, split: str) -> Sample:
    """The picture number `seed` of a split; the same call draws the same picture."""
    rng = Random(f"{split}/{seed}")
    training = split == TRAIN
    width, height = rng.choice(_SIZES)
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


def _chunk(folder: str, split: str, start: int, stop: int, count: int) -> list[dict[str, Any] | None]:
    pixels = np.memmap(Path(folder) / f"{split}.u8", dtype=np.uint8, mode="r+", shape=_shape(split, count))
    rows: list[dict[str, Any] | None] = []
    found: list[Windows] = []
    for index in range(start, stop):
        one = sample(index, split)
        pixels[index] = coarse(one.pixels) if split == TRAIN else one.pixels
        if split == TRAIN and one.labels is not None:
            found.append(cut_windows(one.pixels, one.labels))
        rows.append(None if one.labels is None else asdict(one.labels))
    pixels.flush()
    if found:
        save_windows(Path(folder), start, found)
    return rows


def draw_set(folder: Path, split: str, count: int, key: str, workers: int = 2) -> Drawn:
    """Draw `count` pictures of `split` into `folder`, or load them if they were drawn before under the same `key`."""
    folder.mkdir(parents=True, exist_ok=True)
    picture_file, label_file = folder / f"{split}.u8", folder / f"{split}.json"
    known = json.loads(label_file.read_text()) if label_file.exists() else {}
    if known.get("key") != key or known.get("count") != count:
        np.memmap(picture_file, dtype=np.uint8, mode="w+", shape=_shape(split, count)).flush()
        rows = list(_draw_rows(folder, split, count, workers))
        if split == TRAIN:
            pose_set(folder, np.memmap(picture_file, np.uint8, "r", shape=_shape(split, count)), _each(count), workers)
        known = {"key": key, "count": count, "labels": rows}
        label_file.write_text(json.dumps(known))
    pixels = np.memmap(picture_file, dtype=np.uint8, mode="r", shape=_shape(split, count))
    windows = load_windows(folder, range(0, count, _STEP)) if split == TRAIN else None
    return Drawn(pixels, [_labels(row) for row in known["labels"]], windows)


def _each(count: int) -> int:
    """How many windows of each pictogram by itself go with `count` frames."""
    return max(1, min(_POSED, count // 100))


def _draw_rows(folder: Path, split: str, count: int, workers: int) -> Iterator[dict[str, Any] | None]:
    bounds = [(start, min(start + _STEP, count)) for start in range(0, count, _STEP)]
    if workers <= 1:
        for start, stop in bounds:
            yield from _chunk(str(folder), split, start, stop, count)
        return
    with ProcessPoolExecutor(workers) as pool:
        jobs = [pool.submit(_chunk, str(folder), split, start, stop, count) for start, stop in bounds]
        for job in jobs:
            yield from job.result()


def _labels(row: dict[str, Any] | None) -> FrameLabels | None:
    if row is None:
        return None
    items = (Item(**{**item, "window": tuple(item["window"])}) for item in row["items"])
    return FrameLabels(tuple(items), row["setting"], row["time"])
