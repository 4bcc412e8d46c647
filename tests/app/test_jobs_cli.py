"""`katha jobs`: commands with workers are listed, watched, stopped and resumed by the files in their folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import OutputFolderError, UsageError
from katha.experiments.cluster.jobs import FILE, JobFile, find_job
from katha.experiments.cluster.progress import Standing
from katha.jsonio import read_json, write_json

STORY = Path(__file__).parents[2] / "examples" / "fox_and_crow.txt"
AT_WORK = """
import sys
from pathlib import Path
from katha.app.cli import main
from katha.experiments.cluster.fleet import Fleet, WorkerPlace
from katha.experiments.cluster.jobs import JobFile

main._listen()
with Fleet(WorkerPlace("cpu", count=1)) as fleet:
    fleet._job = JobFile(Path(sys.argv[1]) / "workers")
    print("begun", flush=True)
    sys.stdin.read()
"""


def katha(*words: object) -> Result:
    return CliRunner().invoke(app, ["jobs", *map(str, words)])


def write(out: Path, **changes: object) -> None:
    """Have a command with workers write `out`, as another did."""
    file = JobFile(out / "workers")
    standing = Standing(total=4)
    standing.done["judge a"] += 3
    file.tell(standing, now=True)
    file.end("ended")
    path = out / "workers" / FILE
    write_json(path, {**read_json(path), **changes})


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_are_listed_as_they_stand(place: Path) -> None:
    write(place / "out/done")
    write(place / "out/deep/killed", status="running")
    write(place / "out/far", status="running", host="elsewhere", updated=0.0)
    file = JobFile(place / "out/now/workers")
    (place / "out/broken/workers").mkdir(parents=True)
    (place / "out/broken/workers" / FILE).write_text("{")
    rows: list[dict[str, Any]] = json.loads(katha("list", "--json").stdout)
    assert {row["out"]: row["status"] for row in rows} == {
        "out/deep/killed": "stopped",
        "out/done": "ended",
        "out/far": "stopped",
        "out/now": "running",
    }
    assert rows[1]["standing"]["stages"] == {"judge a": 3}
    said = katha("list").stdout
    assert "out/done: ended" in said
    assert "3 of 4 items" in said
    with pytest.raises(OutputFolderError, match="Another katha is working in"):
        JobFile(place / "out/now/workers")
    with pytest.raises(UsageError, match="is still at work"):
        find_job(place / "out/now").again()
    file.end("failed")
    assert find_job(place / "out/now").status == "failed"
    assert "No command with workers" in katha("list", "nowhere").stdout


def test_one_is_watched_until_it_has_ended(place: Path) -> None:
    write(place / "out/done")
    assert katha("watch", "out/done").stdout.count("3 of 4 items") == 1
    assert json.loads(katha("watch", "out/done", "--json").stdout)["alive"] is False
    assert isinstance(katha("watch", "out").exception, UsageError)


def test_one_is_stopped_by_its_lock_and_number(place: Path) -> None:
    words = [sys.executable, "-c", AT_WORK, "out/now"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        assert find_job(Path("out/now")).status == "running"
        assert katha("stop", "out/now").exit_code == 0
        assert process.wait(120) != 0
    assert read_json(Path("out/now/workers") / FILE)["status"] == "stopped"
    with pytest.raises(UsageError, match="Nothing is at work"):
        find_job(Path("out/now")).stop()


def test_one_is_resumed_where_it_was_given(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "there").mkdir()
    (place / "there/katha.py").write_text("raise SystemExit('what lies in the folder is no module')")
    command = ["plan", str(STORY), "--panels", "4"]
    write(place / "out/plan", command=command, folder=str(place / "there"), status="running")
    words, folder = find_job(place / "out/plan").again()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, len(json.loads(done.stdout)["panels"])) == (0, 4)
    write(place / "out/far", host="elsewhere", command=command)
    assert "was given on 'elsewhere'" in str(katha("resume", "out/far").exception)
    write(place / "out/bad", command=["plan", "nothing.txt"], folder=os.fspath(place))
    assert katha("resume", "out/bad").exit_code == 2
