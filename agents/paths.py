"""Choosing frame by frame: the best path through the lattice of scenes and seeds, by transition score.

An edge joins two adjacent scenes' frames, each from any seed, and is worth what Eq. 27 measures on just these two
frames, less the copy penalty. A renderer whose frames share their identity within one seed's board only (`batch`,
`reference`) cannot change seeds without changing characters: its paths are its boards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from katha.agents.context import RunContext
from katha.agents.critique import measure, measure_pair
from katha.agents.draw import numbered
from katha.agents.types import Emit
from katha.compass import transition_score, weigh
from katha.compass.content import dice
from katha.compass.features import BoardFeatures
from katha.schema import Board, Candidate

__all__ = ["PATH", "choose_path"]

PATH = "path"
"""The name of the composed board among the candidates."""

Boards = Sequence[Board]


def choose_path(context: RunContext, candidates: Sequence[Candidate], emit: Emit) -> Candidate:
    """The board composed of the candidates' frames by the mode's rule, measured like any other."""
    boards = [candidate.board for candidate in candidates]
    seeds = _RULES[context.mode.select](context, candidates, emit)
    frames = [boards[at].frames[place] for place, at in enumerate(seeds)]
    board = boards[0].model_copy(update={"frames": numbered(frames), "method": PATH})
    return measure(context, PATH, board, emit)


def _random(context: RunContext, candidates: Sequence[Candidate], emit: Emit) -> list[int]:
    """Each scene's seed by chance, or one seed for all where seeds cannot be mixed."""
    throw = dice(context.record.story_id)
    scenes = len(candidates[0].board.frames)
    if not _mixes(context):
        return [throw.randrange(len(candidates))] * scenes
    return [throw.randrange(len(candidates)) for _ in range(scenes)]


def _best(context: RunContext, candidates: Sequence[Candidate], emit: Emit) -> list[int]:
    """Viterbi over the lattice; of equals the path that changes seeds least, then the earlier seeds."""
    scenes, count = len(candidates[0].board.frames), len(candidates)
    # (worth, -changes, -first seeds): the largest is the best, and ties are settled the same way everywhere.
    paths: list[tuple[float, int, list[int]]] = [(0.0, 0, [at]) for at in range(count)]
    for place in range(scenes - 1):
        worth = _edges(context, candidates, place, emit)
        paths = [
            max(
                (
                    (total + worth[before, after], changes - (before != after), [*path, after])
                    for before, (total, changes, path) in enumerate(paths)
                    if (before, after) in worth
                ),
                key=lambda item: (round(item[0], 12), item[1], [-at for at in item[2]]),
            )
            for after in range(count)
        ]
    return max(paths, key=lambda item: (round(item[0], 12), item[1], [-at for at in item[2]]))[2]


def _edges(
    context: RunContext, candidates: Sequence[Candidate], place: int, emit: Emit
) -> dict[tuple[int, int], float]:
    """What each allowed step from scene `place` + 1 to the next is worth, by the two candidates' places."""
    settings, pair = context.config.compass, (place + 1, place + 2)
    transition = next((item for item in context.trajectory() if item.pair == pair), None)
    found: dict[tuple[int, int], float] = {}
    for before, one in enumerate(candidates):
        for after, two in enumerate(candidates):
            if transition is None or (before != after and not _mixes(context)):
                found |= {(before, after): 0.0} if before == after else {}
                continue
            frames = [one.board.frames[place], two.board.frames[place + 1]]
            board = one.board.model_copy(update={"frames": numbered(frames)})
            name = f"{one.name}+{two.board.seed}"
            step = measure_pair(context, name, board, transition, emit)
            features = BoardFeatures(recoverability=None, adjacent=[step.adjacent], transitions=[step])
            scored = weigh(name, board, features, settings).transitions[0]
            found[before, after] = transition_score(scored) - settings.lambda_p * scored.copied
    return found


def _mixes(context: RunContext) -> bool:
    """Whether frames of several seeds can stand in one board with the characters the same."""
    return context.plugins.renderer.capabilities.identity in ("none", "bank")


_RULES: Mapping[str, Callable[[RunContext, Sequence[Candidate], Emit], list[int]]] = {
    "path": _best,
    "random_path": _random,
}
