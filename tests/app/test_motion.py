"""Drawings in motion: nothing moves at the beginning, near layers move more, what is new comes in, eyes blink."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from katha.app.exports.motion import Moving
from katha.renderers.vector.raster import rasterise

SIZE = (640, 360)
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 720"><defs>
<linearGradient id="sky"><stop stop-color="#246"/><stop offset="1" stop-color="#fa6"/></linearGradient>
<g id="mi-head-glad"><circle cy="-60" r="60" fill="#f2c29b"/></g>
<g id="mi-pupils"><circle cx="-20" cy="-70" r="14"/><circle cx="20" cy="-70" r="14"/></g></defs>
<rect width="1280" height="720" fill="url(#sky)"/><rect y="500" width="1280" height="220" fill="#4a3"/>
<g id="far-tower"><rect x="100" y="200" width="80" height="300" fill="#a0a"/></g>
<g id="the-red-kettle"><path d="M900 400h160v140h-160z" fill="#c03030"/></g>
<g id="mila"><use href="#mi-head-glad" transform="translate(400 400) scale(2)"/>
<use href="#mi-pupils" transform="translate(400 400) scale(2)"/></g></svg>"""


def pixels(picture: Image.Image) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    return np.asarray(picture.convert("RGB"), dtype=np.int16)


def moving(svg: str = SVG, must_show: tuple[str, ...] = ("the red kettle", "Mila"), **given: object) -> Moving:
    return Moving(svg, SIZE, must_show, **given)  # type: ignore[arg-type]


def box(picture: Image.Image, colour: tuple[int, int, int]) -> tuple[int, int, int, int]:
    near = np.abs(pixels(picture) - colour).max(axis=2) < 12
    rows, columns = np.flatnonzero(near.any(axis=1)), np.flatnonzero(near.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])


def test_a_shot_begins_with_the_frame_as_it_was_drawn() -> None:
    drawn = pixels(Image.open(io.BytesIO(rasterise(SVG, *SIZE))))
    assert np.abs(pixels(moving().at(0.0, 2.0)) - drawn).mean() < 1.5


def test_the_camera_comes_closer_to_what_must_be_seen_and_near_layers_move_more() -> None:
    take = moving(must_show=("the red kettle",))
    first, last = take.at(0.0, 2.0), take.at(2.0, 2.0)
    assert take.focus == pytest.approx((490, 235), abs=6)
    kettle, later = box(first, (192, 48, 48)), box(last, (192, 48, 48))
    assert later[2] - later[0] > kettle[2] - kettle[0] + 3
    assert abs(later[0] + later[2] - kettle[0] - kettle[2]) <= 4  # it stays where it is
    grown = [
        (b[3] - b[1]) / (a[3] - a[1])
        for a, b in ((box(first, colour), box(last, colour)) for colour in ((170, 0, 170), (242, 194, 155)))
    ]
    assert 1.02 < grown[0] < grown[1] < 1.12
    assert moving().at(1.0, 2.0).tobytes() == moving().at(1.0, 2.0).tobytes()


def test_a_wide_shot_goes_to_the_side() -> None:
    take = moving(wide=True)
    (left, _, right, _), (later_left, _, later_right, _) = (box(take.at(s, 2.0), (192, 48, 48)) for s in (0.0, 2.0))
    assert later_left - left > 8
    assert abs((later_right - later_left) - (right - left)) <= 2
    assert (pixels(take.at(2.0, 2.0)).min(axis=2) < 255).all()  # no paper shows at the edges


def test_a_thing_that_was_not_there_comes_in_and_whoever_is_there_stays() -> None:
    take = moving(before=frozenset({"far-tower"}))
    found = [np.abs(pixels(take.at(second, 2.0)) - (192, 48, 48)).max(axis=2) < 12 for second in (0.1, 1.0)]
    assert found[0].sum() == 0
    assert found[1].sum() > 2_000
    assert box(take.at(0.1, 2.0), (242, 194, 155))
    for before in (frozenset[str](), frozenset({"the-red-kettle"})):  # the first shot, and one that had it
        assert (np.abs(pixels(moving(before=before).at(0.1, 2.0)) - (192, 48, 48)).max(axis=2) < 12).sum() > 2_000


def test_eyes_blink_once() -> None:
    take = moving()
    dark = [(pixels(take.at(second, 2.0)).max(axis=2) < 30).sum() for second in (0.5, 1.15, 1.5)]
    assert dark[1] < dark[0] / 3
    assert dark[2] > dark[0] * 0.9
    assert (pixels(take.at(0.2, 0.4)).max(axis=2) < 30).sum() > dark[0] * 0.9  # a shot that is too short for it


def test_an_empty_drawing_and_one_shape_move_too() -> None:
    empty = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 720"/>'
    lone = empty.replace("/>", '><rect width="1280" height="720" fill="red"/></svg>')
    assert moving(lone).at(1.0, 2.0).getcolors() == [(SIZE[0] * SIZE[1], (255, 0, 0))]
    assert moving(empty).at(1.0, 2.0).getcolors() == [(SIZE[0] * SIZE[1], (255, 255, 255))]
