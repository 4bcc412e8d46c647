"""What a language model is to katha: instructions and a JSON schema in, one typed completion out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from katha.errors import BudgetError
from katha.schema import AnswerStatus


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    text: str
    images: tuple[bytes, ...] = ()
    """PNGs that come before the text."""


@dataclass(frozen=True)
class Completion:
    """What a model wrote: a whole reply only where `status == "ok"`, else `error` says what happened. usage: model,
    token counts, schema mode, and cost where a price is known."""

    status: AnswerStatus
    text: str = ""
    error: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)


Heard = Callable[[int, int], None]
"""Hears, while a reply is written, how many tokens there are and how many there can be at most."""


@runtime_checkable
class TextModel(Protocol):
    """A language model that is held to a schema."""

    def spec(self) -> Mapping[str, Any]:
        """Return model, revision, decoding and everything else that can change a reply; never a key."""

    def complete(
        self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: Heard | None = None
    ) -> Completion:
        """Return the reply to `turns`, one JSON object of `schema` where the model can be held to it; None: free text.

        heard: told how far a long reply is, where the model can tell.

        Raises:
            UsageError: the model or the key is wrong. ModelError: it cannot be used (memory, credit).
        """


class Purse(Protocol):
    """What calls are paid from: asked before each, told what it did cost (US dollars)."""

    def grant(self, wanted: int, each: float) -> int:
        """Return how many of `wanted` calls may be made, each expected to cost `each`."""

    def settle(self, each: float, cost: float) -> None:
        """Count one granted call as made for `cost`."""

    def give_back(self, count: int, each: float) -> None:
        """Take back granted calls that were not paid for after all."""

    def used_up(self) -> BudgetError:
        """Return the error that says what is used of it."""


class PaidModel:
    """A language model whose calls are paid from a purse; what was kept or recorded, or is carried by hand, is free."""

    def __init__(self, model: TextModel, purse: Purse, each: float) -> None:
        self.model, self._purse, self._each = model, purse, each

    @property
    def vendor(self) -> Any:
        """The model's vendor; None for one on this machine."""
        return getattr(self.model, "vendor", None)

    def spec(self) -> Mapping[str, Any]:
        """Return the model's own."""
        return self.model.spec()

    def complete(
        self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: Heard | None = None
    ) -> Completion:
        """Return the model's reply.

        Raises:
            BudgetError: the call could cost more than is left; it was not made.
        """
        if getattr(self.model, "by_hand", False):
            return self.model.complete(turns, schema, heard)
        if not self._purse.grant(1, self._each):
            raise self._purse.used_up()
        try:
            reply = self.model.complete(turns, schema, heard)
        except BaseException:
            self._purse.give_back(1, self._each)
            raise
        if reply.usage.get("replayed"):
            self._purse.give_back(1, self._each)
        else:
            cost = reply.usage.get("cost")
            self._purse.settle(self._each, self._each if cost is None else float(cost))
        return reply


_UNSUPPORTED = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "pattern", "default"})
# As in `packets.instructions`: grammars of local servers write repetitions out.
_LONGEST_REPEAT = 100
_TEXT = '[^"\\\\\\x00-\\x1f\\x7f]'


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` in the subset that OpenAI's strict mode takes: bounds are left to the validator."""
    return {name: _strict(value) for name, value in schema.items() if name not in _UNSUPPORTED}


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        # Inside "properties" the names are fields, not keywords: a field may well be called "pattern".
        if set(value) & {"type", "anyOf", "enum", "$ref", "const"}:
            return strict_schema(value)
        return {name: _strict(item) for name, item in value.items()}
    return [_strict(item) for item in value] if isinstance(value, list) else value


def grammar_schema(schema: Any) -> Any:
    """Return `schema` for xgrammar: every free text bounded by a pattern that cannot leave its JSON string.

    `maxLength` alone lets raw control characters through and `minLength` raw blanks; a pattern without quotation mark
    and backslash cannot close the string early. Repeats are split because the compiler fails on more than 128.
    """
    if isinstance(schema, list):
        return [grammar_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "string" and "enum" not in schema and "maxLength" in schema:
        kept = {name: value for name, value in schema.items() if name not in {"minLength", "maxLength"}}
        return {**kept, "pattern": _bounded(schema.get("minLength", 0), schema["maxLength"])}
    return {name: grammar_schema(value) for name, value in schema.items()}


def _bounded(least: int, most: int) -> str:
    parts = []
    for done in range(0, most, _LONGEST_REPEAT):
        low, high = (max(0, min(limit - done, _LONGEST_REPEAT)) for limit in (least, most))
        parts.append(f"{_TEXT}{{{low},{high}}}")
    return f"^{''.join(parts)}$"


def neutral(text: str, tokenizer: Any) -> str:
    """Return `text` in which no special token can be forged: a blank goes into each."""
    special = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    names = sorted(special | set(tokenizer.all_special_tokens), key=len, reverse=True)
    if not names:
        return text
    return re.sub("|".join(map(re.escape, names)), lambda found: f"{found[0][0]} {found[0][1:]}", text)
