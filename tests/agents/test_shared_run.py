"""Runs of machines that share a store, while machines, the database and their claims die under them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from services import PostgresServer

_MACHINE = """
import sys
from pathlib import Path
from doubles import BlockRenderer, PixelJudge, plugins, story
from katha.agents.run import run_story
from katha.config import Settings
out, log = Path(sys.argv[1]), Path(sys.argv[2])
config = Settings(planner="scenes", renderer="block", judges=("pixel",), seeds=(42, 123), mode="full_always")
judge = {"pixel": PixelJudge(log=log / "answers")}
run_story(story(), config, out, plugins=plugins(renderer=BlockRenderer(log=log / "frames"), judges=judge))
"""
KINDS = ("frames", "answers")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    return folder


def machine(tmp_path: Path, log: Path, database: str, name: str) -> subprocess.Popen[bytes]:
    shared = {"KATHA_STORE": database, "KATHA_OBJECTS": str(tmp_path / "pictures"), "KATHA_STORE_LEASE": "1"}
    known = {**os.environ, **shared, "KATHA_CACHE": str(tmp_path / f"cache {name}")}
    known["PYTHONPATH"] = str(Path(__file__).parents[1] / "support")
    return subprocess.Popen([sys.executable, "-c", _MACHINE, str(tmp_path / name), str(log)], env=known)


def paid(log: Path, kind: str) -> list[str]:
    path = log / kind
    return path.read_text().splitlines() if path.exists() else []


def after(log: Path, kind: str, count: int) -> None:
    """Wait until so many frames or answers were paid for."""
    waited, end = threading.Event(), time.monotonic() + 60
    while len(paid(log, kind)) < count:
        assert time.monotonic() < end
        waited.wait(0.005)


def same(tmp_path: Path, names: list[str]) -> None:
    for file in ("storyboard.json", "scores.json", "answers.jsonl"):
        assert len({(tmp_path / name / file).read_bytes() for name in names}) == 1


def test_machines_that_work_at_once_pay_once_whatever_dies(tmp_path: Path, log: Path, postgres: PostgresServer) -> None:
    """One is killed in the middle of drawing, one in the middle of asking; then the database is."""
    database = postgres.fresh()
    running = {name: machine(tmp_path, log, database, name) for name in ("one", "two", "three")}
    try:
        after(log, "frames", 3)
        running["one"].send_signal(signal.SIGKILL)
        after(log, "answers", 10)
        running["two"].send_signal(signal.SIGKILL)
        postgres.stop()
        postgres.start()
        assert running["three"].wait(60) == 0
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    for name in ("one", "two"):
        assert machine(tmp_path, log, database, name).wait(60) == 0
    same(tmp_path, ["one", "two", "three"])
    again = {kind: sum(Counter(paid(log, kind)).values()) - len(set(paid(log, kind))) for kind in KINDS}
    assert all(count <= 2 for count in again.values()), again  # in flight, in each of the two that were killed
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT COUNT(*) FROM katha_claims").fetchone() == (0,)
        kept = connection.execute("SELECT COUNT(*) FROM katha_entries WHERE kind = 'answer'").fetchone()
    assert kept == (len(set(paid(log, "answers"))),)


def test_a_run_that_loses_its_database_goes_on_where_it_stopped(
    tmp_path: Path, log: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = postgres.fresh()
    monkeypatch.setenv("KATHA_STORE_PATIENCE", "0")
    process = machine(tmp_path, log, database, "one")
    after(log, "answers", 10)
    postgres.stop()
    try:
        assert process.wait(60) == 1
    finally:
        postgres.start()
    done = len(paid(log, "answers"))
    assert machine(tmp_path, log, database, "one").wait(60) == 0
    assert machine(tmp_path, log, database, "two").wait(60) == 0
    same(tmp_path, ["one", "two"])
    for kind in KINDS:
        assert len(paid(log, kind)) == len(set(paid(log, kind)))  # what came after the loss was kept, and sent later
    assert done < len(paid(log, "answers"))
