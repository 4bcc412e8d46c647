"""Human recoverability and human STG (Eqs. 56 to 59, Table 38), by method, and methods against each other.

The mean is over raters, then questions, then dimensions, on the questions that most raters get right under text and
image together (a tie is not most). That set is a property of the questions: it stays whoever is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.errors import RecordError
from katha.eval_bridge.people.resampling import Crossed
from katha.eval_bridge.scoring import intervals
from katha.eval_bridge.scoring.gate import LEAST_VALID, MARGIN, Excess
from katha.eval_bridge.scoring.statistics import BOTH, GUESS, IMAGE, TEXT, Floats, bonferroni
from katha.schema import ASKED, CONDITIONS, DIMENSIONS, Condition
from katha.schema.people import HumanComparison, HumanRecoverability
from katha.schema.scores import BlockIntervals, DimensionScore, Interval

# The paper's level (Sec. H).
LEVEL = 0.05
_STG = len(CONDITIONS)
_GAINS = {"none": _STG + 1, "gain_image": _STG + 2, "gain_text": _STG + 3}
"""Places of what is right without evidence and of what evidence adds to it, where anybody was asked so."""
_SHARES = {"text": TEXT, "image": IMAGE, "none": _GAINS["none"]}

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class RaterAnswers:
    """What every rater got right. given, right: (methods, ASKED, raters, questions), how often; questions are
    (story, question id) in order; story_of, dimension_of: (questions,) places in `stories` and DIMENSIONS."""

    methods: tuple[str, ...]
    stories: tuple[str, ...]
    questions: tuple[tuple[str, str], ...]
    story_of: NDArray[np.intp]
    dimension_of: NDArray[np.intp]
    given: Floats
    right: Floats

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> RaterAnswers:
        """Return it from judgments; one of the text alone or without evidence, without a method, holds for every one.

        Raises:
            RecordError: a question has two types.
        """
        kinds: dict[tuple[str, str], str] = {}
        for row in rows:
            key = (row["story_id"], row["question_id"])
            if kinds.setdefault(key, row["question_type"]) != row["question_type"]:
                raise RecordError(f"Line {row['line']}: question {key[1]!r} has two types.")
        questions, raters = sorted(kinds), sorted({row.get("rater", "") for row in rows})
        methods = sorted({row["method"] for row in rows if "method" in row}) or [""]
        stories = sorted({story for story, _ in questions})
        place, who = {key: at for at, key in enumerate(questions)}, {name: at for at, name in enumerate(raters)}
        given = np.zeros((len(methods), len(ASKED), len(raters), len(questions)))
        right = np.zeros_like(given)
        for row in rows:
            own = slice(None) if "method" not in row else methods.index(row["method"])
            at = (
                ASKED.index(row["condition"]),
                who[row.get("rater", "")],
                place[row["story_id"], row["question_id"]],
            )
            given[(own, *at)] += 1
            right[(own, *at)] += row["right"]
        return cls(
            tuple(methods),
            tuple(stories),
            tuple(questions),
            np.array([stories.index(story) for story, _ in questions], dtype=np.intp),
            np.array([DIMENSIONS.index(kinds[key]) for key in questions], dtype=np.intp),
            given,
            right,
        )

    @cached_property
    def complete(self) -> Bools:
        """Return whether a question was answered under all three conditions with evidence, (methods, questions)."""
        found: Bools = (self.given[:, : len(CONDITIONS)].sum(axis=2) > 0).all(axis=1)
        return found

    @cached_property
    def guessed(self) -> bool:
        """Return whether anybody was asked without evidence."""
        return bool(self.given[:, GUESS].any())

    @cached_property
    def valid(self) -> Bools:
        """Return whether most raters are right under text and image together, (methods, questions)."""
        both: Bools = 2 * self.right[:, BOTH].sum(axis=1) > self.given[:, BOTH].sum(axis=1)
        return both & self.complete

    def rates(self, method: int, raters: Floats) -> Floats:
        """Return the share right of each question: raters (rows, raters) to (rows, conditions, questions); NaN where
        nobody of those drawn answered."""
        right = np.einsum("br,crq->bcq", raters, self.right[method], optimize=True)
        given = np.einsum("br,crq->bcq", raters, self.given[method], optimize=True)
        shares: Floats = np.divide(right, given, out=np.full_like(right, np.nan), where=given > 0)
        return shares

    def means(self, rates: Floats, kept: Bools, stories: Floats) -> Floats:
        """Return macro averages over dimensions in points: (rows, 4), the conditions and STG last; then, where anybody
        was asked without evidence, `_GAINS`, on the questions that were.

        rates: (rows or 1, ASKED, questions). kept: (questions,). stories: (rows or 1, stories), how often drawn.
        """
        means = self._averages(rates[:, : len(CONDITIONS)], kept, stories)
        found = [means, (means[:, TEXT] - means[:, IMAGE])[:, None]]
        if self.guessed:
            asked = self._averages(rates, kept, stories)
            guess = asked[:, GUESS]
            found += [column[:, None] for column in (guess, asked[:, IMAGE] - guess, asked[:, TEXT] - guess)]
        return 100.0 * np.concatenate(found, axis=1)

    def _averages(self, rates: Floats, kept: Bools, stories: Floats) -> Floats:
        """Return the shares right, (rows, conditions), of the questions that were answered under every condition."""
        known = kept & ~np.isnan(rates).any(axis=1)
        weight = stories[:, self.story_of] * known
        by_dimension = np.zeros((len(self.story_of), len(DIMENSIONS)))
        by_dimension[np.arange(len(self.story_of)), self.dimension_of] = 1.0
        number = weight @ by_dimension
        sums = (np.where(known[:, None], rates, 0.0) * weight[:, None]) @ by_dimension
        shares = sums / np.where(number > 0, number, 1.0)[:, None]
        dimensions = (number > 0).sum(axis=1)[:, None]
        means: Floats = np.where(dimensions > 0, shares.sum(axis=2) / np.maximum(dimensions, 1), np.nan)
        return means

    def per_story(self, method: int, at: int = IMAGE) -> dict[str, float]:
        """Return each story's image recoverability, or what else stands at that place of `means`, on its valid
        questions; stories without one are left out."""
        rates, ones = self.rates(method, np.ones((1, self.given.shape[2]))), np.eye(len(self.stories))
        values = self.means(rates, self.valid[method], ones)[:, at]
        return {name: float(value) for name, value in zip(self.stories, values, strict=True) if not np.isnan(value)}


@dataclass(frozen=True)
class _Draws:
    """Estimates of several methods on one set of questions: as they are, and with one left out.

    Each array ends in (methods, what `Answered.means` returns). asked_stories, asked_raters: who holds, or answered,
    one of these questions; leaving out another changes nothing.
    """

    whole: Floats
    without_rater: Floats
    without_story: Floats
    asked_stories: Bools
    asked_raters: Bools

    @classmethod
    def of(cls, people: RaterAnswers, methods: Sequence[int], kept: Bools) -> _Draws:
        number, told = people.given.shape[2], len(people.stories)
        everyone, every = np.ones((1, number)), np.ones((1, told))
        fixed = [people.rates(method, everyone) for method in methods]

        def stories(drawn: Floats) -> Floats:
            return np.stack([people.means(rates, kept, drawn) for rates in fixed], axis=1)

        def raters(drawn: Floats) -> Floats:
            return np.stack([people.means(people.rates(m, drawn), kept, every) for m in methods], axis=1)

        return cls(
            whole=stories(every)[0],
            without_rater=raters(1.0 - np.eye(number)),
            without_story=stories(1.0 - np.eye(told)),
            asked_stories=np.isin(np.arange(told), people.story_of[kept]),
            asked_raters=people.given[list(methods)][..., kept].sum(axis=(0, 1, 3)) > 0,
        )

    def span(self, name: str, raters: bool) -> Interval | None:
        """Return the interval of the first method's number of that name, for other participants or other stories."""
        left = (self.without_rater[self.asked_raters] if raters else self.without_story[self.asked_stories])[:, 0]
        fewest, whole = intervals.FEWEST_RATERS if raters else intervals.FEWEST_STORIES, self.whole[0]
        if name in _SHARES:
            at = _SHARES[name]
            return intervals.share(whole[at] / 100.0, left[:, at] / 100.0, fewest)
        shares = np.concatenate([whole[None], left]) / 100.0
        first, second = shares[:, TEXT], shares[:, IMAGE]
        if name != "stg":  # evidence gain, on the questions that were asked without evidence
            second = shares[:, _GAINS["none"]]
            first = second + shares[:, _GAINS[name]]
        return intervals.gap(float(first[0]), float(second[0]), first[1:], second[1:], fewest)

    def apart(self, raters: bool) -> Interval | None:
        """Return the interval of STG of the first method minus that of the second."""
        left = self.without_rater[self.asked_raters] if raters else self.without_story[self.asked_stories]
        fewest = intervals.FEWEST_RATERS if raters else intervals.FEWEST_STORIES
        gaps = (left[:, 0, _STG] - left[:, 1, _STG]) / 100.0
        return intervals.difference(float(self.whole[0, _STG] - self.whole[1, _STG]) / 100.0, gaps, fewest)


