"""What KathaBench-25K is published to hold: the counts of the paper's tables, by the names that its files use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = [
    "CONDITIONS_ASKED",
    "GOLD_TIERS",
    "MORALS",
    "NARRATIVE_TYPES",
    "QUESTIONS",
    "RESOLUTIONS",
    "SCENES",
    "SOURCES",
    "SPLITS",
    "STORIES",
    "TRANSITION_TYPES",
    "VALIDATION_STATUSES",
    "VARIANTS_PER_STORY",
    "Tier",
    "estimated_questions",
    "expected_type",
    "split_name",
    "split_stories",
]

STORIES = 5_000
SCENES = 5
VARIANTS_PER_STORY = 2
CONDITIONS_ASKED = 3

NARRATIVE_TYPES: Mapping[str, int] = MappingProxyType(
    {
        "moral_semantic": 1_000,
        "causal_transition": 800,
        "emotional_trajectory": 700,
        "procedural_state_change": 600,
        "social_interaction": 600,
        "hidden_consequence": 500,
        "cultural_folk_moral": 400,
        "counterfactual_pair": 400,
    }
)
"""Table 6, in the order of the identifier ranges `kb25k_0001` to `kb25k_5000` (Sec. A.15)."""

TRANSITION_TYPES: Mapping[str, int] = MappingProxyType(
    {"cause_effect": 10_000, "moral_choice": 5_000, "consequence_reveal": 5_000}
)
"""Table 9."""

MORALS: Mapping[str, int] = MappingProxyType(
    {
        "compassion": 417,
        "courage": 417,
        "generosity": 416,
        "gratitude": 417,
        "honesty": 417,
        "humility": 417,
        "kindness": 417,
        "patience": 417,
        "perseverance": 417,
        "responsibility": 416,
        "self_control": 416,
        "wisdom": 416,
    }
)
"""Table 12."""

QUESTIONS: Mapping[str, int] = MappingProxyType(
    {
        "causal": 6_325,
        "emotional": 6_237,
        "moral": 5_000,
        "consequence": 5_000,
        "temporal_order": 5_000,
        "action_visibility": 1_150,
    }
)
"""Table 14."""

SOURCES: Mapping[str, int] = MappingProxyType({"kathasaritasagara": 1_702, "aesop": 1_676, "panchatantra": 1_622})
"""Table 24, spelled as in Sec. A.16."""

SPLITS: Mapping[str, int] = MappingProxyType(
    {"train": 3_500, "validation": 750, "public_test": 500, "hidden_test": 250}
)
"""Sec. B.7; `test` is public_test and hidden_test together."""

VALIDATION_STATUSES = ("human_review_complete", "human_adjudicator_accepted", "pre_release_reviewed")
"""Sec. A.7 names the first for every record, Sec. D.7 the other two; a release may follow either."""

RESOLUTIONS = ("unanimous", "human_adjudicated")
"""Sec. A.7."""

_SPLIT_NAMES = {
    "val": "validation",
    "dev": "validation",
    "test_public": "public_test",
    "test_hidden": "hidden_test",
} | {name: name for name in (*SPLITS, "test")}


@dataclass(frozen=True)
class Tier:
    """A gold subset (Table 20): its file, how many stories it has, and how many of each narrative type."""

    file: str
    stories: int
    per_type: int


GOLD_TIERS: Mapping[str, Tier] = MappingProxyType(
    {
        "human_gold_1k": Tier("human_gold_1k.jsonl", 1_000, 125),
        "strict_gold_400": Tier("strict_gold_400.jsonl", 400, 50),
    }
)


def split_name(value: str) -> str | None:
    """The split that `value` names (`public-test`, `val` and the like included), None if it names none."""
    return _SPLIT_NAMES.get(value.strip().casefold().replace("-", "_").replace(" ", "_"))


def split_stories(split: str) -> int:
    """How many stories of the full release are in `split`, where `test` is both of its halves."""
    return SPLITS["public_test"] + SPLITS["hidden_test"] if split == "test" else SPLITS[split]


def estimated_questions(stories: int) -> int:
    """The questions of an average subset of that size, as Tables 47 and 48 count them."""
    return round(sum(QUESTIONS.values()) * stories / STORIES)


def expected_type(story_id: str) -> str | None:
    """The narrative type that an identifier of the form `kb25k_XXXX` stands for; None for any other identifier."""
    digits = story_id.removeprefix("kb25k_")
    if digits == story_id or not (digits.isascii() and digits.isdigit() and len(digits) == 4):
        return None
    left = int(digits)
    for name, count in NARRATIVE_TYPES.items():
        if 0 < left <= count:
            return name
        left -= count
    return None
