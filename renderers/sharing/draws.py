"""Chance as a function of a key: nothing global is read, and the order of the draws does not matter."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["happens", "kept_tokens"]


def _generator(key: tuple[int | str, ...]) -> np.random.Generator:
    seed = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return np.random.default_rng(int.from_bytes(seed, "big"))


def kept_tokens(count: int, probability: float, *key: int | str) -> NDArray[np.bool_]:
    """Which of `count` tokens are kept, each with `probability`; shape (count,)."""
    return _generator(key).random(count) < probability


def happens(probability: float, *key: int | str) -> bool:
    """Whether something of that probability happens for `key`."""
    return bool(_generator(key).random() < probability)
