"""The prompt variant `paper`: Sec. E.3 and Table 35 word for word, in whatever condition and dimension."""

from __future__ import annotations

import pytest

from katha.eval_bridge.packets.instructions import judge_prompt, prompt_hashes, require_variant, variants
from katha.schema import CONDITIONS, DIMENSIONS, Condition, Dimension, Question

# Typed from the paper, line by line, and not from the files under prompts/.
E3: dict[Condition, str] = {
    "image": (
        "You are given only a sequence of generated storyboard images. You do not have access to the original story, "
        "generation prompts, captions, scene descriptions, transition annotations, moral labels, or metadata. Answer "
        "the question using only what is recoverable from the images. If the answer is not recoverable, return "
        "`Unclear`. Return only the required structured output."
    ),
    "text": (
        "You are given only the source story text. You do not have access to generated images, image prompts, "
        "captions, model outputs, or metadata. Answer the question using only the source story. If the story does not "
        "contain enough information, return `Unclear`. Return only the required structured output."
    ),
    "text+image": (
        "You are given the source story and the generated storyboard images. Identify the answer intended by the "
        "source story, then determine whether the image sequence supports, omits, contradicts, or leaves ambiguous "
        "that answer. If the intended answer is not clear even with both modalities, return `Ambiguous`. Return "
        "only the required structured output."
    ),
}
TABLE_35: dict[Dimension, str] = {
    "action_visibility": "Identify the visible action or event change.",
    "causal": "Identify why the later scene follows from the earlier scene.",
    "emotional": "Identify the emotional state or emotional shift.",
    "consequence": "Identify the outcome produced or revealed by the event.",
    "temporal_order": "Identify the event order or progression across scenes.",
    "moral": ("Identify the benchmark-specified lesson, abstract meaning, or moral target supported by the sequence."),
}


def question(dimension: Dimension) -> Question:
    return Question(question_id="q", question_type=dimension, question="Why?", gold_answer="a", options=["a", "b"])


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_papers_prompts_are_word_for_word(condition: Condition, dimension: Dimension) -> None:
    for form in ("free", "choice"):
        made = judge_prompt(question(dimension), condition, variant="paper", answers_format=form, count=5)
        assert made.instruction == f"{E3[condition]}\n{TABLE_35[dimension]}"


def test_the_variant_is_held_out_and_named_by_its_own_files() -> None:
    assert "paper" in variants()
    assert require_variant("paper", reporting=True) == "paper"
    assert prompt_hashes().keys().isdisjoint(name for name in prompt_hashes("paper") if "paper" in name)
    assert {"judge/paper", "judge/paper_image", "judge/paper_text"} < prompt_hashes("paper").keys()


def test_a_question_without_dimension_gets_no_dimensions_sentence() -> None:
    undivided = Question.model_validate({**question("causal").model_dump(), "instruction": "undivided"})
    made = judge_prompt(undivided, "image", variant="paper", answers_format="free")
    assert TABLE_35["causal"] not in made.instruction
