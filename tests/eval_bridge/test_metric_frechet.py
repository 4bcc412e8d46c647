"""FID against SciPy's matrix root, on features by hand and of the real network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from metric_boards import HandEncoder, make_board, make_context, plain_picture
from numpy.typing import NDArray
from scipy.linalg import sqrtm

from katha.eval_bridge.metrics import measure_set
from katha.eval_bridge.metrics.encoders import InceptionEncoder, make_encoder
from katha.eval_bridge.metrics.frechet import FrechetDistance, Moments, frechet_distance
from katha.registry import default_registry

Rows = NDArray[np.float64]


def by_scipy(one: Rows, other: Rows) -> float:
    """Eq. 6 of Heusel et al. as it is printed."""
    m, g = np.cov(one, rowvar=False), np.cov(other, rowvar=False)
    apart = one.mean(axis=0) - other.mean(axis=0)
    return float(apart @ apart + np.trace(m + g - 2 * sqrtm(m @ g).real))


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_that_of_scipy_s_root(seed: int) -> None:
    draw = np.random.default_rng(seed)
    one, other = draw.normal(size=(40, 6)) @ draw.normal(size=(6, 6)), 2 + draw.normal(size=(25, 6))
    moments = [Moments(), Moments()]
    for rows, moment in zip((one, other), moments, strict=True):
        for part in np.array_split(rows, 4):
            moment.add(part)
    found = frechet_distance(moments[0].gaussian(), moments[1].gaussian())
    assert found == pytest.approx(by_scipy(one, other), rel=1e-6)
    assert frechet_distance(moments[0].gaussian(), moments[0].gaussian()) == pytest.approx(0.0, abs=1e-6)


def test_fewer_pictures_than_features_are_no_trouble() -> None:
    draw = np.random.default_rng(3)
    one, other = Moments(), Moments()
    one.add(draw.normal(size=(3, 20)))
    other.add(draw.normal(size=(3, 20)))
    assert np.isfinite(frechet_distance(one.gaussian(), other.gaussian()))


def test_boards_are_held_against_the_gold_pictures(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    pictures = [plain_picture(at) for at in range(10)]
    rows = {data: draw.normal(size=4) for data in pictures}
    default_registry("encoders").register("by-hand-fid")(lambda: HandEncoder(rows))
    metric = FrechetDistance(encoder="by-hand-fid")
    halves = {"a": pictures[:3], "b": pictures[3:6]}
    boards = [make_board("xyz", story_id=story, images=images) for story, images in halves.items()]
    context = make_context(tmp_path, pool=[("a", data) for data in pictures[5:]])
    (value,) = measure_set(metric, "method", boards, context)
    wanted = by_scipy(np.stack([rows[data] for data in pictures[:6]]), np.stack([rows[data] for data in pictures[5:]]))
    assert (value.value, value.n) == (pytest.approx(wanted, rel=1e-6), 6)
    (nothing,) = measure_set(metric, "method", boards, make_context(tmp_path))
    assert (nothing.value, nothing.reason) == (None, "there are no two gold pictures: give --references")


def test_the_features_are_those_before_the_last_layer(tmp_path: Path) -> None:
    import torch
    from torchvision.models import inception_v3

    torch.manual_seed(1)
    model = inception_v3(weights=None, init_weights=False, aux_logits=True, transform_input=False).eval()
    torch.save(model.state_dict(), tmp_path / "inception.pth")
    picture = plain_picture(1, (64, 64))
    encoder = make_encoder(f"inception-features:{tmp_path / 'inception.pth'}")
    features = encoder.encode_images([picture])
    assert features.shape == (1, 2048)
    with torch.inference_mode():
        named = model.fc(torch.tensor(features, dtype=torch.float32)).softmax(dim=1).numpy()
    assert isinstance(encoder, InceptionEncoder)
    assert named == pytest.approx(InceptionEncoder.encode_images(encoder, [picture]), abs=1e-5)
