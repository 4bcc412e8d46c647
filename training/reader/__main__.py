"""`make reader`: draw, train, calibrate, measure, export. Under an hour on two cores."""

from __future__ import annotations

import argparse
import io
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from katha.eval_bridge.reader.concepts import Concepts
from katha.eval_bridge.reader.reader import Reader
from katha.jsonio import write_bytes_atomic, write_json
from katha.language import load_vocabulary
from katha.renderers.sketch import SketchRenderer
from training.reader.card import card_text, measure_card
from training.reader.drawing import Drawn, draw_set
from training.reader.export import to_onnx
from training.reader.fit import Recipe, fit
from training.reader.measure import calibrate

__all__ = ["main", "train"]

ROOT = Path(__file__).parents[2]


def vocabulary_concepts() -> Concepts:
    """Every concept of the vocabulary, in its order, as the reader's classes."""
    vocabulary = load_vocabulary()

    def ids(kind: str) -> tuple[str, ...]:
        return tuple(concept.id for concept in vocabulary.concepts(kind))  # type: ignore[arg-type]

    return Concepts(
        characters=ids("character"),
        props=ids("prop"),
        actions=("none", *ids("action")),
        emotions=("none", *ids("emotion")),
        settings=(*ids("setting"), "none"),
        times=ids("time"),
    )


def _png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _calibrated(data: bytes, concepts: Concepts, drawn: Drawn) -> Concepts:
    readings = Reader(data, concepts, threads=2).read_many(_png(pixels) for pixels in drawn.pixels)
    return calibrate(concepts, drawn.labels, [reading.peaks for reading in readings])


def train(out: Path, data: Path, counts: tuple[int, int, int], recipe: Recipe, workers: int) -> dict[str, Any]:
    """Make the reader and its card in `out`; `counts` are training, calibration and test frames. Returns the card."""
    start = time.perf_counter()
    drawings = dict(SketchRenderer().spec())
    key = f"{drawings['version']}/{drawings['vocabulary']}"
    sets = {
        split: draw_set(data, split, count, key, workers)
        for split, count in zip(("train", "calibration", "test"), counts, strict=True)
    }
    print(f"drawn in {time.perf_counter() - start:.0f} s", flush=True)
    concepts = vocabulary_concepts()
    model, losses = fit(sets["train"], concepts, recipe, lambda line: print(line, flush=True))
    model_bytes = to_onnx(model)
    version = f"{drawings['version']}-{recipe.seed}-{len(losses)}"
    concepts = replace(concepts, version=version, trained_on=drawings)
    concepts = _calibrated(model_bytes, concepts, sets["calibration"])
    facts = {
        "train_frames": counts[0],
        "calibration_frames": counts[1],
        "steps": len(losses),
        "first_loss": round(float(np.mean(losses[: max(1, len(losses) // 10)])), 3),
        "last_loss": round(float(np.mean(losses[-max(1, len(losses) // 10) :])), 3),
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "bytes": len(model_bytes),
    }
    card = measure_card(Reader(model_bytes, concepts), sets["test"], facts)
    write_bytes_atomic(out / "sketch_reader.onnx", model_bytes)
    write_json(out / "concepts.json", asdict(concepts))
    write_json(out / "card.json", card)
    write_bytes_atomic(out / "CARD.md", card_text(card).encode("utf-8"))
    return card


def main() -> None:
    """The command line of `make reader`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "eval_bridge" / "reader", help="where the reader goes")
    parser.add_argument("--data", type=Path, default=ROOT / "training" / "data", help="where drawings are kept")
    parser.add_argument("--frames", type=int, default=24_000, help="how many frames to train on")
    parser.add_argument("--test-frames", type=int, default=1_500, help="how many to measure on (and to calibrate on)")
    parser.add_argument("--epochs", type=float, default=9.0, help="how often to see each frame")
    parser.add_argument("--minutes", type=float, default=35.0, help="how long to train at most")
    parser.add_argument("--workers", type=int, default=2, help="processes that draw")
    given = parser.parse_args()
    counts = (given.frames, given.test_frames, given.test_frames)
    card = train(given.out, given.data, counts, Recipe(epochs=given.epochs, minutes=given.minutes), given.workers)
    print(card["macro_f1"], card["taken_for_sketches"], f"{card['minutes']} minutes, {card['bytes']:,} bytes")


if __name__ == "__main__":
    main()
