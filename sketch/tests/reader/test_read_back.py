"""Which pictures show what they were drawn from; boards that must fail do."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from katha.jsonio import sha256_hex
from katha.protocols import FrameRequest
from katha_sketch.drawing import SketchRenderer
from katha_sketch.reader.sketch_reader import SketchReaderJudge

MEANT = (
    "The happy crow sings by a tree in the forest.",
    "The fox looks at the crow in the forest.",
    "The crow is sad and cries in the forest.",
    "The fox eats the cheese in the forest.",
    "The fox sleeps in the forest.",
)


@cache
def board() -> tuple[bytes, ...]:
    return tuple(SketchRenderer().render_board([FrameRequest(text, 11, 768, 512) for text in MEANT]))


def found(pictures: tuple[bytes, ...], meant: tuple[str, ...] = MEANT) -> int:
    told = SketchReaderJudge().read_back(pictures, meant)
    assert told is not None
    return sum(told)


def test_a_board_s_own_pictures_read_back() -> None:
    assert found(board()) >= 4


def test_exchanged_pictures_are_at_chance() -> None:
    shifted = [found(board()[by:] + board()[:by]) for by in range(1, len(MEANT))]
    assert sum(shifted) <= len(MEANT) - found(board())  # over all shifts each text has its picture once


def test_one_picture_again_and_again_shows_nothing() -> None:
    assert len({sha256_hex(picture) for picture in board()}) == len(MEANT)
    for picture in board():
        assert found((picture,) * len(MEANT)) == 0


def test_a_text_of_which_nothing_can_be_looked_for_is_not_found() -> None:
    assert found(board(), ("", "", "", "", "")) == 0


def test_other_pictures_are_not_read() -> None:
    import io

    from PIL import Image

    noise = np.random.default_rng(3).integers(0, 256, (256, 384, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(noise).save(out, "PNG")
    assert SketchReaderJudge().read_back((*board()[:4], out.getvalue()), MEANT) is None


@pytest.mark.parametrize("texts", [MEANT[:1]])
def test_a_picture_alone_has_to_show_its_text(texts: tuple[str, ...]) -> None:
    assert found(board()[:1], texts) == 1
    assert found(board()[4:], texts) == 0
