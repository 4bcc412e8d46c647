"""`katha tune`: how fast settings are tried over features, beside re-scoring every story's boards for each setting."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from katha.compass.repair import BoardFeatures, TransitionFeatures, candidate_score, copy_penalty, transition_coverage
from katha.compass.tuning import (
    CandidateData,
    FeatureTable,
    Grid,
    RepairData,
    Setting,
    StoryData,
    best_setting,
    fold_gaps,
    possible_weakest,
    sample_settings,
    weakest_at,
)
from katha.schema import DIMENSIONS, CompassSettings

__all__ = ["measure"]

_STORIES, _SETTINGS, _LOOPED = 750, 10_000, 4
_SEEDS = (42, 123, 2026)
_TARGET_SECONDS = 20.0
Counts = list[list[float]]


def _features(dice: np.random.Generator, frames: int) -> BoardFeatures:
    adjacent = dice.uniform(0.7, 1.0, frames - 1).tolist()
    steps = [
        TransitionFeatures(
            pair=(at + 1, at + 2),
            recoverability=float(dice.integers(0, 4)) / 3 if dice.random() < 0.8 else None,
            n_questions=3,
            similarity=float(dice.uniform(0.1, 0.9)),
            adjacent=adjacent[at],
        )
        for at in range(4)
    ]
    return BoardFeatures(recoverability=float(dice.integers(0, 7)) / 6, adjacent=adjacent, transitions=steps)


def _counts(dice: np.random.Generator) -> Counts:
    number = dice.integers(1, 3, len(DIMENSIONS))
    image = np.minimum(number, dice.integers(0, 3, len(DIMENSIONS)))
    found: Counts = np.stack([number, number, image, number], axis=1).astype(float).tolist()
    return found


def _stories() -> list[StoryData]:
    dice = np.random.default_rng(42)
    stories = []
    for at in range(_STORIES):
        candidates = []
        for seed in _SEEDS:
            features = _features(dice, 5)
            repairs = {
                f"{pair[0]}-{pair[1]}": [
                    RepairData(seed=other, features=_features(dice, 6), closest=0.9, counts=_counts(dice))
                    for other in _SEEDS
                ]
                for pair in possible_weakest(features.transitions)
            }
            candidates.append(CandidateData(seed=seed, features=features, counts=_counts(dice), repairs=repairs))
        stories.append(StoryData(story_id=f"s{at}", candidates=candidates))
    return stories


def _total(features: BoardFeatures, settings: CompassSettings) -> float:
    coverage = transition_coverage([step.similarity for step in features.transitions], settings.delta)
    copies = copy_penalty(features.adjacent, settings.gamma)
    return candidate_score(features.recoverability, coverage, copies, settings).total


def _looped(stories: list[StoryData], setting: Setting) -> float:
    """One setting by re-scoring every board: the gap of the boards that it ends with."""
    settings, final = setting.compass(), []
    for story in stories:
        totals = [_total(item.features, settings) for item in story.candidates[: setting.candidates]]
        best = int(np.argmax(totals))
        chosen = story.candidates[best]
        counts = chosen.counts
        pair, score = weakest_at(chosen.features.transitions, setting.delta)
        if pair is not None and score < setting.repair_threshold:
            repairs = chosen.repairs[f"{pair[0]}-{pair[1]}"]
            fixed = [_total(item.features, settings) for item in repairs]
            tried = int(np.argmax(fixed))
            if fixed[tried] > totals[best] and repairs[tried].closest <= setting.gamma:
                counts = repairs[tried].counts
        final.append(counts)
    return float(fold_gaps(np.array(final).sum(axis=0)))


def measure() -> dict[str, Any]:
    """10,000 settings over 750 stories with 3 candidates, and the seconds that the loop would take for as many."""
    stories = _stories()
    first = Setting(3, **CompassSettings().model_dump())
    start, started = time.perf_counter(), time.process_time()
    settings = sample_settings(Grid(), _SETTINGS, first)
    table = FeatureTable(stories, [item.delta for item in settings])
    boards = table.boards(settings)
    gaps = fold_gaps(table.sums(boards, np.arange(_STORIES) % 5, 5).sum(axis=1))
    best = best_setting(gaps)
    whole, cpu = time.perf_counter() - start, time.process_time() - started
    sample = [settings[at] for at in np.linspace(0, len(settings) - 1, _LOOPED).astype(int)]
    started = time.process_time()
    looped = [_looped(stories, item) for item in sample]
    each = (time.process_time() - started) / len(sample)
    places = [settings.index(item) for item in sample]
    return {
        "stories": _STORIES,
        "settings": len(settings),
        "seconds": round(whole, 2),
        "target_seconds": _TARGET_SECONDS,
        "cpu_seconds": round(cpu, 2),
        "settings_per_cpu_second": round(len(settings) / cpu),
        "best_gap": round(100 * float(gaps[best]), 3),
        "same_gaps_as_the_loop": bool(np.allclose(gaps[places], looped)),
        "baseline": f"re-scoring every board for each setting in a loop ({_LOOPED} settings timed)",
        "loop_cpu_seconds": round(each * len(settings), 1),
        "ratio": round(each * len(settings) / cpu, 1),
    }
