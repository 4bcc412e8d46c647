"""Criterial rating: a model writes what a picture of a scene has to show, a rater marks it, point by point (Sec. 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from katha.configs import load_prompt
from katha.errors import InputFileError, ReplyError
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured, text_of
from katha.eval_bridge.metrics.detectors import resized
from katha.eval_bridge.metrics.illustration import (
    HEIGHT,
    POINTS,
    criterial_score,
    read_criteria,
    read_marks,
    read_rating,
)
from katha.jsonio import digest, iter_lines, loads
from katha.protocols import PlainPrompt
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

_PAPER = "Roemmele et al., LLMs Behind the Scenes"
_NO_FRAGMENT = "the frame has no text of its own"
_MOST_TOKENS = 2_000

CriteriaSets = Mapping[tuple[str, int], tuple[str, ...]]
"""Criteria by story and scene."""


def read_criteria_file(path: Path) -> CriteriaSets:
    """Return the criteria of a JSON Lines file: `story_id`, `scene` and the list `criteria`, one scene a line.

    Raises:
        InputFileError: a line cannot be used.
    """
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    for number, line in iter_lines(path):
        try:
            row = loads(line)
            criteria = tuple(str(item).strip() for item in row["criteria"])
            key = (str(row["story_id"]), int(row["scene"]))
        except (ValueError, KeyError, TypeError) as error:
            hint = 'Each line is like {"story_id": "fox", "scene": 1, "criteria": ["A fox is seen"]}.'
            raise InputFileError(
                f"{str(path)!r}, line {number}, is not a set of criteria: {error!r}.", hint=hint
            ) from error
        if not criteria or not all(criteria):
            raise InputFileError(f"{str(path)!r}, line {number}, has no criteria, or an empty one.")
        found[key] = criteria
    return found


@dataclass(frozen=True)
class _Writer:
    """Who says what a picture has to show: a file of the user's, or the judge, asked from the story's text alone."""

    given: CriteriaSets

    def spec(self) -> dict[str, Any]:
        told = {f"{story}#{scene}": list(criteria) for (story, scene), criteria in sorted(self.given.items())}
        return {
            "criteria": digest(told) if told else None,
            "prompt": load_prompt("metrics/illustration/criteria").sha256,
        }

    def criteria(self, board: MetricBoard, scene: int | None, context: MetricContext) -> tuple[str, ...]:
        """Return a scene's criteria.

        Raises:
            Unmeasured: the frame shows no scene of the story, or the judge wrote no criteria.
        """
        fragment = board.text_of(scene)
        if scene is None or not fragment:
            raise Unmeasured(_NO_FRAGMENT)
        if (board.story_id, scene) in self.given:
            return self.given[board.story_id, scene]
        told = load_prompt("metrics/illustration/criteria").render(story=board.record.story_text, fragment=fragment)
        prompt = PlainPrompt((told,), max_tokens=_MOST_TOKENS)
        answers = context.ask("criterial", board.story_id, board.method, [], {f"criteria/{scene}": prompt})
        try:
            return read_criteria(text_of(*answers.values()))
        except ReplyError as error:
            raise Unmeasured(f"unparseable: {error.message.rstrip('.')}") from error


class CriterialRating:
    """Each frame against what a model says that a picture of its scene has to show: 1, 0.5 or 0 a criterion."""

    card: ClassVar[MetricCard] = MetricCard(
        name="criterial",
        title="Criterial rating",
        paper=f"{_PAPER}, Secs. 5.1 and 5.2, Tables A.18 and A.19 (prompts)",
        formula="sum over a scene's criteria of 1 (satisfied), 0.5 (maybe) or 0 (not); share: by their number",
        level="frame",
        parts=(
            MetricPart(name="share", about="points by the number of criteria", choice=True),
            MetricPart(name="points", about="the paper's score", high=None),
        ),
        needs=("judge",),
        licence="prompts of the paper (1 of 3 exemplars is printed); the judge's own terms",
        cost="2 judge calls, one of them once a scene for all methods",
        calls_per_frame=2.0,
        vector="19.0 and 14.0 of 20 (Table 5) in tests/eval_bridge/test_metric_formulas.py",
    )

    def __init__(self, *, criteria: Path | None = None) -> None:
        """criteria: sets of the user's, which are not written anew.

        Raises:
            InputFileError: the file cannot be used.
        """
        self._writer = _Writer(read_criteria_file(criteria) if criteria is not None else {})

    def spec(self) -> Mapping[str, Any]:
        """Name, version, height of the pictures, given criteria and prompts."""
        rating = load_prompt("metrics/illustration/rating").sha256
        return {"name": "criterial", "version": 1, "height": HEIGHT, "rating": rating, **self._writer.spec()}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterator[MetricValue]:
        """Yield each frame's share and points, and as items the points of each criterion by its words."""
        for at, frame in enumerate(board.frames, 1):
            try:
                criteria = self._writer.criteria(board, frame.scene, context)
                told = load_prompt("metrics/illustration/rating").render(criteria=criteria)
                question = {f"rating/{at}": PlainPrompt((0, told), max_tokens=_MOST_TOKENS)}
                picture = resized(frame.data, HEIGHT)
                answers = context.ask("criterial", board.story_id, board.method, [picture], question)
                marks = read_marks(text_of(*answers.values()), len(criteria))
            except (Unmeasured, ReplyError) as error:
                reason = str(error) if isinstance(error, Unmeasured) else f"unparseable: {error.message.rstrip('.')}"
                yield board.value("share", None, frame=at, reason=reason)
                yield board.value("points", None, frame=at, reason=reason)
                continue
            score = criterial_score(marks)
            yield board.value("share", score / len(criteria), frame=at, n=len(criteria))
            yield board.value("points", score, frame=at, n=len(criteria))
            for criterion, mark in zip(criteria, marks, strict=True):
                yield board.value("share", POINTS[mark], frame=at, item=criterion)


