"""The small figures of the sketch (ant, bee, grasshopper, fish, crab): each species, action and feeling shows."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import numpy as np
import pytest
import resvg_py
from figures import Figure, FigureSpec, draw_figure
from PIL import Image

from katha_sketch.drawing.figures.data import drawings

SMALL = ("ant", "bee", "crab", "fish", "grasshopper")
ACTIONS = sorted(drawings("actions"))
EMOTIONS = sorted(drawings("emotions"))
_FRAME, _FEET = (240, 200), (120, 160)


def pixels(figure: Figure, unit: float) -> np.ndarray:
    """The figure on white with its ground contact at `_FEET`, `unit` pixels per figure unit: (200, 240, 3)."""
    width, height = _FRAME
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
        f'<g transform="translate({_FEET[0]},{_FEET[1]}) scale({unit})">{figure.svg}</g></svg>'
    )
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg))
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=np.float64)


def changed(first: np.ndarray, second: np.ndarray) -> int:
    """How many pixels differ clearly between two pictures."""
    return int((np.abs(first - second).max(axis=2) > 60).sum())


def at_sixty(concept: str) -> np.ndarray:
    """The standing figure 60 pixels tall."""
    figure = draw_figure(FigureSpec(concept))
    return pixels(figure, 60 / (figure.bbox[3] - figure.bbox[1]))


@pytest.mark.parametrize("concept", SMALL)
def test_every_action_is_valid_svg_without_text_and_the_same_twice(concept: str) -> None:
    for action in ACTIONS:
        spec = FigureSpec(concept, action=action, emotion="happy", phase=0.4)
        figure = draw_figure(spec)
        root = ElementTree.fromstring(figure.svg)
        assert {element.tag for element in root.iter()} <= {"g", "path"}, action
        assert not "".join(root.itertext()).strip(), action
        assert "nan" not in figure.svg, action
        assert figure == draw_figure(spec), action


@pytest.mark.parametrize("concept", SMALL)
def test_the_box_holds_every_pixel_of_every_action(concept: str) -> None:
    for index, action in enumerate(ACTIONS):
        figure = draw_figure(FigureSpec(concept, action=action, emotion="surprised", facing=1 - 2 * (index % 2)))
        rows, columns = np.nonzero(pixels(figure, 0.9).min(axis=2) < 250)
        x0, y0, x1, y1 = (0.9 * value for value in figure.bbox)
        assert x0 - 1.5 <= columns.min() - _FEET[0] <= columns.max() - _FEET[0] <= x1 + 1.5, action
        assert y0 - 1.5 <= rows.min() - _FEET[1] <= rows.max() - _FEET[1] <= y1 + 1.5, action


def test_species_differ_at_sixty_pixels() -> None:
    seen = {concept: at_sixty(concept) for concept in SMALL}
    for first, second in combinations(SMALL, 2):
        assert changed(seen[first], seen[second]) > 600, (first, second)


def test_each_insect_has_its_own_colour() -> None:
    means = {}
    for concept in ("ant", "bee", "grasshopper"):
        picture = at_sixty(concept).reshape(-1, 3)
        vivid = picture[np.ptp(picture, axis=1) > 60]
        assert len(vivid) > 300, concept
        means[concept] = vivid.mean(axis=0)
    red, green, _ = means["ant"]
    assert red > 1.4 * green
    red, green, blue = means["bee"]
    assert min(red, green) > 2 * blue
    red, green, blue = means["grasshopper"]
    assert green > 1.15 * red > blue


@pytest.mark.parametrize("concept", SMALL)
def test_actions_look_different(concept: str) -> None:
    names = ("standing", *ACTIONS)
    figures = (draw_figure(FigureSpec(concept, action=None if name == "standing" else name)) for name in names)
    seen = np.stack([pixels(figure, 1.6).mean(axis=2) for figure in figures])[:, ::2, ::2]
    for index, name in enumerate(names[:-1]):
        differing = (np.abs(seen[index + 1 :] - seen[index]) > 60).sum(axis=(1, 2))
        assert differing.min() > 50, (name, names[index + 1 + int(differing.argmin())], differing.min())


@pytest.mark.parametrize("concept", SMALL)
def test_feelings_look_different(concept: str) -> None:
    figures = {name: draw_figure(FigureSpec(concept, emotion=name)) for name in EMOTIONS}
    figures["neutral"] = draw_figure(FigureSpec(concept))
    seen = {name: pixels(figure, 14 / figure.head[2]) for name, figure in figures.items()}
    for first, second in combinations(seen, 2):
        assert changed(seen[first], seen[second]) > 100, (first, second)


def test_all_are_small_and_stand_on_the_ground() -> None:
    adult = draw_figure(FigureSpec("man")).bbox
    for concept in SMALL:
        _, y0, _, y1 = draw_figure(FigureSpec(concept)).bbox
        assert 30 < y1 - y0 < 0.56 * (adult[3] - adult[1]), concept
        assert abs(y1) < 5, concept
