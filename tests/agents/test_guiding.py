"""A board whose frames follow layouts: another renderer's frames, drawn first, kept and paid for like any frame."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cli_child
import drawn_boards
import pytest
from click.testing import Result
from doubles import BlockRenderer, PixelSimilarity, plugins, story
from typer.testing import CliRunner

from katha.agents.context import Plugins, PreparedStory, RunContext, check_able, load_plugins, make_guide
from katha.agents.editor.editing import draw_takes, edit_board
from katha.agents.editor.edits import TakeFrame
from katha.agents.folder import MemoryFiles
from katha.agents.frames import missing_portraits, missing_scenes
from katha.agents.run import run_story
from katha.agents.state import ignore_event
from katha.app.cli.main import app, main
from katha.app.needs import needs_of_run
from katha.config import Settings, cache_folder, identity_of, resolve
from katha.errors import BudgetError, OutputFolderError, UsageError
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.cluster.stage_models import StageModels
from katha.experiments.comparison.methods import read_methods
from katha.jsonio import read_json
from katha.models.base import Turn
from katha.pictures import png_size
from katha.protocols import Capabilities, FrameRequest
from katha.registry import default_registry
from katha.renderers.vector import VectorRenderer
from katha.schema import Board, Character, Event
from katha.store import Store
from katha.testing import picture
from katha_sketch.planner.rule import RulePlanner
from katha_sketch.reader.similarity import ReaderSimilarity

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "examples" / "lion_and_mouse.txt"


def _follows() -> Capabilities:
    return Capabilities(default_size=(640, 360), guide=True)


@dataclass
class Follower(BlockRenderer):
    """Blocks that depend on the layout, too; `how` changes how it is followed."""

    capabilities: Capabilities = field(default_factory=_follows)
    how: int = 1

    def guided_spec(self) -> Mapping[str, Any]:
        return {"how": self.how}

    def _draw(self, request: FrameRequest) -> bytes:
        mark = hashlib.sha256(request.guide).hexdigest() if request.guide is not None else ""
        super()._draw(request)
        return picture(f"{request.prompt} {request.seed} {mark} {self.how}", (request.width, request.height))


@dataclass
class Sold(BlockRenderer):
    """A guide of blocks at a price."""

    price: float = 0.25

    @property
    def frame_price(self) -> float:
        return self.price

    def receipt(self) -> Mapping[str, Any]:
        told = {"service": "sold", "model": "m", "served": "m", "date": "2026-01-01", "tokens": {}}
        return {**told, "cost": self.price}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> drawn_boards.Scripted:
    def answer(turns: Sequence[Turn]) -> str:
        last = turns[-1].text
        if last.startswith("Draw a frame between"):
            return f"```svg\n{drawn_boards.frame(600, '#ddddee', 'f-steam')}\n```"
        if last.startswith("Draw frame 2"):
            return f"```svg\n{drawn_boards.frame(200, '#bbccaa' if 'Composition' in last else '#ccbbaa')}\n```"
        return drawn_boards.usual(turns)

    made = drawn_boards.Scripted(answer)
    monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, **__: made)
    return made


def settings(**more: Any) -> Settings:
    given = {"renderer": "follower", "guide": "vector:openai:any", "answers": "free", "matching": "exact-set"}
    return Settings(**{**given, "seeds": (42,), "size": (640, 360), "mode": "full", **more})


def parts(renderer: Any, guide: Any) -> Plugins:
    return Plugins(RulePlanner(), renderer, {"sees": drawn_boards.Sees()}, ReaderSimilarity(), guide=guide)


def layouts(board: Board, out: Path) -> list[bytes]:
    return [(out / str(frame.guide)).read_bytes() for frame in board.frames]


def test_layouts_are_drawn_first_and_bridges_follow_one_of_their_own(
    model: drawn_boards.Scripted, tmp_path: Path
) -> None:
    main_one, out = Follower(), tmp_path / "run"
    made, told = parts(main_one, VectorRenderer("openai:any")), list[Event]()
    plan = drawn_boards.plan().model_copy(update={"style": "watercolour"})
    result = run_story(
        drawn_boards.story(), settings(style="watercolour"), out, plan=plan, plugins=made, on_event=told.append
    )
    board = result.board
    assert [frame.kind for frame in board.frames] == ["scene", "bridge", "scene"]
    assert len(set(layouts(board, out))) == 3
    by_scene = {request.scene: request for request in main_one.drawn}
    assert [by_scene[scene].guide for scene in (1, None, 2)] == layouts(board, out)
    assert all(png_size(png) == (640, 360) for png in layouts(board, out))
    for frame in board.frames:
        assert frame.source is None, "the picture is none that was made from a drawing"
        assert "mi-body" in (out / str(frame.guide)).with_suffix(".svg").read_text(encoding="utf-8")
    assert "mi-head-glad" in (out / "cast.svg").read_text(encoding="utf-8")
    opening = next(turns[0].text for turns in model.asked if "Now draw the cast sheet" in turns[-1].text)
    assert "picture-book" in opening
    assert "watercolour" not in opening, "the guide has its own style, the renderer the run's"
    assert "watercolour" in by_scene[1].prompt
    assert sum(event["kind"] == "frame" for event in told) == 3
    of_layouts = [event for event in told if "layout of" in event.get("message", "")]
    assert sum("a first version" not in event["message"] for event in of_layouts) == 3
    assert not any("sha256" in event for event in told if event["kind"] == "progress"), "no card shows a layout"
    record = read_json(out / "run.json")
    assert [(row["service"], row["frames"]) for row in record["services"]] == [("vector", 3)]
    assert record["services"][0]["cost"] == pytest.approx(0.01 * len(model.asked))
    assert record["renderer"]["guide"]["renderer"]["name"] == "vector"
    assert record["renderer"]["guide"]["followed"] == {"how": 1}
    assert record["paid"] == {**record["paid"], "frames_rendered": 6, "frames_reused": 0}
    asked, drawn = len(model.asked), len(main_one.drawn)
    lost = out / str(board.frames[0].guide)
    lost.unlink()
    assert run_story(drawn_boards.story(), settings(style="watercolour"), out, plan=plan, plugins=made).reused
    assert lost.is_file(), "a layout that was lost comes from the cache"
    again = run_story(drawn_boards.story(), settings(style="watercolour"), tmp_path / "again", plan=plan, plugins=made)
    assert (len(model.asked), len(main_one.drawn)) == (asked, drawn), "all of it is in the cache"
    assert [frame.guide for frame in again.board.frames] == [frame.guide for frame in board.frames]
    other = Follower(how=2)
    with pytest.raises(OutputFolderError, match="another renderer"):
        run_story(
            drawn_boards.story(), settings(style="watercolour"), out, plan=plan, plugins=replace(made, renderer=other)
        )
    run_story(
        drawn_boards.story(),
        settings(style="watercolour"),
        tmp_path / "how",
        plan=plan,
        plugins=replace(made, renderer=other),
    )
    assert (len(model.asked), len(other.drawn)) == (asked, 3), "followed otherwise, along the same layouts"


def test_a_board_that_the_guide_has_drawn_before_is_the_layout_for_nothing(
    model: drawn_boards.Scripted, tmp_path: Path
) -> None:
    guide = VectorRenderer("openai:any")
    alone = run_story(
        drawn_boards.story(), settings(renderer="vector:openai:any", guide=None, mode="base"), tmp_path / "alone",
        plan=drawn_boards.plan(), plugins=parts(guide, None),
    )  # fmt: skip
    asked = len(model.asked)
    told = run_story(drawn_boards.story(), settings(mode="base"), tmp_path / "run", plan=drawn_boards.plan(),
                     plugins=parts(Follower(), guide))  # fmt: skip
    assert [frame.guide for frame in told.board.frames] == [frame.image for frame in alone.board.frames]
    assert len(model.asked) == asked


def test_a_frame_drawn_again_has_a_layout_of_its_own_and_the_others_keep_theirs(
    model: drawn_boards.Scripted, tmp_path: Path
) -> None:
    main_one, out = Follower(), tmp_path / "run"
    made = parts(main_one, VectorRenderer("openai:any"))
    before = run_story(drawn_boards.story(), settings(), out, plan=drawn_boards.plan(), plugins=made).board
    after = edit_board(out, [TakeFrame(frame=3, seed=7)], plugins=made).result.board
    assert [one.sha256 for one in after.frames[:2]] == [one.sha256 for one in before.frames[:2]]
    assert [one.guide for one in after.frames[:2]] == [one.guide for one in before.frames[:2]]
    assert after.frames[2].guide != before.frames[2].guide
    assert main_one.drawn[-1].guide == layouts(after, out)[2]
    assert "Draw frame 2" in next(turns for turns in model.asked if "Composition 7" in turns[-1].text)[-1].text
    again = edit_board(out, [TakeFrame(frame=2, seed=9)], plugins=made).result.board
    assert len({one.guide for one in (before.frames[1], again.frames[1])}) == 1, "the model gave the same drawing"
    assert again.frames[1].sha256 != before.frames[1].sha256
    assert sum("Now draw the cast sheet" in turns[-1].text for turns in model.asked) == 1
    kept, take = draw_takes(out, 1, (11,), plugins=made)
    assert (take.seed, take.sha256 != kept.sha256) == (11, True)
    taken = edit_board(out, [TakeFrame(frame=1, seed=11)], plugins=made).result.board.frames[0]
    assert taken.sha256 == take.sha256


def test_without_a_guide_nothing_is_asked_otherwise(tmp_path: Path) -> None:
    one, other = Follower(), Follower()
    config = Settings(renderer="follower", judges=("pixel",), seeds=(1, 2), mode="base", size=(64, 48))
    plain = run_story(story(), config, tmp_path / "plain", plugins=plugins(renderer=one))
    guided = config.model_copy(update={"guide": "block"})
    led = run_story(story(), guided, tmp_path / "led", plugins=plugins(renderer=other, guide=BlockRenderer()))
    assert [request.guide for request in one.drawn] == [None] * 5
    assert [replace(request, guide=None) for request in other.drawn] == one.drawn
    assert not any("guide" in row for row in read_json(tmp_path / "plain" / "storyboard.json")["frames"])
    assert {frame.sha256 for frame in plain.board.frames}.isdisjoint(frame.sha256 for frame in led.board.frames)
    assert "guide" not in read_json(tmp_path / "plain" / "run.json")["renderer"]
    old = {name: value for name, value in config.model_dump(mode="json").items() if not name.startswith("guide")}
    assert identity_of(old) == identity_of(config.model_dump(mode="json"))
    assert identity_of(guided.model_dump(mode="json")) != identity_of(old)


def test_layouts_are_paid_from_the_budget(tmp_path: Path) -> None:
    guide, budget = Sold(), Budget(max_cost=3 * 0.25)
    config = Settings(renderer="follower", guide="sold", judges=("pixel",), seeds=(1,), mode="base", size=(64, 48))
    made = plugins(renderer=Follower(), guide=guide, budget=budget)
    with pytest.raises(BudgetError):
        run_story(story(), config, tmp_path / "out", plugins=made)
    assert budget.cost == pytest.approx(3 * 0.25)
    assert len(guide.drawn) == 3
    more = replace(made, budget=Budget(max_cost=5 * 0.25))
    run_story(story(), config, tmp_path / "out", plugins=more)
    assert len(guide.drawn) == 5, "what was paid for is kept"


def test_what_a_batch_of_a_vendor_would_draw_has_its_layouts(model: drawn_boards.Scripted, tmp_path: Path) -> None:
    @dataclass
    class Portraying(Follower):
        def picture_of(self, character: Character, request: FrameRequest) -> FrameRequest:
            return FrameRequest(character.name, 0, request.width, request.height, kind="extra")

    main_one = Portraying()
    made, plan = parts(main_one, VectorRenderer("openai:any")), drawn_boards.plan()
    with Store(cache_folder()) as store:
        files, ready = MemoryFiles(tmp_path / "none"), PreparedStory(plan, drawn_boards.story())
        context = RunContext.open(drawn_boards.story(), settings(), made, store, files, ready=ready)
        (portrait,) = missing_portraits(context, (42,)).values()
        scenes = missing_scenes(context, (42,), ignore_event)
    assert portrait.guide is not None
    assert len({scene.guide for scene in scenes.values()} - {None}) == 2
    assert all(len(scene.pictures) == 1 for scene in scenes.values())
    assert [request.prompt for request in main_one.drawn] == ["Mila"], "the portrait that the scenes are drawn from"


def test_a_figure_without_a_place_for_its_head_is_its_head(model: drawn_boards.Scripted) -> None:
    drawer, plan = VectorRenderer("openai:any"), drawn_boards.plan()
    whole = drawer.figures(drawn_boards.CAST.encode(), plan)["Mila"]
    headless = drawn_boards.CAST.replace("<!-- neck 0,-300 -->", "")
    head = drawer.figures(headless.encode(), plan)["Mila"]
    assert png_size(whole)[1] > 2 * png_size(whole)[0]
    assert 0.9 < png_size(head)[0] / png_size(head)[1] < 1.1
    inside = headless.replace('<g id="mi-body">', '<g id="mi-body"><!-- neck 0,-300; shoulders -60,-290 -->')
    assert drawer.figures(inside.encode(), plan)["Mila"] == whole
    nobody = plan.model_copy(update={"characters": [Character(name="Xu", kind="cat", appearance="a cat")]})
    assert drawer.figures(drawn_boards.CAST.encode(), nobody) == {}


# Settings: by flag, file, environment and Python; and who is refused.


@pytest.fixture
def katha(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    cli_child.install(monkeypatch)
    default_registry("renderers").register("follower")(Follower)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


SMALL = ("--judge", "pixel", "--seeds", "1", "--panels", "3", "--mode", "base", "--size", "96x64", "--json")


def test_a_guide_is_named_by_flag_file_environment_or_python(
    katha: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text("{renderer: follower, guide: 'sketch:ink', guide_options: {}}")
    drawn = []
    for words in (("--renderer", "follower", "--guide", "sketch:ink"), ("--preset", "mine.yaml")):
        out = tmp_path / str(len(drawn))
        assert katha("run", TEXT, *words, *SMALL, "--out", out).exit_code == 0
        drawn.append(read_json(out / "storyboard.json")["frames"])
    monkeypatch.setenv("KATHA_RENDERER", "follower")
    monkeypatch.setenv("KATHA_GUIDE", "sketch:ink")
    assert katha("run", TEXT, *SMALL, "--out", tmp_path / "env").exit_code == 0
    drawn.append(read_json(tmp_path / "env" / "storyboard.json")["frames"])
    assert drawn[0] == drawn[1] == drawn[2]
    assert all((tmp_path / "0" / row["guide"]).is_file() for row in drawn[0])
    config = resolve({"guide": "vector:openai:x", "guide_options": ["rounds=0"]}, environment={})
    assert config.guide_options == {"rounds": "0"}
    assert resolve({"guide": "sketch"}, base=config).guide_options == {}, "options stay with whom they were given for"
    assert make_guide(Settings()) is None
    methods = tmp_path / "methods.yaml"
    methods.write_text("- {name: led, renderer: follower, guide: sketch}\n- {name: free, renderer: follower}\n")
    assert [method.config.guide for method in read_methods(methods, Settings())] == ["sketch", None]


def test_a_renderer_that_follows_nothing_is_refused_with_those_that_can(
    katha: Callable[..., Result], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["katha", "run", str(TEXT), "--renderer", "sketch", "--guide", "sketch", "--out", "o"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert (
        "The renderer 'sketch' cannot follow a guide, as bfl, flux, gemini, ideogram, openai, sdxl, seedream can."
        in said
    )
    assert not Path("o").exists()
    config = Settings(renderer="follower", guide=f"folder:{ROOT}")
    with pytest.raises(UsageError, match="can be no guide"):
        check_able(config, load_plugins(config))


def test_a_dry_run_counts_the_layouts_and_their_price(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"renderer": "openai:gpt-image-1.5", "mode": "full", "seeds": (1, 2), "judges": ["none"]}
    plain = needs_of_run(TEXT, **given)
    led = needs_of_run(TEXT, guide="vector:anthropic:claude-haiku-4-5", **given)
    (layout,) = [need for need in led.needs if need.name.startswith("vector")]
    (frames,) = [need for need in plain.needs if need.kind == "pictures"]
    (guided,) = [need for need in led.needs if need.kind == "pictures" and need is not layout]
    assert guided.calls == frames.calls
    assert (guided.cost or 0.0) > (frames.cost or 0.0), "each frame is drawn from its layout, too"
    portraits = frames.calls - layout.calls
    assert 0 <= portraits <= 4, "no portraits are drawn by a guide"
    assert layout.cost is not None
    assert layout.cost > 0
    assert led.cost == pytest.approx((plain.cost or 0.0) + layout.cost + (guided.cost or 0.0) - (frames.cost or 0.0))


def test_a_station_of_a_cluster_has_the_guide_too(tmp_path: Path) -> None:
    config = Settings(renderer="follower", guide="block", judges=("pixel",))
    made = plugins(renderer=Follower(), guide=BlockRenderer(), similarity=PixelSimilarity())
    with Store(cache_folder()) as store:
        seen = StageModels("here", store).plugins(config, made)
    assert isinstance(seen.guide, BlockRenderer)
    assert seen.guide.spec() == BlockRenderer().spec()
