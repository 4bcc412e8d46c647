"""From outcomes to `scores.json` (Secs. 3.4 to 3.6, B.1 to B.4, D).

Blocks: `raw` takes every scored question, `filtered` those right under text+image (Eq. 16), `common_valid` those valid
for every method, `unguessed` of these the ones that were wrong without any evidence. A question is scored when all
three conditions with evidence have an outcome. Every number is in percentage points; what cannot be computed is None,
with a sentence in `notes`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from katha.errors import UsageError
from katha.eval_bridge.matching.match import Matching, moral_label, word_rule
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.scoring import gate, statistics
from katha.eval_bridge.scoring.contrastive import contrast_gaps, twins_of
from katha.eval_bridge.scoring.intervals import FEWEST_STORIES, METHOD
from katha.eval_bridge.scoring.moral import LabelAnswers, Seen, label_questions, moral_target
from katha.eval_bridge.scoring.outcomes import (
    ENSEMBLE,
    MISSING,
    RIGHT,
    Aggregate,
    Outcomes,
    collect,
)
from katha.eval_bridge.scoring.rows import THIN, Spans, correct, gap_interval
from katha.eval_bridge.scoring.statistics import (
    BOTH,
    GUESS,
    IMAGE,
    TEXT,
    Floats,
    averages,
    points,
    story_gaps,
)
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
    GuessedShare,
    Guesses,
    JudgeScores,
    MethodScores,
    MoralTarget,
    Scores,
    Selection,
    StoryAverage,
    WilcoxonTest,
)

BLOCKS: tuple[BlockName, ...] = ("raw", "filtered", "common_valid")
COMPARED: tuple[BlockName, ...] = ("filtered", "common_valid", "unguessed")
HEADLINE: BlockName = "common_valid"
"""The block that conclusions are drawn from; the others stand beside it."""
_SMALLEST = 1e-9
"""A difference in percentage points below this has no sign."""
_BLOCK_WORDS: Mapping[BlockName, str] = {
    "raw": "raw",
    "filtered": "own valid",
    "common_valid": "common valid",
    "unguessed": "unguessed",
}
UNSCORED = "no question has an outcome under all three conditions"
"""What the note of a board without numbers says of it."""


class _Scorer:
    """One scoring: masks and counts of every (method, judge, block), then the numbers made from them."""

    def __init__(
        self,
        outcomes: Outcomes,
        resamples: int,
        seed: int,
        pooled: Mapping[str, Sequence[str]] | None = None,
        labels: LabelAnswers | None = None,
        families: Mapping[str, str] | None = None,
    ) -> None:
        self.outcomes, self.labels, self.families = outcomes, labels, families or {}
        self.methods = _pools(outcomes.methods, pooled or {})
        self.notes: list[str] = list(outcomes.notes)
        self.right = outcomes.cells == RIGHT
        self.scored = (outcomes.cells != MISSING).all(axis=2)
        self.valid = self.scored & self.right[:, :, BOTH]
        common = np.broadcast_to(self.valid.all(axis=0), self.valid.shape)
        self.masks: dict[BlockName, NDArray[np.bool_]] = dict(
            zip(BLOCKS, (self.scored, self.valid, common), strict=True)
        )
        asked = np.broadcast_to(outcomes.guesses != MISSING, common.shape)
        if self.guessed_at:
            guessed = np.broadcast_to(outcomes.guesses == RIGHT, common.shape)
            self.right = np.concatenate([self.right, guessed[:, :, None]], axis=2)
            self.masks["unguessed"] = common & asked & ~guessed
        self.blocks = list(self.masks)
        self.counts = self._counted(self.masks)
        self.asked = self._counted({name: mask & asked for name, mask in self.masks.items()})
        self.boot = self._boot(self.counts, resamples, seed)

    @property
    def guessed_at(self) -> bool:
        """Return whether anything was asked without evidence."""
        return bool((self.outcomes.guesses != MISSING).any())

    def _counted(self, masks: Mapping[BlockName, NDArray[np.bool_]]) -> Floats:
        """Return counts of shape (methods, judges, blocks, stories, dimensions, COUNTS or one more)."""
        out = self.outcomes

        def count(members: Sequence[int], judge: int, mask: NDArray[np.bool_]) -> Floats:
            own = (
                statistics.story_counts(self.right[m, judge], mask[m, judge], out.cell_of, len(out.stories))
                for m in members
            )
            total: Floats = np.sum(list(own), axis=0)
            return total

        return np.array(
            [
                [[count(members, judge, mask) for mask in masks.values()] for judge in range(len(out.judges))]
                for members in self.methods.values()
            ]
        )

    def _boot(self, counts: Floats, resamples: int, seed: int) -> Floats | None:
        """Return replicates of shape (resamples, methods, judges, blocks, conditions); None for one story."""
        if not self.outcomes.methods:
            return None
        if len(self.outcomes.stories) < 2 or resamples < 1:
            self.notes.append("Bootstrap p-values need at least two stories; they are null.")
            return None
        shape = counts.shape
        flat = counts.reshape(-1, *shape[3:])
        return statistics.replicates(flat, resamples, seed).reshape(resamples, *shape[:3], -1)

    def judge_scores(self, method: int, judge: int) -> JudgeScores:
        """Return the entry of one judge of one method."""
        out = self.outcomes
        name, members = list(self.methods.items())[method]
        n_scored, n_valid = (int(cells[members, judge].sum()) for cells in (self.scored, self.valid))
        n_questions = len(out.questions) * len(members)
        where = f"{name}, {out.judges[judge]}"
        if not n_scored:
            self.notes.append(f"{where}: {UNSCORED}.{self._failure(members, judge)}")
        why = self.unmeasured[method, judge]
        if why is not None:
            self.notes.append(f"{where}: {gate.CANNOT}: {why}.")
        blocks: dict[BlockName, Block] = {
            block: self._block(method, judge, place, f"{where}, {block}", why)
            for place, block in enumerate(self.blocks)
        }
        return JudgeScores(
            n_questions=n_questions,
            n_unscored=n_questions - n_scored,
            n_valid=n_valid,
            ambiguity_rate=100.0 * (n_scored - n_valid) / n_scored if n_scored else None,
            moral_target=self._moral_target(members, judge, where),
            unmeasured=why,
            **(self._guesses(method, judge, where) if self.guessed_at else {}),
            raw=blocks["raw"],
            filtered=blocks["filtered"],
            common_valid=blocks["common_valid"],
            unguessed=blocks.get("unguessed"),
        )

    def _guesses(self, method: int, judge: int, where: str) -> dict[str, Any]:
        """Return how many of the scored questions were right without any evidence, and which."""
        out, members = self.outcomes, list(self.methods.values())[method]
        counts = self.asked[method, judge, BLOCKS.index("raw")][..., [0, 1 + GUESS]]
        whole = counts.sum(axis=(0, 1))
        unscored = int(self.scored[members, judge].sum() - whole[0])
        if unscored:
            self.notes.append(f"{where}: {unscored} scored questions have no answer without evidence.")
        places = {
            family: [place for place, story in enumerate(out.stories) if self.families.get(story) == family]
            for family in sorted(set(self.families.values()))
        }
        guesses = Guesses(
            n=int(whole[0]),
            n_unscored=unscored,
            by_dimension={name: _share(counts[:, at].sum(axis=0)) for at, name in enumerate(DIMENSIONS)},
            by_family={family: _share(counts[own].sum(axis=(0, 1))) for family, own in places.items()},
        )
        return {"guessable": _share(whole).none, "guesses": guesses}

    def _gain(self, method: int, judge: int, place: int, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what evidence adds to guesses on one block's questions, and the intervals."""
        total = self.asked[method, judge, place].sum(axis=0)
        text, image, none = (points(value) for value in averages(total)[[TEXT, IMAGE, GUESS]])
        if text is None or image is None or none is None:
            return {}, {}
        if image - none <= _SMALLEST:
            self.notes.append(
                f"{where}: the images add nothing to what is guessed without them ({image:.1f} against {none:.1f})."
            )
        numbers = {"none": none, "gain_image": image - none, "gain_text": text - none}
        spans = Spans.of(self.asked[method, judge, place])
        found = [spans.share(GUESS), spans.gap(IMAGE, GUESS), spans.gap(TEXT, GUESS)]
        return numbers, dict(zip(numbers, found, strict=True))

    def _failure(self, members: Sequence[int], judge: int) -> str:
        """Say what most of the rows that are no answers say, as one more sentence."""
        out = self.outcomes
        keys = [(name, out.judges[judge]) for name in (*(out.methods[at] for at in members), None)]
        told = next((out.failures[key] for key in keys if key in out.failures), None)
        return f" Most of the rows that are no answer say {told.rstrip('.')!r}." if told else ""

    @cached_property
    def unmeasured(self) -> dict[tuple[int, int], str | None]:
        """Return why a method cannot be measured with a judge, by their places; None where it can."""
        found: dict[tuple[int, int], str | None] = {}
        for method, members in enumerate(self.methods.values()):
            for judge in range(len(self.outcomes.judges)):
                masks = self.scored[members, judge], self.valid[members, judge]
                found[method, judge] = gate.why_not(self.outcomes, members, judge, *masks)
        return found

    def _block(self, method: int, judge: int, place: int, where: str, why: str | None) -> Block:
        total = self.counts[method, judge, place].sum(axis=0)
        dimensions = {name: _dimension(total[at]) for at, name in enumerate(DIMENSIONS)}
        missing = [name for name, values in dimensions.items() if not values.n]
        count = int(total[:, 0].sum())
        if missing:
            named = "any dimension" if len(missing) == len(DIMENSIONS) else ", ".join(missing)
            self.notes.append(f"{where}: no question of {named}; the averages leave it out.")
        text, image, both = (points(value) for value in averages(total)[:GUESS])
        gaps = [gap for name in LATENT_DIMENSIONS if (gap := dimensions[name].gap) is not None]
        stg = text - image if text is not None and image is not None else None
        thin = [name for name, values in dimensions.items() if 0 < values.n <= THIN]
        if thin:
            told = ", ".join(f"{name} ({dimensions[name].n})" for name in thin)
            self.notes.append(f"{where}: {told} rest on one or two questions, each with a full share of the average.")
        if why is None and stg is not None and stg < -_SMALLEST:
            self.notes.append(
                f"{where}: STG is {stg:.1f}. Below zero is no better board: look for unstable judging, contradictions "
                "or defective questions (Secs. B.3, D.2)."
            )
        gain, spans = self._gain(method, judge, place, where) if self.guessed_at else ({}, {})
        made = Block(
            n=count,
            text=text,
            image=image,
            text_image=both,
            stg=stg,
            ci95=block_intervals(self.counts[method, judge, place]).model_copy(update=spans),
            dimensions=dimensions,
            latent_gap=sum(gaps) / len(gaps) if gaps else None,
            by_story=_by_story(self.counts[method, judge, place]),
            thin=thin,
            inspect=stg is not None and stg < -_SMALLEST,
            **gain,
        )
        raw = self.blocks[place] == "raw"
        if why is None and gate.thin_block(self.counts[method, judge, place], len(self.outcomes.stories)):
            why = f"fewer than {FEWEST_STORIES} stories have a question"
            self.notes.append(f"{where}: no numbers: {why}.")
        return made if why is None else gate.emptied(made, raw=raw)

    def method_scores(self, at: int, invalid: Mapping[str, str], twins: Collection[str]) -> MethodScores:
        """Return the scores of one method by every judge; a story without any row about its images is invalid, too.

        Contrastive twins are none of its stories.
        """
        out, (method, members) = self.outcomes, list(self.methods.items())[at]
        if len(members) > 1:
            self.notes.append(f"{method}: {len(members)} boards a story count together, one a seed.")
        bare = [story for place, story in enumerate(out.stories) if not out.answered[members, place].any()]
        reasons = dict.fromkeys(bare, "no answer about this method's images") | dict(invalid)
        reasons = {story: why for story, why in reasons.items() if story not in twins}
        return MethodScores(
            stories=len(set(out.stories) - set(reasons)),
            invalid_stories=reasons,
            judges={judge: self.judge_scores(at, j) for j, judge in enumerate(out.judges)},
        )

    def _moral_target(self, members: Sequence[int], judge: int, where: str) -> MoralTarget:
        """MTR (Eqs. 39 to 42) over the valid moral questions whose target is one of the twelve labels (Sec. D.8), and
        over the label questions of stories whose own moral question has another answer."""
        out, right = self.outcomes, self.right[:, judge]
        seen: list[Seen] = [
            (label, bool(right[method, TEXT, at]), bool(right[method, IMAGE, at]), out.questions[at].options)
            for method in members
            for at in np.flatnonzero(self.valid[method, judge])
            if out.questions[at].question_type == "moral"
            and (label := moral_label(out.questions[at].gold_answer)) is not None
        ]
        for method in members if self.labels is not None else ():
            seen += self.labels.seen(out.methods[method], out.judges[judge]) if self.labels is not None else []
        if not seen:
            self.notes.append(f"{where}: no valid moral question has a label as its answer; moral_target is null.")
        return moral_target(seen, _guess([offered for _, _, _, offered in seen]))

    @property
    def shown(self) -> int:
        """The place of the judge whose numbers conclusions are drawn from: the ensemble, or the first (only) one."""
        judges = self.outcomes.judges
        return judges.index(ENSEMBLE) if ENSEMBLE in judges else 0

    def comparisons(self, compared: Compared) -> list[Comparison]:
        """Return every declared pair of methods by judge and compared block."""
        judges = range(len(self.outcomes.judges))
        found = []
        for a, b in compared.pairs:
            for judge in judges:
                differences = self._differences(a, b, judge)
                found += [
                    self._compare(a, b, judge, block, differences, compared.family)
                    for block in COMPARED
                    if block in self.blocks
                ]
                gapless = [self.unmeasured[list(self.methods).index(name), judge] for name in (a, b)]
                if judge == self.shown and gapless == [None, None] and disagree(differences.values()):
                    told = ", ".join(f"{_BLOCK_WORDS[name]} {value:+.1f}" for name, value in _known(differences))
                    where = f"{a} against {b}, {self.outcomes.judges[judge]}"
                    self.notes.append(
                        f"{where}: the blocks disagree in sign ({told}), so which questions count decides it."
                    )
        return self._corrected(found, compared) if compared.steps else found

    def _corrected(self, rows: Sequence[Comparison], compared: Compared) -> list[Comparison]:
        """Return the comparisons with the p of each judge's block corrected by Holm's steps, but for the primary."""
        keys = [(row.judge, row.block) for row in rows]
        found = list(rows)
        for key in dict.fromkeys(keys):
            places = [at for at, name in enumerate(keys) if name == key]
            tested = [rows[at] for at in places]
            first = next((at for at, row in enumerate(tested) if (row.a, row.b) == compared.primary), None)
            for at, row in zip(places, correct(tested, compared.family, first), strict=True):
                found[at] = row
        return found

    def _differences(self, a: str, b: str, judge: int) -> dict[BlockName, float | None]:
        """Return STG of `a` minus STG of `b` in each block, in percentage points."""
        names = list(self.methods)
        gaps = story_gaps(self.counts[[names.index(a), names.index(b)], judge].sum(axis=2))
        return {block: points(float(gaps[0, place] - gaps[1, place])) for place, block in enumerate(self.blocks)}

    def _compare(
        self,
        a: str,
        b: str,
        judge: int,
        block: BlockName,
        differences: dict[BlockName, float | None],
        family: int,
    ) -> Comparison:
        out, place, names = self.outcomes, self.blocks.index(block), list(self.methods)
        one, two = names.index(a), names.index(b)
        first, second = (self.counts[method, judge, place] for method in (one, two))
        lost = [name for name, at in ((a, one), (b, two)) if self.unmeasured[at, judge] is not None]
        many = len(out.stories)
        if lost or any(gate.thin_block(counts, many) for counts in (first, second)):
            return self._nothing(a, b, judge, block, family)
        stg_a, stg_b = (points(float(story_gaps(counts.sum(axis=0)))) for counts in (first, second))
        stories = story_gaps(first) - story_gaps(second)
        paired = stories[~np.isnan(stories)]
        p = None
        if self.boot is not None:
            drawn = self.boot[:, :, judge, place, TEXT] - self.boot[:, :, judge, place, IMAGE]
            p = statistics.paired_p(drawn[:, one] - drawn[:, two])
        test = statistics.wilcoxon(paired)
        if test.p is None:
            where = f"{a} against {b}, {out.judges[judge]}, {block}"
            self.notes.append(f"{where}: no story's STG differs, so there is no Wilcoxon test.")
        return Comparison(
            a=a,
            b=b,
            judge=out.judges[judge],
            block=block,
            n_stories=int(paired.size),
            stg_a=stg_a,
            stg_b=stg_b,
            difference=stg_a - stg_b if stg_a is not None and stg_b is not None else None,
            ci95=gap_interval(first, second),
            p_bootstrap=p,
            wilcoxon=test,
            family=family,
            p_corrected=statistics.bonferroni(test.p, family),
            p_bootstrap_corrected=statistics.bonferroni(p, family),
            headline=judge == self.shown and block == HEADLINE,
            differences=differences,
            disagree=disagree(differences.values()),
        )

    def _nothing(self, a: str, b: str, judge: int, block: BlockName, family: int) -> Comparison:
        """Return a comparison of which a side has no gap."""
        empty = dict.fromkeys(("stg_a", "stg_b", "difference", "ci95", "p_bootstrap", "p_corrected"))
        test = WilcoxonTest(p=None, n_nonzero=0, rank_biserial=None)
        shown = judge == self.shown and block == HEADLINE
        told = {"a": a, "b": b, "judge": self.outcomes.judges[judge], "block": block, "headline": shown}
        return Comparison.model_validate({**empty, **told, "n_stories": 0, "wilcoxon": test, "family": family})


