"""The desk's server: who may talk to it, what it refuses, and that a run begun in one place goes on in another."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import signal
import socket
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import cli_child
import pytest
from desk import DeskProcess, Reply
from doubles import BlockRenderer
from PIL import Image
from starlette.testclient import TestClient
from terminal import Terminal
from typer.testing import CliRunner

from katha import run_story
from katha.agents.editor import names
from katha.agents.editor.editing import edit_board, read_board, version_of
from katha.agents.editor.edits import AddFrame, ChangeFrame
from katha.agents.state import Emit
from katha.app.cli.main import app
from katha.app.desk import desk as desks
from katha.app.desk.job import Reviewer, Worker
from katha.app.desk.room import Room
from katha.app.desk.server import make_application
from katha.app.desk.view import in_frames, sentences
from katha.app.needs import needs_of_run
from katha.app.reports import page as pages
from katha.config import Settings
from katha.errors import UsageError
from katha.pictures import ENDINGS
from katha.protocols import FrameRequest
from katha.registry import default_registry
from katha.schema import Event, Plan
from katha.store import Store
from katha.stories import story_of_text
from katha_sketch.story_reader import EnglishReader

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
ENDS = 5.0
"""Seconds in which a desk has to end."""


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
        ("rename", {"title": "Fox"}, "no run"),
        ("restore", {"key": "../../etc"}, "No board of that name"),
        ("delete", {"key": "."}, "No board of that name"),
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


def test_every_field_of_files_offers_what_is_read(desk: DeskProcess) -> None:
    page = desk.ask("GET", "").body.decode()
    forms = ('form id="import"', 'dialog id="own"')
    board, own = (re.search(rf'<{form}.*?type="file"[^>]*accept="([^"]*)"', page, re.DOTALL) for form in forms)
    assert board is not None
    assert own is not None
    assert {*board[1].split(",")} == {".storyboarder", ".pdf", ".cbz", ".epub", ".otioz", *ENDINGS}
    assert {*own[1].split(",")} == {"image/*", ".heic", ".heif"}


@pytest.mark.parametrize("name", ["..%2f..%2frun.json", "run.json", "0" * 64, "0" * 63, "%00"])
def test_only_a_run_s_own_pictures_are_given_out(drawn: DeskProcess, name: str) -> None:
    assert drawn.ask("GET", f"panels/{name}").status == 404
    assert drawn.ask("GET", f"static/{name}").status == 404


def test_a_story_is_read_and_priced_before_anything_is_drawn(desk: DeskProcess) -> None:
    draft = desk.post("read", **TOLD).json
    assert draft["cost"]["dollars"] == 0.0
    assert draft["cost"]["pictures"] > 0
    assert len(draft["board"]["cards"]) == 8  # as many as the text calls for
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


def test_what_draws_nothing_and_asks_nobody_needs_no_yes(tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS) as desk:
        assert desk.post("draw", story=TOLD).status == 200
        desk.until("asks")
        desk.post("choose", action="accept")
        assert desk.until("idle")["failed"] == ""
    (state,) = desk.home.glob("*/run.json")
    run = json.loads(state.read_text())
    run["config"] |= {"judges": ["none"], "mode": "base", "renderer": "openai:gpt-image-2.6-flare"}
    state.write_text(json.dumps(run))

    def price(**asked: object) -> tuple[bool, str]:
        told = desk.post("price", **asked).json
        return told["free"], told["words"].partition(" drawn")[0]

    caption, move = {"op": "change", "frame": 1, "caption": "The first."}, {"op": "move", "frame": 1, "to": 2}
    drawn = {"op": "change", "frame": 1, "prompt": "A red fox sleeps."}
    with DeskProcess(tmp_path, state.parent, OPENAI_API_KEY="x") as desk:
        assert not desk.page()["price"]["free"]
        for edit in (caption, move, {"op": "remove", "frame": 1}):
            assert price(what="edit", edits=[edit]) == (True, "")
            desk.done("edit", edits=[edit], base=desk.page()["version"])  # begun; the run is another by now
        assert price(what="edit", edits=[drawn]) == (False, "1 picture is")
        assert price(what="takes") == (False, "3 pictures are")
        reply = desk.post("edit", edits=[drawn], base=desk.page()["version"])
        assert (reply.status, "paid for" in reply.json["error"]) == (400, True)
        assert (desk.until("idle")["spent"]["calls"], desk.page()["price"]["judging"]) == (0, False)


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
    assert page["price"] == {"free": True, "picture": 0.0, "whole": 0.0, "judging": False, "words": ""}
    assert len(page["version"]) >= 3


def test_the_report_runs_in_a_sandbox(drawn: DeskProcess) -> None:
    reply = drawn.ask("GET", "report")
    assert reply.status == 200
    assert reply.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")


def test_an_export_is_a_download_with_a_name_of_its_own(drawn: DeskProcess) -> None:
    import pypdf

    reply = drawn.post("export", to="pdf", options={"layout": "book"})
    assert 'filename="The_Lion_and_the_Mouse.pdf"' in reply.headers["content-disposition"]
    assert len(pypdf.PdfReader(io.BytesIO(reply.body)).pages) >= 6
    folder = drawn.post("export", to="png")
    assert folder.headers["content-disposition"].endswith("_png.zip")
    drawn.post("rename", title="Löwe & Maus")
    try:
        renamed = drawn.post("export", to="shots").headers["content-disposition"]
        assert renamed.endswith("filename*=UTF-8''L%C3%B6we_Maus.csv")
    finally:
        drawn.post("rename", title="")
    logo = base64.b64encode(picture_file("PNG")).decode()
    options = {"layout": "list", "landscape": True, "date": "1 May"}
    listed = pypdf.PdfReader(io.BytesIO(drawn.post("export", to="pdf", options=options, logo=logo).body))
    box = listed.pages[0].mediabox
    assert box.width > box.height
    assert "1 May" in listed.pages[0].extract_text()
    without = drawn.post("export", to="pdf", options=options)
    assert len(listed.pages[0].images) == len(pypdf.PdfReader(io.BytesIO(without.body)).pages[0].images) + 1
    assert (
        "logo" in drawn.post("export", to="pdf", options=options, logo=base64.b64encode(b"no").decode()).json["error"]
    )
    assert drawn.post("export", to="pdf", options={"font": ["/etc/passwd"]}).status == 400
    assert drawn.post("export", to="../x").status == 400


def test_a_folder_that_is_taken_away_is_told_and_the_desk_goes_on(tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS, "--mode", "base") as desk:
        assert desk.done("draw", story=TOLD)["failed"] == ""
        version, (run,) = desk.page()["version"], [state.parent for state in desk.home.glob("*/run.json")]
        shutil.rmtree(run)
        refused = desk.post("edit", base=version, edits=[{"op": "remove", "frame": 1}])
        assert (refused.status, "holds no run" in refused.json["error"]) == (400, True)
        page = desk.page()
        assert page["board"] is None
        assert run.name in page["remarks"][0]
        assert "There is no board called" in desk.post("export", to="pdf").json["error"]
        assert not run.exists()
        assert desk.done("draw", story=TOLD)["failed"] == ""
        assert (desk.page()["board"]["finished"], desk.page()["remarks"]) == (True, [])


def test_a_folder_that_cannot_be_written_gets_a_sentence(tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS) as desk:
        desk.home.write_text("a file where the folder of the boards would be")
        reply = desk.post("draw", story=TOLD)
        assert (reply.status, "The system refused" in reply.json["error"]) == (500, True)
        assert desk.ask("GET", "api/runs").json == []


def test_a_mistake_of_a_plug_in_ends_its_request_and_an_ended_desk_waits_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside: list[bool] = []

    def read(self: desks.Desk, told: desks.PastedStory) -> desks.StoryDraft:
        beside.append(threading.current_thread().daemon)
        raise ZeroDivisionError("of a plug-in")

    monkeypatch.setattr(desks.Desk, "read", read)
    client = TestClient(make_application(Room(tmp_path, Settings())), raise_server_exceptions=False)
    reply = client.post("/api/read", json={"text": STORY})
    assert (reply.status_code, reply.json()["error"]) == (500, "Unexpected ZeroDivisionError: of a plug-in")
    assert beside == [True]  # reading a long text cannot be broken off: Ctrl-C leaves it


def send(desk: DeskProcess, data: bytes, kind: str = "image/png", **headers: str) -> Reply:
    """Send a picture as the page does."""
    own = {"content-type": kind, "origin": f"http://127.0.0.1:{desk.port}"}
    return desk.ask(
        "POST", "api/picture", data, own | {name.replace("_", "-"): value for name, value in headers.items()}
    )


def picture_file(kind: str, size: tuple[int, int] = (60, 40), **more: object) -> bytes:
    data = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert("RGB").save(data, kind, **more)
    return data.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few hundred bytes that says it has that many pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(9999))) + chunk(b"IEND", b"")
    )


def test_a_character_s_picture_is_kept_without_what_a_camera_wrote(drawn: DeskProcess) -> None:
    photograph = Image.Exif()
    photograph[0x010E] = "my house, 51.5 N"
    large = picture_file("JPEG", (3000, 1500), exif=photograph)
    assert b"my house" in large
    sha256 = send(drawn, large, "image/jpeg").json["sha256"]
    kept = drawn.ask("GET", f"panels/{sha256}").body
    assert b"my house" not in kept
    with Image.open(io.BytesIO(kept)) as image:
        assert (image.format, image.size) == ("PNG", (2048, 1024))
    page = drawn.page()
    name = page["board"]["cast"][0]["name"]
    sheet = {"op": "character", "name": name, "reference": sha256, "age": "old", "color": "red"}
    assert drawn.done("edit", base=page["version"], edits=[sheet])["failed"] == ""
    member = drawn.page()["board"]["cast"][0]
    assert (member["reference"], member["age"], member["color"]) == (sha256, "old", "red")
    assert "words alone" in " ".join(drawn.page()["remarks"])
    drawn.done("version", base=drawn.page()["version"], where="back")
    assert drawn.page()["board"]["cast"][0]["reference"] == ""


@pytest.mark.parametrize(
    ("data", "kind", "status", "said"),
    [
        (b"", "image/png", 400, "empty"),
        (b"GIF89a<script>alert(1)</script>", "image/gif", 400, "not a picture"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", 400, "not a picture"),
        (b"%PDF-1.7\n", "image/png", 400, "not a picture"),
        (bomb(60_000, 60_000), "image/png", 400, "more pixels"),
        (bomb(9_000, 9_000), "image/png", 400, "at most 40,000,000"),
        (bomb(4_000, 4_000), "image/png", 400, "damaged or cut short"),
        (picture_file("PNG", (600, 60)), "image/png", 400, "600x60 pixels"),
        (picture_file("PNG", (8, 8)), "image/png", 400, "8x8 pixels"),
        (picture_file("PNG"), "text/plain", 415, "image/"),
        (picture_file("PNG"), "application/json", 415, "image/"),
        (picture_file("PNG"), "", 415, "image/"),
    ],
    ids=lambda value: f"{len(value)} bytes" if isinstance(value, bytes) else None,
)
def test_what_is_no_picture_is_refused_in_a_sentence(
    drawn: DeskProcess, data: bytes, kind: str, status: int, said: str
) -> None:
    reply = send(drawn, data, kind)
    assert (reply.status, said in reply.json["error"]) == (status, True), reply.body
    assert drawn.page()["board"]["finished"]


def test_another_caption_loses_no_sentence_of_a_picture_that_stays(tmp_path: Path) -> None:
    told = """A crow sat in a tree. "What a fine bird!" said the fox. "Surely you sing better than all others."
