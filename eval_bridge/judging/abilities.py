"""What a judge can do beyond answering, with the defaults for judges that do not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from katha.jsonio import digest
from katha.protocols import (
    AlwaysChooses,
    AsksSideBySide,
    ChangesWhileAsked,
    FillsTheMemory,
    HasAPrice,
    Judge,
    LetsGo,
)


@dataclass(frozen=True)
class JudgeAbilities:
    """The abilities of one judge, as the engine works with them.

    concurrency: how many threads may ask it at once. price: US dollars per million tokens by kind, empty for a judge
    that is free, None when unknown.
    """

    always_chooses: bool
    concurrency: int
    exclusive: bool
    price: Mapping[str, float] | None


def judge_abilities(judge: Judge) -> JudgeAbilities:
    """Return what `judge` says of itself, and the defaults for what it does not."""
    return JudgeAbilities(
        always_chooses=isinstance(judge, AlwaysChooses) and bool(judge.always_chooses),
        concurrency=max(1, int(judge.concurrency)) if isinstance(judge, AsksSideBySide) else 1,
        exclusive=isinstance(judge, FillsTheMemory) and bool(judge.exclusive),
        price=judge.price if isinstance(judge, HasAPrice) else {},
    )


def judge_name(judge: Judge) -> str:
    """Return the name under which a judge's answers are kept."""
    return str(judge.spec().get("name", type(judge).__name__))


def asked_as(judge: Judge) -> str:
    """Return the hash of how `judge` is asked now: its specification, and what of it a server has made it change."""
    return digest({**judge.spec(), **(judge.amended if isinstance(judge, ChangesWhileAsked) else {})})


def let_go(judge: Judge) -> None:
    """Have `judge` give back the memory or the connections that it holds, if it can."""
    if isinstance(judge, LetsGo):
        judge.close()
