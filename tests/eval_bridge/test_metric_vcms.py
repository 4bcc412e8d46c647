"""VCMS as a metric: four questions a frame, the variants of the paper, and App. J's corrupted captions."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from metric_boards import make_board, make_context, plain_picture

from katha.errors import InputFileError, UsageError
from katha.eval_bridge.metrics import MetricBoard, measure_board
from katha.eval_bridge.metrics.vcms import QUESTIONS, VcmsMetric, corrupt_captions
from katha.protocols import Evidence, JudgeReply, PlainPrompt
from katha.schema import StoryRecord
from katha.schema.metrics import MetricValue
from katha.testing import ScriptedJudge, scripted_words

WORDS = {"behavior in": "behaviour", "background setting": "setting", "same character": "character", "style": "style"}


def question_of(prompt: PlainPrompt) -> str:
    """Return which of the four questions a prompt is."""
    last = str(prompt.parts[-1])
    return next(name for words, name in WORDS.items() if words in last)


def caption_of(prompt: PlainPrompt) -> str | None:
    """Return the caption in a prompt."""
    found = re.search(r"^Caption: (.*)$", str(prompt.parts[-1]), re.MULTILINE)
    return found[1] if found else None


def values(found: list[MetricValue]) -> dict[tuple[str, int | None], float | None]:
    return {(value.part, value.frame): value.value for value in found}


def test_four_questions_a_frame_and_two_of_the_first(tmp_path: Path) -> None:
    told = {"behaviour": "0.8", "setting": "1", "character": "0.5", "style": "0.3"}
    judge = ScriptedJudge(lambda evidence, prompt: told[question_of(prompt)])
    found = list(measure_board(VcmsMetric(), make_board(), make_context(tmp_path, judge)))
    assert values(found) == {
        **{(name, 1): float(told[name]) for name in ("behaviour", "setting")},
        **{(name, 1): None for name in ("character", "style")},
        **{(name, 2): float(told[name]) for name in QUESTIONS},
        ("overall", None): pytest.approx((0.8 + 1 + 0.5 + 0.3) / 4),
    }
    assert {value.reason for value in found if value.value is None} == {"the first frame has none before it"}
    assert [(question_of(prompt), len(evidence.images)) for evidence, prompt in judge.asked] == [
        *(("behaviour", 1), ("setting", 1)),
        *(("behaviour", 1), ("setting", 1), ("character", 2), ("style", 2)),
    ]
    assert [caption_of(prompt) for _, prompt in judge.asked] == [
        *("A fox sleeps.", "A fox sleeps.", "The fox runs.", "The fox runs.", None, None)
    ]


@pytest.mark.parametrize(
    ("texts", "reply", "reasons"),
    [
        (["A fox."], "0.5", {"the first frame has none before it", "one frame has no consistency"}),
        (
            ["A fox.", "It runs."],
            "good",
            {
                "the first frame has none before it",
                "unparseable: the reply is not one number from 0 to 1",
                "a question has no answer on any frame",
            },
        ),
        (["A fox.", None], "1", {"the first frame has none before it", "the frame has no caption"}),
    ],
)
def test_what_cannot_be_measured_is_a_typed_null(
    tmp_path: Path, texts: list[str | None], reply: str, reasons: set[str]
) -> None:
    board = make_board(texts)
    found = list(measure_board(VcmsMetric(), board, make_context(tmp_path, ScriptedJudge(lambda *_: reply))))
    assert {value.reason for value in found if value.value is None} == reasons
    assert all(value.n == 0 for value in found if value.value is None)
    assert 0.0 not in {value.value for value in found}


def test_three_samples_are_drawn_at_temperature_one_and_averaged(tmp_path: Path) -> None:
    judge = ScriptedJudge(lambda evidence, prompt: ("0.2", "0.6", "no idea")[prompt.sample])
    found = list(measure_board(VcmsMetric(samples=3), make_board(), make_context(tmp_path, judge)))
    assert values(found)["overall", None] == pytest.approx(0.4)
    assert {(prompt.sample, prompt.temperature) for _, prompt in judge.asked} == {(0, 1.0), (1, 1.0), (2, 1.0)}


def test_yes_and_no_are_weighed_by_their_probabilities(tmp_path: Path) -> None:
    judge = ScriptedJudge(lambda evidence, prompt: scripted_words(Yes=0.5, yes=0.25, No=0.125))
    found = list(measure_board(VcmsMetric(binary=True), make_board(), make_context(tmp_path, judge)))
    assert values(found)["overall", None] == pytest.approx(0.625)
    assert all("Just answer Yes or No." in prompt.text for _, prompt in judge.asked)
    unsure = ScriptedJudge(lambda evidence, prompt: JudgeReply("ok", answer="Yes"))
    found = list(measure_board(VcmsMetric(binary=True), make_board(), make_context(tmp_path / "b", unsure)))
    assert "the judge gives no probabilities of its first token" in {value.reason for value in found}


def _examples(folder: Path) -> Path:
    for number in (90, 91):
        (folder / f"{number}.png").write_bytes(plain_picture(number))
    row = {"image": "91.png", "previous": "90.png", "caption": "A cat.", "behaviour": 0.75, "style": 0.5}
    path = folder / "examples.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


def test_examples_are_shown_before_the_question_with_their_own_pictures(tmp_path: Path) -> None:
    judge = ScriptedJudge(lambda evidence, prompt: "0.5")
    metric = VcmsMetric(shots=1, examples=_examples(tmp_path))
    list(measure_board(metric, make_board(), make_context(tmp_path, judge)))
    shown = {question_of(prompt): (len(evidence.images), prompt) for evidence, prompt in judge.asked[2:]}
    count, style = shown["style"]
    assert (count, style.parts[:2], style.examples[0].parts[:2], style.examples[0].answer) == (4, (2, 3), (0, 1), "0.5")
    count, behaviour = shown["behaviour"]
    assert (count, behaviour.parts[0], behaviour.examples[0].answer) == (2, 1, "0.75")
    assert "Caption: A cat." in str(behaviour.examples[0].parts[-1])
    assert shown["setting"][1].examples == (), "an example without this question's score is not shown with it"
    assert metric.spec() != VcmsMetric().spec()


def test_options_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    for options in ({"samples": 0}, {"shots": 3}, {"weight": 0.5}, {"shots": 1}):
        with pytest.raises(UsageError):
            VcmsMetric(**options)  # type: ignore[arg-type]
    with pytest.raises(InputFileError, match="holds 1 examples"):
        VcmsMetric(shots=2, examples=_examples(tmp_path))
    (tmp_path / "broken.jsonl").write_text('{"image": "91.png"}\n')
    with pytest.raises(InputFileError, match="line 1"):
        VcmsMetric(shots=1, examples=tmp_path / "broken.jsonl")


# App. J: captions corrupted on half of the frames must lower Q1 and Q2, and leave Q3 and Q4.


def _seeing(shown: dict[bytes, str]) -> Callable[[Evidence, PlainPrompt], str]:
    """Return a judge that knows what each picture shows, and is a little unsure of itself."""
    from katha.eval_bridge.packets.packets import clean_image

    known = {clean_image(data).png: caption for data, caption in shown.items()}

    def reply(evidence: Evidence, prompt: PlainPrompt) -> str:
        doubt = random.Random(evidence.images[-1][-40:].hex() + question_of(prompt)).uniform(0.0, 0.1)
        caption = caption_of(prompt)
        if caption is None:
            return f"{0.7 - doubt:.3f}"
        return f"{0.95 - doubt:.3f}" if caption == known[evidence.images[-1]] else f"{0.05 + doubt:.3f}"

    return reply


def _recaptioned(board: MetricBoard, captions: list[str]) -> MetricBoard:
    scenes = [
        scene.model_copy(update={"scene_text": text}) for scene, text in zip(board.record.scenes, captions, strict=True)
    ]
    record = StoryRecord.model_validate({**board.record.model_dump(), "scenes": [item.model_dump() for item in scenes]})
    return replace(board, record=record)


def test_corrupted_captions_lower_fidelity_and_leave_consistency(tmp_path: Path) -> None:
    captions = [f"The fox does thing {number}." for number in range(8)]
    pictures = [plain_picture(number) for number in range(8)]
    board = make_board(captions, images=pictures)
    judge = ScriptedJudge(_seeing(dict(zip(pictures, captions, strict=True))))
    corrupted, changed = corrupt_captions(captions)
    assert len(changed) == 4
    means = []
    for texts in (captions, corrupted):
        found = list(measure_board(VcmsMetric(), _recaptioned(board, texts), make_context(tmp_path, judge)))
        rows = {name: [value.value for value in found if value.part == name and value.value] for name in QUESTIONS}
        means.append({name: sum(row) / len(row) for name, row in rows.items()})
    change = {name: means[1][name] / means[0][name] - 1 for name in QUESTIONS}
    assert change["behaviour"] < -0.4
    assert change["setting"] < -0.4
    assert abs(change["character"]) < 0.05
    assert abs(change["style"]) < 0.05
