"""From outcomes to `scores.json` (Secs. 3.4 to 3.6, B.1 to B.4, D).

Blocks: `raw` takes every scored question, `filtered` those right under text+image (Eq. 16), `common_valid` those valid
for every method. A question is scored when all three conditions have an outcome. Every number is in percentage points;
what cannot be computed is None, with a sentence in `notes`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from katha.eval_bridge.matching.match import Matching, moral_label, word_rule
from katha.eval_bridge.scoring import statistics
from katha.eval_bridge.scoring.outcomes import (
    MISSING,
    RIGHT,
    Aggregate,
    Outcomes,
    collect,
)
from katha.eval_bridge.scoring.statistics import BOTH, IMAGE, TEXT, Floats, averages, interval, points, story_gaps
from katha.schema import (
    DIMENSIONS,
    LATENT_DIMENSIONS,
    MORAL_LABELS,
    Answer,
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

BLOCKS: tuple[BlockName, ...] = ("raw", "filtered", "common_valid")
COMPARED: tuple[BlockName, ...] = ("filtered", "common_valid")
UNSCORED = "no question has an outcome under all three conditions"
"""What the note of a board without numbers says of it."""


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


def _choice_note(outcomes: Outcomes) -> list[str]:
    sizes = [len(question.options) for question in outcomes.questions if question.options]
    if not sizes:
        return []
    chance = 100.0 * sum(1 / (size - 1) for size in sizes if size > 1) / len(sizes)
    return [f"{len(sizes)} questions have fixed options; a guess among them, Unclear aside, is right in {chance:.1f}%."]


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
    scorer.notes += [f"Matching {rule.name}, version {rule.version}.", *_choice_note(outcomes)]
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
