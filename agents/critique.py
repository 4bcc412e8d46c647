"""Measuring a board: questions, coverage and copies (Eqs. 24 to 27), and the numbers that are shown; and the board
whose frames are chosen one by one by what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from katha.agents.context import Plugins, RunContext
from katha.agents.folder import RunRecord, by_service, paid
from katha.agents.frames import images_of
from katha.agents.guiding import layouts_of
from katha.agents.state import Emit, RunResult
from katha.compass.effects import effect_of, is_stale
from katha.compass.modes import Mode
from katha.compass.repair import (
    BoardFeatures,
    TransitionFeatures,
    TransitionKey,
    adjacent_similarities,
    board_key,
    board_mark,
    span,
    transition_similarity,
    transition_text,
    weigh,
)
from katha.compass.unmeasured import NoSimilarity
from katha.errors import JudgeError
from katha.eval_bridge.judging.engine import Inquiry, prefix_caches
from katha.eval_bridge.judging.entrance import can_take, known
from katha.eval_bridge.matching.rules import settle
from katha.eval_bridge.packets.instructions import STEERING_VARIANT, STEERING_VARIANTS, Ask
from katha.eval_bridge.packets.packets import make_packet, scan_packet, secrets_of
from katha.eval_bridge.questions.build import chance_level
from katha.eval_bridge.scoring.outcomes import recoverability
from katha.eval_bridge.scoring.scores import score
from katha.jsonio import digest
from katha.plugin_boundary import named_failures
from katha.schema import (
    Answer,
    Board,
    Candidate,
    Candidates,
    Condition,
    Event,
    Question,
    ReadBack,
    Role,
    Stage,
    Transition,
)
from katha.schema.scores import Scores

_BY_RULE = (
    "{} cannot measure them on questions made by rule. Give a record with people's questions, or a model as --judge."
)


def question_id(row: Answer) -> str:
    """Return a short name of one question as it was put to one judge: equal ones are paid for once."""
    return digest([row.judge, row.packet_sha256, row.prompt_sha256])[:16]


def _told(stage: Stage, answer: Answer, *, reused: bool) -> Event:
    where = f"{answer.condition}, {answer.method}" if answer.method else answer.condition
    message = f"{answer.question_id} ({where}): {answer.answer or answer.status}"
    return Event(stage=stage, kind="answer", message=message, reused=reused)


def ask_all(
    context: RunContext,
    condition: Condition,
    images: Sequence[bytes],
    questions: Sequence[Question],
    *,
    method: str | None,
    role: Role,
    stage: Stage,
    emit: Emit,
    variant: str | None = None,
    by: Role | None = None,
) -> list[Answer]:
    """Return the answers to each question by each judge over one packet; the run's log has them when this returns.

    `variant` is the prompt variant, the role's own unless given; `by` asks the judges of another half. What steers is
    asked together by every judge that can, what reports as the run is told to.

    Raises:
        JudgeError: a judge cannot be asked at all. RecordError: an image-only packet carries more than pixels.
    """
    names = context.asked(by or role)
    if not questions or not names:
        return []
    record = context.record
    packet, evidence = make_packet(record.story_id, condition, images, record.story_text)
    # Scanned before the judge sees it: what a packet gives away cannot be taken back from an answer.
    prompts = [panel.prompt for panel in context.plan().panels]
    scan_packet(packet, evidence, secrets_of(record, prompts)).require(record.story_id)
    used = variant or (STEERING_VARIANT if role == "steering" else context.config.variant)
    ask: Ask = "together" if role == "steering" else context.config.ask
    inquiry = Inquiry(packet, evidence, questions, method, used, context.config.answers, ask=ask)

    def tell(answer: Answer, reused: bool) -> None:
        emit(_told(stage, answer, reused=reused))

    # The log gets the rows of all judges together; what a kill loses of them is in the cache.
    rows = [row for name in names for row in context.engine.ask(name, inquiry, tell)]
    context.files.append_answers(rows)
    return rows


def measure(context: RunContext, name: str, board: Board, emit: Emit) -> Candidate:
    """Return the candidate `name`: `board`, its score by Eq. 24, and each of its transitions (Eqs. 25 to 27).

    Where the context keeps features, a board that was measured before under any name is only weighed, and its answers
    are those of `NAME#MARK`, since several boards of a suite have one name.
    """
    known = context.measured.boards if context.measured.boards is not None else {}
    key = board_key(board.frames)
    features = known.get(key)
    if features is None:
        own = name if context.measured.boards is None else f"{name}#{board_mark(board.frames)}"
        features = known[key] = _features(context, own, board, emit)
        context.files.sync_answers()
    return weigh(name, board, features, context.config.compass)


class _Seen(NamedTuple):
    """A board as it is measured: its pictures, their vectors, and how alike each is to the next."""

    board: Board
    images: list[bytes]
    vectors: NDArray[np.float64]
    adjacent: list[float]


def _see(context: RunContext, board: Board) -> _Seen:
    images = images_of(context, board)
    vectors = context.plugins.similarity.encode_images(images)
    return _Seen(board, images, vectors, adjacent_similarities(vectors))


def _features(context: RunContext, name: str, board: Board, emit: Emit) -> BoardFeatures:
    seen, questions = _see(context, board), context.questions("steering")
    judge = context.reading_back("steering")
    if judge is not None:
        return _read_back(context, seen, judge)
    rows = ask_all(context, "image", seen.images, questions, method=name, role="steering", stage="critique", emit=emit)
    again = _read_again(context, name, seen, emit)
    # Of two frames the transition is the board: what was asked of the whole is not paid for twice.
    whole = rows if len(seen.images) == 2 else ()
    own = [_ask_transition(context, name, seen, item, emit, whole) for item in context.trajectory()]
    asked = [*rows, *again, *(row for answers in own for row in answers)]
    # All at once: a matcher that asks a model judges the answers of a board in one call.
    settle(context.matching, [context.story()], asked)
    told = [recoverability(each, questions, context.matching).mean for each in (rows, again) if each]
    readings = [each for each in told if each is not None]
    return BoardFeatures(
        recoverability=sum(readings) / len(readings) if readings else None,
        noise=abs(readings[0] - readings[1]) / 2 if len(readings) > 1 else None,
        adjacent=seen.adjacent,
        transitions=[
            _measure_transition(context, seen, item, answers)
            for item, answers in zip(context.trajectory(), own, strict=True)
        ],
        asked=sorted({question_id(row) for row in asked}),
    )


def _read_again(context: RunContext, name: str, seen: _Seen, emit: Emit) -> list[Answer]:
    """Ask the same of a board in the other steering prompt variant, where the mode measures boards in both."""
    if context.mode.readings == 1:
        return []
    return ask_all(
        context,
        "image",
        seen.images,
        context.questions("steering"),
        method=f"{name}/again",
        role="steering",
        stage="critique",
        emit=emit,
        variant=STEERING_VARIANTS[1],
    )


def _read_back(context: RunContext, seen: _Seen, name: str) -> BoardFeatures:
    """A board as its pictures read back, where nobody is asked about it; without a count where they cannot be read."""
    record, meant = context.record, [frame.prompt for frame in seen.board.frames]
    _, evidence = make_packet(record.story_id, "image", seen.images, record.story_text)
    with named_failures(f"judge {name!r}", JudgeError):
        found = context.plugins.judges[name].read_back(evidence.images, meant)
    transitions = [
        _features_of(context, seen, item, read_back=_counted(found, _shown_by(context, seen, item.pair)[0]))
        for item in context.trajectory()
    ]
    told = _counted(found, range(len(meant)))
    return BoardFeatures(recoverability=None, adjacent=seen.adjacent, transitions=transitions, read_back=told)


def _counted(found: Sequence[bool] | None, places: Iterable[int]) -> ReadBack | None:
    return ReadBack.of([found[place] for place in places]) if found is not None else None


def _own_questions(context: RunContext, pair: tuple[int, int]) -> list[Question]:
    return [item for item in context.questions("steering") if item.target_transition == pair]


def _shown_by(context: RunContext, seen: _Seen, pair: tuple[int, int]) -> tuple[list[int], TransitionKey]:
    """The places of a transition's two frames and what was inserted between them, and the key of what they show."""
    places = list(span(seen.board.frames, pair))
    return places, (pair, board_key([seen.board.frames[place] for place in places]))


