"""What the controls showed: image-only answers beside the chance level, and a judge's agreement with itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from katha.eval_bridge.controls import Control
from katha.eval_bridge.instructions import UNCLEAR
from katha.eval_bridge.matching import Matching, match
from katha.eval_bridge.normal import normalise
from katha.eval_bridge.options import chance_level
from katha.eval_bridge.statistics import interval, resample_counts
from katha.schema import Answer, Dimension, Question

__all__ = ["control_results"]

Key = tuple[str, str]
Known = Mapping[Key, Question]
_RESAMPLES = 2_000
_FALLS: Mapping[str, Dimension | None] = {"blank": None, "foreign": None, "shuffled": "temporal_order"}
"""The dimension that must fall to chance under each control; None: all of them."""


class _Rows:
    """Image-only rows of one judge as right, wrong or missing, by control and question."""

    def __init__(self, questions: Known, matching: Matching) -> None:
        self._questions, self._matching = questions, matching
        self.right: dict[str, dict[Key, bool]] = {}
        self.said: dict[str, dict[Key, str]] = {}
        self.failed: dict[str, int] = {}

    def add(self, name: str, row: Answer) -> None:
        key = (row.story_id, row.question_id)
        if key not in self._questions:
            return
        if row.status != "ok" or row.answer is None:
            self.failed[name] = self.failed.get(name, 0) + 1
            return
        right = match(row, self._questions[key], self._matching).right
        if right is None:
            self.failed[name] = self.failed.get(name, 0) + 1
            return
        self.right.setdefault(name, {})[key] = right
        self.said.setdefault(name, {})[key] = normalise(row.answer)


def control_results(
    questions: Known,
    answers: Iterable[Answer],
    control_answers: Iterable[Answer],
    *,
    board: str,
    matching: Matching,
    controls: Sequence[Control],
    chance: bool = True,
    seed: int = 42,
) -> list[dict[str, Any]]:
    """One entry a control and judge, in percentage points; what cannot be computed is None and `reading` says why.

    questions: by story and question id. answers: the rows about `board`, of which the image-only ones are compared.
    chance: whether the answers were chosen among options, so that there is a chance level.
    """
    judges: dict[str, _Rows] = {}
    for row in answers:
        if row.method == board and row.condition == "image":
            judges.setdefault(row.judge, _Rows(questions, matching)).add("board", row)
    for row in control_answers:
        if row.method is not None and row.method in controls:
            judges.setdefault(row.judge, _Rows(questions, matching)).add(row.method, row)
    results = []
    for name in controls:
        for judge in sorted(judges):
            make = _agreement if name == "repeat" else _fallen
            found = make(name, judges[judge], questions, chance, seed)
            results.append({"control": name, "board": board, "judge": judge, **found})
    return results


def _rate(outcomes: Mapping[Key, bool], keys: Sequence[Key]) -> float | None:
    return 100.0 * sum(outcomes[key] for key in keys) / len(keys) if keys else None


def _by_story(outcomes: Mapping[Key, bool], keys: Sequence[Key], seed: int) -> list[float] | None:
    """The story bootstrap's 95% interval of the share right; None with fewer than two stories."""
    stories = sorted({story for story, _ in keys})
    if len(stories) < 2:
        return None
    place = {story: at for at, story in enumerate(stories)}
    counts = np.zeros((len(stories), 2))
    for key in keys:
        counts[place[key[0]]] += (1.0, float(outcomes[key]))
    drawn = np.concatenate([rows @ counts for rows in resample_counts(len(stories), _RESAMPLES, seed)])
    return interval(drawn[:, 1] / drawn[:, 0])


def _block(
    name: str,
    rows: _Rows,
    keys: Sequence[Key],
    known: Known,
    chance: bool,
    seed: int,
) -> dict[str, Any]:
    outcomes, board = rows.right.get(name, {}), rows.right.get("board", {})
    both = [key for key in keys if key in board]
    level = chance_level(known[key] for key in keys) if chance else None
    return {
        "n": len(keys),
        "image": _rate(outcomes, keys),
        "ci95": _by_story(outcomes, keys, seed),
        "board": _rate(board, both),
        "chance": 100.0 * level if level is not None else None,
    }


def _fallen(name: str, rows: _Rows, known: Known, chance: bool, seed: int) -> dict[str, Any]:
    """How much is still answered rightly, and whether what must fall has fallen to chance."""
    keys = sorted(rows.right.get(name, {}))
    said = rows.said.get(name, {})
    dimension = _FALLS[name]
    tested = [key for key in keys if dimension is None or known[key].question_type == dimension]
    whole = _block(name, rows, keys, known, chance, seed)
    focus = _block(name, rows, tested, known, chance, seed)
    unclear = [key for key in keys if said[key] == normalise(UNCLEAR)]
    passes, reading = _read(focus, dimension, bool(keys) or name in rows.failed)
    return {
        **whole,
        "n_unscored": rows.failed.get(name, 0),
        "unclear": 100.0 * len(unclear) / len(keys) if keys else None,
        "dimension": dimension,
        "focus": focus if dimension else None,
        "passes": passes,
        "reading": reading,
    }


def _read(block: Mapping[str, Any], dimension: Dimension | None, asked: bool) -> tuple[bool | None, str]:
    """Whether a block is at chance, and in words. Above chance means that the whole interval is."""
    what = "Order questions" if dimension else "Image-only answers"
    if not asked:
        return None, "There was nothing to show: it takes another story's board, or a second frame to exchange."
    if not block["n"]:
        return None, "No question was answered (see the statuses), so nothing can be said."
    if block["chance"] is None:
        return None, "Free answers have no chance level; compare with the board's own."
    low = block["ci95"][0] if block["ci95"] else None
    if block["image"] <= block["chance"]:
        return True, f"{what} fall to chance or below."
    if low is None:
        return None, f"{what} are above chance, but one story is too few to tell."
    if low <= block["chance"]:
        return True, f"{what} cannot be told from chance."
    return False, f"{what} stay above chance: they can be guessed without the pictures, or the judge leaks."


def _agreement(name: str, rows: _Rows, known: Known, chance: bool, seed: int) -> dict[str, Any]:
    """How often the judge says the same twice, and how often its verdict stays."""
    first, again = rows.said.get("board", {}), rows.said.get(name, {})
    keys = sorted(set(first) & set(again))
    same = {key: first[key] == again[key] for key in keys}
    kept = {key: rows.right["board"][key] == rows.right[name][key] for key in keys}
    agreement = _rate(same, keys)
    words = (
        "Nothing was answered twice." if agreement is None else f"The same answer in {agreement:.1f}% of {len(keys)}."
    )
    return {
        "n": len(keys),
        "agreement": agreement,
        "ci95": _by_story(same, keys, seed),
        "verdict_agreement": _rate(kept, keys),
        "n_unscored": rows.failed.get(name, 0),
        "passes": None,
        "reading": words,
    }
