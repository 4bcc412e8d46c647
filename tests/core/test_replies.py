"""Replies as servers shape them: read for their one whole JSON object, strictly, with no failure that is not typed."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.models.replies import joined_parts, object_of, read_object, without_thoughts

SAID = {"answer": "a fox", "confidence": "high"}
TEXT = json.dumps(SAID)
_THOUGHT = "Picture 2 shows {a bird}, so the first it is."
_READ = {
    "bare": TEXT,
    "blanks": f"\ufeff\n {TEXT}\n\n",
    "think": f"<think>\n{_THOUGHT}\n</think>\n\n{TEXT}",
    "thinking": f"<thinking>{_THOUGHT} {TEXT[:-1]}</thinking>{TEXT}",
    "upper case": f"<THINK>{_THOUGHT}</THINK>{TEXT}",
    "two thoughts": f"<think>a</think> <reasoning>b</reasoning> {TEXT}",
    "one in another": f"<think>a <think>b</think> c</think>{TEXT}",
    "draft in the thought": f'<think>{{"answer": "a crow", "confidence": "low"}}</think>{TEXT}',
    "tail of a thought": f"{_THOUGHT}\n</think>\n{TEXT}",
    "Magistral": f"[THINK]{_THOUGHT}[/THINK]{TEXT}",
    "Kimi": f"◁think▷{_THOUGHT}◁/think▷{TEXT}",
    "Cohere": f"<|START_THINKING|>{_THOUGHT}<|END_THINKING|>{TEXT}",
    "gpt-oss": f"<|channel|>analysis<|message|>{_THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{TEXT}",
    "fence": f"```json\n{TEXT}\n```",
    "bare fence": f"```\n{TEXT}\n```",
    "tildes": f"~~~JSON\n{TEXT}\n~~~",
    "sentences": f"Sure! Here is the answer:\n```json\n{TEXT}\n```\nAnything else?",
    "end marks": f"{TEXT}<|im_end|></s>",
    "boxed": f"<|begin_of_box|>{TEXT}<|end_of_box|>",
    "twice the same": f"{TEXT}\n{TEXT}",
    "list of one": f"[{TEXT}]",
    "quoted": json.dumps(TEXT),
    "another object": f'{{"note": 1}} {TEXT}',
    "long thought": f"<think>{'word ' * 20_000}</think>{TEXT}",
}
_UNREADABLE = {
    "nothing": ("", "empty"),
    "blanks": (" \n", "empty"),
    "prose": ("It is a fox.", "not JSON"),
    "half": (TEXT[:20], "not JSON"),
    "comma": (TEXT[:-1] + ",}", "not JSON"),
    "open thought": (f"<think>{TEXT}", "does not end"),
    "thought alone": ("<think>a fox</think>", "nothing else"),
    "two answers": (TEXT + TEXT.replace("fox", "crow"), "differ"),
    "too long": ("x" * 2_000_000, "at most"),
    "deep": ('{"a":' * 30_000, "at most"),
    "NaN": ('{"answer": NaN}', "not JSON"),
}


@pytest.mark.parametrize("kind", _READ)
def test_what_stands_around_an_object_is_cut_off(kind: str) -> None:
    assert read_object(_READ[kind], fields=SAID) == (None, SAID)


@pytest.mark.parametrize("kind", _UNREADABLE)
def test_nothing_in_an_object_is_mended(kind: str) -> None:
    text, said = _UNREADABLE[kind]
    problem, value = read_object(text, fields=SAID)
    assert value is None
    assert said in str(problem)


def test_an_object_of_any_length_is_read_for_a_planner() -> None:
    long = {"panels": ["word " * 10_000]}
    assert object_of(f"<think>so</think>```json\n{json.dumps(long)}\n```") == long
    with pytest.raises(ValueError, match="not JSON"):
        object_of("no")


@pytest.mark.parametrize(
    ("content", "words", "thoughts"),
    [
        (None, "", ""),
        (TEXT, TEXT, ""),
        ([{"type": "text", "text": TEXT}], TEXT, ""),
        ([{"type": "text", "text": TEXT[:9]}, {"type": "text", "text": TEXT[9:]}], TEXT, ""),
        ([{"type": "output_text", "text": TEXT}], TEXT, ""),
        ([TEXT], TEXT, ""),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "I look."}]}, {"text": TEXT}], TEXT, "I look."),
        ([{"type": "reasoning", "text": TEXT}], "", TEXT),
        ([SimpleNamespace(type="text", text=TEXT)], TEXT, ""),
        ([{"type": "text", "text": {"value": TEXT}}], TEXT, ""),
        (SAID, TEXT, ""),
        ([], "", ""),
    ],
)
def test_parts_of_a_message_are_joined(content: object, words: str, thoughts: str) -> None:
    assert joined_parts(content) == (words, thoughts)


def test_a_message_of_no_known_shape_is_refused() -> None:
    with pytest.raises(TypeError, match="int"):
        joined_parts(7)


_AROUND = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "{",
            "}",
            "[",
            "]",
            '"',
            "```json\n",
            "```",
            TEXT,
            "{a bird}",
            "Sure!",
            "\n",
            "\\",
            ",",
            "{}",
            "[THINK]",
        ]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=150, deadline=None)
@given(_AROUND, _AROUND)
def test_any_reply_is_read_or_named(before: str, after: str) -> None:
    problem, value = read_object(before + TEXT + after, fields=SAID)
    assert (problem is None) == (value is not None)
    if isinstance(value, dict) and problem is None and set(value) == set(SAID):
        assert value == SAID


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet=st.characters(blacklist_characters="<>[]{}◁", blacklist_categories=("Cs",))),
    st.sampled_from(["think", "thought", "reasoning"]),
)
def test_a_closed_thought_changes_no_answer(thought: str, name: str) -> None:
    assert read_object(f"<{name}>{thought}</{name}>{TEXT}", fields=SAID) == (None, SAID)
    assert without_thoughts(f"<{name}>{thought}") is None
