"""Instructions to a judge (Sec. E.3, Table 35), and the strict reading of its reply (Sec. E.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import takewhile
from typing import Any, Literal, get_args

from katha.configs import load_prompt
from katha.errors import UsageError
from katha.jsonio import canonical, digest, shipped_table
from katha.models.replies import LONGEST, read_object
from katha.protocols import JudgePrompt, JudgeReply, PlainPrompt
from katha.schema import Condition, Confidence, Question

# Order of a call: pictures first, then the instruction, then the question, so that questions about one board share
# their prefix. The instruction of a condition therefore comes before anything that differs between questions.

AnswersFormat = Literal["choice", "free"]
Ask = Literal["together", "singly"]
"""Whether the questions of a packet are asked in one call by judges that can, or each in a call of its own."""
UNCLEAR = "Unclear"
STEERING_VARIANTS = ("neutral", "plain")
"""What steers: boards are measured in the first, and in the second, too, where the noise of a score is wanted."""
STEERING_VARIANT = STEERING_VARIANTS[0]
REPORTING_VARIANT = "strict"

_TEMPLATES: Mapping[Condition, str] = {
    "text": "judge/text",
    "image": "judge/image",
    "text+image": "judge/text_image",
    "none": "judge/none",
}
PAPER_VARIANT = "paper"
"""The paper's own prompts, word for word (Sec. E.3, Table 35); it asks nothing without evidence."""
_PAPER_TEMPLATES: Mapping[Condition, str] = {
    **_TEMPLATES,
    "text": "judge/paper_text",
    "image": "judge/paper_image",
    "text+image": "judge/paper_text_image",
}
_STATUSES = ["recoverable", "unclear", "omitted", "contradicted"]
_SUPPORT = ["supported", "omitted", "contradicted", "ambiguous"]


def _wording(name: str = "wording") -> Any:
    return shipped_table("katha.prompts", "judge", f"{name}.yaml")


def variants() -> tuple[str, ...]:
    """Return the names of the prompt variants: `neutral` and `plain` steer, the others are held out for reporting."""
    return (*_wording()["variants"], PAPER_VARIANT)


def require_variant(name: str, *, reporting: bool = False) -> str:
    """`name` itself; with `reporting`, only a variant that steering never saw.

    Raises:
        UsageError: no such variant, or the one that steers.
    """
    known = [item for item in variants() if not (reporting and item in STEERING_VARIANTS)]
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
    if options or condition == "none":
        return object_schema({"answer": answer, "confidence": confidence})
    status = {"type": "string", "enum": _STATUSES}
    return object_schema({"answer": answer, "evidence_status": status, "confidence": confidence})


def judge_prompt(
    question: Question, condition: Condition, *, variant: str, answers_format: AnswersFormat, count: int = 0
) -> JudgePrompt:
    """`question` as it is put to a judge; `count` is the number of pictures in the packet. Under `none` the options are
    without `Unclear`.

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
    if options and condition == "none":
        options = tuple(text for text in options if text != UNCLEAR)
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

# What cannot be read is kept for the eye: its beginning says what went wrong.
_KEPT = 2_000
_NAMED = 120
_IN_WORDS = "try --judge-option structured=false, which tells the schema in words, or another model"
_ANOTHER = "the model does not keep to the schema: try another one"


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
    """`raw` as a reply, or typed `unparseable` with the reason and what to do about it.

    What stands around its one JSON object (a closed thought, a fence, sentences) is not part of the answer. plain: the
    schema was told in words.
    """
    problem, value = read_object(raw, fields=prompt.schema.get("properties", {}))
    problem = problem or _misfit(value, prompt)
    if problem is not None:
        return JudgeReply("unparseable", raw=raw[:_KEPT], error=_remedied(problem, plain=plain), usage=usage)
    return _said(value, raw, usage)


def _remedied(problem: str, *, plain: bool) -> str:
    return f"{problem}; {_ANOTHER if plain else _IN_WORDS}"


def _said(value: Mapping[str, Any], raw: str, usage: Mapping[str, Any]) -> JudgeReply:
    return JudgeReply(
        "ok",
        answer=value.get("final_answer", value.get("answer")),
        evidence_status=value.get("evidence_status"),
        image_support=value.get("image_support"),
        confidence=value.get("confidence"),
        raw=raw,
        usage=usage,
    )


def _misfit(value: Any, prompt: JudgePrompt) -> str | None:
    """Return in what a reply breaks its prompt's schema."""
    fields = prompt.schema.get("properties", {})
    if not isinstance(value, dict) or not set(value) & set(fields):
        return f"the reply is not an object with the fields {', '.join(fields)}"
    more, less = [name for name in value if name not in fields], [name for name in fields if name not in value]
    if more or less:
        told = [
            f"{kind} {', '.join(map(repr, names))[:_NAMED]}"
            for kind, names in (("has", more), ("lacks", less))
            if names
        ]
        return (
            f"the reply {' and '.join(told)} beside the schema's {', '.join(fields)}"
            if more
            else f"the reply {told[0]}"
        )
    for name, rule in fields.items():
        said = value[name]
        known = isinstance(said, str) and said in rule.get("enum", (said,))
        if not known or re.search(rule.get("pattern", ""), said) is None:
            return f"field {name!r} breaks the schema"
    return None


# Several questions in one call: the instruction once, then numbered questions, and a list of numbered replies.

_TOGETHER, _TOGETHER_GUESSED = "judge/together", "judge/together_none"
_OF_THE_CALL = ("tokens", "cost", "retries")


