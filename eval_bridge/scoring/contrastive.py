"""Contrastive variants: pairs (Sec. C.8) and twins with an STG of their own (Table 4); and stated confidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.matching.match import Matching, match
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.scoring.gate import why_not
from katha.eval_bridge.scoring.intervals import share_interval
from katha.eval_bridge.scoring.outcomes import ENSEMBLE, MISSING, RIGHT, WRONG, Cells, Outcomes, collect, majority
from katha.eval_bridge.scoring.rows import compare
from katha.eval_bridge.scoring.statistics import (
    BOTH,
    IMAGE,
    TEXT,
    Floats,
    averages,
    points,
    story_counts,
)
from katha.jsonio import digest, iter_lines, loads
from katha.schema import CONDITIONS, Answer, Confidence, ContrastiveVariant, Question, StoryRecord
from katha.schema.scores import ConfidenceRow, ContrastGap, PairAccuracy, PairScores, Selection, Trajectory

# Pairwise contrastive scoring (Sec. C.8): of the story's scene and its changed twin, which one do the images show?
#
# A pair is put as a question of its own, `pair:VARIANT_ID`, under the image-only condition, with the two texts and
# `Unclear` as options; their order depends on the seed and the variant's id alone. Only the source's text is right
# (Eq. 29); `Unclear` and the twin are confusion (Eq. 30).

PAIR_PREFIX = "pair:"
_ASKED = "Which of these two does the storyboard show?"


def iter_variants(path: Path) -> Iterator[ContrastiveVariant]:
    """Stream `contrastive_variants.jsonl`.

    Raises:
        InputFileError: a line is not JSON. RecordError: it is not a variant, or repeats an id; file and line are named.
    """
    seen: set[str] = set()
    for number, line in iter_lines(path):
        try:
            variant = ContrastiveVariant.model_validate(loads(line))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "the record"
            raise RecordError(f"{path}, line {number}, field {field!r}: {first['msg']}.") from error
        except ValueError as error:
            raise InputFileError(f"{path}, line {number} is not JSON: {error}.") from error
        if variant.variant_id in seen:
            raise RecordError(f"{path}, line {number}: the variant id {variant.variant_id!r} was used before.")
        seen.add(variant.variant_id)
        yield variant


def pair_question(record: StoryRecord, variant: ContrastiveVariant, seed: int = 42) -> Question:
    """Return the question that decides a pair: scene against changed scene, or the stories where no scene is named.

    Raises:
        RecordError: the variant has no changed text, or the same text as its story.
    """
    scenes = {scene.scene_index: scene.scene_text for scene in record.scenes}
    source, twin = scenes.get(variant.changed_scene_id or 0, ""), variant.contrastive_scene_text.strip()
    if not source or not twin:
        source, twin = record.story_text, variant.contrastive_story_text.strip()
    if not twin or twin == source:
        raise RecordError(
            f"Variant {variant.variant_id!r} of story {record.story_id!r} changes no text.",
            hint="Check it with `katha bench validate`.",
        )
    swapped = int(digest([seed, variant.variant_id])[:8], 16) % 2
    options = [twin, source] if swapped else [source, twin]
    return Question(
        question_id=f"{PAIR_PREFIX}{variant.variant_id}",
        story_id=record.story_id,
        question_type="consequence",
        question=_ASKED,
        gold_answer=source,
        accepted_answers=[source],
        target_scene=variant.changed_scene_id,
        options=[*options, UNCLEAR],
    )


def pair_questions(
    records: Iterable[StoryRecord], variants: Iterable[ContrastiveVariant], seed: int = 42
) -> dict[str, list[Question]]:
    """Return the questions that decide the pairs, by story; variants of other stories are left out.

    Raises:
        RecordError: a variant changes no text.
    """
    found: dict[str, list[Question]] = {}
    for question in PairScorer(records, sorted(variants, key=lambda item: item.variant_id), seed).questions.values():
        found.setdefault(question.story_id, []).append(question)
    return found


class PairScorer:
    """Takes the pair rows out of a stream of answers, then scores them."""

    def __init__(self, records: Iterable[StoryRecord], variants: Iterable[ContrastiveVariant], seed: int = 42) -> None:
        stories = {record.story_id: record for record in records}
        self.kinds: dict[str, str] = {}
        self.questions: dict[str, Question] = {}
        self.strangers = self.inactive = 0
        self.verdicts: dict[tuple[str, str], dict[str, int]] = {}
        for variant in variants:
            if not variant.has_variant:  # Table 15: the record is there, and nothing was changed
                self.inactive += 1
                continue
            record = stories.get(variant.base_story_id)
            if record is None:
                self.strangers += 1
                continue
            question = pair_question(record, variant, seed)
            self.questions[question.question_id] = question
            self.kinds[question.question_id] = variant.change_type

    def others(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """Yield every row that is about no pair; those that are about one are kept here (the last one counts)."""
        for row in answers:
            if not row.question_id.startswith(PAIR_PREFIX):
                yield row
                continue
            question = self.questions.get(row.question_id)
            if question is None or row.method is None or row.condition != "image":
                continue
            outcome = MISSING
            if row.status == "ok" and row.answer is not None:
                outcome = RIGHT if match(row, question, "exact-set").right else WRONG
            self.verdicts.setdefault((row.method, row.judge), {})[row.question_id] = outcome

    def scores(self) -> PairScores:
        """Return PairAcc and confusion in percentage points, by method and judge (and the ensemble of several).

        What was not answered counts in `n_unscored`.
        """
        methods = sorted({method for method, _ in self.verdicts})
        judges = sorted({judge for _, judge in self.verdicts})
        pairs = sorted(self.questions)
        found: dict[str, dict[str, PairAccuracy]] = {}
        for method in methods:
            given = [self.verdicts.get((method, judge), {}) for judge in judges]
            votes = np.array([[row.get(pair, MISSING) for pair in pairs] for row in given], dtype=np.int8)
            rows = dict(zip(judges, votes, strict=True)) | ({ENSEMBLE: majority(votes)} if len(judges) > 1 else {})
            found[method] = {judge: self._entry(pairs, cells) for judge, cells in rows.items()}
        notes = [f"{self.strangers} variants belong to stories that are not given."] if self.strangers else []
        notes += [f"{self.inactive} variants are marked as inactive (has_variant)."] if self.inactive else []
        if not methods:
            notes.append(f"No row answers a pair (question ids {PAIR_PREFIX}VARIANT_ID), so there is no PairAcc.")
        return PairScores(n_pairs=len(pairs), methods=found, notes=notes)

    def _entry(self, pairs: list[str], cells: Cells) -> PairAccuracy:
        scored, right = cells != MISSING, cells == RIGHT
        count = int(scored.sum())
        accuracy = 100.0 * float(right.sum()) / count if count else None
        kinds = np.array([self.kinds[pair] for pair in pairs])
        stories = [self.questions[pair].story_id for pair in pairs]
        return PairAccuracy(
            n=count,
            n_unscored=len(pairs) - count,
            pair_accuracy=accuracy,
            confusion=100.0 - accuracy if accuracy is not None else None,
            ci95=share_interval(stories, right.tolist(), counted=scored.tolist()),
            by_change_type={
                str(kind): 100.0 * float(right[own].mean())
                for kind in sorted(set(kinds.tolist()))
                if (own := scored & (kinds == kind)).any()
            },
        )


# STG of contrastive twins beside that of their stories (Table 4, surface appearance). A twin is a story of its own,
# drawn and asked as any other; its record names the story that it was made from. The two share characters, things and
# places: what tells them apart is what one transition means.

TWIN_OF = "variant_of"
"""Under this key a twin's provenance names the story that it was made from."""


