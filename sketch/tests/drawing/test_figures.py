"""Figures of the sketch: every character draws, poses and faces differ in the picture, boxes hold what is drawn."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import numpy as np
import pytest
import resvg_py
from figures import Figure, FigureSpec, draw_figure
from PIL import Image

from katha.errors import RenderError
from katha_sketch.drawing.deeds.figure import EMANATA, RIGS
from katha_sketch.drawing.figures.data import drawings
from katha_sketch.drawing.figures.face import EYES, MOUTHS, gape
from katha_sketch.drawing.figures.ink import Ink
from katha_sketch.drawing.figures.signs import SIGNS
from katha_sketch.drawing.figures.tools import TOOLS

CHARACTERS = sorted(name for name, draw in drawings("characters").items() if draw.get("rig"))
ACTIONS = sorted(drawings("actions"))
EMOTIONS = sorted(drawings("emotions"))


def pixels(figure: Figure, unit: float = 0.8, pad: float = 0.0) -> np.ndarray:
    """The figure on white, its feet in the middle of a 240 x 200 frame: (200, 240, 3) in 0..255."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="240" height="200"><rect width="240" height="200" fill="#fff"/>'
        f'<g transform="translate(120,170) scale({unit})">{figure.svg}</g></svg>'
    )
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg))
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=np.float64)


@pytest.mark.parametrize("concept", CHARACTERS)
def test_every_character_draws_valid_svg_without_letters(concept: str) -> None:
    for action, emotion in ((None, None), ("run", "happy"), ("sleep", None), ("talk", "afraid"), ("die", "sad")):
        spec = FigureSpec(concept, action=action, emotion=emotion)
        figure = draw_figure(spec)
        tags = {element.tag for element in ElementTree.fromstring(figure.svg).iter()}
        assert tags <= {"g", "path"}
        assert "nan" not in figure.svg
        assert figure == draw_figure(spec)
        x0, y0, x1, y1 = figure.bbox
        cx, cy, r = figure.head
        assert x0 <= cx <= x1
        assert y0 <= cy <= y1
        assert 3 < r < 60
        assert {"hand", "mouth", "foot"} <= figure.anchors.keys()


@pytest.mark.parametrize("concept", ["lion", "girl", "elephant", "mouse"])
def test_the_box_holds_every_pixel(concept: str) -> None:
    for action in (None, "shout", "fall", "think", "ride"):
        for facing in (1, -1):
            figure = draw_figure(FigureSpec(concept, action=action, emotion="surprised", facing=facing))
            rows, columns = np.nonzero(pixels(figure, unit=0.6).min(axis=2) < 250)
            x0, y0, x1, y1 = (0.6 * value for value in figure.bbox)
            assert columns.min() - 120 >= x0 - 1.5
            assert columns.max() - 120 <= x1 + 1.5
            assert rows.min() - 170 >= y0 - 1.5
            assert rows.max() - 170 <= y1 + 1.5


def test_actions_look_different() -> None:
    seen = {action: pixels(draw_figure(FigureSpec("fox", action=action))) for action in ACTIONS}
    differences = {pair: np.abs(seen[pair[0]] - seen[pair[1]]).mean() for pair in combinations(ACTIONS, 2)}
    closest = min(differences, key=lambda pair: differences[pair])
    assert differences[closest] > 1.0, closest


def test_feelings_look_different_on_a_small_face() -> None:
    figures = {name: draw_figure(FigureSpec("girl", emotion=name)) for name in EMOTIONS}
    figures["neutral"] = draw_figure(FigureSpec("girl"))
    seen = {name: pixels(figure, unit=14 / figure.head[2]) for name, figure in figures.items()}
    assert len(seen) == 12
    for first, second in combinations(seen, 2):
        changed = (np.abs(seen[first] - seen[second]).max(axis=2) > 60).sum()
        assert changed > 60, (first, second)


def test_facing_left_mirrors_the_picture() -> None:
    right, left = (draw_figure(FigureSpec("wolf", action="point", facing=facing)) for facing in (1, -1))
    assert left.bbox[0] == pytest.approx(-right.bbox[2])
    assert left.anchors["hand"][0] == pytest.approx(-right.anchors["hand"][0])
    assert np.abs(pixels(right)[:, ::-1] - pixels(left)).mean() < 0.5


def test_attributes_change_size_colour_and_dress() -> None:
    plain = draw_figure(FigureSpec("cat"))
    for name in drawings("attributes"):
        assert draw_figure(FigureSpec("cat", attributes=(name,))).svg != plain.svg, name
    small, big = (draw_figure(FigureSpec("cat", attributes=(name,))).head[2] for name in ("small", "big"))
    assert small < plain.head[2] < big
    red = pixels(draw_figure(FigureSpec("cat", attributes=("red_scarf",)))) - pixels(plain)
    assert (red[..., 0] - red[..., 2] > 40).sum() > 20


def test_an_adult_stands_a_hundred_units_tall_on_the_ground() -> None:
    _, y0, _, y1 = draw_figure(FigureSpec("man")).bbox
    assert 92 <= y1 - y0 <= 106
    assert abs(y1) < 3
    heights = {name: -draw_figure(FigureSpec(name)).bbox[1] for name in ("mouse", "cat", "lion", "elephant")}
    assert heights["mouse"] < heights["cat"] < heights["lion"] < heights["elephant"]


def test_phase_varies_the_pose() -> None:
    still = draw_figure(FigureSpec("boy", action="walk"))
    assert draw_figure(FigureSpec("boy", action="walk", phase=0.3)).svg != still.svg


@pytest.mark.parametrize(
    "spec",
    [
        FigureSpec("unicorn"),
        FigureSpec("fox", action="juggle"),
        FigureSpec("fox", emotion="bewitched"),
        FigureSpec("fox", attributes=("invisible",)),
    ],
)
def test_what_the_vocabulary_lacks_is_refused_by_name(spec: FigureSpec) -> None:
    unknown = next(
        name
        for name in ("unicorn", "juggle", "bewitched", "invisible")
        if name in (spec.concept, spec.action, spec.emotion, *spec.attributes)
    )
    with pytest.raises(RenderError, match=f"{unknown!r}.*vocabulary"):
        draw_figure(spec)


def test_the_data_names_only_parts_that_exist() -> None:
    for name, draw in drawings("actions").items():
        assert set(draw["emanata"]) <= EMANATA.keys(), name
        assert draw.get("tool") in {None, *TOOLS}, name
        assert draw.get("mouth") in {None, *MOUTHS}, name
        assert draw.get("eyes") in {None, *EYES}, name
    for name, draw in drawings("emotions").items():
        assert draw["eyes"] in EYES, name
        assert draw["mouth"] in MOUTHS, name
        assert set(draw["extras"]) <= SIGNS.keys(), name
    assert {drawings("characters")[name]["rig"] for name in CHARACTERS} <= RIGS.keys()
    assert gape("shout") > gape("grin") > gape("smile") == 0


def test_a_pen_scales_shapes_but_not_its_line() -> None:
    pen = Ink()
    pen.at(10, 0, 90, 2).ellipse(0, 0, 5, 1, fill="red")
    assert pen.sheet.box == pytest.approx((8 - 1.2, -10 - 1.2, 12 + 1.2, 10 + 1.2))
    assert re.search(r'stroke-width="2.40"', pen.sheet.parts[0])
