"""Boards: drawn from a plan with one seed, with one frame more (Eq. 28), or chosen frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from katha.agents.context import RunContext, plan_sha256
from katha.agents.critique import measure, measure_pair
from katha.agents.frames import draw_inserted, draw_scenes, images_of
from katha.agents.state import BridgeTask, Emit
from katha.compass.repair import BoardFeatures, Insertion, dice, insertion, transition_score, transition_text, weigh
from katha.errors import UsageError
from katha.protocols import FrameRequest
from katha.schema import Board, Candidate, Frame, FrameKind, Plan


def frame_request(
    context: RunContext,
    plan: Plan,
    insertion: Insertion,
    seed: int,
    kind: FrameKind = "scene",
    scene: int | None = None,
) -> FrameRequest:
    """Return one request to the renderer."""
    width, height = context.size
    return FrameRequest(
        prompt=insertion.prompt,
        seed=seed,
        width=width,
        height=height,
        negative_prompt=insertion.negative_prompt,
        style=plan.style,
        kind=kind,
        scene=scene,
        characters=tuple(item for item in plan.characters if item.name in insertion.characters),
        story_id=plan.story_id,
    )


def scene_requests(context: RunContext, plan: Plan, seed: int) -> list[FrameRequest]:
    """Return the requests of one seed's board, a panel each."""
    return [
        frame_request(
            context,
            plan,
            Insertion(panel.prompt, panel.negative_prompt, tuple(panel.characters)),
            seed,
            scene=panel.index,
        )
        for panel in plan.panels
    ]


def draw_board(context: RunContext, plan: Plan, seed: int, emit: Emit) -> Board:
    """Draw the board of one seed; frames that are already in the cache are not drawn.

    Raises:
        RenderError: a frame could not be made.
    """
    requests, hashes = draw_scenes(context, scene_requests(context, plan, seed), emit)
    frames = [
        Frame(
            index=number,
            scene=request.scene,
            image=f"panels/{sha256}.png",
            sha256=sha256,
            prompt=request.prompt,
            seed=request.seed,
        )
        for number, (request, sha256) in enumerate(zip(requests, hashes, strict=True), 1)
    ]
    return Board(
        story_id=plan.story_id,
        method=f"candidate:{seed}",
        mode=context.mode.name,
        planner=plan.planner,
        renderer=context.config.renderer,
        seed=seed,
        plan_sha256=plan_sha256(plan),
        frames=frames,
    )


def insert_frame(board: Board, frame: Frame, method: str) -> Board:
    """Return Eq. 28: `board` with `frame` before the position of its index; the other frames keep their images."""
    place = frame.index - 1
    frames = [*board.frames[:place], frame, *board.frames[place:]]
    return board.model_copy(update={"frames": numbered(frames), "method": method, "seed": board.seed})


def numbered(frames: Iterable[Frame]) -> list[Frame]:
    """Return `frames` with their indices from 1."""
    return [frame.model_copy(update={"index": number}) for number, frame in enumerate(frames, 1)]


def insertion_of(context: RunContext, pair: tuple[int, int], prompt: str | None = None) -> Insertion:
    """Return what the mode inserts at `pair`; `prompt` is a reviewing person's, if any."""
    plan, content = context.plan(), context.mode.content
    transition = next((item for item in context.trajectory() if item.pair == pair), None)
    if transition is None or content is None:
        raise UsageError(f"The mode {context.mode.name!r} inserts nothing at scenes {pair[0]} and {pair[1]}.")
    what = insertion(content, plan, transition, context.record.story_id)
    return replace(what, prompt=prompt) if prompt else what


def insertion_seeds(context: RunContext, board: Board) -> tuple[int, ...]:
    """Return the seeds that the inserted frame is drawn with: the run's, or the board's own for a single draw."""
    return context.config.seeds if context.mode.draws == "every" else (board.seed,)


