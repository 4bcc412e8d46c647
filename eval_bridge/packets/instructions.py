"""Instructions to a judge (Sec. E.3, Table 35), and the strict reading of its reply (Sec. E.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, get_args

from katha.configs import load_prompt
from katha.errors import UsageError
from katha.jsonio import canonical, digest, loads, shipped_table
from katha.protocols import JudgePrompt, JudgeReply, PlainPrompt
from katha.schema import Condition, Confidence, Question

# Order of a call: pictures first, then the instruction, then the question, so that questions about one board share
# their prefix. The instruction of a condition therefore comes before anything that differs between questions.

AnswersFormat = Literal["choice", "free"]
UNCLEAR = "Unclear"
STEERING_VARIANT = "neutral"
REPORTING_VARIANT = "strict"

_TEMPLATES: Mapping[Condition, str] = {"text": "judge/text", "image": "judge/image", "text+image": "judge/text_image"}
PAPER_VARIANT = "paper"
"""The paper's own prompts, word for word (Sec. E.3, Table 35)."""
_PAPER_TEMPLATES: Mapping[Condition, str] = {
    "text": "judge/paper_text",
    "image": "judge/paper_image",
    "text+image": "judge/paper_text_image",
}
_STATUSES = ["recoverable", "unclear", "omitted", "contradicted"]
_SUPPORT = ["supported", "omitted", "contradicted", "ambiguous"]


def _wording(name: str = "wording") -> Any:
    return shipped_table("katha.prompts", "judge", f"{name}.yaml")


def variants() -> tuple[str, ...]:
    """The names of the prompt variants: `neutral` steers, the others are held out for reporting."""
    return (*_wording()["variants"], PAPER_VARIANT)


def require_variant(name: str, *, reporting: bool = False) -> str:
    """`name` itself; with `reporting`, only a variant that steering never saw.

    Raises:
        UsageError: no such variant, or the one that steers.
    """
    known = [item for item in variants() if not (reporting and item == STEERING_VARIANT)]
    if name in known:
        return name
    reason = "is what steers, so it cannot report" if name in variants() else "is not known"
    raise UsageError(f"The prompt variant {name!r} {reason}.", hint=f"Known: {', '.join(known)}.")


def object_schema(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the JSON schema of an object that has exactly these fields."""
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


def reply_schema(condition: Condition, options: tuple[str, ...] | None) -> dict[str, object]:
    """The JSON schema of a reply (Sec. E.5): label question, short answer, or text+image check.

    A free answer is bounded by a pattern that admits no control characters, not by `maxLength`.
    """
    phrase: dict[str, object] = {"type": "string", "pattern": r"^[^\u0000-\u001f]{1,200}$"}
    answer = {"type": "string", "enum": list(options)} if options else phrase
    confidence = {"type": "string", "enum": list(get_args(Confidence))}
    if condition == "text+image":
        support = {"type": "string", "enum": _SUPPORT}
        return object_schema(
            {"source_answer": phrase, "image_support": support, "final_answer": answer, "confidence": confidence}
        )
    if options:
        return object_schema({"answer": answer, "confidence": confidence})
    status = {"type": "string", "enum": _STATUSES}
    return object_schema({"answer": answer, "evidence_status": status, "confidence": confidence})


def judge_prompt(
    question: Question, condition: Condition, *, variant: str, answers_format: AnswersFormat, count: int = 0
) -> JudgePrompt:
    """`question` as it is put to a judge; `count` is the number of pictures in the packet.

    Raises:
        UsageError: unknown variant, or a choice without options.
    """
    wording = _wording()
    require_variant(variant)
    choice = answers_format == "choice"
    if choice and not question.options:
        raise UsageError(
            f"Question {question.question_id!r} has no options to choose from.",
            hint="Prepare the questions first, or ask with --answers free.",
        )
    options = tuple(question.options or ()) if choice else None
    # The dimension's sentence, or the one of a question that is filed under no dimension of its own.
    undivided = (question.model_extra or {}).get("instruction") == "undivided"
    letter = variant == PAPER_VARIANT
    dimensions = (_wording(PAPER_VARIANT) if letter else wording)["dimensions"]
    instruction = load_prompt((_PAPER_TEMPLATES if letter else _TEMPLATES)[condition]).render(
        count=count,
        stance=wording["variants"].get(variant, ""),
        dimension=wording["undivided"] if undivided else dimensions[question.question_type],
        choice=choice,
    )
    return JudgePrompt(
        question=question.question,
        dimension=question.question_type,
        instruction=instruction,
        options=options,
        schema=reply_schema(condition, options),
    )


def prompt_sha256(prompt: JudgePrompt) -> str:
    """The hash of everything a judge is told beside the evidence."""
    options = list(prompt.options) if prompt.options is not None else None
    return digest([prompt.instruction, prompt.question, prompt.dimension, options, dict(prompt.schema)])


def plain_sha256(prompt: PlainPrompt) -> str:
    """The hash of everything that a plain prompt tells a judge, and of how its reply is drawn."""
    return digest({"plain": 1, **asdict(prompt)})


def prompt_hashes(variant: str = REPORTING_VARIANT) -> dict[str, str]:
    """Each judge prompt file that a variant uses and the sha256 of its text, for `eval.json`."""
    letter = variant == PAPER_VARIANT
    hashes = {name: load_prompt(name).sha256 for name in (_PAPER_TEMPLATES if letter else _TEMPLATES).values()}
    own = {"judge/paper": digest(_wording(PAPER_VARIANT))} if letter else {}
    return hashes | {"judge/wording": digest(_wording())} | own


# The words around a question, and the strict reading of a reply (Sec. E.5).

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


def _read(text: str, prompt: JudgePrompt) -> tuple[str | None, Mapping[str, Any]]:
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
    for name, rule in fields.items():
        said = value[name]
        known = isinstance(said, str) and said in rule.get("enum", (said,))
        if not known or re.search(rule.get("pattern", ""), said) is None:
            return f"field {name!r} breaks the schema", {}
    return None, value


# Schemas for xgrammar, which holds local and served models to them token by token.

_PHRASE = re.compile(r"\^\[\^(?P<left_out>.*)\]\{(?P<least>\d+),(?P<most>\d+)\}\$")
_LONGEST_REPEAT = 100


def grammar_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with patterns that are safe inside a JSON string, for patterns of the form `^[^...]{least,most}$`.

    xgrammar matches a pattern against the raw bytes between the quotation marks, so a negated class must also leave out
    the quotation mark and the backslash: otherwise a model can close the string early and the reply is not JSON. Its
    compiler fails on repeats of more than 128 (mlc-ai/xgrammar#863), so longer ones are written as several.
    """
    fields = {name: _safe(rule) for name, rule in schema.get("properties", {}).items()}
    return {**schema, "properties": fields}


def _safe(rule: Mapping[str, Any]) -> dict[str, Any]:
    phrase = _PHRASE.fullmatch(str(rule.get("pattern", "")))
    if phrase is None:
        return dict(rule)
    sign = '[^"\\\\' + phrase["left_out"] + "]"
    least, most = int(phrase["least"]), int(phrase["most"])
    repeats = [f"{sign}{{{min(least, _LONGEST_REPEAT)},{min(most, _LONGEST_REPEAT)}}}"]
    for done in range(_LONGEST_REPEAT, most, _LONGEST_REPEAT):
        low, high = (max(0, min(limit - done, _LONGEST_REPEAT)) for limit in (least, most))
        repeats.append(f"{sign}{{{low},{high}}}")
    return {**rule, "pattern": f"^{''.join(repeats)}$"}
