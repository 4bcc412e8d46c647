"""`katha mcp` as the SDK's own client uses it, over standard input and output of a process."""

from __future__ import annotations

import asyncio
import base64
import io
import sys
import zipfile
from pathlib import Path

import pytest
from assistant import Assistant, pictures_of, talk, text_of
from mcp_types import ElicitResult
from PIL import Image
from typer.testing import CliRunner

from katha.agents.editor.editing import read_board
from katha.app.cli.main import app
from katha.errors import MissingExtraError
from katha.installing import install_line
from katha.jsonio import sha256_hex

STORY = """A lion slept in the forest. A mouse ran over his paw and woke him. The angry lion caught the mouse.
The mouse begged, and the lion let her go. Hunters caught the lion in a net. The mouse bit the rope.
The happy lion thanked the mouse."""
WORDS = ("--renderer", "block", "--judge", "pixel", "--seeds", "42,123", "--size", "384x256")
TOLD = {"story": STORY, "title": "The Lion"}
IN_FIVE = {**TOLD, "panels": 5}
YES, NO = ElicitResult(action="accept", content={"insert": True, "seed": 123}), ElicitResult(action="decline")


def test_a_story_becomes_an_edited_and_exported_board(tmp_path: Path) -> None:
    async def act(at: Assistant) -> None:
        planned = await at.done("plan", **IN_FIVE)
        assert (len(planned["frames"]), planned["dollars"]) == (5, 0.0)
        assert not (tmp_path / "root").exists()
        drawn = await at.call("run", **IN_FIVE, repair=False)
        board = drawn.structured_content or {}
        assert (board["run"], board["version"], len(board["frames"])) == ("The_Lion", "001", 5)
        assert at.heard == sorted(set(at.heard))
        assert at.heard[-1] > 20
        shown = pictures_of(drawn)
        assert len(shown) == 5
        with Image.open(io.BytesIO(base64.b64decode(shown[0].data))) as picture:
            assert (picture.format, max(picture.size)) == ("JPEG", 384)

        cut = await at.call("weakest", run="The_Lion")
        left, right = (cut.structured_content or {})["weakest"]["scenes"]
        assert len(pictures_of(cut)) == 2
        assert f"between scenes {left} and {right}" in text_of(cut)
        proposed = await at.done("propose_bridge", run="The_Lion")
        assert [proposed["version"], proposed["scenes"]] == ["001", [left, right]]
        assert {item["seed"] for item in proposed["proposals"]} == {42, 123}

        accepted = await at.done("accept", run="The_Lion", seed=42)  # and the person behind the client says another one
        assert "seed 42" in at.asked[0]
        assert [item["kind"] for item in accepted["frames"]].count("bridge") == 1
        assert next(item["seed"] for item in accepted["frames"] if item["kind"] == "bridge") == 123
        plain = await at.done("undo", run="The_Lion")
        assert ([item["kind"] for item in plain["frames"]], plain["version"]) == (["scene"] * 5, "001")
        assert (await at.done("forward", run="The_Lion"))["frames"] == accepted["frames"]
        takes = (await at.done("redo", run="The_Lion", frame=1))["takes"]
        assert [item["on_the_board"] for item in takes["takes"]] == [True, False, False, False]
        seed = takes["takes"][2]["seed"]
        redone = await at.done("redo", run="The_Lion", frame=1, seed=seed, version=takes["version"])
        assert redone["board"]["frames"][0]["seed"] == seed
        undone = await at.done("undo", run="The_Lion")
        assert undone["version"] == accepted["version"]
        assert (await at.done("forward", run="The_Lion"))["version"] == redone["board"]["version"]
        assert "Nothing was made from version" in await at.refused("forward", run="The_Lion")
        book = await at.done("export", run="The_Lion", to="cbz")
        assert zipfile.is_zipfile(book["path"])
        frames = [await at.done("export", run="The_Lion", to="png") for _ in range(2)]
        assert len({item["path"] for item in frames}) == 2

    talk(tmp_path, *WORDS, act=act, answers=[YES])
    run = tmp_path / "root" / "The_Lion"
    assert len(read_board(run).board.frames) == 6
    assert {path.parent for path in (run / "exports").iterdir()} == {run / "exports"}


