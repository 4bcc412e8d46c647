"""What `katha eval` is given: stories with their questions and options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from katha.agents.context import make_plan
from katha.compass.lock import TEST_SPLITS
from katha.config import Flag, Settings
from katha.errors import InputFileError, RecordError, UsageError
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.questions.build import build_questions, fill_options
from katha.eval_bridge.questions.evaluators import DEFAULT_EVALUATOR, EvaluatorSpec, evaluator_questions
from katha.eval_bridge.scoring.contrastive import iter_variants
from katha.experiments.cluster.fleet import CLUSTER_HELP, WORKERS_HELP, Fleet
from katha.experiments.cluster.progress import OnWorkers
from katha.jsonio import digest, iter_lines, loads, read_text
from katha.models.calls import current_calls
from katha.ordering import ORDER_HELP
from katha.protocols import PlanRequest
from katha.schema import ContrastiveVariant, Question, Scene, StoryRecord
from katha.schema.scores import Selection
from katha.stories import VARIANTS_FILE

_POOL = 240
SPLIT_HELP = "Only the stories of this split (the record's field); test is public and hidden test together."
IDS_HELP = "Only these stories: ids with commas, or a file of them (one a line, or JSON Lines with story_id)."


class WorkerOptions(BaseModel):
    """Who does the work."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: str | None = Field(default=None, description=WORKERS_HELP)
    cluster: str | None = Field(default=None, description=CLUSTER_HELP)

    def fleet(self, budget: Budget | None, heard: OnWorkers | None) -> Fleet | None:
        """Return the workers; None where the command works alone.

        Raises:
            UsageError: they say nothing that there is, or a limit could not hold. MissingExtraError: Ray is missing.
        """
        counted = budget is not None and budget.max_cost is not None
        dollars = (lambda: budget.cost) if budget is not None and counted else (lambda: None)
        made = Fleet.of(self.workers, self.cluster, heard, dollars)
        log = current_calls()
        if made is not None and log is not None and log.everything:
            raise UsageError("Calls of workers are not recorded, and not replayed.", hint="Leave --workers out.")
        if made is not None and budget is not None and budget.max_calls is not None:
            raise UsageError(
                "--max-calls counts the calls of one process and cannot hold over workers.", hint="Give --max-cost."
            )
        return made


class RunOptions(WorkerOptions):
    """Which stories of many are run."""

    split: str | None = Field(default=None, description=SPLIT_HELP)
    ids: str | None = Field(default=None, description=IDS_HELP)


class EvalOptions(WorkerOptions):
    """How boards that are there are judged, beside the settings that every judging has."""

    questions: str | None = Field(
        default=None, description="all, reporting or steering; reporting where stories carry roles."
    )
    controls: str | None = Field(
        default=None, description="Any of blank, shuffled, repeated, foreign, repeat, with commas; or all."
    )
    evaluator: str = Field(
        default=DEFAULT_EVALUATOR,
        description="kathatrace (unless told), or a baseline: object-overlap, generic-qa, tifa, dsg, ...",
    )
    ask: Literal["singly", "together"] = Field(
        default="singly", description="API judges: one call a question (unless told), or one for those of a packet."
    )
    split: str | None = Field(default=None, description=SPLIT_HELP)
    ids: str | None = Field(default=None, description=IDS_HELP)
    order: str | None = Field(default=None, description=ORDER_HELP)
    variants: Path | None = Field(default=None, description="contrastive_variants.jsonl: ask its pairs, too (PairAcc).")
    scan_words: bool = Field(default=False, description="Look for words of the story drawn into the pictures (OCR).")
    reference: str | None = Field(
        default=None, description="The board that the others are held against, instead of every pair."
    )
    resamples: int = Field(
        default=10_000, ge=0, description="Bootstrap resamples for the intervals; 10000 unless told."
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        description="At most so many calls to a server at once; unless told 16, vllm: and sglang: 128.",
    )
    entrance: bool = Field(
        default=False,
        description="Ask the entrance test (six calls a judge, once) also where it costs more than a few cents and a "
        "tenth of the calls.",
    )
    no_entrance: bool = Field(default=False, description="Ask no entrance test.")
    batch: bool = Field(
        default=False, description="Ask APIs by their batches: cheaper, within a day. The command waits."
    )


