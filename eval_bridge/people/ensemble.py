"""The human-calibrated ensemble (Secs. B.4 and E.7, Table 62): judges weighted by how well they followed people.

Each judge's vote on an answer counts as its stated confidence, with the sign of its verdict (right or not). A logistic
regression on people's gold labels gives the weights; a second one on predictions for stories that the first had not
seen (five folds by story) gives the confidence (Platt scaling). Both are scikit-learn's. The file holds plain numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.people.agreement import calibration_error, pairwise_agreement, rank_correlation
from katha.eval_bridge.scoring.outcomes import CALIBRATED, ENSEMBLE, MISSING, RIGHT, WRONG, Outcomes, majority
from katha.jsonio import read_json
from katha.models.checkpoints import need
from katha.schema import CONDITIONS

STRENGTH = np.array([1 / 2, 1 / 6, 1 / 2, 5 / 6])
"""What a vote counts by stated confidence: none, low, medium, high (the middle of each third of the scale)."""
# Weights are learned on four fifths of the stories and tried on the fifth.
_FOLDS = 5
# With fewer labels a fold holds too few of one kind to fit anything.
_FEWEST = 20

Floats = NDArray[np.float64]


@pydantic_dataclass(frozen=True)
class GoldEnsemble:
    """Weights by judge, and the slope and offset that turn a weighted vote into a probability."""

    judges: Annotated[tuple[str, ...], Field(min_length=1)]
    weights: tuple[FiniteFloat, ...]
    intercept: FiniteFloat
    slope: FiniteFloat
    offset: FiniteFloat

    def probability(self, signals: Floats) -> Floats:
        """Return how likely people find the answer right, from signed votes of shape (judges, ...), in 0..1."""
        votes = np.tensordot(np.asarray(self.weights), signals, axes=1) + self.intercept
        chance: Floats = 1.0 / (1.0 + np.exp(-(self.slope * votes + self.offset)))
        return chance

    def outcome(self, table: NDArray[np.int8], strength: NDArray[np.int8], names: Sequence[str]) -> NDArray[np.int8]:
        """RIGHT, WRONG or MISSING from verdicts and confidences of shape (methods, judges, ...).

        Right needs more than one half; fewer than half of the fitted judges voting leaves it MISSING.
        """
        place = {name: at for at, name in enumerate(names)}
        absent = np.full_like(table[:, 0], MISSING)
        cells = np.stack([table[:, place[judge]] if judge in place else absent for judge in self.judges])
        levels = np.stack([strength[:, place[judge]] if judge in place else 0 * absent for judge in self.judges])
        cast = (cells >= WRONG).sum(axis=0)
        right = np.where(self.probability(signals_of(cells, levels)) > 0.5, RIGHT, WRONG)
        return np.where((2 * cast < len(self.judges)) | (cast == 0), MISSING, right).astype(np.int8)


@dataclass(frozen=True)
class Worth:
    """Table 62's columns for one judge: agreement with people in percent, and the rest in 0..1 (None: no number)."""

    agreement: float
    spearman: float | None
    pairwise_agreement: float | None
    ece: float | None


@dataclass(frozen=True)
class EnsembleReport:
    """The worth of an ensemble on `n` labelled answers of so many stories, beside each judge and the majority."""

    n: int
    stories: int
    measured: dict[str, Worth]


def signals_of(cells: NDArray[np.int8], levels: NDArray[np.int8]) -> Floats:
    """Signed votes: + where right, - where wrong, 0 without a vote, times what the confidence counts."""
    signs = np.where(cells == MISSING, 0.0, np.where(cells == RIGHT, 1.0, -1.0))
    votes: Floats = signs * STRENGTH[levels]
    return votes


def read_ensemble(path: Path) -> GoldEnsemble:
    """An ensemble that `katha bench ensemble` wrote.

    Raises:
        InputFileError: it is none.
    """
    try:
        found = TypeAdapter(GoldEnsemble).validate_python(read_json(path))
        if len(found.judges) != len(found.weights):
            raise ValueError("judges and weights do not fit")
    except ValueError as error:
        raise InputFileError(
            f"{str(path)!r} is not an ensemble.", hint="Give the file that `katha bench ensemble` wrote."
        ) from error
    return found


def _gold(judgments: Iterable[Mapping[str, Any]]) -> dict[tuple[str | None, str, str, str], bool]:
    """People's majority by method, story, question and condition; a tie is not right."""
    votes: dict[tuple[str | None, str, str, str], list[bool]] = defaultdict(list)
    wanted = ("story_id", "question_id", "condition", "right")
    for row in judgments:
        if all(name in row for name in wanted):
            votes[row.get("method"), row["story_id"], row["question_id"], row["condition"]].append(row["right"])
    return {key: 2 * sum(cast) > len(cast) for key, cast in votes.items()}


