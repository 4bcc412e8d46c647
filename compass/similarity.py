"""The embedded psi of Eqs. 25 and 26: frames and transitions in the space of the vocabulary's concepts.

An image is what the embedded reader sees in it, a text is what the same vocabulary reads in it. Both are vectors over
the concepts' ids, weighted by kind and scaled to length 1, so that the inner product is the cosine. What happens weighs
more than where it happens. A sketch in which nothing is recognised lies on an axis of its own, so that two empty frames
are copies of each other and cover nothing. A picture that is no sketch is not read: it covers nothing, and copies only
a picture of the same pixels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.packets.packets import clean_image
from katha.language import ConceptKind, load_vocabulary, read_scene

if TYPE_CHECKING:
    from katha.eval_bridge.judges.sketch_reader import Readings
    from katha.eval_bridge.reader import FrameReading, Reader


_WEIGHTS: Mapping[ConceptKind, float] = {"character": 0.7, "prop": 1.0, "action": 1.0, "emotion": 1.0, "setting": 0.5}
_NOTHING = ("nothing", "")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NONE = "none"
_HASH_BITS = 256
Vector = NDArray[np.float64]


class ReaderSimilarity:
    """`Similarity` over what the embedded reader sees. Each frame is read once, by the judge or here."""

    def __init__(self, reader: Reader | None = None) -> None:
        self._given = reader
        self._images: dict[str, Vector] = {}
        self._texts: dict[str, Vector] = {}

    @cached_property
    def _readings(self) -> Readings:
        from katha.eval_bridge.judges.sketch_reader import Readings, shared_readings

        return shared_readings() if self._given is None else Readings(self._given)

    @cached_property
    def _axes(self) -> dict[tuple[str, str], int]:
        """The place of each concept in the vectors."""
        words = load_vocabulary()
        keys = [(kind, concept.id) for kind in _WEIGHTS for concept in words.concepts(kind)]
        return {key: place for place, key in enumerate([*keys, _NOTHING])}

    def spec(self) -> Mapping[str, Any]:
        """Name, version, weights and the reader's own specification."""
        weights = dict(_WEIGHTS)
        return {"name": "reader-similarity", "version": 2, "weights": weights, "reader": dict(self._readings.spec())}

    def encode_image(self, png: bytes) -> Vector:
        """Return a unit vector of shape (D,) for one frame."""
        clean = clean_image(png)
        if clean.sha256 not in self._images:
            reading = self._readings.read_many([clean.png])[0]
            if reading.is_sketch < self._readings.concepts.sketch_threshold:
                # The picture's hash, beside the concepts' axes: two of them are nearly perpendicular, equal ones equal.
                bits = np.unpackbits(np.frombuffer(bytes.fromhex(clean.sha256), dtype=np.uint8))
                vector = np.concatenate([np.zeros(len(self._axes)), (2.0 * bits - 1.0) / np.sqrt(_HASH_BITS)])
            else:
                vector = self._vector(_seen(reading))
                if not vector.any():
                    vector[self._axes[_NOTHING]] = 1.0
            self._images[clean.sha256] = vector
        return self._images[clean.sha256]

    def encode_text(self, text: str) -> Vector:
        """Return a unit vector of shape (D,); the zero vector when nothing in the text is in the vocabulary."""
        if text not in self._texts:
            self._texts[text] = self._vector(pair for sentence in _SENTENCE.split(text) for pair in _read(sentence))
        return self._texts[text]

    def _vector(self, found: Iterable[tuple[ConceptKind, str, float]]) -> Vector:
        values = np.zeros(len(self._axes) + _HASH_BITS)
        for kind, concept, strength in found:
            place = self._axes.get((kind, concept))
            if place is not None:
                values[place] = max(values[place], _WEIGHTS[kind] * strength)
        length = float(np.linalg.norm(values))
        return values / length if length else values


def _seen(reading: FrameReading) -> Iterator[tuple[ConceptKind, str, float]]:
    """What a frame shows: kind, concept id and how sure the reader is."""
    for figure in reading.figures:
        yield "character", figure.concept, figure.p
        yield from (("action", name, figure.p * p) for name, p in figure.actions.items() if name != _NONE)
        yield from (("emotion", name, figure.p * p) for name, p in figure.emotions.items() if name != _NONE)
    for prop in reading.props:
        yield "prop", prop.concept, prop.p
    if reading.figures or reading.props:
        yield from (("setting", name, p) for name, p in reading.settings.items() if name != _NONE)


def _read(sentence: str) -> Iterator[tuple[ConceptKind, str, float]]:
    """What one sentence names, each concept once."""
    scene = read_scene(sentence)
    for actor in scene.actors:
        yield "character", actor.concept, 1.0
        named: dict[ConceptKind, str | None] = {"action": actor.action, "emotion": actor.emotion}
        named |= {"prop": actor.target, "character": actor.target}
        yield from ((kind, concept, 1.0) for kind, concept in named.items() if concept)
        yield from (("prop", prop, 1.0) for prop in actor.carries)
    yield from (("prop", prop, 1.0) for prop in scene.props)
    if scene.setting:
        yield "setting", scene.setting, 1.0
