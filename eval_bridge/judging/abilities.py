"""Judges from their names, and what a judge says of itself as the engine counts with it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from katha.errors import UsageError
from katha.eval_bridge.judging.brake import release_brake
from katha.jsonio import digest
from katha.models.batches import Batcher, BatchResult
from katha.plugin_boundary import checked, named_failures, spec_of
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.registry import default_registry, option_names

# A plug-in may say any number; more threads than this cost memory and gain nothing.
_MOST_THREADS = 256


def threads_of(judge: Judge) -> int:
    """Return how many threads may ask a judge at once."""
    return min(_MOST_THREADS, max(1, int(judge.concurrency)))


def price_of(judge: Judge) -> Mapping[str, float] | None:
    """Return US dollars per million tokens by kind, empty for a judge that is free, None when unknown.

    Raises:
        UsageError: the judge says what is no price.
    """
    price = judge.price
    if price is not None and not all(math.isfinite(each) and each >= 0 for each in price.values()):
        raise UsageError(f"The judge {type(judge).__name__} has a price that is none: {dict(price)!r}.")
    return price


def judge_name(judge: Judge) -> str:
    """Return the name under which a judge's answers are kept."""
    return str(spec_of(judge, f"judge {type(judge).__name__}").get("name", type(judge).__name__))


def asked_as(judge: Judge) -> str:
    """Return the hash of how `judge` is asked now: its specification, and what of it a server has made it change."""
    return digest({**judge.spec(), **judge.amended})


class AsksInBatches(Judge, Batcher):
    """A judge whose vendor also answers whole files of requests, within a day and at a lower price."""

    @abstractmethod
    def batch_request(self, evidence: Evidence, prompt: JudgePrompt) -> dict[str, Any]:
        """Return the body of one call: the same as a call of its own would have."""

    @abstractmethod
    def batch_reply(self, result: BatchResult, prompt: JudgePrompt) -> JudgeReply:
        """Return the reply that a batch brought, at the batch's price."""


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
    keep_going: bool = False,
    options: Mapping[str, Any] | None = None,
) -> list[tuple[str, Judge]]:
    """Make the judges that `specs` name; what is not None, and each of `options`, goes to every judge that has it.

    keep_going: whether a judge whose replies cannot be read is asked on and on.

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
            threads_of(judge), price_of(judge)
        if keep_going:
            release_brake(judge)
        made.append((spec, judge))
    for name in sorted(wanted.keys() - taken):
        message, hint = _FLAGS.get(name, (f"No judge here has an option {name!r}.", "See `katha judges`."))
        raise UsageError(message, hint=hint)
    return made
