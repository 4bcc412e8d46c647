"""What asking costs: an estimate before, an account while asking, and limits that stop between two calls.

Prices are US dollars per million tokens by kind (`input`, `output`); a judge without a price costs nothing."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from katha.errors import BudgetError, UsageError
from katha.eval_bridge.judging.abilities import price_of
from katha.eval_bridge.packets.instructions import together_text
from katha.eval_bridge.packets.sizes import fitted
from katha.pictures import png_size
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply, PlainPrompt
from katha.schema import AnswerStatus

# What vendors' own guides reckon for English; a dry run errs to the dear side of it.
_CHARACTERS_PER_TOKEN = 4
# Anthropic's rule of thumb for pictures, width x height / 750, and its most.
_PIXELS_PER_TOKEN = 750
_MOST_IMAGE_TOKENS = 1_600
REPLY_TOKENS = 80
"""What a reply is reckoned at, thoughts apart."""
STOPPED = "the budget was used up before this question was asked"


MOST_TOGETHER = 40
"""Questions of one call at most; more are divided into calls of about the same size."""


def estimate_tokens(evidence: Evidence, prompt: JudgePrompt | PlainPrompt, side: int | None = None) -> int:
    """Return roughly how many tokens a judge reads for one question: a token per four letters and per 750 pixels.

    side: the longest side of a picture that is sent; None: as they are.
    """
    if isinstance(prompt, PlainPrompt):
        letters = len(prompt.text)
    else:
        letters = len(evidence.text or "") + len(prompt.instruction) + len(prompt.question)
        letters += sum(map(len, prompt.options or ()))
    return letters // _CHARACTERS_PER_TOKEN + _pictures_tokens(evidence, side)


def estimate_together(evidence: Evidence, prompts: Sequence[JudgePrompt], side: int | None = None) -> int:
    """Return roughly how many tokens a judge reads for several questions in one call, with the evidence once."""
    letters = len(evidence.text or "") + sum(map(len, together_text(prompts)))
    return letters // _CHARACTERS_PER_TOKEN + _pictures_tokens(evidence, side)


def _pictures_tokens(evidence: Evidence, side: int | None) -> int:
    return sum(picture_tokens(*fitted(*png_size(png), side)) for png in evidence.images)


def picture_tokens(width: int, height: int) -> int:
    """Return roughly how many tokens a judge reads for one picture."""
    return min(_MOST_IMAGE_TOKENS, -(-width * height // _PIXELS_PER_TOKEN))


def portions(count: int) -> list[int]:
    """Return how many of `count` questions go into each call of those that are asked together."""
    calls = -(-count // MOST_TOGETHER)
    return [count // calls + (place < count % calls) for place in range(calls)]


def written_tokens(replies: int, thoughts: int, calls: int = 1) -> int:
    """Return how many tokens `replies` replies of a judge that thinks `thoughts` tokens a call are reckoned at."""
    return replies * REPLY_TOKENS + calls * thoughts


def expected_cost(price: Mapping[str, float] | None, read: int, written: int) -> float:
    """Return what prompts of `read` tokens and replies of `written` tokens will cost in dollars; 0 without a price."""
    if not price:
        return 0.0
    return (read * price.get("input", 0.0) + written * price.get("output", 0.0)) / 1e6


class Budget:
    """Limits over all judges of one command, kept from several threads; None is no limit."""

    def __init__(
        self, max_calls: int | None = None, max_cost: float | None = None, *, within: Budget | None = None
    ) -> None:
        """max_cost: US dollars. within: the budget that this one counts a part of, and whose limits hold.

        Raises:
            UsageError: `max_cost` is not a number of dollars.
        """
        if max_cost is not None and not (math.isfinite(max_cost) and max_cost >= 0):
            raise UsageError(f"A budget is a number of US dollars, not {max_cost}.", hint="For example --max-cost 5.")
        self.max_calls, self.max_cost = max_calls, max_cost
        self.calls, self.cost, self.stopped = 0, 0.0, False
        self.paid = 0  # the calls that cost something
        self._granted, self._expected = 0, 0.0
        self._within = within
        self._settled = threading.Condition()

    def grant(self, wanted: int, each: float) -> int:
        """Return how many of `wanted` calls, each expected to cost so many dollars, may be made; see `settle`."""
        if self._within is not None:
            return self._of_whole(self._within.grant(wanted, each))
        with self._settled:
            granted = self._take(wanted, each)
            self.stopped = self.stopped or granted < wanted
            return granted

    def grant_in_turn(self, each: float) -> bool:
        """Return whether one call, expected to cost at most so many dollars, may be made: where what is under way could
        use up what is left, it is waited for, since most calls cost less than they could."""
        if self._within is not None:
            return self._of_whole(int(self._within.grant_in_turn(each))) > 0
        with self._settled:
            while not (granted := self._take(1, each)) and self._granted > 0:
                self._settled.wait()
            self.stopped = self.stopped or not granted
            return granted > 0

    def _of_whole(self, granted: int) -> int:
        """Return what the whole budget grants; whether it has ended the command holds for its parts."""
        assert self._within is not None
        self.stopped = self._within.stopped
        return granted

    def _take(self, wanted: int, each: float) -> int:
        """Hold back what up to `wanted` calls could cost; how many there is room for."""
        granted = wanted
        if self.max_calls is not None:
            granted = min(granted, self.max_calls - self.calls - self._granted)
        if self.max_cost is not None:
            left = self.max_cost - self.cost - self._expected
            granted = min(granted, int(left / each) if each > 0 else wanted) if left > 0 else 0
        granted = max(0, granted)
        self._granted += granted
        self._expected += granted * each
        return granted

    def part(self) -> Budget:
        """Return a budget that counts what one of several spends, under the limits of this one."""
        return Budget(self.max_calls, self.max_cost, within=self)

    def told(self) -> str:
        """Return what is spent of what may be: "$2.41 of $3.00, 13 of 40 calls"."""
        dollars = f"${self.cost:.2f}" + (f" of ${self.max_cost:.2f}" if self.max_cost is not None else "")
        calls = f"{self.calls:,}" + (f" of {self.max_calls:,}" if self.max_calls is not None else "")
        return f"{dollars}, {calls} call{'s' if self.calls != 1 or self.max_calls is not None else ''}"

    def used_up(self, more: str = "") -> BudgetError:
        """Return the error that ends a command for want of budget, with what is used of it; `more` ends its hint."""
        return BudgetError(
            "The budget is used up; what was paid for is kept.",
            hint="Give the same command again, with a higher --max-cost or --max-calls, to go on. "
            f"{(self._within or self).told()} are used{more}.",
        )

    def limits(self) -> Limits:
        """Return the limits as `eval.json` keeps them."""
        return Limits(max_calls=self.max_calls, max_cost=self.max_cost, stopped=self.stopped)

    def give_back(self, count: int, each: float) -> None:
        """Take back `count` granted calls that were not made after all."""
        if self._within is not None:
            self._within.give_back(count, each)
            return
        with self._settled:
            self._granted -= count
            self._expected -= count * each
            self._settled.notify_all()

    def settle(self, each: float, cost: float) -> None:
        """Count a granted call as made for `cost` dollars."""
        if self._within is not None:
            self._within.settle(each, cost)
        with self._settled:
            if self._within is None:
                self._granted -= 1
                self._expected -= each
            self.calls += 1
            self.paid += cost > 0
            self.cost += cost
            self._settled.notify_all()


class Limits(BaseModel, frozen=True):
    """The limits of a budget, and whether they ended the command."""

    max_calls: int | None
    max_cost: float | None
    stopped: bool


class ReuseCheck(BaseModel, frozen=True):
    """How many replies were asked again without a shared prefix, and how many changed by it."""

    checked: int
    flipped: int


class PrefixCache(BaseModel, frozen=True):
    """Tokens of prompts that a server looked up in its prefix cache, and those that it found (of all who asked it)."""

    looked_up: int
    found: int

    def told(self, judge: str) -> str | None:
        """Return it in words; None where nothing was looked up."""
        if not self.looked_up:
            return None
        share = f"{100 * self.found / self.looked_up:.0f}% of {self.looked_up:,} tokens"
        return f"Prefix cache ({judge}): the server had {share} already."


class Account(BaseModel, frozen=True):
    """What one judge was asked in a command: calls, replies by status, dollars (if known) and tokens by kind."""

    calls: int
    reused: int
    cost: float | None
    statuses: dict[AnswerStatus, int]
    tokens: dict[str, int]
    reuse: ReuseCheck | None
    prefix_cache: PrefixCache | None = None


@dataclass
class CallTally:
    """Counts for an `Account`, from several threads."""

    calls: int = 0
    reused: int = 0
    cost: float | None = None
    statuses: Counter[AnswerStatus] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, reply: JudgeReply) -> None:
        """Add one reply of the judge; of several that came by one call, the first counts as the call."""
        cost, tokens, check = (reply.usage.get(name) for name in ("cost", "tokens", "reuse_check"))
        with self._lock:
            self.calls += "shared" not in reply.usage
            self.statuses[reply.status] += 1
            if cost is not None:
                self.cost = (self.cost or 0.0) + float(cost)
            if isinstance(tokens, Mapping):
                self.tokens.update({str(kind): int(count) for kind, count in tokens.items()})
            if check is not None:
                self.checks[str(check)] += 1

    def count_reused(self) -> None:
        """Add one answer that was there already."""
        with self._lock:
            self.reused += 1

    def account(self) -> Account:
        """Return it as `eval.json` keeps it."""
        checked = sum(self.checks.values())
        return Account(
            calls=self.calls,
            reused=self.reused,
            cost=self.cost,
            statuses=dict(sorted(self.statuses.items())),
            tokens=dict(sorted(self.tokens.items())),
            reuse=ReuseCheck(checked=checked, flipped=self.checks["flipped"]) if checked else None,
        )


def require_prices(judges: Mapping[str, Judge], budget: Budget) -> None:
    """Refuse a budget in dollars over judges whose price is unknown.

    Raises:
        UsageError: the judge is named.
    """
    for judge in judges.values() if budget.max_cost is not None else ():
        if price_of(judge) is None:
            raise UsageError(
                f"The price of the judge {judge.spec().get('name')!r} is unknown, so --max-cost cannot hold.",
                hint="Limit it by --max-calls.",
            )


@dataclass
class CallEstimate:
    """What a judge would be asked: calls, those the cache answers, tokens and dollars (None: price unknown). entrance:
    those of the calls that are the entrance test's."""

    calls: int = 0
    entrance: int = 0
    reused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0


