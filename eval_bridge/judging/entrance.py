"""The entrance test of a judge: does it find nothing in blank pictures, order three frames, and pick the next one?

Six questions over pictures that are drawn here, asked by the protocol's own prompts through the engine, so that they
are paid once and kept with all answers. Its result stands beside the judge's scores, whoever asks for them later.
Unless told, it is asked of a judge that was never asked, where that costs little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from katha.eval_bridge.judging.abilities import price_of
from katha.eval_bridge.judging.budget import estimate_tokens, expected_cost, written_tokens
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.packets.instructions import REPORTING_VARIANT, judge_prompt
from katha.eval_bridge.packets.packets import make_packet
from katha.jsonio import shipped_table
from katha.pictures import as_png
from katha.protocols import Judge, JudgePrompt
from katha.schema import Answer, AnswerStatus, Question
from katha.store import Store

STORY = "entrance_test"
# Two of each kind (blank, order, next): enough to see a judge that is blind, cheap enough to ask always.
CALLS = 6
_LITTLE, _MOST_SHARE = 0.02, 10
"""Dollars, and how many times the test's calls a command asks, for the test to be asked unless told."""
_UNASKED: frozenset[AnswerStatus] = frozenset(("not_asked", "budget_stopped", "transport_failed"))
_SIZE = (240, 160)
_WHITE, _INK, _WOOD, _RED, _FLAME = "#ffffff", "#222222", "#a06a3a", "#c03030", "#f0a020"
_HEIGHTS = {"1": 90, "2": 55, "3": 20}
_BALLS = {"1": (70, 44), "2": (150, 84), "3": (172, 128)}


class EntranceResult(BaseModel):
    """How a judge did: questions asked, answered and right, and those right of each kind."""

    model_config = ConfigDict(frozen=True)

    asked: int
    answered: int
    right: int
    kinds: dict[str, str]

    def told(self, judge: str) -> str:
        """Return it in a sentence."""
        each = ", ".join(f"{kind} {count}" for kind, count in self.kinds.items())
        unread = f"; {self.asked - self.answered} without an answer" if self.answered < self.asked else ""
        return f"Entrance test ({judge}): {self.right} of {self.asked} right ({each}{unread})."


def untested(judge: str) -> str:
    """Return the sentence of a judge that took no test."""
    return f"Entrance test ({judge}): not taken; --entrance asks it, {CALLS} calls once."


def costs_little(judge: Judge, calls: int) -> bool:
    """Return whether the test costs a few cents at most, or at most a tenth of `calls`, which a command asks anyway."""
    price, side = price_of(judge), judge.picture_side
    read = sum(estimate_tokens(one.evidence, _prompt(one), side) for one in inquiries()) if price else 0
    cost = expected_cost(price, read, written_tokens(CALLS, judge.thoughts, CALLS))
    return 0 < cost <= _LITTLE or calls >= _MOST_SHARE * CALLS


def _prompt(inquiry: Inquiry) -> JudgePrompt:
    (question,) = inquiry.questions
    assert isinstance(question, Question)
    count = len(inquiry.packet.images)
    return judge_prompt(
        question, inquiry.packet.condition, variant=inquiry.variant, answers_format="choice", count=count
    )


def can_take(judge: Judge) -> bool:
    """Return whether a judge reads questions as they are put: one that reads its own kinds alone is not tested."""
    return not judge.ignores_instructions


def take(engine: JudgingEngine, name: str) -> EntranceResult | None:
    """Ask a judge what it was not asked before, and return how it did; None where nothing came back, as in a dry run.

    Raises:
        JudgeError, BudgetError: it cannot be asked.
    """
    answers = [answer for inquiry in inquiries() for answer in engine.ask(name, inquiry)]
    return _result(answers) if any(answer.status not in _UNASKED for answer in answers) else None


def known(engine: JudgingEngine, name: str) -> EntranceResult | None:
    """Return the result of a judge from the answers that are kept; None where it was never asked."""
    kept = [engine.kept(name, inquiry)[0] for inquiry in inquiries()]
    return _result(kept) if any(kept) else None


def results_of(judges: Mapping[str, Judge], store: Store) -> list[str]:
    """Return how judges did that took the test at any time, a sentence each; nobody is asked."""
    able = {name: judge for name, judge in judges.items() if can_take(judge)}
    engine = JudgingEngine(able, store)
    found = {name: known(engine, name) for name in able}
    return [result.told(name) for name, result in found.items() if result is not None]


def _result(answers: Sequence[Answer | None]) -> EntranceResult:
    right: dict[str, list[bool]] = {}
    for row, answer in zip(_rows(), answers, strict=True):
        held = (
            answer is not None
            and answer.status == "ok"
            and normalise(answer.answer or "") == normalise(str(row["right"]))
        )
        right.setdefault(str(row["kind"]), []).append(held)
    return EntranceResult(
        asked=len(answers),
        answered=sum(answer is not None and answer.status == "ok" for answer in answers),
        right=sum(map(sum, right.values())),
        kinds={kind: f"{sum(held)}/{len(held)}" for kind, held in right.items()},
    )


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    return tuple(shipped_table("katha.prompts", "judge", "entrance.yaml"))


@cache
def inquiries() -> tuple[Inquiry, ...]:
    """Return the questions with their pictures, one inquiry each."""
    made = []
    for at, row in enumerate(_rows(), 1):
        question = Question(
            question_id=f"{STORY}_{at}",
            story_id=STORY,
            question_type=row["dimension"],
            question=row["question"],
            gold_answer=row["right"],
            options=list(row["options"]),
        )
        packet = make_packet(STORY, "image", [_drawn(shown) for shown in row["shown"]])
        made.append(Inquiry(*packet, [question], STORY, REPORTING_VARIANT, "choice"))
    return tuple(made)


def _drawn(shown: str) -> bytes:
    """Return the PNG of a moment: `candle 1` is whole and `candle 3` burnt down; `ball 1` lies on a table, 2 is in the
    air and 3 on the floor."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", _SIZE, _WHITE)
    pen = ImageDraw.Draw(image)
    subject, _, moment = shown.partition(" ")
    if subject != "blank":
        pen.line((0, 140, 240, 140), fill=_INK, width=3)
    if subject == "candle":
        top = 138 - _HEIGHTS[moment]
        pen.rectangle((105, top, 135, 138), fill=_RED, outline=_INK, width=2)
        pen.ellipse((113, top - 28, 127, top - 4), fill=_FLAME, outline=_INK)
    elif subject == "ball":
        pen.rectangle((20, 56, 120, 64), fill=_WOOD, outline=_INK)
        pen.rectangle((28, 64, 36, 138), fill=_WOOD, outline=_INK)
        pen.rectangle((104, 64, 112, 138), fill=_WOOD, outline=_INK)
        across, down = _BALLS[moment]
        pen.ellipse((across - 11, down - 11, across + 11, down + 11), fill=_RED, outline=_INK, width=2)
    return as_png(image)
