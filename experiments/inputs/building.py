"""Build benchmark files: questions and contrastive variants of stories, made by rule or by a model, and checked; and
measure what planners make of stories before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from pydantic import BaseModel, ValidationError

from katha.agents.context import make_plan
from katha.config import Settings
from katha.errors import ReplyError, UsageError
from katha.eval_bridge.bench.mix import Mauve, continue_stories, mauve, mix_stories, perplexities, vocabulary_size
from katha.eval_bridge.bench.vistorybench import Language, copy_references, copy_results, read_dataset
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.questions.build import build_questions
from katha.eval_bridge.questions.free import write_free_questions
from katha.eval_bridge.questions.writing import (
    check_questions,
    make_variants,
    write_questions,
)
from katha.eval_bridge.scoring.contrastive import TWIN_OF, iter_variants
from katha.jsonio import refuse_overwriting, write_bytes_atomic
from katha.models.base import TextModel
from katha.models.calls import forgetting_calls
from katha.models.registry import make_model
from katha.planners.quality import mean_quality, plan_quality
from katha.plugin_boundary import checked
from katha.protocols import Judge, Planner, PlanRequest
from katha.reading import require_reader
from katha.registry import default_registry
from katha.schema import MORAL_LABELS, ContrastiveVariant, Question, StoryRecord, Transition
from katha.stories import iter_records, load_stories

_RULE = "rule"
"""The name by which the installed reader writes, and no model."""


@dataclass(frozen=True)
class Rejection:
    """Something that failed a check and was not kept."""

    story: str
    item: str
    text: str
    reason: str


@dataclass(frozen=True)
class BuildCounts:
    """How many were kept, and what was not."""

    kept: int
    rejected: list[Rejection]


@dataclass(frozen=True)
class PlannerQuality:
    """One planner: how many stories it planned, why it did not plan the others, and the means of the measures."""

    stories: int
    failed: dict[str, str]
    quality: dict[str, float | None]


def write_story_questions(
    stories: Path, out: Path, *, by: str, planner: str | None, judge: str | None, base_url: str | None
) -> BuildCounts:
    """Write stories with recoverability questions made from their transitions into `out`.

    by: `rule`, or a model's name. planner: who reads transitions where a record has none; the default's unless told.
    judge: who is asked each question from the text alone, as a check.

    Raises:
        UsageError: a story, model or judge is wrong. ModelError: the model cannot be used.
    """
    refuse_overwriting(out, [stories])
    if by == _RULE:
        require_reader("Questions")
    reader = _reader(judge, base_url)
    made: list[StoryRecord] = []
    rejected: list[Rejection] = []
    for record in iter_records(stories):
        built = check_questions(_questions(record, by, planner, base_url), record.story_text, reader)
        made.append(record.model_copy(update={"recoverability_questions": built.kept}))
        rejected += [Rejection(record.story_id, item.item, item.text, item.reason) for item in built.rejected]
    _write(out, made)
    return BuildCounts(sum(len(record.recoverability_questions) for record in made), rejected)


def write_story_variants(
    stories: Path, out: Path, *, by: str, reader: str | None, judge: str | None, base_url: str | None
) -> BuildCounts:
    """Write two contrastive variants of each story with scenes into `out`.

    by: the model that writes. reader: the model that has to recognise the change, the writer unless told. judge: who is
    asked the record's questions from the changed text, as a further check.

    Raises:
        UsageError: a story, model or judge is wrong, or no model is named. ModelError, ReplyError: the model cannot be
            used, or wrote nothing of use.
    """
    refuse_overwriting(out, [stories])
    if by == _RULE:
        raise UsageError("Variants are not made by rule any more.", hint="Name a model: --by openai:MODEL.")
    asked, model = _reader(judge, base_url), make_model(by, base_url=base_url)
    other = make_model(reader, base_url=base_url) if reader is not None else None
    kept: list[ContrastiveVariant] = []
    rejected: list[Rejection] = []
    for record in iter_records(stories):
        with forgetting_calls(ReplyError):
            built = make_variants(model, record, reader=other, judge=asked)
        kept += built.kept
        rejected += [Rejection(record.story_id, item.item, item.text, item.reason) for item in built.rejected]
    _write(out, kept)
    return BuildCounts(len(kept), rejected)


@dataclass(frozen=True)
class MixedSet:
    """An evaluation set at a mixing ratio: how many stories of which source, what could not be written, how near it is
    to the closed stories (MAUVE, Table 1), how many different words either has, and, where a model was named, the
    perplexity of either (Table 3)."""

    ratio: float
    generator: str
    stories: int
    closed: int
    opened: int
    failed: dict[str, str]
    mauve: Mauve
    words_before: int
    words: int
    perplexity_before: float | None = None
    perplexity: float | None = None


def write_mixed_set(
    closed: Path,
    opened: Path,
    out: Path,
    *,
    ratio: float,
    by: str | None,
    base_url: str | None,
    seed: int,
    mauve_model: str,
    ppl_model: str | None = None,
) -> MixedSet:
    """Write as many stories as `closed` has into `out`, mixed with `opened` at a ratio (VCMS, Sec. 4).

    by: the model that goes on from the closed stories' beginnings; None writes the mix as it is drawn. ppl_model: whose
    perplexity of either set is told.

    Raises:
        UsageError: the ratio, the stories or the model are wrong. ModelError: the model cannot be used.
    """
    refuse_overwriting(out, [closed, opened])
    before, others = list(iter_records(closed)), list(iter_records(opened))
    mixed = mix_stories(before, others, ratio, seed)
    made, failed = list(mixed.stories), dict[str, str]()
    if by is not None:
        made, failed = continue_stories(make_model(by, base_url=base_url), before, mixed, ratio=ratio, seed=seed)
    _write(out, made)
    texts, written = [story.story_text for story in before], [story.story_text for story in made]
    before_by, after_by = perplexities([texts, written], ppl_model) if ppl_model is not None else (None, None)
    opened_count = sum(source == "open" for source in mixed.sources.values())
    return MixedSet(
        ratio=ratio,
        generator=by or "none: the mix as it is drawn",
        stories=len(made),
        closed=len(mixed.sources) - opened_count,
        opened=opened_count,
        failed=failed,
        mauve=mauve(texts, written, model=mauve_model, seed=seed),
        words_before=vocabulary_size(texts),
        words=vocabulary_size(written),
        perplexity_before=before_by,
        perplexity=after_by,
    )


@dataclass(frozen=True)
class Dataset:
    """What was read of ViStoryBench: stories, shots, characters' pictures, boards, and which boards are missing."""

    stories: int
    shots: int
    pictures: int
    boards: int
    missing: dict[str, str]


