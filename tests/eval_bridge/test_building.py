"""Questions by rule and by a model, contrastive variants by a model: what is written, what is rejected, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from api_server import serving
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import ReplyError, UsageError
from katha.eval_bridge.questions.writing import (
    check_questions,
    check_variants,
    make_variants,
    new_variant,
    write_questions,
    write_variants,
)
from katha.models.registry import make_model
from katha.planners.quality import MEASURES, mean_quality, plan_quality
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply, PlanRequest
from katha.registry import default_registry
from katha.schema import ContrastiveVariant, Plan, Question, StoryRecord
from katha.stories import load_story

ROOT = Path(__file__).parents[2]
TEXT = "The mouse chews the net. The lion escapes."


def lion() -> StoryRecord:
    return load_story(str(ROOT / "examples" / "lion_and_mouse.json"))


def question(text: str, gold: str, accepted: Sequence[str] = (), kind: str = "causal", number: int = 1) -> Question:
    return Question.model_validate({
        "question_id": f"q{number}", "story_id": "s", "question_type": kind, "question": text, "gold_answer": gold,
        "accepted_answers": list(accepted),
    })  # fmt: skip


class Reader(Judge):
    """A judge that answers from the text: the first option that the text holds, else the last, `Unclear`."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def spec(self) -> Mapping[str, Any]:
        return {"name": "reader"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        assert evidence.condition == "text"
        assert evidence.images == ()
        for prompt in prompts:
            options = prompt.options or ()
            told = [option for option in options if option.lower().rstrip(".") in (evidence.text or "").lower()]
            yield (
                JudgeReply("refused", error="out of order")
                if self.fails
                else JudgeReply("ok", (told or options)[0 if told else -1])
            )


def test_the_gold_is_accepted_and_vague_answers_are_not() -> None:
    built = check_questions(
        [question("Why?", "The mouse chews the net", ["something happens", "mouse bites net"])], TEXT
    )
    assert built.kept[0].accepted_answers == ["The mouse chews the net", "mouse bites net"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (question("Why?", "Something happens"), "is vague"),
        (question("Why does the mouse chew the net?", "the mouse chew the net"), "gives its answer away"),
        (question("Why?", "x y", ["the mouse"], "causal").model_copy(update={"question": "Is it the mouse?"}), "away"),
        (question("Which lesson?", "be nice", kind="moral"), "none of the twelve"),
    ],
)
def test_what_does_not_hold_is_rejected_with_the_reason(bad: Question, reason: str) -> None:
    built = check_questions([bad], TEXT)
    assert built.kept == []
    assert reason in built.rejected[0].reason
    assert built.rejected[0].item == "q1"


def test_the_same_words_are_asked_once() -> None:
    built = check_questions(
        [question("Why?", "The mouse chews the net"), question("Why", "The lion escapes", number=2)], TEXT
    )
    assert [item.question_id for item in built.kept] == ["q1"]
    assert "same words" in built.rejected[0].reason


def test_a_judge_has_to_answer_from_the_text_alone() -> None:
    asked = [question("What is done?", "The mouse chews the net"), question("How?", "With a golden saw", number=2)]
    built = check_questions(asked, TEXT, Reader())
    assert [item.question_id for item in built.kept] == ["q1"]
    assert "From the text alone the judge answers" in built.rejected[0].reason
    failed = check_questions(asked, TEXT, Reader(fails=True))
    assert failed.kept == []
    assert "could not be asked: out of order" in failed.rejected[0].reason


def _variant(**fields: Any) -> ContrastiveVariant:
    made = new_variant(lion(), "replace_outcome", 5, "The lion is free and eats the mouse.", 1)
    return ContrastiveVariant.model_validate({**made.model_dump(), **fields})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"changed_scene_id": 9}, "no scene 9"),
        ({"contrastive_scene_text": lion().scenes[4].scene_text, "changed_scene_id": 5}, "the story's own"),
        ({"change_type": "add_dragon"}, "none of Table 31"),
        ({"contrastive_scene_text": "A king and a wolf dance."}, "other characters"),
    ],
)
def test_variants_that_change_nothing_or_too_much_are_rejected(fields: dict[str, Any], reason: str) -> None:
    built = check_variants([_variant(**fields)], lion())
    assert built.kept == []
    assert reason in built.rejected[0].reason


def test_a_variant_that_changes_no_answer_is_rejected_by_a_judge() -> None:
    asked = question("What is done?", "The mouse bites through the rope of the net", kind="action_visibility")
    record = lion().model_copy(update={"recoverability_questions": [asked]})
    kept = _variant(changed_scene_id=5, contrastive_scene_text="The lion is free and fights the mouse.",
                    contrastive_story_text="The mouse bites through the rope of the net.")  # fmt: skip
    built = check_variants([kept], record, Reader())
    assert "every question its old answer" in built.rejected[0].reason
    other = kept.model_copy(update={"contrastive_story_text": "The mouse sleeps."})
    assert check_variants([other], record, Reader()).kept == [other]


def _serve(value: Any, monkeypatch: pytest.MonkeyPatch, call: Any, provider: str = "openai") -> tuple[Any, Any]:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    steps = value if isinstance(value, list) else [value]
    rule = lambda number, body: {"text": json.dumps(steps[min(number, len(steps) - 1)])}  # noqa: E731
    with serving(provider, rule) as server:
        model: Any = make_model(f"{provider}:gpt-4o", base_url=server.url)
        try:
            return call(model), server
        finally:
            vars(model)["_client"].close()


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_model_writes_questions(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "transition": 2,
        "dimension": "causal",
        "question": "Why?",
        "answer": "hunters hid a net",
        "accepted": ["a", "b"],
    }
    record = lion()
    made, server = _serve({"questions": [row, {**row, "transition": 9}]}, monkeypatch,
                          lambda model: write_questions(model, record, record.transitions), provider)  # fmt: skip
    assert [(item.target_transition, item.gold_answer) for item in made] == [((2, 3), "hunters hid a net")]
    (asked,) = server.said(0)
    assert record.transitions[2].causality in asked
    assert "compassion" in asked


