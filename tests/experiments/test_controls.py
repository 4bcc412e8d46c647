"""What the controls show, and how what they showed is read."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from evals import draw, records
from PIL import Image

from katha.errors import UsageError
from katha.eval_bridge.bench.boards import read_board
from katha.eval_bridge.scoring.controls import (
    ControlBoards,
    blank_board,
    control_results,
    parse_controls,
    shuffled_order,
)
from katha.schema import Answer, Condition
from katha.schema.scores import ChanceControl


def test_controls_are_named_and_ordered() -> None:
    assert parse_controls("foreign, blank") == ("blank", "foreign")
    assert parse_controls("all") == ("blank", "shuffled", "repeated", "foreign", "repeat")
    assert parse_controls(None) == ()
    with pytest.raises(UsageError, match="ghost"):
        parse_controls("blank,ghost")


def test_no_shuffled_frame_keeps_its_place() -> None:
    for story in ("a", "b", "c"):
        order = shuffled_order(story, 5)
        assert sorted(order) == [0, 1, 2, 3, 4]
        assert all(at != place for at, place in enumerate(order))
        assert order == shuffled_order(story, 5)


def test_blank_frames_hold_one_colour_and_foreign_ones_another_board(tmp_path: Path) -> None:
    stories = records(2)
    boards = draw(tmp_path / "flux", stories)
    shown = ControlBoards(boards, stories)
    own = read_board(boards, stories[0])
    plain = blank_board(own.images)
    with Image.open(io.BytesIO(plain[0])) as image:
        assert (image.size, len(plain), image.getcolors()) == ((24, 16), 5, [(384, (251, 246, 234))])
    assert shown.images("foreign", own) == read_board(boards, stories[1]).images
    assert shown.images("repeat", own) == own.images
    assert ControlBoards(boards, stories[:1]).images("foreign", own) is None


def test_a_control_that_has_nothing_to_show_says_so(tmp_path: Path) -> None:
    stories = records(1)
    boards = draw(tmp_path / "flux", stories)
    shown, own = ControlBoards(boards, stories), read_board(boards, stories[0])
    single = replace(own, frames=own.frames[:1])
    assert shown.images("shuffled", single) is None
    assert shown.images("foreign", own) is None
    item = stories[0].recoverability_questions[0]
    row = Answer(
        method="flux", judge="j", story_id=stories[0].story_id, question_id=item.question_id, condition="image",
        status="ok", answer="gold",
    )  # fmt: skip
    found = control_results(
        {(row.story_id, row.question_id): item},
        [row],
        [row.model_copy(update={"method": "blank", "status": "refused", "answer": None})],
        board="flux",
        matching="lemma-set",
        controls=("foreign", "blank"),
    )
    assert [entry.passes for entry in found] == [None, None]
    assert "nothing to show" in found[0].reading
    assert "No question was answered" in found[1].reading


@pytest.mark.parametrize(
    ("right", "own", "passes"), [(8, 8, False), (0, 8, True), (0, 2, None), (0, 0, None), (8, 2, False)]
)
def test_above_chance_fails_and_a_board_at_chance_tells_nothing(right: int, own: int, passes: bool | None) -> None:
    stories = records(8)
    questions = {
        (record.story_id, item.question_id): item for record in stories for item in record.recoverability_questions
    }

    def rows(method: str, good: int) -> list[Answer]:
        return [
            Answer(
                method=method,
                judge="j",
                story_id=story,
                question_id=name,
                condition="image",
                status="ok",
                answer="gold" if int(story[1:]) < good else "Unclear",
            )
            for story, name in questions
        ]

    found = control_results(
        questions, rows("flux", own), rows("blank", right), board="flux", matching="lemma-set", controls=("blank",)
    )
    assert found[0].passes is passes
    assert found[0].reading.startswith("Not informative") is (passes is None)
    assert (found[0].image, found[0].board, found[0].chance) == (100.0 * right / 8, 100.0 * own / 8, 25.0)
    assert found[0].unclear == 100.0 - found[0].image


@pytest.mark.parametrize(
    ("chance", "right", "own", "guessed", "passes", "reading"),
    [
        (False, 8, 8, 0, False, "refuse this judge"),
        (False, 5, 8, 1, False, "refuse this judge"),
        (False, 4, 8, 4, True, "fall to what is guessed without evidence or below"),
        (False, 1, 8, 0, True, "cannot be told from what is guessed"),
        (False, 2, 2, 2, None, "Not informative"),
        (False, 8, 8, None, None, "Free answers have no chance level"),
        (True, 8, 8, 0, False, "refuse this judge"),
        (True, 8, 8, 8, False, "the questions can be guessed"),
        (True, 8, 8, None, False, "or the judge leaks"),
        (True, 0, 8, 1, True, "fall to chance or below"),
    ],
)
def test_nothing_to_see_adds_nothing_to_what_is_guessed(
    chance: bool, right: int, own: int, guessed: int | None, passes: bool | None, reading: str
) -> None:
    stories = records(8)
    questions = {
        (record.story_id, item.question_id): item for record in stories for item in record.recoverability_questions
    }

    def rows(method: str | None, good: int, condition: Condition = "image") -> list[Answer]:
        return [
            Answer(
                method=method,
                judge="j",
                story_id=story,
                question_id=name,
                condition=condition,
                status="ok",
                answer="gold" if int(story[1:]) < good else "other",
            )
            for story, name in questions
        ]

    told = [*rows("flux", own), *rows(None, guessed, "none")] if guessed is not None else rows("flux", own)
    shown = [row for name in ("blank", "repeated") for row in rows(name, right)]
    found, again = control_results(
        questions, told, shown, board="flux", matching="lemma-set", controls=("blank", "repeated"), chance=chance
    )
    assert isinstance(found, ChanceControl)
    assert isinstance(again, ChanceControl)
    assert (found.passes, reading in found.reading) == (passes, True), found.reading
    assert found.gain == (None if guessed is None else 100.0 * (right - guessed) / 8)
    assert again.focus is not None
    assert (again.focus.n, again.dimensions) == (8, ("temporal_order", "consequence"))
    if not chance:
        assert again.passes is passes


def test_the_first_frame_stands_in_place_of_every_frame(tmp_path: Path) -> None:
    stories = records(1)
    boards = draw(tmp_path / "flux", stories)
    shown, own = ControlBoards(boards, stories), read_board(boards, stories[0])
    assert shown.images("repeated", own) == [own.images[0]] * 5
    assert shown.images("repeated", replace(own, frames=own.frames[:1])) is None
