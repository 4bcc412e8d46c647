"""A language model that writes questions and reads them, as a test says what is to be found of each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from katha.models.base import Completion, Heard, Turn
from katha.schema import DIMENSIONS

_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_GRADED = re.compile(r"^\d+\. (.*)\nRight: (.*)\nFirst: (.*)\nSecond: (.*)$", re.MULTILINE)
_CHOSEN = re.compile(r"^\d+\. (.*)\n((?:   \d\) .*\n?)+)", re.MULTILINE)
_OPTION = re.compile(r"^   \d\) (.*)$", re.MULTILINE)
TEXT = "A small child carries a lamp over the hill. Wind puts it out. A moth leads the child home, and it laughs."
"""The story that its questions are about."""


def row(question: str, answer: str, dimension: str = "causal", *, visible: bool = True) -> dict[str, Any]:
    """Return a question as a model writes it."""
    accepted = [f"{answer} then", f"{answer} there", f"{answer} again"]
    return {
        "dimension": dimension, "question": question, "answer": answer, "accepted": accepted, "visible": visible,
        "guess": "nothing",
    }  # fmt: skip


def board(first: int = 1) -> list[dict[str, Any]]:
    """Return twelve questions, two a dimension, that hold."""
    kinds = [kind for kind in DIMENSIONS for _ in (0, 1)]
    return [row(f"Which turn is number {at}?", f"outcome {at}x", kind) for at, kind in enumerate(kinds, first)]


@dataclass
class Author:
    """Writes `written`, one batch a call, and answers what it is asked of them: with the text what it says, without it
    nothing that is right, but for what a test says by a question's words.

    guessed: right (or `part`) without evidence. standing: of the answer in the text. unseen: in no picture. told: the
    question by which another one's answer is told. wrong: by question the wrong options, a batch a call. taken: in how
    many of its readings a reader without evidence takes the right option. failing: a word of stories that it refuses.
    """

    written: list[list[dict[str, Any]]]
    guessed: Mapping[str, str] = field(default_factory=dict)
    standing: Mapping[str, str] = field(default_factory=dict)
    unseen: Sequence[str] = ()
    told: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, list[list[str]]] = field(default_factory=dict)
    taken: Mapping[str, int] = field(default_factory=dict)
    label: Mapping[str, str] = field(default_factory=lambda: {"label": "courage", "second": "none", "because": "b"})
    renamed: list[dict[str, Any]] = field(default_factory=list)
    failing: str = "\0"
    name: str = "author"
    asked: list[str] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)

    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def complete(
        self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: Heard | None = None
    ) -> Completion:
        assert schema is not None
        if self.failing in turns[0].text:
            return Completion("refused", error="out of order")
        return Completion("ok", json.dumps(self.reply(turns[-1].text, schema)))

    def step(self, number: int, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a call to a loopback server of OpenAI's kind."""
        prompt = body["messages"][-1]["content"]
        if self.failing in prompt:
            return {"refusal": "out of order", "text": None}
        return {"text": json.dumps(self.reply(prompt, body["response_format"]["json_schema"]["schema"]))}

    def reply(self, prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to one prompt; the schema says of which kind it is."""
        self.asked.append(prompt)
        fields = schema["properties"]
        if "names" in fields:
            return self.renamed.pop(0)
        if "label" in fields:
            return dict(self.label)
        if "questions" in fields:
            return {"questions": self.written.pop(0)}
        if "grades" in fields:
            return {"grades": self._grades(prompt)}
        if "options" in fields:
            return {"options": [{"wrong": self._next(name)} for _, name in _NUMBERED.findall(prompt)]}
        kind = fields["answers"]["items"]["type"]
        if kind == "integer":
            return {"answers": [self._choice(*found) for found in _CHOSEN.findall(prompt)]}
        names = [name for _, name in _NUMBERED.findall(prompt)]
        return {"answers": [self._read(name) if kind == "object" else self._guess(name) for name in names]}

    def _answer(self, question: str) -> str:
        return f"text of {question}"

    def _guess(self, question: str) -> list[str]:
        told = f"{self.guessed[question]} of {question}" if question in self.guessed else "a third guess"
        return ["a guess", "another", told]

    def _read(self, question: str) -> dict[str, Any]:
        standing = self.standing.get(question, "settled")
        return {"answer": self._answer(question), "standing": standing, "visible": question not in self.unseen}

    def _grades(self, prompt: str) -> list[dict[str, Any]]:
        found = _GRADED.findall(prompt)
        names = [question for question, *_ in found]
        return [
            {
                "first": self._verdict(first),
                "second": self._verdict(second),
                "told_by": names.index(self.told[question]) + 1 if question in self.told else 0,
            }
            for question, _, first, second in found
        ]

    def _verdict(self, answer: str) -> str:
        kinds = {"text": "same", "right": "same", "part": "partly"}
        grades = [kinds.get(guess.partition(" of ")[0], "other") for guess in answer.split(" / ")]
        return min(grades, key=("same", "partly", "other").index)

    def _next(self, question: str) -> list[str]:
        at = self.used.get(question, 0)
        self.used[question] = at + 1
        batches = self.wrong.get(question, [[f"Else {letter} {question[-4:-1]}" for letter in "abc"]])
        return batches[min(at, len(batches) - 1)]

    def _choice(self, question: str, options: str) -> int:
        """Take the right option, the only one of the board's outcomes, as often as told; else a wrong one."""
        shown = _OPTION.findall(options)
        right = next(at for at, text in enumerate(shown, 1) if text.startswith("Outcome"))
        key = f"taken {question}"
        self.used[key] = self.used.get(key, 0) + 1
        return right if self.used[key] <= self.taken.get(question, 0) else right % len(shown) + 1
