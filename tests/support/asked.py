"""A model behind a loopback server that answers each question by itself, however many are put in one call."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

_SINGLY = re.compile(r"^Question: (.*)$", re.MULTILINE)
_NUMBERED = re.compile(r"^Question (\d+): (.*)$", re.MULTILINE)
_OPTION = re.compile(r"^- (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Asked:
    """One call as it was put: its pictures, and each question with its options."""

    pictures: int
    questions: tuple[tuple[str, tuple[str, ...]], ...]
    together: bool


def asked_in(body: dict[str, Any]) -> Asked:
    """Return what a call's body asks."""
    content = body["messages"][0]["content"]
    pictures = sum(part["type"] != "text" for part in content)
    last = content[-1]["text"]
    found = list(_NUMBERED.finditer(last))
    if not found:
        (question,) = _SINGLY.findall(last)
        return Asked(pictures, ((question, tuple(_OPTION.findall(last))),), together=False)
    assert [int(match[1]) for match in found] == list(range(1, len(found) + 1))
    ends = [*(match.start() for match in found[1:]), len(last)]
    rows = tuple(
        (match[2], tuple(_OPTION.findall(last[match.end() : end]))) for match, end in zip(found, ends, strict=True)
    )
    return Asked(pictures, rows, together=True)


def chosen(question: str, options: Sequence[str]) -> str:
    """Return the option that this model gives, whatever else is asked."""
    return options[int(sha256(question.encode()).hexdigest(), 16) % len(options)]


def reply_to(body: dict[str, Any]) -> str:
    """Return the text of the reply to a call."""
    asked = asked_in(body)
    rows = []
    for number, (question, options) in enumerate(asked.questions, 1):
        answer = {"answer": chosen(question, options)}
        if "image_support" in json.dumps(body.get("response_format", body)):
            answer = {"source_answer": "it", "image_support": "supported", "final_answer": answer["answer"]}
        rows.append({**({"number": number} if asked.together else {}), **answer, "confidence": "high"})
    return json.dumps({"answers": rows} if asked.together else rows[0])
