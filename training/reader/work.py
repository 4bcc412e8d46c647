"""Both networks trained side by side, a process and a core each.

One thread a network, for two threads on one small network wait for each other more than they gain, and on a busy
machine they stand still.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from katha.eval_bridge.reader.network import Concepts
from training.reader.drawing import TRAIN, draw_set
from training.reader.fit import Recipe, fit_finder, fit_namer

__all__ = ["Trained", "train_both"]

_FINDER = Recipe(epochs=13, minutes=44, batch=32)
_NAMER = Recipe(epochs=17, minutes=44, batch=96)

Trained = tuple[bytes, list[float]]
"""A network as ONNX, and the loss of every step."""


def train_both(data: Path, count: int, key: str, concepts: Concepts, effort: float = 1.0) -> list[Trained]:
    """The finder and the namer, trained on the `count` pictures that were drawn into `data` under `key`. `effort`
    multiplies how often they see them."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(work, data, count, key, concepts, effort) for work in (_finder, _namer)]
        return [job.result() for job in jobs]


def _say(line: str) -> None:
    print(line, flush=True)


def _finder(data: Path, count: int, key: str, concepts: Concepts, effort: float) -> Trained:
    import torch

    from training.reader.export import finder_to_onnx

    torch.set_num_threads(1)
    drawn = draw_set(data, TRAIN, count, key, 1)
    model, losses = fit_finder(drawn, concepts, replace(_FINDER, epochs=effort * _FINDER.epochs), _say)
    return finder_to_onnx(model), losses


def _namer(data: Path, count: int, key: str, concepts: Concepts, effort: float) -> Trained:
    import torch

    from training.reader.export import namer_to_onnx

    torch.set_num_threads(1)
    windows = draw_set(data, TRAIN, count, key, 1).windows
    assert windows is not None
    model, losses = fit_namer(windows, concepts, replace(_NAMER, epochs=effort * _NAMER.epochs), _say)
    return namer_to_onnx(model), losses