class StudyOptions(RunOptions):
    """Which stories a suite or a comparison is about, how differences are tested, and what is measured beside."""

    reference: str | None = Field(
        default=None,
        description="The row or method that the others are held against; the suite's baseline, or every pair.",
    )
    resamples: int = Field(default=10_000, ge=0, description="Bootstrap resamples of stories; 10000 unless told.")
    metrics: Annotated[tuple[str, ...], Flag("--metrics", many=True)] = Field(
        default=(), description="Other papers' measures of the boards, with commas; `katha metrics --list`."
    )


def choose_stories(
    records: Sequence[StoryRecord], split: str | None, ids: str | None = None, source: object = None
) -> list[StoryRecord]:
    """Return the stories of `split` whose ids are among `ids`; None of either is all of them.

    split: `test` holds public and hidden test together. ids: with commas, or a file. source: where the stories came
    from, as a refusal names it.

    Raises:
        UsageError: no story is left, or an id is not a story's. InputFileError, RecordError: the file of ids is broken.
    """
    where = repr(str(source)) if isinstance(source, (str, Path)) else "The list"
    kept = list(records)
    if split is not None:
        wanted = TEST_SPLITS if split == "test" else (split,)
        kept = [record for record in kept if record.split in wanted]
        if not kept:
            known = sorted({record.split for record in records if record.split})
            there = f"There is {', '.join(known)}." if known else "No story names a split: see `katha bench split`."
            raise UsageError(f"{where} has no story of the split {split!r}.", hint=there)
    if ids is not None:
        named = dict.fromkeys(_read_ids(ids))
        strange = [name for name in named if name not in {record.story_id for record in kept}]
        if strange or not named:
            told = f"no story {strange[0]!r}" if strange else "no story of --ids"
            told += f" and {len(strange) - 1} more of --ids" if len(strange) > 1 else ""
            raise UsageError(f"{where} has {told}{f' in the split {split!r}' if split else ''}.")
        kept = [record for record in kept if record.story_id in named]
    return kept


def _read_ids(given: str) -> list[str]:
    """Return the ids of a list with commas, or those in a file."""
    path = Path(given)
    if "," in given or not path.is_file():
        return [name.strip() for name in given.split(",") if name.strip()]
    if path.suffix != ".jsonl":
        return [line.strip() for line in read_text(path).splitlines() if line.strip()]
    found = []
    for number, line in iter_lines(path):
        try:
            value = loads(line)
        except ValueError as error:
            raise InputFileError(f"{str(path)!r}, line {number}, is not JSON: {error}.") from error
        name = value.get("story_id") if isinstance(value, dict) else value
        if not isinstance(name, str):
            raise RecordError(f"{str(path)!r}, line {number}, has no story_id.")
        found.append(name)
    return found


def choose_questions(asked: str | None, records: Sequence[StoryRecord]) -> Selection:
    """Return which questions count: as asked, else `reporting` where the stories carry roles, else all.

    Raises:
        UsageError: no such half.
    """
    known: tuple[Selection, ...] = get_args(Selection)
    if asked is not None:
        found = next((half for half in known if half == asked), None)
        if found is None:
            raise UsageError(f"--questions {asked!r} is not known.", hint=f"Known: {', '.join(known)}.")
        return found
    split = any(item.role for record in records for item in record.recoverability_questions)
    return "reporting" if split else "all"


