"""From rows to outcomes (right, wrong or missing) to `scores.json` (Secs. 3.4 to 3.6, B.1 to B.4, D).

Blocks: `raw` takes every scored question, `filtered` those right under text+image (Eq. 16), `common_valid` those valid
for every method. A question is scored when all three conditions have an outcome. Every number is in percentage points;
what cannot be computed is None, with a sentence in `notes`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from katha.errors import RecordError
from katha.eval_bridge.matching.match import Matching, match, moral_label, word_rule
from katha.eval_bridge.scoring import statistics
from katha.eval_bridge.scoring.statistics import BOTH, IMAGE, TEXT, Floats, averages, interval, points, story_gaps
from katha.schema import (
    CONDITIONS,
    DIMENSIONS,
    LATENT_DIMENSIONS,
    MORAL_LABELS,
    Answer,
    Condition,
    Question,
    StoryRecord,
)
from katha.schema.scores import (
    Block,
    BlockIntervals,
    BlockName,
    Bootstrap,
    Comparison,
    DimensionScore,
    JudgeScores,
    MethodScores,
    MoralTarget,
    Scores,
    Selection,
)

ENSEMBLE = "ensemble"
CALIBRATED = "ensemble-calibrated"
"""The judge that weighs the others as people's labels taught it (see `gold_ensemble`)."""
MISSING, WRONG, RIGHT = -1, 0, 1
_NO_ROW = -2
_LEVEL = {None: 0, "low": 1, "medium": 2, "high": 3}
BLOCKS: tuple[BlockName, ...] = ("raw", "filtered", "common_valid")
COMPARED: tuple[BlockName, ...] = ("filtered", "common_valid")
UNSCORED = "no question has an outcome under all three conditions"
"""What the note of a board without numbers says of it."""

Cells = NDArray[np.int8]


@dataclass(frozen=True)
class Outcomes:
    """Everything that scoring needs, in an order that depends on names alone.

    questions: (Q,) sorted by story and id. story_of, dimension_of: (Q,) places in `stories` and DIMENSIONS. cells: of
    shape (methods, judges, conditions, Q), each RIGHT, WRONG or MISSING; `judges` has the ensemble last if there are
    several. confidence: the same without the ensembles; 0 none stated, 1 low, 2 medium, 3 high. answered: (methods,
    stories), whether any row about the method's images is about that story. failures: by (method, judge), what most of
    the rows that are no answers say; a method of None stands for every method's text.
    """

    stories: tuple[str, ...]
    questions: tuple[Question, ...]
    story_of: NDArray[np.intp]
    dimension_of: NDArray[np.intp]
    methods: tuple[str, ...]
    judges: tuple[str, ...]
    cells: Cells
    confidence: Cells
    answered: NDArray[np.bool_]
    failures: Mapping[tuple[str | None, str], str]
    notes: tuple[str, ...]

    @cached_property
    def cell_of(self) -> NDArray[np.intp]:
        """The place of each question in `story_counts`, of shape (Q,)."""
        return self.story_of * len(DIMENSIONS) + self.dimension_of


class Aggregate(Protocol):
    """A way to make one judge of several."""

    def outcome(self, table: Cells, strength: Cells, names: Sequence[str]) -> Cells:
        """Return outcomes of shape (methods, conditions, Q) from those of `names` and how sure they were."""
        ...


def majority(votes: Cells) -> Cells:
    """Return the ensemble's outcome of `votes`, shape (judges, ...): right only with more than half of the votes cast.

    A failure is no vote. With fewer than half of the judges voting the outcome is MISSING. A tie is wrong (Sec. E.7).
    """
    cast = (votes >= WRONG).sum(axis=0)
    right = (votes == RIGHT).sum(axis=0)
    outcome = np.where(2 * right > cast, RIGHT, WRONG)
    return np.where((2 * cast < votes.shape[0]) | (cast == 0), MISSING, outcome).astype(np.int8)


