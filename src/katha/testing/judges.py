"""The contract of a judge as a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from katha.eval_bridge.instructions import reply_schema
from katha.protocols import Evidence, Judge, JudgePrompt
from katha.schema import CONDITIONS, AnswerStatus, Condition
from katha.testing.doubles import picture
from katha.testing.trials import need, require_spec, run_checks

__all__ = ["check_judge"]

_OPTIONS = ("The fox asks for the cheese.", "The crow sleeps.", "The fox runs away.", "Unclear")
_TEXT = "A fox saw a crow with a cheese. The fox asked for the cheese, and the crow let it fall."


def _prompt(number: int, condition: Condition, options: tuple[str, ...] | None) -> JudgePrompt:
    question = ("What does the fox do?", "What comes of it?")[number]
    return JudgePrompt(question, "action_visibility", "Answer.", options, reply_schema(condition, options))


def check_judge(make: Callable[[], Judge], images: tuple[bytes, ...] | None = None) -> list[str]:
    """Try everything that katha expects of a judge; the names of the checks. `images`: PNGs, two samples unless told.

    Raises:
        ContractError: the judge breaks its contract; the message lists how.
    """
    judge = make()
    shown = images or (picture("one", (96, 64)), picture("two", (96, 64)))

    def names_itself() -> None:
        require_spec(judge, make())

    def answers(condition: Condition, options: tuple[str, ...] | None) -> None:
        evidence = Evidence(condition, () if condition == "text" else shown, None if condition == "image" else _TEXT)
        replies = list(judge.ask(evidence, [_prompt(number, condition, options) for number in (0, 1)]))
        need(len(replies) == 2, f"two questions under {condition} gave {len(replies)} replies")
        for reply in replies:
            need(reply.status in get_args(AnswerStatus), f"{reply.status!r} is no status")
            need(reply.status != "ok" or bool(reply.answer), "a reply is `ok` and has no answer")
            if options is not None and reply.status == "ok":
                need(reply.answer in options, f"the answer {reply.answer!r} is none of the options")

    def chooses() -> None:
        for condition in CONDITIONS:
            answers(condition, _OPTIONS)

    def answers_freely() -> None:
        if not getattr(judge, "always_chooses", False):
            answers("text", None)

    checks = [("spec", names_itself), ("choice", chooses), ("free answers", answers_freely)]
    return run_checks(f"The judge {type(judge).__name__}", checks)