def test_a_person_says_no_and_a_client_that_cannot_ask_names_the_bridge(tmp_path: Path) -> None:
    async def decline(at: Assistant) -> None:
        await at.done("run", **IN_FIVE, repair=False)
        await at.done("propose_bridge", run="The_Lion")
        result = await at.call("accept", run="The_Lion")
        assert "stays as it was" in text_of(result)
        assert len(at.asked) == 1

    async def alone(at: Assistant) -> None:
        assert "Call propose_bridge first" in await at.refused("accept", run="The_Lion", seed=42)
        await at.done("propose_bridge", run="The_Lion")
        assert "Name the bridge by its seed" in await at.refused("accept", run="The_Lion")
        assert "Proposed seeds: " in await at.refused("accept", run="The_Lion", seed=7)
        assert "changed in the meantime" in await at.refused("accept", run="The_Lion", seed=42, version="000")
        assert len((await at.done("accept", run="The_Lion", seed=42))["frames"]) == 6

    talk(tmp_path, *WORDS, act=decline, mode="legacy", answers=[NO])
    assert len(read_board(tmp_path / "root" / "The_Lion").board.frames) == 5
    talk(tmp_path, *WORDS, act=alone)


def test_pictures_that_exist_are_judged_where_they_lie_and_nothing_outside_is_touched(tmp_path: Path) -> None:
    theirs = tmp_path / "root" / "theirs"
    theirs.mkdir(parents=True)
    for number in range(1, 6):
        Image.linear_gradient("L").rotate(40 * number).convert("RGB").resize((96, 64)).save(theirs / f"{number}.png")
    (theirs / "cover.png").write_bytes(b"no frame")
    kept = {path.name: path.read_bytes() for path in theirs.iterdir()}
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "1.png").write_bytes(kept["1.png"])
    (tmp_path / "root" / "link").symlink_to(outside)
    linked = tmp_path / "root" / "linked"
    linked.mkdir()
    for number in (1, 2, 3):
        (linked / f"{number}.png").symlink_to(outside / "1.png")

    async def act(at: Assistant) -> None:
        for place in ("../outside", str(outside), "link", "nowhere", "a\0b", "x" * 5000):
            assert "not a folder below" in await at.refused("judge", folder=place, **TOLD)
        for name in ("../outside", ".", "", "link", "theirs", "x" * 200):
            assert "There is no run" in await at.refused("weakest", run=name)
            assert "There is no run" in await at.refused("export", run=name, to="cbz")
        assert "There is no export 'exe'" in await at.refused("export", run="The_Lion", to="exe")
        assert "layout" in await at.refused("export", run="The_Lion", to="pdf", layout="../x")
        assert await at.refused("plan", story=" ") == "The story is empty. Paste a story of a few sentences."
        assert await at.refused("plan") == "plan: story: Field required."
        assert "panels" in await at.refused("plan", story=STORY, panels=900)
        assert "no argument 'panel'. Known: story, title, panels" in await at.refused("plan", story=STORY, panel=8)
        assert "The story is empty" in await at.refused("run", story="")
        assert "a link out of its folder" in await at.refused("judge", folder="linked", **TOLD)
        assert {path.name for path in (tmp_path / "root").iterdir()} == {"theirs", "link", "linked"}
        judged = await at.done("judge", folder="theirs", **TOLD)
        assert any("Left out of" in remark and "cover.png" in remark for remark in judged["remarks"])
        assert (judged["run"], len(judged["frames"])) == ("The_Lion", 5)
        assert len((await at.done("propose_bridge", run="The_Lion"))["proposals"]) == 2

    talk(tmp_path, *WORDS, act=act)
    assert {path.name: path.read_bytes() for path in theirs.iterdir()} == kept
    assert [path.name for path in outside.iterdir()] == ["1.png"]
    board = read_board(tmp_path / "root" / "The_Lion").board
    assert [frame.sha256 for frame in board.frames] == [sha256_hex(kept[f"{number}.png"]) for number in range(1, 6)]


