"""JSON schemas as each kind of model takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["grammar_schema", "strict_schema"]

_UNSUPPORTED = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "pattern", "default"})
_LONGEST_REPEAT = 100
_TEXT = '[^"\\\\\\x00-\\x1f\\x7f]'


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` in the subset that OpenAI's strict mode takes: bounds are left to the validator."""
    return {name: _strict(value) for name, value in schema.items() if name not in _UNSUPPORTED}


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        # Inside "properties" the names are fields, not keywords: a field may well be called "pattern".
        if set(value) & {"type", "anyOf", "enum", "$ref", "const"}:
            return strict_schema(value)
        return {name: _strict(item) for name, item in value.items()}
    return [_strict(item) for item in value] if isinstance(value, list) else value


def grammar_schema(schema: Any) -> Any:
    """`schema` for xgrammar: every free text bounded by a pattern that cannot leave its JSON string.

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
