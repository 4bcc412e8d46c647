"""The desk's server: who may talk to it, what it refuses, and that a run begun in one place goes on in another."""

from __future__ import annotations

import io
import json
import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import DeskProcess
from terminal import Terminal
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import UsageError

STORY = """The Lion and the Mouse

A lion slept in the forest. A mouse ran over his paw and woke him. The angry lion caught the mouse.
The mouse begged, and the lion let her go. Hunters caught the lion in a net. The mouse bit the rope.
The happy lion thanked the mouse."""
WORDS = (
    *("--renderer", "block", "--judge", "pixel", "--seeds", "42,123", "--mode", "full_always"),
    "--size",
    "384x256",
)
TOLD = {"text": STORY}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskProcess]:
    """A desk with nothing on it yet."""
    with DeskProcess(tmp_path_factory.mktemp("desk"), *WORDS) as made:
        yield made


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskProcess]:
    """A desk on which a story was drawn and its bridge accepted."""
    with DeskProcess(tmp_path_factory.mktemp("drawn"), *WORDS) as made:
        assert made.post("draw", story=TOLD).status == 200
        made.until("asks")
        assert made.post("choose", action="accept").status == 200
        assert made.until("idle")["failed"] == ""
        yield made


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/api/board", {}),
        ("/wrong-token/api/board", {}),
        ("api/board", {"Host": "katha.example:80"}),
        ("api/board", {"Host": "127.0.0.1"}),
        ("api/board", {"Origin": "http://evil.example"}),
        ("api/board", {"Origin": "null"}),
        ("api/board", {"Sec-Fetch-Site": "cross-site"}),
        ("api/board", {"Sec-Fetch-Site": "same-site"}),
    ],
)
def test_strangers_are_refused(desk: DeskProcess, path: str, headers: dict[str, str]) -> None:
    reply = desk.ask("GET", path, headers=headers)
    assert reply.status == 403
    assert b"token" in reply.body or b"answers to" in reply.body
    assert desk.path.strip("/").encode() not in reply.body


def test_it_listens_on_loopback_alone(desk: DeskProcess) -> None:
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    own = [line[1] for line in listening if line[3] == "0A" and int(line[1].split(":")[1], 16) == desk.port]
    assert own == [f"0100007F:{desk.port:04X}"]


def test_tokens_are_long_and_differ(desk: DeskProcess, drawn: DeskProcess) -> None:
    assert re.fullmatch(r"/[A-Za-z0-9_-]{32}/", desk.path)
    assert desk.path != drawn.path


def test_every_answer_keeps_the_page_to_itself(desk: DeskProcess) -> None:
    for path in ("", "api/board", "static/desk.js"):
        headers = desk.ask("GET", path).headers
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'; connect-src 'self'"
        )
        assert (headers["referrer-policy"], headers["x-frame-options"]) == ("no-referrer", "DENY")
        assert headers["x-content-type-options"] == "nosniff"


def test_large_bodies_are_refused_with_and_without_a_length(desk: DeskProcess) -> None:
    headers = {"content-type": "application/json", "content-length": "1000001"}
    assert desk.ask("POST", "api/read", b"", headers).status == 413
    big = json.dumps({"text": "A fox ran. " * 200_000}).encode()
    chunked = desk.ask("POST", "api/read", None, {"content-type": "application/json", "content-length": "9" * 30})
    assert chunked.status in (400, 413)
    pieces = (big[at : at + 65536] for at in range(0, len(big), 65536))
    reply = desk.ask("POST", "api/read", pieces, {"content-type": "application/json"})  # type: ignore[arg-type]
    assert reply.status == 413


@pytest.mark.parametrize(
    ("action", "body", "said"),
    [
        ("read", {"text": "   "}, "empty"),
        ("read", {"text": "x", "panels": 1}, "panels"),
        ("read", {"text": STORY, "other": 1}, "other"),
        ("open", {"name": "../../etc"}, "no run"),
        ("open", {"name": "."}, "no run"),
        ("choose", {"action": "accept"}, "Nothing waits"),
        ("edit", {"edits": [{"op": "remove", "frame": 1}], "base": "x"}, "No run is open"),
        ("edit", {"edits": [{"op": "explode"}], "base": "x"}, "edits.0"),
        ("export", {"to": "pdf"}, "nothing to export"),
        ("go-on", {}, "No run is open"),
    ],
)
def test_what_cannot_be_done_gets_a_sentence(
    desk: DeskProcess, action: str, body: dict[str, object], said: str
) -> None:
    reply = desk.post(action, **body)
    assert reply.status in (400, 422)
    assert said in reply.json["error"]


def test_a_form_of_another_kind_is_refused(desk: DeskProcess) -> None:
    body = json.dumps(TOLD).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert desk.ask("POST", "api/read", body, {"content-type": kind}).status == 415


def test_wrong_use_gets_a_sentence(tmp_path: Path) -> None:
    nowhere = CliRunner().invoke(app, ["desk", str(tmp_path)])
    assert isinstance(nowhere.exception, UsageError)
    assert "is not the folder of a run" in str(nowhere.exception)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = ["desk", "--no-browser", "--home", str(tmp_path), "--port", str(taken.getsockname()[1])]
        refused = CliRunner().invoke(app, words)
    assert "cannot be used" in str(refused.exception)


@pytest.mark.parametrize("name", ["..%2f..%2frun.json", "run.json", "0" * 64, "0" * 63, "%00"])
def test_only_a_run_s_own_pictures_are_given_out(drawn: DeskProcess, name: str) -> None:
    assert drawn.ask("GET", f"panels/{name}").status == 404
    assert drawn.ask("GET", f"static/{name}").status == 404


