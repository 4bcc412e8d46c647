"""Put every question of every board to every judge under three conditions and without evidence, several at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TypeVar

from katha.errors import RecordError
from katha.eval_bridge.bench.boards import BoardProblem, JudgedBoard, MethodBoards, read_board
from katha.eval_bridge.judging.abilities import threads_of
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine
from katha.eval_bridge.packets.instructions import AnswersFormat
from katha.eval_bridge.packets.packets import make_packet, packet_sha256, scan_packet, secrets_of
from katha.eval_bridge.questions.evaluators import load_evaluator
from katha.eval_bridge.scoring.controls import ControlBoards
from katha.experiments.evaluation.eval_folder import EvalSettings, Leakage, mark
from katha.experiments.runner import OnStep
from katha.lettering import WordScanner
from katha.protocols import Evidence, Judge
from katha.schema import ASKED, Answer, Packet, Question, StoryRecord

T = TypeVar("T")


@dataclass(frozen=True)
class Lane:
    """Judges that are asked in one pass over the stories, and how many stories may be under way in it.

    A judge that waits for a server is asked about several stories side by side; one that computes on this machine is
    asked story by story; and one that fills the machine's memory has it to itself and lets go of it before the next.
    """

    judges: tuple[str, ...]
    stories: int = 1
    alone: bool = False


def lanes_of(judges: Mapping[str, Judge]) -> list[Lane]:
    """Return the passes that an evaluation by these judges takes."""
    alone = [name for name, judge in judges.items() if judge.exclusive]
    waiting = [name for name, judge in judges.items() if not judge.exclusive and threads_of(judge) > 1]
    here = tuple(name for name in judges if name not in alone and name not in waiting)
    lanes = [Lane(here)] if here else []
    if waiting:
        # Of a story's questions the first of each packet is asked alone: two stories keep about five calls under way.
        lanes.append(Lane(tuple(waiting), sum(-(-threads_of(judges[name]) // 2) for name in waiting)))
    return lanes + [Lane((name,), alone=len(alone) > 1) for name in alone]


def in_turn(
    work: Callable[[T], None],
    items: Iterable[T],
    at_once: int,
    tell: Callable[[T], None],
    stopping: threading.Event,
) -> None:
    """Do `work` on each item, up to `at_once` side by side; `tell` of each when it is done, in order, on this thread.

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

    def settle() -> None:
        item, future = waiting.popleft()
        future.result()
        tell(item)

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
                settle()
        while waiting:
            settle()
    except BaseException:
        stopping.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


Sink = Callable[[Answer], None]


def ignore(answer: Answer) -> None:
    """Keep nothing of an answer, as a dry run does."""


