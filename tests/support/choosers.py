"""Judges for tests: one chooses by a hash of what it is asked and can be named by its class path, one by a rule."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply


class HashChooser(Judge):
    """Chooses the same option for the same question and condition, whatever the pictures show."""

    always_chooses = True
    price = {"input": 1.0, "output": 1.0}

    def spec(self) -> Mapping[str, Any]:
        return {"name": "hash-chooser"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            options = prompt.options or ("Unclear",)
            number = hashlib.sha256(f"{evidence.condition}{prompt.question}".encode()).digest()[0]
            yield JudgeReply("ok", options[number % len(options)], confidence="medium")


class Chooser(Judge):
    """Chooses by a rule of the evidence and the prompt."""

    price = {"input": 0.0, "output": 0.0}

    def __init__(self, rule: Callable[[Evidence, JudgePrompt], str]) -> None:
        self.rule, self.asked = rule, 0

    def spec(self) -> Mapping[str, Any]:
        return {"name": "chooser"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            self.asked += 1
            assert prompt.options is not None
            yield JudgeReply("ok", self.rule(evidence, prompt))
