"""The embedded psi of Eqs. 25 and 26: frames and transitions in the space of what the embedded reader can see.

An image is what the reader sees in it, a text is what its words can look like. Both are vectors over the reader's
classes, weighted by kind and scaled to length 1, so that the inner product is the cosine. An animal is one class,
whether it is drawn by a rig or as a pictogram. What happens weighs
more than where it happens. A sketch in which nothing is recognised lies on an axis of its own, so that two empty frames
are copies of each other and cover nothing. A picture that is no sketch is not read: it covers nothing, and copies only
a picture of the same pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.packets.packets import clean_image
from katha.protocols import Similarity
from katha_sketch.english import read_story
from katha_sketch.reader.claims import Term, claim_of, term_for
from katha_sketch.reader.network import ACT
from katha_sketch.reader.words import load_words

if TYPE_CHECKING:
    from katha_sketch.reader import FrameReading, Reader
    from katha_sketch.reader.sketch_reader import Readings


_WEIGHTS: Mapping[str, float] = {"character": 0.7, "prop": 1.0, "action": 1.0, "emotion": 1.0, "setting": 0.5}
_NOTHING = ("nothing", "")
_NONE = "none"
_HASH_BITS = 256
Vector = NDArray[np.float64]


class ReaderSimilarity(Similarity):
    """`Similarity` over what the embedded reader sees. Each frame is read once, by the judge or here."""

    def __init__(self, reader: Reader | None = None) -> None:
        self._given = reader
        self._images: dict[str, Vector] = {}
        self._texts: dict[str, Vector] = {}
        self._ahead: dict[bytes, Future[Vector]] = {}
        self._beside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="katha-reader")

    @cached_property
    def _readings(self) -> Readings:
        from katha_sketch.reader.sketch_reader import Readings, shared_readings

        return shared_readings() if self._given is None else Readings(self._given)

    @cached_property
    def _axes(self) -> dict[tuple[str, str], int]:
        """The place of each class in the vectors; actions that look alike share one, and so do an animal's drawings."""
        concepts, words = self._readings.concepts, load_words()
        kinds = {
            "action": concepts.actions,
            "emotion": concepts.emotions,
            "setting": concepts.settings,
            "character": concepts.characters,
            "prop": tuple(
                dict.fromkeys(key[5:] for keys in words.nouns.values() for key in keys if key[:5] == "prop/")
            ),
        }
        keys = [(kind, name) for kind, names in kinds.items() for name in names]
        found = {key: place for place, key in enumerate([*keys, _NOTHING])}
        for group in concepts.alike:
            for name in group:
                found["action", name] = found["action", group[0]]
        for deed in concepts.actions:
            if f"{ACT}{deed}" in concepts.actions:
                found["action", f"{ACT}{deed}"] = found["action", deed]
        for keys_ in words.nouns.values():
            # A character that the network was not trained on yet has the axes of its pictograms.
            own = (("character", key[10:]) for key in keys_ if key.startswith("character/"))
            rigged = next((key for key in own if key in found), None)
            for key in keys_:
                if rigged is not None and key.startswith("prop/"):
                    found["prop", key[5:]] = found[rigged]
        return found

    def spec(self) -> Mapping[str, Any]:
        """Name, version, weights and the reader's own specification."""
        weights = dict(_WEIGHTS)
        return {"name": "reader-similarity", "version": 3, "weights": weights, "reader": dict(self._readings.spec())}

    def foresee(self, png: bytes) -> None:
        """Begin to read a frame in a thread of its own: the network works while the next frame is drawn."""
        if png not in self._ahead:
            self._ahead[png] = begun = self._beside.submit(self._encode, png)
            begun.add_done_callback(lambda _: self._ahead.pop(png, None))

    def encode_image(self, png: bytes) -> Vector:
        """Return a unit vector of shape (D,) for one frame."""
        begun = self._ahead.get(png)
        return self._encode(png) if begun is None else begun.result()

    def _encode(self, png: bytes) -> Vector:
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
            self._texts[text] = self._vector(_read(text))
        return self._texts[text]

    def _vector(self, found: Iterable[tuple[str, str, float]]) -> Vector:
        values = np.zeros(len(self._axes) + _HASH_BITS)
        for kind, concept, strength in found:
            place = self._axes.get((kind, concept))
            if place is not None:
                values[place] = max(values[place], _WEIGHTS[kind] * strength)
        length = float(np.linalg.norm(values))
        return values / length if length else values


def _seen(reading: FrameReading) -> Iterator[tuple[str, str, float]]:
    """What a frame shows: kind, concept id and how sure the reader is."""
    for figure in reading.figures:
        yield "character", figure.concept, figure.p
        yield from (("action", name, figure.p * p) for name, p in figure.actions.items() if name != _NONE)
        yield from (("emotion", name, figure.p * p) for name, p in figure.emotions.items() if name != _NONE)
    for prop in reading.props:
        yield "prop", prop.concept, prop.p
        yield from (("action", name, prop.p * p) for name, p in prop.actions.items())
        yield from (("emotion", name, prop.p * p) for name, p in prop.emotions.items() if name != _NONE)
    if reading.figures or reading.props:
        yield from (("setting", name, p) for name, p in reading.settings.items() if name != _NONE)


def _read(text: str) -> Iterator[tuple[str, str, float]]:
    """What a text names and tells, as the reader could see it."""
    words = load_words()
    reading = read_story(text)
    for event in reading.events:
        claim = claim_of(reading, event)
        if claim is None or claim.negated:
            continue
        for term in (claim.actor, claim.target, *claim.also):
            yield from _looks(term) if term is not None else ()
        if claim.deed is not None:
            yield "action", claim.deed, 1.0
        if claim.mood is not None:
            yield from (("emotion", name, 1.0) for name in words.shown(claim.mood)[:1])
        if claim.place is not None:
            yield "setting", claim.place, 1.0
    for sentence in reading.sentences:
        place = words.place(sentence.place.text) if sentence.place is not None else None
        if place is not None:
            yield "setting", place, 1.0
    for entity in reading.entities:
        if not entity.character and entity.kind == "thing":
            yield from _looks(term_for(reading, entity))


def _looks(term: Term) -> Iterator[tuple[str, str, float]]:
    for key in sorted(term.looks):
        kind, _, name = key.partition("/")
        yield kind, name, 1.0
