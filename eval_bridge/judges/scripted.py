"""A test double that ships with katha: it answers from a queue and fails loudly when the queue is empty."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from katha.errors import JudgeError
from katha.protocols import Evidence, JudgePrompt, JudgeReply

Scripted = JudgeReply | str | BaseException
Rule = Callable[[Evidence, JudgePrompt], Scripted]


class ScriptedJudge:
    """Answers each question with the next entry of `script`: an answer's text, a whole reply, or an error to raise.

    Instead of a queue, `script` may be a function of the evidence and the prompt. `asked` keeps what was asked, unless
    `keep` is False (of a whole benchmark it would be every picture).
    """

    def __init__(
        self, script: Iterable[Scripted] | Rule, *, name: str = "scripted", revision: str = "1", keep: bool = True
    ) -> None:
        self._rule: Rule | None = script if callable(script) else None
        self._queue: deque[Scripted] = deque(() if callable(script) else script)
        self._spec = {"name": name, "revision": revision}
        self._keep = keep
        self.asked: list[tuple[Evidence, JudgePrompt]] = []

    def spec(self) -> Mapping[str, Any]:
        """Name and revision as given."""
        return dict(self._spec)

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield the next entry for each prompt.

        Raises:
            JudgeError: the queue is empty.
        """
        for prompt in prompts:
            if self._keep:
                self.asked.append((evidence, prompt))
            entry = self._next(evidence, prompt)
            if isinstance(entry, BaseException):
                raise entry
            yield JudgeReply("ok", entry) if isinstance(entry, str) else entry

    def _next(self, evidence: Evidence, prompt: JudgePrompt) -> Scripted:
        if self._rule is not None:
            return self._rule(evidence, prompt)
        if not self._queue:
            raise JudgeError(f"The scripted judge has no answer left for {prompt.question!r}.")
        return self._queue.popleft()
