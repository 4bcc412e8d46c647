"""The brake of a judge: replies that nobody can read are bought twenty times in a row and no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest
from evals import picture
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.errors import JudgeError
from katha.eval_bridge.judging.brake import MOST, Brake, brake_of, release_brake
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine
from katha.eval_bridge.packets.packets import make_packet
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.schema import Answer, Question
from katha.store import Store

BAD = JudgeReply("unparseable", error="the reply is not JSON")


class Mumbler(Judge):
    """Gives the replies it was given, over and over, from as many threads as wanted."""

    metered = True

    def __init__(self, replies: Sequence[JudgeReply], concurrency: int = 1, together: bool = False) -> None:
        self.replies, self.concurrency, self.asked, self.asks_together = replies, concurrency, 0, together
        self.lock = Lock()

    def spec(self) -> Mapping[str, Any]:
        return {"name": "mumbler"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for _ in prompts:
            with self.lock:
                self.asked += 1
                reply = self.replies[(self.asked - 1) % len(self.replies)]
            yield reply

    def ask_together(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        self.asked += 1
        yield from (self.replies[0] for _ in prompts)


def inquiry(count: int, ask: Any = "singly") -> Inquiry:
    questions = [
        Question(question_id=f"q{at}", question_type="causal", question=f"Why {at}?", gold_answer="It fell.")
        for at in range(count)
    ]
    return Inquiry(*make_packet("s", "image", [picture(1)]), questions, "m", "strict", "free", ask=ask)


@pytest.mark.parametrize("concurrency", [1, 16, 128])
def test_a_judge_that_cannot_be_read_is_asked_twenty_times(tmp_path: Path, concurrency: int) -> None:
    judge, told, budget = Mumbler([BAD], concurrency), list[Answer](), Budget(max_calls=1_000)
    with Store(tmp_path) as store:
        engine = JudgingEngine({"mumbler": judge}, store, budget=budget)
        with pytest.raises(JudgeError, match=r"20 replies in a row .*not JSON.*--keep-going"):
            engine.ask("mumbler", inquiry(60), lambda answer, reused: told.append(answer))
    assert (judge.asked, len(told), budget.calls) == (MOST, MOST, MOST)
    with pytest.raises(JudgeError, match="in a row"):
        JudgingEngine({"mumbler": judge}).ask("mumbler", inquiry(3))
    assert judge.asked == MOST


def test_one_that_can_be_read_is_enough() -> None:
    judge = Mumbler([*[BAD] * (MOST - 1), JudgeReply("ok", answer="it fell")])
    assert len(JudgingEngine({"mumbler": judge}).ask("mumbler", inquiry(80))) == 80
    assert not brake_of(judge).spent


def test_what_never_came_says_nothing_of_the_replies() -> None:
    judge = Mumbler([JudgeReply("transport_failed", error="HTTP 500"), JudgeReply("refused"), BAD])
    with pytest.raises(JudgeError, match="20 replies"):
        JudgingEngine({"mumbler": judge}).ask("mumbler", inquiry(100))
    assert judge.asked == 3 * MOST


def test_a_person_can_have_all_asked() -> None:
    judge = Mumbler([JudgeReply("truncated")], 16)
    release_brake(judge)
    assert len(JudgingEngine({"mumbler": judge}).ask("mumbler", inquiry(50))) == judge.asked == 50


def test_a_call_of_several_questions_is_one_reply() -> None:
    judge = Mumbler([BAD], together=True)
    engine = JudgingEngine({"mumbler": judge})
    for _ in range(MOST):
        engine.ask("mumbler", inquiry(5, "together"))
    with pytest.raises(JudgeError, match="20 replies"):
        engine.ask("mumbler", inquiry(5, "together"))
    assert judge.asked == MOST


def test_what_an_earlier_command_bought_counts() -> None:
    judge = Mumbler([BAD])
    brake_of(judge).begin_at(MOST, "the reply is empty")
    with pytest.raises(JudgeError, match="the reply is empty"):
        JudgingEngine({"mumbler": judge}).ask("mumbler", inquiry(5))
    assert judge.asked == 0


def test_no_more_calls_are_under_way_than_may_be_wasted() -> None:
    brake, ends = Brake(), list[str]()

    def one_more() -> None:
        try:
            with brake.call("mumbler"):
                ends.append("asked")
        except JudgeError:
            ends.append("refused")

    with ExitStack() as under_way:
        for _ in range(MOST):
            under_way.enter_context(brake.call("mumbler"))
        waiting = Thread(target=one_more, daemon=True)
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        for _ in range(MOST):
            brake.heard([BAD])
        waiting.join(60)
    assert ends == ["refused"]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=90), st.sampled_from([1, 8]))
def test_the_row_is_what_counts(good: list[bool], concurrency: int) -> None:
    replies = [JudgeReply("ok", answer="it fell") if one else BAD for one in good]
    judge = Mumbler(replies, concurrency)
    try:
        JudgingEngine({"mumbler": judge}).ask("mumbler", inquiry(len(good)))
    except JudgeError:
        assert not any(good[: judge.asked][-MOST:]) or concurrency > 1
    else:
        assert judge.asked == len(good)
        assert concurrency > 1 or "b" * MOST not in "".join("gb"[not one] for one in good[:-1])
