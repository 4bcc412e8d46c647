"""`none`: nobody judges. Every question stays unasked by design, and reports say that nobody judged the board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from katha.eval_bridge.judging.answers import UNJUDGED
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply

NOBODY = "none"
"""The name by which it is asked for."""


class NoJudge(Judge):
    """Judges nothing: for a board that is only to be drawn (`--mode base`)."""

    always_chooses = True

    def spec(self) -> Mapping[str, Any]:
        """Return its name."""
        return {"name": NOBODY}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield `not_asked` for each prompt."""
        yield from (JudgeReply("not_asked", error=UNJUDGED) for _ in prompts)
