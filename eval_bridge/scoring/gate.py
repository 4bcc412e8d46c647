"""Whether a judge can measure boards at all: the one rule that every output obeys.

STG is what the text tells and the images do not. It says nothing where the judge does not understand the text (the
valid questions are then those that it guessed), where too few questions are valid, or where it answers as well without
any evidence. Such a cell holds no value and no interval, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.scoring.intervals import FEWEST_STORIES, share_interval
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, Outcomes
from katha.eval_bridge.scoring.rows import choose_questions
from katha.eval_bridge.scoring.statistics import TEXT, Floats
from katha.schema import CONDITIONS, Condition, Dimension, Question
from katha.schema.scores import Block, BlockIntervals, JudgeScores

MARGIN = 10.0
"""So many points the text has to be above chance, with the whole interval."""
LEAST_VALID = 0.4
"""The least share of the scored questions that is valid."""
# Of a single question there is no share to speak of.
_FEWEST_VALID = 2
CANNOT = "cannot be measured with this judge"


@dataclass(frozen=True)
class Excess:
    """Answers above a level in points: the mean, and the lower end of its 95% interval (None of too few answers)."""

    mean: float
    low: float | None

    @classmethod
    def of(cls, stories: Sequence[int], above: Sequence[float], *, signed: bool = False) -> Excess:
        """Return it for one number an answer, over stories; over answers where there are fewer than six stories."""
        many = len(set(stories)) >= FEWEST_STORIES
        span = share_interval(list(stories) if many else list(range(len(above))), list(above), signed=signed)
        return cls(100.0 * float(np.mean(above)), span[0] if span is not None else None)

    def passes(self, level: float) -> bool:
        """Return whether all of it is above a level."""
        return (self.mean if self.low is None else self.low) > level


def chance_of(question: Question) -> float:
    """Return how often a guess is right: one of the options, `Unclear` apart; of a free answer, never."""
    offered = [text for text in question.options or () if text != UNCLEAR]
    return 1.0 / len(offered) if offered else 0.0


def why_not(
    outcomes: Outcomes,
    members: Sequence[int],
    judge: int,
    scored: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    *,
    told: bool = True,
) -> str | None:
    """Return why these boards cannot be measured with a judge, or None where they can.

    members: the places of the boards' methods. scored, valid: (members, Q). told: whether the text was asked, too.
    """
    stories = outcomes.story_of
    if not scored.any():
        return None  # there is no number to hide
    counts = [np.bincount(stories[np.nonzero(mask)[1]], minlength=len(outcomes.stories)) for mask in (scored, valid)]
    few = _too_few(*counts)
    if few is not None or not told:
        return few
    right = outcomes.cells[list(members), judge, TEXT] == RIGHT
    boards, places = np.nonzero(scored)
    chance = np.array([chance_of(item) for item in outcomes.questions])
    above = Excess.of(stories[places].tolist(), (right[boards, places] - chance[places]).tolist())
    return _only_guessed(above, float(chance[places].mean())) or _nothing_gained(outcomes, judge, scored, right)


def why_not_counted(scored: Floats, valid: Floats, chance: Floats) -> str | None:
    """Return why boards that are known by their counts alone cannot be measured, by the rule of `why_not`.

    scored, valid: (stories, COUNTS), summed over boards and dimensions. chance: (stories,), how often a guess is right
    in each story, 0 to 1.
    """
    asked = scored[:, 0] > 0
    if not asked.any():
        return None
    few = _too_few(scored[:, 0].astype(int), valid[:, 0].astype(int))
    if few is not None:
        return few
    where, above = [], []
    for at in np.nonzero(asked)[0]:
        number, right = int(scored[at, 0]), int(scored[at, 1 + TEXT])
        where += [int(at)] * number
        above += [1.0 - float(chance[at])] * right + [-float(chance[at])] * (number - right)
    level = float((chance * scored[:, 0]).sum() / scored[:, 0].sum())
    return _only_guessed(Excess.of(where, above), level)


def _too_few(scored: NDArray[np.int_], valid: NDArray[np.int_]) -> str | None:
    """Return why so many valid of so many scored questions, story by story, are too few."""
    number, kept = int(scored.sum()), int(valid.sum())
    if kept < min(_FEWEST_VALID, number) or kept < LEAST_VALID * number:
        return f"only {kept} of {number} questions are valid ({LEAST_VALID:.0%} are needed)"
    asked, able = int((scored > 0).sum()), int((valid > 0).sum())
    if able < FEWEST_STORIES <= asked:
        return f"only {able} of {asked} stories have a valid question ({FEWEST_STORIES} are needed)"
    return None


def _only_guessed(above: Excess, chance: float) -> str | None:
    """Return why text answers that are so far above chance (0 to 1) show no understanding."""
    if above.passes(MARGIN):
        return None
    level = 100.0 * chance
    return (
        f"from the text {above.mean + level:.0f}% are right where a guess is right in {level:.0f}%, not "
        f"{MARGIN:.0f} points more with certainty"
    )


def why_no_gap(
    outcomes: Outcomes,
    methods: Sequence[str],
    *,
    judge: str | None = None,
    conditions: Sequence[Condition] = CONDITIONS,
    filtered: bool = True,
    dimensions: Sequence[Dimension] = (),
) -> str | None:
    """Return why the boards of these methods cannot be measured; the options are those of `row_counts`."""
    if not methods or not outcomes.judges:
        return None
    chosen = choose_questions(
        outcomes, methods, judge=judge, conditions=conditions, filtered=filtered, dimensions=dimensions
    )
    at = outcomes.judges.index(judge) if judge is not None else len(outcomes.judges) - 1
    places = [outcomes.methods.index(name) for name in methods]
    return why_not(outcomes, places, at, chosen.scored, chosen.valid, told="text" in conditions)


def _nothing_gained(outcomes: Outcomes, judge: int, scored: NDArray[np.bool_], right: NDArray[np.bool_]) -> str | None:
    guesses = outcomes.guesses[judge]
    boards, places = np.nonzero(scored & (guesses != MISSING))
    if not len(places):
        return None
    guessed = guesses[places] == RIGHT
    gain = Excess.of(outcomes.story_of[places].tolist(), (1.0 * right[boards, places] - guessed).tolist(), signed=True)
    if gain.passes(0.0):
        return None
    return f"the text adds nothing to what is guessed without evidence ({100.0 * float(guessed.mean()):.0f}% are right)"


def thin_block(counts: Floats, stories: int) -> bool:
    """Return whether a block of a study of so many stories has questions of too few of them.

    counts: (stories, dimensions, COUNTS).
    """
    held = int((counts[..., 0].sum(axis=1) > 0).sum())
    return 0 < held < FEWEST_STORIES <= stories


def doubts(rows: Iterable[tuple[str, Sequence[Dimension], bool]]) -> list[str]:
    """Return sentences on rows (name, thin dimensions, a gap below zero): which numbers rest on next to nothing."""
    thin: dict[str, list[str]] = {}
    below: list[str] = []
    for name, dimensions, inspect in rows:
        if dimensions:
            thin.setdefault(", ".join(dimensions), []).append(name)
        below += [name] if inspect else []
    told = [
        f"{', '.join(names)}: {which} rest on one or two questions, each with a full share of the average."
        for which, names in thin.items()
    ]
    return told + ([f"{', '.join(below)}: STG below zero is no better board; look at the judging."] if below else [])


def emptied(block: Block, *, raw: bool) -> Block:
    """Return a block without the numbers that cannot be had; of every scored question the shares stay."""
    dimensions = {
        name: item.model_copy(update={"gap": None} if raw else {"gap": None, "text": None, "image": None})
        for name, item in block.dimensions.items()
    }
    spans = block.ci95.model_copy(update={"stg": None}) if raw else BlockIntervals(text=None, image=None, stg=None)
    gone: dict[str, object] = {"stg": None, "latent_gap": None, "by_story": None, "inspect": False}
    if not raw:
        gone |= dict.fromkeys(("text", "image", "text_image", "none", "gain_image", "gain_text"))
    return block.model_copy(update={**gone, "ci95": spans, "dimensions": dimensions})


def unmeasured(row: JudgeScores) -> str | None:
    """Return why a judge's numbers are not shown. A file of before the rule is held to what it says."""
    if row.unmeasured is not None or row.filtered.stg is None:
        return row.unmeasured
    scored = row.n_questions - row.n_unscored
    if row.n_valid < min(_FEWEST_VALID, scored) or row.n_valid < LEAST_VALID * scored:
        return f"only {row.n_valid} of {scored} questions are valid ({LEAST_VALID:.0%} are needed)"
    span = row.raw.ci95.text
    low = span[0] if span is not None else row.raw.text
    if low is not None and low <= MARGIN:
        return f"from the text {row.raw.text or 0.0:.0f}% are right"
    return None
