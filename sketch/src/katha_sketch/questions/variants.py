"""Contrastive variants by rule: the same story with one transition changed (Table 31)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType

from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.questions.build import sentence
from katha.eval_bridge.questions.writing import MOST_VARIANTS, new_variant
from katha.schema import ContrastiveVariant, Scene, StoryRecord
from katha_sketch.data import load_config
from katha_sketch.english.phrases import read_phrase
from katha_sketch.questions.wording import reworded, swaps

EDITS: Mapping[str, Callable[[Scene, Scene], Iterable[str]]] = MappingProxyType(
    {
        "reverse_motivation": lambda before, scene: reworded(
            scene.scene_text, "action", load_config("questions.yaml")["reversed"]
        ),
        "remove_consequence": lambda before, scene: [
            f"Nothing comes of it: {before.scene_text[:1].lower()}{before.scene_text[1:]}"
        ],
        "replace_outcome": lambda before, scene: swaps(
            scene.scene_text, f"outcome {scene.scene_index}", kinds=("action",)
        ),
        "flatten_emotion": lambda before, scene: reworded(
            scene.scene_text,
            "emotion",
            dict.fromkeys(read_phrase(scene.scene_text).concepts.get("emotion", ()), "calm"),
        ),
        # In place of the deed that led to it, the scene before shows something else.
        "break_causal_link": lambda before, scene: swaps(
            scene.scene_text, f"cause {scene.scene_index}", kinds=("character",)
        ),
    }
)
"""The operations of Table 31 as rules: from the scene before and the scene, what the scene becomes."""


def rule_variants(record: StoryRecord, most: int = MOST_VARIANTS) -> list[ContrastiveVariant]:
    """At most `most` variants of different kinds, the latest scene that a kind can change; unchecked."""
    scenes = sorted(record.scenes, key=lambda scene: scene.scene_index)
    found: list[ContrastiveVariant] = []
    for kind, edit in EDITS.items():
        texts = (
            (scene, text)
            for before, scene in reversed(list(pairwise(scenes)))
            for text in edit(before, scene)
            if normalise(text) != normalise(scene.scene_text)
        )
        changed = next(texts, None)
        if changed is not None and len(found) < most:
            found.append(new_variant(record, kind, changed[0].scene_index, sentence(changed[1]) + ".", len(found) + 1))
    return found