@dataclass
class Evaluator:
    """One evaluation under way: put every question of every story to every judge under three conditions, and without
    any evidence.

    Story by story, so that what a story's packets share is paid for while it is warm; judges that wait for a server are
    asked about several stories at once. Text-only and without evidence, a story is asked once for all methods.

    engine: asks the judges. log, control_log: where each answer goes as it arrives. settled: marks of questions that
    need no asking. pairs: contrastive questions by story, chosen from the images alone. labels: those for a story's
    moral label, chosen under each condition. scanner: reads words in the pictures. After `run`, `invalid` says by
    method which stories left and why.
    """

    records: Sequence[StoryRecord]
    methods: Sequence[MethodBoards]
    engine: JudgingEngine
    settings: EvalSettings
    log: Sink
    control_log: Sink
    settled: Collection[bytes] = ()
    pairs: Mapping[str, Sequence[Question]] = field(default_factory=dict)
    labels: Mapping[str, Sequence[Question]] = field(default_factory=dict)
    scanner: WordScanner | None = None
    invalid: dict[str, dict[str, str]] = field(default_factory=dict)
    leakage: Leakage = field(default_factory=Leakage)
    kept: int = 0
    _shown: ControlBoards | None = field(default=None, repr=False)
    _stopping: threading.Event = field(default_factory=threading.Event, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def beside(self) -> dict[str, list[Question]]:
        """Return what is asked of each story beside its questions."""
        stories = {**self.pairs, **self.labels}
        return {story: [*self.pairs.get(story, ()), *self.labels.get(story, ())] for story in stories}

    def run(self, on_story: OnStep | None = None) -> None:
        """Ask everything that is not settled.

        Raises:
            JudgeError, UsageError: a judge cannot be asked at all; what it answered is kept.
            StoreError: the disk failed.
        """
        self.invalid = {method.name: {} for method in self.methods}
        asked = [record for record in self.records if self.settings.selected(record)]
        lanes, done = lanes_of(self.engine.judges), 0

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
        """Return the boards of one story that can be judged; the first pass puts the others' reasons into `invalid`."""
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
        text, form = load_evaluator(self.settings.evaluator).text_of(record), self.settings.answers
        packet, moral = make_packet(record.story_id, "text", (), text), self.labels.get(record.story_id, ())
        inquiries = [self._inquiry(packet, questions, None, form), self._inquiry(packet, moral, None, "choice")]
        inquiries.append(self._inquiry(make_packet(record.story_id, "none"), questions, None, form))
        for name, board in boards.items():
            packet = make_packet(record.story_id, "image", board.images, text)
            inquiries.append(self._inquiry(packet, questions, name, form))
            inquiries.append(self._inquiry(packet, [*self.pairs.get(record.story_id, ()), *moral], name, "choice"))
            packet = make_packet(record.story_id, "text+image", board.images, text)
            inquiries.append(self._inquiry(packet, questions, name, form))
            inquiries.append(self._inquiry(packet, moral, name, "choice"))
        for judge in lane.judges:
            for inquiry in inquiries:
                self._put(judge, inquiry, self.log)
        if self.methods[0].name in boards:
            self._controls(lane, record, boards[self.methods[0].name], first=first)

    def _inquiry(
        self, packet: tuple[Packet, Evidence], questions: Sequence[Question], method: str | None, form: AnswersFormat
    ) -> Inquiry:
        return Inquiry(*packet, questions, method, self.settings.variant, form, ask=self.settings.ask)

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

    def _put(self, judge: str, inquiry: Inquiry, sink: Sink) -> None:
        """Put the questions that are not settled to one judge."""
        inquiry = self.engine.shown(judge, inquiry)
        story, hashed = inquiry.packet.story_id, packet_sha256(inquiry.packet)
        open_ones = [
            item
            for item in inquiry.questions
            if mark(inquiry.method, judge, story, item.question_id, hashed) not in self.settled
        ]
        with self._lock:
            self.kept += len(inquiry.questions) - len(open_ones)
        if open_ones and not self._stopping.is_set():
            self.engine.ask(judge, replace(inquiry, questions=open_ones), lambda answer, reused: sink(answer))

    def _controls(self, lane: Lane, record: StoryRecord, board: JudgedBoard, *, first: bool) -> None:
        """Ask the controls image-only, over the first method's board."""
        for control in self.settings.controls:
            images = self._shown.images(control, board) if self._shown is not None else None
            if images is None:
                continue
            again = control == "repeat"
            if not again:
                self._scan(record, images, board.prompts, count=first)
            packet = make_packet(record.story_id, "image", images)
            inquiry = self._inquiry(packet, self.settings.selected(record), control, self.settings.answers)
            for judge in lane.judges:
                self._put(judge, replace(inquiry, cached=not again), self.control_log)


def row_order(
    records: Sequence[StoryRecord],
    names: Sequence[str | None],
    judges: Sequence[str],
    settings: EvalSettings,
    beside: Mapping[str, Sequence[Question]] | None = None,
) -> Callable[[Answer], tuple[int, ...] | None]:
    """Return what gives a row its place in a finished log: by story, judge, method of `names`, condition, question."""
    stories = {record.story_id: place for place, record in enumerate(records)}
    questions = {
        (record.story_id, item.question_id): at
        for record in records
        for at, item in enumerate([*settings.selected(record), *(beside or {}).get(record.story_id, ())])
    }

    def place_of(row: Answer) -> tuple[int, ...] | None:
        asked = (row.story_id, row.question_id)
        if asked not in questions or row.judge not in judges or row.method not in names:
            return None
        place, condition = stories[row.story_id], ASKED.index(row.condition)
        return (place, judges.index(row.judge), names.index(row.method), condition, questions[asked])

    return place_of
