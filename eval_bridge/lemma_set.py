"""thin"""

from __future__ import annotations
from collections.abc import Sequence
from katha.eval_bridge.normal import normalise


def same_meaning(answer: str, accepted: Sequence[str], question: str) -> tuple[bool, str]:
    return normalise(answer) in {normalise(item) for item in accepted}, "membership"
