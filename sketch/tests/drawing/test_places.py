"""Places: every one draws at every hour and in every weather, holds its numbers, and is the same bytes twice."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from katha.errors import RenderError
from katha_sketch.drawing.places import (
    TIMES,
    WEATHERS,
    draw_place,
    place_data,
    place_ids,
    place_words,
    state_data,
    states_of_places,
)
from katha_sketch.drawing.svg import rasterise

HOURS = tuple(TIMES)
OUTDOORS = [name for name in place_ids() if not place_data(name).indoors and not place_data(name).airless]


def frame(name: str | None, time: str | None = None, weather: str | None = None) -> str:
    """The place alone in a frame of 192 x 128 pixels."""
    place = draw_place(name, time, weather, 192, 128, 3)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="192" height="128">{place.back}{place.front}{place.over}</svg>'
    )


def pixels(svg: str) -> np.ndarray:
    """The frame as numbers."""
    return np.asarray(Image.open(io.BytesIO(rasterise(svg, 192, 128))).convert("RGB"), dtype=np.float64)


def test_there_are_places_enough_and_each_word_is_written_once_in_its_place() -> None:
    assert len(place_ids()) >= 60
    assert len(OUTDOORS) >= 25
    assert set(place_words().values()) <= set(place_ids())
    for name in place_ids():
        words = place_data(name).words
        assert words
        assert len(set(words)) == len(words)
        assert any(place_words()[word] == name for word in words)


@pytest.mark.parametrize("name", place_ids())
def test_every_place_fills_the_frame_with_something_to_see(name: str) -> None:
    data = place_data(name)
    svg = frame(name)
    assert svg == frame(name)
    assert "<text" not in svg
    assert "nan" not in svg
    ElementTree.fromstring(svg)
    seen = pixels(svg)
    assert seen.std() > 12
    assert (seen.reshape(-1, 3).min(axis=1) > 0).mean() > 0.97
    assert 100 < data.horizon < 512
    assert 0.7 < data.stand <= 1.02
    assert data.stand * 512 >= data.horizon - 1


@pytest.mark.parametrize("name", ["street", "beach", "park", "harbour"])
def test_every_hour_and_weather_of_a_place_looks_different(name: str) -> None:
    drawn = {(time, weather): frame(name, time, weather) for time in HOURS for weather in (None, *WEATHERS)}
    looks = {key: pixels(svg) for key, svg in drawn.items()}
    keys = [key for key in looks if key[0] is not None]
    for nth, one in enumerate(keys):
        for other in keys[nth + 1 :]:
            if {one[1], other[1]} == {None, "sun"} and one[0] == other[0]:
                continue
            assert np.abs(looks[one] - looks[other]).mean() > 0.6, (one, other)


@pytest.mark.parametrize("weather", WEATHERS)
def test_every_place_draws_in_every_weather_and_at_night(weather: str) -> None:
    for name in place_ids():
        svg = frame(name, "night", weather)
        ElementTree.fromstring(svg)
        data = place_data(name)
        if data.airless:
            assert svg == frame(name, "night")
        elif data.indoors:
            assert draw_place(name, "night", weather, 192, 128, 3).over == ""


@pytest.mark.parametrize("state", states_of_places())
def test_every_state_of_a_place_is_seen_indoors_and_out(state: str) -> None:
    for name in ("kitchen", "street"):
        plain, over = (draw_place(name, "day", None, 192, 128, 3, states=told) for told in ((), (state,)))
        assert (plain != over) == state_data(state).fits(place_data(name))


def test_all_sizes_are_filled() -> None:
    for width, height in ((128, 192), (300, 100), (160, 160)):
        place = draw_place("street", "day", None, width, height, 1)
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{place.back}{place.front}</svg>'
        )
        seen = np.asarray(Image.open(io.BytesIO(rasterise(svg, width, height))).convert("RGBA"))
        assert (seen[..., 3] == 255).all()
        assert 0 < place.horizon < place.stand <= height


def test_what_does_not_exist_is_named() -> None:
    with pytest.raises(RenderError, match="no place 'narnia'"):
        draw_place("narnia", None, None, 192, 128, 1)
    with pytest.raises(RenderError, match="no state of a place 'upside-down'"):
        draw_place("park", None, None, 192, 128, 1, states=("upside-down",))
    with pytest.raises(RenderError, match="weather 'hail'"):
        draw_place("park", None, "hail", 192, 128, 1)
