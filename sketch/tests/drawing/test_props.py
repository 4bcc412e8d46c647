"""Props: every entry of the vocabulary draws, inside its box, unlike the others; bad data is refused in words."""

from __future__ import annotations

import itertools
from functools import cache
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest
import resvg_py
from PIL import Image

import katha_sketch.drawing.props as props
from katha.errors import RenderError
from katha_sketch.drawing.props import Drawn, draw_prop
from katha_sketch.drawing.props.drawing import read_drawing
from katha_sketch.drawing.props.outline import box, path_points
from katha_sketch.drawing.props.shapes import read_shape
from katha_sketch.drawing.tables import load_table

PROPS = tuple(load_table("props", "drawings.yaml"))
DRAWN_TAGS = {"g", "path"}


def pixels(drawn: Drawn, view: tuple[float, float, float, float], width: int, height: int) -> npt.NDArray[np.uint8]:
    """RGBA of `drawn` with `view` (x, y, width, height) stretched over the picture, of shape (height, width, 4)."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="{view[0]} {view[1]} {view[2]} {view[3]}">{drawn.svg}</svg>'
    )
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg))
    return np.asarray(Image.open(BytesIO(png)).convert("RGBA"))


@cache
def thumbnail(concept: str) -> npt.NDArray[np.float64]:
    """The prop at 24 pixels on grey, of shape (24, 24, 3), in 0..1."""
    x0, y0, x1, y1 = draw_prop(concept).bbox
    side = max(x1 - x0, y1 - y0)
    view = ((x0 + x1 - side) / 2, (y0 + y1 - side) / 2, side, side)
    rgba = pixels(draw_prop(concept), view, 24, 24) / 255
    return rgba[..., :3] * rgba[..., 3:] + 0.8 * (1 - rgba[..., 3:])


def test_the_public_surface_is_small() -> None:
    assert props.__all__ == ["Drawn", "draw_prop"]


@pytest.mark.parametrize("concept", PROPS)
def test_a_prop_is_plain_shapes_and_nothing_written(concept: str) -> None:
    root = ElementTree.fromstring(draw_prop(concept).svg)
    assert {node.tag for node in root.iter()} <= DRAWN_TAGS
    assert not "".join(root.itertext()).strip()


@pytest.mark.parametrize("concept", PROPS)
@pytest.mark.parametrize("phase", [0.0, 0.25, 0.8])
def test_the_box_contains_what_is_drawn_and_little_more(concept: str, phase: float) -> None:
    drawn = draw_prop(concept, phase)
    x0, y0, x1, y1 = drawn.bbox
    around = 12
    view = (x0 - around, y0 - around, x1 - x0 + 2 * around, y1 - y0 + 2 * around)
    width, height = round(view[2]), round(view[3])
    inked = np.argwhere(pixels(drawn, view, width, height)[..., 3] > 8)
    (top, left), (bottom, right) = inked.min(axis=0), inked.max(axis=0) + 1
    inside = (left - around, top - around, width - around - right, height - around - bottom)
    assert min(inside) >= -1, f"{concept} is drawn outside its box: {inside}"
    assert max(inside) <= 3, f"the box of {concept} is too big: {inside}"


@pytest.mark.parametrize("concept", PROPS)
def test_a_prop_stands_on_its_base_and_is_big_enough_to_be_seen(concept: str) -> None:
    x0, y0, x1, y1 = draw_prop(concept).bbox
    assert 18 <= max(x1 - x0, y1 - y0) <= 165
    assert min(x1 - x0, y1 - y0) >= 10
    assert -1.5 <= y1 <= 3, "the base is at y = 0"
    assert x0 < 0 < x1


def test_drawing_twice_gives_the_same() -> None:
    first = [draw_prop(concept, 0.3) for concept in PROPS]
    assert first == [draw_prop(concept, 0.3) for concept in PROPS]


def test_every_two_props_look_different_as_thumbnails() -> None:
    alike = [
        (one, other, round(float(np.abs(thumbnail(one) - thumbnail(other)).mean()), 3))
        for one, other in itertools.combinations(PROPS, 2)
        if np.abs(thumbnail(one) - thumbnail(other)).mean() < 0.045
    ]
    assert alike == []


def test_scale_resizes_the_drawing_and_its_box() -> None:
    shapes = [{"rect red bare": "-10 -20 20 20"}]
    whole = read_drawing("thing", {"shapes": shapes}).at(0)
    half = read_drawing("thing", {"shapes": shapes, "scale": 0.5}).at(0)
    assert whole.bbox == (-10, -20, 10, 0)
    assert half.bbox == (-5, -10, 5, 0)
    assert (pixels(half, (-5, -10, 10, 10), 20, 20) == pixels(whole, (-10, -20, 20, 20), 20, 20)).all()


@pytest.mark.parametrize(
    ("head", "geometry", "bounds"),
    [
        ("ellipse red bare", "0 -10 8 10", (-8, -20, 8, 0)),
        ("rect red bare", "-4 -6 8 6 2", (-4, -6, 4, 0)),
        ("rect red bare turn=90", "-4 -2 8 2", (-1, -5, 1, 3)),
        ("line ink", "0 0 10 -10", (-1.2, -11.2, 11.2, 1.2)),
        ("tube brown size=8 thin", "0 0 10 0", (-4.7, -4.7, 14.7, 4.7)),
        ("path red bare", "M0 0 Q10 -20 20 0 Z", (0, -10, 20, 0)),
    ],
)
def test_a_shape_knows_what_it_covers(head: str, geometry: str, bounds: tuple[float, ...]) -> None:
    assert read_shape(head, geometry).at(0)[1] == pytest.approx(bounds, abs=0.02)


def test_a_turn_about_a_point_and_a_sway() -> None:
    turned = read_shape("polygon red bare turn=90 at=0,0", "0 0 10 0 10 4")
    assert turned.at(0)[1] == pytest.approx((-4, 0, 0, 10), abs=0.01)
    swaying = read_shape("line ink sway=90", "0 0 0 -10")
    assert swaying.at(0.25)[1] == pytest.approx((-1.2, -1.2, 11.2, 1.2), abs=0.01)


def test_path_data_may_repeat_and_close() -> None:
    assert box(path_points("M0 0 4 0 L4-4 H-2 V3 Z")) == (-2, -4, 4, 3)


def test_shades_of_a_colour_differ() -> None:
    drawn = [read_shape(f"ellipse {name} bare", "0 0 5 5").svg for name in ("red", "red+", "red++", "red-", "ink")]
    assert len(set(drawn)) == 5


def test_an_unknown_prop_is_refused_with_the_next_step() -> None:
    with pytest.raises(RenderError, match=r"no prop 'zeppelin'.*drawings\.yaml"):
        draw_prop("zeppelin")


@pytest.mark.parametrize(
    ("draw", "complaint"),
    [
        ({}, "has no drawing"),
        ({"shapes": []}, "has no drawing"),
        ({"shapes": [{"ellipse red": "0 0 1 1"}], "size": 3}, "key 'size' is unknown"),
        ({"shapes": [{"ellipse red": "0 0 1 1"}], "scale": "big"}, "scale 'big' is not a number"),
        ({"shapes": [{"ellipse red": "0 0 1 1"}], "scale": 0}, "scale 0 is not a number"),
        ({"shapes": ["ellipse red"]}, "shape 1: write one"),
        ({"shapes": [{"ellipse red": "0 0 1 1"}, {"star red": "0 0"}]}, "shape 2: 'star' is not a kind of shape"),
        ({"shapes": [{"ellipse": "0 0 1 1"}]}, "a colour must follow 'ellipse'"),
        ({"shapes": [{"ellipse mauve": "0 0 1 1"}]}, "unknown colour 'mauve'; the palette has"),
        ({"shapes": [{"ellipse red fat": "0 0 1 1"}]}, "'fat' is not an option"),
        ({"shapes": [{"ellipse red": "0 0 1"}]}, "4 numbers wanted, not 3"),
        ({"shapes": [{"rect red": "0 0 1"}]}, "4 or 5 numbers wanted, not 3"),
        ({"shapes": [{"polygon red": "0 0 1"}]}, "pairs of x and y"),
        ({"shapes": [{"ellipse red": "0 0 one 1"}]}, "'one' is not a number"),
        ({"shapes": [{"ellipse red": "0 0 nan 1"}]}, "'nan' is not a finite number"),
        ({"shapes": [{"path red": "M0 0 A1 1 0 0 0 3 3"}]}, "path command 'A' is not one of"),
        ({"shapes": [{"path red": "M0 0 L1"}]}, "path command 'L' takes 2 numbers at a time, not 1"),
        ({"shapes": [{"path red": "1 2 3"}]}, "starts with a command letter"),
        ({"shapes": [{"path red": ""}]}, "no geometry"),
    ],
)
def test_bad_drawing_data_is_refused_in_words(draw: dict[str, object], complaint: str) -> None:
    with pytest.raises(RenderError, match=complaint) as caught:
        read_drawing("thing", draw)
    assert "'thing'" in str(caught.value)