def _ask_transition(
    context: RunContext, name: str, seen: _Seen, transition: Transition, emit: Emit, whole: Sequence[Answer] = ()
) -> list[Answer]:
    """Ask of one transition its own questions, with its two frames and what was inserted between them.

    Boards that show it by the same frames are asked once; the others get the same answers under their own name. A
    failure is asked again. whole: the answers about the board, where its frames are the transition's.
    """
    pair = transition.pair
    places, key = _shown_by(context, seen, pair)
    method = f"{name}/transition:{pair[0]}-{pair[1]}"
    if key in context.measured.transitions:
        return _told_again(context, context.measured.transitions[key][1], method, emit)
    questions = _own_questions(context, pair)
    asked = {item.question_id for item in questions}
    own = [row for row in whole if row.question_id in asked]
    if own and all(row.status == "ok" for row in own):
        return _told_again(context, own, method, emit)
    images = [seen.images[place] for place in places]
    return ask_all(context, "image", images, questions, method=method, role="steering", stage="critique", emit=emit)


def _measure_transition(
    context: RunContext, seen: _Seen, transition: Transition, rows: Sequence[Answer]
) -> TransitionFeatures:
    """One transition by the answers about it; measured once for all boards that show it by the same frames."""
    _, key = _shown_by(context, seen, transition.pair)
    if key in context.measured.transitions:
        return context.measured.transitions[key][0]
    questions = _own_questions(context, transition.pair)
    told = recoverability(rows, questions, context.matching).mean if questions else None
    measured = _features_of(context, seen, transition, told, len(questions))
    if all(row.status == "ok" for row in rows):
        context.measured.transitions[key] = (measured, list(rows))
    return measured