def _select(records: Iterable[StoryRecord], selection: Selection) -> tuple[list[tuple[str, Question]], list[str]]:
    """Return the questions that count, sorted by story and id, and notes about them."""
    chosen: dict[tuple[str, str], Question] = {}
    stories: set[str] = set()
    unsplit = 0
    for record in records:
        if record.story_id in stories:
            raise RecordError(f"Story {record.story_id!r} is given twice.", hint="Keep one of the two records.")
        stories.add(record.story_id)
        for question in record.recoverability_questions:
            key = (record.story_id, question.question_id)
            if key in chosen:
                raise RecordError(f"Story {record.story_id!r} has the question {question.question_id!r} twice.")
            if selection == "all" or question.role in (selection, None):
                chosen[key] = question
                unsplit += selection != "all" and question.role is None
    notes = [f"{unsplit} questions carry no role and are counted as {selection}."] if unsplit else []
    return [(story, chosen[story, name]) for story, name in sorted(chosen)], notes


class _Rows:
    """Collects rows into cells; a later row replaces an earlier one with the same key."""

    def __init__(self, questions: Sequence[tuple[str, Question]], matching: Matching) -> None:
        self.matching = word_rule(matching)
        self.questions = questions
        self.place = {(story, question.question_id): at for at, (story, question) in enumerate(questions)}
        self.cells: dict[tuple[str | None, str], Cells] = {}  # outcomes and confidence: (2, conditions, questions)
        self.verdicts: dict[tuple[object, ...], int] = {}
        self.failed: dict[tuple[str | None, str], Counter[str]] = {}
        self.strangers = self.homeless = 0

    def add(self, row: Answer) -> None:
        at = self.place.get((row.story_id, row.question_id))
        question = self.questions[at][1] if at is not None else None
        if question is None or (row.role is not None and question.role is not None and row.role != question.role):
            self.strangers += 1
            return
        key = (row.method, row.judge)
        if row.status != "ok":
            told = self.failed.setdefault(key, Counter())
            told[f"{row.status}: {row.error}" if row.error else row.status] += 1
        if row.method is None and row.condition != "text":
            self.homeless += 1
            return
        if key not in self.cells:
            self.cells[key] = np.zeros((2, len(CONDITIONS), len(self.questions)), dtype=np.int8)
            self.cells[key][0] = _NO_ROW
        outcome = self._outcome(row, question, at)
        self.cells[key][:, CONDITIONS.index(row.condition), at] = outcome, _LEVEL[row.confidence]

    def _outcome(self, row: Answer, question: Question, at: int | None) -> int:
        if row.status != "ok" or row.answer is None:
            return MISSING
        key = (at, row.answer, row.condition, row.evidence_status, row.image_support)
        if key not in self.verdicts:
            right = match(row, question, self.matching).right
            self.verdicts[key] = MISSING if right is None else int(right)
        return self.verdicts[key]

    def table(self, methods: Sequence[str], judges: Sequence[str]) -> Cells:
        """Return outcomes and confidence, (2, methods, judges, conditions, questions), with shared text filled in."""
        table = np.zeros((2, len(methods), len(judges), len(CONDITIONS), len(self.questions)), dtype=np.int8)
        table[0] = _NO_ROW
        for m, method in enumerate(methods):
            for j, judge in enumerate(judges):
                if (method, judge) in self.cells:
                    table[:, m, j] = self.cells[method, judge]
                if (None, judge) in self.cells:
                    shared, own = self.cells[None, judge][:, TEXT], table[:, m, j, TEXT]
                    table[:, m, j, TEXT] = np.where(own[0] == _NO_ROW, shared, own)
        return table


def _depending(table: Cells, questions: Sequence[tuple[str, Question]]) -> Cells:
    """Where a question `depends_on` others (DSG): wrong where one of them is wrong, missing where one is missing."""
    place = {(story, question.question_id): at for at, (story, question) in enumerate(questions)}
    given = table.copy()
    for at, (story, question) in enumerate(questions):
        for name in (question.model_extra or {}).get("depends_on") or ():
            parent = place.get((story, name))
            if parent is not None:
                table[..., at] = np.minimum(table[..., at], given[..., parent])
    return table


