"""SIGKILL before any write of any command that writes a folder, then the same command: the same bytes, paid once."""

from __future__ import annotations

import json
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path

import commands
import pytest
from commands import COMMANDS, KILLED, begin, each, finish, results, start

EARLY = 6
"""The writes that make the folder and its state file: a kill before any of these once locked the folder for good."""


@dataclass(frozen=True)
class Whole:
    """A command that nobody killed: its files, what it paid for, and how many writes it took."""

    files: dict[str, bytes]
    paid: dict[str, Counter[str]]
    writes: int


@pytest.fixture(scope="module")
def server() -> ForkServerContext:
    """Processes that begin with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["commands", "tiny_gemma", "peft", "katha.planners.training"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(commands.__file__).parent))  # sys.path does not reach the server
        forkserver.ensure_running()
    return context


def paid(work: Path) -> dict[str, Counter[str]]:
    logs = {kind: work / kind for kind in ("frames", "answers")}
    return {kind: Counter(log.read_text().splitlines() if log.exists() else ()) for kind, log in logs.items()}


@pytest.fixture(scope="module")
def whole(server: ForkServerContext, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Whole]:
    @cache
    def made(name: str) -> Whole:
        folder = tmp_path_factory.mktemp(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KATHA_CACHE", str(folder / "cache"))
            begin(name, folder / "out", folder / "work")
        assert finish(start(server, name, folder / "out", folder / "work", folder / "cache")) == 0
        writes = json.loads((folder / "work" / "writes").read_text())
        return Whole(results(name, folder / "out"), paid(folder / "work"), writes)

    return made


def kills(server: ForkServerContext, name: str, folder: Path, at: list[int]) -> int:
    """Kill the command before each of these writes in turn, then let it end; how often it was killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(folder / "cache"))
        begin(name, folder / "out", folder / "work")
    codes = [finish(start(server, name, folder / "out", folder / "work", folder / "cache", place)) for place in at]
    assert set(codes) <= {0, KILLED}
    assert finish(start(server, name, folder / "out", folder / "work", folder / "cache")) == 0
    return codes.count(KILLED)


def check(name: str, whole: Whole, folder: Path, killed: int) -> None:
    assert killed
    ours = results(name, folder / "out")
    assert {path for path in ours if ours[path] != whole.files.get(path)} == set()
    assert set(ours) == set(whole.files)
    # What was in flight when the process died may be done again.
    for kind, expected in whole.paid.items():
        done = paid(folder / "work")[kind]
        assert set(done) == set(expected)
        assert sum(done.values()) - sum(expected.values()) <= killed * COMMANDS[name].in_flight


@pytest.mark.parametrize("name", each())
def test_a_command_that_is_killed_as_it_begins_goes_on(
    name: str, tmp_path: Path, server: ForkServerContext, whole: Callable[[str], Whole]
) -> None:
    check(name, whole(name), tmp_path, kills(server, name, tmp_path, list(range(1, EARLY + 1))))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", each(without=("train",)))
def test_a_killed_command_goes_on(
    name: str, number: int, tmp_path: Path, server: ForkServerContext, whole: Callable[[str], Whole]
) -> None:
    dice, writes = random.Random(f"{name} {number}"), whole(name).writes
    places = [dice.randrange(1, writes + 1) for _ in range(number)] + [writes - number]
    check(name, whole(name), tmp_path, kills(server, name, tmp_path, places))


def test_a_killed_training_goes_on(tmp_path: Path, server: ForkServerContext, whole: Callable[[str], Whole]) -> None:
    """Once, and late: with a checkpoint to go on from, but before the adapter is there."""
    adapter = whole("train").writes - 8
    check("train", whole("train"), tmp_path, kills(server, "train", tmp_path, [adapter]))


def test_two_processes_share_the_cache_and_pay_once(
    tmp_path: Path, server: ForkServerContext, whole: Callable[[str], Whole]
) -> None:
    both = [start(server, "run", tmp_path / name, tmp_path / "work", tmp_path / "cache") for name in ("one", "two")]
    assert [finish(process) for process in both] == [0, 0]
    assert results("run", tmp_path / "one") == results("run", tmp_path / "two") == whole("run").files
    assert paid(tmp_path / "work") == whole("run").paid
