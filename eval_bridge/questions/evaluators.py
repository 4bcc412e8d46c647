"""Evaluators to compare KathaTrace with (Tables 3 and 54), as data: other questions about the same boards.

The questions of a baseline are taken from a record's scenes, never from its transitions. Each is asked as a choice and
scored like any other question; what an evaluator lacks (contrastives, dimensions) is left out here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from katha.configs import load_config
from katha.errors import RecordError, UsageError
from katha.eval_bridge.matching.match import moral_label, normalise
from katha.jsonio import digest
from katha.schema import Dimension, Question, StoryRecord

DEFAULT_EVALUATOR = "kathatrace"
_UNDIVIDED: Dimension = "consequence"
"""Where questions without dimensions are filed: under one, whichever it is."""
_DISTRACTORS = 12


@dataclass(frozen=True)
class EvaluatorSpec:
    """One row of `configs/evaluators.yaml`. builders: empty where the record's own questions are asked. scenes: how a
    scene is told where the text is told scene by scene."""

    name: str
    about: str
    builders: tuple[str, ...]
    contrastives: bool
    dimensions: bool
    depends: bool
    scenes: str | None = None

    def text_of(self, record: StoryRecord) -> str:
        """What is read under text and text+image: the story, or its scenes by number where questions name numbers."""
        if self.scenes is None:
            return record.story_text
        told = [(scene.scene_index, " ".join(scene.scene_text.split())) for scene in record.scenes]
        return "\n".join(self.scenes.format(scene=at, count=len(told), text=text) for at, text in told)

    @property
    def own(self) -> bool:
        """Whether the record's own questions are asked."""
        return not self.builders


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
    builders = () if row["questions"] == "own" else tuple(row["questions"])
    return EvaluatorSpec(
        name,
        row["about"],
        builders,
        contrastives=row.get("contrastives", False),
        dimensions=row.get("dimensions", True),
        depends=row.get("depends", False),
        scenes=row.get("scenes"),
    )


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


def _moral(record: StoryRecord) -> list[_Fact]:
    label = moral_label(record.moral_label)
    return [_Fact(label)] if label is not None else []


def _scene_entities(record: StoryRecord) -> list[_Fact]:
    here = [(scene.scene_index, _unique([*scene.characters, *scene.objects])) for scene in record.scenes]
    return [_Fact(name, scene, tuple(names)) for scene, names in here for name in names]


_SOURCES: Mapping[str, Callable[[StoryRecord], list[_Fact]]] = {
    "entities": lambda record: _anywhere([name for one in record.scenes for name in (*one.characters, *one.objects)]),
    "action": lambda record: _anywhere([scene.action for scene in record.scenes]),
    "hero": _hero,
    "ending": lambda record: [_Fact(scene.scene_text, len(record.scenes)) for scene in record.scenes[-1:]],
    "last_emotion": lambda record: [
        _Fact(scene.emotion, len(record.scenes)) for scene in record.scenes[-1:] if scene.emotion
    ],
    "moral": _moral,
    "scene_entities": _scene_entities,
    "scene_action": lambda record: [
        _Fact(scene.action, scene.scene_index) for scene in record.scenes if scene.action.strip()
    ],
    "scene_emotion": lambda record: [
        _Fact(scene.emotion, scene.scene_index) for scene in record.scenes if scene.emotion
    ],
}
"""What a builder asks for, by the name that `configs/evaluators.yaml` gives it."""


def evaluator_questions(
    record: StoryRecord, evaluator: EvaluatorSpec, others: Sequence[StoryRecord] = (), seed: int = 42
) -> list[Question]:
    """The questions that `evaluator` asks of `record`; distractors come from the same fields of `others`.

    Raises:
        RecordError: a baseline needs scenes with characters, objects, actions or emotions, and there are none.
    """
    if evaluator.own:
        return [_filed(item, evaluator) for item in record.recoverability_questions]
    rows: list[tuple[Mapping[str, Any], _Fact, list[str]]] = []
    for name in evaluator.builders:
        row = load_config("evaluators.yaml")["builders"][name]
        source = _SOURCES[row["from"]]
        facts = source(record)
        strange = sorted({fact.answer for other in others for fact in source(other)})
        strange.sort(key=lambda text: digest([seed, record.story_id, name, text]))
        own = [fact.answer for fact in facts]
        rows += [(row, fact, [*own, *strange[:_DISTRACTORS]]) for fact in facts]
    if not rows:
        raise RecordError(
            f"Story {record.story_id!r} has no scene annotation that the evaluator {evaluator.name!r} could ask about.",
            hint="Give records with scenes (characters, objects, action, emotion).",
        )
    made = [_question(record, evaluator, number, *row) for number, row in enumerate(rows, 1)]
    return _with_parents(made, rows) if evaluator.depends else made


def _filed(question: Question, evaluator: EvaluatorSpec) -> Question:
    """The record's own question; without dimensions under one for all, and without that dimension's instruction."""
    if evaluator.dimensions:
        return question
    return question.model_copy(update={"question_type": _UNDIVIDED, "instruction": "undivided"})


def _question(
    record: StoryRecord,
    evaluator: EvaluatorSpec,
    number: int,
    row: Mapping[str, Any],
    fact: _Fact,
    wrong: Sequence[str],
) -> Question:
    right = {normalise(text) for text in (fact.answer, *fact.also)}
    return Question.model_validate(
        {
            "question_id": f"{record.story_id}_{evaluator.name}_{number}",
            "story_id": record.story_id,
            "question_type": row["dimension"],
            "question": row["asks"].format(scene=fact.scene, count=len(record.scenes)),
            "gold_answer": fact.answer,
            "accepted_answers": _unique([fact.answer, *fact.also]),
            "target_scene": fact.scene or None,
            "evaluator": evaluator.name,
            "distractors": [text for text in wrong if normalise(text) not in right],
        }
    )


def _with_parents(
    questions: Sequence[Question], rows: Sequence[tuple[Mapping[str, Any], _Fact, list[str]]]
) -> list[Question]:
    """Each statement depends on the entities of its scene that its answer names, else on all of them."""
    entities = [(question, fact) for question, (row, fact, _) in zip(questions, rows, strict=True) if row.get("entity")]
    made = []
    for question, (row, fact, _) in zip(questions, rows, strict=True):
        here = [item for item, other in entities if other.scene == fact.scene and not row.get("entity")]
        named = [item for item in here if normalise(item.gold_answer) in normalise(fact.answer)]
        parents = [item.question_id for item in named or here]
        made.append(question.model_copy(update={"depends_on": parents}) if parents else question)
    return made
