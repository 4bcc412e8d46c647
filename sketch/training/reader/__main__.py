"""`make reader`: draw, train two networks, make the gallery, calibrate, measure, export. Under an hour on two cores."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from katha.jsonio import write_bytes_atomic, write_json
from katha_sketch.drawing import SketchRenderer
from katha_sketch.drawing.deeds import deed, deed_ids
from katha_sketch.drawing.pictograms import ACTS, MOODS, pictograms
from katha_sketch.drawing.places import place_data, place_ids
from katha_sketch.planner.rule import RulePlanner
from katha_sketch.reader.network import ACT, VECTOR, Concepts, Gallery, Reader
from training.reader.card import card_text, measure_card
from training.reader.drawing import TRAIN, draw_set, told_file
from training.reader.fit import Task, train_both
from training.reader.gallery import gallery_bytes, make_gallery
from training.reader.labels import person_classes
from training.reader.measure import alike_groups, calibrate, sharpest
from training.reader.scenes import creatures, drawn_pictograms, held_out, tell_stories
from training.reader.told import FOLDER, told
from training.reader.words import words_table

__all__ = ["drawn_concepts", "main", "train"]

ROOT = Path(__file__).parents[2]


def drawn_concepts() -> Concepts:
    """Everything that the sketch draws, as the reader's classes."""
    return Concepts(
        characters=(*creatures(), *person_classes()),
        actions=(*(name for name in deed_ids() if deed(name).seen is None), *(f"{ACT}{name}" for name in ACTS)),
        emotions=("none", *(name for name in MOODS if name not in ("loving", "worried"))),
        settings=(*dict.fromkeys(place_data(name).seen for name in place_ids()), "none"),
        times=("day", "dawn", "dusk", "night"),
        acting=tuple(name for name in drawn_pictograms() if pictograms()[name].acts == "yes"),
    )


def _losses(name: str, losses: list[float]) -> dict[str, Any]:
    tenth = max(1, len(losses) // 10)
    first, last = (round(float(np.mean(part)), 3) for part in (losses[:tenth], losses[-tenth:]))
    return {f"{name}_steps": len(losses), f"{name}_first_loss": first, f"{name}_last_loss": last}


@dataclass(frozen=True)
class Plan:
    """What to make where: `counts` are training, calibration and test frames, `pictograms` how many the gallery holds
    (all), `stories` how many of those read are drawn (all); see `Task` for the rest."""

    out: Path
    data: Path
    counts: tuple[int, int, int]
    effort: float = 1.0
    minutes: float = 40.0
    workers: int = 2
    start: Path | None = None
    pictograms: int | None = None
    stories: int | None = None


def _tell(plan: Plan, key: str) -> None:
    """Plan the read stories whose moments are drawn: to train on, and of those that nobody trains on one half to
    calibrate with and one to measure on."""
    plan.data.mkdir(parents=True, exist_ok=True)
    learnt, unseen = (list(told(folder))[: plan.stories] for folder in (FOLDER, FOLDER / "unseen"))
    for split, stories in ((TRAIN, learnt), ("calibration", unseen[::2]), ("stories", unseen[1::2])):
        tell_stories(told_file(plan.data, split), stories, key, plan.workers)


def train(plan: Plan) -> dict[str, Any]:
    """Make the reader and its card in `plan.out`. Returns the card."""
    begun = time.perf_counter()
    drawings = dict(SketchRenderer().spec())
    key = f"{drawings['version']}/{drawings['vocabulary']}/{RulePlanner.version}"
    _tell(plan, key)
    sets = {
        split: draw_set(plan.data, split, count, key, plan.workers)
        for split, count in zip((TRAIN, "calibration", "test", "stories"), (*plan.counts, plan.counts[2]), strict=True)
    }
    print(f"drawn in {time.perf_counter() - begun:.0f} s", flush=True)
    concepts, windows = drawn_concepts(), sets[TRAIN].windows
    assert windows is not None
    props = tuple(name for name in drawn_pictograms() if not held_out(name))
    task = Task(plan.data, plan.counts[0], key, concepts, props, plan.effort, plan.minutes, plan.start)
    (finder, found, one), (namer, named, two) = train_both(task)
    concepts = replace(concepts, version=f"{drawings['version']}-{len(found)}-{len(named)}", trained_on=drawings)
    gallery = make_gallery(Reader(finder, namer, concepts, _empty(), threads=2), drawn_pictograms()[: plan.pictograms])
    reader = Reader(finder, namer, concepts, gallery, threads=2)
    reader.concepts = replace(concepts, alike=alike_groups(reader, windows))
    reader.concepts = sharpest(reader, sets["calibration"])
    concepts = calibrate(reader, sets["calibration"])
    models = {"finder.onnx": finder, "namer.onnx": namer, "gallery.npz": gallery_bytes(gallery)}
    facts = {
        "train_frames": plan.counts[0],
        "train_figures": len(windows.figures),
        "train_props": len(windows.things),
        "calibration_frames": plan.counts[1],
        **_losses("finder", found),
        **_losses("namer", named),
        "began_from": "nothing" if plan.start is None else "the reader before",
        "training_core_minutes": round((one + two) / 60, 1),
        "core_minutes": round(sum(os.times()[:4]) / 60, 1),
        "bytes": sum(map(len, models.values())),
    }
    card = measure_card(Reader(finder, namer, concepts, gallery), sets["test"], sets["stories"], facts, held_out)
    for name, model in models.items():
        write_bytes_atomic(plan.out / name, model)
    write_json(plan.out / "concepts.json", asdict(concepts))
    write_json(plan.out / "words.json", words_table())
    write_json(plan.out / "card.json", card)
    write_bytes_atomic(plan.out / "CARD.md", card_text(card).encode("utf-8"))
    return card


def _empty() -> Gallery:
    return Gallery((), np.zeros((0, VECTOR), np.float32))


def main() -> None:
    """The command line of `make reader`."""
    shipped = ROOT / "src" / "katha_sketch" / "reader"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=shipped, help="where the reader goes")
    parser.add_argument("--data", type=Path, default=ROOT / "training" / "data", help="where drawings are kept")
    parser.add_argument("--frames", type=int, default=6_000, help="how many frames to train on")
    parser.add_argument("--test-frames", type=int, default=1_000, help="how many to measure on (and to calibrate on)")
    parser.add_argument("--effort", type=float, default=1.0, help="multiplies how often the frames are seen")
    parser.add_argument("--minutes", type=float, default=40.0, help="the most that training may take")
    parser.add_argument("--workers", type=int, default=2, help="processes that draw")
    parser.add_argument("--pictograms", type=int, help="how many pictograms the gallery holds (all)")
    parser.add_argument("--stories", type=int, help="how many of the read stories are drawn (all)")
    parser.add_argument("--afresh", action="store_true", help="begin from nothing, not from the reader that ships")
    given = parser.parse_args()
    counts = (given.frames, given.test_frames, given.test_frames)
    start = None if given.afresh else shipped
    kept = (given.effort, given.minutes, given.workers, start, given.pictograms, given.stories)
    plan = Plan(given.out, given.data, counts, *kept)
    card = train(plan)
    print(card["macro_f1"], card["taken_for_sketches"], f"{card['core_minutes']} core-minutes, {card['bytes']:,} bytes")


if __name__ == "__main__":
    main()
