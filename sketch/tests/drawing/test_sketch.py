"""The sketch renderer: the plug-in's contract, and pictures that are the same bytes each time."""

from __future__ import annotations

import io
import random
import struct

import numpy as np
import pytest
from PIL import Image

from katha.errors import UsageError
from katha.protocols import BoardContext, FrameRequest, Renderer
from katha_sketch.drawing import SketchRenderer
from katha_sketch.drawing.scenes import frame_scene, tell

PROMPT = "A small brown mouse with a red scarf talks to a big angry lion in the forest at night."


@pytest.mark.parametrize("size", [(768, 512), (256, 168), (512, 512)])
def test_two_frames_of_one_seed_have_the_same_bytes_and_the_size_asked(size: tuple[int, int]) -> None:
    asked = request(seed=3, width=size[0], height=size[1])
    first, second = (next(iter(SketchRenderer().render_board([asked]))) for _ in range(2))
    assert first == second
    assert Image.open(io.BytesIO(first)).size == size


def test_the_png_has_no_metadata() -> None:
    png, at, kinds = next(iter(SketchRenderer().render_board([request()]))), 8, set()
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kinds.add(png[at + 4 : at + 8])
        at += 12 + length
    assert kinds == {b"IHDR", b"IDAT", b"IEND"}


def test_global_random_state_is_neither_read_nor_moved() -> None:
    scene = tell(request()).scene
    random.seed(5)
    before = random.getstate()
    svg = frame_scene(scene, 256, 168, 1).svg
    assert random.getstate() == before
    random.seed(6)
    assert frame_scene(scene, 256, 168, 1).svg == svg


def test_no_letters_and_no_foreign_content() -> None:
    svg = frame_scene(tell(request()).scene, 256, 168, 2).svg
    assert "<text" not in svg
    assert "href" not in svg


def request(style: str = "", seed: int = 0, width: int = 256, height: int = 176) -> FrameRequest:
    return FrameRequest(prompt=PROMPT, seed=seed, width=width, height=height, style=style)


def test_the_renderer_keeps_the_contract() -> None:
    renderer = SketchRenderer()
    assert isinstance(renderer, Renderer)
    board = list(renderer.render_board([request(seed=seed) for seed in range(3)]))
    assert len(set(board)) == 3
    context = BoardContext(tuple(request(seed=seed) for seed in range(3)), tuple(board), 1)
    assert renderer.insert_frame(request(seed=1), context) == board[1]
    assert renderer.spec() == SketchRenderer().spec()
    assert renderer.spec() != SketchRenderer("ink").spec()


def test_styles_change_the_colours_only() -> None:
    renderer = SketchRenderer()
    frames = {style: next(iter(renderer.render_board([request(style)]))) for style in ("", "colour", "ink", "pencil")}
    assert frames[""] == frames["colour"]
    spread = {
        style: np.ptp(np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float), axis=2).mean()
        for style, png in frames.items()
    }
    assert spread["ink"] < 0.5 * spread["colour"]
    assert spread["pencil"] < 0.5 * spread["colour"]
    assert frames["ink"] != frames["pencil"]
    assert next(iter(SketchRenderer("ink").render_board([request()]))) == frames["ink"]


def test_wrong_style_and_size_are_refused() -> None:
    with pytest.raises(UsageError, match="colour, ink, pencil"):
        list(SketchRenderer().render_board([request("oil painting")]))
    with pytest.raises(UsageError, match="watercolour"):
        SketchRenderer("watercolour")
    with pytest.raises(UsageError, match="8x176"):
        list(SketchRenderer().render_board([request(width=8)]))
