"""The JSON schema of what a language model writes: the model's share of a `Plan`, every text bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from katha.planners.switches import Switches
from katha.schema import DIMENSIONS, MORAL_LABELS

__all__ = ["ANGLES", "SIZES", "TIMES", "Shape", "reply_schema"]

SIZES = ("close-up", "medium", "wide")
ANGLES = ("eye level", "low angle", "high angle")
TIMES = ("morning", "day", "evening", "night", "unclear")
_TYPES = ("cause_effect", "moral_choice", "consequence_reveal")
_MOST_CHARACTERS = 12


@dataclass(frozen=True)
class Shape:
    """How much is asked for: panels, transitions, and the numbers of the first and last sentence (None: scenes)."""

    panels: int
    transitions: int
    sentences: tuple[int, int] | None = None


def _text(most: int, least: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most}


def _list(items: Mapping[str, Any], least: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": dict(items), "minItems": least, "maxItems": most}


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def _enum(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _panel(shape: Shape, switches: Switches) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if shape.sentences is not None:
        first, last = shape.sentences
        fields["first_sentence"] = {"type": "integer", "minimum": first, "maximum": last}
    if switches.place:
        fields |= {"place": _text(60), "time_of_day": _enum(*TIMES)}
    if switches.links:
        fields["links"] = _list(_object({"phrase": _text(60), "visible": _text(80)}), 0, 3)
    if switches.shots:
        fields |= {"shot_size": _enum(*SIZES), "shot_angle": _enum(*ANGLES)}
    if switches.sheets:
        fields["characters"] = _list(_text(40), 0, 6)
    return _object(fields | {"must_show": _list(_text(80), 1, 4), "prompt": _text(400)})


def _transition(switches: Switches) -> dict[str, Any]:
    moral = {"anyOf": [_enum(*MORAL_LABELS), {"type": "null"}]}
    fields: dict[str, Any] = {
        "transition_type": _enum(*_TYPES),
        "action": _text(160),
        "causality": _text(200),
        "intention": _text(160),
        "emotion": _text(160),
        "consequence": _text(160),
        "moral_target": moral,
    }
    if switches.questions:
        asked = {
            "dimension": _enum(*DIMENSIONS),
            "question": _text(160),
            "answer": _text(100),
            "accepted": _list(_text(100), 1, 4),
        }
        fields["questions"] = _list(_object(asked), 0, 4)
    return _object(fields)


def reply_schema(shape: Shape, switches: Switches) -> dict[str, Any]:
    """What is asked for, in the order in which it is thought out: who, what is seen, what changes, what is asked."""
    fields: dict[str, Any] = {"tells_events": {"type": "boolean"}}
    if switches.sheets:
        sheet = _object({"name": _text(40), "kind": _text(40), "appearance": _text(120)})
        fields["characters"] = _list(sheet, 0, _MOST_CHARACTERS)
    fields["panels"] = _list(_panel(shape, switches), shape.panels, shape.panels)
    fields["transitions"] = _list(_transition(switches), shape.transitions, shape.transitions)
    return _object(fields)
