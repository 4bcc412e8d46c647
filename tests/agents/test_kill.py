"""SIGKILL at any moment, then the same command: the same bytes, and nothing is paid twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

CHILD = Path(__file__).parents[1] / "kill_child.py"
ROUNDS = 6
RESULTS = ("storyboard.json", "scores.json", "candidates.json", "answers.jsonl", "plan.json", "story.jsonl")


def start(folder: Path, name: str, mode: str = "full") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(folder / name), str(folder / f"{name}-logs"), mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "KATHA_CACHE": str(folder / f"{name}-cache")},
    )


def finish(child: subprocess.Popen[str]) -> int:
    output, errors = child.communicate(timeout=120)
    assert child.returncode == 0, errors
    return len(output.splitlines())


def results(out: Path) -> dict[str, bytes]:
    panels = {path.name: path.read_bytes() for path in (out / "panels").iterdir()}
    return {name: (out / name).read_bytes() for name in RESULTS} | panels


def paid(folder: Path, name: str) -> dict[str, Counter[str]]:
    logs = folder / f"{name}-logs"
    return {kind: Counter((logs / kind).read_text().splitlines()) for kind in ("frames", "answers")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """An unbroken run, and how many lines it printed."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, finish(start(folder, "whole"))


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_killed_run_goes_on(tmp_path: Path, whole: tuple[Path, int], number: int) -> None:
    folder, lines = whole
    dice = random.Random(number)
    kills = 0
    for _ in range(1 + number % 3):
        child = start(tmp_path, "run")
        assert child.stdout is not None
        stop = dice.randrange(1, lines)
        for place, _ in enumerate(child.stdout, 1):
            if place >= stop:
                child.send_signal(signal.SIGKILL)
                break
        child.stdout.read()
        child.wait(timeout=60)
        kills += child.returncode == -signal.SIGKILL
        child.communicate()
    assert kills
    finish(start(tmp_path, "run"))
    assert results(tmp_path / "run") == results(folder / "whole")
    # What was in flight when the process died may be done again: one frame or answer a kill and thread.
    for kind, expected in paid(folder, "whole").items():
        done = paid(tmp_path, "run")[kind]
        assert set(done) == set(expected)
        assert sum(done.values()) - sum(expected.values()) <= kills


def test_two_processes_share_the_cache_and_pay_once(tmp_path: Path, whole: tuple[Path, int]) -> None:
    folder, _ = whole
    environment = {**os.environ, "KATHA_CACHE": str(tmp_path / "cache")}
    children = [
        subprocess.Popen(
            [sys.executable, str(CHILD), str(tmp_path / name), str(tmp_path / "logs"), "full"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for name in ("one", "two")
    ]
    for child in children:
        finish(child)
    assert results(tmp_path / "one") == results(tmp_path / "two") == results(folder / "whole")
    for kind, expected in paid(folder, "whole").items():
        done = Counter((tmp_path / "logs" / kind).read_text().splitlines())
        assert done == expected
