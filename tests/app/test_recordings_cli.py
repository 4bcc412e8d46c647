"""`--record FILE` and `--replay FILE` of the verbs, `katha store calls` and `katha store pack`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from api_server import Server, Step, serving
from asked import reply_to
from typer.testing import CliRunner

import katha
from katha.app.cli.main import app
from katha.config import cache_folder
from katha.errors import KathaError, UsageError
from katha.jsonio import write_bytes_atomic
from katha.models.recordings import Recording, read_recording
from katha.store import Store

CANARY = "sk-canary-0123456789"
PIECES = ("Joe went to the junkyard.", "He dug through old clothes. At the bottom was a shirt.", "It fit.")
STORY = " ".join(PIECES)
PLANNER, JUDGE = "fragments:openai:gpt-4o", "openai:gpt-4o"
RUN = ("--planner", PLANNER, "--judge", JUDGE, "--panels", 3, "--mode", "base", "--seeds", 1)
SAME = ("plan.json", "storyboard.json", "answers.jsonl", "scores.json", "candidates.json", "story.jsonl")


def reply(number: int, body: dict[str, Any]) -> Step:
    """Cut the story into its pieces, caption a piece, or answer what is asked of a board."""
    told = str(body["messages"][-1]["content"])
    piece = re.findall(r"Story Fragment: (.*)\nCaption for Story Fragment:", told)
    if piece:
        return {"text": json.dumps({"caption": f"A man named Joe: {piece[-1]}"})}
    if "fragmented_story" in json.dumps(body):
        return {"text": json.dumps({"fragmented_story": " ".join(f"[{piece}]" for piece in PIECES)})}
    return {"text": reply_to(body)}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "joe.txt").write_text(STORY, encoding="utf-8")
    with ExitStack() as running:
        made = running.enter_context(serving("openai", reply))
        monkeypatch.setenv("OPENAI_BASE_URL", made.url)
        yield made


def same(path: Path) -> bytes:
    """Return a file's bytes without the version of the rule, which names where its model was called."""
    return re.sub(rb"(Matching llm:\S+, version )[0-9a-f]+", rb"\1", path.read_bytes())