The fox ate the cheese."""
    words = ("--planner", "rule", "--renderer", "sketch", "--judge", "none", "--mode", "base", "--seeds", "42")
    with DeskProcess(tmp_path, *words, doubles=False) as desk:
        assert desk.done("draw", story={"text": told})["failed"] == ""
        before = desk.page()
        said = next(card for card in before["board"]["cards"] if "Surely" in card["story"])
        edits = [{"op": "change", "frame": said["number"], "caption": "Fine words."}]
        assert desk.done("edit", base=before["version"], edits=edits)["failed"] == ""
        after = desk.page()
        assert [one["lost"] for one in after["board"]["story"]] == [one["lost"] for one in before["board"]["story"]]
        assert after["board"]["checks"][0] == before["board"]["checks"][0]
        edits = [{"op": "change", "frame": said["number"], "prompt": "A tree."}]
        assert desk.done("edit", base=after["version"], edits=edits)["failed"] == ""
        assert "Surely" in str(desk.page()["board"]["checks"][0]["points"])  # another picture may


def test_a_character_is_drawn_alone_where_that_is_free(drawn: DeskProcess, tmp_path: Path) -> None:
    assert drawn.ask("GET", "api/portrait?name=lion").status == 404  # `block` draws no panel
    words = ("--planner", "rule", "--renderer", "sketch", "--judge", "none", "--mode", "base", "--seeds", "42")
    with DeskProcess(tmp_path, *words, doubles=False) as desk:
        assert desk.done("draw", story=TOLD)["failed"] == ""
        names = [member["name"] for member in desk.page()["board"]["cast"]]
        found = [desk.ask("GET", f"api/portrait?name={name}").body for name in names]
        assert len(set(found)) == len(names) >= 2
        with Image.open(io.BytesIO(found[0])) as picture:
            assert picture.size == (384, 384)
        assert desk.ask("GET", "api/portrait?name=nobody").status == 404


def test_an_animation_is_no_reference(drawn: DeskProcess) -> None:
    frames = [Image.new("RGB", (40, 40), color) for color in ("red", "blue")]
    data = io.BytesIO()
    frames[0].save(data, "GIF", save_all=True, append_images=frames[1:])
    assert "animated" in send(drawn, data.getvalue(), "image/gif").json["error"]


def test_a_huge_upload_is_refused_with_and_without_a_length(drawn: DeskProcess) -> None:
    assert send(drawn, b"", content_length="20000001").status == 413
    pieces = (bytes(size) for size in (*[1_000_000] * 20, 1))
    assert send(drawn, pieces).status == 413  # type: ignore[arg-type]
    change = {"content-type": "application/json", "content-length": "1000001"}
    assert drawn.ask("POST", "api/edit", b"", change).status == 413  # a change is no upload


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"host": "katha.example"},
        {"sec_fetch_site": "cross-site"},
    ],
)
def test_a_stranger_uploads_nothing(drawn: DeskProcess, headers: dict[str, str]) -> None:
    (run,) = [path.parent for path in drawn.home.glob("*/run.json")]
    before = sorted(run.rglob("*"))
    assert send(drawn, picture_file("PNG", (77, 33)), **headers).status == 403
    assert drawn.ask("POST", "/api/picture", picture_file("PNG"), {"content-type": "image/png"}).status == 403
    assert sorted(run.rglob("*")) == before


def test_twenty_uploads_at_once_are_one_picture(drawn: DeskProcess) -> None:
    data, found = picture_file("PNG", (50, 70)), set()
    clicks = [threading.Thread(target=lambda: found.add(send(drawn, data).body)) for _ in range(20)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    assert len(found) == 1
    assert json.loads(found.pop()).keys() == {"sha256"}


@pytest.mark.parametrize("name", ["../../../etc/passwd", "<img src=x onerror=alert(1)>", "a/b\\c\x00d"])
def test_a_name_from_data_is_no_path_and_no_markup(drawn: DeskProcess, name: str) -> None:
    page = drawn.page()
    old = page["board"]["cast"][0]["name"]
    (run,) = [path.parent for path in drawn.home.glob("*/run.json")]
    done = drawn.done("edit", base=page["version"], edits=[{"op": "character", "name": old, "new_name": name}])
    assert done["failed"] == ""
    assert drawn.page()["board"]["cast"][0]["name"] == name
    assert [path for path in run.parent.rglob("*") if "passwd" in path.name or "onerror" in path.name] == []
    assert b"<img src=x onerror" not in drawn.ask("GET", "report").body
    for form in ("png", "svg", "storyboarder"):
        assert drawn.post("export", to=form).status in (200, 400)
    drawn.done("version", base=drawn.page()["version"], where="back")


def test_no_picture_without_a_run(desk: DeskProcess) -> None:
    reply = send(desk, picture_file("PNG"))
    assert (reply.status, "No run is open" in reply.json["error"]) == (400, True)


TOLD_BY_FOUR = (
    "A fox saw a crow with a cheese. The fox praised the crow. The crow sang and dropped it. The fox ate the cheese."
)


def file_of(name: str, data: bytes) -> dict[str, str]:
    return {"name": name, "data": base64.b64encode(data).decode()}


def shots(*colours: str) -> list[dict[str, str]]:
    """Pictures of frames, as a page sends them."""
    made = []
    for at, colour in enumerate(colours, 1):
        data = io.BytesIO()
        image = Image.linear_gradient("L").resize((90, 60)).convert("RGB")
        image.paste(colour, (5 * at, 5, 40, 40))
        image.save(data, "PNG")
        made.append(file_of(f"Shot {at}.png", data.getvalue()))
    return made


def test_a_board_that_is_drawn_already_is_judged_and_gets_a_bridge(tmp_path: Path) -> None:
    boards = [{"url": f"Shot {at}.png", "action": text} for at, text in enumerate(TOLD_BY_FOUR.split(". "), 1)]
    project = file_of("a folder/fox tale.storyboarder", json.dumps({"boards": boards}).encode())
    with DeskProcess(tmp_path, *WORDS) as desk:
        begun = desk.post("import", board={"files": [*shots("red", "green", "blue", "white"), project]})
        assert (begun.status, begun.json["cost"]["dollars"]) == (200, 0.0)
        desk.until("asks")
        assert desk.post("choose", action="accept").status == 200
        assert desk.until("idle")["failed"] == ""
        cards = desk.page()["board"]["cards"]
    assert [card["kind"] for card in cards].count("bridge") == 1
    assert [card["action"] for card in cards if card["kind"] == "scene"] == [item["action"] for item in boards]
    kept = sorted(
        path.relative_to(tmp_path / "home").as_posix() for path in (tmp_path / "home" / "fox_tale_board").rglob("*")
    )
    assert kept[0] == "fox_tale_board/fox tale.storyboarder"
    assert (tmp_path / "home" / "fox_tale" / "storyboard.json").is_file()


@pytest.mark.parametrize(
    ("board", "said"),
    [
        ({"files": []}, "at least 1"),
        ({"files": [{"name": "a.png", "data": 7}]}, "data"),
        ({"files": shots("red", "blue")}, "holds no words"),
        ({"files": shots("red"), "text": TOLD_BY_FOUR}, "1 frame"),
        ({"files": [file_of("../../.ssh/a.png", b"x")], "text": TOLD_BY_FOUR}, "not a name of a file"),
        ({"files": [file_of("C:\\..\\a.png", b"x")], "text": TOLD_BY_FOUR}, "not a name of a file"),
        ({"files": [file_of(".bashrc", b"x")], "text": TOLD_BY_FOUR}, "not a name of a file"),
        ({"files": [file_of("a\x00.png", b"x")], "text": TOLD_BY_FOUR}, "not a name of a file"),
        ({"files": [file_of("run.sh", b"x")], "text": TOLD_BY_FOUR}, "is of no board"),
        ({"files": [file_of("a/x.png", b"x"), file_of("b/X.png", b"x")], "text": TOLD_BY_FOUR}, "two files"),
        ({"files": [file_of("a.pdf", b"x"), file_of("b.png", b"x")], "text": TOLD_BY_FOUR}, "not one board"),
        ({"files": [file_of("a.pdf", b"%PDF-1.7 no")], "text": TOLD_BY_FOUR}, "pdf"),
        ({"files": [file_of("a.png", bomb(60_000, 60_000)), *shots("red")], "text": TOLD_BY_FOUR}, "more pixels"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_is_no_board_is_refused_and_nothing_is_kept(desk: DeskProcess, board: object, said: str) -> None:
    reply = desk.post("import", board=board)
    if reply.status == 200:  # its pictures are read as the run reads them
        assert said in desk.until("idle")["failed"]
        desk.run = ""
        return
    assert (reply.status in (400, 422), said in reply.json["error"]) == (True, True), reply.body
    assert not any(desk.home.glob("*_board"))


def test_what_judging_a_board_costs_is_asked_first(tmp_path: Path) -> None:
    words = ("--judge", "anthropic:claude-haiku-4-5")
    with DeskProcess(tmp_path, *words, ANTHROPIC_API_KEY="x") as desk:
        begun = desk.post("import", board={"files": shots("red", "blue", "green"), "text": TOLD_BY_FOUR}).json
        assert begun["run"] == ""
        cost = begun["cost"]
        assert cost["dollars"] is None or cost["dollars"] > 0
        assert not desk.ask("GET", "api/progress").json["running"]
        assert list(desk.home.iterdir()) == []


def test_going_on_asks_the_price_before_anything_is_paid(tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS) as desk:
        assert desk.post("draw", story=TOLD).status == 200
        desk.until("asks")
        desk.post("stop")
        desk.until("idle")
        (state,) = desk.home.glob("*/run.json")
    run = json.loads(state.read_text())
    run["config"] |= {"judges": ["anthropic:claude-haiku-4-5"]}
    state.write_text(json.dumps(run))
    with DeskProcess(tmp_path, state.parent, ANTHROPIC_API_KEY="x") as desk:
        price = desk.page()["price"]
        assert not price["free"]
        assert price["whole"] is None or price["whole"] > 0
        reply = desk.post("go-on")
        assert (reply.status, "paid for" in reply.json["error"]) == (400, True)
        assert desk.done("go-on", agreed=True)["failed"] != ""  # it is another run by now; nothing was asked


def test_twenty_imports_at_once_begin_one_run(tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS, SLOW="0.2") as desk:
        board, found = {"files": shots("red", "blue", "green", "white"), "text": TOLD_BY_FOUR}, list[int]()
        clicks = [
            threading.Thread(target=lambda: found.append(desk.post("import", board=board).status)) for _ in range(20)
        ]
        for click in clicks:
            click.start()
        for click in clicks:
            click.join()
        assert sorted(found) == [200, *[400] * 19]
        assert len(list(desk.home.glob("*_board"))) == 1
        desk.post("stop")
        desk.until("idle")


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
    scenes = len(json.loads((home / story.stem / "plan.json").read_text())["panels"])
    assert run["paid"]["frames_rendered"] == 2 * (scenes + 1)  # two boards and a bridge each, drawn once


def test_stop_waits_for_the_frame_under_way_and_for_no_other(tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS, SLOW="0.5") as desk:
        assert desk.post("draw", story=TOLD).status == 200
        while not desk.ask("GET", "api/progress").json["drawn"]:
            pass
        begun = time.monotonic()
        assert desk.post("stop").status == 200
        assert "Stopped" in desk.until("idle")["failed"]
        assert time.monotonic() - begun < 3, "16 pictures are to be drawn, of half a second each"
        (run,) = (tmp_path / "home").glob("*/run.json")
        assert len(list((run.parent / "panels").iterdir())) < 6
    with DeskProcess(tmp_path, *WORDS) as desk:
        desk.run = run.parent.name
        assert desk.post("go-on").status == 200
        desk.until("asks")
    assert len(list((run.parent / "panels").iterdir())) >= 16


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_desk_ends_at_once_while_a_frame_is_drawn_and_its_run_goes_on(tmp_path: Path, number: int) -> None:
    with DeskProcess(tmp_path, *WORDS, SLOW=str(10 * ENDS)) as desk:
        assert desk.post("draw", story=TOLD).status == 200
        seen, now = "", desk.ask("GET", "api/progress").json
        while not any(stage["stage"] == "render" for stage in now["stages"]):
            seen = now["ticks"]
            now = desk.ask("GET", f"api/progress?known={seen}").json
        begun = time.monotonic()
        assert desk.end(number) == 128 + number
        assert time.monotonic() - begun < ENDS
    (run,) = (tmp_path / "home").glob("*/run.json")
    with DeskProcess(tmp_path, *WORDS) as desk:
        desk.run = run.parent.name
        assert desk.post("go-on").status == 200
        desk.until("asks")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_desk_ends_at_once_while_a_story_is_read(tmp_path: Path, number: int) -> None:
    long = {"title": "", "text": "\n\n".join([STORY.partition("\n\n")[2]] * 60), "panels": None, "style": ""}
    with DeskProcess(tmp_path, *WORDS) as desk:
        asking = threading.Thread(target=lambda: suppressed(desk, long), daemon=True)
        asking.start()
        while not desk.ask("GET", "api/progress").json["running"]:
            pass
        begun = time.monotonic()
        ignored = signal.getsignal(number) == signal.SIG_IGN  # by whoever began the tests: it ends, not by the signal
        assert desk.end(number) == (0 if ignored else 128 + number)
        assert time.monotonic() - begun < ENDS
        asking.join()
    with DeskProcess(tmp_path, *WORDS) as desk:
        assert desk.post("read", **TOLD).status == 200


def suppressed(desk: DeskProcess, told: dict[str, object]) -> None:
    """Ask for a story to be read by a desk that is ended meanwhile."""
    with suppress(OSError, HTTPException):
        desk.post("read", **told)


def test_reading_tells_how_far_it_is_and_is_stopped(tmp_path: Path) -> None:
    desk = desks.Desk(tmp_path, Settings())
    said: list[str] = []
    whole = desk.draft(desks.PastedStory(text=STORY), emit=lambda event: said.append(event.get("message", "")))
    words = len(STORY.partition("\n\n")[2].split())
    assert said[0] == f"Reading {words:,} words."
    assert len(said) > 2

    again = desks.Desk(tmp_path, Settings())

    def stop() -> None:
        now = again.worker.progress
        if now.running and now.stages and not now.stopping:
            again.worker.stop()

    again.worker = Worker(stop)
    with pytest.raises(UsageError, match="Stopped"):
        again.read(desks.PastedStory(text=STORY))
    assert again.page().draft is None
    desk = desks.Desk(tmp_path, Settings())
    assert desk.read(desks.PastedStory(text=STORY)) == whole
    assert desk.page().draft == whole


def test_the_questions_of_a_read_story_are_counted_without_planning_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = needs_of_run(story_of_text(STORY), Settings())
    monkeypatch.setattr("katha.experiments.needs.story_reader", None)
    lines = desks.Desk(tmp_path, Settings()).draft(desks.PastedStory(text=STORY)).cost
    assert (lines.pictures, lines.answers) == tuple(
        sum(need.calls for need in plain.needs if need.kind == kind) for kind in ("pictures", "answers")
    )


def test_remarks_name_frames_as_the_cards_count(drawn: DeskProcess) -> None:
    page = drawn.page()
    scenes = {card["scene"]: card["number"] for card in page["board"]["cards"] if card["kind"] == "scene"}
    last = max(scenes)
    assert scenes[last] > last  # a bridge stands before it
    board = read_board(next(drawn.home.glob("*/storyboard.json")).parent).board
    said = in_frames(f"Nothing is asked of scenes 1 to 2, {last - 1} to {last}: one of the changed scenes.", board)
    told = f"{scenes[last - 1]} to {scenes[last]}"
    assert said == f"Nothing is asked of frames {scenes[1]} to {scenes[2]}, {told}: one of the changed frames."


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


class Knowing(cli_child.SlowRenderer):
    """A double that says what it has no picture for: nothing."""

    def not_drawn(self, request: FrameRequest) -> Sequence[str]:
        return ()


def test_a_change_of_a_long_board_does_only_what_it_touches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    cli_child.install(monkeypatch)
    run = tmp_path / "home" / "lion"
    default_registry("renderers").register("knowing")(Knowing)
    settings = Settings(renderer="knowing", judges=("pixel",), seeds=(42,), mode="base", size=(96, 64))
    run_story(STORY, settings, out=run)
    few = len(read_board(run).board.frames)
    edit_board(run, [AddFrame(at=1, prompt=f"The lion walks past {at} trees.") for at in range(60 - few)])
    desk, done, order = desks.Desk(run.parent, settings), Counter[str](), list[str]()
    desk.open("lion")

    def counted(owner: Any, name: str, what: str) -> None:
        real = getattr(owner, name)

        def call(*given: Any, **named: Any) -> Any:
            done[what] += 1
            order.append(what)
            return real(*given, **named)

        monkeypatch.setattr(owner, name, call)

    counted(BlockRenderer, "_draw", "drawn")
    counted(Knowing, "not_drawn", "asked what is not drawn")
    counted(EnglishReader, "acts", "prompts read")
    counted(EnglishReader, "linked", "boards read")
    counted(names, "write_bytes_atomic", "files named")
    counted(pages, "jpeg_uri", "thumbnails")
    counted(desks, "view_of", "views")

    def changed(frame: int, prompt: str) -> Counter[str]:
        """What changing one frame takes, with two looks at the page before and three after it."""
        shown = [desk.page(), desk.page()][0]
        done.clear()
        order.clear()
        desk.edit([ChangeFrame(frame=frame, prompt=prompt)], shown.version)
        desk.page()
        assert desk.worker.join()
        assert desk.progress.failed == ""
        assert len({desk.page().version, desk.page().version, version_of(run)} - {shown.version}) == 1
        return Counter(done)

    changed(30, "The lion sings under three stars.")
    board = read_board(run).board
    pictures = {path.name: path.stat().st_mtime_ns for path in (run / "panels").iterdir()}
    takes = changed(31, "The mouse dances under five stars.")
    assert order.index("drawn") < order.index("boards read")  # the picture is there before anything is judged
    assert takes["prompts read"] <= 3
    del takes["prompts read"]
    once = ("drawn", "asked what is not drawn", "boards read", "files named", "thumbnails", "views")
    assert takes == dict.fromkeys(once, 1)
    after = read_board(run).board
    assert [one == two for one, two in zip(board.frames, after.frames, strict=True)].count(False) == 1
    now = {path.name: path.stat().st_mtime_ns for path in (run / "panels").iterdir()}
    assert {name: now[name] for name in pictures} == pictures
    assert len(now) == len(pictures) + 1


def test_a_sentence_in_two_frames_names_both() -> None:
    text = "A fox saw a crow. The fox took the cheese from the crow and hid it in a cave. It rained."
    said = ("A fox saw a crow.", "The fox took the cheese from the crow.", "The fox hid it in a cave.", "It rained.")
    panels = [{"prompt": words, "caption": words} for words in said]
    plan = Plan.model_validate({"story_id": "s", "planner": "p", "panels": panels})
    assert [(one.scene, one.also) for one in sentences(text, plan)] == [(1, ()), (2, (3,)), (4, ())]


def test_a_sentence_leads_to_the_first_frame_that_tells_some_of_it() -> None:
    text = 'Mina rolled the dough. "Thin at the edges, thick in the middle," she said, and then she turned her back.'
    panels = [
        {"prompt": "Mina rolls the dough.", "caption": "Mina rolled the dough.", "source": text},
        {"prompt": "Mina turns the back.", "caption": "Then she turned her back.", "source": text},
    ]
    plan = Plan.model_validate({"story_id": "s", "planner": "p", "panels": panels})
    assert [sentence.scene for sentence in sentences(text, plan)] == [1, 2]


def test_a_first_version_of_a_frame_is_shown_and_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    png = picture_file("PNG")
    with Store(tmp_path / "cache") as store:
        draft, other = store.blobs.put(png), store.blobs.put(picture_file("PNG", (9, 9)))
    desk = desks.Desk(tmp_path / "home", Settings())

    def work(emit: Emit, ask: Reviewer) -> None:
        emit(Event(stage="render", kind="started", total=5))
        emit(Event(stage="render", kind="progress", message="scene 2, a first version", sha256=draft, scene=2))

    desk.worker.start("Drawing", work)
    assert desk.worker.join(20)
    assert desk.picture(draft) == png
    assert desk.picture(other) is None, "the cache's other pictures are nobody's here"
    progress = desk.progress
    assert (progress.scenes, progress.drawn, progress.stages[0].done) == ({2: draft}, (), 0)
    assert progress.stages[0].note == "scene 2, a first version"
