"""Criterial rating as a metric, and the planner that cuts a story into fragments."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from metric_boards import make_board, make_context
from PIL import Image

from katha.errors import InputFileError, PlanError, ReplyError
from katha.eval_bridge.metrics import measure_board
from katha.eval_bridge.metrics.criterial import BaselineRating, CriterialRating, read_criteria_file
from katha.models.base import Completion, Turn
from katha.planners.fragments import FragmentPlanner
from katha.protocols import Evidence, PlainPrompt, PlanRequest
from katha.schema import StoryRecord
from katha.testing import ScriptedJudge


def _judge(marks: str = "✓?", criteria: str = "1. A fox is seen\n2. It sleeps") -> Callable[..., str]:
    def reply(evidence: Evidence, prompt: PlainPrompt) -> str:
        if not evidence.images:
            assert "Story Fragment:" in prompt.text
            return criteria
        height = Image.open(io.BytesIO(evidence.images[0])).height
        assert height == 240, "raters see pictures of 240 pixels"
        if "half-point increments" in prompt.text:
            return "1.5"
        assert prompt.text.rstrip().endswith("2. It sleeps\nImage: Picture 1\nCriteria Responses:")
        return "\n".join(f"{at}. whatever {mark}" for at, mark in enumerate(marks, 1))

    return reply


def test_criteria_are_written_once_and_marked_for_each_picture(tmp_path: Path) -> None:
    judge = ScriptedJudge(_judge())
    found = list(measure_board(CriterialRating(), make_board(), make_context(tmp_path, judge)))
    assert [(value.part, value.frame, value.value, value.item) for value in found[:4]] == [
        ("share", 1, 0.75, ""),
        ("points", 1, 1.5, ""),
        ("share", 1, 1.0, "A fox is seen"),
        ("share", 1, 0.5, "It sleeps"),
    ]
    assert len(judge.asked) == 4


def test_the_baseline_rates_on_the_scale_of_the_criteria(tmp_path: Path) -> None:
    found = list(measure_board(BaselineRating(), make_board(), make_context(tmp_path, ScriptedJudge(_judge()))))
    assert [(value.frame, value.value, value.n) for value in found] == [(1, 0.75, 2), (2, 0.75, 2)]


@pytest.mark.parametrize(
    ("marks", "criteria", "reason"),
    [
        ("✓", "1. A fox is seen\n2. It sleeps", "unparseable: The rater answered 1 criteria in order, of 2"),
        ("✓✓", "A fox is seen", "unparseable: The criteria must be numbered 1, 2, 3 and on; the reply has none"),
        ("✓=", "1. A fox is seen\n2. It sleeps", "unparseable: Criterion 2 ends in no mark: 'whatever ='"),
    ],
)
def test_an_unreadable_reply_is_a_typed_null(tmp_path: Path, marks: str, criteria: str, reason: str) -> None:
    judge = ScriptedJudge(_judge(marks, criteria))
    found = list(measure_board(CriterialRating(), make_board(), make_context(tmp_path, judge)))
    assert {value.reason for value in found} == {reason}
    assert len(found) == 4


def test_an_inserted_frame_has_no_fragment(tmp_path: Path) -> None:
    found = list(
        measure_board(CriterialRating(), make_board(["A fox.", None]), make_context(tmp_path, ScriptedJudge(_judge())))
    )
    assert [value.reason for value in found if value.frame == 2] == ["the frame has no text of its own"] * 2


def test_criteria_of_the_users_are_not_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "criteria.jsonl"
    rows = [{"story_id": "fox", "scene": at, "criteria": ["A fox is seen", "It sleeps"]} for at in (1, 2)]
    path.write_text("\n".join(map(json.dumps, rows)))
    judge = ScriptedJudge(_judge())
    found = list(measure_board(CriterialRating(criteria=path), make_board(), make_context(tmp_path, judge)))
    assert len(judge.asked) == 2
    assert found[1].value == 1.5
    path.write_text('{"story_id": "fox", "criteria": []}')
    with pytest.raises(InputFileError, match="line 1"):
        read_criteria_file(path)


STORY = "Joe went to the junkyard. He dug through old clothes. At the bottom was a shirt. It fit."
REPLY = "[Joe went to the junkyard.] [He dug through old clothes. At the bottom was a shirt.] [It fit.]"


class Writer:
    """A text model that cuts the story as `REPLY` does, and captions by the fragment's first word."""

    def __init__(self, fragments: str = REPLY) -> None:
        self.fragments = fragments
        self.asked: list[str] = []

    def spec(self) -> Mapping[str, Any]:
        return {"name": "writer", "fragments": self.fragments}

    def complete(self, turns: Sequence[Turn], schema: Mapping[str, Any]) -> Completion:
        self.asked.append(turns[-1].text)
        (field,) = schema["properties"]
        said = self.fragments if field == "fragmented_story" else f"A man, caption {len(self.asked)}."
        return Completion("ok", json.dumps({field: said}))


def _planner(monkeypatch: pytest.MonkeyPatch, model: Writer) -> FragmentPlanner:
    monkeypatch.setattr("katha.planners.fragments.make_model", lambda *_, **__: model)
    return FragmentPlanner("openai:any")


def test_the_planner_draws_a_panel_for_each_fragment(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Writer()
    planner = _planner(monkeypatch, model)
    story = StoryRecord(story_id="joe", title="Joe", story_text=STORY)
    plan = planner.plan(story, PlanRequest(panels=3))
    assert [panel.source for panel in plan.panels] == [piece.strip("[] ") for piece in REPLY.split("] [")]
    assert plan.panels[0].prompt == "A man, caption 2."
    assert model.asked[0].endswith(f"Story: {STORY}\nFragmented Story:")
    assert "Story Fragment: It fit.\nCaption for Story Fragment:" in model.asked[3]
    assert plan.planner == "fragments"
    with pytest.raises(PlanError, match="3 fragments where 5 panels") as refused:
        planner.plan(story, PlanRequest())
    assert refused.value.hint == "Give --panels 3."


def test_fragments_that_are_not_the_story_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    story = StoryRecord(story_id="joe", title="Joe", story_text=STORY)
    with pytest.raises(ReplyError, match="not the story"):
        _planner(monkeypatch, Writer(REPLY.replace("[It fit.]", ""))).plan(story, PlanRequest(panels=2))