@dataclass(frozen=True)
class Compared:
    """Which methods are held against which, each pair (a, b); family: how many pairs were declared, run or not.

    The correction is for the pairs of one block by one judge: the headline. What stands beside it is no further test.
    It is Bonferroni's, or with `steps` Holm's, where `primary` is tested alone and `family` counts the others.
    """

    pairs: tuple[tuple[str, str], ...]
    family: int
    steps: bool = False
    primary: tuple[str, str] | None = None

    @classmethod
    def of(cls, methods: Sequence[str], reference: str | None = None, declared: Collection[str] = ()) -> Self:
        """Return every pair of methods by name, or each method with the reference.

        declared: the methods that the command names, those without any board included.

        Raises:
            UsageError: there is no method of that name.
        """
        known = sorted({*methods, *declared})
        number = len(known)
        if reference is None:
            return cls(tuple(combinations(methods, 2)), number * (number - 1) // 2)
        require_reference(reference, known)
        others = [name for name in methods if name != reference]
        return cls(tuple((name, reference) for name in others if reference in methods), number - 1)


def require_reference(name: str | None, known: Sequence[str]) -> str | None:
    """Return `name` itself.

    Raises:
        UsageError: no method is called that.
    """
    if name is not None and name not in known:
        raise UsageError(f"The reference {name!r} is not a method here.", hint=f"There is {', '.join(known)}.")
    return name


def disagree(differences: Iterable[float | None]) -> bool:
    """Return whether some of the differences are above zero and some below."""
    signs = {value > 0 for value in differences if value is not None and abs(value) > _SMALLEST}
    return len(signs) > 1


def _known(differences: Mapping[BlockName, float | None]) -> list[tuple[BlockName, float]]:
    return [(name, value) for name, value in differences.items() if value is not None]


def _by_story(counts: Floats) -> StoryAverage:
    """Return the mean over stories of counts of shape (stories, dimensions, COUNTS)."""
    means = averages(counts)
    means = means[~np.isnan(means[:, 0])]
    if not len(means):
        return StoryAverage(n_stories=0, text=None, image=None, stg=None)
    text, image = (100.0 * float(means[:, at].mean()) for at in (TEXT, IMAGE))
    return StoryAverage(n_stories=len(means), text=text, image=image, stg=text - image)


def _pools(methods: Sequence[str], pooled: Mapping[str, Sequence[str]]) -> dict[str, list[int]]:
    """Return the places in `methods` that make up each method of the result: those of a pool, or its own."""
    place = {name: at for at, name in enumerate(methods)}
    inside = {name for members in pooled.values() for name in members}
    pools = {name: [place[member] for member in members if member in place] for name, members in pooled.items()}
    pools |= {name: [at] for name, at in place.items() if name not in inside}
    return {name: members for name, members in sorted(pools.items()) if members}


def _share(counts: Floats) -> GuessedShare:
    """Return the share of (questions, right without evidence)."""
    number = int(counts[0])
    return GuessedShare(n=number, none=100.0 * float(counts[1]) / number if number else None)


def block_intervals(counts: Floats) -> BlockIntervals:
    """Return the intervals of counts of shape (stories, dimensions, COUNTS); None of too few stories."""
    spans = Spans.of(counts)
    return BlockIntervals(text=spans.share(TEXT), image=spans.share(IMAGE), stg=spans.gap(TEXT, IMAGE))


def _guess(offered: Sequence[Sequence[str] | None]) -> float:
    """Return how often a guess names the label, in per cent: one in what was offered, `Unclear` apart, or in twelve."""
    sizes = [len([text for text in options if text != UNCLEAR]) if options else 0 for options in offered]
    return float(np.mean([100.0 / (size or len(MORAL_LABELS)) for size in sizes or [0]]))


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


def _tested_note(compared: Compared, judge: str) -> str:
    how = f"times the family of {compared.family}"
    if compared.steps:
        alone = " and ".join(compared.primary) if compared.primary is not None else ""
        how = f"by Holm's steps in the family of {compared.family}" + (f", {alone} alone" if alone else "")
    return (
        "Wilcoxon: two-sided over stories, zero differences dropped, exact up to 200 stories that differ; both "
        f"corrected p are {how}: the pairs of methods by one judge ({judge}) on one block (common_valid). The other "
        "rows stand beside these."
    )


def _tested(
    scorer: _Scorer, declared: Collection[str], reference: str | None, compared: Compared | None
) -> list[Comparison]:
    """Return the comparisons of the methods that have rows, corrected for all that are declared."""
    methods = list(scorer.methods)
    asked = Compared.of(methods, reference, declared) if compared is None and declared else compared
    if asked is None:
        return []
    there = tuple((a, b) for a, b in asked.pairs if {a, b} <= set(methods))
    comparisons = scorer.comparisons(replace(asked, pairs=there))
    if comparisons:
        scorer.notes.append(_tested_note(asked, scorer.outcomes.judges[scorer.shown]))
    return comparisons


_GUESSED_NOTE = (
    "Without any evidence each judge guessed, too: `gain_image` is image minus `none`, `gain_text` text. The headline "
    "is STG on the common-valid questions; `unguessed` leaves out of these what the judge had right without evidence. "
    "A difference between methods has the same guesses on both sides."
)
_TWINS_NOTE = "{} contrastive twins stand beside their stories in `contrasts` and count nowhere else."


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
    reference: str | None = None,
    compared: Compared | None = None,
) -> Scores:
    """Return the `Scores` (`scores.json`) of `answers` to the questions of `records`. Needs no judge and no images.

    `questions` selects by role; a question without a role counts in every selection. `invalid` says, by method, which
    stories have no usable board and why; a story without any row about a method's images is invalid for it, too.
    Independent of the order of stories, judges and rows (but for repeated rows, of which the last wins).
    `pooled` makes one method of several, the boards of one mode by seed: each story's boards count together, and a
    question counts once for each of them. `calibrated` adds the human-calibrated ensemble as one more judge.
    `reference` is the method that every other one is held against, instead of all pairs; `compared` names the pairs and
    their number itself (pairs with a method that has no row are left out, and counted in the family). Contrastive twins
    among the records count in `contrasts` alone.

    Raises:
        RecordError: a story or question is given twice. UsageError: unknown matching rule, or no such reference.
    """
    rule, records = word_rule(matching), list(records)
    contrasts = None
    if twins := twins_of(records):
        answers = list(answers)
        contrasts = contrast_gaps(
            records, answers, matching=rule, questions=questions, resamples=resamples, seed=seed, pooled=pooled
        )
        records = [record for record in records if record.story_id not in twins]
        answers = (row for row in answers if row.story_id not in twins)
    labels = LabelAnswers(label_questions(records) if questions != "steering" else {}, rule)
    stream = labels.others(answers)
    outcomes = collect(records, stream, matching=rule, selection=questions, calibrated=calibrated)
    families = {record.story_id: name for record in records if (name := record.source_family) is not None}
    scorer = _Scorer(outcomes, resamples, seed, pooled, labels, families)
    scorer.notes += [f"Matching {rule.name}, version {rule.version}.", *_choice_note(outcomes)]
    told = [(invalid or {}).get(method, {}) for method in scorer.methods]
    methods = {name: scorer.method_scores(at, told[at], twins) for at, name in enumerate(scorer.methods)}
    scorer.notes += [] if methods else ["No row names a method, so there is nothing to score."]
    scorer.notes += [_GUESSED_NOTE] if scorer.guessed_at and methods else []
    scorer.notes += [_TWINS_NOTE.format(len(twins))] if twins else []
    declared = {*methods, *(invalid or {}), *(pooled or {})}
    return Scores(
        frozen=frozen,
        matching=rule.name,
        questions=questions,
        bootstrap=Bootstrap(resamples=resamples, seed=seed, intervals=METHOD),
        methods=methods,
        comparisons=_tested(scorer, declared, reference, compared),
        notes=list(dict.fromkeys(scorer.notes)),
        contrasts=contrasts,
    )
