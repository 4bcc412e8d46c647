"""Questions and contrastive variants that a language model writes, and the checks that each has to pass.

The checks are those of Sec. C.5 for questions (the gold is accepted, nothing vague is, no question answers itself, the
text settles it) and of Sec. C.7 for variants (Table 31: the same story with one transition changed)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from katha.configs import load_config, load_prompt
from katha.errors import ModelError, ReplyError
from katha.eval_bridge.matching.match import Matching, match_text, moral_label, normalise, usual_rule
from katha.eval_bridge.packets.instructions import REPORTING_VARIANT, judge_prompt, object_schema
from katha.eval_bridge.packets.packets import make_packet
from katha.eval_bridge.questions.build import gives_away, new_question, prepare_questions
from katha.models.base import TextModel, Turn
from katha.models.replies import object_of
from katha.protocols import Judge
from katha.reading import story_reader
from katha.schema import (
    DIMENSIONS,
    MORAL_LABELS,
    ContrastiveVariant,
    Dimension,
    Question,
    Scene,
    StoryRecord,
    Transition,
)

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)
_RULES = load_config("building.yaml")
# A changed scene in which most characters are new is another story.
_KEPT_CHARACTERS = 0.5
MOST_VARIANTS = 2


@dataclass(frozen=True)
class Rejected:
    """Something that was not kept, and why."""

    item: str
    text: str
    reason: str


@dataclass
class WrittenItems(Generic[T]):
    """The things that passed every check, and those that did not."""

    kept: list[T] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def settle(self, made: T, item: str, text: str, reason: str | None) -> None:
        """Keep `made`, or reject it where there is a reason to."""
        if reason is None:
            self.kept.append(made)
        else:
            self.rejected.append(Rejected(item, text, reason))


# One JSON object from a language model: asked, read, and asked again once with what is wrong with it.


def write_one(
    model: TextModel,
    prompt: str,
    schema: Mapping[str, Any],
    kind: type[Model],
    what: str,
    wrong: Callable[[Model], str | None] | None = None,
) -> Model:
    """A record of `kind`; `what` names it in errors. wrong: says what no schema can, in a sentence.

    Raises:
        ReplyError: what was written is none, even after one repair; or a refusal, or a cut-off reply. ModelError: the
        server gave no answer.
    """
    turns = [Turn("user", prompt)]
    problem = ""
    for _ in range(2):
        reply = model.complete(turns, schema)
        if reply.status == "transport_failed":
            raise ModelError(f"The model gave no {what}: {reply.error}.", hint="Give the same command again later.")
        if reply.status != "ok":
            raise ReplyError(
                f"The model gave no {what} ({reply.status}): {reply.error}.",
                hint="Try another model.",
                status=reply.status,
                raw=reply.text,
            )
        try:
            found = kind.model_validate(object_of(reply.text))
            told = wrong(found) if wrong is not None else None
            if told is None:
                return found
            problem = told
        except ValidationError as error:
            first = error.errors()[0]
            problem = f"Field {'.'.join(map(str, first['loc'])) or 'reply'}: {first['msg']}."
        except (ValueError, RecursionError) as error:
            problem = f"It is not one whole JSON object: {error}."
        repair = load_prompt("build/repair").render(problem=problem)
        turns = [turns[0], Turn("assistant", reply.text), Turn("user", repair)]
    raise ReplyError(
        f"The model wrote no {what}, not even after a repair: {problem}", hint="Try another model.", raw=reply.text
    )


def _text(most: int) -> dict[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _rows(fields: Mapping[str, object], least: int, most: int) -> dict[str, object]:
    return {"type": "array", "items": object_schema(fields), "minItems": least, "maxItems": most}


# Questions.


class _WrittenQuestion(BaseModel):
    transition: int
    dimension: Dimension
    question: str
    answer: str
    accepted: list[str]


class _WrittenQuestions(BaseModel):
    questions: list[_WrittenQuestion]


def write_questions(model: TextModel, record: StoryRecord, transitions: Sequence[Transition]) -> list[Question]:
    """Return what the model asks of each transition, unchecked: `check_questions` says which of them hold.

    Raises:
        ReplyError, ModelError: it wrote none.
    """
    count = len(transitions)
    prompt = load_prompt("build/questions").render(
        title=record.title,
        story=record.story_text,
        transitions=[
            {"number": number, **item.model_dump(include={"action", "causality", "emotion", "consequence"})}
            for number, item in enumerate(transitions, 1)
        ],
        dimensions=DIMENSIONS,
        morals=MORAL_LABELS,
    )
    fields = {
        "transition": {"type": "integer", "minimum": 1, "maximum": count},
        "dimension": {"type": "string", "enum": list(DIMENSIONS)},
        "question": _text(200),
        "answer": _text(120),
        "accepted": {"type": "array", "items": _text(120), "minItems": 2, "maxItems": 5},
    }
    schema = object_schema({"questions": _rows(fields, 1, 6 * count + 1)})
    return [
        new_question(
            record,
            number,
            item.dimension,
            transitions[item.transition - 1].pair,
            question=item.question,
            gold_answer=item.answer,
            accepted_answers=[item.answer, *item.accepted],
            required_evidence=transitions[item.transition - 1].action,
        )
        for number, item in enumerate(write_one(model, prompt, schema, _WrittenQuestions, "questions").questions, 1)
        if 1 <= item.transition <= count
    ]


def check_questions(
    questions: Sequence[Question], text: str, judge: Judge | None = None, matching: Matching | None = None
) -> WrittenItems[Question]:
    """The questions that hold, each with its gold among the accepted answers and vague ones taken out of them.

    text: the story. judge: answers from the text alone; a question that it gets wrong is rejected, one that it could
    not be asked (a typed failure) as well, with the failure as the reason.
    """
    built: WrittenItems[Question] = WrittenItems()
    seen: set[str] = set()
    for given in questions:
        question = _mended(given)
        built.settle(question, question.question_id, question.question, next(_question_faults(question, seen), None))
        seen.add(normalise(question.question))
    if judge is None or not built.kept:
        return built
    found: WrittenItems[Question] = WrittenItems(rejected=built.rejected)
    for question, (_, answer, failure) in zip(built.kept, _text_answers(built.kept, text, judge), strict=True):
        reason = None if answer is not None else f"The judge could not be asked: {failure}."
        if answer is not None and not match_text(answer, question, matching or usual_rule()).right:
            reason = f"From the text alone the judge answers {answer!r}."
        found.settle(question, question.question_id, question.question, reason)
    return found


def _mended(question: Question) -> Question:
    """The accepted set with the gold in it and without vague answers, each once."""
    accepted = [text.strip() for text in (question.gold_answer, *question.accepted_answers)]
    kept = {normalise(text): text for text in reversed(accepted) if text and not _vague(text)}
    return question.model_copy(update={"accepted_answers": list(kept.values())[::-1]})


def _question_faults(question: Question, seen: set[str]) -> Iterator[str]:
    gold = question.gold_answer
    if not question.question.strip() or not gold.strip():
        yield "The question or its answer is empty."
    if _vague(gold):
        yield f"The answer {gold!r} is vague."
    if normalise(gold) not in {normalise(text) for text in question.accepted_answers}:
        yield "The accepted answers do not hold the canonical one."
    if question.question_type == "moral" and moral_label(gold) is None:
        yield f"The lesson {gold!r} is none of the twelve."
    told = next((text for text in question.accepted_answers if gives_away(question.question, text)), None)
    if told is not None and question.question_type != "temporal_order":
        yield f"The question gives its answer away: {told!r}."
    if normalise(question.question) in seen:
        yield "Another question has the same words."


def _vague(text: str) -> bool:
    return normalise(text) in set(map(normalise, _RULES["vague"]))


def _text_answers(questions: Sequence[Question], text: str, judge: Judge) -> Iterator[tuple[Question, str | None, str]]:
    """Each question with what the judge answers from `text` alone: the answer, or None and the failure."""
    prepared = prepare_questions(questions, seed=42)
    _, evidence = make_packet(questions[0].story_id, "text", text=text)
    prompts = [
        judge_prompt(item, "text", variant=REPORTING_VARIANT, answers_format="choice", count=0) for item in prepared
    ]
    for question, reply in zip(prepared, judge.ask(evidence, prompts), strict=True):
        yield question, reply.answer if reply.status == "ok" else None, reply.error or reply.status


# Contrastive variants.


class _WrittenVariant(BaseModel):
    change_type: str
    changed_scene: int
    scene_text: str
    contrastive_moral: str | None = None
    semantic_delta: str


class _WrittenVariants(BaseModel):
    variants: list[_WrittenVariant]


def write_variants(
    model: TextModel, record: StoryRecord, most: int = MOST_VARIANTS, faults: Sequence[str] = ()
) -> list[ContrastiveVariant]:
    """Return what a model makes of the story's scenes, unchecked; faults: what was wrong with earlier ones.

    Raises:
        ReplyError, ModelError: it wrote none.
    """
    prompt = load_prompt("build/variants").render(
        title=record.title,
        scenes=[{"number": scene.scene_index, "text": scene.scene_text} for scene in record.scenes],
        edits=_RULES["edits"],
        count=most,
        morals=MORAL_LABELS,
        faults=list(faults),
    )
    fields = {
        "change_type": {"type": "string", "enum": list(_RULES["edits"])},
        "changed_scene": {"type": "integer", "minimum": 2, "maximum": len(record.scenes)},
        "scene_text": _text(400),
        "contrastive_moral": {"anyOf": [{"type": "string", "enum": list(MORAL_LABELS)}, {"type": "null"}]},
        "semantic_delta": _text(200),
    }
    schema = object_schema({"variants": _rows(fields, most, most)})
    written = write_one(model, prompt, schema, _WrittenVariants, "contrastive variants")
    return [
        new_variant(
            record, item.change_type, item.changed_scene, item.scene_text, number, item.contrastive_moral,
            item.semantic_delta,
        )
        for number, item in enumerate(written.variants, 1)
    ]  # fmt: skip


def new_variant(
    record: StoryRecord, kind: str, scene: int, text: str, number: int, moral: str | None = None, delta: str = ""
) -> ContrastiveVariant:
    """Return the variant of `record` in which a scene has another text, under the next number of its story."""
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
        semantic_delta=delta or f"Scene {scene}: {_RULES['edits'][kind]}.",
        contrastive_scene_text=text,
        contrastive_story_text=" ".join(text if index == scene else old for index, old in sorted(texts.items())),
    )


class _ReadChange(BaseModel):
    change: str
    strangers: list[str]
    broken: bool


def _misread(reader: TextModel, variant: ContrastiveVariant, record: StoryRecord) -> str | None:
    """Return why a reader who is not told what was changed does not find it, or finds more; None where it does."""
    first = " ".join(scene.scene_text for scene in sorted(record.scenes, key=lambda scene: scene.scene_index))
    prompt = load_prompt("build/change").render(
        first=first, second=variant.contrastive_story_text, edits=_RULES["edits"]
    )
    fields = {
        "change": {"type": "string", "enum": [*_RULES["edits"], "none"]},
        "strangers": {"type": "array", "items": _text(60), "maxItems": 20},
        "broken": {"type": "boolean"},
    }
    found = write_one(reader, prompt, object_schema(fields), _ReadChange, "reading of a variant")
    if found.broken:
        return "The reader finds a sentence that is broken, or contradicts another."
    if found.strangers:
        return f"The reader finds what the story has not: {', '.join(found.strangers[:3])}."
    return None if found.change == variant.change_type else f"The reader finds the change to be {found.change!r}."


def make_variants(
    model: TextModel,
    record: StoryRecord,
    *,
    reader: TextModel | None = None,
    judge: Judge | None = None,
    most: int = MOST_VARIANTS,
) -> WrittenItems[ContrastiveVariant]:
    """Return variants that a model writes and a reader recognises; what fails is written once more, then dropped.

    reader: who reads the two stories, the writer unless told. judge: see `check_variants`.

    Raises:
        ReplyError, ModelError: the model wrote none, or nobody read them.
    """
    first = check_variants(write_variants(model, record, most), record, judge, reader or model)
    if not first.rejected:
        return first
    faults = [f"{item.text} {item.reason}" for item in first.rejected]
    again = write_variants(model, record, len(first.rejected), faults)
    kept = {variant.variant_id for variant in first.kept}
    free = [number for number in range(1, most + 1) if f"{record.story_id}_v{number}" not in kept]
    named = [
        variant.model_copy(
            update={"variant_id": f"{record.story_id}_v{number}", "pair_id": f"{record.story_id}_p{number}"}
        )
        for number, variant in zip(free, again, strict=False)
    ]
    second = check_variants(named, record, judge, reader or model)
    return WrittenItems([*first.kept, *second.kept], second.rejected)


def check_variants(
    variants: Sequence[ContrastiveVariant],
    record: StoryRecord,
    judge: Judge | None = None,
    reader: TextModel | None = None,
) -> WrittenItems[ContrastiveVariant]:
    """The variants that change a meaning and keep who is there.

    reader: is shown both stories and not told what was changed; it has to name the same kind of change, and nobody
    new. judge: reads the changed story; where it still gives every question of the record its old answer, nothing that
    is asked about was changed, and the variant is rejected.
    """
    built: WrittenItems[ContrastiveVariant] = WrittenItems()
    seen: set[str] = set()
    scenes = {scene.scene_index: scene for scene in record.scenes}
    for variant in variants:
        reason = next(_variant_faults(variant, scenes, seen), None)
        if reason is None and judge is not None and record.recoverability_questions:
            reason = _unchanged(variant, record, judge)
        if reason is None and reader is not None:
            reason = _misread(reader, variant, record)
        seen.add(normalise(variant.contrastive_scene_text))
        built.settle(variant, variant.variant_id, variant.contrastive_scene_text, reason)
    return built


def _variant_faults(variant: ContrastiveVariant, scenes: Mapping[int, Scene], seen: set[str]) -> Iterator[str]:
    scene = scenes.get(variant.changed_scene_id or 0)
    if scene is None:
        yield f"The story has no scene {variant.changed_scene_id}."
        return
    if variant.change_type not in _RULES["edits"]:
        yield f"The change {variant.change_type!r} is none of Table 31."
    if normalise(variant.contrastive_scene_text) == normalise(scene.scene_text):
        yield "The text is the story's own."
    if normalise(variant.contrastive_scene_text) in seen:
        yield "Another variant has the same text."
    reader = story_reader()
    old = {name for other in scenes.values() for name in reader.characters(other.scene_text)}
    new = set(reader.characters(variant.contrastive_scene_text))
    if new and len(new & old) < _KEPT_CHARACTERS * len(new):
        yield "It tells of other characters."


def _unchanged(variant: ContrastiveVariant, record: StoryRecord, judge: Judge) -> str | None:
    questions = record.recoverability_questions
    for question, answer, _ in _text_answers(questions, variant.contrastive_story_text, judge):
        if answer is not None and not match_text(answer, question, usual_rule()).right:
            return None
    return "From the changed text the judge still gives every question its old answer."
