"""The training loop, the same for both networks: a rate that rises and falls, and a moving average of the weights."""

from __future__ import annotations

import copy
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from katha_sketch.reader.network import Concepts
from training.reader.batches import Course, Jitter, NamerBatch, finder_batches, namer_batches
from training.reader.drawing import TRAIN, Drawn, draw_set
from training.reader.net import FinderNet, NamerNet
from training.reader.optimiser import half_or_single, optimisers
from training.reader.resume import resumed_finder, resumed_namer
from training.reader.targets import Targets, loss_of
from training.reader.windows import Windows

__all__ = ["Recipe", "Task", "Trained", "fit_finder", "fit_namer", "named_loss", "train_both"]

_RISE = 0.1
_PLACES = 4.0
_SHARPNESS = 20.0
_LOOKS = 6
"""Batches by which the norms of a network that goes on are set."""
_Net = TypeVar("_Net", bound=nn.Module)
_Batch = TypeVar("_Batch")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe:
    """How long and how fast to train one network: for `epochs`, or for `minutes` if that is sooner; the rate rises,
    then falls to nothing, over whichever it is. `average` is how much of the averaged weights each step keeps.
    `shapes`: weight of that part of the finder's loss."""

    epochs: float
    minutes: float
    batch: int
    rate: float = 3e-3
    average: float = 0.996
    seed: int = 42
    shapes: float = 6.0


def _ahead(batches: Iterator[_Batch]) -> Iterator[_Batch]:
    """The same batches, each prepared on a second thread while the one before is learnt from."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch


def fit_finder(
    drawn: Drawn, concepts: Concepts, recipe: Recipe, start: Path | None = None, say: Say = print
) -> tuple[FinderNet, list[float]]:
    """Train a finder on whole pictures, from the reader in the folder `start` or from nothing; its averaged weights and
    the loss of every step."""
    torch.manual_seed(recipe.seed)
    model = FinderNet(len(concepts.settings), len(concepts.times))
    steps = max(2, round(recipe.epochs * len(drawn.labels) / recipe.batch))
    batches = finder_batches(drawn, concepts, recipe.batch, steps, recipe.seed)

    def loss(net: FinderNet, batch: tuple[Tensor, Targets]) -> Tensor:
        return loss_of(net, *batch, concepts, recipe.shapes)

    if start is not None:
        first = finder_batches(drawn, concepts, recipe.batch, _LOOKS, recipe.seed + 1)
        resumed_finder(model, start, concepts, [pixels for pixels, _ in first])
    return _fit(model, batches, loss, Course(steps, 60 * recipe.minutes), recipe, say)


def fit_namer(
    windows: Windows,
    concepts: Concepts,
    props: Sequence[str],
    recipe: Recipe,
    start: Path | None = None,
    say: Say = print,
) -> tuple[NamerNet, list[float]]:
    """Train a namer on windows, of things on those that show one of `props`; its averaged weights and the loss of every
    step. An epoch sees every figure once."""
    torch.manual_seed(recipe.seed)
    model = NamerNet(*(len(names) for names in (*concepts.named, props)))
    if start is not None:
        looks = Course(_LOOKS, math.inf)
        first = namer_batches(windows, concepts, props, recipe.batch, looks, recipe.seed + 1, Jitter())
        resumed_namer(model, start, concepts, props, [(one.heads, one.bodies, one.props) for one in first])
    course = Course(max(2, round(recipe.epochs * len(windows.figures) / recipe.batch)), 60 * recipe.minutes)
    batches = namer_batches(windows, concepts, props, recipe.batch, course, recipe.seed, Jitter())
    return _fit(model, batches, named_loss, course, recipe, say)


def named_loss(model: NamerNet, batch: NamerBatch) -> Tensor:
    """The sum of the cross-entropies of characters, actions, emotions and props, each where it is asked, and of the
    places' errors."""
    *figures, figure_places = model.figures(batch.heads, batch.bodies)
    looks, prop_places = model.things(batch.props)
    total = _entropy(_cosines(looks, model.proxies), batch.things) + _misplaced(figure_places, batch.figure_places)
    total = total + _misplaced(prop_places, batch.prop_places)
    for logits, wanted in zip(figures, (batch.characters, batch.actions, batch.emotions), strict=True):
        total = total + _entropy(logits, wanted)
    return total


def _cosines(looks: Tensor, proxies: Tensor) -> Tensor:
    """Logits of classes from cosines to their proxies."""
    return _SHARPNESS * nn.functional.normalize(looks.float()) @ nn.functional.normalize(proxies.float()).T


def _misplaced(found: Tensor, true: Tensor) -> Tensor:
    return _PLACES * nn.functional.huber_loss(found.float(), true, delta=0.2)


def _entropy(logits: Tensor, wanted: Tensor) -> Tensor:
    """Mean cross-entropy over the rows whose class is asked (not -1); nothing where none is."""
    if not (wanted >= 0).any():
        return logits.new_zeros((), dtype=torch.float32)
    return nn.functional.cross_entropy(logits.float(), wanted, ignore_index=-1)


def _fit(
    model: _Net,
    batches: Iterator[_Batch],
    loss_of_batch: Callable[[_Net, _Batch], Tensor],
    course: Course,
    recipe: Recipe,
    say: Say,
) -> tuple[_Net, list[float]]:
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    averaged = copy.deepcopy(model)
    both = optimisers(model, recipe.rate)
    losses: list[float] = []
    for step, batch in enumerate(_ahead(batches), 1):
        done = course.done(step)
        for group in (group for part in both for group in part.param_groups):
            group["lr"] = recipe.rate * _pace(done)
        with torch.autocast("cpu", torch.bfloat16, enabled=half_or_single() == torch.bfloat16):
            loss = loss_of_batch(model, batch)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        for part in both:
            part.step()
        _average(averaged, model, min(recipe.average, step / (step + 10)))
        losses.append(float(loss.detach()))
        if step % 100 == 0 or done >= 1:
            rate = step * recipe.batch / (time.perf_counter() - course.begun)
            say(f"{type(model).__name__} step {step}, {done:.0%}  loss {np.mean(losses[-100:]):.3f}  {rate:.0f}/s")
        if done >= 1:
            break
    averaged.eval()
    return averaged, losses


def _pace(done: float) -> float:
    """The share of the full rate when `done` (0..1) of the training is over: a tenth to rise, then half a cosine."""
    if done < _RISE:
        return 0.04 + 0.96 * done / _RISE
    return 0.5 + 0.5 * math.cos(math.pi * min(1.0, (done - _RISE) / (1 - _RISE)))


@torch.no_grad()
def _average(averaged: nn.Module, model: nn.Module, keep: float) -> None:
    for mine, new in zip(averaged.state_dict().values(), model.state_dict().values(), strict=True):
        if mine.dtype.is_floating_point:
            mine.lerp_(new, 1 - keep)
        else:
            mine.copy_(new)


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
