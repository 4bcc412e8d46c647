"""A benchmark of KathaBench-25K's exact shape and counts, made of placeholder stories: for tests and benchmarks.

Records are made one at a time and depend on their number alone. The counts of Tables 5, 6, 9, 11 to 14, 20, 24, 47 and
48 and the splits come out exactly; the stories mean nothing.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from katha.eval_bridge.bench.files import (
    GOLD_TIERS,
    MORALS,
    NARRATIVE_TYPES,
    QUESTIONS,
    SCENES,
    SOURCES,
    SPLITS,
    STORIES,
    VARIANTS_PER_STORY,
    split_stories,
)
from katha.jsonio import canonical

_EVERY = ("moral", "consequence", "temporal_order", "causal", "emotional")
_EXTRA = {"causal": 1_325, "emotional": 1_237, "action_visibility": 1_150}
_TYPES = tuple(NARRATIVE_TYPES)
_MORALS = tuple(MORALS)
_STRIDE = 1_231
_CHANGES = ("remove_consequence", "break_causal_link")


def _asked(stories: int) -> int:
    """Return the questions of an average subset of that size, as Tables 47 and 48 count them."""
    return round(sum(QUESTIONS.values()) * stories / STORIES)


class _Layout:
    """Which split and gold tier each story is in, and which extra questions it has."""

    def __init__(self) -> None:
        self.starts = (0, *accumulate(NARRATIVE_TYPES.values()))
        self.group_of = [self._group(number) for number in range(STORIES)]
        self.extras = self._extras()

    def place(self, number: int) -> tuple[str, int]:
        """The narrative type of story `number` (from 0), and its place within it."""
        at = bisect(self.starts, number) - 1
        return _TYPES[at], number - self.starts[at]

    def split(self, number: int) -> str:
        """Each narrative type is divided as the whole is."""
        name, place = self.place(number)
        edges = accumulate(NARRATIVE_TYPES[name] * count // STORIES for count in SPLITS.values())
        return tuple(SPLITS)[sum(place >= edge for edge in edges)]

    def tiers(self, number: int) -> tuple[str, ...]:
        """The gold subsets are taken from the beginning of each narrative type, which is train."""
        place = self.place(number)[1]
        return tuple(name for name, tier in GOLD_TIERS.items() if place < tier.per_type)

    def _group(self, number: int) -> str:
        return (self.tiers(number) or (self.split(number),))[-1]

    def _extras(self) -> dict[int, list[str]]:
        """Extra questions, so that each group of stories has the questions of Tables 47 and 48."""
        members: dict[str, list[int]] = {}
        for number, group in enumerate(self.group_of):
            members.setdefault(group, []).append(number)
        strict, whole = (_asked(GOLD_TIERS[name].stories) for name in ("strict_gold_400", "human_gold_1k"))
        public, test = _asked(SPLITS["public_test"]), _asked(split_stories("test"))
        totals = {"strict_gold_400": strict, "human_gold_1k": whole - strict}
        totals |= {"public_test": public, "hidden_test": test - public}
        chosen = [
            member
            for group, total in totals.items()
            for member in members.pop(group)[: total - len(_EVERY) * self.group_of.count(group)]
        ]
        rest = [number for group in sorted(members) for number in members[group]]
        chosen += rest[: sum(_EXTRA.values()) - len(chosen)]
        kinds = [kind for kind, count in _EXTRA.items() for _ in range(count)]
        spread = (kinds[at * _STRIDE % len(kinds)] for at in range(len(kinds)))
        return {number: [kind] for number, kind in zip(chosen, spread, strict=True)}


def _scene(story_id: str, index: int) -> dict[str, Any]:
    return {
        "story_id": story_id,
        "scene_index": index,
        "scene_text": f"The fox does deed {index} of {story_id}.",
        "characters": ["fox"],
        "objects": ["lamp"],
        "action": f"the fox does deed {index}",
        "state": f"state {index}",
        "emotion": "calm",
        "visual_evidence": None,
        "visual_must_show": ["fox"],
        "generation_prompt": f"A fox and lamp {index}.",
    }


def _transition(story_id: str, step: int, moral: str) -> dict[str, Any]:
    kinds = ("cause_effect", "moral_choice", "cause_effect", "consequence_reveal")
    return {
        "story_id": story_id,
        "from_scene": step,
        "to_scene": step + 1,
        "transition_type": kinds[step - 1],
        "action": f"deed {step} leads on",
        "causality": f"because of deed {step}",
        "intention": "to go on",
        "emotion": "from calm to glad",
        "consequence": f"deed {step + 1} follows",
        "expected_change": f"state {step} becomes {step + 1}",
        "moral_target": moral if step == SCENES - 1 else None,
        "recoverability_target": f"why deed {step + 1} follows",
    }


def _question(story_id: str, number: int, kind: str, moral: str) -> dict[str, Any]:
    step = 1 + number % (SCENES - 1)
    gold = moral if kind == "moral" else f"deed {step} leads to deed {step + 1}"
    return {
        "question_id": f"{story_id}_q{number + 1}",
        "story_id": story_id,
        "question_type": kind,
        "question": f"What does step {step} show?",
        "gold_answer": gold,
        "accepted_answers": [gold, f"{gold} of the fox"] if kind != "moral" else [gold],
        "target_scene": step + 1,
        "target_transition": [step, step + 1],
        "evidence_scenes": [step, step + 1],
        "required_evidence": f"deeds {step} and {step + 1}",
        "answerability": "answerable",
    }


def _moral(number: int) -> str:
    """Each label in turn; the four that have one story fewer (Table 12) are skipped in the last round."""
    rounds = min(MORALS.values())
    last = [name for name, count in MORALS.items() if count > rounds]
    return last[number - rounds * len(MORALS)] if number >= rounds * len(MORALS) else _MORALS[number % len(MORALS)]


def _story(number: int, layout: _Layout) -> dict[str, Any]:
    story_id = f"kb25k_{number + 1:04d}"
    moral = _moral(number)
    edges = accumulate(SOURCES.values())
    kinds = (*_EVERY, *layout.extras.get(number, ()))
    return {
        "story_id": story_id,
        "title": f"Story {number + 1}",
        "story_text": " ".join(f"The fox does deed {index} of {story_id}." for index in range(1, SCENES + 1)),
        "narrative_type": layout.place(number)[0],
        "moral_label": moral,
        "split": layout.split(number),
        "scenes": [_scene(story_id, index) for index in range(1, SCENES + 1)],
        "transitions": [_transition(story_id, step, moral) for step in range(1, SCENES)],
        "recoverability_questions": [_question(story_id, at, kind, moral) for at, kind in enumerate(kinds)],
        "provenance": {
            "source_dataset": tuple(SOURCES)[sum(number >= edge for edge in edges)],
            "contrastive_variant_ids": [f"{story_id}_v{at + 1}" for at in range(VARIANTS_PER_STORY)],
            "source_rights_status": "public_domain_or_rights_compatible",
            "dataset_license": "CC-BY-4.0",
        },
        "validation_status": "human_review_complete",
        "evidence_status": {"human_evidence_accepted": True, "resolution": _resolution(number)},
    }


def _resolution(number: int) -> str:
    return "unanimous" if number < 4_101 else "human_adjudicated"


def stories(count: int = STORIES) -> Iterator[dict[str, Any]]:
    """The first `count` records of `annotations.jsonl`."""
    layout = _Layout()
    return (_story(number, layout) for number in range(count))


def gold(tier: str) -> Iterator[dict[str, Any]]:
    """The records of a gold subset."""
    layout = _Layout()
    return (_story(number, layout) for number in range(STORIES) if tier in layout.tiers(number))


def variants(count: int = STORIES) -> Iterator[dict[str, Any]]:
    """The contrastive variants of the first `count` stories (Table 15)."""
    for record in stories(count):
        story_id, moral = record["story_id"], record["moral_label"]
        for at, change in enumerate(_CHANGES):
            scene = 3 + at
            text = f"The fox leaves deed {scene} of {story_id} undone."
            yield {
                "variant_id": f"{story_id}_v{at + 1}",
                "base_story_id": story_id,
                "variant_kind": "minimal_pair",
                "subset": "contrastive",
                "narrative_type": record["narrative_type"],
                "has_variant": True,
                "pair_id": f"{story_id}_p{at + 1}",
                "changed_scene_id": scene,
                "change_type": change,
                "original_moral": moral,
                "contrastive_moral": None,
                "semantic_delta": f"Deed {scene} is left undone.",
                "contrastive_scene_text": text,
                "contrastive_story_text": record["story_text"].replace(record["scenes"][scene - 1]["scene_text"], text),
            }


def validations(count: int = STORIES) -> Iterator[dict[str, Any]]:
    """The records of `human_validation.jsonl` of the first `count` stories (Table 16)."""
    for number, record in enumerate(stories(count)):
        yield {
            "story_id": record["story_id"],
            "decision": "accepted",
            "validation_status": "human_review_complete",
            "evidence_source": "human_review",
            "protocol_complete": True,
            "annotator_ids": ["a1", "a2", "a3"],
            "adjudicator_id": None if _resolution(number) == "unanimous" else "adj1",
            "resolution": _resolution(number),
            "final_moral_label": record["moral_label"],
            "correction_flags": [],
            "signed_at": "2025-12-24T12:00:00Z",
        }


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("wb") as file:
        for row in rows:
            file.write(canonical(row) + b"\n")


def write_release(folder: Path, count: int = STORIES) -> Path:
    """Write the release's record files (Table 23) for the first `count` stories; gold subsets only when complete."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "annotations.jsonl", stories(count))
    _write(folder / "contrastive_variants.jsonl", variants(count))
    _write(folder / "human_validation.jsonl", validations(count))
    if count == STORIES:
        for name, tier in GOLD_TIERS.items():
            _write(folder / tier.file, gold(name))
    return folder
