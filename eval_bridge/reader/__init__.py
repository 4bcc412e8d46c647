"""The recogniser behind `sketch-reader`: reads the sketch renderer's drawings from their pixels."""

from katha.eval_bridge.reader.concepts import Concepts, load_concepts
from katha.eval_bridge.reader.reader import Reader, load_reader
from katha.eval_bridge.reader.reading import FigureReading, FrameReading, PropReading

__all__ = ["Concepts", "FigureReading", "FrameReading", "PropReading", "Reader", "load_concepts", "load_reader"]
