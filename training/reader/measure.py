"""Calibration and measurement: F1 by concept for what a person could read, on frames that were never trained on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.reader.network import Concepts, FrameReading
from training.reader.labels import FrameLabels, Item

__all__ = ["Counts", "calibrate", "f1_table", "macro", "measure"]

Read = Callable[[Sequence[NDArray[np.uint8]]], list[FrameReading]]
_NEAR = 20.0
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
    """Actions and emotions of the characters that were found where they are."""
    for item in labels.items:
        if item.kind != "character" or not item.counts:
            continue
        near = [
            one
            for one in reading.figures
            if one.concept == item.concept and max(abs(one.x - item.x), abs(one.y - item.y)) < max(_NEAR, item.radius)
        ]
        for kind, truth in (("action", item.action), ("emotion", item.emotion)):
            if truth is None:
                continue
            if near:
                _judged(tables[kind], truth, getattr(max(near, key=lambda one: one.p), kind))
            else:
                tables[kind][truth].missed += 1


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


def calibrate(
    concepts: Concepts, labels: Sequence[FrameLabels | None], peaks: Sequence[Mapping[str, float]]
) -> Concepts:
    """`concepts` with the threshold for characters and the one for props that give the best macro-F1 on these frames.

    One a kind: a concept of its own would be set by thirty examples, and does worse on frames that were not looked at.
    """
    pairs: dict[str, dict[str, list[tuple[float, bool]]]] = {"character": {}, "prop": {}}
    for label, peak in zip(labels, peaks, strict=True):
        if label is None:
            continue
        asked = {f"{item.kind}/{item.concept}" for item in label.items if item.counts}
        silent = {f"{item.kind}/{item.concept}" for item in label.items if not item.counts}
        for key, value in peak.items():
            if key not in silent and (value > 0 or key in asked):
                kind, _, name = key.partition("/")
                pairs[kind].setdefault(name, []).append((value, key in asked))
    return replace(concepts, thresholds={kind: _best(list(found.values())) for kind, found in pairs.items()})


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
