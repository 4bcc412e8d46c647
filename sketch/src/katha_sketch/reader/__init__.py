"""The recogniser behind `sketch-reader`: reads the sketch renderer's drawings from their pixels."""

from katha_sketch.reader.network import (
    Concepts,
    FigureReading,
    FrameReading,
    Gallery,
    PropReading,
    Reader,
    load_concepts,
    load_reader,
)

__all__ = [
    "Concepts",
    "FigureReading",
    "FrameReading",
    "Gallery",
    "PropReading",
    "Reader",
    "load_concepts",
    "load_reader",
]
