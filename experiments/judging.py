"""Put every question of every board to every judge under three conditions, several at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar

from katha.errors import RecordError
from katha.eval_bridge.bench.boards import BoardProblem, Boards, JudgedBoard, read_board
from katha.eval_bridge.judging.abilities import JudgeAbilities
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine
from katha.eval_bridge.packets.instructions import AnswersFormat
from katha.eval_bridge.packets.packets import WordScanner, make_packet, packet_sha256, scan_packet, secrets_of
from katha.eval_bridge.questions.evaluators import load_evaluator
from katha.eval_bridge.scoring.controls import ControlBoards
from katha.experiments.eval_folder import EvalSettings, Leakage, mark
from katha.protocols import Evidence
from katha.schema import CONDITIONS, Answer, Condition, Packet, Question, StoryRecord

# Which judges are asked together, and how many stories at once.
#
# A judge that waits for a server is asked about several stories side by side; one that computes on this machine is
# asked story by story; and one that fills the machine's memory has it to itself and lets go of it before the next.


T = TypeVar("T")


@dataclass(frozen=True)
class Lane:
    """Judges that are asked in one pass over the stories, and how many stories may be under way in it."""

    judges: tuple[str, ...]
    stories: int = 1
    alone: bool = False


def lanes_of(able: Mapping[str, JudgeAbilities]) -> list[Lane]:
    """The passes that an evaluation takes by judges with these abilities, by name."""
    alone = [name for name, can in able.items() if can.exclusive]
    waiting = [name for name, can in able.items() if not can.exclusive and can.concurrency > 1]
    here = tuple(name for name in able if name not in alone and name not in waiting)
    lanes = [Lane(here)] if here else []
    if waiting:
        # Of a story's questions the first of each packet is asked alone: two stories keep about five calls under way.
        lanes.append(Lane(tuple(waiting), sum(-(-able[name].concurrency // 2) for name in waiting)))
    return lanes + [Lane((name,), alone=len(alone) > 1) for name in alone]


def in_turn(
    work: Callable[[T], None],
    items: Iterable[T],
    at_once: int,
    tell: Callable[[T], None],
    stopping: threading.Event,
) -> None:
    """`work` on each item, up to `at_once` side by side; `tell` of each when it is done, in order, on this thread.

    The first item is worked on alone: a wrong key is found by one call. What fails stops the rest: `stopping` is set,
    nothing new is begun, what is under way is waited for, and the first failure in the order of `items` is raised.
    """
    if at_once < 2:
        for item in items:
            work(item)
            tell(item)
        return

    def guarded(item: T) -> None:
        try:
            if not stopping.is_set():
                work(item)
        except BaseException:
            stopping.set()
            raise

    rest = iter(items)
    for first in islice(rest, 1):
        work(first)
        tell(first)
    waiting: deque[tuple[T, Future[None]]] = deque()
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="stories")
    try:
        for item in rest:
            waiting.append((item, pool.submit(guarded, item)))
            if len(waiting) >= 2 * at_once:
                _await(waiting, tell)
        while waiting:
            _await(waiting, tell)
    except BaseException:
        stopping.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _await(waiting: deque[tuple[T, Future[None]]], tell: Callable[[T], None]) -> None:
    item, future = waiting.popleft()
    future.result()
    tell(item)


# Judging boards that are there: every question of every story put to every judge under three conditions.
#
# Story by story, so that what a story's packets share is paid for while it is warm; judges that wait for a server are
# asked about several stories at once. The text-only question of a story is asked once for all methods. Each answer is
# in the shared cache and in the evaluation's log as soon as it is there.


Sink = Callable[[Answer], None]
OnStory = Callable[[str, int], None]


@dataclass
class Evaluator:
    """One evaluation under way.

    engine: asks the judges. log, control_log: where each answer goes as it arrives. settled: marks of questions that
    need no asking. pairs: contrastive questions by story, chosen from the images alone. scanner:
    reads words in the pictures. After `run`:
    `invalid` says by method which stories left and why.
    """

    records: Sequence[StoryRecord]
    methods: Sequence[Boards]
    engine: JudgingEngine
    settings: EvalSettings
    log: Sink
    control_log: Sink
    settled: set[bytes] = field(default_factory=set)
    pairs: Mapping[str, Sequence[Question]] = field(default_factory=dict)
    scanner: WordScanner | None = None
    invalid: dict[str, dict[str, str]] = field(default_factory=dict)
    leakage: Leakage = field(default_factory=Leakage)
    kept: int = 0
    _shown: ControlBoards | None = field(default=None, repr=False)
    _stopping: threading.Event = field(default_factory=threading.Event, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def run(self, on_story: OnStory | None = None) -> None:
        """Ask everything that is not settled.

        Raises:
            JudgeError, UsageError: a judge cannot be asked at all; what it answered is kept.
            StoreError: the disk failed.
        """
        self.invalid = {method.name: {} for method in self.methods}
        asked = [record for record in self.records if self.settings.selected(record)]
        lanes, done = lanes_of(self.engine.abilities), 0

        def tell(record: StoryRecord) -> None:
            nonlocal done
            done += 1
            if on_story is not None:
                on_story(record.story_id, len(self.records) * done // (len(asked) * len(lanes)))

        if self.settings.controls:
            self._shown = ControlBoards(self.methods[0], self.records, self.settings.seed)
        for place, lane in enumerate(lanes):
            in_turn(partial(self._story, lane, first=not place), asked, lane.stories, tell, self._stopping)
            for name in lane.judges if lane.alone else ():
                self.engine.let_go(name)
        for method, found in self.invalid.items():
            self.invalid[method] = {name.story_id: found[name.story_id] for name in asked if name.story_id in found}

    def _boards(self, record: StoryRecord, *, first: bool) -> dict[str, JudgedBoard]:
        """The boards of one story that can be judged; in the first pass the others' reasons go into `invalid`."""
        boards: dict[str, JudgedBoard] = {}
        for method in self.methods:
            try:
                board = read_board(method, record)
                self._scan(record, board.images, board.prompts, count=first)
                boards[method.name] = board
            except (BoardProblem, RecordError) as problem:
                self.invalid[method.name].setdefault(record.story_id, problem.message)
        return boards

    def _story(self, lane: Lane, record: StoryRecord, *, first: bool) -> None:
        """Put the questions of one story to the judges of one lane."""
        questions, boards = self.settings.selected(record), self._boards(record, first=first)
        if not boards:
            return
        conditions: tuple[Condition, ...] = ("image", "text+image")
        text = load_evaluator(self.settings.evaluator).text_of(record)
        packets: list[tuple[str | None, tuple[Packet, Evidence]]] = [
            (None, make_packet(record.story_id, "text", (), text))
        ]
        packets += [
            (name, make_packet(record.story_id, condition, board.images, text))
            for name, board in boards.items()
            for condition in conditions
        ]
        for judge in lane.judges:
            for method, (packet, evidence) in packets:
                self._put(judge, packet, evidence, questions, method, self.log)
                if packet.condition == "image":
                    self._put(
                        judge, packet, evidence, self.pairs.get(record.story_id, ()), method, self.log, form="choice"
                    )
        board = boards.get(self.methods[0].name)
        if board is not None:
            self._controls(lane, record, board, questions, first=first)

    def _scan(self, record: StoryRecord, images: Sequence[bytes], prompts: Sequence[str], *, count: bool) -> None:
        """Refuse an image-only packet that carries more than pixels.

        Raises:
            RecordError: with the first finding.
        """
        packet, evidence = make_packet(record.story_id, "image", images)
        report = scan_packet(packet, evidence, secrets_of(record, prompts), self.scanner)
        if count:
            with self._lock:
                self.leakage.add(record.story_id, report)
        report.require(record.story_id)

    def _put(
        self,
        name: str,
        packet: Packet,
        evidence: Evidence,
        questions: Sequence[Question],
        method: str | None,
        sink: Sink,
        *,
        cached: bool = True,
        form: AnswersFormat | None = None,
    ) -> None:
        """Put the questions that are not settled to one judge."""
        hashed = packet_sha256(packet)
        marks = [mark(method, name, packet.story_id, item.question_id, hashed) for item in questions]
        open_ones = [item for item, sign in zip(questions, marks, strict=True) if sign not in self.settled]
        with self._lock:
            self.kept += len(questions) - len(open_ones)
        if not open_ones or self._stopping.is_set():
            return
        wanted = form or self.settings.answers
        inquiry = Inquiry(packet, evidence, open_ones, method, self.settings.variant, wanted, cached)
        self.engine.ask(name, inquiry, lambda answer, reused: sink(answer))

    def _controls(
        self, lane: Lane, record: StoryRecord, board: JudgedBoard, questions: Sequence[Question], *, first: bool
    ) -> None:
        """Ask the controls image-only, over the first method's board."""
        if self._shown is None:
            return
        for control in self.settings.controls:
            images = self._shown.images(control, board)
            if images is None:
                continue
            again = control == "repeat"
            if not again:
                self._scan(record, images, board.prompts, count=first)
            packet, evidence = make_packet(record.story_id, "image", images)
            for judge in lane.judges:
                self._put(judge, packet, evidence, questions, control, self.control_log, cached=not again)


def row_order(
    records: Sequence[StoryRecord],
    names: Sequence[str | None],
    judges: Sequence[str],
    settings: EvalSettings,
    pairs: Mapping[str, Sequence[Question]] | None = None,
) -> Callable[[Answer], tuple[int, ...] | None]:
    """A row's place in a finished log (story, judge, method of `names`, condition, question); None for a stranger."""
    more = pairs or {}
    methods = {name: at for at, name in enumerate(names)}
    order = {name: at for at, name in enumerate(judges)}
    stories = {
        record.story_id: (
            place,
            {
                item.question_id: at
                for at, item in enumerate([*settings.selected(record), *more.get(record.story_id, ())])
            },
        )
        for place, record in enumerate(records)
    }

    def place_of(row: Answer) -> tuple[int, ...] | None:
        place, questions = stories.get(row.story_id, (0, {}))
        if row.question_id not in questions or row.judge not in order or row.method not in methods:
            return None
        condition = CONDITIONS.index(row.condition)
        return (place, order[row.judge], methods[row.method], condition, questions[row.question_id])

    return place_of
