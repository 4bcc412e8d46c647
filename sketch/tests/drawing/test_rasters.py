"""Pictures made in a process beside: the same bytes, whatever becomes of that process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from katha.protocols import FrameRequest
from katha_sketch.drawing.rasters import Rasters, shared_rasters
from katha_sketch.drawing.renderer import SketchRenderer
from katha_sketch.drawing.svg import canvas, circle, rasterise

SVG = canvas(circle(20, 20, 10, fill="#123456"), 64, 48)


@pytest.fixture
def rasters() -> Iterator[Rasters]:
    made = Rasters()
    made._able = True  # on one core as well
    yield made
    made.close()


def test_the_bytes_are_those_of_this_process(rasters: Rasters) -> None:
    assert [rasters.draw(SVG, 64, 48) for _ in range(2)] == [rasterise(SVG, 64, 48)] * 2
    assert [raster.begun for raster in rasters._all] == [True, False], "one is enough for one at a time"
    with ThreadPoolExecutor(4) as threads:
        drawn = list(threads.map(lambda _: rasters.draw(SVG, 64, 48), range(8)))
    assert drawn == [rasterise(SVG, 64, 48)] * 8
    assert all(raster.begun for raster in rasters._all)


def test_it_draws_here_once_the_other_process_is_gone_or_never_was(
    rasters: Rasters, monkeypatch: pytest.MonkeyPatch
) -> None:
    rasters.draw(SVG, 64, 48)
    process = rasters._all[0]._process
    assert process is not None
    process.kill()
    process.wait()
    assert rasters.draw(SVG, 64, 48) == rasterise(SVG, 64, 48)
    assert not rasters.begun
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    never = Rasters()
    assert never.draw(SVG, 64, 48) == rasterise(SVG, 64, 48)


def test_a_drawing_that_cannot_be_made_fails_as_it_does_here(rasters: Rasters) -> None:
    with pytest.raises(ValueError):
        rasters.draw("<no drawing", 64, 48)


def test_a_board_is_made_beside_and_a_frame_here() -> None:
    requests = [FrameRequest("A boy kicks a ball.", seed, 96, 64) for seed in range(4)]
    alone = [next(iter(SketchRenderer().render_board([request]))) for request in requests]
    assert list(SketchRenderer().render_board(requests)) == alone
    assert shared_rasters() is shared_rasters()
