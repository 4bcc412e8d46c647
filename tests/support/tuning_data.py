"""Made-up features of validation stories for the tests of tuning, and one setting followed by the run's own rules."""

from __future__ import annotations

import numpy as np

from katha.compass.repair import BoardFeatures, TransitionFeatures, accept, best_candidate, weakest_transition, weigh
from katha.compass.tuning import CandidateData, RepairData, Setting, StoryData, possible_weakest
from katha.schema import DIMENSIONS, Board, Frame

PAIRS = [(number, number + 1) for number in range(1, 5)]


def _features(dice: np.random.Generator, frames: int, inserted: tuple[int, int] | None = None) -> BoardFeatures:
    adjacent = np.round(dice.uniform(0.7, 1.0, frames - 1), 2).tolist()
    steps = []
    for at, pair in enumerate(PAIRS):
        asked = int(dice.integers(0, 4))
        closest = adjacent[at] if pair != inserted else max(adjacent[at], adjacent[min(at + 1, frames - 2)])
        steps.append(
            TransitionFeatures(
                pair=pair,
                recoverability=float(dice.integers(0, asked + 1)) / asked if asked else None,
                n_questions=asked,
                similarity=float(np.round(dice.uniform(0.1, 0.9), 2)),
                adjacent=closest,
            )
        )
    whole = None if dice.random() < 0.3 else float(dice.integers(0, 7)) / 6
    return BoardFeatures(recoverability=whole, adjacent=adjacent, transitions=steps)


def _counts(dice: np.random.Generator) -> list[list[float]]:
    number = dice.integers(0, 4, len(DIMENSIONS))
    text = np.minimum(number, dice.integers(0, 4, len(DIMENSIONS)))
    image = np.minimum(number, dice.integers(0, 3, len(DIMENSIONS)))
    found: list[list[float]] = np.stack([number, text, image, number], axis=1).astype(float).tolist()
    return found


def random_stories(count: int, seed: int, seeds: tuple[int, ...] = (42, 123, 2026)) -> list[StoryData]:
    """Stories whose numbers are random but of the right form, some without scored questions."""
    dice = np.random.default_rng(seed)
    return [StoryData(story_id=f"s{at}", candidates=[_candidate(dice, s, seeds) for s in seeds]) for at in range(count)]


def _candidate(dice: np.random.Generator, seed: int, seeds: tuple[int, ...]) -> CandidateData:
    features = _features(dice, 5)
    repairs = {}
    for pair in possible_weakest(features.transitions):
        row = []
        for other in seeds:
            fixed = _features(dice, 6, pair)
            closest = next(step.adjacent for step in fixed.transitions if step.pair == pair)
            row.append(RepairData(seed=other, features=fixed, closest=closest, counts=_counts(dice)))
        repairs[f"{pair[0]}-{pair[1]}"] = row
    return CandidateData(seed=seed, features=features, counts=_counts(dice), repairs=repairs)


def _board(inserted: tuple[int, int] | None = None) -> Board:
    frames = [Frame(index=at, scene=at, image="x", sha256="x", prompt="x", seed=1) for at in range(1, 6)]
    if inserted:
        bridge = Frame(index=6, kind="bridge", transition=inserted, image="x", sha256="x", prompt="x", seed=1)
        frames.append(bridge)
    about = {"story_id": "s", "method": "m", "mode": "full", "planner": "p", "renderer": "r", "seed": 1}
    return Board(**about, plan_sha256="x", frames=frames)


def by_rules(story: StoryData, setting: Setting) -> list[list[float]]:
    """The outcome of one story under one setting, by the functions that `katha run` decides with."""
    settings = setting.compass()
    considered = story.candidates[: setting.candidates]
    candidates = [weigh(str(at), _board(), one.features, settings) for at, one in enumerate(considered)]
    best = best_candidate(candidates)
    chosen = considered[int(best.name)]
    weakest = weakest_transition(best.transitions)
    if weakest is None or not weakest.score < settings.repair_threshold:
        return chosen.counts
    repairs = chosen.repairs[f"{weakest.pair[0]}-{weakest.pair[1]}"]
    board = _board(weakest.pair)
    inserted = [weigh(str(at), board, one.features, settings) for at, one in enumerate(repairs)]
    tried = best_candidate(inserted)
    return repairs[int(tried.name)].counts if accept(best, tried, settings).accepted else chosen.counts
