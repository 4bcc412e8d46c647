"""Packets, answers and what a judge replies (Tables 34 and 36, Sec. E.5)."""

from __future__ import annotations

from typing import Any, Literal

from katha.schema.story import Record, Role

Condition = Literal["text", "image", "text+image"]
CONDITIONS: tuple[Condition, ...] = ("text", "image", "text+image")
AnswerStatus = Literal["ok", "unparseable", "refused", "truncated", "transport_failed", "budget_stopped", "not_asked"]
Confidence = Literal["low", "medium", "high"]


class Packet(Record):
    """The evidence a judge may see: ordered image hashes (of re-encoded pixels) and, unless image-only, the story."""

    story_id: str
    condition: Condition
    images: tuple[str, ...] = ()
    text: str | None = None


class Answer(Record):
    """One line of `answers.jsonl`. Only `status == "ok"` is an answer; every other status is a typed failure.

    `method` names the board that was judged (None: a text-only answer that holds for every method). Steering answers
    are kept under their candidate's name (`candidate:42`, and `candidate:42/transition:2-3` for an adjacent pair), so
    their keys never collide with reporting answers.
    """

    method: str | None
    judge: str
    story_id: str
    question_id: str
    condition: Condition
    status: AnswerStatus
    answer: str | None = None
    evidence_status: Literal["recoverable", "unclear", "omitted", "contradicted"] | None = None
    image_support: Literal["supported", "omitted", "contradicted", "ambiguous"] | None = None
    confidence: Confidence | None = None
    role: Role | None = None
    prompt_sha256: str = ""
    packet_sha256: str = ""
    raw: str | None = None
    error: str | None = None
    usage: dict[str, Any] = {}
