"""The embedded similarity: what the reader sees against what the vocabulary reads."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from katha.errors import InputFileError
from katha.eval_bridge.packets.packets import clean_image, make_packet
from katha.protocols import JudgePrompt, Similarity, can
from katha_sketch.reader import FigureReading, FrameReading, PropReading, Reader, load_concepts, sketch_reader
from katha_sketch.reader.similarity import ReaderSimilarity
from katha_sketch.reader.sketch_reader import Readings, SketchReaderJudge


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


def png(colour: str, level: int = 6) -> bytes:
    """A small sheet of one colour, compressed at `level`: other bytes, the same pixels."""
    buffer = io.BytesIO()
    Image.new("RGB", (24, 16), colour).save(buffer, "PNG", compress_level=level)
    return buffer.getvalue()


TRAPPED, ASLEEP, ASLEEP_AGAIN, FOX, BLANK, BLANK_TOO = map(png, ("red", "green", "lime", "blue", "white", "snow"))
FRAMES = {
    TRAPPED: reading(figure("lion", "trapped", "afraid"), props=("net",), setting="forest"),
    ASLEEP: reading(figure("lion", "sleep"), setting="forest"),
    ASLEEP_AGAIN: reading(figure("lion", "sleep"), setting="forest"),
    FOX: reading(figure("fox", "eat", "happy"), props=("cheese",)),
    BLANK: reading(setting="forest"),
    BLANK_TOO: reading(setting="desert"),
}


class TableReader(Reader):
    """Knows what is in each of `FRAMES` by its pixels, and counts what it is asked to look at."""

    def __init__(self) -> None:
        self.known = {clean_image(data).sha256: found for data, found in FRAMES.items()}
        self.looked_at: list[str] = []
        self.concepts = load_concepts()

    def spec(self) -> Mapping[str, Any]:
        return {"name": "table"}

    def read_many(self, pictures: Iterable[bytes]) -> list[FrameReading]:
        hashes = [clean_image(picture).sha256 for picture in pictures]
        self.looked_at += hashes
        return [self.known[one] for one in hashes]


@pytest.fixture
def table() -> TableReader:
    return TableReader()


def test_a_frame_that_shows_the_transition_is_nearer_to_it(table: TableReader) -> None:
    psi = ReaderSimilarity(table)
    text = psi.encode_text("The lion is trapped in a net. The lion is afraid.")
    near, far, other = (float(psi.encode_image(data) @ text) for data in (TRAPPED, ASLEEP, FOX))
    assert near > 0.8 > far > other == 0.0


def test_vectors_have_length_one(table: TableReader) -> None:
    psi = ReaderSimilarity(table)
    assert isinstance(psi, Similarity)
    for data in FRAMES:
        assert np.linalg.norm(psi.encode_image(data)) == pytest.approx(1)
    assert np.linalg.norm(psi.encode_text("The lion sleeps.")) == pytest.approx(1)
    assert not psi.encode_text("Quantum chromodynamics.").any()


def test_equal_scenes_are_copies_and_so_are_two_empty_ones(table: TableReader) -> None:
    psi = ReaderSimilarity(table)
    assert float(psi.encode_image(ASLEEP) @ psi.encode_image(ASLEEP_AGAIN)) == pytest.approx(1)
    assert float(psi.encode_image(ASLEEP) @ psi.encode_image(TRAPPED)) < 0.95
    assert float(psi.encode_image(BLANK) @ psi.encode_image(BLANK_TOO)) == pytest.approx(1)
    assert float(psi.encode_image(BLANK) @ psi.encode_text("The lion sleeps in the forest.")) == 0.0


def test_a_picture_that_is_no_sketch_covers_nothing_and_copies_only_itself(table: TableReader) -> None:
    for data in (ASLEEP, ASLEEP_AGAIN):
        table.known[clean_image(data).sha256] = replace(FRAMES[data], is_sketch=0.1)
    psi = ReaderSimilarity(table)
    photo, other = psi.encode_image(ASLEEP), psi.encode_image(ASLEEP_AGAIN)
    assert np.linalg.norm(photo) == pytest.approx(1)
    assert float(photo @ psi.encode_text("The lion sleeps in the forest.")) == 0.0
    assert float(photo @ psi.encode_image(FOX)) == 0.0
    assert abs(float(photo @ other)) < 0.5
    assert float(photo @ psi.encode_image(png("green", 0))) == pytest.approx(1)


def test_each_frame_is_read_once(table: TableReader) -> None:
    psi = ReaderSimilarity(table)
    for data in (ASLEEP, ASLEEP, png("green", 0)):
        psi.encode_image(data)
    assert table.looked_at == [clean_image(ASLEEP).sha256]
    assert psi.spec()["reader"] == {"name": "table"}


def test_a_frame_foreseen_is_read_once_and_fails_when_it_is_asked_for(table: TableReader) -> None:
    psi, plain = ReaderSimilarity(table), ReaderSimilarity(TableReader())
    assert can(psi, Similarity.foresee)
    for data in (ASLEEP, b"no picture", FOX):
        psi.foresee(data)
    assert (psi.encode_image(FOX) == plain.encode_image(FOX)).all()
    assert (psi.encode_image(ASLEEP) == plain.encode_image(ASLEEP)).all()
    assert table.looked_at == [clean_image(data).sha256 for data in (ASLEEP, FOX)]
    with pytest.raises(InputFileError):
        psi.encode_image(b"no picture")


def test_judge_and_similarity_share_one_reading(table: TableReader, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Readings(table)
    monkeypatch.setattr(sketch_reader, "shared_readings", lambda: shared)
    _, evidence = make_packet("s", "image", [TRAPPED, ASLEEP])
    question = JudgePrompt("What does the lion do?", "action_visibility", "", ("The lion sleeps", "The lion eats"))
    list(SketchReaderJudge().ask(evidence, [question]))
    for data in (TRAPPED, ASLEEP, FOX):
        ReaderSimilarity().encode_image(data)
    assert table.looked_at == [clean_image(data).sha256 for data in (TRAPPED, ASLEEP, FOX)]


def test_the_longest_unused_reading_is_forgotten_first(table: TableReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch_reader, "_KEPT", 2)
    shared = Readings(table)
    for data in (TRAPPED, ASLEEP, TRAPPED, FOX, TRAPPED, ASLEEP):
        shared.read_many([data])
    assert table.looked_at == [clean_image(data).sha256 for data in (TRAPPED, ASLEEP, FOX, ASLEEP)]
