"""A whole run with a drawn board: sources beside the pictures, a bridge from its neighbours, a redraw that goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from drawn_boards import Scripted, Sees, frame, plan, story, usual
from PIL import Image
from typer.testing import CliRunner

from katha.agents.context import Plugins
from katha.agents.editor.editing import edit_board, keep_drawing
from katha.agents.editor.edits import AmendFrame, ChangeCharacter, GivePicture, TakeFrame
from katha.agents.editor.versions import undo
from katha.agents.run import run_story
from katha.app.cli.main import app
from katha.app.exports.formats import export
from katha.app.views import views_of
from katha.config import Settings
from katha.errors import InputFileError, RenderError, UsageError
from katha.models.base import Turn
from katha.renderers.vector import VectorRenderer
from katha.schema import Event
from katha.store import Store
from katha_sketch.planner.rule import RulePlanner
from katha_sketch.reader.similarity import ReaderSimilarity

PATCH = "<<<<<<< SEARCH\n#ddddee\n=======\n#aaffaa\n>>>>>>> REPLACE"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    def answer(turns: Sequence[Turn]) -> str:
        last = turns[-1].text
        if last.startswith("This is a frame of the board, finished"):
            return PATCH if "steam" in last else "FINE"
        if last.startswith("Draw a frame between"):
            return f"```svg\n{frame(600, '#ddddee', 'f-steam')}\n```"
        if last.startswith("Draw frame 2"):
            return f"```svg\n{frame(200, '#ccbbaa' if 'Composition' not in last else '#bbccaa')}\n```"
        return usual(turns)

    made = Scripted(answer)
    monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, **__: made)
    return made


def test_a_run_keeps_sources_and_repairs_by_a_bridge(
    model: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    config = Settings(
        renderer="vector:openai:any", seeds=(42,), answers="free", matching="exact-set", size=(640, 360), mode="full"
    )
    plugins = Plugins(RulePlanner(), VectorRenderer("openai:any"), {"sees": Sees()}, ReaderSimilarity())
    out = tmp_path / "run"
    result = run_story(story(), config, out, plan=plan(), plugins=plugins)
    assert result.candidates.decision.accepted, result.candidates.decision.reason
    board = json.loads((out / "storyboard.json").read_text(encoding="utf-8"))
    kinds = [(row["kind"], row["source"]) for row in board["frames"]]
    assert [kind for kind, _ in kinds] == ["scene", "bridge", "scene"]
    for row in board["frames"]:
        svg = (out / row["source"]).read_text(encoding="utf-8")
        assert row["source"] == f"panels/{row['sha256']}.svg"
        assert "mi-body" in svg
    assert "mi-head-glad" in (out / "cast.svg").read_text(encoding="utf-8")
    layers = json.loads((export(out, "svg", tmp_path / "layers") / "frames.json").read_text("utf-8"))["frames"]
    assert [row["file"][-4:] for row in layers] == [".svg"] * 3
    assert {"mila", "the red kettle"} <= set(layers[0]["layers"])
    first = out / board["frames"][0]["source"]
    drawing = first.read_text(encoding="utf-8")
    first.write_text(drawing.replace("<defs>", "<script/><defs>", 1), encoding="utf-8")
    rows = json.loads((export(out, "svg", tmp_path / "hostile") / "frames.json").read_text("utf-8"))["frames"]
    assert [row["file"][-4:] for row in rows] == [".png", ".svg", ".svg"]
    first.write_text(drawing, encoding="utf-8")
    asked = len(model.asked)
    assert run_story(story(), config, out, plan=plan(), plugins=plugins).reused
    assert len(model.asked) == asked
    before = [row["sha256"] for row in board["frames"]]
    done = edit_board(out, [TakeFrame(frame=3, seed=7)], plugins=plugins)
    after = [frame.sha256 for frame in done.result.board.frames]
    assert after[:2] == before[:2]
    assert after[2] != before[2]
    assert done.result.board.frames[2].source == f"panels/{after[2]}.svg"
    own = (tmp_path / "layers" / layers[0]["file"]).read_bytes().replace(b"#88aacc", b"#ffeecc")
    given = edit_board(out, [GivePicture(frame=1, picture=keep_drawing(out, own, 1))], plugins=plugins)
    changed = given.result.board.frames
    assert [frame.sha256 for frame in changed[1:]] == after[1:]
    assert "#ffeecc" in (out / changed[0].source).read_text(encoding="utf-8")
    words, were = "The steam is green.", [frame.sha256 for frame in changed]
    amended = edit_board(out, [AmendFrame(frame=2, words=words, part="f-steam")], plugins=plugins)
    now = amended.result.board.frames
    assert [now[0].sha256, now[2].sha256] == [were[0], were[2]]
    assert "#aaffaa" in (out / now[1].source).read_text(encoding="utf-8")
    assert 'group with id="f-steam": The steam is green.' in next(
        turns[-1].text for turns in model.asked if turns[-1].text.startswith("This is a frame")
    )
    assert undo(out).result.board.frames[1].sha256 == were[1]
    asked = len(model.asked)
    assert edit_board(out, [AmendFrame(frame=2, words=words, part="f-steam")], plugins=plugins).drawn == (2,)
    assert len(model.asked) == asked, "the same change is not paid for twice"
    with pytest.raises(UsageError, match="no part called 'nothing'"):
        edit_board(out, [AmendFrame(frame=2, words=words, part="nothing")], plugins=plugins)
    with pytest.raises(RenderError, match="no change that can be used"):
        edit_board(out, [AmendFrame(frame=1, words="Nothing that it knows.")], plugins=plugins)
    with pytest.raises(InputFileError, match="frame 1 cannot be used"):
        keep_drawing(out, b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", 1)
    assert sum("Now draw the cast sheet" in turns[-1].text for turns in model.asked) == 1


def test_a_first_version_of_each_frame_is_told_before_the_board_is_there(
    model: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    config = Settings(renderer="vector:openai:any", seeds=(42,), size=(640, 360), mode="base")
    plugins = Plugins(RulePlanner(), VectorRenderer("openai:any"), {"sees": Sees()}, ReaderSimilarity())
    told: list[Event] = []
    threads: set[str] = set()

    def hear(event: Event) -> None:
        told.append(event)
        threads.add(threading.current_thread().name)

    run_story(story(), config, tmp_path / "run", plan=plan(), plugins=plugins, on_event=hear)
    drawn = [event for event in told if event["stage"] == "render" and "sha256" in event]
    assert [(event["kind"], event["scene"]) for event in drawn[-2:]] == [("frame", 1), ("frame", 2)]
    drafts = drawn[:-2]
    assert {(event["kind"], event["scene"]) for event in drafts} == {("progress", 1), ("progress", 2)}
    with Store(tmp_path / "cache") as store:
        assert all(store.blobs.get(event["sha256"]).startswith(b"\x89PNG") for event in drafts)
    kept = {path.stem for path in (tmp_path / "run" / "panels").glob("*.png")}
    assert kept == {event["sha256"] for event in drawn[-2:]}, "the run's folder has the finished frames alone"

    def stop(event: Event) -> None:
        if event["kind"] == "progress" and "sha256" in event:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_story(story(), config.model_copy(update={"seeds": (7,)}), tmp_path / "two", plan=plan(), plugins=plugins,
                  on_event=stop)  # fmt: skip


def test_a_cast_is_drawn_alone_and_a_board_is_drawn_from_the_same_one(
    model: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    inked = plan().model_copy(update={"style": "ink"})
    (tmp_path / "plan.json").write_text(inked.model_dump_json(), "utf-8")
    (tmp_path / "kettle.json").write_text(story().model_dump_json(), "utf-8")
    words = ["cast", "kettle.json", "--plan", "plan.json", "--renderer", "vector:openai:any"]
    done = CliRunner().invoke(app, [*words, "--size", "640x360"])
    assert done.exit_code == 0, done.output
    assert done.output.endswith(f"Cast: {Path('out/kettle.cast.svg')}\n")
    assert "mi-head-glad" in (tmp_path / "out/kettle.cast.svg").read_text("utf-8")
    (opening,) = {turns[0].text for turns in model.asked}
    assert "Style: ink drawing" in opening
    assert not any(turns[-1].text.startswith("Draw frame") for turns in model.asked)
    again = CliRunner().invoke(app, words)
    assert "is there already" in str(again.exception)

    config = Settings(renderer="vector:openai:any", seeds=(42,), size=(640, 360), mode="base")
    plugins = Plugins(RulePlanner(), VectorRenderer("openai:any"), {"sees": Sees()}, ReaderSimilarity())
    run_story(story(), config, tmp_path / "run", plan=inked, plugins=plugins)
    assert {turns[0].text for turns in model.asked} == {opening}


def test_a_renderer_without_a_cast_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["cast", "Mila looks. It boils.", "--renderer", "sketch", "--planner", "rule"])
    assert done.exit_code != 0
    assert "'sketch' draws from no cast sheet" in str(done.exception)
    assert not list(tmp_path.iterdir())


def views_drawing(sides: Sequence[str] = ("front", "three-quarter", "side", "back")) -> str:
    groups = [
        f'<g id="view-{side}"><use href="#mi-body" x="{200 + 400 * at}" y="760"/>'
        f'<circle cx="{200 + 400 * at}" cy="400" r="60" fill="#{at}{at}c29b"/></g>'
        for at, side in enumerate(sides)
    ]
    box = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1600 800"><rect width="1600" height="800" fill="#eee"/>'
    return f"```svg\n{box}{''.join(groups)}</svg>\n```"


def test_the_cast_is_drawn_from_all_sides_and_the_board_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answer(turns: Sequence[Turn]) -> str:
        last = turns[-1].text
        if "from 4 sides" in last:
            asked.append(turns)
            return views_drawing(("front", "side", "back"))  # one is missing: it goes back
        if "It lacks the group view-three-quarter" in last:
            return views_drawing()
        return usual(turns)

    made = Scripted(answer)
    monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, **__: made)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    config = Settings(renderer="vector:openai:any", seeds=(42,), size=(640, 360), mode="base", planner="rule")
    plugins = Plugins(RulePlanner(), VectorRenderer("openai:any"), {"sees": Sees()}, ReaderSimilarity())
    run_story(story(), config, tmp_path / "run", plan=plan(), plugins=plugins)
    before = (tmp_path / "run" / "storyboard.json").read_bytes()
    cast = (tmp_path / "run" / "cast.svg").read_text("utf-8")
    done = CliRunner().invoke(app, ["cast", "run", "--views"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert cast in asked[0][1].text, "it goes on from the cast that the board is made of"
    assert "dotted green dress" in asked[0][-1].text
    assert (tmp_path / "run" / "storyboard.json").read_bytes() == before
    (one,) = views_of(tmp_path / "run")
    assert (one.name, list(one.pictures)) == ("Mila", ["front", "three-quarter", "side", "back"])
    colours = []
    for view, path in one.pictures.items():
        with Image.open(path) as picture:
            assert picture.size == (512, 1024)
            colours.append(picture.convert("RGB").getpixel((256, 512)))
        svg = one.drawings[view].read_text("utf-8")
        assert (svg.count('id="view-'), 'id="mi-body"' in svg) == (1, True), "each side by itself, whole"
    assert [colour[0] for colour in colours if isinstance(colour, tuple)] == [0, 17, 34, 51]

    out = export(tmp_path / "run", "cast", tmp_path / "sheets")
    assert sorted(path.name for path in out.glob("*.png")) == [
        *("mila.png", "mila_back.png", "mila_front.png", "mila_side.png", "mila_three-quarter.png"),
    ]
    with Image.open(out / "mila.png") as sheet:
        assert sheet.size == (4 * 600 + 5 * 30, 1200 + 2 * 90)
    remarks: list[str] = []
    edit_board(tmp_path / "run", [ChangeCharacter(name="Mila", hair="red")], plugins=plugins)
    last = [turns[-1].text for turns in made.asked if turns[-1].text.startswith("Draw")][-2:]
    changed = (
        "a person has changed how Mila looks: a girl of eight in a dotted green dress with red hair (before: a girl"
    )
    assert [changed in text for text in last] == [True, True]
    assert len(last) == 2, "every frame has her: all are drawn anew, from the cast that is there"
    export(tmp_path / "run", "cast", tmp_path / "again", on_remark=remarks.append)
    assert remarks == ["Mila looks another way now: draw the views again."]
    refused = CliRunner().invoke(app, ["cast", "run", "--views", "--of", "Otto"])
    assert "There is no character 'Otto'. Known: Mila." in str(refused.exception)


def test_views_that_nobody_drew_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fox.txt").write_text("A fox saw a crow. The crow sang.", "utf-8")
    words = ["run", "fox.txt", "--renderer", "sketch", "--planner", "rule", "--mode", "base"]
    assert CliRunner().invoke(app, [*words, "--seeds", "42", "--judge", "sketch-reader", "--out", "run"]).exit_code == 0
    done = CliRunner().invoke(app, ["cast", "run", "--views"])
    assert "'sketch' draws nobody from several sides" in str(done.exception)
    with pytest.raises(UsageError, match="No views of this cast are drawn"):
        export(tmp_path / "run", "cast", tmp_path / "sheets")
