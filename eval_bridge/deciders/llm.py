"""`llm:JUDGE`: a language model decides, through the very judges that answer questions (`llm:openai:MODEL`, ...).

It is told the question, the accepted answers and one answer, and chooses `same` or `different`. What is no such choice
(a refusal, prose, a dead connection) is no verdict: the answer stays unscored and is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

from katha.errors import TransientJudgeError, UsageError
from katha.eval_bridge.deciders.encoder import accepted_texts, chunks
from katha.eval_bridge.verdicts import Decision, Pair
from katha.prompting import load_prompt
from katha.protocols import Evidence, Judge, JudgePrompt
from katha.registry import default_registry

__all__ = ["LlmDecider"]

_SAME, _DIFFERENT = "same", "different"
_AT_ONCE = 64


class LlmDecider:
    """A judge as a decider. `judge` is named as on the command line; `base_url` goes to those that call a server."""

    def __init__(self, argument: str, *, base_url: str | None = None) -> None:
        """Make the judge.

        Raises:
            UnknownPluginError, MissingExtraError, UsageError: it cannot be made, or reads no words.
        """
        registry = default_registry("judges")
        takes_url = "base_url" in signature(registry.load(argument)[0]).parameters
        self._judge: Judge = registry.create(argument, **({"base_url": base_url} if base_url and takes_url else {}))
        if getattr(self._judge, "always_chooses", False) or argument.partition(":")[0] == "recorded":
            raise UsageError(
                f"The judge {argument!r} cannot compare answers.", hint="Use llm:anthropic:..., openai: or local:."
            )

    def spec(self) -> Mapping[str, Any]:
        """The judge's own specification and the wording."""
        return {"rule": "llm", "judge": dict(self._judge.spec()), "prompt": load_prompt("match/same").sha256}

    def decide(self, pairs: Sequence[Pair]) -> Iterator[Decision]:
        """One decision a pair; a transient failure of the judge leaves the rest of its batch undecided."""
        for part in chunks(pairs, _AT_ONCE):
            given = 0
            try:
                for reply in self._judge.ask(Evidence("text"), [_prompt(pair) for pair in part]):
                    given += 1
                    if reply.status == "ok" and reply.answer in (_SAME, _DIFFERENT):
                        yield Decision(reply.answer == _SAME, f"judged {reply.answer}")
                    else:
                        yield Decision(None, reply.error or reply.status)
            except TransientJudgeError as error:
                yield from (Decision(None, error.message) for _ in part[given:])


def _prompt(pair: Pair) -> JudgePrompt:
    asked = pair.question
    fields = {"answer": {"type": "string", "enum": [_SAME, _DIFFERENT]}}
    return JudgePrompt(
        question=f"{asked.question}\nThe answer to compare: {pair.answer}",
        dimension=asked.question_type,
        instruction=load_prompt("match/same").render(accepted=accepted_texts(asked)),
        options=(_SAME, _DIFFERENT),
        schema={"type": "object", "properties": fields, "required": ["answer"], "additionalProperties": False},
    )