def recoverability(people: RaterAnswers, method: int) -> tuple[HumanRecoverability, list[str]]:
    """Return what people recover of one method's boards, and what has to be said about it."""
    valid, complete = people.valid[method], people.complete[method]
    asked = people.given[method].sum(axis=(0, 1)) > 0
    draws = _Draws.of(people, [method], valid)
    places = {"text": TEXT, "image": IMAGE, "stg": _STG}
    numbers = [None if np.isnan(value) else float(value) for value in draws.whole[0]]
    guessed, notes = _guesses(people, method, numbers) if people.guessed else ({}, [])
    places |= _GAINS if guessed else {}
    dimensions = _dimensions(people, method, valid)
    both = {name: _crossed(draws, at) for name, at in places.items()}
    found = HumanRecoverability(
        n_questions=int(asked.sum()),
        n_valid=int(valid.sum()),
        ambiguity_rate=100.0 * float((complete & ~valid).sum() / complete.sum()) if complete.any() else None,
        text=numbers[TEXT],
        image=numbers[IMAGE],
        text_image=numbers[BOTH],
        stg=numbers[_STG],
        ci95=BlockIntervals(**{name: draws.span(name, raters=False) for name in places}),
        ci95_raters=BlockIntervals(**{name: draws.span(name, raters=True) for name in places}),
        ci95_both=BlockIntervals(**{name: item.interval() if item else None for name, item in both.items()}),
        gaps={name: row.gap for name, row in dimensions.items()},
        dimensions=dimensions,
        **guessed,
    )
    lacking = int((asked & ~complete).sum())
    notes = [*([f"{lacking} questions lack a condition and are left out."] if lacking else []), *notes]
    why = why_no_gap(people, method)
    if why is None:
        return found, notes
    return _emptied(found), [*notes, f"{people.methods[method] or 'people'}: no gap can be measured: {why}."]


