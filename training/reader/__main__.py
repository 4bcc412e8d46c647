"""`make reader`: draw, train two networks, calibrate, measure, export. Under an hour on two cores."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from katha.eval_bridge.reader.network import Concepts, Reader
from katha.jsonio import write_bytes_atomic, write_json
from katha.language import load_vocabulary
from katha.renderers.sketch import SketchRenderer
from training.reader.card import card_text, measure_card
from training.reader.drawing import TRAIN, Drawn, draw_set
from training.reader.measure import calibrate
from training.reader.work import train_both

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


def _calibrated(reader: Reader, drawn: Drawn) -> Concepts:
    readings = [reader.read_pixels(pixels) for pixels in drawn.pixels]
    return calibrate(reader.concepts, drawn.labels, [reading.peaks for reading in readings])


def _losses(name: str, losses: list[float]) -> dict[str, Any]:
    tenth = max(1, len(losses) // 10)
    first, last = (round(float(np.mean(part)), 3) for part in (losses[:tenth], losses[-tenth:]))
    return {f"{name}_steps": len(losses), f"{name}_first_loss": first, f"{name}_last_loss": last}


def train(out: Path, data: Path, counts: tuple[int, int, int], effort: float, workers: int) -> dict[str, Any]:
    """Make the reader and its card in `out`; `counts` are training, calibration and test frames, `effort` multiplies
    how often the training frames are seen. Returns the card."""
    start = time.perf_counter()
    drawings = dict(SketchRenderer().spec())
    key = f"{drawings['version']}/{drawings['vocabulary']}"
    sets = {
        split: draw_set(data, split, count, key, workers)
        for split, count in zip((TRAIN, "calibration", "test"), counts, strict=True)
    }
    print(f"drawn in {time.perf_counter() - start:.0f} s", flush=True)
    concepts, windows = vocabulary_concepts(), sets[TRAIN].windows
    assert windows is not None
    (finder, found), (namer, named) = train_both(data, counts[0], key, concepts, effort)
    models = finder, namer
    version = f"{drawings['version']}-{len(found)}-{len(named)}"
    concepts = replace(concepts, version=version, trained_on=drawings)
    concepts = _calibrated(Reader(*models, concepts, threads=2), sets["calibration"])
    facts = {
        "train_frames": counts[0],
        "train_figures": len(windows.figures),
        "train_props": len(windows.things),
        "calibration_frames": counts[1],
        **_losses("finder", found),
        **_losses("namer", named),
        "core_minutes": round(sum(os.times()[:4]) / 60, 1),
        "bytes": sum(len(model) for model in models),
    }
    card = measure_card(Reader(*models, concepts), sets["test"], facts)
    for name, model in zip(("finder.onnx", "namer.onnx"), models, strict=True):
        write_bytes_atomic(out / name, model)
    write_json(out / "concepts.json", asdict(concepts))
    write_json(out / "card.json", card)
    write_bytes_atomic(out / "CARD.md", card_text(card).encode("utf-8"))
    return card


def main() -> None:
    """The command line of `make reader`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "eval_bridge" / "reader", help="where the reader goes")
    parser.add_argument("--data", type=Path, default=ROOT / "training" / "data", help="where drawings are kept")
    parser.add_argument("--frames", type=int, default=16_000, help="how many frames to train on")
    parser.add_argument("--test-frames", type=int, default=1_500, help="how many to measure on (and to calibrate on)")
    parser.add_argument("--effort", type=float, default=1.0, help="multiplies how often the frames are seen")
    parser.add_argument("--workers", type=int, default=2, help="processes that draw")
    given = parser.parse_args()
    counts = (given.frames, given.test_frames, given.test_frames)
    card = train(given.out, given.data, counts, given.effort, given.workers)
    print(card["macro_f1"], card["taken_for_sketches"], f"{card['core_minutes']} core-minutes, {card['bytes']:,} bytes")


if __name__ == "__main__":
    main()