def _features_of(
    context: RunContext,
    seen: _Seen,
    transition: Transition,
    recovered: float | None = None,
    asked: int = 0,
    read_back: ReadBack | None = None,
) -> TransitionFeatures:
    """One transition: what was answered or read of its frames, how like its text they are, and how like one another."""
    places, _ = _shown_by(context, seen, transition.pair)
    text = context.plugins.similarity.encode_text(transition_text(transition))
    return TransitionFeatures(
        pair=transition.pair,
        recoverability=recovered,
        n_questions=asked,
        similarity=transition_similarity(seen.vectors[places], text),
        adjacent=max((seen.adjacent[place] for place in places[:-1]), default=0.0),
        read_back=read_back,
    )


def _told_again(context: RunContext, rows: Sequence[Answer], method: str, emit: Emit) -> list[Answer]:
    """Return answers under another name; the run's log has them, too."""
    again = [row.model_copy(update={"method": method}) for row in rows]
    for row in again:
        emit(_told("critique", row, reused=True))
    context.files.append_answers(again)
    return again


def judge_boards(context: RunContext, boards: dict[str, Board], emit: Emit, *, text: bool = True) -> list[Answer]:
    """Return the reporting answers: without evidence and from the text once for all boards, from images and both for
    each (equal ones are reused).

    `text` is False when the answers that need no images are in the log already.
    """
    questions = context.questions("reporting")

    def put(condition: Condition, images: list[bytes], method: str | None) -> list[Answer]:
        return ask_all(context, condition, images, questions, method=method, role="reporting", stage="judge", emit=emit)

    rows = [*put("none", [], None), *put("text", [], None)] if text else []
    for method, board in boards.items():
        images = images_of(context, board)
        rows += put("image", images, method) + put("text+image", images, method)
    context.files.sync_answers()
    return rows


