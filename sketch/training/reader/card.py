"""The reader's card: what it was trained on and how well it reads, measured on frames it never saw."""

from __future__ import annotations

import datetime
import io
import platform
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from katha_sketch.reader.network import Reader
from training.reader.drawing import Drawn
from training.reader.measure import f1_table, grouped, macro, measure, overall
from training.reader.negatives import TEST_PHOTOS, jpeg, photographs

__all__ = ["card_text", "measure_card"]

Pixels = NDArray[np.uint8]
TARGETS = {"character": 0.95, "prop": 0.9, "setting": 0.9, "action": 0.85, "emotion": 0.85}
KINDS = (*TARGETS, "act", "sign", "time")
"""Macro-F1 that the reader is meant to reach."""


def _png(pixels: Pixels) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _macros(drawn: Drawn, reader: Reader, change: Callable[[Pixels], bytes]) -> dict[str, float]:
    readings = reader.read_many(change(pixels) for pixels in drawn.pixels)
    tables = measure(drawn.labels, readings)
    return {kind: round(macro(tables[kind]), 3) for kind in KINDS}


def _resized(pixels: Pixels, width: int) -> bytes:
    image = Image.fromarray(pixels)
    scaled = image.resize((width, round(width * image.height / image.width)), Image.Resampling.BILINEAR)
    return _png(np.asarray(scaled))


def _refusals(drawn: Drawn, reader: Reader) -> dict[str, float]:
    """Shares of pictures taken for sketches: drawn ones (wanted: 1) and others (wanted: 0)."""
    limit = reader.concepts.sketch_threshold

    def share(pictures: Sequence[bytes]) -> float:
        said = [reading.is_sketch >= limit for reading in reader.read_many(pictures)]
        return round(float(np.mean(said)), 4) if said else 0.0

    drawings = [_png(p) for p, label in zip(drawn.pixels, drawn.labels, strict=True) if label is not None]
    others = [_png(p) for p, label in zip(drawn.pixels, drawn.labels, strict=True) if label is None]
    photos = [_png(np.asarray(photo)) for photo in photographs(TEST_PHOTOS)]
    blanks = [_png(np.full((512, 768, 3), value, np.uint8)) for value in (0, 128, 251, 255)]
    return {"sketches": share(drawings), "others": share(others), "photographs": share(photos), "blanks": share(blanks)}