def read_pairs(path: Path | None, records: Sequence[StoryRecord], evaluator: EvaluatorSpec) -> list[ContrastiveVariant]:
    """Return the variants of `path` whose stories are given, by id.

    Raises:
        UsageError: the evaluator has no contrastives, or no variant belongs to a story that is given.
        InputFileError, RecordError: a line is not a variant (file and line are named).
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


def prepare_stories(
    source: str | Path | None, seed: int = 42, *, evaluator: EvaluatorSpec | None = None
) -> Callable[[Sequence[StoryRecord]], list[StoryRecord]]:
    """Return a function that gives stories their questions (if they bring none) and every question its options.

    Questions, roles and options that are there stay. source: the file or folder that they came from, if they did
    (`#story_id` does not matter): the contrastive variants beside it are the first distractors.
    """
    path = Path(str(source).partition("#")[0]) if source is not None else None

    def prepare(records: Sequence[StoryRecord]) -> list[StoryRecord]:
        asked = _asked(records, seed, evaluator)
        variants = _variants_beside(path) if evaluator is None or evaluator.contrastives else {}
        everything = [item for record in asked for item in _owned(record)]
        pool = sorted(everything, key=lambda item: digest([seed, item.story_id, item.question_id]))[:_POOL]
        ready = []
        for record in asked:
            own = sorted(_owned(record), key=lambda item: item.question_id)
            others = [item for item in pool if item.story_id != record.story_id]
            mine = variants.get(record.story_id, [])
            questions = [fill_options(item, own, others, mine, seed, record.story_text) for item in _owned(record)]
            ready.append(record.model_copy(update={"recoverability_questions": questions}))
        return ready

    return prepare


def _asked(records: Sequence[StoryRecord], seed: int, spec: EvaluatorSpec | None) -> list[StoryRecord]:
    """Return the stories with the evaluator's questions."""
    if spec is not None and not spec.own:
        ready = [record if record.scenes else _with_scenes(record) for record in records]
    else:
        ready = [record if record.recoverability_questions else _with_questions(record) for record in records]
    if spec is None:
        return ready
    found = []
    pool = sorted(ready, key=lambda record: record.story_id)[:_POOL]
    for record in ready:
        others = [other for other in pool if other.story_id != record.story_id]
        questions = evaluator_questions(record, spec, others, seed)
        found.append(record.model_copy(update={"recoverability_questions": questions}))
    return found


def _variants_beside(source: Path | None) -> dict[str, list[ContrastiveVariant]]:
    """Return the contrastive variants that lie beside the stories, by story."""
    found: dict[str, list[ContrastiveVariant]] = {}
    folder = source if source is None or source.is_dir() else source.parent
    path = folder / VARIANTS_FILE if folder is not None else None
    for number, line in iter_lines(path) if path is not None and path.is_file() else ():
        try:
            variant = ContrastiveVariant.model_validate_json(line)
        except ValueError as error:
            raise InputFileError(f"{str(path)!r}, line {number}, is not a contrastive variant.") from error
        found.setdefault(variant.base_story_id, []).append(variant)
    return found


def _owned(record: StoryRecord) -> list[Question]:
    """Return the questions, each with its story's id (a record's own questions may leave it out)."""
    return [
        item if item.story_id == record.story_id else item.model_copy(update={"story_id": record.story_id})
        for item in record.recoverability_questions
    ]


def _with_questions(record: StoryRecord) -> StoryRecord:
    """Return the story with the questions that its transitions call for; unchanged if it cannot be planned."""
    try:
        plan = make_plan(record, Settings(panels=len(record.scenes) or PlanRequest().panels))
    except UsageError:
        return record
    return record.model_copy(update={"recoverability_questions": build_questions(record, plan)})


def _with_scenes(record: StoryRecord) -> StoryRecord:
    """Return a plain story with the scenes that the rule planner reads in it; unchanged if it cannot be planned."""
    try:
        plan = make_plan(record, Settings(panels=PlanRequest().panels))
    except UsageError:
        return record
    led = {item.to_scene: item for item in plan.transitions}
    scenes = [
        Scene(
            story_id=record.story_id,
            scene_index=panel.index,
            scene_text=panel.caption,
            characters=panel.characters,
            objects=[item for item in panel.must_show if item not in panel.characters],
            action=led[panel.index].action if panel.index in led else panel.caption,
            emotion=led[panel.index].emotion if panel.index in led else None,
        )
        for panel in plan.panels
    ]
    return record.model_copy(update={"scenes": scenes})