class BaselineRating:
    """The paper's comparison: one rating of the picture in half points, up to the number of criteria, without them."""

    card: ClassVar[MetricCard] = MetricCard(
        name="criterial-baseline",
        title="Baseline rating",
        paper=f"{_PAPER}, Sec. 5.2, Table A.20 (prompt)",
        formula="a rating from 0 to the number of criteria in half points, by that number",
        level="frame",
        parts=(MetricPart(name="share", about="the rating by the number of criteria", choice=True),),
        needs=("judge",),
        licence="prompt of the paper; the judge's own terms",
        cost="2 judge calls, one of them once a scene for all methods",
        calls_per_frame=2.0,
        vector="half points up to the number of criteria in tests/eval_bridge/test_metric_illustration.py",
    )

    def __init__(self, *, criteria: Path | None = None) -> None:
        """criteria: sets of the user's; only their number is used.

        Raises:
            InputFileError: the file cannot be used.
        """
        self._writer = _Writer(read_criteria_file(criteria) if criteria is not None else {})

    def spec(self) -> Mapping[str, Any]:
        """Name, version, height of the pictures, given criteria and prompts."""
        rating = load_prompt("metrics/illustration/baseline").sha256
        return {"name": "criterial-baseline", "version": 1, "height": HEIGHT, "rating": rating, **self._writer.spec()}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterator[MetricValue]:
        """Yield each frame's rating as a share of the highest one."""
        for at, frame in enumerate(board.frames, 1):
            try:
                count = len(self._writer.criteria(board, frame.scene, context))
                told = load_prompt("metrics/illustration/baseline").render(
                    count=count, story=board.record.story_text, fragment=board.text_of(frame.scene)
                )
                question = {f"rating/{at}": PlainPrompt((0, told), max_tokens=16)}
                picture = resized(frame.data, HEIGHT)
                answers = context.ask("criterial-baseline", board.story_id, board.method, [picture], question)
                rating = read_rating(text_of(*answers.values()), count)
            except Unmeasured as unmeasured:
                yield board.value("share", None, frame=at, reason=str(unmeasured))
                continue
            reason = None if rating is not None else "unparseable: no rating in half points within the scale"
            share = rating / count if rating is not None else None
            yield board.value("share", share, frame=at, n=count, reason=reason)
