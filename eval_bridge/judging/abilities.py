"""Judges from their names, and what a judge can do beyond answering, with the defaults for judges that do not say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from katha.border import checked, named_failures, spec_of
from katha.errors import UsageError
from katha.jsonio import digest
from katha.models.batches import Batcher, BatchResult
from katha.protocols import (
    AlwaysChooses,
    AsksSideBySide,
    ChangesWhileAsked,
    Evidence,
    FillsTheMemory,
    HasAPrice,
    IgnoresInstructions,
    Judge,
    JudgePrompt,
    JudgeReply,
)
from katha.registry import default_registry, option_names

_MOST_THREADS = 256


@dataclass(frozen=True)
class JudgeAbilities:
    """The abilities of one judge, as the engine works with them.

    concurrency: how many threads may ask it at once. price: US dollars per million tokens by kind, empty for a judge
    that is free, None when unknown. together: it can be asked several questions in one call. picture_side: the longest
    side in pixels of the pictures that it is sent; None: as they are.
    """

    always_chooses: bool
    concurrency: int
    exclusive: bool
    ignores_instructions: bool
    price: Mapping[str, float] | None
    together: bool = False
    picture_side: int | None = None


def judge_abilities(judge: Judge) -> JudgeAbilities:
    """Return what `judge` says of itself, and the defaults for what it does not."""
    price = judge.price if isinstance(judge, HasAPrice) else {}
    if price is not None and not all(math.isfinite(each) and each >= 0 for each in price.values()):
        raise UsageError(f"The judge {type(judge).__name__} has a price that is none: {dict(price)!r}.")
    return JudgeAbilities(
        always_chooses=isinstance(judge, AlwaysChooses) and bool(judge.always_chooses),
        concurrency=min(_MOST_THREADS, max(1, int(judge.concurrency))) if isinstance(judge, AsksSideBySide) else 1,
        exclusive=isinstance(judge, FillsTheMemory) and bool(judge.exclusive),
        ignores_instructions=isinstance(judge, IgnoresInstructions) and bool(judge.ignores_instructions),
        price=price,
        together=together_of(judge) is not None,
        picture_side=judge.picture_side if isinstance(judge, SendsSmaller) else None,
    )


def judge_name(judge: Judge) -> str:
    """Return the name under which a judge's answers are kept."""
    return str(spec_of(judge, f"judge {type(judge).__name__}").get("name", type(judge).__name__))


def asked_as(judge: Judge) -> str:
    """Return the hash of how `judge` is asked now: its specification, and what of it a server has made it change."""
    return digest({**judge.spec(), **(judge.amended if isinstance(judge, ChangesWhileAsked) else {})})


@runtime_checkable
class AsksTogether(Judge, Protocol):
    """A judge that can be asked all questions of a packet in one call, which carries the pictures once."""

    @property
    def asks_together(self) -> bool:
        """Whether it is, where that is wanted; otherwise each question is a call of its own."""
        ...

    def ask_together(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order, from one call. The first reply's usage is that of the call, the others'
        have neither cost nor tokens. A question that the call did not answer is a typed failure of its own.

        Raises:
            TransientJudgeError: nothing could be asked, and the same call is worth another try.
        """
        ...


def together_of(judge: Judge) -> AsksTogether | None:
    """Return `judge` as one that is asked several questions in one call; None where it is not."""
    return judge if isinstance(judge, AsksTogether) and judge.asks_together else None


@runtime_checkable
class SendsSmaller(Protocol):
    """A judge that makes pictures smaller before they are sent."""

    @property
    def picture_side(self) -> int | None:
        """Return the longest side in pixels that is sent; None: pictures go as they are."""
        ...


@runtime_checkable
class AsksInBatches(Judge, HasAPrice, Batcher, Protocol):
    """A judge whose vendor also answers whole files of requests, within a day and at a lower price."""

    def batch_request(self, evidence: Evidence, prompt: JudgePrompt) -> dict[str, Any]:
        """Return the body of one call: the same as a call of its own would have."""
        ...

    def batch_reply(self, result: BatchResult, prompt: JudgePrompt) -> JudgeReply:
        """Return the reply that a batch brought, at the batch's price."""
        ...


# The judges of a command, made from their names with the options that they have.

_FLAGS = {
    "base_url": ("--base-url is given, but no judge here calls a server.", "Use --judge openai:MODEL."),
    "verify_reuse": ("--verify-reuse is given, but no judge here shares a prefix.", "Use --judge local:MODEL."),
    "concurrency": ("--concurrency is given, but no judge here calls a server.", "Use --judge openai:MODEL."),
}


def make_judges(
    specs: Sequence[str],
    *,
    base_url: str | None = None,
    verify_reuse: float | None = None,
    concurrency: int | None = None,
    patience: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[tuple[str, Judge]]:
    """Make the judges that `specs` name; what is not None, and each of `options`, goes to every judge that has it.

    Raises:
        UnknownPluginError, MissingExtraError: a judge cannot be made. UsageError: no judge here has an option, or its
        value does not fit.
    """
    flags: Mapping[str, Any] = {"base_url": base_url, "verify_reuse": verify_reuse, "concurrency": concurrency}
    own = next((name for name in _FLAGS if name in (options or {})), None)
    if own is not None:
        raise UsageError(f"The judge option {own!r} has a flag of its own.", hint=f"Use --{own.replace('_', '-')}.")
    wanted = {name: value for name, value in flags.items() if value is not None} | dict(options or {})
    # Image services are waited for, too: patience without a judge that calls a server is no mistake.
    loose = {"patience": patience} if patience is not None else {}
    registry, taken = default_registry("judges"), set[str]()
    made: list[tuple[str, Judge]] = []
    for spec in specs:
        known = option_names(registry.load(spec)[0])
        fitting = {name: value for name, value in (loose | wanted).items() if name in known}
        taken |= set(fitting)
        judge: Judge = checked(registry.configure(spec, fitting), Judge, f"judge {spec!r}")
        with named_failures(f"judge {spec!r}", what="cannot say what it can do"):
            judge_abilities(judge)
        made.append((spec, judge))
    for name in sorted(wanted.keys() - taken):
        message, hint = _FLAGS.get(name, (f"No judge here has an option {name!r}.", "See `katha judges`."))
        raise UsageError(message, hint=hint)
    return made
