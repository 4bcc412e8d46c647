"""Evaluators to compare KathaTrace with (Tables 3 and 54), as data: other questions about the same boards.

The questions of a baseline are taken from a record's scenes, never from its transitions. Each is asked as a choice and
scored like any other question; what an evaluator lacks (contrastives, dimensions) is left out here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from katha.configs import load_config
from katha.errors import RecordError, UsageError
from katha.eval_bridge.matching.match import moral_label, normalise
from katha.eval_bridge.questions.elements import Kind, written_elements
from katha.jsonio import digest
from katha.schema import Dimension, Question, Scene, StoryRecord

DEFAULT_EVALUATOR = "kathatrace"
_UNDIVIDED: Dimension = "consequence"
"""Where questions without dimensions are filed: under one, whichever it is."""
_DISTRACTORS = 12


class EvaluatorSpec(BaseModel):
    """One row of `configs/evaluators.yaml`. questions: `own`, or the builders of other ones; nothing where `written`
    says of which kind a model wrote them. scenes: how a scene is told where the text is told scene by scene."""

    model_config = ConfigDict(frozen=True)

    name: str
    about: str
    questions: Literal["own"] | tuple[str, ...] = ()
    written: Kind | None = None
    contrastives: bool = False
    dimensions: bool = True
    depends: bool = False
    scenes: str | None = None

    def text_of(self, record: StoryRecord) -> str:
        """Return what is read with text: the story, or its scenes by number where questions name numbers."""
        if self.scenes is None:
            return record.story_text
        told = [(scene.scene_index, " ".join(scene.scene_text.split())) for scene in record.scenes]
        return "\n".join(self.scenes.format(scene=at, count=len(told), text=text) for at, text in told)

    @property
    def own(self) -> bool:
        """Return whether the record's own questions are asked."""
        return self.questions == "own"


def evaluator_names() -> tuple[str, ...]:
    """The evaluators there are."""
    return tuple(load_config("evaluators.yaml")["evaluators"])


def load_evaluator(name: str) -> EvaluatorSpec:
    """The evaluator called `name`.

    Raises:
        UsageError: there is none.
    """
    row = load_config("evaluators.yaml")["evaluators"].get(name)
    if row is None:
        raise UsageError(f"No evaluator is called {name!r}.", hint=f"Known: {', '.join(evaluator_names())}.")
    return EvaluatorSpec.model_validate({"name": name, **row})


@dataclass(frozen=True)
class _Fact:
    """One answer that a record's scenes give, where (0: anywhere), and what else would be right there."""

    answer: str
    scene: int = 0
    also: tuple[str, ...] = ()


def _unique(texts: Sequence[str | None]) -> list[str]:
    found = {normalise(text): text.strip() for text in texts if text and normalise(text)}
    return list(found.values())


def _anywhere(texts: Sequence[str]) -> list[_Fact]:
    """Each text, right wherever any of them is asked for."""
    every = _unique(texts)
    return [_Fact(text, also=tuple(every)) for text in every]


def _hero(record: StoryRecord) -> list[_Fact]:
    names = [name for scene in record.scenes for name in scene.characters]
    most = max((names.count(name) for name in names), default=0)
    heroes = _unique([name for name in names if names.count(name) == most])
    return [_Fact(heroes[0], also=tuple(_unique(names)))] if heroes else []


def _moods(scenes: Sequence[Scene]) -> list[_Fact]:
    return [_Fact(scene.emotion, scene.scene_index) for scene in scenes if scene.emotion]


