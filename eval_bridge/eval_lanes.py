"""Which judges are asked together, and how many stories at once.

A judge that waits for a server is asked about several stories side by side; one that computes on this machine is asked
story by story; and one that fills the machine's memory has it to itself and lets go of it before the next.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from katha.eval_bridge.asking import concurrency_of
from katha.protocols import Judge

__all__ = ["Lane", "in_turn", "lanes_of"]

T = TypeVar("T")


@dataclass(frozen=True)
class Lane:
    """Judges that are asked in one pass over the stories, and how many stories may be under way in it."""

    judges: tuple[str, ...]
    stories: int = 1
    alone: bool = False


def lanes_of(judges: Mapping[str, Judge]) -> list[Lane]:
    """The passes that an evaluation by `judges` takes."""
    alone = [name for name, judge in judges.items() if getattr(judge, "exclusive", False)]
    waiting = [name for name, judge in judges.items() if name not in alone and concurrency_of(judge) > 1]
    here = tuple(name for name in judges if name not in alone and name not in waiting)
    lanes = [Lane(here)] if here else []
    if waiting:
        # Of a story's questions the first of each packet is asked alone: two stories keep about five calls under way.
        lanes.append(Lane(tuple(waiting), sum(-(-concurrency_of(judges[name]) // 2) for name in waiting)))
    return lanes + [Lane((name,), alone=len(alone) > 1) for name in alone]


def in_turn(
    work: Callable[[T], None],
    items: Iterable[T],
    at_once: int,
    tell: Callable[[T], None],
    stopping: threading.Event,
) -> None:
    """`work` on each item, up to `at_once` side by side; `tell` of each when it is done, in order, on this thread.

    The first item is worked on alone: a wrong key is found by one call. What fails stops the rest: `stopping` is set,
    nothing new is begun, what is under way is waited for, and the first failure in the order of `items` is raised.
    """
    if at_once < 2:
        for item in items:
            work(item)
            tell(item)
        return

    def guarded(item: T) -> None:
        try:
            if not stopping.is_set():
                work(item)
        except BaseException:
            stopping.set()
            raise

    rest = iter(items)
    for first in islice(rest, 1):
        work(first)
        tell(first)
    waiting: deque[tuple[T, Future[None]]] = deque()
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="stories")
    try:
        for item in rest:
            waiting.append((item, pool.submit(guarded, item)))
            if len(waiting) >= 2 * at_once:
                _await(waiting, tell)
        while waiting:
            _await(waiting, tell)
    except BaseException:
        stopping.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _await(waiting: deque[tuple[T, Future[None]]], tell: Callable[[T], None]) -> None:
    item, future = waiting.popleft()
    future.result()
    tell(item)
