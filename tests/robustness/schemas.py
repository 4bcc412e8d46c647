"""Values that a record's JSON schema allows, and some that it does not: hypothesis strategies made from the schemas.

`text_of(kind, number)` is the JSON text of case `number`, the same each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import BaseModel

from katha.agents.folder import RunRecord
from katha.compass.modes import Suite
from katha.config import Settings
from katha.experiments.cluster.jobs import JobRecord
from katha.schema import Answer, Board, Candidates, ContrastiveVariant, Plan, StoryRecord
from katha.schema.scores import Scores

MODELS: Mapping[str, type[BaseModel]] = {
    "record": StoryRecord,
    "plan": Plan,
    "answers": Answer,
    "scores": Scores,
    "run.json": RunRecord,
    "candidates": Candidates,
    "storyboard": Board,
    "variants": ContrastiveVariant,
    "preset": Settings,
    "suite": Suite,
    "job": JobRecord,
}
"""The record behind each kind of file that is one; YAML kinds read JSON, too."""
_DEEPEST = 4
_WORDS = st.sampled_from(["", "fox", "The fox ran to the hen.", "s1", "a/b", "\u202e", "1", "Löwe\n", "x" * 300])
_NUMBERS = st.sampled_from([0, 1, -1, 2, 5, 0.5, -0.5, 1e308, 10**20])
_STRANGE = st.one_of(st.none(), st.booleans(), _WORDS, _NUMBERS, st.just([]), st.just({}), st.just([{"a": [None]}]))


@cache
def strategy_of(kind: str) -> SearchStrategy[Any]:
    """Values of the schema of a kind in `MODELS`; one in nine of those inside is of any other type, missing, or one too
    many."""
    schema = MODELS[kind].model_json_schema()
    return _of(schema, schema.get("$defs", {}), 0)


def _of(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> SearchStrategy[Any]:
    if "$ref" in schema:
        return _of(known[schema["$ref"].rpartition("/")[2]], known, depth)
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    several = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if several:
        return st.one_of(*(_of(one, known, depth) for one in several))
    return _KINDS.get(schema.get("type", ""), _any)(schema, known, depth)


def _any(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> SearchStrategy[Any]:
    return _STRANGE


def _object(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> SearchStrategy[Any]:
    if depth > _DEEPEST:
        return st.just({})
    fields = {name: _or_strange(_of(one, known, depth + 1)) for name, one in schema.get("properties", {}).items()}
    needed = set(schema.get("required", ()))
    if not fields:
        inner = schema.get("additionalProperties")
        return st.dictionaries(_WORDS, _of(inner if isinstance(inner, dict) else {}, known, depth + 1), max_size=3)
    return st.fixed_dictionaries(
        {name: one for name, one in fields.items() if name in needed},
        optional={**{name: one for name, one in fields.items() if name not in needed}, "x": _STRANGE},
    )


def _array(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> SearchStrategy[Any]:
    fixed = [_of(one, known, depth + 1) for one in schema.get("prefixItems", ())]
    if fixed:
        return st.tuples(*fixed).map(list)
    return st.lists(_of(schema.get("items", {}), known, depth + 1), max_size=0 if depth > _DEEPEST else 4)


def _or_strange(one: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.integers(0, 8).flatmap(lambda number: one if number else _STRANGE)


_KINDS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any], int], SearchStrategy[Any]]] = {
    "object": _object,
    "array": _array,
    "string": lambda *_: _WORDS,
    "integer": lambda *_: st.one_of(st.integers(0, 4), _NUMBERS),
    "number": lambda *_: st.one_of(st.floats(0, 1), _NUMBERS),
    "boolean": lambda *_: st.booleans(),
    "null": lambda *_: st.none(),
}


def text_of(kind: str, number: int) -> str:
    """Return the JSON text of case `number` of a kind in `MODELS`."""
    found: list[Any] = []

    @seed(number)
    @settings(max_examples=2, database=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(strategy_of(kind))
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return json.dumps(found[-1])
