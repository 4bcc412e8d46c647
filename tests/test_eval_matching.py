"""Matching rules: the evidence rules, exact-set by the letter, lemma-set on labelled pairs of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from katha.errors import RecordError, UsageError
from katha.eval_bridge import match, match_text, measure_pairs, normalise
from katha.schema import Answer, Question

PAIRS = [json.loads(line) for line in (Path(__file__).parent / "data" / "eval_pairs.jsonl").read_text().splitlines()]


def made(**changes: object) -> Question:
    values: dict[str, object] = {
        "question_id": "q",
        "question_type": "causal",
        "question": "Why is the lion free?",
        "gold_answer": "The mouse bites the net",
        "accepted_answers": ["mouse broke net"],
    }
    return Question.model_validate(values | changes)


def said(text: str | None, condition: str = "image", status: str = "ok", **changes: object) -> Answer:
    values = {"method": "m", "judge": "j", "story_id": "s", "question_id": "q", "condition": condition}
    return Answer.model_validate(values | {"status": status, "answer": text} | changes)


def pair(item: dict[str, object]) -> bool:
    accepted = item["accepted"]
    assert isinstance(accepted, list)
    asked = made(question=item["question"], gold_answer=accepted[0], accepted_answers=accepted)
    return match_text(str(item["answer"]), asked, "lemma-set").right


def test_normalisation_is_the_papers() -> None:
    assert normalise("  The King\u2019s\twedding. ") == "the kings wedding"
    assert normalise("Self_Control") == normalise("self-control") == "selfcontrol"


def test_exact_set_takes_membership_and_nothing_else() -> None:
    assert match(said("the mouse bites the NET!"), made(), "exact-set").right
    assert match(said("Mouse broke net"), made(), "exact-set").right
    assert not match(said("The mouse bit the net"), made(), "exact-set").right
    assert match(said("The mouse bit the net"), made(), "lemma-set").right


@pytest.mark.parametrize("status", ["unclear", "omitted", "contradicted"])
def test_an_unsupported_answer_is_wrong_under_text_and_image(status: str) -> None:
    for condition in ("text", "image"):
        assert not match(said("mouse broke net", condition, evidence_status=status), made(), "exact-set").right
    assert match(said("mouse broke net", "text+image", evidence_status=status), made(), "exact-set").right


@pytest.mark.parametrize(
    ("support", "right"), [("supported", True), ("omitted", True), ("contradicted", False), ("ambiguous", False)]
)
def test_text_and_image_counts_omission(support: str, right: bool) -> None:
    row = said("mouse broke net", "text+image", image_support=support)
    assert match(row, made(), "exact-set").right is right


def test_uncertainty_is_wrong_unless_the_set_holds_it() -> None:
    for word in ("Unclear", "ambiguous."):
        assert not match(said(word), made(), "lemma-set").right
    assert match(said("Unclear"), made(accepted_answers=["unclear"]), "lemma-set").right


def test_a_choice_and_a_moral_label_are_literal() -> None:
    options = ["The mouse bites the net", "The mouse bites", "It rains", "The net is old", "Unclear"]
    assert not match(said("The mouse bites"), made(options=options, accepted_answers=["bites"]), "lemma-set").right
    moral = made(question_type="moral", gold_answer="self_control", accepted_answers=[])
    assert match(said("Self_control"), moral, "lemma-set").right
    assert not match(said("the story teaches self control"), moral, "lemma-set").right


def test_a_failure_has_no_verdict_and_rules_have_names() -> None:
    with pytest.raises(UsageError, match="no verdict"):
        match(said(None, status="refused"), made(), "exact-set")
    with pytest.raises(UsageError, match="Known: exact-set, exact-string, keyword, lemma-set"):
        match(said("x"), made(), "nearly")


@pytest.mark.parametrize("item", [item for item in PAIRS if item["label"] == "wrong"], ids=lambda item: item["answer"])
def test_lemma_set_accepts_no_wrong_answer(item: dict[str, object]) -> None:
    assert not pair(item)


def test_lemma_set_accepts_most_right_answers() -> None:
    right = [item for item in PAIRS if item["label"] == "right"]
    assert sum(map(pair, right)) / len(right) >= 0.75


def test_a_rule_is_measured_by_kind() -> None:
    pairs = [
        {
            **item,
            "gold_answer": item["accepted"][0],
            "accepted_answers": item["accepted"],
            "question_id": item["question"],
        }
        for item in PAIRS
    ]
    report = measure_pairs(pairs, "lemma-set")
    assert (report["n"], report["false_accept"], report["worst_question"]) == (len(PAIRS), 0.0, 0.0)
    letter = measure_pairs(pairs, "exact-set")
    assert (letter["false_accept"], letter["false_reject"], letter["precision"]) == (0.0, 1.0, None)
    assert letter["by_kind"]["judge"]["false_reject"] == letter["by_kind"]["judge"]["n"]
    with pytest.raises(RecordError, match="Pair 1 has no field 'label'"):
        measure_pairs([{"answer": "x"}], "exact-set")
