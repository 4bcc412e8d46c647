"""Contrastive variants (Sec. C.7, Table 31): the same story with one transition changed, by rule or by a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from katha.configs import load_prompt
from katha.eval_bridge.matching.match import match_text, normalise
from katha.eval_bridge.packets.instructions import object_schema
from katha.eval_bridge.questions.options import reworded, swaps
from katha.eval_bridge.questions.wording import sentence
from katha.eval_bridge.questions.writing import Built, Rejected, rules, text_answers, write_one
from katha.language import read_scene
from katha.models.base import TextModel
from katha.protocols import Judge
from katha.schema import MORAL_LABELS, ContrastiveVariant, Scene, StoryRecord

_KEPT_CHARACTERS = 0.5
_MOST = 2


def _remove_consequence(before: Scene, scene: Scene) -> Iterator[str]:
    yield f"Nothing comes of it: {_lower(before.scene_text)}"


def _replace_outcome(before: Scene, scene: Scene) -> Iterator[str]:
    yield from swaps(scene.scene_text, f"outcome {scene.scene_index}", kinds=("action",))


def _flatten_emotion(before: Scene, scene: Scene) -> Iterator[str]:
    yield from reworded(scene.scene_text, "emotion", {actor.emotion: "calm" for actor in _felt(scene)})


def _reverse_motivation(before: Scene, scene: Scene) -> Iterator[str]:
    yield from reworded(scene.scene_text, "action", rules()["reversed"])


def _break_causal_link(before: Scene, scene: Scene) -> Iterator[str]:
    """In place of the deed that led to it, the scene before shows something else."""
    yield from swaps(scene.scene_text, f"cause {scene.scene_index}", kinds=("character",))


EDITS: Mapping[str, Callable[[Scene, Scene], Iterator[str]]] = MappingProxyType(
    {
        "reverse_motivation": _reverse_motivation,
        "remove_consequence": _remove_consequence,
        "replace_outcome": _replace_outcome,
        "flatten_emotion": _flatten_emotion,
        "break_causal_link": _break_causal_link,
    }
)
"""The operations of Table 31 as rules: from the scene before and the scene, what the scene becomes."""


def _felt(scene: Scene) -> list[Any]:
    return [actor for actor in read_scene(scene.scene_text).actors if actor.emotion]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def rule_variants(record: StoryRecord, most: int = _MOST) -> list[ContrastiveVariant]:
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
            found.append(_variant(record, kind, changed[0].scene_index, sentence(changed[1]) + ".", len(found) + 1))
    return found


class _Written(BaseModel):
    change_type: str
    changed_scene: int
    scene_text: str
    contrastive_moral: str | None = None
    semantic_delta: str


class _All(BaseModel):
    variants: list[_Written]


def write_variants(model: TextModel, record: StoryRecord, most: int = _MOST) -> list[ContrastiveVariant]:
    """What a model makes of the story's scenes, unchecked.

    Raises:
        ReplyError, ModelError: it wrote none.
    """
    edits: Mapping[str, str] = rules()["edits"]
    prompt = load_prompt("build/variants").render(
        title=record.title,
        scenes=[{"number": scene.scene_index, "text": scene.scene_text} for scene in record.scenes],
        edits=edits,
        count=most,
        morals=MORAL_LABELS,
    )
    written = write_one(model, prompt, _schema(edits, len(record.scenes), most), _All, "contrastive variants")
    return [
        _variant(
            record, item.change_type, item.changed_scene, item.scene_text, number, item.contrastive_moral,
            item.semantic_delta,
        )
        for number, item in enumerate(written.variants, 1)
    ]  # fmt: skip


def _variant(
    record: StoryRecord, kind: str, scene: int, text: str, number: int, moral: str | None = None, delta: str = ""
) -> ContrastiveVariant:
    texts = {item.scene_index: item.scene_text for item in record.scenes}
    return ContrastiveVariant(
        variant_id=f"{record.story_id}_v{number}",
        base_story_id=record.story_id,
        variant_kind="contrastive",
        subset=record.split or "",
        narrative_type=record.narrative_type or "",
        pair_id=f"{record.story_id}_p{number}",
        changed_scene_id=scene,
        change_type=kind,
        original_moral=record.moral_label,
        contrastive_moral=moral,
        semantic_delta=delta or f"Scene {scene}: {rules()['edits'][kind]}.",
        contrastive_scene_text=text,
        contrastive_story_text=" ".join(text if index == scene else old for index, old in sorted(texts.items())),
    )


def _schema(edits: Iterable[str], scenes: int, most: int) -> dict[str, object]:
    moral = {"anyOf": [{"type": "string", "enum": list(MORAL_LABELS)}, {"type": "null"}]}
    fields = {
        "change_type": {"type": "string", "enum": list(edits)},
        "changed_scene": {"type": "integer", "minimum": 2, "maximum": scenes},
        "scene_text": {"type": "string", "minLength": 1, "maxLength": 400},
        "contrastive_moral": moral,
        "semantic_delta": {"type": "string", "minLength": 1, "maxLength": 200},
    }
    rows = {"type": "array", "items": object_schema(fields), "minItems": most, "maxItems": most}
    return object_schema({"variants": rows})


def check_variants(
    variants: Sequence[ContrastiveVariant], record: StoryRecord, judge: Judge | None = None
) -> Built[ContrastiveVariant]:
    """The variants that change a meaning and keep who is there.

    judge: reads the changed story; where it still gives every question of the record its old answer, nothing that is
    asked about was changed, and the variant is rejected.
    """
    built: Built[ContrastiveVariant] = Built()
    seen: set[str] = set()
    scenes = {scene.scene_index: scene for scene in record.scenes}
    for variant in variants:
        reason = next(_faults(variant, scenes, seen), None)
        if reason is None and judge is not None and record.recoverability_questions:
            reason = _unchanged(variant, record, judge)
        seen.add(normalise(variant.contrastive_scene_text))
        if reason is None:
            built.kept.append(variant)
        else:
            built.rejected.append(Rejected(variant.variant_id, variant.contrastive_scene_text, reason))
    return built


def _faults(variant: ContrastiveVariant, scenes: Mapping[int, Scene], seen: set[str]) -> Iterator[str]:
    scene = scenes.get(variant.changed_scene_id or 0)
    if scene is None:
        yield f"The story has no scene {variant.changed_scene_id}."
        return
    if variant.change_type not in rules()["edits"]:
        yield f"The change {variant.change_type!r} is none of Table 31."
    if normalise(variant.contrastive_scene_text) == normalise(scene.scene_text):
        yield "The text is the story's own."
    if normalise(variant.contrastive_scene_text) in seen:
        yield "Another variant has the same text."
    old = {actor.concept for other in scenes.values() for actor in read_scene(other.scene_text).actors}
    new = {actor.concept for actor in read_scene(variant.contrastive_scene_text).actors}
    if new and len(new & old) < _KEPT_CHARACTERS * len(new):
        yield "It tells of other characters."


def _unchanged(variant: ContrastiveVariant, record: StoryRecord, judge: Judge) -> str | None:
    questions = record.recoverability_questions
    for question, answer, _ in text_answers(questions, variant.contrastive_story_text, judge):
        if answer is not None and not match_text(answer, question, "lemma-set").right:
            return None
    return "From the changed text the judge still gives every question its old answer."
