"""What `katha eval` is given: stories with their questions and options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from katha.agents.context import make_plan
from katha.config import RunConfig
from katha.errors import InputFileError, UsageError
from katha.eval_bridge.questions.build import build_questions, fill_options
from katha.eval_bridge.questions.evaluators import DEFAULT_EVALUATOR, EvaluatorSpec, evaluator_questions
from katha.eval_bridge.scoring.contrastive import iter_variants
from katha.jsonio import digest, iter_lines
from katha.schema import ContrastiveVariant, Question, Scene, StoryRecord
from katha.stories import VARIANTS_FILE

_POOL = 240


class EvalOptions(BaseModel):
    """How boards that are there are judged, beside the settings that every judging has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: str | None = Field(
        default=None, description="all, reporting or steering; reporting where stories carry roles."
    )
    controls: str | None = Field(
        default=None, description="Any of blank, shuffled, foreign, repeat, with commas; or all."
    )
    evaluator: str = Field(
        default=DEFAULT_EVALUATOR,
        description="kathatrace (unless told), or a baseline: object-overlap, generic-qa, tifa, dsg, ...",
    )
    variants: Path | None = Field(default=None, description="contrastive_variants.jsonl: ask its pairs, too (PairAcc).")
    scan_words: bool = Field(default=False, description="Look for words of the story drawn into the pictures (OCR).")
    resamples: int = Field(
        default=10_000, ge=0, description="Bootstrap resamples for the intervals; 10000 unless told."
    )
    concurrency: int | None = Field(
        default=None, ge=1, description="At most so many calls to a server at once; 16 unless told."
    )
    batch: bool = Field(
        default=False, description="Ask APIs by their batches: cheaper, within a day. The command waits."
    )


def choose_questions(asked: str | None, records: Sequence[StoryRecord]) -> Literal["reporting", "steering", "all"]:
    """Which questions count: as asked, else `reporting` where the stories carry roles, else all.

    Raises:
        UsageError: no such half.
    """
    known: dict[str, Literal["reporting", "steering", "all"]] = {
        "reporting": "reporting",
        "steering": "steering",
        "all": "all",
    }
    if asked is not None:
        if asked not in known:
            raise UsageError(f"--questions {asked!r} is not known.", hint=f"Known: {', '.join(known)}.")
        return known[asked]
    split = any(item.role for record in records for item in record.recoverability_questions)
    return "reporting" if split else "all"


def prepare_stories(
    source: str | Path | None, seed: int = 42, *, evaluator: EvaluatorSpec | None = None
) -> PrepareStories:
    """Return a function that gives stories their questions (if they bring none) and every question its options.

    source: the file or folder that they came from, if they did (`#story_id` does not matter).
    """
    path = Path(str(source).partition("#")[0]) if source is not None else None
    return PrepareStories(path, seed, evaluator)


def read_pairs(path: Path | None, records: Sequence[StoryRecord], evaluator: EvaluatorSpec) -> list[ContrastiveVariant]:
    """The variants of `path` whose stories are given, by id.

    Raises:
        UsageError: the evaluator has no contrastives, or no variant belongs to a story that is given.
        InputFileError, RecordError: a line is no variant (file and line are named).
    """
    if path is None:
        return []
    if not evaluator.contrastives:
        raise UsageError(f"The evaluator {evaluator.name!r} has no contrastive pairs.", hint="Leave --variants out.")
    known = {record.story_id for record in records}
    found = [variant for variant in iter_variants(path) if variant.base_story_id in known]
    if not found:
        raise InputFileError(f"{str(path)!r} holds no variant of these stories.", hint="Give the stories' own file.")
    return sorted(found, key=lambda variant: variant.variant_id)


class PrepareStories:
    """Questions and options for stories; the contrastive variants beside the file that they came from, if they did come
    from one, are the first distractors.
    """

    def __init__(self, source: Path | None, seed: int, evaluator: EvaluatorSpec | None = None) -> None:
        self._source, self._seed, self._evaluator = source, seed, evaluator

    def __call__(self, records: Sequence[StoryRecord]) -> list[StoryRecord]:
        """Complete `records`; questions, roles and options that are there stay."""

        asked = self._asked(records)
        variants = self._variants() if self._evaluator is None or self._evaluator.contrastives else {}
        everything = [item for record in asked for item in _owned(record)]
        pool = sorted(everything, key=lambda item: digest([self._seed, item.story_id, item.question_id]))[:_POOL]
        ready = []
        for record in asked:
            own = sorted(_owned(record), key=lambda item: item.question_id)
            others = [item for item in pool if item.story_id != record.story_id]
            mine = variants.get(record.story_id, [])
            questions = [fill_options(item, own, others, mine, self._seed) for item in _owned(record)]
            ready.append(record.model_copy(update={"recoverability_questions": questions}))
        return ready

    def _asked(self, records: Sequence[StoryRecord]) -> list[StoryRecord]:
        """The stories with the evaluator's questions."""

        spec = self._evaluator
        if spec is not None and not spec.own:
            ready = [record if record.scenes else _with_scenes(record) for record in records]
        else:
            ready = [record if record.recoverability_questions else _with_questions(record) for record in records]
        if spec is None:
            return ready
        others = sorted(ready, key=lambda record: record.story_id)[:_POOL]
        return [
            record.model_copy(
                update={
                    "recoverability_questions": evaluator_questions(
                        record, spec, [other for other in others if other.story_id != record.story_id], self._seed
                    )
                }
            )
            for record in ready
        ]

    def _variants(self) -> dict[str, list[ContrastiveVariant]]:

        if self._source is None:
            return {}
        folder = self._source if self._source.is_dir() else self._source.parent
        found: dict[str, list[ContrastiveVariant]] = {}
        path = folder / VARIANTS_FILE
        for number, line in iter_lines(path) if path.is_file() else ():
            try:
                variant = ContrastiveVariant.model_validate_json(line)
            except ValueError as error:
                raise InputFileError(f"{str(path)!r}, line {number}, is no contrastive variant.") from error
            found.setdefault(variant.base_story_id, []).append(variant)
        return found


def _owned(record: StoryRecord) -> list[Question]:
    """The questions, each with its story's id (a record's own questions may leave it out)."""
    return [
        item if item.story_id == record.story_id else item.model_copy(update={"story_id": record.story_id})
        for item in record.recoverability_questions
    ]


def _with_questions(record: StoryRecord) -> StoryRecord:
    """The questions that the story's transitions call for; none if it cannot be planned."""
    panels = len(record.scenes) or RunConfig().panels
    try:
        plan = make_plan(record, RunConfig(panels=panels))
    except UsageError:
        return record
    return record.model_copy(update={"recoverability_questions": build_questions(record, plan)})


def _with_scenes(record: StoryRecord) -> StoryRecord:
    """A plain story with the scenes that the rule planner reads in it; unchanged if it cannot be planned."""
    try:
        plan = make_plan(record, RunConfig())
    except UsageError:
        return record
    actions = {item.to_scene: item for item in plan.transitions}
    scenes = []
    for panel in plan.panels:
        led = actions.get(panel.index)
        scenes.append(
            Scene(
                story_id=record.story_id,
                scene_index=panel.index,
                scene_text=panel.caption,
                characters=panel.characters,
                objects=[item for item in panel.must_show if item not in panel.characters],
                action=led.action if led is not None else panel.caption,
                emotion=led.emotion if led is not None else None,
            )
        )
    return record.model_copy(update={"scenes": scenes})