def write_vistorybench(dataset: Path, out: Path, *, results: Path | None, language: str, lite: bool) -> Dataset:
    """Write `stories.jsonl`, `characters/` and, of a method's results, `boards/` into the new folder `out`.

    Raises:
        UsageError: the language is not known, or `out` holds something. InputFileError, RecordError: the dataset cannot
        be read.
    """
    if language not in get_args(Language):
        raise UsageError(f"--language is {' or '.join(get_args(Language))}, not {language!r}.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {str(out)!r} exists and is not an empty folder.", hint="Name a new one.")
    records = list(read_dataset(dataset, language=cast(Language, language), lite=lite))
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "stories.jsonl", records)
    pictures = copy_references(dataset, records, out / "characters")
    missing = copy_results(results, records, out / "boards") if results is not None else {}
    boards = len(records) - len(missing) if results is not None else 0
    return Dataset(len(records), sum(len(record.scenes) for record in records), pictures, boards, missing)


def write_contrasts(
    stories: Path,
    variants: Path,
    out: Path,
    *,
    by: str | None = None,
    reader: str | None = None,
    base_url: str | None = None,
) -> BuildCounts:
    """Write the stories, and each one's active contrastive variants as stories of their own beside it, into `out`.

    A twin has the variant's text and changed scene, the story's transitions, empty around that scene, and the
    story's own questions but for those that the change is about; the moral question takes the variant's moral. `by`
    names a model that writes questions of the changed text, which `reader` checks as all free questions are checked.
    Questions that a variant brings itself are used as they are. Drawn and judged as any other story, twins stand beside
    their sources in `scores.json` under `contrasts` (Table 4).

    Raises:
        UsageError: a file cannot be read, or is `out`; no variant belongs to a story, or a model is wrong.
        ModelError, ReplyError: the model cannot be used, or wrote nothing of use.
    """
    refuse_overwriting(out, [stories, variants])
    model = make_model(by, base_url=base_url) if by is not None else None
    checks = make_model(reader, base_url=base_url) if reader is not None else None
    known: dict[str, list[ContrastiveVariant]] = {}
    for variant in iter_variants(variants):
        known.setdefault(variant.base_story_id, []).append(variant)
    records, rejected, twins = load_stories(stories), [], 0
    made: list[StoryRecord] = []
    for record in records:
        made.append(record)
        for variant in known.get(record.story_id, ()):
            twin = (
                _twin(record, variant, model, checks)
                if variant.has_variant
                else "it is marked as inactive (has_variant)"
            )
            if isinstance(twin, str):
                rejected.append(Rejection(record.story_id, variant.variant_id, variant.change_type, twin))
            else:
                made.append(twin)
                twins += 1
    if not twins:
        raise UsageError(f"{str(variants)!r} holds no variant of these stories that changes a text.")
    _write(out, made)
    return BuildCounts(twins, rejected)


