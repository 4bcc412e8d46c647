"""Pictures that are two: found by their pixels, drawn again, and refused in the end; and pictures that are one."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

from katha.configs import load_prompt
from katha.errors import RenderError, SplitFrameError, UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion.kontext import KontextOptions, KontextRenderer, find_seam, repeats

Model = Callable[[str], Path]
SIZE = (512, 384)


def scene(seed: int) -> Image.Image:
    """A smooth picture with texture, as a model draws: large patches of colour, finer ones on them, noise."""
    made, rng = np.zeros((SIZE[1], SIZE[0], 3)), np.random.default_rng(seed)
    for cells, weight in ((3, 90.0), (9, 35.0), (40, 10.0)):
        patch = (rng.random((cells, cells, 3)) * 255).astype(np.uint8)
        made += weight / 60 * (np.asarray(Image.fromarray(patch).resize(SIZE, Image.Resampling.BICUBIC), float) - 128)
    return Image.fromarray(np.clip(128 + made + rng.normal(0, 2, made.shape), 0, 255).astype(np.uint8))


def stitched(first: Image.Image, second: Image.Image, gap: int = 0, upright: bool = False) -> Image.Image:
    whole = Image.new("RGB", SIZE, "white")
    width, height = (SIZE[0] - gap) // 2, SIZE[1]
    if upright:
        width, height = SIZE[0], (SIZE[1] - gap) // 2
    whole.paste(first.resize((width, height)), (0, 0))
    whole.paste(second.resize((width, height)), (SIZE[0] - width, SIZE[1] - height))
    return whole


def test_single_pictures_have_no_seam() -> None:
    assert [find_seam(scene(seed)) for seed in range(12)] == [None] * 12
    assert find_seam(Image.linear_gradient("L").resize(SIZE)) is None
    assert find_seam(Image.new("RGB", SIZE, "white")) is None


def test_a_pole_or_a_horizon_that_does_not_cross_the_frame_is_no_seam() -> None:
    for box in ((250, 60, 256, 384), (0, 190, 300, 196)):
        picture = scene(3)
        picture.paste((20, 20, 20), box)
        assert find_seam(picture) is None


def test_most_stitched_pictures_have_one() -> None:
    pairs = [(scene(seed), scene(seed + 50)) for seed in range(12)]
    beside = [find_seam(stitched(*pair)) for pair in pairs]
    above = [find_seam(stitched(*pair, upright=True)) for pair in pairs]
    assert beside.count("side by side") >= 8
    assert above.count("one over the other") >= 8
    soft = [find_seam(stitched(*pair).filter(ImageFilter.GaussianBlur(0.8))) for pair in pairs]
    assert soft.count("side by side") >= 7


def test_a_band_between_two_pictures_is_a_seam() -> None:
    for seed in range(6):
        assert find_seam(stitched(scene(seed), scene(seed + 50), gap=12)) == "side by side"
        assert find_seam(stitched(scene(seed), scene(seed + 50), gap=12, upright=True)) == "one over the other"


def test_halves_that_are_the_two_given_pictures_are_known() -> None:
    first, second, third = scene(1), scene(2), scene(3)
    assert repeats(stitched(first, second), first, second)
    assert not repeats(stitched(second, first), first, second)
    assert not repeats(third, first, second)
    cut = Image.new("RGB", SIZE)
    half = SIZE[0] // 2
    cut.paste(first.crop((half // 2, 0, half // 2 + half, SIZE[1])), (0, 0))
    cut.paste(second.crop((half // 2, 0, half // 2 + half, SIZE[1])), (half, 0))
    assert repeats(cut, first, second)


def test_the_prompt_asks_for_one_picture() -> None:
    words = load_prompt("renderers/kontext_bridge").render(prompt="A lion.", names=[], neighbours=2)
    assert "One single picture" in words
    assert "do not put the pictures side by side" in words


def png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def drawing(
    model: Model, toy_diffusion: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[KontextRenderer, list[int]]]:
    """A renderer of toy weights whose decoded pictures are replaced by those of `gives`; and the seeds it drew with."""

    def make(*gives: Image.Image, family: str = "kontext", **options: Any) -> tuple[KontextRenderer, list[int]]:
        renderer = KontextRenderer(
            str(model(family)), KontextOptions(steps=1, device="cpu", any_size=True, portraits=False, **options)
        )
        seeds: list[int] = []

        def instead(image: Any, request: Any) -> bytes:
            seeds.append(request.seed)
            return png(gives[min(len(seeds), len(gives)) - 1])

        monkeypatch.setattr(renderer, "png", instead)
        return renderer, seeds

    return make


def insert(renderer: KontextRenderer, around: tuple[Image.Image, ...]) -> bytes:
    bridge = FrameRequest("The mouse walks.", 42, 32, 32, kind="bridge")
    board = tuple(FrameRequest("The lion roars.", 42, 32, 32, scene=number) for number in range(len(around)))
    return renderer.insert_frame(bridge, BoardContext(board, tuple(map(png, around)), 1))


def test_a_stitched_bridge_is_drawn_again_with_another_seed(drawing: Callable[..., Any]) -> None:
    around = (scene(1), scene(2))
    renderer, seeds = drawing(stitched(*around), scene(9))
    assert insert(renderer, around) == png(scene(9))
    assert len(set(seeds)) == 2
    assert "its two neighbours side by side" in " ".join(renderer.remarks())


def test_a_bridge_that_stays_stitched_is_a_typed_failure(drawing: Callable[..., Any]) -> None:
    around = (scene(1), scene(2))
    renderer, seeds = drawing(stitched(scene(5), scene(6), gap=12))
    with pytest.raises(SplitFrameError, match="two pictures side by side with each of 3 seeds") as caught:
        insert(renderer, around)
    assert len(seeds) == 3
    assert isinstance(caught.value, RenderError)
    assert "FLUX.2" in str(caught.value)


def test_a_person_may_take_it_as_it_is_and_models_with_several_pictures_draw_once(drawing: Callable[..., Any]) -> None:
    around = (scene(1), scene(2))
    for options in ({"redraws": 0}, {"family": "klein"}):
        renderer, seeds = drawing(stitched(*around), **options)
        assert insert(renderer, around) == png(stitched(*around))
        assert len(seeds) == 1
    with pytest.raises(UsageError, match="redraws is at least 0"):
        KontextOptions(redraws=-1)
