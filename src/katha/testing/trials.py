"""What the contract tests share: checks that are all run, random numbers that are watched, and specifications."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from katha.jsonio import digest

__all__ = ["ContractError", "need", "other_random_numbers", "require_spec", "run_checks", "same_random_numbers"]


class ContractError(AssertionError):
    """A plug-in breaks its contract; the message has a line for each thing."""


class _Broken(Exception):
    """One thing that is wrong."""


def need(fine: bool, sentence: str) -> None:
    """Note `sentence` as broken unless `fine`."""
    if not fine:
        raise _Broken(sentence)


def run_checks(what: str, checks: Sequence[tuple[str, Callable[[], None]]]) -> list[str]:
    """Run every check; the names of all.

    Raises:
        ContractError: at least one failed; each has its line.
    """
    broken = []
    for name, check in checks:
        try:
            check()
        except _Broken as error:
            broken.append(f"  {name}: {error}")
        except Exception as error:
            broken.append(f"  {name}: {type(error).__name__}: {error}")
    if broken:
        raise ContractError(
            "\n".join([f"{what} breaks {len(broken)} of {len(checks)} parts of its contract:", *broken])
        )
    return [name for name, _ in checks]


def require_spec(first: Any, second: Any) -> None:
    """`spec()` has to be JSON with a name, the same in two instances and in two calls."""
    spec = first.spec()
    need(isinstance(spec, Mapping), "spec() has to give a mapping")
    name = spec.get("name")
    need(isinstance(name, str) and bool(name), "spec() has to hold a `name`")
    try:
        hashed = digest(dict(spec))
    except (TypeError, ValueError) as error:
        raise _Broken(f"spec() has to be JSON, so that it can be hashed: {error}") from error
    need(digest(dict(first.spec())) == hashed, "spec() gives something else when it is called again")
    need(digest(dict(second.spec())) == hashed, "spec() of two instances made alike differs")


def _torch() -> Any:
    """torch, if somebody has imported it."""
    return sys.modules.get("torch")


def _states() -> list[Any]:
    torch = _torch()
    return [
        random.getstate(),
        [value.tolist() if isinstance(value, np.ndarray) else value for value in np.random.get_state()],
        torch.get_rng_state().tolist() if torch is not None else None,
    ]


@contextmanager
def same_random_numbers() -> Iterator[None]:
    """The global random numbers of Python, numpy and torch have to be where they were when the block ends."""
    known = _torch() is not None
    before = _states()
    yield
    names = ("random", "numpy.random", "torch")
    moved = [
        name
        for name, old, new in zip(names, before, _states(), strict=True)
        if old != new and (known or name != "torch")
    ]
    need(not moved, f"the global random numbers of {', '.join(moved)} were used or set; use a generator of your own")


@contextmanager
def other_random_numbers(seed: int) -> Iterator[None]:
    """Inside the block the global random numbers start from `seed`; afterwards they are where they were."""
    python, legacy, torch = random.getstate(), np.random.get_state(), _torch()
    tensors = torch.get_rng_state() if torch is not None else None
    random.seed(seed)
    np.random.seed(seed)
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
        if torch is not None and tensors is not None:
            torch.set_rng_state(tensors)