def twins_of(records: Iterable[StoryRecord]) -> dict[str, str]:
    """Return the twins among the stories, each with its source."""
    return {record.story_id: str(source) for record in records if (source := record.provenance.get(TWIN_OF))}


def contrast_gaps(
    records: Sequence[StoryRecord],
    answers: Iterable[Answer],
    *,
    matching: Matching,
    questions: Selection,
    resamples: int,
    seed: int,
    pooled: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, dict[str, ContrastGap]]:
    """Return, by method and judge, what is lost of the stories that have a twin, and of their twins.

    Only stories that have a valid question of their own and of a twin count, so that the difference is paired; the
    twins of one story count together.
    """
    outcomes = collect(records, answers, matching=matching, selection=questions)
    twins = twins_of(records)
    sources = sorted({source for source in twins.values() if source in outcomes.stories})
    groups = {name: list(names) for name, names in (pooled or {}).items()} or {
        name: [name] for name in outcomes.methods
    }
    found: dict[str, dict[str, ContrastGap]] = {}
    for method, members in groups.items():
        places = [outcomes.methods.index(name) for name in members if name in outcomes.methods]
        for judge, name in enumerate(outcomes.judges) if places else ():
            cells = outcomes.cells[places, judge]
            scored = (cells != MISSING).all(axis=1)
            if why_not(outcomes, places, judge, scored, scored & (cells[:, BOTH] == RIGHT)) is not None:
                continue
            ours, theirs = _counts(outcomes, places, judge, sources, twins)
            found.setdefault(method, {})[name] = _gap(ours, theirs, resamples, seed)
    return found


