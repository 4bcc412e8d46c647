"""Calibration and measurement: F1 by concept for what a person could read, on frames that were never trained on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PIL import Image

from katha.eval_bridge.reader.network import (
    CLOSE_SIDE,
    Concepts,
    FigureReading,
    FrameReading,
    PropReading,
    Reader,
    cut,
    softmax,
    window_on,
)
from training.reader.drawing import Drawn
from training.reader.labels import FrameLabels, Item

__all__ = ["Counts", "calibrate", "f1_table", "macro", "measure", "sharpest"]

_NEAR = 20.0
_SHARPNESSES = (8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 30.0, 40.0)
_CANDIDATES = np.round(np.arange(0.1, 0.85, 0.025), 3)


@dataclass
class Counts:
    """Hits, misses and false alarms of one concept."""

    hit: int = 0
    missed: int = 0
    false: int = 0

    @property
    def f1(self) -> float | None:
        """2 hits / (2 hits + misses + false alarms); None without any."""
        total = 2 * self.hit + self.missed + self.false
        return 2 * self.hit / total if total else None


Table = dict[str, dict[str, Counts]]


def _presence(table: dict[str, Counts], found: set[str], asked: set[str], silent: set[str]) -> None:
    for name in asked & found:
        table[name].hit += 1
    for name in asked - found:
        table[name].missed += 1
    for name in found - asked - silent:
        table[name].false += 1


def _names(items: Iterable[Item], kind: str, counts: bool) -> set[str]:
    return {item.concept for item in items if item.kind == kind and item.counts == counts}


def _judged(table: dict[str, Counts], truth: str, said: str) -> None:
    if truth == said:
        table[truth].hit += 1
    else:
        table[truth].missed += 1
        table[said].false += 1


def _figures(tables: Table, labels: FrameLabels, reading: FrameReading) -> None:
    """Actions and emotions of those that were found where they are; of pictograms what they do is "act"."""
    for item in labels.items:
        if not item.counts:
            continue
        rigged = item.kind == "character"
        found: Sequence[FigureReading | PropReading] = reading.figures if rigged else reading.props
        x, y = (item.x, item.y) if rigged else item.window[:2]
        near = [
            one
            for one in found
            if one.concept == item.concept and max(abs(one.x - x), abs(one.y - y)) < max(_NEAR, item.radius)
        ]
        best = max(near, key=lambda one: one.p, default=None)
        for kind, truth in (("action", item.action), ("emotion", item.emotion)):
            if truth is None:
                continue
            table = tables[kind if rigged else {"action": "act", "emotion": "sign"}[kind]]
            if best is None:
                table[truth].missed += 1
            elif said := getattr(best, f"{kind}s"):
                _judged(table, truth, max(said, key=lambda name: said[name]))


def measure(labels: Sequence[FrameLabels | None], readings: Sequence[FrameReading]) -> Table:
    """Counts by kind and concept; pictures that are no sketch are left to the is-sketch figures."""
    tables: Table = defaultdict(lambda: defaultdict(Counts))
    for label, reading in zip(labels, readings, strict=True):
        if label is None:
            continue
        for kind, found in (
            ("character", {one.concept for one in reading.figures}),
            ("prop", {one.concept for one in reading.props}),
        ):
            _presence(tables[kind], found, _names(label.items, kind, True), _names(label.items, kind, False))
        _figures(tables, label, reading)
        _judged(tables["setting"], label.setting, reading.setting)
        _judged(tables["time"], label.time, reading.time)
    return tables


def macro(table: Mapping[str, Counts]) -> float:
    """The mean F1 over the concepts that occur."""
    values = [counts.f1 for counts in table.values() if counts.f1 is not None]
    return float(np.mean(values)) if values else 0.0


def f1_table(table: Mapping[str, Counts]) -> dict[str, dict[str, Any]]:
    """F1, hits, misses and false alarms by concept, for the card."""
    return {
        name: {"f1": None if c.f1 is None else round(c.f1, 3), "hit": c.hit, "missed": c.missed, "false": c.false}
        for name, c in sorted(table.items())
    }


def sharpest(reader: Reader, drawn: Drawn) -> Concepts:
    """The reader's concepts with the sharpness by which the names of these frames' pictograms are likeliest."""
    places = {name: nth for nth, name in enumerate(reader.gallery.words)}
    rows, wanted = [np.zeros((0, len(places)), np.float32)], []
    for pixels, label in zip(drawn.pixels, drawn.labels, strict=True):
        items = [item for item in label.items if item.kind == "prop" and item.counts] if label is not None else []
        if not items:
            continue
        picture = Image.fromarray(pixels)
        windows = [window_on("prop", *item.window) for item in items]
        views = np.stack([cut(picture, one.x, one.y, one.half, CLOSE_SIDE) for one in windows])
        seen = reader.vectors((views.transpose(0, 3, 1, 2) / 255).astype(np.float32))
        rows.append(reader.gallery.likeness(seen))
        wanted += [places[item.concept] for item in items]
    if not wanted:
        return reader.concepts
    cosines = np.concatenate(rows)
    losses = {}
    for sharpness in _SHARPNESSES:
        chances = softmax(sharpness * cosines)[np.arange(len(wanted)), wanted]
        losses[sharpness] = float(-np.log(np.maximum(chances, 1e-9)).mean())
    return replace(reader.concepts, sharpness=min(losses, key=lambda one: losses[one]))


def calibrate(reader: Reader, drawn: Drawn) -> Concepts:
    """The reader's concepts with the threshold for characters and the one for props that give the best macro-F1 on
    these frames.

    One a kind: a concept of its own would be set by thirty examples, and does worse on frames that were not looked at.
    """
    every = replace(reader.concepts, thresholds={"character": 0.0, "prop": 0.0})
    reader.concepts = every
    pairs: dict[str, dict[str, list[tuple[float, bool]]]] = {"character": {}, "prop": {}}
    for pixels, label in zip(drawn.pixels, drawn.labels, strict=True):
        if label is None:
            continue
        peak = reader.read_pixels(pixels).peaks
        asked = {f"{item.kind}/{item.concept}" for item in label.items if item.counts}
        silent = {f"{item.kind}/{item.concept}" for item in label.items if not item.counts}
        for key in {*peak, *asked} - silent:
            kind, _, name = key.partition("/")
            pairs[kind].setdefault(name, []).append((peak.get(key, 0.0), key in asked))
    return replace(every, thresholds={kind: _best(list(found.values())) for kind, found in pairs.items()})


def _best(concepts: Sequence[Sequence[tuple[float, bool]]]) -> float:
    """The threshold of the best macro-F1; each concept's pairs are (peak, present)."""
    scores = np.zeros(len(_CANDIDATES))
    for pairs in concepts:
        values = np.array([value for value, _ in pairs])
        truth = np.array([present for _, present in pairs], dtype=bool)
        said = values[None, :] >= _CANDIDATES[:, None]
        scores += 2 * (said & truth).sum(axis=1) / np.maximum(1, said.sum(axis=1) + truth.sum())
    best = np.flatnonzero(scores >= scores.max() - 1e-9)
    return float(_CANDIDATES[best[len(best) // 2]])
