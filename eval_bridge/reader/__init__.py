"""The recogniser behind `sketch-reader`: reads the sketch renderer's drawings from their pixels."""

from katha.eval_bridge.reader.network import Reader, load_reader
from katha.eval_bridge.reader.reading import Concepts, FigureReading, FrameReading, PropReading, load_concepts

__all__ = ["Concepts", "FigureReading", "FrameReading", "PropReading", "Reader", "load_concepts", "load_reader"]
