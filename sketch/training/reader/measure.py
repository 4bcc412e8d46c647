"""Calibration and measurement: F1 by concept for what a person could read, on frames that were never trained on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from katha_sketch.reader.network import (
    ACT,
    BODY_SIDE,
    CLOSE_SIDE,
    Concepts,
    FigureReading,
    FrameReading,
    PropReading,
    Reader,
    cut,
    discs,
    softmax,
    window_on,
)
from training.reader.drawing import Drawn
from training.reader.labels import FrameLabels, Item
from training.reader.windows import Windows

__all__ = [
    "Counts",
    "alike_groups",
    "best_threshold",
    "calibrate",
    "f1_table",
    "grouped",
    "macro",
    "measure",
    "overall",
    "sharpest",
]

_NEAR = 20.0
_ALIKE, _LARGEST_GROUP = 0.4, 5
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


def _judged(table: dict[str, Counts], truth: str, said: str, pairs: Counter[tuple[str, str]] | None = None) -> None:
    if pairs is not None:
        pairs[truth, said] += 1
    if truth == said:
        table[truth].hit += 1
    else:
        table[truth].missed += 1
        table[said].false += 1


def _figures(tables: Table, labels: FrameLabels, reading: FrameReading, pairs: Counter[tuple[str, str]]) -> None:
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
                _judged(table, truth, max(said, key=lambda name: said[name]), pairs if kind == "action" else None)


def measure(
    labels: Sequence[FrameLabels | None],
    readings: Sequence[FrameReading],
    pairs: Counter[tuple[str, str]] | None = None,
) -> Table:
    """Counts by kind and concept; pictures that are no sketch are left to the is-sketch figures. `pairs` is given how
    often each action was said for each."""
    tables: Table = defaultdict(lambda: defaultdict(Counts))
    for label, reading in zip(labels, readings, strict=True):
        if label is None:
            continue
        for kind, found in (
            ("character", {one.concept for one in reading.figures}),
            ("prop", {one.concept for one in reading.props}),
        ):
            _presence(tables[kind], found, _names(label.items, kind, True), _names(label.items, kind, False))
        _figures(tables, label, reading, Counter() if pairs is None else pairs)
        _judged(tables["setting"], label.setting, reading.setting)
        _judged(tables["time"], label.time, reading.time)
    return tables


def macro(table: Mapping[str, Counts]) -> float:
    """The mean F1 over the concepts that occur."""
    values = [counts.f1 for counts in table.values() if counts.f1 is not None]
    return float(np.mean(values)) if values else 0.0


def overall(table: Mapping[str, Counts]) -> Counts:
    """All decisions of a kind together: a mean over concepts rests on single drawings where a concept occurs once."""
    total = Counts()
    for counts in table.values():
        total.hit, total.missed, total.false = (
            total.hit + counts.hit, total.missed + counts.missed, total.false + counts.false
        )  # fmt: skip
    return total


def f1_table(table: Mapping[str, Counts]) -> dict[str, dict[str, Any]]:
    """F1, hits, misses and false alarms by concept, for the card."""
    return {
        name: {"f1": None if c.f1 is None else round(c.f1, 3), "hit": c.hit, "missed": c.missed, "false": c.false}
        for name, c in sorted(table.items())
    }


def alike_groups(reader: Reader, windows: Windows, most: int = 3000) -> tuple[tuple[str, ...], ...]:
    """The actions of which one is taken for another so often that they are drawn alike, by what the namer says of
    figures that it learnt from: two are when, together, at least `_ALIKE` of their probability goes to the other."""
    names = reader.concepts.actions
    index = {name: nth for nth, name in enumerate(names)}
    picked = [nth for nth, row in enumerate(windows.figures) if row[1] in index][:most]
    mass, counts = np.zeros((len(names), len(names))), np.zeros(len(names))
    for start in range(0, len(picked), 64):
        some = picked[start : start + 64]
        chances = softmax(reader.figures(*_cropped(windows, some))[1])
        for row, nth in zip(chances, some, strict=True):
            truth = index[windows.figures[nth][1]]
            mass[truth] += row
            counts[truth] += 1
    shares = mass / np.maximum(1, counts)[:, None]
    rigged = np.array([not name.startswith(ACT) for name in names])
    both = np.triu(shares + shares.T, 1) * (rigged[:, None] & rigged[None, :])
    groups = {name: {name} for name in names}
    for flat in np.argsort(-both, axis=None):
        one, two = (int(part) for part in np.unravel_index(flat, both.shape))
        if both[one, two] < _ALIKE:
            break
        first, second = groups[names[one]], groups[names[two]]
        if first is not second and len(first) + len(second) <= _LARGEST_GROUP:
            first |= second
            groups |= dict.fromkeys(first, first)
    found = {id(group): tuple(sorted(group)) for group in groups.values() if len(group) > 1}
    return tuple(sorted(found.values()))


def _cropped(windows: Windows, picked: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Windows of figures as the reader cuts them, out of the stored ones with room around them."""

    def middle(stored: Sequence[NDArray[np.uint8]], side: int) -> NDArray[np.float32]:
        edge = (stored[picked[0]].shape[0] - side) // 2
        views = np.stack([stored[nth][edge : edge + side, edge : edge + side] for nth in picked])
        return (views.transpose(0, 3, 1, 2) / 255).astype(np.float32)

    disc = discs(windows.marks[list(picked)], BODY_SIDE)[:, None]
    heads, bodies = middle(windows.heads, CLOSE_SIDE), middle(windows.bodies, BODY_SIDE)
    return heads, np.concatenate([bodies, disc], axis=1).astype(np.float32)


