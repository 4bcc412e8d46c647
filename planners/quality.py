"""How good a plan is before anything is drawn: fields filled, must-shows said, looks kept, agreement with gold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from katha.planners.base import WORD, covered, worded
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
_SMALL = re.compile("a|an|the|of|in|on|at|with|and|to|is|are|was|were|by|for|from|that")
_STEM = 5


def plan_quality(plan: Plan, record: StoryRecord) -> dict[str, float | None]:
    """Return every measure of one plan; those that need gold annotations are None for a plain text."""
    shown = [(item, panel) for panel in plan.panels for item in panel.must_show]
    gold = {scene.scene_index: scene.visual_must_show for scene in record.scenes}
    wanted = [(item, panel) for panel in plan.panels for item in gold.get(panel.index, [])]
    return {
        "fields": _share(_filled(plan)),
        "visibility": _share(covered(item, panel.prompt) for item, panel in shown),
        "gold_visibility": _share(covered(item, panel.prompt) for item, panel in wanted),
        "constancy": _share(_constant(plan)),
        "naming": _share(_named(plan, panel) for panel in plan.panels),
        "agreement": _agreement(plan.transitions, record.transitions),
    }


def mean_quality(rows: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Return the mean of each measure over the plans that have it."""
    return {name: _mean(value for row in rows if (value := row[name]) is not None) for name in MEASURES}


def _mean(found: Iterable[float]) -> float | None:
    values = list(found)
    return sum(values) / len(values) if values else None


def _share(found: Iterable[float]) -> float | None:
    """Return the mean in percentage points."""
    values = list(found)
    return 100.0 * sum(values) / len(values) if values else None


def _filled(plan: Plan) -> list[bool]:
    """Return one entry a field; a plan without transitions of its own has none filled."""
    own = [] if plan.transitions_from else plan.transitions
    missing = [False] * len(FIELDS) * max(0, len(plan.panels) - 1 - len(own))
    filled = [bool(str(getattr(item, name) or "").strip()) for item in own for name in FIELDS]
    return [*filled, *missing, any(item.moral_target for item in own)]


def _constant(plan: Plan) -> list[bool]:
    return [worded(sheet.appearance, panel.prompt) for panel in plan.panels for sheet in _shown(plan, panel)]


def _shown(plan: Plan, panel: Panel) -> list[Character]:
    sheets = {item.name: item for item in plan.characters}
    return [sheets[name] for name in panel.characters if name in sheets]


def _named(plan: Plan, panel: Panel) -> bool:
    names = [(item.name, item.kind, item.appearance) for item in _shown(plan, panel)]
    everybody = all(any(worded(text, panel.prompt) for text in texts if text) for texts in names)
    return everybody and not _PRONOUN.search(panel.prompt)


def _agreement(own: Sequence[Transition], gold: Sequence[Transition]) -> float | None:
    """Return the mean F1 over the fields that the gold annotation fills, 0 where the plan has no such transition."""
    plans = {item.pair: item for item in own}
    return _share(
        _f1(str(getattr(plans.get(item.pair), name, None) or ""), str(getattr(item, name)))
        for item in gold
        for name in FIELDS
        if str(getattr(item, name) or "").strip()
    )


def _f1(text: str, gold: str) -> float:
    mine, theirs = _stems(text), _stems(gold)
    both = len(mine & theirs)
    return 2 * both / (len(mine) + len(theirs)) if both else 0.0


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in WORD.findall(text.lower()) if not _SMALL.fullmatch(word)}
