"""What a seed did to a board's score and what its repair did are two figures."""

from __future__ import annotations

from typing import Any

import pytest

from katha.compass.effects import effect_of, is_stale, stale_told
from katha.schema import Board, Candidate, Candidates, CandidateScore, CompassSettings, Decision, Frame


def board(seed: int, bridge: bool = False, **marks: Any) -> Board:
    frames = [Frame(index=at, scene=at, image="a", sha256=f"{seed}{at}", prompt="p", seed=seed) for at in (1, 2)]
    if bridge:
        told = {"index": 2, "kind": "bridge", "transition": (1, 2), "image": "a", "sha256": "b", "prompt": "p", **marks}
        frames = [frames[0], Frame.model_validate({**told, "seed": seed}), frames[1].model_copy(update={"index": 3})]
    names = {"method": "m", "mode": "full", "planner": "p", "renderer": "r"}
    return Board(story_id="s", seed=seed, plan_sha256="0", frames=frames, **names)


def candidate(name: str, total: float, made: Board) -> Candidate:
    kind = "inserted" if any(frame.transition for frame in made.frames) else "base"
    score = CandidateScore(recoverability=None, coverage=0.0, copy_penalty=0.0, total=total)
    return Candidate(name=name, kind=kind, board=made, score=score, transitions=[])


def found(*, selected: str, inserted: str | None, accepted: bool, extra: Candidate | None = None) -> Candidates:
    listed = [candidate("candidate:42", 0.898, board(42)), candidate("candidate:2026", 0.938, board(2026))]
    listed += [candidate("bridge:42", 0.939, board(2026, bridge=True)), *([extra] if extra is not None else [])]
    decision = Decision(selected=selected, inserted=inserted, accepted=accepted, reason="r")
    return Candidates(story_id="s", mode="full", settings=CompassSettings(), candidates=listed, decision=decision)


def test_the_bridge_is_reported_apart_from_the_seed() -> None:
    effect = effect_of(found(selected="candidate:2026", inserted="bridge:42", accepted=True))
    assert effect is not None
    assert effect.told() == (
        "Of the change since the first board, seed 2026 in place of 42 took the score from 0.898 to 0.938, the bridge "
        "between scenes 1 and 2 alone from 0.938 to 0.939 (+0.001)."
    )
    assert effect.record() == {
        "seed": {"from": 42, "to": 2026, "before": 0.898, "after": 0.938},
        "repair": {"what": "the bridge between scenes 1 and 2", "before": 0.938, "after": 0.939},
    }


@pytest.mark.parametrize("accepted", [True, False])
def test_where_the_first_seed_stays_one_figure_says_all(accepted: bool) -> None:
    effect = effect_of(found(selected="candidate:42", inserted="bridge:42", accepted=accepted))
    assert effect is not None
    assert effect.told() == ""
    assert ("repair" in effect.record()) is accepted


def test_a_seed_that_was_chosen_without_a_repair_is_told() -> None:
    effect = effect_of(found(selected="candidate:2026", inserted=None, accepted=False))
    assert effect is not None
    assert effect.told().endswith("took the score from 0.898 to 0.938.")


def test_a_board_that_a_person_changed_has_no_such_figures() -> None:
    own = candidate("edit:002", 0.5, board(2026, bridge=True))
    assert effect_of(found(selected="candidate:2026", inserted="edit:002", accepted=True, extra=own)) is None


def test_a_bridge_beside_newer_pictures_is_named_with_what_to_do() -> None:
    assert stale_told(board(1, bridge=True)) == []
    old = board(1, bridge=True, stale=True)
    assert is_stale(old.frames[1])
    (said,) = stale_told(old, "out/fox")
    assert said.startswith("Frame 2, the bridge between scenes 1 and 2, is older than a picture beside it")
    assert "katha redo out/fox --remove 2" in said
