"""Metrics over features of 750 boards that are there already, and what encoding every frame for every metric takes.

A set of 750 boards of five frames with as many gold pictures is measured by CLIP-T, CLIP-I and CLIP-T-MRR over a pool
of 3,750 in a process of its own: files are read and hashed, features come from the cache, the table and intervals are
made, and every file is written. The features were put there by a first measurement with rows of the real width (768)
that need no model. The naive loop encodes each frame for each metric; eight frames by a ViT-B-32 with random weights
are timed in the same run.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.processes import output_of

__all__ = ["measure"]

_BOARDS, _FRAMES, _WIDTH = 750, 5, 768
_TIMED = 8
_METRICS = 3


@dataclass
class Account:
    """Seconds on the wall and on the processors, memory in MB after a quarter of the boards and at the end."""

    seconds: float
    cpu: float
    quarter: float
    end: float
    computed: int


class _Rows:
    """Rows of the real width that depend on what they are of; counts what it was asked for."""

    argument = "rows"

    def __init__(self) -> None:
        self.computed = 0

    def spec(self) -> Mapping[str, Any]:
        return {"name": "rows"}

    def encode_images(self, images: Sequence[bytes]) -> NDArray[np.float64]:
        self.computed += len(images)
        return np.stack([np.random.default_rng(list(data[-64:])).normal(size=_WIDTH) for data in images])

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return self.encode_images([text.encode().ljust(64) for text in texts])


def _write(folder: Path) -> None:
    """Write boards, gold pictures and stories."""
    from PIL import Image

    from katha.experiments.runner import write_records
    from katha.schema import Scene, StoryRecord

    generator, records = np.random.default_rng(42), []
    for at in range(_BOARDS):
        name = f"s{at:04d}"
        scenes = [Scene(scene_index=number, scene_text=f"{name} does {number}.") for number in range(1, _FRAMES + 1)]
        records.append(StoryRecord(story_id=name, story_text=name, scenes=scenes))
        for kind in ("boards", "gold"):
            place = folder / kind / name
            place.mkdir(parents=True)
            for number in range(1, _FRAMES + 1):
                pixels = generator.integers(0, 255, (96, 128, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(place / f"{number}.png", compress_level=1)
    write_records(folder / "stories.jsonl", records)


def _measure(folder: Path, out: str) -> Account:
    """Measure in this process."""
    from katha.eval_bridge.metrics.general import ClipImage, ClipText
    from katha.eval_bridge.metrics.ranking import ClipRank, Pool
    from katha.experiments.metrics.job import MetricsJob, measure
    from katha.experiments.metrics.sources import Beside, find_sources
    from katha.experiments.runner import read_records
    from katha.schema import StoryRecord

    rows, marks = _Rows(), []

    def metric(kind: type[Any]) -> Any:
        made = kind(model="none@none")
        made._encoder = rows
        if kind is ClipRank:
            made._pool = Pool(rows)
        return made

    start, cpu = time.perf_counter(), time.process_time()
    records = read_records(folder / "stories.jsonl", StoryRecord)
    made = {one.card.name: one for one in map(metric, (ClipText, ClipImage, ClipRank))}
    job = MetricsJob(find_sources([str(folder / "boards")], records, Beside(folder / "gold")), made)

    def heard(name: str, done: int) -> None:
        if done in (_BOARDS // 4, _BOARDS):
            marks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

    measure(job, folder / out, on_board=heard)
    return Account(time.perf_counter() - start, time.process_time() - cpu, *marks, rows.computed)


def _naive() -> float:
    """Return processor seconds that a ViT-B-32 with random weights takes for one frame."""
    import open_clip
    import torch
    from PIL import Image

    torch.set_num_threads(1)
    model, _, prepare = open_clip.create_model_and_transforms("ViT-B-32", pretrained=None)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (512, 768, 3), dtype=np.uint8))
    with torch.inference_mode():
        model.eval().encode_image(prepare(picture).unsqueeze(0))
        start = time.process_time()
        for _ in range(_TIMED):
            model.encode_image(prepare(picture).unsqueeze(0))
    return (time.process_time() - start) / _TIMED


def measure() -> dict[str, Any]:
    """Return seconds and memory over cached features, and the ratio to encoding each frame for each metric."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        os.environ["KATHA_CACHE"] = str(place / "cache")
        _write(place)
        first, cached = (
            Account(**json.loads(output_of([sys.executable, "-m", "benchmarks.metrics", folder, out])))
            for out in ("first", "cached")
        )
    naive = _METRICS * _BOARDS * _FRAMES * _naive()
    return {
        "boards": _BOARDS,
        "frames": _BOARDS * _FRAMES,
        "pool": _BOARDS * _FRAMES,
        "target_seconds": 30.0,
        "seconds": round(cached.seconds, 1),
        "cpu_seconds": round(cached.cpu, 1),
        "megabytes_quarter": round(cached.quarter),
        "megabytes_end": round(cached.end),
        "rows_computed_first": first.computed,
        "rows_computed_cached": cached.computed,
        "baseline": "ViT-B-32 encodes each frame for each of three metrics, extrapolated from 8 frames",
        "baseline_cpu_seconds": round(naive, 1),
        "ratio": round(naive / cached.cpu, 1),
    }


if __name__ == "__main__":
    print(json.dumps(asdict(_measure(Path(sys.argv[1]), sys.argv[2]))))