def why_no_gap(people: RaterAnswers, method: int) -> str | None:
    """Return why people's answers about a method hold no gap (see `scoring.gate`), or None where they do."""
    valid, complete = int(people.valid[method].sum()), people.complete[method]
    number = int(complete.sum())
    if not number:
        return None
    if valid < LEAST_VALID * number:
        return f"only {valid} of {number} questions are valid ({LEAST_VALID:.0%} are needed)"
    rates = people.rates(method, np.ones((1, people.given.shape[2])))[0]
    guess = np.nan_to_num(rates[GUESS]) if people.guessed else np.zeros(len(complete))
    above = Excess.of(
        people.story_of[complete].tolist(), (rates[TEXT] - guess)[complete].tolist(), signed=people.guessed
    )
    level = 0.0 if people.guessed else MARGIN
    return None if above.passes(level) else "people do not understand the text more often than they guess"


def _emptied(found: HumanRecoverability) -> HumanRecoverability:
    """Return what stays where there is no gap: the counts."""
    nothing = BlockIntervals(text=None, image=None, stg=None)
    gone: dict[str, Any] = dict.fromkeys(("text", "image", "text_image", "stg"))
    gone |= dict.fromkeys(("ci95", "ci95_raters", "ci95_both"), nothing)
    dimensions = {
        name: item.model_copy(update={"text": None, "image": None, "gap": None})
        for name, item in found.dimensions.items()
    }
    return found.model_copy(update={**gone, "gaps": dict.fromkeys(found.gaps), "dimensions": dimensions})


