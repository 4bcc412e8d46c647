"""SIGKILL anywhere in a suite, then the same command: the same bytes, and nothing is paid twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

CHILD = Path(__file__).parents[1] / "ablation_kill_child.py"
RESULTS = ("table.json", "scores.json", "answers.jsonl", "stories.jsonl")


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(folder / "out"), str(folder / "logs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "KATHA_CACHE": str(folder / "cache")},
    )


def finish(child: subprocess.Popen[str]) -> int:
    output, errors = child.communicate(timeout=240)
    assert child.returncode == 0, errors
    return len(output.splitlines())


def paid(folder: Path) -> dict[str, Counter[str]]:
    return {kind: Counter((folder / "logs" / kind).read_text().splitlines()) for kind in ("frames", "answers")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, finish(start(folder))


@pytest.mark.parametrize("number", range(3))
def test_a_killed_suite_goes_on(tmp_path: Path, whole: tuple[Path, int], number: int) -> None:
    folder, lines = whole
    dice, kills = random.Random(number), 0
    for _ in range(1 + number % 2):
        child = start(tmp_path)
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
    finish(start(tmp_path))
    for name in RESULTS:
        assert (tmp_path / "out" / name).read_bytes() == (folder / "out" / name).read_bytes()
    # What was in flight when the process died may be done again: a frame and an answer of each of the three branches.
    for kind, expected in paid(folder).items():
        done = paid(tmp_path)[kind]
        assert set(done) == set(expected)
        assert sum(done.values()) - sum(expected.values()) <= 3 * kills