def fit_ensemble(
    outcomes: Outcomes, judgments: Iterable[Mapping[str, Any]], *, seed: int = 42
) -> tuple[GoldEnsemble, EnsembleReport]:
    """Weights and confidence fitted on people's labels, and what it is worth on stories that it was not fitted on.

    judgments: rows with `story_id`, `question_id`, `condition`, `right`, and `method` where there are several; several
    raters of one item are settled by majority. Table 62's columns are given for each judge, the majority and the
    fitted ensemble, all on the same items; the fitted one is measured across folds.

    Raises:
        RecordError: fewer than 20 labelled items, one kind of label only, or fewer than two stories.
    """
    place = [at for at, name in enumerate(outcomes.judges) if name not in (ENSEMBLE, CALIBRATED)]
    judges = [outcomes.judges[at] for at in place]
    items = _items(outcomes, _gold(judgments))
    if len(items) < _FEWEST or len({label for *_, label in items}) < 2 or len({story for story, *_ in items}) < 2:
        raise RecordError(
            f"{len(items)} labelled answers are too few, or all of one kind or story.",
            hint=f"Give at least {_FEWEST} rows (story_id, question_id, condition, right) that match the archive.",
        )
    cells = np.stack([outcomes.cells[m, place, c, q] for _, m, c, q, _ in items], axis=1)
    levels = np.stack([outcomes.confidence[m, place, c, q] for _, m, c, q, _ in items], axis=1)
    signals, labels = signals_of(cells, levels).T, np.array([label for *_, label in items])
    stories = np.array([story for story, *_ in items])
    seen = _unseen_votes(signals, labels, stories, seed)
    whole, scaled = _regression(signals, labels), _regression(seen[:, None], labels)
    slope, offset = float(scaled.coef_[0][0]), float(scaled.intercept_[0])
    found = GoldEnsemble(tuple(judges), tuple(map(float, whole.coef_[0])), float(whole.intercept_[0]), slope, offset)
    chance = 1.0 / (1.0 + np.exp(-(slope * seen + offset)))
    rows = {name: _measured(cells[at] == RIGHT, signals[:, at], labels, stories) for at, name in enumerate(judges)}
    voted = majority(cells)
    share = np.where(cells == RIGHT, 1, 0).sum(axis=0) / np.maximum((cells != MISSING).sum(axis=0), 1)
    rows["majority"] = _measured(voted == RIGHT, 2 * share - 1, labels, stories)
    rows[CALIBRATED] = _measured(chance > 0.5, 2 * chance - 1, labels, stories)
    return found, EnsembleReport(len(items), len(set(stories.tolist())), rows)


Item = tuple[str, int, int, int, bool]


def _items(outcomes: Outcomes, gold: Mapping[tuple[str | None, str, str, str], bool]) -> list[Item]:
    """Labelled answers that at least one judge gave: story, places of method, condition and question, the label."""
    items: list[Item] = []
    for q, question in enumerate(outcomes.questions):
        story = outcomes.stories[outcomes.story_of[q]]
        for c, condition in enumerate(CONDITIONS):
            for m, method in enumerate(outcomes.methods):
                key = (story, question.question_id, condition)
                label = gold.get((method, *key), gold.get((None, *key)))
                if label is not None and (outcomes.cells[m, :, c, q] != MISSING).any():
                    items.append((story, m, c, q, label))
                if condition == "text" and label is not None:
                    break  # the text is the same for every method
    return items


def _regression(signals: Floats, labels: NDArray[np.bool_]) -> Any:
    return need("sklearn.linear_model", "The human-calibrated ensemble").LogisticRegression().fit(signals, labels)


def _unseen_votes(signals: Floats, labels: NDArray[np.bool_], stories: NDArray[np.str_], seed: int) -> Floats:
    """The weighted vote on each item by a regression that saw none of its story."""
    selection = need("sklearn.model_selection", "The human-calibrated ensemble")
    folds = selection.StratifiedGroupKFold(min(_FOLDS, len(set(stories.tolist()))), shuffle=True, random_state=seed)
    votes = np.zeros(len(labels))
    for fitted, held in folds.split(signals, labels, stories):
        if len(set(labels[fitted].tolist())) < 2:
            votes[held] = signals[held].sum(axis=1)
        else:
            votes[held] = _regression(signals[fitted], labels[fitted]).decision_function(signals[held])
    return votes


def _measured(said: NDArray[np.bool_], votes: Floats, labels: NDArray[np.bool_], stories: NDArray[np.str_]) -> Worth:
    """Agreement, rank correlation and pairwise agreement over stories, and ECE of the vote's own verdict."""
    sure = np.abs(votes) / 2 + 0.5
    names = sorted(set(stories.tolist()))
    judged = [float(said[stories == name].mean()) for name in names]
    people = [float(labels[stories == name].mean()) for name in names]
    return Worth(
        agreement=100.0 * float((said == labels).mean()),
        spearman=rank_correlation(judged, people),
        pairwise_agreement=pairwise_agreement(judged, people),
        ece=calibration_error(sure.tolist(), (said == labels).tolist()),
    )
