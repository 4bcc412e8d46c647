"""Pictograms: the table and the packed drawings agree, sizes are sane, actors act, the same bytes every time."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
from importlib import resources

import numpy as np
import pytest
from PIL import Image

from katha.errors import RenderError
from katha_sketch.drawing.pictograms import (
    ACTS,
    MOODS,
    STATES,
    Picture,
    act_pictogram,
    draw_pictogram,
    draw_stand_in,
    find_noun,
    nouns,
    pictogram,
    pictograms,
    put_states,
    stage_height,
    stated_drawing,
)
from katha_sketch.drawing.pictograms.data import ACTING, FACES, KINDS, STANDS, heads
from katha_sketch.drawing.svg import rasterise

ROWS = (
    resources.files("katha_sketch.drawing.pictograms")
    .joinpath("nouns.tsv")
    .read_text(encoding="utf-8")
    .splitlines()[1:]
)


def pixels(picture: Picture) -> np.ndarray:
    """The picture with its foot at (300, 300) of a 600 x 400 frame, on white."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="400"><rect width="600" height="400" fill="#fff"/>'
        f'<g transform="translate(300,300)">{picture.svg}</g></svg>'
    )
    return np.asarray(Image.open(io.BytesIO(rasterise(svg, 600, 400))).convert("RGB"), dtype=np.float64)


def test_every_row_is_whole_and_every_word_stands_once() -> None:
    words: list[str] = []
    for row in ROWS:
        name, kind, cm, stands, acts, faces, listed = row.split("\t")
        assert (kind in KINDS, stands in STANDS, acts in ACTING, faces in FACES) == (True,) * 4, row
        assert float(cm) > 0
        assert name in pictograms()
        words += [entry.partition("=")[0].lower() for entry in listed.split("; ")]
    assert len(set(words)) == len(words)
    assert len(words) >= 1200
    assert len({row.split("\t")[0] for row in ROWS}) == len(ROWS)
    assert {row.split("\t")[1] for row in ROWS} == set(KINDS)


def test_every_noun_has_its_pictogram_and_a_sane_size() -> None:
    for noun in nouns().values():
        found = pictogram(noun.pictogram)
        assert found.kind == noun.kind
        assert 0.5 <= noun.cm <= 10_000
        assert 8 <= stage_height(noun.cm) <= 700
    order = ["ant", "mouse", "kitten", "cat", "dog", "child", "woman", "horse", "elephant", "house", "castle"]
    sizes = [stage_height(nouns()[word].cm) for word in order]
    assert sizes == sorted(sizes)


def test_what_the_set_has_not_is_drawn_here_or_taken_from_a_prop() -> None:
    own = [name for name in pictograms() if name not in {row.split("\t")[0] for row in ROWS}]
    assert len(own) >= 35
    shown = {noun.pictogram for noun in nouns().values()}
    for name in own:
        found = pictogram(name)
        assert name in shown
        assert (found.kind in KINDS, found.stands in STANDS, found.acts in ACTING) == (True, True, True)
        assert found.box[0] < found.box[2]
        assert found.box[1] < found.box[3]


def test_a_word_of_an_own_drawing_has_its_own_height() -> None:
    found = {word: find_noun(word) for word in ("chest of drawers", "nightstand")}
    assert {word: noun and (noun.pictogram, noun.cm) for word, noun in found.items()} == {
        "chest of drawers": ("dresser", 95.0),
        "nightstand": ("dresser", 55.0),
    }


def test_words_are_found_in_any_case_and_what_is_not_there_is_none() -> None:
    found = find_noun("Puppy")
    assert found is not None
    assert (found.pictogram, found.cm) == ("dog", 28)
    assert find_noun("mongoose") is None
    with pytest.raises(RenderError, match="no pictogram"):
        pictogram("mongoose")


@pytest.mark.parametrize("name", ["dog", "robot", "teapot", "spider", "rocket", "unicorn"])
def test_the_box_holds_every_pixel(name: str) -> None:
    for act in ("stand", "run", "fall", "lie"):
        for facing in (1, -1):
            picture = act_pictogram(name, 90, act=act, facing=facing)
            ys, xs = np.nonzero((pixels(picture) < 250).any(axis=2))
            x0, y0, x1, y1 = picture.bbox
            assert xs.min() >= 300 + x0 - 3
            assert xs.max() <= 300 + x1 + 3
            assert ys.min() >= 300 + y0 - 3
            assert ys.max() <= 300 + y1 + 3
            assert max(np.ptp(xs), np.ptp(ys)) > 50


def test_every_pictogram_draws_valid_svg_with_an_outline_and_twice_the_same() -> None:
    for name, found in pictograms().items():
        picture = draw_pictogram(name, 80)
        ElementTree.fromstring(f'<svg xmlns:xlink="http://www.w3.org/1999/xlink">{picture.svg}</svg>')
        assert "<text" not in picture.svg
        assert "#2b2a33" in picture.svg
        assert picture == draw_pictogram(name, 80)
        assert found.box[0] < found.box[2]


