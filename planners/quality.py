"""How good a plan is before anything is drawn: fields filled, must-shows said, looks kept, agreement with gold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from katha.planners.prompts import covered, worded
from katha.schema import Character, Panel, Plan, StoryRecord, Transition

FIELDS = ("action", "causality", "intention", "emotion", "consequence")
"""The fields of every transition (Eq. 4); the sixth, the moral target, belongs to the story."""
MEASURES: Mapping[str, str] = {
    "fields": "transition fields that say something, the moral target counted once a story",
    "visibility": "must-show items of the plan that its prompts say",
    "gold_visibility": "must-show items of the record that the prompts say",
    "constancy": "appearances of a character in a prompt that show its whole look",
    "naming": "prompts that name everybody whom they show and use no pronoun",
    "agreement": "agreement of the fields with the record's (F1 of content words)",
}
"""Each measure, in percentage points. None where there is nothing to measure."""

_PRONOUN = re.compile(r"\b(?:he|she|they|him|her|them|his|hers|their|it|its)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_SMALL = re.compile("a|an|the|of|in|on|at|with|and|to|is|are|was|were|by|for|from|that")
_STEM = 5


def plan_quality(plan: Plan, record: StoryRecord) -> dict[str, float | None]:
    """Every measure of one plan; those that need gold annotations are None for a plain text."""
    shown = [(item, panel) for panel in plan.panels for item in panel.must_show]
    gold = {scene.scene_index: scene.visual_must_show for scene in record.scenes}
    wanted = [(item, panel) for panel in plan.panels for item in gold.get(panel.index, [])]
    return {
        "fields": _share(_filled(plan)),
        "visibility": _share(_said(item, panel.prompt) for item, panel in shown),
        "gold_visibility": _share(_said(item, panel.prompt) for item, panel in wanted),
        "constancy": _share(_constant(plan)),
        "naming": _share(_named(plan, panel) for panel in plan.panels),
        "agreement": _agreement(plan.transitions, record.transitions),
    }


def mean_quality(rows: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The mean of each measure over the plans that have it."""
    found: dict[str, float | None] = {}
    for name in MEASURES:
        values = [value for row in rows if (value := row[name]) is not None]
        found[name] = sum(values) / len(values) if values else None
    return found


def _share(found: Iterable[bool]) -> float | None:
    values = list(found)
    return 100.0 * sum(values) / len(values) if values else None


def _filled(plan: Plan) -> list[bool]:
    """One entry a field; a plan without transitions of its own has none filled."""
    own = [] if plan.transitions_from else plan.transitions
    missing = [False] * len(FIELDS) * max(0, len(plan.panels) - 1 - len(own))
    filled = [bool(str(getattr(item, name) or "").strip()) for item in own for name in FIELDS]
    return [*filled, *missing, any(item.moral_target for item in own)]


def _said(item: str, prompt: str) -> bool:
    return worded(item, prompt) or covered(item, prompt)


def _constant(plan: Plan) -> list[bool]:
    sheets = {item.name: item for item in plan.characters}
    return [
        worded(sheets[name].appearance, panel.prompt)
        for panel in plan.panels
        for name in panel.characters
        if name in sheets
    ]


def _named(plan: Plan, panel: Panel) -> bool:
    sheets = {item.name: item for item in plan.characters}
    everybody = all(_names(sheets[name], panel.prompt) for name in panel.characters if name in sheets)
    return everybody and not _PRONOUN.search(panel.prompt)


def _names(character: Character, prompt: str) -> bool:
    return any(worded(text, prompt) for text in (character.name, character.kind, character.appearance) if text)


def _agreement(own: Sequence[Transition], gold: Sequence[Transition]) -> float | None:
    """Mean F1 over the fields that the gold annotation fills, 0 where the plan has no such transition."""
    plans = {item.pair: item for item in own}
    scores = [
        _f1(str(getattr(plans.get(item.pair), name, None) or ""), str(getattr(item, name)))
        for item in gold
        for name in FIELDS
        if str(getattr(item, name) or "").strip()
    ]
    return 100.0 * sum(scores) / len(scores) if scores else None


def _f1(text: str, gold: str) -> float:
    mine, theirs = _stems(text), _stems(gold)
    both = len(mine & theirs)
    return 2 * both / (len(mine) + len(theirs)) if both else 0.0


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.lower()) if not _SMALL.fullmatch(word)}