def _counts(
    outcomes: Outcomes, places: Sequence[int], judge: int, sources: Sequence[str], twins: Mapping[str, str]
) -> tuple[Floats, Floats]:
    """Return the counts of the sources and of their twins, each of shape (sources, dimensions, 4)."""
    total: Floats | None = None
    for place in places:
        cells = outcomes.cells[place, judge]
        valid: NDArray[np.bool_] = (cells != MISSING).all(axis=0) & (cells[BOTH] == RIGHT)
        counts = story_counts(cells == RIGHT, valid, outcomes.cell_of, len(outcomes.stories))
        total = counts if total is None else total + counts
    assert total is not None
    own = np.stack([total[outcomes.stories.index(source)] for source in sources]) if sources else total[:0]
    other = np.zeros_like(own)
    for at, story in enumerate(outcomes.stories):
        if twins.get(story) in sources:
            other[sources.index(twins[story])] += total[at]
    return own, other


def _gap(ours: Floats, theirs: Floats, resamples: int, seed: int) -> ContrastGap:
    both: NDArray[np.bool_] = (ours.sum(axis=(1, 2)) > 0) & (theirs.sum(axis=(1, 2)) > 0)
    (difference,) = compare([(theirs, ours, both)], resamples, seed)
    return ContrastGap(
        n_stories=int(both.sum()),
        source=_trajectory(ours[both]),
        contrast=_trajectory(theirs[both]),
        difference=difference.difference,
        ci95=difference.ci95,
        p_bootstrap=difference.p_bootstrap,
        wilcoxon=difference.wilcoxon,
    )


def _trajectory(counts: Floats) -> Trajectory:
    means = averages(counts.sum(axis=0))
    return Trajectory(
        n=int(counts[..., 0].sum()),
        text=points(means[TEXT]),
        image=points(means[IMAGE]),
        stg=points(means[TEXT] - means[IMAGE]),
    )


# How often a judge is right when it says how sure it is: the calibration that needs no human labels.

LEVELS: tuple[Confidence, ...] = get_args(Confidence)


def confidence_table(
    questions: Mapping[tuple[str, str], Question], answers: Iterable[Answer], judges: Sequence[str], matching: Matching
) -> list[ConfidenceRow]:
    """Return, by judge, condition and stated confidence, `n` answers and the per cent `right` (None without any)."""
    counts: dict[tuple[str, str, Confidence], list[int]] = {}
    for row in answers:
        question = questions.get((row.story_id, row.question_id))
        if question is None or row.status != "ok" or row.confidence is None:
            continue
        right = match(row, question, matching).right
        if right is not None:
            cell = counts.setdefault((row.judge, row.condition, row.confidence), [0, 0])
            cell[0] += 1
            cell[1] += right
    return [
        ConfidenceRow(judge=judge, condition=condition, confidence=level, n=n, right=100.0 * right / n if n else None)
        for judge in judges
        for condition in CONDITIONS
        for level in LEVELS
        for n, right in [counts.get((judge, condition, level), [0, 0])]
    ]