def draw_bridge(context: RunContext, task: BridgeTask, emit: Emit) -> Board:
    """Draw the board of `task` with one frame inserted, or with one replaced (`Mode.place`), by its `inserted_name`."""
    board, plan, (first, second) = task["board"], context.plan(), task["pair"]
    pair = (first, second)  # a checkpoint gives tuples back as lists, and a list is equal to no tuple
    what = insertion_of(context, pair, task["prompt"])
    kind: FrameKind = "bridge" if context.mode.insert == "bridge" else "extra"
    seed = _another_seed(context, board, task["seed"]) if what.other_seed else task["seed"]
    request = frame_request(context, plan, what, seed, kind=kind)
    name = inserted_name(context.mode.insert, board, task["seed"])
    replaced = _weaker(context, board, pair) if context.mode.place == "instead" else None
    if replaced is not None:
        board = board.model_copy(update={"frames": numbered(item for item in board.frames if item is not replaced)})
        place = replaced.index - 1
    else:
        place = next(number for number, frame in enumerate(board.frames) if frame.scene == second)
    others = board_requests(context, board)
    drawn, sha256 = draw_inserted(context, request, board, others, place, emit)
    frame = Frame(
        index=place + 1,
        kind=kind if replaced is None else "scene",
        scene=replaced.scene if replaced is not None else None,
        transition=pair,
        image=f"panels/{sha256}.png",
        sha256=sha256,
        prompt=what.prompt,
        seed=drawn.seed,
        renderer=context.config.bridge_renderer,
    )
    return insert_frame(board, frame, name)


def inserted_name(kind: str, board: Board, seed: int) -> str:
    """Return the name of `board` with one frame more from `seed`: `bridge:42`, and `bridge.2:42` for the second."""
    count = sum(frame.transition is not None for frame in board.frames)
    return f"{kind}:{seed}" if not count else f"{kind}.{count + 1}:{seed}"


def _weaker(context: RunContext, board: Board, pair: tuple[int, int]) -> Frame:
    """The scene of `pair` whose frame is less like the transition's text; of equals the later one."""
    step = next(item for item in context.trajectory() if item.pair == pair)
    text = context.plugins.similarity.encode_text(transition_text(step))
    frames = [frame for frame in board.frames if frame.scene in pair]
    pictures = images_of(context, board.model_copy(update={"frames": frames}))
    worth = [float(context.plugins.similarity.encode_image(png) @ text) for png in pictures]
    return min(zip(worth, frames, strict=True), key=lambda item: (item[0], -item[1].index))[1]


def board_requests(context: RunContext, board: Board) -> list[FrameRequest]:
    """Return what each frame of `board` was drawn from: its prompt as it was used, with its own seed."""
    return [_request_of(context, frame) for frame in board.frames]


def _request_of(context: RunContext, frame: Frame) -> FrameRequest:
    plan = context.plan()
    if frame.scene is not None and frame.transition is None:
        return scene_requests(context, plan, frame.seed)[frame.scene - 1]
    what = insertion_of(context, frame.transition or (1, 2), frame.prompt)
    return frame_request(context, plan, what, frame.seed, kind=frame.kind)


def _another_seed(context: RunContext, board: Board, seed: int) -> int:
    """A seed that is not the board's: the run's next one, or a new one for each seed where every seed is drawn."""
    if context.mode.draws == "every":
        return (seed + 1) % 2**32
    return next((other for other in context.config.seeds if other != board.seed), (board.seed + 1) % 2**32)


# Choosing frame by frame: the best path through the lattice of scenes and seeds, by transition score.
#
# An edge joins two adjacent scenes' frames, each from any seed, and is worth what Eq. 27 measures on just these two
# frames, less the copy penalty. A renderer whose frames share their identity within one seed's board only (`batch`,
# `reference`) cannot change seeds without changing characters: its paths are its boards.


PATH = "path"
"""The name of the composed board among the candidates."""

Boards = Sequence[Board]


def choose_path(context: RunContext, candidates: Sequence[Candidate], emit: Emit) -> Candidate:
    """Return the board composed of the candidates' frames by the mode's rule, measured like any other."""
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
