"""The embedded similarity: what the reader sees against what the vocabulary reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from katha.compass.similarity import ReaderSimilarity
from katha.eval_bridge import reader as reader_module
from katha.eval_bridge.reader import FigureReading, FrameReading, PropReading
from katha.protocols import Similarity


def reading(*figures: FigureReading, props: tuple[str, ...] = (), setting: str = "none") -> FrameReading:
    return FrameReading(
        figures=figures,
        props=tuple(PropReading(name, 1.0, 0, 0) for name in props),
        settings={setting: 1.0},
        times={"day": 1.0},
        is_sketch=1.0,
    )


def figure(concept: str, action: str = "none", emotion: str = "none") -> FigureReading:
    return FigureReading(concept, 1.0, 0, 0, {action: 1.0}, {emotion: 1.0})


FRAMES = {
    b"trapped": reading(figure("lion", "trapped", "afraid"), props=("net",), setting="forest"),
    b"asleep": reading(figure("lion", "sleep"), setting="forest"),
    b"asleep again": reading(figure("lion", "sleep"), setting="forest"),
    b"fox": reading(figure("fox", "eat", "happy"), props=("cheese",)),
    b"blank": reading(setting="forest"),
    b"blank too": reading(setting="desert"),
}


class TableReader:
    """Knows what is in each of `FRAMES` and counts how often it was asked."""

    def __init__(self) -> None:
        self.read_frames: list[bytes] = []

    def spec(self) -> Mapping[str, Any]:
        return {"name": "table"}

    def read(self, png: bytes) -> FrameReading:
        self.read_frames.append(png)
        return FRAMES[png]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> TableReader:
    made = TableReader()
    monkeypatch.setattr(reader_module, "load_reader", lambda: made)
    return made


def test_a_frame_that_shows_the_transition_is_nearer_to_it(table: TableReader) -> None:
    psi = ReaderSimilarity()
    text = psi.encode_text("The lion is trapped in a net. The lion is afraid.")
    near, far, other = (float(psi.encode_image(png) @ text) for png in (b"trapped", b"asleep", b"fox"))
    assert near > 0.8 > far > other == 0.0


def test_vectors_have_length_one(table: TableReader) -> None:
    psi = ReaderSimilarity()
    assert isinstance(psi, Similarity)
    for png in FRAMES:
        assert np.linalg.norm(psi.encode_image(png)) == pytest.approx(1)
    assert np.linalg.norm(psi.encode_text("The lion sleeps.")) == pytest.approx(1)
    assert not psi.encode_text("Quantum chromodynamics.").any()


def test_equal_scenes_are_copies_and_so_are_two_empty_ones(table: TableReader) -> None:
    psi = ReaderSimilarity()
    assert float(psi.encode_image(b"asleep") @ psi.encode_image(b"asleep again")) == pytest.approx(1)
    assert float(psi.encode_image(b"asleep") @ psi.encode_image(b"trapped")) < 0.95
    assert float(psi.encode_image(b"blank") @ psi.encode_image(b"blank too")) == pytest.approx(1)
    assert float(psi.encode_image(b"blank") @ psi.encode_text("The lion sleeps in the forest.")) == 0.0


def test_each_frame_is_read_once(table: TableReader) -> None:
    psi = ReaderSimilarity()
    for _ in range(3):
        psi.encode_image(b"asleep")
    assert table.read_frames == [b"asleep"]
    assert psi.spec()["reader"] == {"name": "table"}