def together_text(prompts: Sequence[JudgePrompt], *, plain: bool = False) -> tuple[str, str]:
    """Return the instruction that the prompts share, and the numbered questions with what else each is told; `plain`
    adds the schema in words for servers that cannot enforce it."""
    lines = [prompt.instruction.split("\n") for prompt in prompts]
    shared = [row[0] for row in takewhile(lambda row: len(set(row)) == 1, zip(*lines, strict=False))]
    rows = [
        {"question": prompt.question, "instruction": own[len(shared) :], "options": prompt.options or ()}
        for prompt, own in zip(prompts, lines, strict=True)
    ]
    free = all(prompt.options is None and "final_answer" in prompt.schema.get("properties", {}) for prompt in prompts)
    schema = canonical(together_schema(prompts)).decode("utf-8") if plain else ""
    asked = load_prompt(_way(prompts)).render(questions=rows, unsettled="Ambiguous" if free else UNCLEAR, schema=schema)
    return "\n".join(shared), asked


def _way(prompts: Sequence[JudgePrompt]) -> str:
    """Return the name of the prompt that puts several questions: under `none` nothing is unsettled."""
    guessed = not any(
        {"evidence_status", "final_answer"} & prompt.schema.get("properties", {}).keys()
        or UNCLEAR in (prompt.options or ())
        for prompt in prompts
    )
    return _TOGETHER_GUESSED if guessed else _TOGETHER


def together_schema(prompts: Sequence[JudgePrompt]) -> dict[str, object]:
    """Return the JSON schema of the reply to several questions: a row for each, by its number.

    All rows have one schema, which servers compile faster than one for each question; so it admits the options of every
    question, and whether a row's answer is one of its own is looked at when it is read.
    """
    each = [prompt.schema.get("properties", {}) for prompt in prompts]
    fields = {name: _joint([rules.get(name, {}) for rules in each]) for name in each[0]}
    row = object_schema({"number": {"type": "integer"}, **fields})
    return object_schema({"answers": {"type": "array", "items": row}})


def _joint(rules: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return what one field of any of the questions may be."""
    if all(rule == rules[0] for rule in rules):
        return dict(rules[0])
    if all("enum" in rule for rule in rules):
        return {"type": "string", "enum": list(dict.fromkeys(item for rule in rules for item in rule["enum"]))}
    return {"type": "string"}


def together_sha256(prompts: Sequence[JudgePrompt]) -> list[str]:
    """Return for each of several questions of one call the hash of everything that a judge is told beside the evidence:
    it holds the way of asking and all of them in their order."""
    each, way = [prompt_sha256(prompt) for prompt in prompts], load_prompt(_way(prompts)).sha256
    return [digest({"together": each, "number": number, "way": way}) for number in range(1, len(each) + 1)]


def parse_together(
    raw: str, prompts: Sequence[JudgePrompt], usage: Mapping[str, Any], *, plain: bool
) -> list[JudgeReply]:
    """Return a reply for each question; a row that is missing, double or malformed is `unparseable` for it alone."""
    problem, value = read_object(raw, LONGEST * len(prompts), ("answers",))
    if problem is None and (not isinstance(value, dict) or list(value) != ["answers"]):
        problem = "the reply is not an object with the field answers"
    if problem is None and not isinstance(value["answers"], list):
        problem = "the reply's answers are not a list"
    if problem is not None:
        said = _remedied(problem, plain=plain)
        return failed_together(JudgeReply("unparseable", raw=raw[:_KEPT], error=said, usage=usage), len(prompts))
    rows: dict[int, list[Mapping[str, Any]]] = {}
    for row in value["answers"]:
        number = row.get("number") if isinstance(row, dict) else None
        if isinstance(number, int) and not isinstance(number, bool):
            rows.setdefault(number, []).append({name: said for name, said in row.items() if name != "number"})
    usages = divided(usage, len(prompts))
    return [
        _row_reply(rows.get(number, []), prompt, used)
        for number, (prompt, used) in enumerate(zip(prompts, usages, strict=True), 1)
    ]


def _row_reply(rows: Sequence[Mapping[str, Any]], prompt: JudgePrompt, usage: Mapping[str, Any]) -> JudgeReply:
    if len(rows) != 1:
        said = "the reply has several rows for this question" if rows else "the reply has no row for this question"
        return JudgeReply("unparseable", error=said, usage=usage)
    problem = _misfit(rows[0], prompt)
    if problem is not None:
        words = {name: value for name, value in rows[0].items() if isinstance(value, str)}
        return JudgeReply("unparseable", raw=canonical(words).decode("utf-8")[:_KEPT], error=problem, usage=usage)
    return _said(rows[0], canonical(rows[0]).decode("utf-8"), usage)


def divided(usage: Mapping[str, Any], count: int) -> list[dict[str, object]]:
    """Return the usage of each of `count` questions of one call: all that it took is the first one's, so that sums stay
    right, and the others say that they `shared` it."""
    rest = {name: value for name, value in usage.items() if name not in _OF_THE_CALL}
    return [{**usage, "together": count}, *({**rest, "together": count, "shared": count} for _ in range(count - 1))]


def failed_together(reply: JudgeReply, count: int) -> list[JudgeReply]:
    """Return the reply of each of `count` questions of a call that failed as a whole; the first keeps what was said."""
    first, *rest = divided(reply.usage, count)
    return [replace(reply, usage=first), *(replace(reply, raw=None, usage=used) for used in rest)]


# Schemas for xgrammar, which holds local and served models to them token by token.

_PHRASE = re.compile(r"\^\[\^(?P<left_out>.*)\]\{(?P<least>\d+),(?P<most>\d+)\}\$")
# Grammars of local servers write repetitions out, so that longer ones are divided.
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
