"""Eqs. 24 to 28 and Algorithm 1's choices against a naive reading of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from katha.compass.repair import (
    accept,
    adjacent_similarities,
    best_candidate,
    candidate_score,
    copy_penalty,
    span,
    transition_coverage,
    transition_similarity,
    weakest_transition,
)
from katha.schema import Board, Candidate, CandidateScore, CompassSettings, Frame, TransitionScore

unit = st.floats(0, 1, allow_nan=False)
similarity = st.floats(-1, 1, allow_nan=False)


def frame(index: int, kind: str = "scene", scene: int | None = None, pair: tuple[int, int] | None = None) -> Frame:
    return Frame.model_validate(
        {
            "index": index,
            "kind": kind,
            "scene": scene,
            "transition": pair,
            "image": "",
            "sha256": "",
            "prompt": "",
            "seed": 42,
        }
    )


def board(*frames: Frame) -> Board:
    return Board(
        story_id="s",
        method="m",
        mode="full",
        planner="p",
        renderer="r",
        seed=42,
        plan_sha256="",
        frames=list(frames),
    )


def candidate(
    name: str, total: float, recoverability: float | None = 0.5, adjacent: float = 0.0, asked: int = 2
) -> Candidate:
    pair = (1, 2)
    transition = TransitionScore(
        pair=pair, recoverability=0.5, n_questions=asked, similarity=0.4, covered=False, copied=False, adjacent=adjacent
    )
    score = CandidateScore(recoverability=recoverability, coverage=0, copy_penalty=0, total=total)
    frames = (frame(1, scene=1), frame(2, "bridge", pair=pair), frame(3, scene=2))
    return Candidate(name=name, kind="inserted", board=board(*frames), score=score, transitions=[transition])


@st.composite
def boards(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int | None]:
    """Unit image vectors (N, D), unit text vectors (T-1, D), and after which scene a frame is inserted (or None)."""
    scenes = draw(st.integers(2, 7))
    inserted = draw(st.none() | st.integers(1, scenes - 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    images = rng.normal(size=(scenes + (inserted is not None), 3))
    if draw(st.booleans()):
        images[-1] = images[0]
    texts = rng.normal(size=(scenes - 1, 3))
    return (
        images / np.linalg.norm(images, axis=1, keepdims=True),
        texts / np.linalg.norm(texts, axis=1, keepdims=True),
        inserted,
    )


def displayed(scenes: int, inserted: int | None) -> list[Frame]:
    frames = []
    for scene in range(1, scenes + 1):
        frames.append(frame(len(frames) + 1, scene=scene))
        if scene == inserted:
            frames.append(frame(len(frames) + 1, "bridge", pair=(scene, scene + 1)))
    return frames


@given(boards(), st.floats(-1, 1), st.floats(-1, 1))
def test_coverage_and_copies_by_the_letter(
    case: tuple[np.ndarray, np.ndarray, int | None], delta: float, gamma: float
) -> None:
    images, texts, inserted = case
    scenes = len(texts) + 1
    frames = displayed(scenes, inserted)
    covered = 0
    for t in range(1, scenes):
        best = -2.0
        for position, shown in enumerate(frames):
            belongs = shown.scene in (t, t + 1) if shown.kind == "scene" else shown.transition == (t, t + 1)
            if belongs:
                best = max(best, sum(float(a * b) for a, b in zip(images[position], texts[t - 1], strict=True)))
        covered += best > delta
    similarities = [transition_similarity(images[span(frames, (t, t + 1))], texts[t - 1]) for t in range(1, scenes)]
    assert transition_coverage(similarities, delta) == pytest.approx(covered / (scenes - 1))
    pairs = [float(np.dot(images[i], images[i + 1])) for i in range(len(images) - 1)]
    assert adjacent_similarities(images) == pytest.approx(pairs)
    assert copy_penalty(pairs, gamma) == pytest.approx(sum(p > gamma for p in pairs) / len(pairs))


@given(st.none() | unit, unit, unit, unit, unit, unit)
def test_the_score_is_eq_24(
    recoverability: float | None, coverage: float, copies: float, r: float, t: float, p: float
) -> None:
    settings = CompassSettings(lambda_r=r, lambda_t=t, lambda_p=p)
    score = candidate_score(recoverability, coverage, copies, settings)
    assert score.total == pytest.approx(r * (recoverability or 0) + t * coverage - p * copies)
    assert (score.recoverability, score.coverage, score.copy_penalty) == (recoverability, coverage, copies)


def test_a_threshold_is_exceeded_strictly() -> None:
    assert transition_coverage([0.5, 0.6], 0.5) == 0.5
    assert copy_penalty([0.95, 0.96], 0.95) == 0.5
    assert transition_coverage([], 0.5) == copy_penalty([], 0.5) == 0.0


scores = st.builds(
    lambda number, value, sim, covered: TransitionScore(
        pair=(number, number + 1),
        recoverability=value,
        n_questions=3 if value is not None else 0,
        similarity=sim,
        covered=covered,
        copied=False,
    ),
    st.integers(1, 6),
    st.none() | st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.1, 0.2, 0.3]),
    st.booleans(),
)


@given(st.lists(scores, min_size=1, max_size=6, unique_by=lambda item: item.pair))
def test_the_weakest_transition_is_eq_27_with_its_ties(transitions: list[TransitionScore]) -> None:
    found = weakest_transition(transitions)
    assert found is not None

    def value(item: TransitionScore) -> float:
        return item.recoverability if item.recoverability is not None else float(item.covered)

    ranked = [item for item in transitions if item.recoverability is not None] or transitions
    least = min(value(item) for item in ranked)
    tied = [item for item in ranked if value(item) == least]
    lowest = min(item.similarity for item in tied)
    first = min(item.pair for item in tied if item.similarity == lowest)
    assert found.pair == first
    assert found.score == least
    chosen = next(item for item in transitions if item.pair == first)
    assert ("no scored steering question" in found.reason) == (chosen.recoverability is None)
    assert ("are not ranked among these" in found.reason) == (len(ranked) < len(transitions))
    assert ("ties with" in found.reason) == (len(tied) > 1)


def test_no_transition_no_weakest() -> None:
    assert weakest_transition([]) is None


def test_the_best_candidate_wins_and_the_first_of_equals() -> None:
    low, high, equal = candidate("a", 0.4), candidate("b", 0.6), candidate("c", 0.6)
    assert best_candidate([low, high, equal]).name == "b"
    assert best_candidate([equal, high, low]).name == "c"


def test_a_candidate_that_no_judge_scored_comes_last() -> None:
    assert best_candidate([candidate("unscored", 0.9, None), candidate("scored", 0.1)]).name == "scored"


@given(unit, unit, similarity, similarity)
def test_a_repair_needs_a_strict_rise_and_no_copy(old: float, new: float, adjacent: float, gamma: float) -> None:
    before, after = candidate("before", old), candidate("after", new, adjacent=adjacent)
    verdict = accept(before, after, CompassSettings(gamma=gamma))
    assert verdict.accepted == (new > old and adjacent <= gamma)
    assert f"{old:.3f}" in verdict.reason
    assert f"{new:.3f}" in verdict.reason


def test_the_reason_of_a_refused_copy_has_its_numbers() -> None:
    verdict = accept(candidate("before", 0.2), candidate("after", 0.8, adjacent=0.97), CompassSettings(gamma=0.95))
    assert not verdict.accepted
    assert "0.97" in verdict.reason
    assert "0.95" in verdict.reason


def test_boards_with_and_without_scored_questions_do_not_compare() -> None:
    verdict = accept(candidate("before", 0.2, None), candidate("after", 0.8), CompassSettings())
    assert not verdict.accepted
    assert "do not compare" in verdict.reason


def test_coverage_alone_decides_only_where_there_is_nothing_to_ask() -> None:
    before, after = candidate("before", 0.2, None), candidate("after", 0.8, None)
    verdict = accept(before, after, CompassSettings())
    assert not verdict.accepted
    assert "no judge could answer" in verdict.reason
    assert accept(
        candidate("before", 0.2, None, asked=0), candidate("after", 0.8, None, asked=0), CompassSettings()
    ).accepted
