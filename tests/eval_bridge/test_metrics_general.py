"""The measures that everybody knows, on vectors by hand and on the real classes at toy size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from metric_boards import make_board, make_context, tiny_clip
from PIL import Image

from katha.eval_bridge.metrics import measure_board
from katha.eval_bridge.metrics.general import ClipText


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_clip(tmp_path_factory.mktemp("clip"))


def test_clip_t_is_the_cosine_of_the_model_s_own_vectors(clip: str, tmp_path: Path) -> None:
    board = make_board(["A fox sleeps.", None, "The fox runs."])
    found = list(measure_board(ClipText(model=clip), board, make_context(tmp_path)))
    assert [(value.frame, value.reason) for value in found] == [
        *((1, None), (2, "the frame has no text of its own"), (3, None)),
    ]
    name, _, weights = clip.partition("@")
    model, _, prepare = open_clip.create_model_and_transforms(name, pretrained=weights)
    with torch.inference_mode():
        for at, text in ((0, "A fox sleeps."), (2, "The fox runs.")):
            path = tmp_path / "frame.png"
            path.write_bytes(board.images[at])
            picture = model.eval().encode_image(prepare(Image.open(path).convert("RGB")).unsqueeze(0), normalize=True)
            words = model.encode_text(open_clip.get_tokenizer(name)([text]), normalize=True)
            assert found[at].value == pytest.approx(float((picture * words).sum()), abs=1e-5)


def test_a_board_without_texts_has_no_clip_t(clip: str, tmp_path: Path) -> None:
    found = list(measure_board(ClipText(model=clip), make_board([None, None]), make_context(tmp_path)))
    assert [value.reason for value in found] == ["no frame has a text of its own: the story has no scenes and no plan"]
    assert np.all([value.value is None for value in found])
