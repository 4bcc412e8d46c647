"""Both networks trained side by side, a process and a core each.

One thread a network, for two threads on one small network wait for each other more than they gain, and on a busy
machine they stand still.
"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from katha.eval_bridge.reader.network import Concepts
from training.reader.drawing import TRAIN, draw_set
from training.reader.fit import Recipe, fit_finder, fit_namer

__all__ = ["Task", "Trained", "train_both"]

_FINDER = Recipe(epochs=9, minutes=40, batch=24, rate=2.5e-3)
_NAMER = Recipe(epochs=24, minutes=40, batch=64, rate=2.5e-3)

Trained = tuple[bytes, list[float], float]
"""A network as ONNX, the loss of every step, and the seconds of processor time."""


@dataclass(frozen=True)
class Task:
    """What to train on: the `count` pictures that were drawn into `data` under `key`; `props` are the pictograms that
    are learnt from. `effort` multiplies how often the pictures are seen, `minutes` is the most it may take; `start` is
    the folder of a reader to go on from."""

    data: Path
    count: int
    key: str
    concepts: Concepts
    props: tuple[str, ...]
    effort: float = 1.0
    minutes: float = 40.0
    start: Path | None = None

    def recipe(self, plain: Recipe) -> Recipe:
        """`plain` with this task's effort and minutes."""
        return replace(plain, epochs=self.effort * plain.epochs, minutes=self.minutes)


def train_both(task: Task) -> list[Trained]:
    """The finder and the namer."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(work, task) for work in (_finder, _namer)]
        return [job.result() for job in jobs]


def _say(line: str) -> None:
    print(line, flush=True)


def _finder(task: Task) -> Trained:
    import torch

    from training.reader.export import finder_to_onnx

    torch.set_num_threads(1)
    drawn = draw_set(task.data, TRAIN, task.count, task.key, 1)
    model, losses = fit_finder(drawn, task.concepts, task.recipe(_FINDER), task.start, _say)
    return finder_to_onnx(model), losses, time.process_time()


def _namer(task: Task) -> Trained:
    import torch

    from training.reader.export import namer_to_onnx

    torch.set_num_threads(1)
    windows = draw_set(task.data, TRAIN, task.count, task.key, 1).windows
    assert windows is not None
    model, losses = fit_namer(windows, task.concepts, task.props, task.recipe(_NAMER), task.start, _say)
    return namer_to_onnx(model), losses, time.process_time()