def collect(
    records: Iterable[StoryRecord],
    answers: Iterable[Answer],
    *,
    matching: Matching,
    selection: Selection,
    calibrated: Aggregate | None = None,
) -> Outcomes:
    """Match every answer to a selected question. `calibrated` adds one more judge, made of the others.

    Raises:
        RecordError: a story or question is given twice. UsageError: unknown matching rule.
    """
    questions, notes = _select(records, selection)
    found = _Rows(questions, matching)
    for row in answers:
        found.add(row)
    methods = sorted({method for method, _ in found.cells if method is not None})
    judges = sorted({judge for _, judge in found.cells})
    for taken in {ENSEMBLE, CALIBRATED} & set(judges):
        raise RecordError(f"A judge must not be called {taken!r}.", hint="Rename it in the answers file.")
    table, sure = found.table(methods, judges)
    stories = tuple(sorted({story for story, _ in questions}))
    order = {story: at for at, story in enumerate(stories)}
    story_of = np.array([order[story] for story, _ in questions], dtype=np.intp)
    seen = (table[:, :, 1:] != _NO_ROW).any(axis=(1, 2))
    answered = np.zeros((len(methods), len(stories)), dtype=bool)
    for m in range(len(methods)):
        answered[m, story_of[seen[m]]] = True
    table = _depending(np.maximum(table, MISSING), questions)
    people, named = table, [*judges]
    if len(judges) > 1:
        table = np.concatenate([table, majority(np.moveaxis(people, 1, 0))[:, None]], axis=1)
        named.append(ENSEMBLE)
    if calibrated is not None and judges:
        table = np.concatenate([table, calibrated.outcome(people, sure, judges)[:, None]], axis=1)
        named.append(CALIBRATED)
    if found.strangers:
        notes.append(f"{found.strangers} rows answer no selected question of these stories and are left out.")
    if found.homeless:
        notes.append(f"{found.homeless} rows about images name no method and are left out.")
    return Outcomes(
        stories=stories,
        questions=tuple(question for _, question in questions),
        story_of=story_of,
        dimension_of=np.array([DIMENSIONS.index(question.question_type) for _, question in questions], dtype=np.intp),
        methods=tuple(methods),
        judges=tuple(named),
        cells=table,
        confidence=sure,
        answered=answered,
        failures={key: told.most_common(1)[0][0] for key, told in found.failed.items()},
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class Recoverability:
    """Recoverability in 0..1 by dimension, their mean (None when nothing was scored), and how many questions count."""

    dimensions: dict[str, float]
    mean: float | None
    n_questions: int
    n_scored: int


def recoverability(
    answers: Iterable[Answer], questions: Iterable[Question], matching: Matching, condition: Condition = "image"
) -> Recoverability:
    """Return R of Eqs. 17 and 18 on `questions` under one condition, without a validity filter: the term that steers.

    Give the answers of one board (or of one adjacent pair): the last row of each judge and question counts, several
    judges vote, and questions without an outcome are left out and counted.
    """
    asked = {question.question_id: question for question in questions}
    record = StoryRecord(
        story_id="board",
        story_text="board",
        recoverability_questions=[item.model_copy(update={"role": None}) for item in asked.values()],
    )
    rows = [
        row.model_copy(update={"method": "board", "story_id": "board", "role": None})
        for row in answers
        if row.condition == condition
    ]
    outcomes = collect([record], rows, matching=matching, selection="all")
    place = CONDITIONS.index(condition)
    cells = outcomes.cells[0, -1, place] if outcomes.methods else np.full(len(asked), MISSING, dtype=np.int8)
    scored = cells != MISSING
    rates: dict[str, float] = {
        name: float((cells[own] == RIGHT).mean())
        for at, name in enumerate(DIMENSIONS)
        if (own := scored & (outcomes.dimension_of == at)).any()
    }
    mean = sum(rates.values()) / len(rates) if rates else None
    return Recoverability(rates, mean, len(asked), int(scored.sum()))


class _Scorer:
    """One scoring: masks and counts of every (method, judge, block), then the numbers made from them."""

    def __init__(
        self, outcomes: Outcomes, resamples: int, seed: int, pooled: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.outcomes = outcomes
        self.methods = _pools(outcomes.methods, pooled or {})
        self.notes: list[str] = list(outcomes.notes)
        self.right = outcomes.cells == RIGHT
        self.scored = (outcomes.cells != MISSING).all(axis=2)
        self.valid = self.scored & self.right[:, :, BOTH]
        common = np.broadcast_to(self.valid.all(axis=0), self.valid.shape)
        self.masks = dict(zip(BLOCKS, (self.scored, self.valid, common), strict=True))
        self.counts = np.array(
            [
                [[self._count(members, judge, block) for block in BLOCKS] for judge in range(len(outcomes.judges))]
                for members in self.methods.values()
            ]
        )
        self.boot = self._boot(resamples, seed)

    def _count(self, members: Sequence[int], judge: int, block: BlockName) -> Floats:
        """Return the counts of a block over the boards of a method, of shape (stories, dimensions, COUNTS)."""
        out = self.outcomes
        own = (
            statistics.story_counts(self.right[m, judge], self.masks[block][m, judge], out.cell_of, len(out.stories))
            for m in members
        )
        total: Floats = np.sum(list(own), axis=0)
        return total

    def _boot(self, resamples: int, seed: int) -> Floats | None:
        """Return replicates of shape (resamples, methods, judges, blocks, 3); None with fewer than two stories."""
        if not self.outcomes.methods:
            return None
        if len(self.outcomes.stories) < 2 or resamples < 1:
            self.notes.append("Intervals and bootstrap p-values need at least two stories; they are null.")
            return None
        shape = self.counts.shape
        flat = self.counts.reshape(-1, *shape[3:])
        return statistics.replicates(flat, resamples, seed).reshape(resamples, *shape[:3], 3)

    def judge_scores(self, method: int, judge: int) -> JudgeScores:
        """Return the entry of one judge of one method."""
        out = self.outcomes
        name, members = list(self.methods.items())[method]
        n_scored, n_valid = (int(cells[members, judge].sum()) for cells in (self.scored, self.valid))
        n_questions = len(out.questions) * len(members)
        where = f"{name}, {out.judges[judge]}"
        if not n_scored:
            self.notes.append(f"{where}: {UNSCORED}.{self._failure(members, judge)}")
        raw, filtered, common = (
            self._block(method, judge, place, f"{where}, {block}") for place, block in enumerate(BLOCKS)
        )
        return JudgeScores(
            n_questions=n_questions,
            n_unscored=n_questions - n_scored,
            n_valid=n_valid,
            ambiguity_rate=100.0 * (n_scored - n_valid) / n_scored if n_scored else None,
            raw=raw,
            filtered=filtered,
            common_valid=common,
            moral_target=self._moral_target(members, judge, where),
        )

    def _failure(self, members: Sequence[int], judge: int) -> str:
        """Say what most of the rows that are no answers say, as one more sentence."""
        out = self.outcomes
        keys = [(name, out.judges[judge]) for name in (*(out.methods[at] for at in members), None)]
        told = next((out.failures[key] for key in keys if key in out.failures), None)
        return f" Most of the rows that are no answer say {told.rstrip('.')!r}." if told else ""

    def _block(self, method: int, judge: int, place: int, where: str) -> Block:
        total = self.counts[method, judge, place].sum(axis=0)
        dimensions = {name: _dimension(total[at]) for at, name in enumerate(DIMENSIONS)}
        missing = [name for name, values in dimensions.items() if not values.n]
        count = int(total[:, 0].sum())
        if missing:
            named = "any dimension" if len(missing) == len(DIMENSIONS) else ", ".join(missing)
            self.notes.append(f"{where}: no question of {named}; the averages leave it out.")
        text, image, both = (points(value) for value in averages(total))
        gaps = [gap for name in LATENT_DIMENSIONS if (gap := dimensions[name].gap) is not None]
        drawn = self.boot[:, method, judge, place] if self.boot is not None and count else None
        return Block(
            n=count,
            text=text,
            image=image,
            text_image=both,
            stg=text - image if text is not None and image is not None else None,
            ci95=intervals(drawn),
            dimensions=dimensions,
            latent_gap=sum(gaps) / len(gaps) if gaps else None,
        )

    def _moral_target(self, members: Sequence[int], judge: int, where: str) -> MoralTarget:
        """MTR (Eqs. 39 to 42) over the valid moral questions whose target is one of the twelve labels (Sec. D.8)."""
        out = self.outcomes
        kept = [
            (method, at, label)
            for method in members
            for at in np.flatnonzero(self.valid[method, judge])
            if out.questions[at].question_type == "moral"
            and (label := moral_label(out.questions[at].gold_answer)) is not None
        ]
        chance = 100.0 / len(MORAL_LABELS)
        if not kept:
            self.notes.append(f"{where}: no valid moral question has a label as its answer; moral_target is null.")
            return MoralTarget(text=None, image=None, gap=None, chance=chance, majority=None)
        labels = [label for _, _, label in kept]
        text, image = (
            100.0 * float(np.mean([self.right[method, judge, c, at] for method, at, _ in kept])) for c in (TEXT, IMAGE)
        )
        most = max(labels.count(label) for label in set(labels))
        return MoralTarget(text=text, image=image, gap=text - image, chance=chance, majority=100.0 * most / len(labels))

    def comparisons(self) -> list[Comparison]:
        """Return every pair of methods, judge and compared block; the family of the correction is all of them."""
        judges = range(len(self.outcomes.judges))
        pairs = list(combinations(range(len(self.methods)), 2))
        family = len(pairs) * len(judges) * len(COMPARED)
        return [self._compare(a, b, judge, block, family) for a, b in pairs for judge in judges for block in COMPARED]

    def _compare(self, a: int, b: int, judge: int, block: BlockName, family: int) -> Comparison:
        out, place = self.outcomes, BLOCKS.index(block)
        first, second = (self.counts[method, judge, place] for method in (a, b))
        stg_a, stg_b = (points(float(story_gaps(counts.sum(axis=0)))) for counts in (first, second))
        stories = story_gaps(first) - story_gaps(second)
        paired = stories[~np.isnan(stories)]
        ci95, p = None, None
        if self.boot is not None:
            drawn = self.boot[:, :, judge, place, TEXT] - self.boot[:, :, judge, place, IMAGE]
            difference = drawn[:, a] - drawn[:, b]
            ci95, p = interval(difference), statistics.paired_p(difference)
        names = list(self.methods)
        where = f"{names[a]} against {names[b]}, {out.judges[judge]}, {block}"
        test = statistics.wilcoxon(paired)
        if test.p is None:
            self.notes.append(f"{where}: no story's STG differs, so there is no Wilcoxon test.")
        return Comparison(
            a=names[a],
            b=names[b],
            judge=out.judges[judge],
            block=block,
            n_stories=int(paired.size),
            stg_a=stg_a,
            stg_b=stg_b,
            difference=stg_a - stg_b if stg_a is not None and stg_b is not None else None,
            ci95=ci95,
            p_bootstrap=p,
            wilcoxon=test,
            family=family,
            p_corrected=statistics.bonferroni(test.p, family),
        )


def _pools(methods: Sequence[str], pooled: Mapping[str, Sequence[str]]) -> dict[str, list[int]]:
    """Return the places in `methods` that make up each method of the result: those of a pool, or its own."""
    place = {name: at for at, name in enumerate(methods)}
    inside = {name for members in pooled.values() for name in members}
    pools = {name: [place[member] for member in members if member in place] for name, members in pooled.items()}
    pools |= {name: [at] for name, at in place.items() if name not in inside}
    return {name: members for name, members in sorted(pools.items()) if members}


def intervals(drawn: Floats | None) -> BlockIntervals:
    """Return the intervals of replicates of shape (resamples, 3); None without any."""
    if drawn is None:
        return BlockIntervals(text=None, image=None, stg=None)
    text, image = drawn[:, TEXT], drawn[:, IMAGE]
    return BlockIntervals(text=interval(text), image=interval(image), stg=interval(text - image))


def _dimension(counts: Floats) -> DimensionScore:
    number = int(counts[0])
    if not number:
        return DimensionScore(n=0, text=None, image=None, gap=None)
    text, image = 100.0 * float(counts[1]) / number, 100.0 * float(counts[2]) / number
    return DimensionScore(n=number, text=text, image=image, gap=text - image)


def score(
    records: Iterable[StoryRecord],
    answers: Iterable[Answer],
    *,
    matching: Matching,
    questions: Selection = "reporting",
    resamples: int = 10_000,
    seed: int = 42,
    frozen: bool = False,
    invalid: Mapping[str, Mapping[str, str]] | None = None,
    pooled: Mapping[str, Sequence[str]] | None = None,
    calibrated: Aggregate | None = None,
) -> Scores:
    """Return the `Scores` (`scores.json`) of `answers` to the questions of `records`. Needs no judge and no images.

    `questions` selects by role; a question without a role counts in every selection. `invalid` says, by method, which
    stories have no usable board and why; a story without any row about a method's images is invalid for it, too.
    Independent of the order of stories, judges and rows (but for repeated rows, of which the last wins).
    `pooled` makes one method of several, the boards of one mode by seed: each story's boards count together, and a
    question counts once for each of them. `calibrated` adds the human-calibrated ensemble as one more judge.

    Raises:
        RecordError: a story or question is given twice. UsageError: unknown matching rule.
    """
    rule = word_rule(matching)
    outcomes = collect(records, answers, matching=rule, selection=questions, calibrated=calibrated)
    scorer = _Scorer(outcomes, resamples, seed, pooled)
    scorer.notes.append(f"Matching {rule.name}, version {rule.version}.")
    sizes = [len(question.options) for question in outcomes.questions if question.options]
    if sizes:
        guess = 100.0 * sum(1 / (size - 1) for size in sizes if size > 1) / len(sizes)
        scorer.notes.append(
            f"{len(sizes)} questions have fixed options; a guess among them, Unclear aside, is right in {guess:.1f}%."
        )
    methods: dict[str, MethodScores] = {}
    for m, (method, members) in enumerate(scorer.methods.items()):
        if len(members) > 1:
            scorer.notes.append(f"{method}: {len(members)} boards a story count together, one a seed.")
        reasons = {
            story: "no answer about this method's images"
            for at, story in enumerate(outcomes.stories)
            if not outcomes.answered[members, at].any()
        } | dict((invalid or {}).get(method, {}))
        methods[method] = MethodScores(
            stories=len(set(outcomes.stories) - set(reasons)),
            invalid_stories=reasons,
            judges={judge: scorer.judge_scores(m, j) for j, judge in enumerate(outcomes.judges)},
        )
    if not methods:
        scorer.notes.append("No row names a method, so there is nothing to score.")
    comparisons = scorer.comparisons()
    if comparisons:
        scorer.notes.append(
            "Wilcoxon: two-sided over stories, zero differences dropped (zero_method wilcox); "
            f"p_corrected is its p times the family of {len(comparisons)} comparisons."
        )
    return Scores(
        frozen=frozen,
        matching=rule.name,
        questions=questions,
        bootstrap=Bootstrap(resamples=resamples, seed=seed),
        methods=methods,
        comparisons=comparisons,
        notes=list(dict.fromkeys(scorer.notes)),
    )