def _guesses(people: RaterAnswers, method: int, numbers: Sequence[float | None]) -> tuple[dict[str, Any], list[str]]:
    """Return what people guess without evidence, what evidence adds to it, and what has to be said about that."""
    lacking = int((people.valid[method] & ~(people.given[method, GUESS].sum(axis=0) > 0)).sum())
    notes = [f"{lacking} valid questions were asked of nobody without evidence."] if lacking else []
    if numbers[_GAINS["none"]] is None:
        return {}, notes
    stories = people.per_story(method, _GAINS["none"])
    return {**{name: numbers[at] for name, at in _GAINS.items()}, "none_by_story": stories}, notes


def _dimensions(people: RaterAnswers, method: int, valid: Bools) -> dict[Any, DimensionScore]:
    rates = people.rates(method, np.ones((1, people.given.shape[2])))[0]
    found = {}
    for at, name in enumerate(DIMENSIONS):
        own = valid & (people.dimension_of == at)
        text, image = (100.0 * float(rates[c, own].mean()) if own.any() else None for c in (TEXT, IMAGE))
        gap = text - image if text is not None and image is not None else None
        found[name] = DimensionScore(n=int(own.sum()), text=text, image=image, gap=gap)
    return found


def _crossed(draws: _Draws, at: int, pair: bool = False) -> Crossed | None:
    """The number at a place for other raters and other stories; with `pair` the first method's minus the second's."""

    def number(values: Floats) -> Floats:
        return values[..., 0, at] - (values[..., 1, at] if pair else 0.0)

    return Crossed.of(float(number(draws.whole)), number(draws.without_rater), number(draws.without_story))


def compare(people: RaterAnswers) -> list[HumanComparison]:
    """Return every pair of methods in human STG, on the questions that are valid for both.

    The family is the number of pairs. A method is said to lose less where the interval for other participants and other
    stories leaves out zero and its corrected p is below 5%.
    """
    pairs = list(combinations(range(len(people.methods)), 2))
    return [_pair(people, pair, len(pairs)) for pair in pairs]


def _pair(people: RaterAnswers, pair: tuple[int, int], family: int) -> HumanComparison:
    kept = people.valid[pair[0]] & people.valid[pair[1]]
    draws = _Draws.of(people, pair, kept)
    first, second = (None if np.isnan(value) else float(value) for value in draws.whole[:, _STG])
    hidden = any(why_no_gap(people, at) is not None for at in pair)
    first, second = (None, None) if hidden else (first, second)
    known = first is not None and second is not None
    crossed = _crossed(draws, _STG, pair=True) if known else None
    p = crossed.p_differs() if crossed is not None else None
    corrected, both = bonferroni(p, family), crossed.interval() if crossed is not None else None
    a, b = (people.methods[at] for at in pair)
    return HumanComparison(
        a=a,
        b=b,
        n_stories=len({people.questions[at][0] for at in np.flatnonzero(kept)}),
        n_questions=int(kept.sum()),
        stg_a=first,
        stg_b=second,
        difference=first - second if first is not None and second is not None else None,
        ci95=draws.apart(raters=False) if known else None,
        ci95_raters=draws.apart(raters=True) if known else None,
        ci95_both=both,
        p_both=p,
        family=family,
        p_corrected=corrected,
        reading=_reading(a, b, both, corrected),
    )


def _reading(a: str, b: str, both: Interval | None, corrected: float | None) -> str:
    if both is None or corrected is None or corrected >= LEVEL or both[0] <= 0.0 <= both[1]:
        return "no difference is shown"
    return f"{a if both[1] < 0 else b} loses less"


def conditions_of(rows: Iterable[Mapping[str, Any]]) -> list[Condition]:
    """Return the conditions that judgments were made under, in the protocol's order."""
    found = {row["condition"] for row in rows if "condition" in row}
    return [name for name in ASKED if name in found]