def _twin(
    record: StoryRecord, variant: ContrastiveVariant, model: TextModel | None, reader: TextModel | None
) -> StoryRecord | str:
    """Return a variant as a story of its own, or why it cannot be one."""
    at, text = variant.changed_scene_id, variant.contrastive_scene_text.strip()
    scenes = [
        item.model_copy(
            update={"scene_text": text, "action": text, "visual_must_show": [], "story_id": variant.variant_id}
        )
        if item.scene_index == at and text
        else item.model_copy(update={"story_id": variant.variant_id})
        for item in record.scenes
    ]
    told = variant.contrastive_story_text.strip() or " ".join(item.scene_text for item in scenes)
    if not told or told == record.story_text:
        return "it changes no text"
    bare = record.model_copy(
        update={
            "story_id": variant.variant_id,
            "story_text": told,
            "scenes": scenes,
            "transitions": [],
            "recoverability_questions": [],
            "moral_label": variant.contrastive_moral or record.moral_label,
            "provenance": {**record.provenance, TWIN_OF: record.story_id, "change_type": variant.change_type},
        }
    )
    steps = [  # nobody has said what the changed ones are: nothing but their places stays
        item
        if at is not None and at not in item.pair
        else Transition(from_scene=item.from_scene, to_scene=item.to_scene, story_id=variant.variant_id)
        for item in record.transitions
    ]
    twin = bare.model_copy(update={"transitions": steps})
    given = (variant.model_extra or {}).get("recoverability_questions")
    if isinstance(given, list):
        try:
            asked = [Question.model_validate(item) for item in given]
        except ValidationError as error:
            first = error.errors()[0]
            return f"its question field {'.'.join(map(str, first['loc']))!r}: {first['msg']}"
    else:
        asked = _left_alone(record, variant)
        if model is not None:
            with forgetting_calls(ReplyError):
                written = write_free_questions(model, twin, reader=reader).kept
            names = {item.question_id for item in asked}
            asked += [item for item in written if item.question_type != "moral" and item.question_id not in names]
    owned = [item.model_copy(update={"story_id": variant.variant_id}) for item in asked]
    return twin.model_copy(update={"recoverability_questions": owned}) if owned else "no question can be asked of it"


def _left_alone(record: StoryRecord, variant: ContrastiveVariant) -> list[Question]:
    """Return the story's questions that the change leaves alone, and the moral's with the variant's moral."""
    kept = []
    for item in record.recoverability_questions:
        about = {item.target_scene, *item.evidence_scenes, *(item.target_transition or ())}
        if item.question_type == "moral":
            moral = variant.contrastive_moral
            change = {"gold_answer": moral, "accepted_answers": [moral], "options": None}
            kept += [item.model_copy(update=change)] if moral and item.gold_answer in MORAL_LABELS else []
        elif variant.changed_scene_id not in about:
            kept.append(item)
    return kept


def measure_planners(stories: Path, planners: Sequence[str], panels: int | None = None) -> dict[str, PlannerQuality]:
    """Plan stories with each planner and measure how much of what must be seen the prompts say; nothing is drawn."""
    records = list(iter_records(stories))
    found: dict[str, PlannerQuality] = {}
    for name in dict.fromkeys(planners):
        made: Planner = checked(default_registry("planners").create(name), Planner, f"planner {name!r}")
        rows, failed = [], {}
        for record in records:
            try:
                plan = made.plan(record, PlanRequest(panels=len(record.scenes) or panels or PlanRequest().panels))
            except UsageError as error:
                failed[record.story_id] = error.message
            else:
                rows.append(plan_quality(plan, record))
        found[name] = PlannerQuality(len(rows), failed, mean_quality(rows))
    return found


def _questions(record: StoryRecord, by: str, planner: str | None, base_url: str | None) -> list[Question]:
    named = "oracle" if record.transitions else planner
    settings = Settings(planner=named) if named is not None else Settings()
    plan = make_plan(record, settings.model_copy(update={"panels": len(record.scenes) or PlanRequest().panels}))
    if by == _RULE:
        return build_questions(record.model_copy(update={"recoverability_questions": []}), plan)
    with forgetting_calls(ReplyError):
        return write_questions(make_model(by, base_url=base_url), record, plan.transitions)


def _reader(name: str | None, base_url: str | None) -> Judge | None:
    # A base URL is also the model's: a judge that calls no server does without it.
    takes = base_url if name is not None and name.startswith(("openai:", "anthropic:")) else None
    return make_judges([name], base_url=takes)[0][1] if name is not None else None


def _write(out: Path, records: Iterable[BaseModel]) -> None:
    write_bytes_atomic(out, "".join(f"{record.model_dump_json()}\n" for record in records).encode("utf-8"))
