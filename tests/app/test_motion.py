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

HEAD, KETTLE, TOWER = (242, 194, 155), (192, 48, 48), (170, 0, 170)


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
    take = moving(must_show=("the red kettle",), move=MOVES["push in"])
    first, last = take.at(0.0, 2.0), take.at(2.0, 2.0)
    assert take.focus == pytest.approx((490, 235), abs=6)
    kettle, later = box(first, (192, 48, 48)), box(last, (192, 48, 48))
    assert later[2] - later[0] > kettle[2] - kettle[0] + 3
    assert abs(later[0] + later[2] - kettle[0] - kettle[2]) <= 4  # it stays where it is
    grown = [
        (b[3] - b[1]) / (a[3] - a[1])
        for a, b in ((box(first, colour), box(last, colour)) for colour in ((170, 0, 170), (242, 194, 155)))
    ]
    assert 1.1 < grown[0] < grown[1] < 1.24
    assert moving().at(1.0, 2.0).tobytes() == moving().at(1.0, 2.0).tobytes()


def test_a_camera_that_nobody_moves_cuts_nothing_off() -> None:
    take, drawn = moving(), pixels(Image.open(io.BytesIO(rasterise(SVG, *SIZE))))
    for second in (0.0, 1.0, 2.0):
        assert np.abs(pixels(take.at(second, 2.0)) - drawn).mean() < 1.5


SPEAKS = SVG.replace("</svg>", """<g id="mila-with-a-balloon"><use href="#fx-balloon" transform="translate({0} {1})"/>
<rect width="1280" height="720" fill="none"/></g></svg>""").replace("</defs>", """
<g id="fx-balloon"><circle r="110" fill="#00f0f0"/></g></defs>""")  # fmt: skip


@pytest.mark.parametrize("words", ["push in", "zoom in", "pull out"])
@pytest.mark.parametrize("place", [(600, 112), (1160, 140), (1160, 600)])
def test_a_move_that_is_asked_for_keeps_balloons_and_faces_inside(words: str, place: tuple[int, int]) -> None:
    take = moving(SPEAKS.format(*place), move=MOVES[words])
    for second in (0.0, 2.0, 4.0):
        seen = take.at(second, 4.0)
        for colour, shape in (((0, 240, 240), 1.0), (HEAD, 1.0)):
            left, top, right, bottom = box(seen, colour)
            assert (right - left) / (bottom - top) == pytest.approx(shape, abs=0.04)  # the whole round of it
            assert left > 0 < top
            assert right < SIZE[0] - 1 > bottom
    assert 1.05 < take.way.closest <= MOVES[words].closest


def test_a_pan_goes_less_far_where_a_face_is_at_the_edge() -> None:
    take = moving(SPEAKS.format(160, 400), move=MOVES["pan left"])
    whole = [box(take.at(second, 4.0), (0, 240, 240)) for second in (0.0, 4.0)]
    assert all(right - left == pytest.approx(110, abs=6) for left, _, right, _ in whole)
    assert 0.3 * 0.18 <= take.way.closest - 1 < 0.1


def test_a_thing_that_was_not_there_comes_in_and_whoever_is_there_stays() -> None:
    take = moving(before=frozenset({"far-tower"}))
    found = [np.abs(pixels(take.at(second, 2.0)) - (192, 48, 48)).max(axis=2) < 12 for second in (0.1, 1.0)]
    assert found[0].sum() == 0
    assert found[1].sum() > 2_000
    assert box(take.at(0.1, 2.0), (242, 194, 155))
    for before in (frozenset[str](), frozenset({"the-red-kettle"})):  # the first shot, and one that had it
        assert (np.abs(pixels(moving(before=before).at(0.1, 2.0)) - (192, 48, 48)).max(axis=2) < 12).sum() > 2_000