_SOURCES: Mapping[str, Callable[[StoryRecord], list[_Fact]]] = {
    "entities": lambda record: _anywhere([name for one in record.scenes for name in (*one.characters, *one.objects)]),
    "action": lambda record: _anywhere([scene.action for scene in record.scenes]),
    "hero": _hero,
    "ending": lambda record: [_Fact(scene.scene_text, scene.scene_index) for scene in record.scenes[-1:]],
    "last_emotion": lambda record: _moods(record.scenes[-1:]),
    "moral": lambda record: [_Fact(label) for label in [moral_label(record.moral_label)] if label is not None],
    "scene_entities": lambda record: [
        _Fact(name, scene.scene_index, tuple(names))
        for scene in record.scenes
        for names in [_unique([*scene.characters, *scene.objects])]
        for name in names
    ],
    "scene_action": lambda record: [
        _Fact(scene.action, scene.scene_index) for scene in record.scenes if scene.action.strip()
    ],
    "scene_emotion": lambda record: _moods(record.scenes),
}
"""What a builder asks for, by the name that `configs/evaluators.yaml` gives it."""


def evaluator_questions(
    record: StoryRecord, evaluator: EvaluatorSpec, others: Sequence[StoryRecord] = (), seed: int = 42
) -> list[Question]:
    """The questions that `evaluator` asks of `record`; distractors come from the same fields of `others`.

    Raises:
        RecordError: a baseline needs scenes with characters, objects, actions or emotions, or questions that a model
            wrote, and there are none.
    """
    if evaluator.own and evaluator.dimensions:
        return list(record.recoverability_questions)
    if evaluator.own:
        return _undivided(record.recoverability_questions)
    if evaluator.written is not None:
        return written_elements(record, evaluator.written)
    made: list[tuple[Question, _Fact, bool]] = []
    for name in evaluator.questions:
        row = load_config("evaluators.yaml")["builders"][name]
        source = _SOURCES[row["from"]]
        facts = source(record)
        strange = sorted({fact.answer for other in others for fact in source(other)})
        strange.sort(key=lambda text: digest([seed, record.story_id, name, text]))
        wrong = [*(fact.answer for fact in facts), *strange[:_DISTRACTORS]]
        for fact in facts:
            question = _question(record, evaluator.name, len(made) + 1, row, fact, wrong)
            made.append((question, fact, row.get("entity", False)))
    if not made:
        raise RecordError(
            f"Story {record.story_id!r} has no scene annotation that the evaluator {evaluator.name!r} could ask about.",
            hint="Give records with scenes (characters, objects, action, emotion).",
        )
    found = _with_parents(made) if evaluator.depends else [question for question, _, _ in made]
    return found if evaluator.dimensions else _undivided(found)


def _undivided(questions: Sequence[Question]) -> list[Question]:
    """Return questions under one dimension and one instruction."""
    filed = {"question_type": _UNDIVIDED, "instruction": "undivided"}
    return [question.model_copy(update=filed) for question in questions]


def _question(
    record: StoryRecord, evaluator: str, number: int, row: Mapping[str, Any], fact: _Fact, wrong: Sequence[str]
) -> Question:
    right = {normalise(text) for text in (fact.answer, *fact.also)}
    return Question.model_validate(
        {
            "question_id": f"{record.story_id}_{evaluator}_{number}",
            "story_id": record.story_id,
            "question_type": row["dimension"],
            "question": row["asks"].format(scene=fact.scene, count=len(record.scenes)),
            "gold_answer": fact.answer,
            "accepted_answers": _unique([fact.answer, *fact.also]),
            "target_scene": fact.scene or None,
            "evaluator": evaluator,
            "distractors": [text for text in wrong if normalise(text) not in right],
        }
    )


def _with_parents(made: Sequence[tuple[Question, _Fact, bool]]) -> list[Question]:
    """Each statement depends on the entities of its scene that its answer names, else on all of them."""
    found = []
    for question, fact, entity in made:
        here = [item for item, other, is_entity in made if is_entity and other.scene == fact.scene and not entity]
        named = [item for item in here if normalise(item.gold_answer) in normalise(fact.answer)]
        parents = [item.question_id for item in named or here]
        found.append(question.model_copy(update={"depends_on": parents}) if parents else question)
    return found
