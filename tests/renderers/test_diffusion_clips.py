"""Video models as renderers of frames, at toy size: keyframes of clips, and bridges between two pictures."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from katha.errors import UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion.generic import GenericOptions, GenericRenderer
from katha.renderers.diffusion.renderer import generator_of
from katha.testing import check_renderer

Model = Callable[[str], Path]
SIDE = 32

pytestmark = pytest.mark.usefixtures("toy_diffusion")


def made(folder: Path, **options: Any) -> GenericRenderer:
    given = {"steps": 2, "device": "cpu", "any_size": True, "frames": 5, "guidance": 3.0, **options}
    return GenericRenderer(str(folder), GenericOptions(**given))


def frame(prompt: str = "The lion roars.", seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": SIDE, "height": SIDE, "scene": 1, **fields})


def pixels(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), np.int16)


def png(seed: int, size: tuple[int, int] = (SIDE, SIDE)) -> bytes:
    grey, out = np.random.default_rng(seed).integers(0, 255, (*size[::-1], 3), np.uint8), io.BytesIO()
    Image.fromarray(grey).save(out, "PNG")
    return out.getvalue()


def clip(folder: Path, seed: int = 42, **given: Any) -> list[Any]:
    """The pictures of a clip as the pipeline itself makes them."""
    import diffusers

    pipe = diffusers.DiffusionPipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    told = {"width": SIDE, "height": SIDE, "num_frames": 5, "num_inference_steps": 2, "guidance_scale": 3.0, **given}
    video = pipe(prompt="The lion roars.", generator=generator_of(seed), output_type="pil", **told).frames[0]
    return [np.asarray(picture, np.int16) for picture in video]


def off(found: Any, wanted: Any) -> int:
    return int(np.abs(found - wanted).max())


@pytest.mark.parametrize(("keyframe", "at"), [(None, 2), (0.0, 0), (1.0, 4)])
def test_a_scene_is_a_keyframe_of_its_clip(model: Model, keyframe: float | None, at: int) -> None:
    wanted = clip(model("wan"))
    found = pixels(next(iter(made(model("wan"), keyframe=keyframe).render_board([frame()]))))
    assert off(found, wanted[at]) <= 1
    assert min(off(found, other) for number, other in enumerate(wanted) if number != at) > 1


def test_a_bridge_is_the_middle_of_the_clip_between_its_neighbours(model: Model) -> None:
    before, after = png(1), png(2)
    shown = [Image.open(io.BytesIO(data)) for data in (before, after)]
    wanted = clip(model("wan-between"), image=shown[0], last_image=shown[1])
    drawer = made(model("wan-between"), keyframe=0.0)
    context = BoardContext((frame(), frame()), (before, after), 1)
    found = pixels(drawer.insert_frame(frame(kind="bridge", scene=None), context))
    assert off(found, wanted[2]) <= 1
    assert min(off(found, wanted[at]) for at in (0, 1, 3, 4)) > 1
    other = BoardContext((frame(), frame()), (before, png(3)), 1)
    assert off(found, pixels(drawer.insert_frame(frame(kind="bridge", scene=None), other))) > 1, "both are read"
    assert drawer.capabilities.insertion == "reference"


def test_at_a_board_s_end_the_one_picture_is_first_and_last(model: Model) -> None:
    one = Image.open(io.BytesIO(png(1)))
    wanted = clip(model("wan-between"), image=one, last_image=one)
    context = BoardContext((frame(),), (png(1),), 1)
    found = pixels(made(model("wan-between")).insert_frame(frame(kind="bridge", scene=None), context))
    assert off(found, wanted[2]) <= 1


def test_neighbours_of_another_shape_are_cut_and_not_pressed(model: Model) -> None:
    wide = png(4, (2 * SIDE, SIDE))
    middle = Image.open(io.BytesIO(wide)).crop((SIDE // 2, 0, 3 * SIDE // 2, SIDE))
    cut = io.BytesIO()
    middle.save(cut, "PNG")
    drawer = made(model("wan-between"))
    requests = (frame(), frame())
    drawn = [
        drawer.insert_frame(frame(kind="bridge", scene=None), BoardContext(requests, (data, png(2)), 1))
        for data in (wide, cut.getvalue())
    ]
    assert drawn[0] == drawn[1]


def test_the_contract_is_kept_and_parts_move(model: Model) -> None:
    assert "insertion" in check_renderer(lambda: made(model("wan")), size=(SIDE, SIDE))
    whole, moved = (
        next(iter(made(model("wan"), memory=rung).render_board([frame()]))) for rung in ("full", "model-offload")
    )
    assert whole == moved


def test_a_clip_is_in_the_specification_and_in_the_estimate(model: Model) -> None:
    short, long = made(model("wan")), made(model("wan"), frames=81)
    assert short.spec()["clip"] == {"frames": 5, "beat": 4, "keyframe": 0.5}
    assert (short.pictures, long.pictures) == (1, 20)
    full = [one._check_memory(SIDE * SIDE, None, loaded=False)["full"].device for one in (short, long)]
    assert full[0] <= full[1]
    told = GenericRenderer(str(model("wan")), GenericOptions(device="cpu"))
    assert (told.clip.frames if told.clip else 0, told.steps, told.guidance) == (81, 50, 5.0)
    assert told.capabilities.default_size == (832, 480)
    assert not {"clip", "frames", "keyframe"} & GenericRenderer(str(model("sd3"))).spec().keys()


def test_what_cannot_be_is_one_sentence(model: Model) -> None:
    with pytest.raises(UsageError, match=r"draws no clip of 7 pictures.*frames=9, or 13"):
        made(model("wan"), frames=7)
    with pytest.raises(UsageError, match=r"keyframe is 0 to 1, not 2.*1 its last"):
        made(model("wan"), keyframe=2.0)
    with pytest.raises(UsageError, match="draws pictures, not videos: it has no 'frames'"):
        made(model("sd3"))
    with pytest.raises(UsageError, match="draws pictures, not videos: it has no 'keyframe'"):
        made(model("sd3"), frames=None, keyframe=0.5)
    with pytest.raises(UsageError, match=r"draws from image, which a scene does not have.*--bridge-renderer"):
        next(iter(made(model("wan-between")).render_board([frame()])))
    assert torch.get_num_threads() == 1