def grouped(
    table: Mapping[str, Counts], groups: Sequence[Sequence[str]], pairs: Mapping[tuple[str, str], int]
) -> float:
    """Macro-F1 with the classes of a group counted as one; `pairs` counts (true, said) of those that were found."""
    of = {name: group[0] for group in groups for name in group}
    merged: dict[str, Counts] = defaultdict(Counts)
    for (truth, said), count in pairs.items():
        one, other = of.get(truth, truth), of.get(said, said)
        if one == other:
            merged[one].hit += count
        else:
            merged[one].missed += count
            merged[other].false += count
    for name, counts in table.items():
        unseen = counts.hit + counts.missed - sum(count for (truth, _), count in pairs.items() if truth == name)
        merged[of.get(name, name)].missed += unseen
    return macro(merged)


def sharpest(reader: Reader, drawn: Drawn) -> Concepts:
    """The reader's concepts with the sharpness by which the names of these frames' pictograms are likeliest."""
    places = {name: nth for nth, name in enumerate(reader.gallery.words)}
    rows, wanted = [np.zeros((0, len(places)), np.float32)], []
    for pixels, label in zip(drawn.pixels, drawn.labels, strict=True):
        items = [item for item in label.items if item.counts and item.concept in places] if label is not None else []
        items = [item for item in items if item.kind == "prop"]
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
    """The reader's concepts with the threshold for characters and the one for props that give the best F1 of all
    decisions on these frames.

    One a kind: a concept of its own would be set by thirty examples, and does worse on frames that were not looked at.
    All decisions: the mean over concepts does not see what is named falsely as something that these frames do not show.
    """
    every = replace(reader.concepts, thresholds={"character": 0.0, "prop": 0.0})
    reader.concepts = every
    pairs: dict[str, list[tuple[float, bool]]] = {"character": [], "prop": []}
    for pixels, label in zip(drawn.pixels, drawn.labels, strict=True):
        if label is None:
            continue
        peak = reader.read_pixels(pixels).peaks
        asked = {f"{item.kind}/{item.concept}" for item in label.items if item.counts}
        silent = {f"{item.kind}/{item.concept}" for item in label.items if not item.counts}
        for key in {*peak, *asked} - silent:
            pairs[key.partition("/")[0]].append((peak.get(key, 0.0), key in asked))
    return replace(every, thresholds={kind: best_threshold(found) for kind, found in pairs.items()})


def best_threshold(pairs: Sequence[tuple[float, bool]]) -> float:
    """The threshold of the best F1 of all `pairs` of a peak and whether what it names is there."""
    values = np.array([value for value, _ in pairs])
    truth = np.array([present for _, present in pairs], dtype=bool)
    said = values[None, :] >= _CANDIDATES[:, None]
    scores = 2 * (said & truth).sum(axis=1) / np.maximum(1, said.sum(axis=1) + truth.sum())
    best = np.flatnonzero(scores >= scores.max() - 1e-9)
    return float(_CANDIDATES[best[len(best) // 2]])
