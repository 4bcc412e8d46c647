"""Every setting is drawn, tells itself apart from the others, and shows time of day and weather."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from katha.errors import RenderError
from katha.renderers.sketch import rasterise
from katha.renderers.sketch.settings import draw, draw_setting
from katha.renderers.sketch.settings.data import setting_ids

W, H = 384, 256


@cache
def picture(
    concept: str | None, time: str | None = None, weather: str | None = None, seed: int = 1
) -> NDArray[np.float64]:
    """The backdrop's pixels, shape (H, W, 3), 0..255."""
    drop = draw_setting(concept, time, weather, W, H, seed)
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{W}" height="{H}">{drop.back}{drop.rain}</svg>'
    return np.asarray(Image.open(io.BytesIO(rasterise(svg, W, H))).convert("RGB"), dtype=np.float64)


def coarse(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean colours of a 8 x 12 grid: what is seen at a glance."""
    return pixels.reshape(8, H // 8, 12, W // 12, 3).mean(axis=(1, 3))


@pytest.mark.parametrize("concept", setting_ids())
def test_every_setting_fills_the_frame_and_says_where_feet_stand(concept: str) -> None:
    drop = draw_setting(concept, None, None, W, H, 5)
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{W}" height="{H}">{drop.back}</svg>'
    alpha = np.asarray(Image.open(io.BytesIO(rasterise(svg, W, H))).convert("RGBA"))[..., 3]
    assert alpha.min() == 255
    assert 0.4 * H < drop.horizon < 0.85 * H
    assert drop.front
    assert drop.front_box is not None
    assert "<text" not in drop.back + drop.front


def test_settings_are_all_different_at_a_glance() -> None:
    names = [*setting_ids(), None]
    looks = [np.mean([coarse(picture(name, seed=seed)) for seed in (1, 2)], axis=0) for name in names]
    close = [
        (names[i], names[j]) for i in range(len(names)) for j in range(i) if np.abs(looks[i] - looks[j]).mean() < 7.0
    ]
    assert close == []


@pytest.mark.parametrize("concept", ["forest", "city", "room", "cave", "palace", "sea", None])
def test_times_of_day_differ_and_night_is_dark(concept: str | None) -> None:
    times = {time: picture(concept, time) for time in ("day", "morning", "evening", "night")}
    brightness = {time: pixels.mean() for time, pixels in times.items()}
    assert brightness["night"] < 0.75 * brightness["day"]
    kinds = list(times)
    for i, first in enumerate(kinds):
        for second in kinds[:i]:
            assert np.abs(times[first] - times[second]).mean() > 6.0


def test_rain_falls_outdoors_and_only_in_the_window_indoors() -> None:
    assert draw_setting("meadow", None, "rain", W, H, 1).rain
    assert not draw_setting("room", None, "rain", W, H, 1).rain
    assert not draw_setting("meadow", None, None, W, H, 1).rain
    assert np.abs(picture("room", None, "rain") - picture("room")).max() > 60
    land, rain, storm = (picture("meadow", None, weather)[-60:].mean() for weather in (None, "rain", "storm"))
    assert storm < rain - 2 < land - 4


def test_the_seed_moves_things_and_the_same_seed_repeats_the_bytes() -> None:
    first, again, other = (draw_setting("village", "day", None, W, H, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.back != other.back


def test_size_scales_the_same_picture() -> None:
    small, large = (draw_setting("river", None, None, W * k, H * k, 3) for k in (1, 2))
    assert large.horizon == pytest.approx(2 * small.horizon)
    assert small.water is not None
    assert large.water == pytest.approx(tuple(2 * value for value in small.water))


def test_water_is_water_coloured() -> None:
    for concept in ("river", "pond", "sea"):
        band = draw_setting(concept, "day", None, W, H, 1).water
        assert band is not None
        row = picture(concept, "day")[int((band[0] + band[1]) / 2), W // 4 : 3 * W // 4]
        red, _, blue = np.median(row, axis=0)
        assert blue > red + 20


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"layers": [{"volcano": {}}]}, "volcano"),
        ({"layers": [{"hills": {"colour": "green"}}]}, "'colour'"),
        ({"layers": ["hills"]}, "'hills'"),
    ],
)
def test_wrong_drawing_data_is_named(monkeypatch: pytest.MonkeyPatch, data: Mapping[str, Any], said: str) -> None:
    monkeypatch.setattr(draw, "setting_data", lambda concept: data)
    with pytest.raises(RenderError, match=said):
        draw_setting("crater", None, None, W, H, 1)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(RenderError, match="atlantis"):
        draw_setting("atlantis", None, None, W, H, 1)
