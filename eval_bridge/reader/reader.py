"""The embedded reader: pixels in, concepts out, by a small ONNX network on the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from katha.errors import KathaError
from katha.eval_bridge.reader.concepts import Concepts, load_concepts
from katha.eval_bridge.reader.pixels import is_blank, to_input
from katha.eval_bridge.reader.reading import FrameReading, decode, nothing
from katha.jsonio import sha256_hex

__all__ = ["Reader", "load_reader"]

_BATCH = 8


class Reader:
    """Reads panels. It receives pixels and nothing else; the same bytes always give the same reading."""

    def __init__(self, model: bytes, concepts: Concepts, *, threads: int = 1) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()[0].name
        self._sha256 = sha256_hex(model)
        self.concepts = concepts

    def spec(self) -> Mapping[str, Any]:
        """Version and hash of the weights: everything that can change a reading."""
        return {"name": "sketch-reader", "version": self.concepts.version, "weights": self._sha256}

    def read(self, picture: bytes) -> FrameReading:
        """What is in one picture (any format that Pillow reads, any size).

        Raises:
            InputFileError: the bytes are no picture.
        """
        return self.read_many([picture])[0]

    def read_many(self, pictures: Iterable[bytes]) -> list[FrameReading]:
        """What is in each picture, in order."""
        inputs = [to_input(picture) for picture in pictures]
        readings: list[FrameReading] = []
        for start in range(0, len(inputs), _BATCH):
            readings.extend(self._run(inputs[start : start + _BATCH]))
        return readings

    def _run(self, pixels: Sequence[np.ndarray[Any, np.dtype[np.uint8]]]) -> list[FrameReading]:
        batch = np.stack(pixels).transpose(0, 3, 1, 2).astype(np.float32) / 255
        maps, names, figure, scene = self._session.run(None, {self._input: batch})
        return [
            nothing(self.concepts)
            if is_blank(one)
            else decode(maps[nth], names[nth], figure[nth], scene[nth], self.concepts)
            for nth, one in enumerate(pixels)
        ]


@cache
def load_reader() -> Reader:
    """The reader that ships with katha, loaded once per process.

    Raises:
        KathaError: its weights are missing from the installation.
    """
    try:
        model = files("katha.eval_bridge.reader").joinpath("sketch_reader.onnx").read_bytes()
    except OSError as error:
        raise KathaError(
            "The reader's weights are missing.", hint="Install katha again, or run `make reader`."
        ) from error
    return Reader(model, load_concepts())
