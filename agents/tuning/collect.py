"""One validation story measured for every setting at once: all candidates, and every repair that could be tried."""

from __future__ import annotations

from collections.abc import Sequence

from katha.agents.ablation.bench import StoryBench
from katha.agents.context import RunContext
from katha.agents.critique import measure
from katha.agents.draw import draw_board
from katha.agents.inserting import draw_bridge, insertion_seeds
from katha.agents.state import BridgeTask
from katha.agents.types import Emit
from katha.compass.features import BoardFeatures, board_key
from katha.compass.suites import Row
from katha.compass.tuning_data import CandidateData, RepairData, StoryData, possible_weakest
from katha.eval_bridge.outcomes import collect
from katha.eval_bridge.paired import row_counts
from katha.schema import Board

__all__ = ["TuningBench"]

Counts = list[list[float]]


class TuningBench(StoryBench):
    """A story whose boards are all measured with steering questions and judged with reporting questions."""

    def data(self, row: Row, seeds: Sequence[int], emit: Emit) -> StoryData:
        """The features and outcomes of every board that `row`'s mode could end with, whatever the settings are.

        Raises:
            RenderError: a frame could not be made. UsageError: the story cannot be planned or drawn.
        """
        context = self.open(row, seeds)
        candidates = [self._candidate(context, row, seed, emit) for seed in seeds]
        return StoryData(story_id=context.record.story_id, candidates=candidates)

    def _candidate(self, context: RunContext, row: Row, seed: int, emit: Emit) -> CandidateData:
        board = draw_board(context, context.plan(), seed, emit)
        features = self._measured(context, f"candidate:{seed}", board, emit)
        repairs: dict[str, list[RepairData]] = {}
        inserts = context.mode.insert != "none"
        for pair in possible_weakest(features.transitions) if inserts else ():
            repairs[f"{pair[0]}-{pair[1]}"] = [
                self._repair(context, row, board, pair, other, emit) for other in insertion_seeds(context, board)
            ]
        counts = self._counts(context, row, board, emit)
        return CandidateData(seed=seed, features=features, counts=counts, repairs=repairs)

    def _repair(
        self, context: RunContext, row: Row, board: Board, pair: tuple[int, int], seed: int, emit: Emit
    ) -> RepairData:
        task = BridgeTask(seed=seed, board=board.model_dump(mode="json"), pair=pair, prompt=None)
        repaired = draw_bridge(context, task, emit)
        features = self._measured(context, f"{repaired.method}/{board.seed}", repaired, emit)
        closest = max((step.adjacent for step in features.transitions if step.pair == pair), default=0.0)
        return RepairData(
            seed=seed, features=features, closest=closest, counts=self._counts(context, row, repaired, emit)
        )

    def _measured(self, context: RunContext, name: str, board: Board, emit: Emit) -> BoardFeatures:
        measure(context, name, board, emit)
        return (context.measured or {})[board_key(board.frames)]

    def _counts(self, context: RunContext, row: Row, board: Board, emit: Emit) -> Counts:
        """The board's reporting outcomes, shape (dimensions, 4)."""
        story = self.story()
        rows = self.report(context, board, row, "board", emit)
        outcomes = collect([story], rows, matching=context.matching, selection="reporting")
        counted = row_counts(outcomes, ["board"], [story.story_id])
        values: Counts = counted.counts[0, 0].tolist()
        return values