def same_judge(mode: Mode, plugins: Plugins) -> list[str]:
    """Return a warning where the judges that chose the boards of a mode also report them; nothing where others do."""
    if plugins.steering is not None or not mode.steers:
        return []
    names = ", ".join(plugins.judges)
    return [
        f"Held out by question, not by judge: {names} chose the board and reports it, and a judge flatters its own "
        "choice. Give --steering-judge for another one to choose."
    ]


def caveats(context: RunContext) -> list[str]:
    """Return what there is to know of the answers of the judges that report: how each did in the entrance test, if it
    took one, and what it says of itself, beside what a guess would have right."""
    judges = {name: context.plugins.judges[name] for name in context.asked("reporting")}
    results = {name: known(context.engine, name) for name, judge in judges.items() if can_take(judge)}
    tested = [result.told(name) for name, result in results.items() if result is not None]
    told = [judge.caveat for judge in judges.values() if judge.caveat]
    chance = chance_level(context.questions("reporting"))
    guess = f" A guess among the options is right in {100 * chance:.1f}%." if chance is not None else ""
    return [*tested, *(f"{one}{guess}" for one in told)]


def unmeasured(mode: Mode, plugins: Plugins) -> list[str]:
    """Return a note where boards are chosen without coverage, since no similarity is there to measure it."""
    if not mode.steers or not isinstance(plugins.similarity, NoSimilarity):
        return []
    return [
        "Coverage was not measured: no similarity is chosen. Boards were chosen by recoverability alone; "
        "--similarity open-clip:MODEL measures it."
    ]


def write_results(
    context: RunContext, candidates: Candidates, final: Board, keep: Callable[[Answer], bool] | None = None
) -> Scores:
    """Write candidates, answers, scores and, last, the storyboard; return the scores.

    The scores are computed from exactly the reporting rows of `answers.jsonl`. `keep` drops rows of boards that are no
    longer part of the run.
    """
    rows = [row for row in context.folder.read_answers() if keep is None or keep(row)]
    context.folder.write_answers(rows)
    reporting = [row for row in rows if row.role == "reporting"]
    unsettled = settle(context.matching, [context.story()], reporting)
    scored = score([context.story()], reporting, matching=context.matching, frozen=context.config.lock is not None)
    judge = context.reading_back("reporting")
    warnings = [*same_judge(context.mode, context.plugins), *unmeasured(context.mode, context.plugins)]
    if judge is not None:
        scored = scored.with_read_back(_read_back_of(candidates, final), _BY_RULE.format(judge))
        warnings = unmeasured(context.mode, context.plugins)
    scores = scored.with_notes([*unsettled, *warnings])
    context.folder.save_results(candidates, scores, final)
    return scores


def _read_back_of(candidates: Candidates, final: Board) -> dict[str, ReadBack | None]:
    """Return how many pictures read back as meant, of the board before (`base`) and of the one that was left."""
    decision = candidates.decision
    left = decision.inserted if decision.accepted and decision.inserted else decision.selected
    kept = next(item for item in candidates.candidates if item.name == left)
    return {"base": candidates.candidates[0].score.read_back, final.mode: kept.score.read_back}


def finish(context: RunContext, state: RunRecord) -> RunResult:
    """Write the final `run.json` and return the result."""
    folder = context.folder
    result = folder.load_result(reused=False, first=context.engine.outcome.outcome().first)
    context.store.flush()
    boards = [item.board for item in result.candidates.candidates]
    boards += [layouts_of(board) for board in boards if board.guided]
    drawn = [frame.sha256 for board in boards for frame in board.frames]
    account = {
        "paid": paid(context.store, boards, folder.read_answers()),
        "services": by_service(context.store, drawn) or state.services,
        "failures": result.outcome.failures(),
        "coverage": result.coverage.model_dump(mode="json") if result.coverage is not None else None,
        "effect": effect.record() if (effect := effect_of(result.candidates)) is not None else None,
        "stale": [frame.index for frame in result.board.frames if is_stale(frame)],
    }
    folder.keep_plan(state)
    folder.finish(state.model_copy(update=account), result.outcome.status())
    outcome = result.outcome.with_caches(prefix_caches(context.plugins.judges))
    return replace(result, outcome=outcome, notes=tuple(state.notes))
