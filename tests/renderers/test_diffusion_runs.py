"""The whole state machine with each diffusion renderer at toy size: drawn, judged, repaired, reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cli_child
import pytest
import torch
from click.testing import Result
from doubles import plugins, story
from tiny_diffusion import build, shrink
from typer.testing import CliRunner

from katha.agents.run import run_story
from katha.app.cli.main import app
from katha.config import Settings, resolve
from katha.errors import BlankFrameError, UsageError
from katha.protocols import FrameRequest
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.renderer import DrawingJob
from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer
from katha.schema import Board, Event

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "examples" / "lion_and_mouse.txt"
Model = Callable[[str], Path]
Katha = Callable[..., Result]
SMALL = ("--renderer-option", "steps=1", "--renderer-option", "device=cpu", "--renderer-option", "any_size=true",
         "--size", "32x32", "--seeds", "1,2", "--panels", "3")  # fmt: skip

each_renderer = pytest.mark.parametrize(
    ("name", "family"),
    [("sdxl", "sdxl"), ("flux", "flux"), ("flux", "flux2-dev"), ("kontext", "kontext"), ("kontext", "qwen-edit")],
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    folder = tmp_path_factory.mktemp("models")
    yield lambda family: folder / family if (folder / family).exists() else build(family, folder / family)
    process_pool().release()


@pytest.fixture
def katha(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Katha]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    shrink(monkeypatch)
    cli_child.install(monkeypatch)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield lambda *words: CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    torch.set_num_threads(threads)


def board(out: str) -> Board:
    return Board.model_validate_json((Path(out) / "storyboard.json").read_bytes())


@each_renderer
def test_a_run_goes_through_the_whole_machine_with_one_pipeline(
    katha: Katha, model: Model, name: str, family: str
) -> None:
    process_pool().release()
    before = process_pool().loads
    words = ("run", TEXT, "--renderer", f"{name}:{model(family)}", *SMALL, "--judge", "pixel", "--out", "out")
    done = katha(*words)
    assert done.exit_code == 0, done.output
    assert process_pool().loads == before + 1
    first = board("out")
    record = json.loads((Path("out") / "run.json").read_text())
    assert record["status"] == "finished"
    assert record["renderer"]["revision"].startswith("sha256:")
    candidates = json.loads((Path("out") / "candidates.json").read_text())["candidates"]
    inserted = [item for item in candidates if item["kind"] == "inserted"]
    assert len(candidates) - len(inserted) == 2
    for item in inserted:
        scenes = [frame["sha256"] for frame in item["board"]["frames"] if frame["kind"] == "scene"]
        base = [other["board"]["frames"] for other in candidates if other["kind"] == "base"]
        assert scenes in [[frame["sha256"] for frame in frames] for frames in base]
    assert inserted
    assert katha(*words).exit_code == 0
    assert board("out") == first
    assert process_pool().loads == before + 1


def test_a_judge_that_cannot_read_the_pictures_is_refused_before_they_are_drawn(katha: Katha, model: Model) -> None:
    words = ("run", TEXT, "--renderer", f"sdxl:{model('sdxl')}", *SMALL, "--mode", "base", "--judge", "sketch-reader")
    with pytest.raises(UsageError, match="reads sketches alone"):
        katha(*words, "--out", "out")
    assert not Path("out").exists()
    done = katha(*words[:-1], "none", "--out", "out")
    assert done.exit_code == 0, done.output
    assert "STG" not in done.output
    assert len(board("out").frames) == 3


def test_a_bridge_may_come_from_kontext(katha: Katha, model: Model) -> None:
    options = ("steps=1", "device=cpu", "any_size=true", "portraits=false")
    done = katha(
        "run", TEXT, "--size", "32x32", "--seeds", "1", "--panels", "3", "--renderer", "block", "--judge", "pixel",
        "--bridge-renderer", f"kontext:{model('kontext')}", *(f"--bridge-option={one}" for one in options),
        "--mode", "random_bridge", "--out", "out",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    candidates = json.loads((Path("out") / "candidates.json").read_text())["candidates"]
    bridges = [frame for item in candidates for frame in item["board"]["frames"] if frame["kind"] == "bridge"]
    assert {frame["renderer"].split(":")[0] for frame in bridges} == {"kontext"}


def test_the_memory_flag_is_an_option_of_the_renderer(katha: Katha, model: Model) -> None:
    words = ("run", TEXT, "--renderer", f"sdxl:{model('sdxl')}", *SMALL, "--mode", "base", "--judge", "pixel")
    done = katha(*words, "--memory", "model-offload", "--out", "out")
    assert done.exit_code == 0, done.output
    config = json.loads((Path("out") / "run.json").read_text())["config"]
    assert config["memory"] == "model-offload"
    request = FrameRequest("A lion.", 1, 32, 32)
    with SdxlRenderer(str(model("sdxl")), SdxlOptions(device="cpu", memory="model-offload")).pipeline(
        [request]
    ) as loaded:
        assert loaded.parking is not None


def test_an_option_on_the_command_line_leaves_the_others_of_a_preset() -> None:
    config = resolve({"renderer_options": ["memory=quantized"]}, preset="sdxl", environment={})
    assert config.renderer_options == {"variant": "fp16", "memory": "quantized"}
    environment = {"KATHA_RENDERER_OPTIONS": "steps=4 memory=full"}
    config = resolve({"renderer_options": ["memory=quantized"]}, environment=environment)
    assert config.renderer_options == {"steps": "4", "memory": "quantized"}
    assert resolve({"renderer": "sketch"}, preset="sdxl", environment={}).renderer_options == {}
    kept = resolve({"renderer": "sdxl:mine"}, preset="sdxl", environment={})
    assert (kept.renderer_options, kept.memory) == ({"variant": "fp16"}, "full")


class Cracked(SdxlRenderer):
    """Draws NaN with some seeds, as half precision does when it overflows."""

    bad: Sequence[int] = ()

    def draw(self, pipe: Any, jobs: Sequence[DrawingJob]) -> torch.Tensor:
        images = super().draw(pipe, jobs)
        for image, job in zip(images, jobs, strict=True):
            if job.request.seed in self.bad:
                image[:, 4, 4] = float("nan")
        return images


def cracked(folder: Path, *bad: int, steps: int = 1) -> Cracked:
    renderer = Cracked(str(folder), SdxlOptions(steps=steps, device="cpu"))
    renderer.bad = bad
    return renderer


def test_a_frame_that_is_not_a_number_is_drawn_once_more_with_the_next_seed(
    katha: Katha, model: Model, tmp_path: Path
) -> None:
    config = Settings(renderer="sdxl", judges=("pixel",), mode="base", seeds=(42,), panels=3, size=(32, 32))
    process_pool().release()
    made, told = plugins(renderer=cracked(model("sdxl"), 42)), list[Event]()
    result = run_story(story(scenes=3), config, tmp_path / "out", plugins=made, on_event=told.append)
    said = [event["message"] for event in told if event["kind"] == "decision"]
    assert sum(message.startswith("The memory rung 'full' fits: ") for message in said) == 1
    assert {frame.seed for frame in result.board.frames} == {43}
    made = plugins(renderer=cracked(model("sdxl"), 42, 43, steps=2))
    with pytest.raises(BlankFrameError, match="with seed 43 as NaN"):
        run_story(story("other", scenes=3), config, tmp_path / "lost", plugins=made)


@each_renderer
def test_each_renderer_keeps_the_contract(katha: Katha, model: Model, name: str, family: str) -> None:
    from katha.registry import default_registry
    from katha.testing import check_renderer

    def make() -> Any:
        options = {"steps": 1, "device": "cpu", "any_size": True}
        return default_registry("renderers").configure(f"{name}:{model(family)}", options)

    assert "insertion" in check_renderer(make, size=(32, 32))
