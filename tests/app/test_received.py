"""Folders from strangers, damaged folders of one's own, outputs and inputs, and what ends a process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_inputs import EXAMPLE, SMALL
from calls import Called, call
from fault_server import REPLIES, failing

RECORD, TEXT = str(EXAMPLE.with_suffix(".json")), str(EXAMPLE.with_suffix(".txt"))
Katha = Callable[..., Called]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run, `run`, and its cache."""
    folder = tmp_path_factory.mktemp("finished")
    made = call(["run", TEXT, *SMALL, "--out", "run"], folder, folder / "cache", seconds=120)
    assert made.code == 0, made.err
    return folder


@pytest.fixture
def katha(tmp_path: Path, finished: Path) -> Katha:
    """Run a command line in a folder that holds a copy of the finished run, with its cache."""
    for name in ("run", "cache"):
        shutil.copytree(finished / name, tmp_path / name)
    return lambda *words, **more: call(words, tmp_path, tmp_path / "cache", seconds=60, **more)


def edit(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize("name", ["planner", "renderer", "bridge_renderer", "guide", "similarity", "judges"])
def test_a_received_run_names_no_code(katha: Katha, tmp_path: Path, name: str) -> None:
    code = "os:system:touch X"
    edit(tmp_path / "run" / "run.json", lambda run: run["config"].update({name: [code] if name == "judges" else code}))
    told = katha("redo", "run", "--frame", "1", "--seed", "7")
    assert told.code == 2
    assert "because a file names it" in told.err
    assert not (tmp_path / "X").exists()


def test_a_received_run_shows_no_file_of_the_machine(katha: Katha, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    for image in ("../secret", str(tmp_path / "secret"), "/dev/zero"):
        edit(tmp_path / "run" / "storyboard.json", lambda board, image=image: board["frames"][0].update(image=image))
        told = katha("report", "run")
        assert (told.code, "none of its panels" in told.err) == (2, True)


@pytest.mark.parametrize("change", [{"renderer": "block"}, {"notes": 7}, {"seeds": "all"}, {"config": []}])
def test_a_report_names_what_is_wrong_in_a_received_state(
    katha: Katha, tmp_path: Path, change: dict[str, object]
) -> None:
    edit(tmp_path / "run" / "run.json", lambda run: run.update(change))
    told = katha("report", "run")
    assert (told.code, f"run/run.json', field '{next(iter(change))}'" in told.err) == (2, True), told.err


def test_a_run_without_a_candidate_has_no_report(katha: Katha, tmp_path: Path) -> None:
    edit(tmp_path / "run" / "candidates.json", lambda found: found.update(candidates=[]))
    told = katha("report", "run")
    assert told.code == 2
    assert "field 'candidates'" in told.err


def test_a_result_that_has_become_a_terabyte_is_not_read_to_its_end(katha: Katha, tmp_path: Path) -> None:
    path = tmp_path / "run" / "candidates.json"
    whole = path.read_bytes()
    os.truncate(path, 1 << 40)
    told = katha("redo", "run", "--frame", "2", "--seed", "7")
    assert (told.code, told.seconds < 20) == (2, True), told.err
    assert katha("run", TEXT, *SMALL, "--out", "run").code == 0
    assert path.read_bytes() == whole


def test_a_link_to_itself_cannot_be_read(katha: Katha, tmp_path: Path) -> None:
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    for words in (["bench", "questions", "loop.jsonl", "--out", "q.jsonl"], ["run", TEXT, "--plan", "loop.jsonl"]):
        told = katha(*words)
        assert (told.code, "loop.jsonl" in told.err) == (2, True), told.err
    assert katha("people", "pack", "run", "--out", "loop.jsonl").code == 2


@pytest.mark.parametrize("name", ["scores.json", "candidates.json", "answers.jsonl", "storyboard.json", "plan.json"])
@pytest.mark.parametrize("how", ["other", "cut", "missing", "folder"])
def test_a_damaged_run_is_made_again_from_the_cache(
    katha: Katha, tmp_path: Path, finished: Path, name: str, how: str
) -> None:
    path = tmp_path / "run" / name
    whole = path.read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(b'{"a": 1}\n' if how == "other" else whole[:-9])
    told = katha("run", TEXT, *SMALL, "--out", "run")
    assert told.code == 0, told.err
    assert path.read_bytes() == whole
    state = json.loads((tmp_path / "run" / "run.json").read_text())
    before = json.loads((finished / "run" / "run.json").read_text())
    assert state["paid"] == before["paid"]
    assert state["files"] == before["files"]
    assert (tmp_path / "run" / "damaged" / name).exists() == (how != "missing")


def test_a_frame_that_was_drawn_again_is_so_once_more(katha: Katha, tmp_path: Path) -> None:
    assert katha("redo", "run", "--frame", "2", "--seed", "99").code == 0
    board = (tmp_path / "run" / "storyboard.json").read_bytes()
    (tmp_path / "run" / "scores.json").write_text('{"a": 1}')
    assert katha("redo", "run", "--frame", "1", "--seed", "5").code == 2
    assert katha("run", TEXT, *SMALL, "--out", "run").code == 0
    assert (tmp_path / "run" / "storyboard.json").read_bytes() == board


def test_outputs_never_replace_inputs(katha: Katha, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "run" / "answers.jsonl", tmp_path / "an.jsonl")
    shutil.copy(RECORD, tmp_path / "t.json")
    few = ("--settings", "3", "--resamples", "0", *SMALL[:6])
    for words in (
        ("score", RECORD, "--answers", "an.jsonl", "--out", "an.jsonl"),
        ("score", "t.json", "--answers", "an.jsonl", "--out", "./t.json"),
        ("tune", "t.json", "--lock", "t.json", "--out", "o", *few),
        ("bench", "questions", "t.json", "--out", "t.json"),
        ("bench", "split", "t.json", "--out", "t.json", "--force"),
    ):
        before = [(tmp_path / name).read_bytes() for name in ("an.jsonl", "t.json")]
        told = katha(*words)
        assert (told.code, "written over" in told.err) == (2, True), words
        assert [(tmp_path / name).read_bytes() for name in ("an.jsonl", "t.json")] == before


@pytest.mark.parametrize(
    "words",
    [
        ("ablate", TEXT, "--rows", ","),
        ("eval", RECORD, "--boards", "run", "--out", "e", "--controls", ",", "--judge", "pixel"),
        ("run", TEXT, *SMALL, "--max-cost", "inf"),
        ("run", TEXT, *SMALL, "--patience", "nan"),
        ("run", TEXT, *SMALL, "--base-url", "http://host:abc"),
        ("score", RECORD, "--answers", "run", "--power", "nan"),
        ("score", RECORD, "--answers", "empty.jsonl"),
        ("bench", "stats", "page.html"),
    ],
)
def test_what_means_nothing_is_no_success(katha: Katha, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "empty.jsonl").write_text("a" * 100)
    (tmp_path / "page.html").write_text("<html>\n<p>hello</p>\n")
    told = katha(*words)
    assert told.code in (1, 2)
    assert told.fault is None


def test_a_full_disk_behind_standard_output_is_a_sentence(katha: Katha) -> None:
    told = katha("plan", TEXT, before=lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1))
    assert told.code == 1
    assert "No space left" in told.err
    assert told.fault is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_heard_and_told(
    tmp_path: Path, number: signal.Signals, request: pytest.FixtureRequest
) -> None:
    # Under nohup SIGHUP is ignored, and a child inherits that.
    before = signal.signal(number, signal.SIG_DFL)
    request.addfinalizer(lambda: signal.signal(number, before))
    child = Path(__file__).parents[1] / "support" / "cli_child.py"
    words = [sys.executable, str(child), "run", TEXT, *SMALL, "--out", "run"]
    environment = {**os.environ, "KATHA_CACHE": str(tmp_path / "cache"), "SLOW": "0.3"}
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "run" / "run.json").exists():
            assert process.poll() is None
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "give the same command again to go on" in said


