"""The training loop: augmentation, one-cycle AdamW, a moving average of the weights."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from katha.eval_bridge.reader.concepts import Concepts
from training.reader.drawing import Drawn
from training.reader.negatives import jpeg
from training.reader.net import ReaderNet
from training.reader.optimiser import optimisers
from training.reader.targets import Targets, batch_targets, loss_of

__all__ = ["Recipe", "fit", "network_input"]

_RISE = 0.1


@dataclass(frozen=True)
class Recipe:
    """How long and how fast to train: for `epochs`, or for `minutes` if that is sooner; the rate rises, then falls to
    nothing, over whichever it is. `average` is how much of the averaged weights each step keeps."""

    epochs: float = 5.0
    minutes: float = 40.0
    batch: int = 32
    rate: float = 3e-3
    average: float = 0.996
    seed: int = 42


def network_input(pixels: NDArray[np.uint8], half: bool = False) -> Tensor:
    """(B, H, W, 3) bytes to (B, 3, H, W) floats in 0..1; `half` for bfloat16, as the convolutions take them."""
    return (
        torch.from_numpy(np.ascontiguousarray(pixels))
        .permute(0, 3, 1, 2)
        .contiguous()
        .to(torch.bfloat16 if half else torch.float32)
        .div_(255)
    )


def _augmented(pixels: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """JPEG, softening by down- and upscaling, brightness and contrast: what happens to pictures on their way."""
    out = pixels
    if rng.random() < 0.2:
        step = float(rng.uniform(0.55, 0.9))
        out = _softened(out, step)
    if rng.random() < 0.25:
        out = jpeg(out, int(rng.integers(50, 96)))
    if rng.random() < 0.4:
        levels = np.arange(256) * rng.uniform(0.88, 1.12) + rng.uniform(-14, 14)
        out = np.clip(levels, 0, 255).astype(np.uint8)[out]
    return out


def _softened(pixels: NDArray[np.uint8], step: float) -> NDArray[np.uint8]:
    from PIL import Image

    image = Image.fromarray(pixels)
    small = image.resize((int(image.width * step), int(image.height * step)), Image.Resampling.BILINEAR)
    return np.asarray(small.resize(image.size, Image.Resampling.BILINEAR))


def _batches(drawn: Drawn, concepts: Concepts, recipe: Recipe, steps: int) -> Iterator[tuple[Tensor, Targets]]:
    rng = np.random.default_rng(recipe.seed)
    order: list[int] = []
    for _ in range(steps):
        if len(order) < recipe.batch:
            order = list(rng.permutation(len(drawn.labels))) + order
        picked = [order.pop() for _ in range(min(recipe.batch, len(order)))]
        mirrored = [bool(rng.random() < 0.5) for _ in picked]
        pictures = []
        for index, mirror in zip(picked, mirrored, strict=True):
            one = drawn.pixels[index][:, ::-1] if mirror else drawn.pixels[index]
            pictures.append(_augmented(np.ascontiguousarray(one), rng))
        labels = [drawn.labels[index] for index in picked]
        yield network_input(np.stack(pictures), half=True), batch_targets(labels, mirrored, concepts)


def _ahead(batches: Iterator[tuple[Tensor, Targets]]) -> Iterator[tuple[Tensor, Targets]]:
    """The same batches, each prepared on a second thread while the one before is learnt from."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch


def fit(
    drawn: Drawn, concepts: Concepts, recipe: Recipe, say: Callable[[str], None] = print
) -> tuple[ReaderNet, list[float]]:
    """Train a reader; its averaged weights and the loss of every step."""
    torch.manual_seed(recipe.seed)
    model = ReaderNet(concepts.sizes).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    averaged = copy.deepcopy(model)
    steps = max(2, round(recipe.epochs * len(drawn.labels) / recipe.batch))
    both = optimisers(model, recipe.rate)
    losses: list[float] = []
    start = time.perf_counter()
    for step, (pixels, targets) in enumerate(_ahead(_batches(drawn, concepts, recipe, steps)), 1):
        done = max(step / steps, (time.perf_counter() - start) / (60 * recipe.minutes))
        for group in (group for part in both for group in part.param_groups):
            group["lr"] = recipe.rate * _pace(done)
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, pixels, targets, concepts)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        for part in both:
            part.step()
        _average(averaged, model, min(recipe.average, step / (step + 10)))
        losses.append(float(loss.detach()))
        if step % 100 == 0 or done >= 1:
            rate = step * recipe.batch / (time.perf_counter() - start)
            say(f"step {step}, {done:.0%}  loss {np.mean(losses[-100:]):.3f}  {rate:.0f} pictures/s")
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
def _average(averaged: ReaderNet, model: ReaderNet, keep: float) -> None:
    for mine, new in zip(averaged.state_dict().values(), model.state_dict().values(), strict=True):
        if mine.dtype.is_floating_point:
            mine.lerp_(new, 1 - keep)
        else:
            mine.copy_(new)
