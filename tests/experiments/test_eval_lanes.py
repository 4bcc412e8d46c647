"""Which judges are asked together, and how a failure among stories side by side stops the rest."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from evals import Watcher, go

from katha.errors import JudgeError
from katha.experiments.evaluation.judging import Lane, in_turn, lanes_of


class Model(Watcher):
    """A judge that fills the memory; `life` gets its name when it is asked and a dash when it lets go."""

    exclusive = True

    def __init__(self, name: str, life: list[str]) -> None:
        super().__init__(name=name)
        self.life = life

    def ask(self, evidence: object, prompts: object) -> object:  # type: ignore[override]
        if self.life[-1:] != [self.name]:
            self.life.append(self.name)
        return super().ask(evidence, prompts)  # type: ignore[arg-type]

    def close(self) -> None:
        self.life.append("-")


def test_models_have_the_memory_in_turn(tmp_path: Path) -> None:
    life: list[str] = []
    result = go(tmp_path, [Model("a", life), Watcher(name="w"), Model("b", life)])
    assert life == ["a", "-", "b", "-"]
    assert result.state.done.statuses == {"ok": 3 * 54}
    assert result.state.done.leakage.packets == 6
    life.clear()
    go(tmp_path, [Model("c", life)], out="one")
    assert life == ["c"]


def test_judges_that_wait_for_a_server_share_a_lane() -> None:
    judges = {name: Watcher(name=name) for name in ("here", "far", "farther")}
    for name, many in (("far", 16), ("farther", 3)):
        judges[name].concurrency = many
    assert lanes_of(judges) == [
        Lane(("here",)),
        Lane(("far", "farther"), 8 + 2),
    ]


def test_the_first_failure_stops_the_rest() -> None:
    begun, told, stopping, both = [], [], threading.Event(), threading.Barrier(2)

    def work(item: int) -> None:
        begun.append(item)
        if item in {3, 4}:
            both.wait(20)
            raise JudgeError(f"no {item}")

    with pytest.raises(JudgeError, match="no 3"):
        in_turn(work, range(100), 2, told.append, stopping)
    assert stopping.is_set()
    assert begun[0] == 0
    assert sorted(begun) == [0, 1, 2, 3, 4]
    assert told == [0, 1, 2]
