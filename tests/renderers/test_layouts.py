"""Frames that follow a layout: diffusers' own img2img classes at toy size, with the components that are there."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import drawn_boards
import numpy as np
import pytest
import torch
from doubles import plugins
from numpy.typing import NDArray
from PIL import Image

from katha.agents.context import Plugins, PreparedStory, RunContext
from katha.agents.folder import MemoryFiles
from katha.agents.frames import missing_scenes
from katha.agents.run import run_story
from katha.agents.state import ignore_event
from katha.config import Settings
from katha.errors import UsageError
from katha.pictures import decode
from katha.protocols import BoardContext, Capabilities, FrameRequest
from katha.renderers.diffusion.flux import FluxRenderer
from katha.renderers.diffusion.kontext import KontextRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.options import diffusion_data
from katha.renderers.diffusion.renderer import DiffusionRenderer
from katha.renderers.diffusion.sdxl import SdxlRenderer
from katha.renderers.vector import VectorRenderer
from katha.schema import StoryRecord
from katha.store import Store
from katha.testing import check_renderer

PROMPTS = ("The lion roars at the small mouse.", "The mouse gnaws the net.", "The lion walks past the tree.")
CASES: Mapping[str, tuple[type[DiffusionRenderer], str]] = {
    "sdxl": (SdxlRenderer, "sdxl"),
    "flux1": (FluxRenderer, "flux"),
    "z-image": (FluxRenderer, "z-image"),
}
every_case = pytest.mark.parametrize("case", CASES)
Make = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("toy_diffusion")


@pytest.fixture
def make(model: Callable[[str], Path]) -> Make:
    def made(case: str, **options: Any) -> Any:
        kind, family = CASES[case]
        given = {"steps": 4, "device": "cpu", "any_size": True, **options}
        return kind(str(model(family)), kind.options_class(**given))

    return made


def layout(left: bool = True, size: tuple[int, int] = (64, 64)) -> bytes:
    """A dark figure on one side of a bright picture."""
    picture = Image.new("RGB", size, (240, 220, 120))
    half = size[0] // 2
    picture.paste((20, 30, 90), (0 if left else half, 0, half if left else size[0], size[1]))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def frame(prompt: str = PROMPTS[0], seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": 32, "height": 32, "scene": 1, **fields})


def pixels(png: bytes) -> NDArray[np.float64]:
    return np.asarray(decode(png), np.float64)


def one(renderer: Any, **fields: Any) -> bytes:
    (png,) = renderer.render_board([frame(**fields)])
    return bytes(png)


@every_case
def test_a_layout_changes_the_picture_and_a_seed_gives_the_same_bytes(make: Make, case: str) -> None:
    plain, left, right = one(make(case)), one(make(case), guide=layout()), one(make(case), guide=layout(left=False))
    assert len({plain, left, right}) == 3
    process_pool().release()
    assert one(make(case), guide=layout()) == left
    assert one(make(case), guide=layout(), seed=7) != left


@every_case
def test_less_strength_keeps_more_of_the_layout(make: Make, case: str) -> None:
    apart = []
    for share in (0.125, 0.875):
        renderer = make(case, steps=8, strength=share)
        pairs = [[frame(seed=seed, guide=layout(left=side)) for side in (True, False)] for seed in (1, 2, 3)]
        drawn = [[pixels(png) for png in renderer.render_board(pair)] for pair in pairs]
        apart.append(float(np.mean([np.abs(one - other).mean() for one, other in drawn])))
    assert apart[0] > apart[1] > 0, "the fewer steps are drawn over them, the more two layouts are told apart"


@pytest.mark.parametrize(
    ("case", "kind"), [("sdxl", "StableDiffusionXLImg2ImgPipeline"), ("flux1", "FluxImg2ImgPipeline")]
)
def test_it_is_what_the_plain_pipeline_draws(make: Make, model: Callable[[str], Path], case: str, kind: str) -> None:
    import diffusers

    renderer = make(case, strength=0.5)
    pipe = getattr(diffusers, kind).from_pretrained(model(CASES[case][1]))
    pipe.set_progress_bar_config(disable=True)
    start = decode(layout()).resize((32, 32), Image.Resampling.LANCZOS)
    told: dict[str, Any] = {"num_inference_steps": 4, "strength": 0.5, "guidance_scale": renderer.guidance}
    if case == "flux1":
        told |= {"width": 32, "height": 32}
    image = pipe(PROMPTS[0], image=start, generator=torch.Generator().manual_seed(42), **told).images[0]
    assert np.array_equal(np.asarray(image, np.float64), pixels(one(renderer, guide=layout())))


@every_case
def test_frames_without_a_layout_keep_their_bytes_and_their_keys(make: Make, case: str) -> None:
    renderer = make(case)
    before, spec = one(renderer), dict(renderer.spec())
    one(renderer, guide=layout())
    assert one(renderer) == before, "a layout leaves nothing behind in the pipeline or its schedule"
    assert dict(renderer.spec()) == spec == dict(make(case, strength=0.5).spec())
    assert "strength" not in spec
    idle = make(case, strength=0.5)
    assert one(idle) == before
    assert "The option strength changes nothing without --guide." in idle.remarks()
    assert renderer.guided_spec() != make(case, strength=0.5).guided_spec()


@every_case
def test_a_batch_with_and_without_layouts_equals_one_at_a_time(make: Make, case: str) -> None:
    asked = [
        frame(PROMPTS[0], guide=layout()),
        frame(PROMPTS[1], guide=layout(left=False)),
        frame(PROMPTS[2]),
    ]
    alone = [next(iter(make(case).render_board([request]))) for request in asked]
    together = list(make(case, batch=3).render_board(asked))
    for mine, other in zip(alone, together, strict=True):
        assert np.abs(pixels(mine) - pixels(other)).max() <= 1


@every_case
def test_a_layout_of_another_size_is_scaled_and_a_bridge_follows_one_too(make: Make, case: str) -> None:
    renderer = make(case)
    wide = one(renderer, guide=layout(size=(96, 48)), width=64, height=32)
    assert decode(wide).size == (64, 32)
    bridge = frame(kind="bridge", scene=None, guide=layout())
    around = BoardContext((frame(), frame()), (wide, wide), 1)
    assert renderer.insert_frame(bridge, around) == one(renderer, guide=layout())


def test_a_step_is_always_drawn_and_one_always_left_to_the_layout(make: Make) -> None:
    for steps in (2, 3, 4, 8, 28, 50):
        for calling in diffusion_data().calls.values():
            for share in (0.01, 0.5, 0.99, None) if calling.layout else ():
                drawn, strength = calling.begun(steps, share)
                assert 1 <= drawn <= steps - 1
                floor, ceiling = int(steps * strength), steps - int(steps - steps * strength)
                assert drawn == (floor if calling.fewer else ceiling)
    few = make("flux1", steps=2, strength=0.99)
    assert one(few, guide=layout()) != one(few, guide=layout(left=False))
    assert not make("flux1", steps=1).capabilities.guide, "one step draws over all of it"
    for wrong in (0.0, 1.0, 2.0):
        with pytest.raises(UsageError, match="strength is more than 0 and less than 1"):
            make("sdxl", strength=wrong)


def test_models_that_begin_with_no_picture_follow_no_layout(model: Callable[[str], Path]) -> None:
    given = {"steps": 2, "device": "cpu", "any_size": True}
    flux2 = FluxRenderer(str(model("flux2-dev")), FluxRenderer.options_class(**given))
    kontext = KontextRenderer(str(model("kontext")), KontextRenderer.options_class(**given))
    assert not flux2.capabilities.guide
    assert not kontext.capabilities.guide
    assert [kind.capabilities.guide for kind in (FluxRenderer, SdxlRenderer, KontextRenderer)] == [True, True, False]
    assert Capabilities().guide is False


def test_a_run_of_sdxl_follows_the_drawn_board_of_a_language_model(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = drawn_boards.Scripted(drawn_boards.usual)
    monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, **__: model)
    told = StoryRecord(story_id="kettle", title="Kettle", story_text="Mila looks at the kettle. The kettle boils.")
    config = Settings(
        renderer="sdxl", guide="vector:openai:any", judges=("pixel",), mode="caption_bridge", seeds=(42,), size=(64, 32)
    )
    made = plugins(renderer=make("sdxl"), guide=VectorRenderer("openai:any"))
    board = run_story(told, config, tmp_path / "led", plan=drawn_boards.plan(), plugins=made).board
    sole = run_story(
        told, config.model_copy(update={"guide": None}), tmp_path / "sole", plan=drawn_boards.plan(),
        plugins=replace(made, guide=None),
    ).board  # fmt: skip
    assert {frame.sha256 for frame in board.frames}.isdisjoint(frame.sha256 for frame in sole.frames)
    first = board.frames[0]
    guide = (tmp_path / "led" / str(first.guide)).read_bytes()
    asked = next(iter(missing(tmp_path, told, config, made)))
    assert asked.guide == guide
    (png,) = make("sdxl").render_board([asked])
    assert png == (tmp_path / "led" / first.image).read_bytes()
    process_pool().release()
    again = run_story(told, config, tmp_path / "again", plan=drawn_boards.plan(), plugins=made).board
    assert [frame.sha256 for frame in again.frames] == [frame.sha256 for frame in board.frames]


def missing(folder: Path, told: StoryRecord, config: Settings, made: Plugins) -> list[FrameRequest]:
    """What the first board's scenes are drawn from, with an empty cache."""
    with Store(folder / "empty") as store:
        ready = PreparedStory(drawn_boards.plan(), told)
        context = RunContext.open(told, config, made, store, MemoryFiles(folder / "none"), ready=ready)
        return list(missing_scenes(context, (42,), ignore_event).values())


@every_case
def test_it_keeps_the_contract(make: Make, case: str) -> None:
    assert "layout" in check_renderer(lambda: make(case, steps=2), size=(32, 32))
