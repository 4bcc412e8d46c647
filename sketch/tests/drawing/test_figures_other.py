"""Birds, reptiles, fish and insects of the sketch: every one of them with every action and every feeling."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

import pytest
import resvg_py
from figures import Figure, FigureSpec, draw_figure

from katha_sketch.drawing.figures.data import drawings

CONCEPTS = (
    "crow", "dove", "sparrow", "parrot", "peacock", "crane", "eagle", "owl", "rooster", "hen", "goose", "swan", "duck",
    "bat", "crocodile", "lizard", "snake", "turtle", "frog", "fish", "crab", "ant", "bee", "grasshopper",
)  # fmt: skip
HEIGHTS = {
    "ant": 34, "bee": 34, "sparrow": 45, "crow": 45, "owl": 50, "eagle": 60, "peacock": 85, "swan": 85, "crane": 85,
    "goose": 55, "hen": 55, "rooster": 55, "frog": 42, "turtle": 48, "crocodile": 55, "snake": 55, "fish": 36,
    "crab": 38,
}  # fmt: skip
ACTIONS, EMOTIONS = tuple(drawings("actions")), tuple(drawings("emotions"))


def pixels(figure: Figure, box: Sequence[float], scale: float = 0.5) -> bytes:
    """The figure within `box` as a small PNG."""
    x0, y0, x1, y1 = box
    width, height = round((x1 - x0) * scale), round((y1 - y0) * scale)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="{x0} {y0} {x1 - x0} {y1 - y0}">'
        f"{figure.svg}</svg>"
    )
    return bytes(resvg_py.svg_to_bytes(svg_string=svg))


def check(figure: Figure) -> None:
    """The figure is valid XML without text, and its box holds every point drawn and the head's centre."""
    root = ElementTree.fromstring(figure.svg)
    assert {element.tag for element in root.iter()} <= {"g", "path"}
    x0, y0, x1, y1 = figure.bbox
    assert -320 < x0 < x1 < 320
    assert -280 < y0 < y1 < 40
    for element in root.iter("path"):
        for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", element.get("d", "")):
            assert x0 - 0.01 <= float(x) <= x1 + 0.01
            assert y0 - 0.01 <= float(y) <= y1 + 0.01
    cx, cy, r = figure.head
    assert x0 < cx < x1
    assert y0 < cy < y1
    assert r > 5
    assert {"hand", "mouth", "foot"} <= set(figure.anchors)


@pytest.mark.parametrize("concept", CONCEPTS)
def test_every_action_is_drawn_and_looks_different(concept: str) -> None:
    box = (-130.0, -170.0, 130.0, 20.0)
    seen: dict[bytes, str] = {}
    for action in ACTIONS:
        figure = draw_figure(FigureSpec(concept, action=action))
        check(figure)
        png = pixels(figure, box, 0.25)
        assert png not in seen, f"{concept}: {action} looks like {seen.get(png)}"
        seen[png] = action


@pytest.mark.parametrize("concept", CONCEPTS)
def test_every_feeling_is_drawn_and_looks_different(concept: str) -> None:
    seen: dict[bytes, str] = {}
    for emotion in EMOTIONS:
        figure = draw_figure(FigureSpec(concept, emotion=emotion, facing=-1))
        check(figure)
        cx, cy, r = figure.head
        png = pixels(figure, (cx - 2 * r, cy - 2 * r, cx + 2 * r, cy + 2 * r), 20 / r)
        assert png not in seen, f"{concept}: {emotion} looks like {seen.get(png)}"
        seen[png] = emotion


@pytest.mark.parametrize("concept", CONCEPTS)
def test_a_figure_stands_on_the_ground_as_tall_as_its_kind(concept: str) -> None:
    _, top, _, bottom = draw_figure(FigureSpec(concept)).bbox
    assert abs(bottom) < 4
    if concept in HEIGHTS:
        assert 0.7 * HEIGHTS[concept] < -top < 1.4 * HEIGHTS[concept]


@pytest.mark.parametrize("concept", ["crow", "fish", "crab", "snake", "ant", "turtle", "frog"])
def test_the_same_spec_draws_the_same_and_facing_mirrors(concept: str) -> None:
    spec = FigureSpec(concept, action="give", emotion="happy", attributes=("fat", "red_scarf", "spotted"), phase=0.3)
    assert draw_figure(spec) == draw_figure(spec)
    right, left = (draw_figure(FigureSpec(concept, action="push", facing=facing)) for facing in (1, -1))
    assert left.anchors["hand"][0] == pytest.approx(-right.anchors["hand"][0])
    assert right.anchors["hand"][0] > 0


def test_flight_lifts_wings_and_body_off_the_ground() -> None:
    for concept in ("crow", "eagle", "bat", "bee"):
        standing, flying = (draw_figure(FigureSpec(concept, action=action)) for action in (None, "fly"))
        assert flying.head[1] < standing.head[1] - 10
        assert flying.anchors["hand"][1] < standing.anchors["hand"][1]


def test_kinds_look_different_from_each_other() -> None:
    box = (-100.0, -110.0, 100.0, 20.0)
    assert len({pixels(draw_figure(FigureSpec(concept)), box) for concept in CONCEPTS}) == len(CONCEPTS)


@pytest.mark.parametrize("attribute", tuple(drawings("attributes")))
def test_attributes_change_every_body(attribute: str) -> None:
    for concept in ("sparrow", "crocodile", "turtle", "frog", "snake", "fish", "crab", "bee", "grasshopper"):
        plain, changed = draw_figure(FigureSpec(concept)), draw_figure(FigureSpec(concept, attributes=(attribute,)))
        check(changed)
        assert plain.svg != changed.svg, f"{attribute} does nothing to {concept}"