def measure_card(
    reader: Reader, drawn: Drawn, stories: Drawn, facts: dict[str, Any], held_out: Callable[[str], bool]
) -> dict[str, Any]:
    """Every figure of the card. `drawn` is the test set, `stories` are frames of stories that were not trained on;
    `facts` says what was trained on and for how long; `held_out` which pictograms were not learnt from."""
    start = time.perf_counter()
    pictures = [_png(pixels) for pixels in drawn.pixels]
    readings = reader.read_many(pictures)
    seconds = time.perf_counter() - start
    pairs: Counter[tuple[str, str]] = Counter()
    tables = measure(drawn.labels, readings, pairs)
    in_stories = measure(stories.labels, reader.read_many(_png(pixels) for pixels in stories.pixels))
    few = Drawn(drawn.pixels[: max(1, len(drawn.labels) // 5)], drawn.labels[: max(1, len(drawn.labels) // 5)])
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}",
        **facts,
        "test_frames": len(drawn.labels),
        "ms_per_panel_batched": round(1000 * seconds / len(drawn.labels), 1),
        "macro_f1": {kind: round(macro(tables[kind]), 4) for kind in KINDS},
        "overall_f1": {kind: round(overall(tables[kind]).f1 or 0.0, 4) for kind in KINDS},
        "in_stories_f1": {kind: round(overall(in_stories[kind]).f1 or 0.0, 4) for kind in KINDS},
        "asked": {kind: overall(tables[kind]).hit + overall(tables[kind]).missed for kind in KINDS},
        "targets": TARGETS,
        "alike": [list(group) for group in reader.concepts.alike],
        "action_macro_f1_alike_as_one": round(grouped(tables["action"], reader.concepts.alike, pairs), 4),
        "prop_macro_f1": {
            "learnt": round(macro({k: v for k, v in tables["prop"].items() if not held_out(k)}), 4),
            "never learnt": round(macro({k: v for k, v in tables["prop"].items() if held_out(k)}), 4),
        },
        "taken_for_sketches": _refusals(drawn, reader),
        "robustness_macro_f1": {
            "as drawn": _macros(few, reader, _png),
            "jpeg 60": _macros(few, reader, lambda pixels: _png(jpeg(pixels, 60))),
            "jpeg 90": _macros(few, reader, lambda pixels: _png(jpeg(pixels, 90))),
            "256 wide": _macros(few, reader, lambda pixels: _resized(pixels, 256)),
            "1024 wide": _macros(few, reader, lambda pixels: _resized(pixels, 1024)),
        },
        "by_concept": {kind: f1_table(tables[kind]) for kind in KINDS},
    }


def card_text(card: dict[str, Any]) -> str:
    """The card as Markdown."""
    lines = [
        "# sketch-reader: card",
        "",
        "A recogniser for the drawings of katha's `sketch` renderer, trained by `make reader` on drawings that the",
        "renderer made. It sees pixels and nothing else. It is a default and a test bed; it refuses other pictures.",
        "",
        f"Trained {card['date']} on {card['train_frames']:,} frames in {card['core_minutes']} core-minutes "
        f"({card['machine']}), beginning from {card['began_from']}; "
        f"measured on {card['test_frames']:,} frames with other seeds and other compositions, thresholds chosen on "
        f"{card['calibration_frames']:,} further ones.",
        "",
        "| kind | macro-F1 | target | F1 of all decisions | in frames of stories | asked for | concepts |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {kind} | {value:.3f} | {card['targets'].get(kind, '-')} | {card['overall_f1'][kind]:.3f} "
        f"| {card['in_stories_f1'][kind]:.3f} "
        f"| {card['asked'][kind]:,} | {len(card['by_concept'][kind])} |"
        for kind, value in card["macro_f1"].items()
    ]
    lines += [
        "",
        "The mean over concepts counts one that was only named falsely as 0, and where concepts are asked for once or",
        "twice it rests on single drawings: the F1 of all decisions says what share of them is right. Half of what was",
        "trained on are moments of stories; the column about frames of stories is of others, the rest of this card of",
        "random moments.",
        "",
        "Only what a person could read counts: a head that is 65% uncovered and at least 5 pixels in radius (8 for",
        "the emotion), a figure of which 60% is visible (for the action), a pictogram of which 55% is visible and 12",
        "pixels long (24 for what it does), all in the reader's 336x224 input. The rules are code:",
        "`training/reader/labels.py`. `prop` are pictograms, named by the gallery; `act` and `sign` are what",
        "pictograms that act do and feel.",
        "",
        f"Pictograms that the namer learnt from: {card['prop_macro_f1']['learnt']:.3f}; the one in twenty that it "
        f"never saw, named by the gallery alone: {card['prop_macro_f1']['never learnt']:.3f}.",
        "",
        f"Deeds that are drawn alike counted as one: {card['action_macro_f1_alike_as_one']:.3f}. They are: "
        + ("; ".join(", ".join(group) for group in card["alike"]) or "none so far")
        + ".",
        "",
        "Share of pictures taken for sketches: "
        + ", ".join(f"{k} {v}" for k, v in card["taken_for_sketches"].items())
        + ".",
        "",
        "| pictures | " + " | ".join(card["macro_f1"]) + " |",
        "|---|" + "---|" * len(card["macro_f1"]),
    ]
    for name, values in card["robustness_macro_f1"].items():
        lines.append(f"| {name} | " + " | ".join(f"{values[kind]:.3f}" for kind in card["macro_f1"]) + " |")
    for kind, rows in card["by_concept"].items():
        lines += ["", f"## {kind}", "", "| concept | F1 | hit | missed | false |", "|---|---|---|---|---|"]
        lines += [f"| {name} | {r['f1']} | {r['hit']} | {r['missed']} | {r['false']} |" for name, r in rows.items()]
    return "\n".join(lines) + "\n"
