"""The graph that LangGraph's server serves: a run begun there goes on in a terminal, and one begun elsewhere there."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError
from typer.testing import CliRunner

from katha.agents.folder import RunFolder
from katha.agents.state import ReviewChoice, ReviewRequest
from katha.app.cli.main import app
from katha.app.drawing import resume_run, run_story
from katha.app.served import make_graph
from katha.errors import InputFileError, KathaError, UsageError

ROOT = Path(__file__).parents[2]
STORY = (ROOT / "examples" / "fox_and_crow.txt").read_text()
CONTEXT = {"seeds": [42], "panels": 4, "mode": "full_always"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Client:
    """One thread of the graph, as a client of the server has it."""

    def __init__(self) -> None:
        self._graph = make_graph()
        self._graph.checkpointer = InMemorySaver()
        self._config: Any = {"configurable": {"thread_id": "one"}}

    def say(self, given: object, context: Any = None) -> dict[str, Any]:
        found: dict[str, Any] = self._graph.invoke(given, self._config, context=context)  # type: ignore[call-overload]
        return found

    def answer(self, **choice: object) -> dict[str, Any]:
        return self.say(Command(resume=choice))

    def asked(self) -> Any:
        (task,) = self._graph.get_state(self._config).tasks
        (question,) = task.interrupts
        return question


def leave(request: ReviewRequest) -> ReviewChoice:
    raise KeyboardInterrupt


def test_a_review_goes_through_every_answer_and_asks_again_where_one_cannot_be_followed(home: Path) -> None:
    client = Client()
    client.say({"story": STORY, "title": "Fox"}, CONTEXT)
    question = client.asked()
    assert question.response_schema["properties"]["candidate"]["enum"] == ["bridge:42", None]
    assert Path(question.value["pictures"]["bridge:42"]).is_file()
    client.answer(action="burn")
    assert "action" in client.asked().value["wrong"]
    client.answer(action="choose", candidate="bridge:7")
    assert "bridge:7" in client.asked().value["wrong"]
    client.answer(action="seed")
    assert len(client.asked().value["candidates"]) == 2
    client.answer(action="edit", prompt="In the forest. The fox jumps.")
    assert client.asked().value["prompt"] == "In the forest. The fox jumps."
    done = client.answer(action="reject")
    assert (done["name"], done["status"], done["accepted"], done["frames"]) == ("Fox", "finished", False, 4)
    assert Path(done["report"]).is_file()
    again = client.say({"story": STORY, "title": "Fox"}, {**CONTEXT, "review": False})
    assert (again["name"], again["status"], again["frames"]) == ("Fox_2", "finished", 5)


def test_a_run_of_the_server_is_answered_elsewhere_and_the_late_answer_changes_nothing(home: Path) -> None:
    client = Client()
    client.say({"story": STORY, "title": "Fox"}, CONTEXT)
    ended = resume_run("out/Fox", reviewer=lambda request: ReviewChoice("reject"))
    board = (home / "out/Fox/storyboard.json").read_bytes()
    done = client.answer(action="accept")
    assert (done["accepted"], done["reason"]) == (False, ended.candidates.decision.reason)
    assert (home / "out/Fox/storyboard.json").read_bytes() == board


def test_a_run_that_was_begun_in_the_terminal_is_answered_at_the_server(home: Path) -> None:
    (home / "fox.txt").write_text(STORY)
    changes: dict[str, Any] = {"seeds": (42,), "mode": "full_always", "review": True}
    with pytest.raises(KeyboardInterrupt):
        run_story(home / "fox.txt", out="out/terminal", reviewer=leave, **changes)
    assert (state := RunFolder(home / "out/terminal").read()) is not None
    assert state.status == "running"
    client = Client()
    client.say({"run": "terminal"})
    assert client.answer(action="accept")["accepted"]
    told = CliRunner().invoke(app, ["run", "out/terminal", "--json"], catch_exceptions=False)
    assert json.loads(told.stdout)["accepted"]
    with pytest.raises(UsageError, match="as it was begun"):
        CliRunner().invoke(app, ["run", "out/terminal", "--panels", "4"], catch_exceptions=False)


def test_what_is_paid_for_is_asked_about_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_JUDGES", "anthropic:claude-haiku-4-5")
    client = Client()
    client.say({"story": STORY, "title": "Fox"}, CONTEXT)
    assert "claude-haiku-4-5" in str(client.asked().value["cost"])
    assert client.asked().response_schema["required"] == ["agreed"]
    client.answer(agreed="perhaps")
    assert "agreed" in client.asked().value["wrong"]
    assert client.answer(agreed=False)["status"] == "refused"
    assert not (home / "out/Fox").exists()


@pytest.mark.parametrize("given", [{}, {"story": " "}, {"story": STORY, "run": "Fox"}, {"story": "?"}])
def test_what_is_no_story_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(KathaError):
        Client().say(given)


@pytest.mark.parametrize("name", ["../Fox", "/etc", "nothing", "a" * 500])
def test_a_run_is_a_name_in_the_folder(name: str) -> None:
    with pytest.raises(InputFileError, match="no run of that name"):
        Client().say({"run": name})


@pytest.mark.parametrize(
    "context", [{"renderer": "my.module:Class"}, {"mode": "/etc/passwd"}, {"panels": 99}, {"seeds": list(range(9))}]
)
def test_a_client_names_no_code_and_no_file(context: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Client().say({"story": STORY}, context)


GUARD = """
import os, socket
def _noted(event, given):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        place = given[1] if event != "socket.getaddrinfo" else (given[0],)
        host = place[0] if isinstance(place, tuple) else None
        if host not in (None, "", "127.0.0.1", "::1", "localhost", "0.0.0.0", b"127.0.0.1"):
            with open(os.environ["KATHA_TEST_OUTSIDE"], "a") as file:
                file.write(f"{event} {place}\\n")
