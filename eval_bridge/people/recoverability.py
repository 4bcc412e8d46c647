"""Human recoverability and human STG (Eqs. 56 to 59, Table 38), by method, and methods against each other.

The mean is over raters, then questions, then dimensions, on the questions that most raters get right under text and
image together (a tie is not most). That set is a property of the questions: it stays when raters or stories are drawn.
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
from katha.eval_bridge.people.resampling import Crossed, span
from katha.eval_bridge.scoring.statistics import BOTH, IMAGE, TEXT, Floats, bonferroni, resample_counts
from katha.schema import CONDITIONS, DIMENSIONS, Condition
from katha.schema.people import HumanComparison, HumanRecoverability
from katha.schema.scores import BlockIntervals, DimensionScore, Interval

LEVEL = 0.05
_CHUNK_CELLS = 2_000_000
_STG = len(CONDITIONS)

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Answered:
    """What every rater got right. given, right: (methods, conditions, raters, questions), how often; questions are
    (story, question id) in order; story_of, dimension_of: (questions,) places in `stories` and DIMENSIONS."""

    methods: tuple[str, ...]
    stories: tuple[str, ...]
    questions: tuple[tuple[str, str], ...]
    story_of: NDArray[np.intp]
    dimension_of: NDArray[np.intp]
    given: Floats
    right: Floats

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Answered:
        """Return it from judgments; a text-only one without a method holds for every method.

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
        given = np.zeros((len(methods), len(CONDITIONS), len(raters), len(questions)))
        right = np.zeros_like(given)
        for row in rows:
            own = slice(None) if "method" not in row else methods.index(row["method"])
            at = (
                CONDITIONS.index(row["condition"]),
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
        """Whether a question was answered under all three conditions, (methods, questions)."""
        found: Bools = (self.given.sum(axis=2) > 0).all(axis=1)
        return found

    @cached_property
    def valid(self) -> Bools:
        """Whether most raters are right under text and image together, (methods, questions)."""
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
        """Return the macro average over dimensions in points: (rows, 4), the conditions and STG last.

        rates: (rows or 1, conditions, questions). kept: (questions,). stories: (rows or 1, stories), how often drawn.
        """
        known = kept & ~np.isnan(rates).any(axis=1)
        weight = stories[:, self.story_of] * known
        by_dimension = np.zeros((len(self.story_of), len(DIMENSIONS)))
        by_dimension[np.arange(len(self.story_of)), self.dimension_of] = 1.0
        number = weight @ by_dimension
        sums = (np.where(known[:, None], rates, 0.0) * weight[:, None]) @ by_dimension
        shares = sums / np.where(number > 0, number, 1.0)[:, None]
        dimensions = (number > 0).sum(axis=1)[:, None]
        means = np.where(dimensions > 0, shares.sum(axis=2) / np.maximum(dimensions, 1), np.nan)
        return 100.0 * np.concatenate([means, (means[:, TEXT] - means[:, IMAGE])[:, None]], axis=1)

    def per_story(self, method: int) -> dict[str, float]:
        """Return each story's image recoverability on its valid questions, in points; stories without one are left
        out."""
        rates, ones = self.rates(method, np.ones((1, self.given.shape[2]))), np.eye(len(self.stories))
        image = self.means(rates, self.valid[method], ones)[:, IMAGE]
        return {name: float(value) for name, value in zip(self.stories, image, strict=True) if not np.isnan(value)}


@dataclass(frozen=True)
class _Draws:
    """Estimates of several methods on one set of questions: as they are, resampled, and with one left out.

    Each array ends in (methods, 4).
    """

    whole: Floats
    stories: Floats
    raters: Floats
    without_rater: Floats
    without_story: Floats

    @classmethod
    def of(cls, people: Answered, methods: Sequence[int], kept: Bools, resamples: int, seed: int) -> _Draws:
        number, told = people.given.shape[2], len(people.stories)
        everyone, every = np.ones((1, number)), np.ones((1, told))
        fixed = [people.rates(method, everyone) for method in methods]

        def stories(drawn: Floats) -> Floats:
            return np.stack([people.means(rates, kept, drawn) for rates in fixed], axis=1)

        def raters(drawn: Floats) -> Floats:
            return np.stack([people.means(people.rates(m, drawn), kept, every) for m in methods], axis=1)

        def resampled(count: int, make: Any, own: int) -> Floats:
            step = max(1, _CHUNK_CELLS // max(1, 3 * len(people.questions)))
            parts = [
                make(drawn[at : at + step])
                for drawn in (resample_counts(count, resamples, own) if count > 1 and resamples else ())
                for at in range(0, len(drawn), step)
            ]
            return np.concatenate(parts) if parts else np.zeros((0, len(methods), _STG + 1))

        return cls(
            whole=stories(every)[0],
            stories=resampled(told, stories, seed),
            raters=resampled(number, raters, seed + 1),  # other draws than the stories'
            without_rater=raters(1.0 - np.eye(number)),
            without_story=stories(1.0 - np.eye(told)),
        )


def recoverability(people: Answered, method: int, resamples: int, seed: int) -> tuple[HumanRecoverability, list[str]]:
    """Return what people recover of one method's boards, and what has to be said about it."""
    valid, complete = people.valid[method], people.complete[method]
    asked = people.given[method].sum(axis=(0, 1)) > 0
    draws = _Draws.of(people, [method], valid, resamples, seed)
    whole, names = draws.whole[0], ("text", "image", "stg")
    places = (TEXT, IMAGE, _STG)
    numbers = [None if np.isnan(value) else float(value) for value in whole]
    dimensions = _dimensions(people, method, valid)
    both = {name: _crossed(draws, at) for name, at in zip(names, places, strict=True)}
    found = HumanRecoverability(
        n_questions=int(asked.sum()),
        n_valid=int(valid.sum()),
        ambiguity_rate=100.0 * float((complete & ~valid).sum() / complete.sum()) if complete.any() else None,
        text=numbers[TEXT],
        image=numbers[IMAGE],
        text_image=numbers[BOTH],
        stg=numbers[_STG],
        ci95=BlockIntervals(**{name: span(draws.stories[:, 0, at]) for name, at in zip(names, places, strict=True)}),
        ci95_raters=BlockIntervals(
            **{name: span(draws.raters[:, 0, at]) for name, at in zip(names, places, strict=True)}
        ),
        ci95_both=BlockIntervals(**{name: item.interval() if item else None for name, item in both.items()}),
        gaps={name: row.gap for name, row in dimensions.items()},
        dimensions=dimensions,
    )
    lacking = int((asked & ~complete).sum())
    return found, [f"{lacking} questions lack a condition and are left out."] if lacking else []


def _dimensions(people: Answered, method: int, valid: Bools) -> dict[Any, DimensionScore]:
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


def compare(people: Answered, resamples: int, seed: int) -> list[HumanComparison]:
    """Return every pair of methods in human STG, on the questions that are valid for both.

    The family is the number of pairs. A method is said to lose less where the interval for other participants and other
    stories leaves out zero and its corrected p is below 5%.
    """
    pairs = list(combinations(range(len(people.methods)), 2))
    return [_pair(people, pair, len(pairs), resamples, seed) for pair in pairs]


def _pair(people: Answered, pair: tuple[int, int], family: int, resamples: int, seed: int) -> HumanComparison:
    kept = people.valid[pair[0]] & people.valid[pair[1]]
    draws = _Draws.of(people, pair, kept, resamples, seed)
    first, second = (None if np.isnan(value) else float(value) for value in draws.whole[:, _STG])
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
        ci95=_difference(draws.stories),
        ci95_raters=_difference(draws.raters),
        ci95_both=both,
        p_both=p,
        family=family,
        p_corrected=corrected,
        reading=_reading(a, b, both, corrected),
    )


def _difference(drawn: Floats) -> Interval | None:
    return span(drawn[:, 0, _STG] - drawn[:, 1, _STG])


def _reading(a: str, b: str, both: Interval | None, corrected: float | None) -> str:
    if both is None or corrected is None or corrected >= LEVEL or both[0] <= 0.0 <= both[1]:
        return "no difference is shown"
    return f"{a if both[1] < 0 else b} loses less"


def conditions_of(rows: Iterable[Mapping[str, Any]]) -> list[Condition]:
    """Return the conditions that judgments were made under, in the protocol's order."""
    found = {row["condition"] for row in rows if "condition" in row}
    return [name for name in CONDITIONS if name in found]
