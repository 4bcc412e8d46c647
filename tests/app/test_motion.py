"""The camera over a picture, and drawings in motion: near layers move more, what is new comes in, eyes blink."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from katha.app.exports.camera import HELD, MOVES, move_of
from katha.app.exports.motion import InMotion, Moving, Still
from katha.renderers.vector.raster import rasterise
from katha.shots import offered

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


HEAD, KETTLE, TOWER = (242, 194, 155), (192, 48, 48), (170, 0, 170)
TO_THE_SIDE = {"pan left": (1, 0), "pan right": (-1, 0), "tilt up": (0, 1), "tilt down": (0, -1)}
TO_THE_SIDE |= {"track left": (1, 0), "track right": (-1, 0), "crane up": (0, 1), "crane down": (0, -1)}


def filmed(words: str, layered: bool) -> InMotion:
    """The drawing, its tower away from the edge, or its picture alone, as the words have it filmed."""
    move, svg = move_of(words), SVG.replace('rect x="100"', 'rect x="640"')
    assert move is not None
    if layered:
        return moving(svg, move=move)
    large = round(SIZE[0] * move.closest), round(SIZE[1] * move.closest)
    return Still(Image.open(io.BytesIO(rasterise(svg, *large))).convert("RGB"), SIZE, move)


@pytest.mark.parametrize("layered", [True, False])
@pytest.mark.parametrize("words", TO_THE_SIDE)
def test_a_camera_that_goes_to_a_side_has_the_picture_go_to_the_other(words: str, layered: bool) -> None:
    take = filmed(words, layered)
    shifts = []
    for colour in (TOWER, HEAD):
        (left, top, *_), (later_left, later_top, *_) = (box(take.at(at, 4.0), colour) for at in (0.0, 4.0))
        shifts.append(np.array((later_left - left, later_top - top)))
        way = np.array(TO_THE_SIDE[words])
        assert (np.sign(shifts[-1]) * np.abs(way) == way).all(), (words, shifts)
        assert np.abs(shifts[-1][way == 0]).max() <= 1
    deep = layered and words.split()[0] in ("track", "crane")
    assert bool(np.abs(shifts[1]).max() > np.abs(shifts[0]).max() + 2) is deep, shifts
    sizes = [box(take.at(at, 4.0), KETTLE) for at in (0.0, 4.0)]
    assert abs((sizes[0][2] - sizes[0][0]) - (sizes[1][2] - sizes[1][0])) <= 2  # it comes no closer


@pytest.mark.parametrize("layered", [True, False])
@pytest.mark.parametrize(("words", "grows"), [("push in", True), ("zoom in", True), ("pull out", False)])
def test_a_camera_that_comes_closer_has_things_grow(words: str, grows: bool, layered: bool) -> None:
    take = filmed(words, layered)
    first, last = (box(take.at(at, 4.0), TOWER) for at in (0.0, 4.0))
    grown = (last[3] - last[1]) / (first[3] - first[1])
    assert (1.08 < grown < 1.25) if grows else (1 / 1.25 < grown < 1 / 1.08)


@pytest.mark.parametrize("layered", [True, False])
@pytest.mark.parametrize("words", MOVES)
def test_no_move_shows_the_edge_of_the_paper(words: str, layered: bool) -> None:
    take = filmed(words, layered)
    for second in (0.0, 0.9, 1.7, 3.1, 4.0):
        assert (pixels(take.at(second, 4.0)).min(axis=2) < 250).all(), second


def test_a_move_is_slow_at_both_ends_and_takes_the_time_of_its_shot() -> None:
    ends = [MOVES["pan left"].at(second, 5.0).across for second in (0.0, 0.25, 2.5, 4.75, 5.0)]
    assert ends[0] == -ends[-1] == 1
    assert ends[2] == pytest.approx(0)
    assert ends[0] - ends[1] == pytest.approx(ends[3] - ends[4])
    assert 0 < ends[0] - ends[1] < 0.05


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("slow push in on Mia", "push in"),
        ("Dolly-in", "push in"),
        ("the camera pans left, then tilts up", "pan left"),
        ("tracking right", "track right"),
        ("Static.", "static"),
        ("whip", None),
        ("", None),
    ],
)
def test_a_move_is_known_in_a_sentence(words: str, name: str | None) -> None:
    assert move_of(words) == (MOVES[name] if name else None)


def test_every_word_that_is_offered_is_followed() -> None:
    assert set(MOVES) == set(offered("camera_move"))
    take = moving(move=HELD)
    assert np.abs(pixels(take.at(0.0, 9.0)) - pixels(take.at(9.0, 9.0))).max() == 0
