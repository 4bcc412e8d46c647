"""The drawn training set: pictures in one memory-mapped file at reader resolution, labels beside them."""

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

from katha.eval_bridge.reader.pixels import HEIGHT, WIDTH, fit_into, to_input
from katha.language import describe_scene
from katha.renderers.sketch import Composition, compose, compose_scene, rasterise
from katha.renderers.sketch.looks import LOOKS, in_look
from training.reader.labels import FrameLabels, Item, label_frame
from training.reader.negatives import TEST_PHOTOS, TRAIN_PHOTOS, negative, photographs
from training.reader.scenes import random_scene

__all__ = ["Drawn", "Sample", "draw_set", "sample"]

_SIZES = ((768, 512), (768, 512), (768, 512), (512, 512), (640, 360), (1024, 768))
_SHARE_NEGATIVE = 0.09
_SHARE_STYLED = 0.08
_OVERSAMPLE = 1.25


@dataclass(frozen=True)
class Sample:
    """One picture of shape (HEIGHT, WIDTH, 3) and its labels; None for a picture that is no sketch."""

    pixels: NDArray[np.uint8]
    labels: FrameLabels | None


def _compose(rng: Random, seed: int) -> Composition:
    """Half of the frames come from a prompt, as in a run; half from the reading itself."""
    width, height = rng.choice(_SIZES)
    scene = random_scene(rng)
    if rng.random() < 0.5:
        return compose(describe_scene(scene), seed, width, height)
    return compose_scene(scene, seed, width, height)


def sample(seed: int, split: str) -> Sample:
    """The picture number `seed` of a split; the same call draws the same picture."""
    rng = Random(f"{split}/{seed}")
    frame = _compose(rng, rng.randrange(2**32))
    style = rng.choice(sorted(LOOKS)) if rng.random() < _SHARE_STYLED else "colour"
    fit = fit_into(frame.width, frame.height)
    scale = min(1.0, _OVERSAMPLE * fit.scale)
    png = rasterise(in_look(frame.svg, style), round(frame.width * scale), round(frame.height * scale))
    pixels = to_input(png)
    if rng.random() >= _SHARE_NEGATIVE:
        return Sample(pixels, label_frame(frame, fit))
    photos = photographs(TEST_PHOTOS if split == "test" else TRAIN_PHOTOS)
    return Sample(negative(rng.randrange(2**32), pixels, photos), None)


@dataclass(frozen=True)
class Drawn:
    """A drawn set: pictures of shape (N, HEIGHT, WIDTH, 3), uint8, memory-mapped, and N labels."""

    pixels: NDArray[np.uint8]
    labels: list[FrameLabels | None]


def _chunk(folder: str, split: str, start: int, stop: int, count: int) -> list[dict[str, Any] | None]:
    shape = (count, HEIGHT, WIDTH, 3)
    pixels = np.memmap(Path(folder) / f"{split}.u8", dtype=np.uint8, mode="r+", shape=shape)
    rows: list[dict[str, Any] | None] = []
    for index in range(start, stop):
        one = sample(index, split)
        pixels[index] = one.pixels
        rows.append(None if one.labels is None else asdict(one.labels))
    pixels.flush()
    return rows


def draw_set(folder: Path, split: str, count: int, key: str, workers: int = 2) -> Drawn:
    """Draw `count` pictures of `split` into `folder`, or load them if they were drawn before under the same `key`."""
    folder.mkdir(parents=True, exist_ok=True)
    picture_file, label_file = folder / f"{split}.u8", folder / f"{split}.json"
    shape = (count, HEIGHT, WIDTH, 3)
    known = json.loads(label_file.read_text()) if label_file.exists() else {}
    if known.get("key") != key or known.get("count") != count:
        np.memmap(picture_file, dtype=np.uint8, mode="w+", shape=shape).flush()
        rows = list(_draw_rows(folder, split, count, workers))
        known = {"key": key, "count": count, "labels": rows}
        label_file.write_text(json.dumps(known))
    pixels = np.memmap(picture_file, dtype=np.uint8, mode="r", shape=shape)
    return Drawn(pixels, [_labels(row) for row in known["labels"]])


def _draw_rows(folder: Path, split: str, count: int, workers: int) -> Iterator[dict[str, Any] | None]:
    step = max(1, min(200, count // max(1, workers)))
    bounds = [(start, min(start + step, count)) for start in range(0, count, step)]
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
    return FrameLabels(tuple(Item(**item) for item in row["items"]), row["setting"], row["time"])