def test_a_story_is_read_and_priced_before_anything_is_drawn(desk: DeskProcess) -> None:
    draft = desk.post("read", **TOLD).json
    assert draft["cost"]["dollars"] == 0.0
    assert draft["cost"]["pictures"] > 0
    assert len(draft["board"]["cards"]) == 5
    assert [item["text"] for item in draft["board"]["story"]][:2] == [
        "A lion slept in the forest.",
        "A mouse ran over his paw and woke him.",
    ]
    assert not any((Path(desk.process.args[-1])).glob("*"))  # type: ignore[index, arg-type]


def test_what_is_paid_for_needs_a_yes(tmp_path: Path) -> None:
    words = ("--renderer", "openai:gpt-image-1", "--judge", "anthropic:claude-haiku-4-5")
    with DeskProcess(tmp_path, *words, OPENAI_API_KEY="x", ANTHROPIC_API_KEY="x") as desk:
        cost = desk.post("read", **TOLD).json["cost"]
        assert cost["dollars"] is None or cost["dollars"] > 0
        reply = desk.post("draw", story=TOLD)
        assert reply.status == 400
        assert "paid for" in reply.json["error"]
    assert not (tmp_path / "home").exists()


def test_a_drawn_board_shows_everything(drawn: DeskProcess) -> None:
    page = drawn.page()
    board = page["board"]
    assert (board["finished"], board["status"]) == (True, "finished")
    assert [card["kind"] for card in board["cards"]].count("bridge") == 1
    for card in board["cards"]:
        picture = drawn.ask("GET", f"panels/{card['sha256']}?small=1")
        assert (picture.status, picture.headers["content-type"]) == (200, "image/jpeg")
    assert board["weakest"]["bridge"]
    assert all(item["question"] and item["story"] for item in board["weakest"]["asked"])
    assert board["numbers"]["questions"] > 0
    assert page["price"] == {"free": True, "picture": 0.0}
    assert len(page["version"]) >= 3


def test_the_report_runs_in_a_sandbox(drawn: DeskProcess) -> None:
    reply = drawn.ask("GET", "report")
    assert reply.status == 200
    assert reply.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")


def test_an_export_is_a_download_with_a_name_of_its_own(drawn: DeskProcess) -> None:
    import pypdf

    reply = drawn.post("export", to="pdf", options={"layout": "book"})
    assert reply.headers["content-disposition"] == 'attachment; filename="The_Lion_and_the_Mouse.pdf"'
    assert len(pypdf.PdfReader(io.BytesIO(reply.body)).pages) >= 6
    folder = drawn.post("export", to="png")
    assert folder.headers["content-disposition"].endswith('_png.zip"')
    assert drawn.post("export", to="pdf", options={"font": ["/etc/passwd"]}).status == 400
    assert drawn.post("export", to="../x").status == 400


def test_twenty_clicks_at_once_begin_one_piece_of_work(tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS, SLOW="0.2") as desk:
        found: list[int] = []
        clicks = [
            threading.Thread(target=lambda: found.append(desk.post("draw", story=TOLD).status)) for _ in range(20)
        ]
        for click in clicks:
            click.start()
        for click in clicks:
            click.join()
        assert sorted(found) == [200, *[400] * 19]
        assert desk.post("stop").status == 200
        assert "Stopped" in desk.until("idle")["failed"]
        assert len(list((tmp_path / "home").glob("*/run.json"))) == 1


def test_a_stopped_run_goes_on_here_and_in_the_terminal(tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS) as desk:
        assert desk.post("draw", story=TOLD).status == 200
        desk.until("asks")
        review = desk.page()["review"]
        assert review["takes"][0]["proposed"]
        desk.post("stop")
        assert "Stopped" in desk.until("idle")["failed"]
        assert desk.post("go-on").status == 200
        desk.until("asks")
        assert desk.page()["review"] == review
        assert desk.end(signal.SIGKILL) == -signal.SIGKILL
    home = tmp_path / "home"
    (story,) = home.glob("*.txt")
    words = ("run", story, *WORDS, "--review", "--out", home / story.stem)
    with Terminal(words, tmp_path) as at:
        at.until("Your choice")
        at.type("r")
        at.until("Which frame")
        at.type("d")
        assert at.end() == 0
    run = json.loads((home / story.stem / "run.json").read_text())
    assert run["status"] == "finished"
    assert run["paid"]["frames_rendered"] == 12  # two boards and a bridge each, drawn once


def test_a_run_of_the_terminal_goes_on_at_the_desk(tmp_path: Path) -> None:
    story = tmp_path / "lion.txt"
    story.write_text(STORY)
    with Terminal(("run", story, *WORDS, "--review", "--out", tmp_path / "home" / "lion"), tmp_path) as at:
        at.until("Your choice")
        assert at.interrupt() == 130
    with DeskProcess(tmp_path, tmp_path / "home" / "lion") as desk:
        board = desk.page()["board"]
        assert not board["finished"]
        desk.post("go-on")
        desk.until("asks")
        name = desk.page()["review"]["takes"][1]["name"]
        desk.post("choose", action="choose", candidate=name)
        assert desk.until("idle")["failed"] == ""
        assert desk.page()["board"]["finished"]
    decision = json.loads((tmp_path / "home" / "lion" / "candidates.json").read_text())["decision"]
    assert (decision["inserted"], decision["reviewed"]) == (name, True)
