"""The words around a question, and the strict reading of a reply (Sec. E.5)."""

from __future__ import annotations

import re
from typing import Any

from katha.jsonio import canonical, loads
from katha.protocols import JudgePrompt, JudgeReply

__all__ = ["LONGEST_REPLY", "parse_reply", "question_text"]

LONGEST_REPLY = 20_000
_KEPT = 2_000
_FENCE = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)


def question_text(prompt: JudgePrompt, *, plain: bool) -> str:
    """The question with its options; `plain` adds the schema in words for servers that cannot enforce it."""
    lines = [f"Question: {prompt.question}"]
    if prompt.options:
        lines += ["Options:", *(f"- {option}" for option in prompt.options)]
    if plain:
        schema = canonical(dict(prompt.schema)).decode("utf-8")
        lines.append(f"Return one JSON object and nothing else. It must satisfy this JSON schema: {schema}")
    return "\n".join(lines)


def parse_reply(raw: str, prompt: JudgePrompt, usage: dict[str, Any], *, plain: bool) -> JudgeReply:
    """`raw` as a reply, or typed `unparseable` with the reason; only `plain` replies may sit in a code fence."""
    text = raw.strip()
    fenced = _FENCE.fullmatch(text) if plain and len(text) <= LONGEST_REPLY else None
    problem, value = _read(fenced[1] if fenced else text, prompt)
    if problem is not None:
        return JudgeReply("unparseable", raw=raw[:_KEPT], error=problem, usage=usage)
    return JudgeReply(
        "ok",
        answer=value.get("final_answer", value.get("answer")),
        evidence_status=value.get("evidence_status"),
        image_support=value.get("image_support"),
        confidence=value.get("confidence"),
        raw=raw,
        usage=usage,
    )


def _read(text: str, prompt: JudgePrompt) -> tuple[str | None, dict[str, Any]]:
    if not text:
        return "the reply is empty", {}
    if len(text) > LONGEST_REPLY:
        return f"the reply has {len(text):,} characters; at most {LONGEST_REPLY:,} are read", {}
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return "the reply is not JSON", {}
    fields = prompt.schema.get("properties", {})
    if not isinstance(value, dict) or set(value) != set(fields):
        return f"the reply is not an object with the fields {', '.join(fields)}", {}
    wrong = [name for name, rule in fields.items() if not _fits(value[name], rule)]
    return (f"field {wrong[0]!r} breaks the schema" if wrong else None), value


def _fits(value: object, rule: dict[str, Any]) -> bool:
    return (
        isinstance(value, str)
        and value in rule.get("enum", (value,))
        and re.search(rule.get("pattern", ""), value) is not None
    )