@pytest.mark.parametrize("seconds", ["0", "1"])
def test_nobody_listens_is_told_within_patience(tmp_path: Path, seconds: str) -> None:
    words = ["run", TEXT, *SMALL[:2], *SMALL[4:], "--judge", "openai:x", "--base-url", "http://127.0.0.1:9/v1"]
    told = call([*words, "--patience", seconds, "--out", "run"], tmp_path, tmp_path / "cache", seconds=20)
    assert told.code == 1
    assert "given up after" in told.err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "incomplete"


def test_a_storm_of_refusals_is_told_given_up_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP 429 to every call: how long it will go on is said, nothing is scored, and later all is asked again."""
    words = ["run", TEXT, *SMALL[:2], *SMALL[4:], "--judge", "openai:m", "--patience", "1", "--out", "run"]
    with failing(0.0) as server:
        with monkeypatch.context() as storm:
            storm.setitem(REPLIES, "storm", lambda _: (429, b"", {"retry-after": "30"}))
            storm.setattr(server, "kind_of", lambda raw: "storm")
            told = call([*words, "--base-url", server.url], tmp_path, tmp_path / "cache", seconds=120)
        state = json.loads((tmp_path / "run" / "run.json").read_text())
        assert (told.code, state["status"]) == (1, "incomplete")
        assert "(--patience)" in told.err
        assert "given up after 1 s without an answer" in told.err
        assert {row["status"] for row in state["failures"]} == {"transport_failed"}
        assert server.served == 0
        again = call([*words, "--base-url", server.url], tmp_path, tmp_path / "cache", seconds=120)
    assert again.code == 0, again.err
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "finished"


def test_the_cache_can_be_looked_at(katha: Katha, tmp_path: Path) -> None:
    blob = next(path for path in (tmp_path / "cache" / "blobs").rglob("*") if path.is_file())
    blob.write_bytes(b"x")
    found = json.loads(katha("doctor", "--cache", "--json").out)
    assert (found["damaged_files"], found["damaged_records"]) == (1, 0)
    assert json.loads(katha("doctor", "--cache", "--json").out)["damaged_files"] == 0
    assert katha("run", TEXT, *SMALL, "--out", "run2").code == 0