def test_nothing_is_paid_for_without_a_person_or_a_limit(tmp_path: Path) -> None:
    words = ("--renderer", "openai:gpt-image-1", "--judge", "anthropic:claude-haiku-4-5")
    keys = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x"}
    theirs = tmp_path / "root" / "theirs"
    theirs.mkdir(parents=True)
    for number in (1, 2):
        Image.linear_gradient("L").save(theirs / f"{number}.png")

    async def alone(at: Assistant) -> None:
        assert "Start the server with a limit" in await at.refused("run", **IN_FIVE)
        assert "Start the server with a limit" in await at.refused("judge", folder="theirs", **TOLD)

    async def asked(at: Assistant) -> None:
        assert "not agreed to" in await at.refused("run", **IN_FIVE)
        assert "costs" in at.asked[0]

    talk(tmp_path, *words, act=alone, **keys)
    refusal = ElicitResult(action="accept", content={"agreed": False})
    talk(tmp_path, *words, act=asked, answers=[refusal], **keys)
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["theirs"]


def test_a_call_that_is_given_up_stops_the_work_and_it_goes_on_later(tmp_path: Path) -> None:
    async def act(at: Assistant) -> None:
        running = asyncio.create_task(at.call("run", **IN_FIVE))
        await at.waiting.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await at.done("plan", **IN_FIVE))["dollars"] == 0.0  # once the work has ended
        done = await at.done("run", go_on="The_Lion")
        assert len(done["frames"]) >= 5

    talk(tmp_path, *WORDS, act=act, SLOW="0.2")
    assert read_board(tmp_path / "root" / "The_Lion").version == "001"
    assert [path.name for path in (tmp_path / "root").glob("*/run.json")] == ["run.json"]


def test_calls_at_once_wait_for_each_other_and_wrong_arguments_change_nothing(tmp_path: Path) -> None:
    async def act(at: Assistant) -> None:
        both = await asyncio.gather(
            at.client.call_tool("run", {**IN_FIVE, "repair": False}),
            at.client.call_tool("run", {"story": STORY, "title": "../../etc/The <b>\n", "repair": False}),
        )
        assert [(item.structured_content or {})["run"] for item in both] == ["The_Lion", "etc_The_b"]
        for scenes in ([0, 1], [2, 1], [1, 3], [-1, 2**70]):
            assert "are no neighbours" in await at.refused("propose_bridge", run="The_Lion", scenes=scenes)
        for wrong in ({"frame": 99}, {"frame": 1, "seed": 2**70}, {"frame": 1, "seed": -5}, {"frame": "one"}):
            await at.refused("redo", run="The_Lion", **wrong)
        assert "changed in the meantime" in await at.refused("redo", run="The_Lion", frame=1, version="../../x")
        assert "There is no run" in await at.refused("export", run="The_Lion/../The_Lion", to="cbz")
        assert "There is no run" in await at.refused("run", go_on="../x")
        redone, _, shown = await asyncio.gather(
            at.client.call_tool("redo", {"run": "The_Lion", "frame": 2, "seed": 7}),
            at.client.call_tool("weakest", {"run": "etc_The_b"}),
            at.client.call_tool("export", {"run": "The_Lion", "to": "cbz"}),
        )
        assert not redone.is_error
        assert not shown.is_error
        assert (await at.done("undo", run="The_Lion"))["version"] == "001"

    talk(tmp_path, *WORDS, act=act)
    assert {path.name for path in (tmp_path / "root").iterdir() if path.is_dir()} == {"The_Lion", "etc_The_b"}
    assert read_board(tmp_path / "root" / "The_Lion").version == "001"


def test_wrong_use_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    nowhere = CliRunner().invoke(app, ["mcp", str(tmp_path / "file")])
    assert "is not a folder" in str(nowhere.exception)
    for name in [name for name in sys.modules if name.startswith(("katha.app.mcp", "mcp."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    without = CliRunner().invoke(app, ["mcp", str(tmp_path)])
    assert isinstance(without.exception, MissingExtraError)
    assert install_line("mcp") in str(without.exception)