def unplug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no key and no address; what the server is still asked is counted."""
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")


@dataclass(frozen=True)
class Told:
    """What a command printed."""

    stdout: str
    stderr: str


def call(*words: object, code: int = 0) -> Told:
    done = CliRunner().invoke(app, [str(word) for word in words])
    failed = done.exception if isinstance(done.exception, KathaError) else None
    assert (failed.exit_code if failed is not None else done.exit_code) == code, f"{done.output}{failed}"
    return Told(done.stdout, str(failed) if failed is not None else done.stderr)


def test_a_run_is_replayed_to_the_same_bytes(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    call("run", "joe.txt", *RUN, "--record", "joe.katha", "--out", "first")
    asked = server.number
    assert asked > 4
    unplug(monkeypatch)
    monkeypatch.setenv("KATHA_PLANNER", "caption")  # what the recording says goes over the environment
    call("run", "joe.txt", "--replay", "joe.katha", "--out", "second")
    assert server.number == asked
    for name in SAME:
        assert same(tmp_path / "first" / name) == same(tmp_path / "second" / name), name
    panels = [sorted(path.name for path in (tmp_path / out / "panels").iterdir()) for out in ("first", "second")]
    assert panels[0] == panels[1]
    made = read_recording(Path("joe.katha"))
    assert len(made.lines) == asked
    assert made.head["command"] == "run"
    assert made.head["settings"]["planner"] == PLANNER
    assert made.head["settings"]["seeds"] == [1]
    assert "base_url" not in json.dumps(made.head)


def test_a_plan_is_replayed_whatever_the_environment_says(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    first = call("plan", "joe.txt", "--planner", PLANNER, "--panels", 3, "--record", "plan.katha")
    unplug(monkeypatch)
    again = call("plan", "joe.txt", "--replay", "plan.katha")
    assert json.loads(again.stdout) == json.loads(first.stdout)
    assert server.number == 4
    flagged = call("plan", "joe.txt", "--replay", "plan.katha", "--planner", "rule", "--panels", 2)
    assert len(json.loads(flagged.stdout)["panels"]) == 2


def test_a_changed_story_is_a_sentence_that_names_the_change(server: Server) -> None:
    call("plan", "joe.txt", "--planner", PLANNER, "--panels", 3, "--record", "plan.katha")
    Path("joe.txt").write_text(STORY.replace("junkyard", "market"), encoding="utf-8")
    done = call("plan", "joe.txt", "--replay", "plan.katha", code=1)
    assert "plan.katha" in done.stderr
    said = " ".join(done.stderr.split())
    assert "the text of message 1 (user) differs" in said
    assert "junkyard" in said
    assert "market" in said


def test_what_was_paid_for_is_found_by_a_recording_and_by_another_verb(server: Server) -> None:
    call("run", "joe.txt", *RUN, "--out", "first")
    asked = server.number
    call("plan", "joe.txt", *RUN[:2], "--panels", 3)
    call("run", "joe.txt", *RUN, "--record", "joe.katha", "--out", "second")
    assert server.number == asked
    assert len(read_recording(Path("joe.katha")).lines) == asked


def test_a_run_that_is_there_is_packed_and_what_is_gone_is_named(server: Server, tmp_path: Path) -> None:
    call("run", "joe.txt", *RUN, "--out", "first")
    call("store", "pack", "first", "packed.katha")
    call("run", "joe.txt", *RUN, "--record", "joe.katha", "--out", "second")
    assert Path("packed.katha").read_bytes() == Path("joe.katha").read_bytes()
    keys = (tmp_path / "first" / "calls.txt").read_text().split()
    with Store(cache_folder()) as store:
        store.calls.drop(keys[0])
    told = call("store", "pack", "first", "packed.katha", code=1)
    assert keys[0] in told.stderr
    call("run", "joe.txt", "--mode", "base", "--seeds", 1, "--out", "of nobody")
    assert "asked no language model" in call("store", "pack", "of nobody", "none.katha", code=2).stderr
    Path("foreign.txt").write_text("mine")
    assert "is not a recording" in call("store", "pack", "first", "foreign.txt", code=2).stderr


def test_a_recording_is_listed(server: Server) -> None:
    call("plan", "joe.txt", "--planner", PLANNER, "--panels", 3, "--record", "plan.katha")
    told = call("store", "calls", "plan.katha").stdout
    assert told == call("store", "calls", "plan.katha").stdout
    head, *rows = told.splitlines()
    assert len(rows) == 4
    assert PLANNER in head
    assert sum("A man named Joe" in row for row in rows) == 3
    assert "is not a recording" in call("store", "calls", "joe.txt", code=2).stderr


def test_an_evaluation_is_replayed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    call("run", "joe.txt", *RUN, "--out", "boards/joe")
    eval_ = ("eval", "boards/joe/story.jsonl", "--boards", "first=boards", "--resamples", 9)
    call(*eval_, "--judge", JUDGE, "--record", "eval.katha", "--out", "one")
    asked = server.number
    unplug(monkeypatch)
    call(*eval_, "--replay", "eval.katha", "--out", "two")
    assert server.number == asked
    for name in ("answers.jsonl", "scores.json"):
        assert same(Path("one", name)) == same(Path("two", name))
    refused = call(*eval_, "--replay", "eval.katha", "--out", "three", "--batch", code=2)
    assert "--batch cannot be recorded" in refused.stderr


def test_python_has_both(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    first = katha.plan_story("joe.txt", planner=PLANNER, panels=3, record="plan.katha")
    unplug(monkeypatch)
    assert katha.plan_story("joe.txt", replay="plan.katha") == first
    with pytest.raises(UsageError, match="two commands"):
        katha.plan_story("joe.txt", record="plan.katha", replay="plan.katha")


def test_a_stranger_s_recording_names_no_code(server: Server) -> None:

    settings = {"planner": "os.path:join", "base_url": "http://evil.example"}
    write_bytes_atomic(Path("evil.katha"), Recording({"settings": settings, "command": "plan"}).packed())
    done = call("plan", "joe.txt", "--replay", "evil.katha", code=2)
    assert "The recording" in done.stderr