def test_a_model_writes_variants_and_is_asked_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"change_type": "replace_outcome", "changed_scene": 5, "scene_text": "The lion is free and eats the mouse.",
           "contrastive_moral": None, "semantic_delta": "No thanks."}  # fmt: skip
    record = lion()
    made, server = _serve(
        [{"variants": "none"}, {"variants": [row]}], monkeypatch, lambda model: write_variants(model, record)
    )
    assert made[0].contrastive_story_text.endswith("The lion is free and eats the mouse.")
    assert check_variants(made, record).kept == made
    assert "Field variants" in server.said(1)[2]
    with pytest.raises(ReplyError, match="not even after a repair"):
        _serve({"nothing": 1}, monkeypatch, lambda model: write_variants(model, record))


def test_a_variant_that_its_reader_does_not_recognise_is_written_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"change_type": "replace_outcome", "changed_scene": scene, "scene_text": text, "contrastive_moral": None,
         "semantic_delta": "x"}
        for scene, text in ((5, "The lion is free and eats the mouse."), (4, "The mouse bites at the lion."),
                            (5, "The lion and the mouse sleep."))
    ]  # fmt: skip
    sound = {"change": "replace_outcome", "strangers": [], "broken": False}
    replies = [{"variants": rows[:2]}, sound, {**sound, "broken": True}, {"variants": rows[2:]}]
    kept, server = _serve([*replies, sound], monkeypatch, lambda model: make_variants(model, lion()))
    assert [item.contrastive_scene_text for item in kept.kept] == [rows[0]["scene_text"], rows[2]["scene_text"]]
    assert [item.variant_id for item in kept.kept] == ["lion_and_mouse_v1", "lion_and_mouse_v2"]
    assert "a sentence that is broken" in server.said(3)[0]
    assert rows[1]["scene_text"] in server.said(3)[0]
    for odd, reason in (
        ({"change": "none"}, "finds the change to be 'none'"),
        ({"strangers": ["a wolf"]}, "finds what the story has not: a wolf"),
    ):
        dropped, _ = _serve(
            [{"variants": rows[:1]}, {**sound, **odd}, {"variants": rows[2:]}, {**sound, **odd}],
            monkeypatch,
            lambda model: make_variants(model, lion(), most=1),
        )
        assert dropped.kept == []
        assert reason in dropped.rejected[0].reason


def test_variants_by_rule_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(lion().model_dump_json() + "\n")
    words = ["bench", "variants", str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "v.jsonl"), "--by", "rule"]
    with pytest.raises(UsageError, match="not made by rule any more"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert not (tmp_path / "v.jsonl").exists()


def test_the_command_writes_a_file_that_loads_again_and_lists_what_it_rejected(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "questions.jsonl"
    source.write_text(lion().model_dump_json() + "\n")
    done = CliRunner().invoke(
        app, ["bench", "questions", str(source), "--out", str(out), "--json"], catch_exceptions=False
    )
    found = json.loads(done.stdout)
    assert found["kept"] > 0
    assert isinstance(found["rejected"], list)
    again = load_story(str(tmp_path / "questions.jsonl"))
    assert again.recoverability_questions
    assert all(item.gold_answer in item.accepted_answers for item in again.recoverability_questions)


def _plans(name: str, record: StoryRecord) -> Plan:
    made: Plan = default_registry("planners").create(name).plan(record, PlanRequest())
    return made


def test_quality_tells_the_planners_apart() -> None:
    rows = {
        name: plan_quality(_plans(name, lion()), lion()) for name in ("direct", "caption", "rule", "scene", "oracle")
    }
    assert rows["oracle"]["agreement"] == rows["oracle"]["gold_visibility"] == 100.0
    assert rows["direct"]["fields"] == rows["caption"]["fields"] == 0.0
    assert 0 < (rows["rule"]["agreement"] or 0) < 100
    assert (rows["direct"]["naming"] or 0) < (rows["rule"]["naming"] or 0) == 100.0
    assert all(set(row) == set(MEASURES) for row in rows.values())


def test_quality_falls_with_what_is_taken_away() -> None:
    made = _plans("oracle", lion())
    whole = plan_quality(made, lion())
    empty = made.model_copy(
        update={"panels": [panel.model_copy(update={"prompt": "He sleeps."}) for panel in made.panels]}
    )
    found = plan_quality(empty, lion())
    for name in ("visibility", "gold_visibility", "constancy", "naming"):
        assert (found[name] or 0.0) < (whole[name] or 0.0)
    bare = made.model_copy(update={"transitions": []})
    assert plan_quality(bare, lion())["fields"] == 0.0
    text = StoryRecord(story_id="s", story_text=lion().story_text)
    assert plan_quality(_plans("rule", text), text)["agreement"] is None
    assert mean_quality([found, whole])["agreement"] == 100.0


def test_the_command_measures_planners_side_by_side(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(
        lion().model_dump_json() + "\n" + StoryRecord(story_id="t", story_text=TEXT).model_dump_json() + "\n"
    )
    words = ["bench", "plans", str(source), "--planner", "scene", "--planner", "rule"]
    found = json.loads(CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False).stdout)["planners"]
    assert (found["scene"]["stories"], list(found["scene"]["failed"])) == (1, ["t"])
    assert found["rule"]["stories"] == 2
    page = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert "gold_visibility" in page
    assert "plain text" in page
