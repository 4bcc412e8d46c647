"""Grammars that hold a local model to a reply's JSON schema: xgrammar's masks over the model's own tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from katha.jsonio import sha256_hex
from katha.protocols import JudgePrompt

__all__ = ["WRITING", "Grammars", "grammar_schema", "grammar_sha256"]

WRITING: Mapping[str, Any] = {"any_whitespace": False, "strict_mode": True}
"""How grammars are compiled. Free white space lets a model write blanks up to the limit."""

_KEPT = 512
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


def grammar_sha256(schema: Mapping[str, Any]) -> str:
    """The hash of the schema that a reply's grammar is compiled from."""
    return sha256_hex(_grammar_text(schema).encode("utf-8"))


def _grammar_text(schema: Mapping[str, Any]) -> str:
    return json.dumps(grammar_schema(schema), ensure_ascii=False)  # unsorted: fields are written in this order


class Grammars:
    """Compiled grammars of one tokenizer, the latest 512 kept.

    tokenizer: a transformers tokenizer. vocabulary: the width of the model's logits. stops: ids that end a reply.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, stops: Sequence[int]) -> None:
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocabulary, stop_token_ids=list(stops))
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self._compiled: dict[str, Any] = {}

    def processor(self, prompts: Sequence[JudgePrompt]) -> Any:
        """A logits processor for one batch, row by row; it serves one `generate` call."""
        from xgrammar.contrib.hf import LogitsProcessor

        return LogitsProcessor([self._compile(prompt.schema) for prompt in prompts])

    def _compile(self, schema: Mapping[str, Any]) -> Any:
        text = _grammar_text(schema)
        if text not in self._compiled:
            if len(self._compiled) >= _KEPT:
                self._compiled.pop(next(iter(self._compiled)))
            self._compiled[text] = self._compiler.compile_json_schema(text, **WRITING)
        return self._compiled[text]
