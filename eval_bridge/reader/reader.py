"""The embedded reader: pixels in, concepts out, by two small ONNX networks on the CPU.

The finder looks over the whole picture and says where heads and things are, and where and when the scene is; the namer
looks through a window at each of them and says who it is, what it does, how it feels, and how the window should have
been cut, for the finder may have misjudged the size. Where it is not sure it looks again through windows set right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from katha.errors import KathaError
from katha.eval_bridge.reader.concepts import Concepts, load_concepts
from katha.eval_bridge.reader.finding import Head, Thing, find_heads, find_things, sigmoid, softmax
from katha.eval_bridge.reader.pixels import coarse, cut, is_blank, to_input
from katha.eval_bridge.reader.reading import FrameReading, assemble, nothing
from katha.eval_bridge.reader.windows import (
    BODY_SIDE,
    CLOSE_SIDE,
    Window,
    body_window,
    discs,
    head_window,
    mark,
    moved,
    prop_window,
)
from katha.jsonio import sha256_hex

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["FINDER_OUTPUTS", "NAMER_INPUTS", "NAMER_OUTPUTS", "Reader", "load_reader"]

FINDER_OUTPUTS = ("maps", "shapes", "scene")
NAMER_INPUTS = ("heads", "bodies", "things")
NAMER_OUTPUTS = ("characters", "actions", "emotions", "figure_places", "props", "prop_places")
Pixels = NDArray[np.uint8]
Chances = NDArray[np.float32]
_SURE = 0.95
_AGAIN = (0.8, 0.9, 1.0, 1.2)
"""What is named with less certainty is looked at again, where the namer has put it and so many times as wide."""


class _Seen(NamedTuple):
    """Probabilities and places of n figures and m things, a row each, in the order of `NAMER_OUTPUTS`."""

    characters: Chances
    actions: Chances
    emotions: Chances
    figure_places: Chances
    props: Chances
    prop_places: Chances

    @property
    def of_figures(self) -> tuple[Chances, ...]:
        """What is asked of a figure."""
        return self.characters, self.actions, self.emotions


class Reader:
    """Reads panels. It receives pixels and nothing else; the same bytes always give the same reading."""

    def __init__(self, finder: bytes, namer: bytes, concepts: Concepts, *, threads: int = 1) -> None:
        self._finder, self._namer = _session(finder, threads), _session(namer, threads)
        self._sha256 = sha256_hex(finder + namer)
        self.concepts = concepts

    def spec(self) -> Mapping[str, Any]:
        """Version and hash of the weights: everything that can change a reading."""
        return {"name": "sketch-reader", "version": self.concepts.version, "weights": self._sha256}

    def read(self, picture: bytes) -> FrameReading:
        """What is in one picture (any format that Pillow reads, any size).

        Raises:
            InputFileError: the bytes are no picture.
        """
        return self.read_pixels(to_input(picture))

    def read_many(self, pictures: Iterable[bytes]) -> list[FrameReading]:
        """What is in each picture, in order."""
        return [self.read(picture) for picture in pictures]

    def read_pixels(self, pixels: Pixels) -> FrameReading:
        """What is in one picture as `to_input` decodes it."""
        small = coarse(pixels)
        if is_blank(small):
            return nothing(self.concepts)
        batch = small.transpose(2, 0, 1)[None].astype(np.float32) / 255
        maps, shapes, scene = self._finder.run(None, {"pixels": batch})
        heat = sigmoid(maps[0])
        heads, things = find_heads(heat[0], shapes[0]), find_things(heat[1], shapes[0])
        return assemble(heads, things, self._named(pixels, heads, things), scene[0], self.concepts)

    def _named(self, pixels: Pixels, heads: Sequence[Head], things: Sequence[Thing]) -> tuple[Chances, ...]:
        """The probabilities of each head (characters, actions, emotions) and thing (props), in order."""
        from PIL import Image

        picture = Image.fromarray(pixels)
        figures = [(head_window(head.x, head.y, head.radius), body_window(*head.body)) for head in heads]
        props = [prop_window(thing.x, thing.y, thing.half) for thing in things]
        first = self._look(picture, figures, props)
        unsure = [nth for nth, row in enumerate(first.characters) if row.max() < _SURE]
        unclear = [nth for nth, row in enumerate(first.props) if row.max() < _SURE]
        again = self._look(
            picture,
            [
                (moved(figures[nth][0], place[:3], times), moved(figures[nth][1], place[3:], times))
                for nth, place in zip(unsure, first.figure_places[unsure], strict=True)
                for times in _AGAIN
            ],
            [
                moved(props[nth], place, times)
                for nth, place in zip(unclear, first.prop_places[unclear], strict=True)
                for times in _AGAIN
            ],
        )
        for rows, seen in zip(first.of_figures, again.of_figures, strict=True):
            rows[unsure] = _averaged(rows[unsure], seen)
        first.props[unclear] = _averaged(first.props[unclear], again.props)
        return (*first.of_figures, first.props)

    def _look(self, picture: Image, figures: Sequence[tuple[Window, Window]], props: Sequence[Window]) -> _Seen:
        """One look through the windows of each head and its body, and of each thing; rows in order."""
        if not figures and not props:
            sizes = (*(len(names) for names in self.concepts.named[:3]), 6, len(self.concepts.props), 3)
            return _Seen._make(np.zeros((0, size), np.float32) for size in sizes)
        marks = np.array([mark(close, body) for close, body in figures], dtype=np.float32).reshape(-1, 3)
        disc = discs(marks, BODY_SIDE)[:, None] if figures else np.zeros((1, 1, BODY_SIDE, BODY_SIDE), np.float32)
        views = (
            _stacked(picture, [close for close, _ in figures], CLOSE_SIDE),
            np.concatenate([_stacked(picture, [body for _, body in figures], BODY_SIDE), disc], axis=1),
            _stacked(picture, props, CLOSE_SIDE),
        )
        seen = _Seen._make(self._namer.run(None, dict(zip(NAMER_INPUTS, views, strict=True))))
        n, m = len(figures), len(props)
        chances = (softmax(part[:n]) for part in seen.of_figures)
        return _Seen._make([*chances, seen.figure_places[:n], softmax(seen.props[:m]), seen.prop_places[:m]])


def _averaged(first: Chances, more: Chances) -> Chances:
    """Means of the rows of `first` (n, classes) and the looks that follow each in `more` (n * looks, classes)."""
    looks = more.reshape(len(first), len(_AGAIN), first.shape[1])
    return np.asarray((first + looks.sum(axis=1)) / (1 + len(_AGAIN)), dtype=np.float32)


def _stacked(picture: Image, windows: Sequence[Window], side: int) -> NDArray[np.float32]:
    """Windows as (n, 3, side, side) in 0..1; one black window where there are none, for the network takes no less."""
    if not windows:
        return np.zeros((1, 3, side, side), np.float32)
    views = np.stack([cut(picture, window.x, window.y, window.half, side) for window in windows])
    return np.asarray(views.transpose(0, 3, 1, 2).astype(np.float32) / 255, dtype=np.float32)


def _session(model: bytes, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@cache
def load_reader() -> Reader:
    """The reader that ships with katha, loaded once per process.

    Raises:
        KathaError: its weights are missing from the installation.
    """
    folder = files("katha.eval_bridge.reader")
    try:
        finder, namer = (folder.joinpath(name).read_bytes() for name in ("finder.onnx", "namer.onnx"))
    except OSError as error:
        raise KathaError(
            "The reader's weights are missing.", hint="Install katha again, or run `make reader`."
        ) from error
    return Reader(finder, namer, load_concepts())
