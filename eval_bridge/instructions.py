"""What a judge is told: the condition's instruction (Sec. E.3), the dimension's (Table 35), and the reply's form (E.5).

Order of a call: pictures first, then the instruction, then the question, so that questions about one board share their
prefix. The instruction of a condition therefore comes before anything that differs between questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from katha.errors import UsageError
from katha.jsonio import digest
from katha.prompting import load_prompt
from katha.protocols import JudgePrompt
from katha.schema import Condition, Question

__all__ = [
    "REPORTING_VARIANT",
    "STEERING_VARIANT",
    "UNCLEAR",
    "AnswersFormat",
    "judge_prompt",
    "prompt_hashes",
    "prompt_sha256",
    "reply_schema",
    "require_variant",
    "variants",
]

AnswersFormat = Literal["choice", "free"]
UNCLEAR = "Unclear"
STEERING_VARIANT = "neutral"
REPORTING_VARIANT = "strict"

_TEMPLATES: Mapping[Condition, str] = {
    "text": "judge/text",
    "image": "judge/image",
    "text+image": "judge/text_image",
}
_LEVELS = ["low", "medium", "high"]
_STATUSES = ["recoverable", "unclear", "omitted", "contradicted"]
_SUPPORT = ["supported", "omitted", "contradicted", "ambiguous"]


@cache
def _wording() -> Mapping[str, Any]:
    text = files("katha.prompts").joinpath("judge", "wording.yaml").read_text(encoding="utf-8")
    wording: Mapping[str, Any] = yaml.safe_load(text)
    return wording


def variants() -> tuple[str, ...]:
    """The names of the prompt variants: `neutral` steers, the others are held out for reporting."""
    return tuple(_wording()["variants"])


def _dimension_words(wording: Mapping[str, Any], question: Question) -> str:
    """The dimension's sentence, or the one of a question that is filed under no dimension of its own."""
    own = (question.model_extra or {}).get("instruction")
    words: str = wording["undivided"] if own == "undivided" else wording["dimensions"][question.question_type]
    return words


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


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


def reply_schema(condition: Condition, options: tuple[str, ...] | None) -> dict[str, Any]:
    """The JSON schema of a reply (Sec. E.5): label question, short answer, or text+image check.

    A free answer is bounded by a pattern that admits no control characters, not by `maxLength`.
    """
    phrase: dict[str, Any] = {"type": "string", "pattern": r"^[^\u0000-\u001f]{1,200}$"}
    answer = {"type": "string", "enum": list(options)} if options else phrase
    confidence = {"type": "string", "enum": _LEVELS}
    if condition == "text+image":
        support = {"type": "string", "enum": _SUPPORT}
        return _object(
            {"source_answer": phrase, "image_support": support, "final_answer": answer, "confidence": confidence}
        )
    if options:
        return _object({"answer": answer, "confidence": confidence})
    status = {"type": "string", "enum": _STATUSES}
    return _object({"answer": answer, "evidence_status": status, "confidence": confidence})


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
    instruction = load_prompt(_TEMPLATES[condition]).render(
        count=count,
        stance=wording["variants"][variant],
        dimension=_dimension_words(wording, question),
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


def prompt_hashes() -> dict[str, str]:
    """Each judge prompt file and the sha256 of its text, for `run.json`."""
    hashes = {name: load_prompt(name).sha256 for name in _TEMPLATES.values()}
    return hashes | {"judge/wording": digest(_wording())}