def test_left_and_right_are_mirrored_and_front_is_not() -> None:
    left, right = (pixels(draw_pictogram("dog", 100, facing=side)) for side in (-1, 1))
    assert np.abs(left - right).mean() > 1
    assert np.abs(left[:, 100:500] - right[:, 100:500][:, ::-1]).mean() < 1.5
    assert draw_pictogram("robot", 100, facing=-1).svg == draw_pictogram("robot", 100).svg


def test_a_beast_lies_on_its_belly_and_what_stands_upright_on_its_side() -> None:
    dog, robot = (act_pictogram(name, 90, act="lie").solid for name in ("dog", "robot"))
    assert dog[3] - dog[1] == pytest.approx(54)
    assert robot[2] - robot[0] == pytest.approx(90)


def test_a_thing_that_speaks_or_feels_has_a_face_and_who_has_one_keeps_it() -> None:
    for name in ("teapot", "cloud", "lamp", "automobile"):
        plain, speaks, sad = (act_pictogram(name, 80, **how).svg for how in ({}, {"act": "speak"}, {"mood": "sad"}))
        assert speaks.count("<path") >= plain.count("<path") + 5
        assert sad.count("<path") >= plain.count("<path") + 5
    for name in ("robot", "doll"):
        moved, thinks = (act_pictogram(name, 80, act=act).svg.count('fill="#fffdf6"') for act in ("move", "look"))
        assert moved == thinks


@pytest.mark.parametrize("name", ["robot", "ghost", "spider", "teapot", "black-cat"])
def test_actors_without_a_rig_act_and_feel(name: str) -> None:
    drawn = {act: act_pictogram(name, 80, act=act).svg for act in ACTS}
    assert len(set(drawn.values())) >= len(ACTS) - 1
    felt = {mood: act_pictogram(name, 80, mood=mood).svg for mood in MOODS}
    assert len(set(felt.values())) >= len(MOODS) - 3
    for side in (1, -1):
        assert "nan" not in act_pictogram(name, 80, act="speak", mood="happy", facing=side).svg


@pytest.mark.parametrize("name", ["amphora", "door", "printer", "automobile", "closed-book", "wheel", "red-apple"])
def test_what_has_become_of_a_thing_is_seen(name: str) -> None:
    found, plain = pictogram(name), draw_pictogram(name, 90)
    shown = 0
    for state in STATES:
        other, shapes = stated_drawing(name, found.kind, (state,))
        drawn = put_states(plain, found.kind, (state,))
        assert drawn == put_states(plain, found.kind, (state,))
        ElementTree.fromstring(f'<svg xmlns:xlink="http://www.w3.org/1999/xlink">{drawn.svg}</svg>')
        shown += bool(shapes) or other != name or drawn.svg != plain.svg
    assert shown >= 18


def test_a_state_is_cut_off_at_the_outline_and_halves_stay_near() -> None:
    plain, cracked = (
        draw_pictogram("amphora", 90),
        put_states(draw_pictogram("amphora", 90), "container", ("cracked",)),
    )
    beside = (pixels(plain) > 250).all(axis=2)
    changed = np.abs(pixels(cracked) - pixels(plain)).max(axis=2) > 100
    assert changed.sum() > 200
    assert (changed & beside).sum() < 0.05 * changed.sum()
    halves = put_states(plain, "container", ("broken",))
    _, xs = np.nonzero((pixels(halves) < 250).any(axis=2))
    assert xs.min() >= 300 + halves.bbox[0] - 3
    assert xs.max() <= 300 + halves.bbox[2] + 3
    with pytest.raises(RenderError, match="no state 'vexed'"):
        put_states(plain, "container", ("vexed",))


def test_unknown_acts_and_moods_are_named() -> None:
    with pytest.raises(RenderError, match="cannot 'juggle'"):
        act_pictogram("robot", 80, act="juggle")
    with pytest.raises(RenderError, match="mood 'hangry'"):
        act_pictogram("robot", 80, mood="hangry")


def test_heads_get_bodies_and_stand_ins_have_the_size_of_the_thing() -> None:
    for name in heads():
        x0, y0, x1, y1 = pictogram(name).box
        assert len(pictogram(name).layers) == 2
        assert 0.6 < (x1 - x0) / (y1 - y0) < 1.8 or name == "alien"
    drawn = {kind: draw_stand_in(kind, 170).svg for kind in KINDS}
    assert len(set(drawn.values())) == len(KINDS)  # each tells its kind
    for kind in KINDS:
        x0, y0, x1, y1 = draw_stand_in(kind, 170).bbox
        assert y0 == pytest.approx(-100)
        assert x1 > x0
        assert y1 == 0