import sys
sys.addaudithook(_noted)
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Server:
    """`langgraph dev` over the repository's own configuration."""

    def __init__(self, base: str) -> None:
        self._base, self._open = base, build_opener(ProxyHandler({})).open

    def ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._base}{path}", data, {"Content-Type": "application/json"})
        with self._open(request, timeout=50) as reply:
            return json.loads(reply.read())

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            try:
                self.ask("/ok")
                return
            except URLError:
                time.sleep(0.1)
        raise AssertionError("The server ended.")


@pytest.fixture
def trap() -> Iterator[socket.socket]:
    """A proxy that nothing may ask: what goes out by HTTP goes to it, whichever event loop sends it."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        one.setblocking(False)
        yield one


@pytest.fixture
def served(home: Path, trap: socket.socket) -> Iterator[tuple[Server, Path]]:
    python = os.environ.get("LANGGRAPH_PYTHON", sys.executable if find_spec("langgraph_api") else "")
    if not python:
        pytest.skip("LANGGRAPH_PYTHON names no environment with langgraph-cli[inmem] and katha; .ci/run makes one")
    config = json.loads((ROOT / "langgraph.json").read_text())
    (home / "langgraph.json").write_text(json.dumps(config))
    (home / "guard").mkdir()
    (home / "guard" / "sitecustomize.py").write_text(GUARD)
    outside, port = home / "outside.txt", free_port()
    environment = {**os.environ, "LANGGRAPH_CLI_NO_ANALYTICS": "1", "KATHA_TEST_OUTSIDE": str(outside)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(home / "guard"), os.environ.get("PYTHONPATH")]))
    environment |= {name: f"http://127.0.0.1:{trap.getsockname()[1]}" for name in ("HTTP_PROXY", "HTTPS_PROXY")}
    environment["NO_PROXY"] = "127.0.0.1,localhost"
    words = ["-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)]
    with (home / "server.txt").open("wb") as log:
        process = subprocess.Popen([python, *words], cwd=home, env=environment, stdout=log, stderr=log)
        try:
            server = Server(f"http://127.0.0.1:{port}")
            server.wait(process)
            yield server, outside
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def test_langgraph_s_own_server_begins_asks_and_the_terminal_ends(
    served: tuple[Server, Path], home: Path, trap: socket.socket
) -> None:
    server, outside = served
    schemas = server.ask("/assistants/search", {"graph_id": "katha"})
    told = server.ask(f"/assistants/{schemas[0]['assistant_id']}/schemas")
    assert set(told["context_schema"]["properties"]) == {"panels", "style", "mode", "seeds", "review"}
    assert set(told["input_schema"]["properties"]) == {"story", "title", "run"}
    drawn = server.ask(f"/assistants/{schemas[0]['assistant_id']}/graph")
    assert {"begin", "price", "draw", "review"} <= {node["id"] for node in drawn["nodes"]}
    one, two = (server.ask("/threads", {})["thread_id"] for _ in range(2))
    begun = {"assistant_id": "katha", "input": {"story": STORY, "title": "Fox"}, "context": CONTEXT}
    for thread in (one, two):
        server.ask(f"/threads/{thread}/runs/wait", begun)
    (task,) = server.ask(f"/threads/{one}/state")["tasks"]
    (question,) = task["interrupts"]
    assert question["response_schema"]["properties"]["action"]["enum"][0] == "accept"
    done = server.ask(
        f"/threads/{one}/runs/wait", {"assistant_id": "katha", "command": {"resume": {"action": "accept"}}}
    )
    assert (done["status"], done["accepted"]) == ("finished", True)
    ended = resume_run(home / "out" / "Fox_2", reviewer=lambda request: ReviewChoice("reject"))
    assert not ended.candidates.decision.accepted
    late = server.ask(
        f"/threads/{two}/runs/wait", {"assistant_id": "katha", "command": {"resume": {"action": "accept"}}}
    )
    assert (late["name"], late["accepted"]) == ("Fox_2", False)
    assert not outside.exists(), outside.read_text()
    with pytest.raises(BlockingIOError):
        trap.accept()
