"""Both networks trained side by side, a process and a core each.

One thread a network, for two threads on one small network wait for each other more than they gain, and on a busy
machine they stand still.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from katha.eval_bridge.reader.concepts import Concepts
from training.reader.batches import ERRORS, WILD
from training.reader.drawing import TRAIN, draw_set
from training.reader.fit import Recipe, fit_finder, fit_namer

__all__ = ["Trained", "train_both"]

_FINDER = (
    Recipe(epochs=6, minutes=22, batch=32),
    Recipe(epochs=2, minutes=8, batch=32, rate=1.5e-3, seed=43),
    Recipe(epochs=4, minutes=15, batch=32, rate=2e-3, seed=44, shapes=8.0, names=0.1),
)
_NAMER = (
    Recipe(epochs=9, minutes=22, batch=96),
    Recipe(epochs=4, minutes=10, batch=96, rate=1.5e-3, seed=43, jitter=ERRORS),
    Recipe(epochs=7, minutes=14, batch=96, rate=2e-3, seed=44, jitter=WILD),
)
"""In stages. The finder learns what is there first, then where exactly; the namer what things look like first, then to
make out what the finder has put beside the middle of the window."""

Trained = tuple[bytes, list[float]]
"""A network as ONNX, and the loss of every step."""


def train_both(data: Path, count: int, key: str, concepts: Concepts, effort: float = 1.0) -> list[Trained]:
    """The finder and the namer, trained on the `count` pictures that were drawn into `data` under `key`. `effort`
    multiplies how often they see them."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(work, data, count, key, concepts, effort) for work in (_finder, _namer)]
        return [job.result() for job in jobs]


def _stages(recipes: tuple[Recipe, ...], effort: float) -> list[Recipe]:
    return [replace(recipe, epochs=recipe.epochs * effort) for recipe in recipes]


def _say(line: str) -> None:
    print(line, flush=True)


def _finder(data: Path, count: int, key: str, concepts: Concepts, effort: float) -> Trained:
    import torch

    from training.reader.export import finder_to_onnx

    torch.set_num_threads(1)
    drawn, model, losses = draw_set(data, TRAIN, count, key, 1), None, []
    for recipe in _stages(_FINDER, effort):
        model, more = fit_finder(drawn, concepts, recipe, model, _say)
        losses += more
    assert model is not None
    return finder_to_onnx(model), losses


def _namer(data: Path, count: int, key: str, concepts: Concepts, effort: float) -> Trained:
    import torch

    from training.reader.export import namer_to_onnx

    torch.set_num_threads(1)
    windows, model, losses = draw_set(data, TRAIN, count, key, 1).windows, None, []
    assert windows is not None
    for recipe in _stages(_NAMER, effort):
        model, more = fit_namer(windows, concepts, recipe, model, _say)
        losses += more
    assert model is not None
    return namer_to_onnx(model), losses
