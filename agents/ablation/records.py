"""What an ablation keeps of each story, as written to `stories/STORY_ID/result.json`."""

from __future__ import annotations

from typing import Literal

from katha.schema import Board, CandidateScore, Decision, Record

__all__ = ["RowBoard", "StoryResult"]


class RowBoard(Record):
    """One board that a row ends with.

    method: the row's name, with `@SEED` where the row reports the mean over seeds. score: the board's, by Eq. 24.
    before: the board without what was inserted, if anything was. frames, questions: short names of the distinct frames
    and questions that this board alone would have needed.
    """

    row: str
    method: str
    seed: int
    board: Board
    decision: Decision
    score: CandidateScore
    before: Board | None = None
    frames: list[str]
    questions: list[str]


class StoryResult(Record):
    """Everything of one story; `invalid` says by method why a row has no board."""

    format: Literal[1] = 1
    identity: str
    story_id: str
    title: str
    boards: list[RowBoard]
    invalid: dict[str, str] = {}
    seconds: float = 0.0