class Weighed(Judge):
    """Stands in for a judge in a dry run: it asks nothing, and adds up what asking would take."""

    def __init__(
        self, judge: Judge, estimate: CallEstimate, share: float = 1.0, pretended: JudgeReply | None = None
    ) -> None:
        """share: of the judge's price, that of a batch for example. pretended: what it replies instead of `not_asked`,
        for whoever asks on according to what it hears."""
        self._judge, self._estimate, self._share = judge, estimate, share
        self._reply = pretended or JudgeReply("not_asked", error="dry run")
        self.always_chooses, self._price = judge.always_chooses, price_of(judge)
        self.asks_together, self.picture_side = judge.asks_together, judge.picture_side
        self.thoughts = judge.thoughts
        self.picture_limits = judge.picture_limits

    def spec(self) -> Mapping[str, Any]:
        """Return the inner judge's, so that the cache is asked by the same keys."""
        return self._judge.spec()

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield `not_asked` for each prompt."""
        return self._weigh(evidence, prompts)

    def ask_plainly(self, evidence: Evidence, prompts: Sequence[PlainPrompt]) -> Iterator[JudgeReply]:
        """Yield `not_asked` for each prompt."""
        return self._weigh(evidence, prompts)

    def ask_together(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield `not_asked` for each prompt of one call."""
        self._add(estimate_together(evidence, prompts, self.picture_side), len(prompts))
        yield from (self._reply for _ in prompts)

    def _weigh(self, evidence: Evidence, prompts: Sequence[JudgePrompt | PlainPrompt]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            self._add(estimate_tokens(evidence, prompt, self.picture_side), 1)
            yield self._reply

    def _add(self, tokens: int, replies: int) -> None:
        """Add one call."""
        self._estimate.calls += 1
        self._estimate.input_tokens += tokens
        written = written_tokens(replies, self.thoughts)
        self._estimate.output_tokens += written
        if self._price is None:
            self._estimate.cost = None
        elif self._estimate.cost is not None:
            self._estimate.cost += self._share * expected_cost(self._price, tokens, written)