EYES = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 720"><defs>
<g id="mi-head-glad"><circle cy="-60" r="60" fill="#8f5a36"/><ellipse cx="-20" cy="-70" rx="15" ry="18" fill="#fff"/>
<ellipse cx="20" cy="-70" rx="15" ry="18" fill="#fff"/></g>
<g id="mi-pupils"><circle cx="-18" cy="-66" r="6"/><circle cx="22" cy="-66" r="6"/></g>
<g id="to-head-sad"><circle cy="-60" r="60" fill="#f2c29b"/></g>
<g id="to-pupils"><circle cx="-18" cy="-66" r="6"/><circle cx="22" cy="-66" r="6"/></g></defs>
<rect width="1280" height="720" fill="#246"/>
<g id="mia"><g transform="translate(300 500) scale(-2 2)">
<use href="#mi-head-glad"/><use href="#mi-pupils" x="2"/></g></g>
<g id="tom"><g transform="translate(900 500) scale(2)">
<use href="#to-head-sad"/><use href="#to-pupils"/></g></g></svg>"""


def eyes(take: Moving, at: float) -> dict[str, tuple[int, int]]:
    """How much white and how much black there is in each half of a picture."""
    seen = pixels(take.at(at, 4.0))
    halves = {"mia": seen[:, : SIZE[0] // 2], "tom": seen[:, SIZE[0] // 2 :]}
    return {
        name: (int((half.min(axis=2) > 230).sum()), int((half.max(axis=2) < 60).sum())) for name, half in halves.items()
    }


def test_lids_close_over_the_whole_eye_of_one_after_another() -> None:
    take = moving(EYES, ())
    before = eyes(take, 1.0)
    assert before["mia"][0] > 1_000
    assert min(before["mia"][1], before["tom"][1]) > 100
    (mia,), (tom,) = [[share for share, _ in band.lids] for band in take.bands if band.lids]
    assert abs(mia - tom) * 4.0 > 0.3
    shut = eyes(take, mia * 4.0 + 0.02)
    assert shut["mia"][0] < before["mia"][0] / 50  # no white is left
    assert shut["mia"][1] > 20  # the lashes
    assert shut["tom"] == before["tom"]
    skin = np.abs(pixels(take.at(mia * 4.0 + 0.02, 4.0)) - (143, 90, 54)).max(axis=2) < 12
    assert skin.sum() > (np.abs(pixels(take.at(1.0, 4.0)) - (143, 90, 54)).max(axis=2) < 12).sum() + 900
    dots = eyes(take, tom * 4.0 + 0.02)
    assert dots["mia"] == before["mia"]
    assert 5 < dots["tom"][1] < before["tom"][1] / 1.5
    assert eyes(take, mia * 4.0 + 0.5) == before
    still = eyes(take, 3.9)
    assert pixels(take.at(0.3, 0.5)).tobytes() == pixels(take.at(3.9, 4.0)).tobytes()  # too short a shot for it
    assert still == before


@pytest.mark.parametrize(
    "broken", [("rotate(80)", "a head that lies"), ("scale(-2 2)", "an eye of which nothing can be found")]
)
def test_no_lids_are_no_blink(broken: tuple[str, str]) -> None:
    turned = EYES.replace("scale(-2 2)", f"{broken[0]} scale(2)")
    svg = turned if "lies" in broken[1] else EYES.replace('<use href="#mi-head-glad"/>', "")
    take = moving(svg, ())
    assert [len(band.lids) for band in take.bands] == [0, 0, 1]
    assert len({pixels(take.at(second, 4.0))[:, : SIZE[0] // 2].tobytes() for second in np.arange(0, 4, 0.1)}) == 1


def test_an_empty_drawing_and_one_shape_move_too() -> None:
    empty = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 720"/>'
    lone = empty.replace("/>", '><rect width="1280" height="720" fill="red"/></svg>')
    assert moving(lone).at(1.0, 2.0).getcolors() == [(SIZE[0] * SIZE[1], (255, 0, 0))]
    assert moving(empty).at(1.0, 2.0).getcolors() == [(SIZE[0] * SIZE[1], (255, 255, 255))]


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
