"""How a metric is run: values that say what they are of, failures that are typed nulls, features computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from metric_boards import HandEncoder, make_board, make_context, plain_picture

from katha.errors import JudgeError
from katha.eval_bridge.metrics import MetricBoard, MetricContext, Unmeasured, measure_board, share_of, text_of
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply, PlainPrompt
from katha.schema.metrics import MetricCard, MetricPart, MetricValue
from katha.testing import ScriptedJudge, scripted_words

PARTS = (MetricPart(name="yes", about="P(Yes)"), MetricPart(name="words", about="letters", high=None))


class YesMetric:
    """Asks one question a frame, and counts the letters of the reply."""

    card: ClassVar[MetricCard] = MetricCard(
        name="yes", title="Yes", paper="none", formula="P(Yes)", level="frame", parts=PARTS, needs=("probabilities",)
    )

    def spec(self) -> Mapping[str, Any]:
        return {"name": "yes"}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        prompt = PlainPrompt((0, "Is it a fox?"), words=("Yes", "yes"))
        for number, image in enumerate(board.images, 1):
            answer = context.ask("yes", board.story_id, board.method, [image], {str(number): prompt})[str(number)]
            yield board.value("yes", share_of(answer, ("Yes", "yes")), frame=number)
            yield board.value("words", len(text_of(answer)), frame=number)


class Breaking(YesMetric):
    def __init__(self, error: Exception | float) -> None:
        self._error = error

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        if isinstance(self._error, Exception):
            raise self._error
        yield board.value("yes", self._error)
        yield board.value("words", 3.0)


def test_a_question_is_put_as_it_stands_and_its_probability_read(tmp_path: Path) -> None:
    judge = ScriptedJudge(lambda evidence, prompt: scripted_words(Yes=0.5, yes=0.25, No=0.25))
    found = list(measure_board(YesMetric(), make_board(), make_context(tmp_path, judge)))
    assert [(value.metric, value.part, value.frame, value.value) for value in found] == [
        *(("yes", "yes", 1, 0.75), ("yes", "words", 1, 3.0), ("yes", "yes", 2, 0.75), ("yes", "words", 2, 3.0)),
    ]
    assert [prompt.text for _, prompt in judge.asked] == ["Is it a fox?"] * 2
    assert [len(evidence.images) for evidence, _ in judge.asked] == [1, 1]


class OwnQuestionsOnly(Judge):
    def spec(self) -> Mapping[str, Any]:
        return {"name": "own"}

    def ask(self, evidence: Evidence, prompts: list[JudgePrompt]) -> Iterable[JudgeReply]:
        raise AssertionError("it was asked")


@pytest.mark.parametrize(
    ("judge", "reason"),
    [
        (None, "there is no judge: give --judge"),
        (OwnQuestionsOnly(), "not_asked: the judge answers katha's own questions only, no prompts of other measures"),
        (ScriptedJudge(lambda evidence, prompt: "Yes"), "the judge gives no probabilities of its first token"),
        (ScriptedJudge(lambda evidence, prompt: JudgeReply("refused", error="no")), "refused: no"),
    ],
)
def test_what_a_judge_cannot_give_is_a_typed_null(tmp_path: Path, judge: Any, reason: str) -> None:
    found = list(measure_board(YesMetric(), make_board(), make_context(tmp_path, judge)))
    assert [(value.part, value.value, value.reason, value.n) for value in found] == [
        ("yes", None, reason, 0),
        ("words", None, reason, 0),
    ]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unmeasured("no references"), "no references"),
        (ValueError("half"), "ValueError: half"),
        (1.5, "the metric gave 1.5, which is outside of its range"),
        (float("nan"), "the metric gave nan, which is outside of its range"),
    ],
)
def test_a_failure_of_a_metric_is_counted_and_never_nought(
    tmp_path: Path, error: Exception | float, reason: str
) -> None:
    found = list(measure_board(Breaking(error), make_board(), make_context(tmp_path)))
    assert next((value.part, value.value, value.reason) for value in found) == ("yes", None, reason)


def test_a_judge_that_cannot_be_asked_ends_the_command(tmp_path: Path) -> None:
    with pytest.raises(JudgeError):
        list(measure_board(Breaking(JudgeError("wrong key")), make_board(), make_context(tmp_path)))


def test_a_value_has_a_number_or_a_reason() -> None:
    with pytest.raises(ValueError, match="either a number or a reason"):
        MetricValue(metric="m", part="p", method="b")


def test_features_are_computed_once_for_all_metrics_and_boards(tmp_path: Path) -> None:
    pictures = [plain_picture(at) for at in range(3)]
    encoder = HandEncoder({data: (at, 1.0) for at, data in enumerate(pictures)})
    first, second = make_context(tmp_path).features, make_context(tmp_path).features
    assert np.array_equal(first.images(encoder, pictures[:2]), [[0.0, 1.0], [1.0, 1.0]])
    assert np.array_equal(first.images(encoder, [pictures[2], pictures[0], pictures[2]])[:, 0], [2.0, 0.0, 2.0])
    assert np.array_equal(second.images(encoder, pictures)[:, 0], [0.0, 1.0, 2.0])
    assert (encoder.encoded, first.computed, first.reused, second.computed) == (3, 3, 2, 0)
