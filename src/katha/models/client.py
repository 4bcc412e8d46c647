"""One client per vendor of models: what is known of the vendor, the gate before it, and calls through its own SDK.

Judges, planners and image services all go through `ProviderClient`: calls in, replies or typed faults out, tried again
with the same bytes while the server is busy or broken. tenacity does the trying; `Backoff` says how often and how long,
and `Pacer` how many calls may be under way at once.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable
from urllib.parse import urlsplit

from tenacity import RetryCallState, Retrying, retry_if_exception

from katha.addresses import is_loopback, url_problem
from katha.configs import load_config
from katha.errors import KathaError, ModelError, TransientRenderError, UsageError
from katha.models.batches import AnthropicBatches, BatchApi, BatchResult, OpenAIBatches
from katha.models.calls import Asker, Call, Reply, body_of, current_calls, is_replayed
from katha.models.calls import Received as Received
from katha.models.lifecycle import ending
from katha.models.replies import joined_parts
from katha.schema import AnswerStatus

if TYPE_CHECKING:
    from anthropic import Anthropic
    from openai import OpenAI

T = TypeVar("T")
Request = dict[str, Any]
"""The body of one call, as JSON."""

_BUSY = frozenset((429, 529))
_UNAUTHORISED = frozenset((401, 403))
_WRONG_KEY = ("API_KEY_INVALID", "API key not valid")
"""What Google says of a wrong key, under HTTP 400."""
_UNWILLING = frozenset(("moderation_blocked", "content_policy_violation"))
_SENSITIVE = "SensitiveContentDetected"
"""What ByteDance's codes of prompts and pictures that it would not draw have in common."""
_SCHEMA_WORDS = ("response_format", "output_config", "json_schema", "schema", "structured")
# A refusal takes away a fifth of the calls that are under way at once, and not half: limits are seldom far below.
_SHRINK = 0.8
_LOG = logging.getLogger("katha")
PATIENCE = 120.0
"""Seconds that a server may go on refusing or failing, without one answer, before it is given up."""
_UNREACHED = 15.0
"""The same for a server of which no call has ever come back: a mistyped address."""
_CHAT = "/v1/chat/completions"
_PROBE = 30.0
_NOWHERE = "http://recording"
"""The address of whoever is asked in a replay."""
# Waits of under two seconds are not worth a line, and one line in a quarter of a minute says enough.
_TOLD_EVERY = 15.0
_WORTH_TELLING = 2.0
_DRAWING = ("temperature", "top_p")
_ANTHROPIC_STOPS: Mapping[str | None, AnswerStatus] = {
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}
_OPENAI_STOPS: Mapping[str | None, AnswerStatus] = {"length": "truncated", "content_filter": "refused"}


class Fault(Exception):
    """One failed call. kind: busy (429, 529), broken (5xx, timeout, cut connection), unwilling (for what was asked),
    refused (another 4xx)."""

    def __init__(self, kind: str, message: str, *, status: int | None = None, wait: float | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.status, self.wait = kind, message, status, wait


@dataclass(frozen=True)
class Backoff:
    """Tries of one call: `max_retries` for a broken server, `busy_retries` for a busy one; waits in seconds."""

    max_retries: int = 4
    busy_retries: int = 8
    first_wait: float = 0.5
    longest_wait: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def allowed(self, kind: str) -> int:
        """Return how many faults of `kind` one call survives."""
        return {"busy": self.busy_retries, "broken": self.max_retries}.get(kind, 0)

    def wait(self, fault: Fault, failures: int) -> float:
        """Return the seconds before another try: what the server asked for, else twice as long as last time."""
        grown = min(self.longest_wait, self.first_wait * 2 ** (failures - 1))
        return grown if fault.wait is None else min(self.longest_wait, max(0.0, fault.wait))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait; None where it names none (a date is left to the backoff)."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            return float(headers[name]) / unit
    return None


class Patience:
    """How long one server may refuse or fail before it is given up, over all threads that call it.

    Counted from the first failure after an answer. A server that is given up is asked again once in `_PROBE` seconds,
    by one call without retries; an answer to it makes everything as it was. The person who waits is told, through the
    logger `katha`, how long it will go on.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """seconds: how long; a server that has never answered anything has at most `_UNREACHED`."""
        self._seconds, self._clock = seconds, clock
        self._lock = threading.Lock()
        self._since: float | None = None
        self._reached = self._spent = False
        self._probed = self._told = -_TOLD_EVERY
        self._last = ""

    @property
    def _limit(self) -> float:
        return self._seconds if self._reached else min(self._seconds, _UNREACHED)

    def check(self) -> None:
        """Let a call go ahead.

        Raises:
            Fault: the server is given up, and it is not yet time to ask it again.
        """
        with self._lock:
            now = self._clock()
            if self._spent and now - self._probed < _PROBE:
                raise Fault("broken", f"{self._last} (given up after {self._limit:.0f} s without an answer)")
            if self._spent:
                self._probed = now

    def answered(self) -> None:
        """Note that the server answered."""
        with self._lock:
            self._since, self._reached, self._spent = None, True, False

    def failed(self, fault: Fault) -> None:
        """Note a failed call. A server that refuses what it was sent has answered."""
        if fault.kind not in ("busy", "broken"):
            self.answered()
            return
        with self._lock:
            now = self._clock()
            self._reached = self._reached or fault.status is not None
            self._last = fault.message
            self._since = now if self._since is None else self._since
            if not self._spent and now - self._since >= self._limit:
                self._spent, self._probed = True, now
                _LOG.warning("The server is given up after %.0f s without an answer: %s", self._limit, fault.message)

    def left(self, wait: float) -> bool:
        """Return whether another try after `wait` seconds is within patience; tell who waits of a long one."""
        with self._lock:
            now = self._clock()
            left = self._limit - (now - self._since) if self._since is not None else self._limit
            if self._spent:
                return False
            if wait >= _WORTH_TELLING and now - self._told >= _TOLD_EVERY:
                self._told = now
                words = "The server refuses or fails: next try in %.0f s, given up in %.0f s (--patience). %s"
                _LOG.warning(words, min(wait, left), max(0.0, left), self._last[:160])
            return True

    def bounded(self, wait: float) -> float:
        """Return `wait`, or what is left of the patience."""
        with self._lock:
            if self._since is None:
                return wait
            return max(0.0, min(wait, self._limit - (self._clock() - self._since)))


class Pacer:
    """The gate that every call to one server goes through, from any thread. `most` bounds the limit; waits in s."""

    def __init__(
        self,
        *,
        start: float = 2.0,
        most: int = 16,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit, self._most = min(start, float(most)), most
        self._sleep, self._clock = sleep, clock
        self._free = threading.Condition()
        self._under_way, self._begun, self._shrunk_at = 0, 0, -1
        self._held_until = 0.0

    @property
    def limit(self) -> int:
        """Calls that may be under way now, from 1."""
        return max(1, int(self._limit))

    @contextmanager
    def slot(self) -> Iterator[int]:
        """Wait until one more call may be made, and hold its place; gives the call's number for `shrink`."""
        with self._free:
            while self._under_way >= self.limit:
                self._free.wait()
            self._under_way += 1
        try:
            left = self._held_until - self._clock()
            if left > 0:
                self._sleep(left)
            with self._free:
                self._begun += 1
                number = self._begun
            yield number
        finally:
            with self._free:
                self._under_way -= 1
                self._free.notify()

    def grow(self) -> None:
        """Note that a call went well."""
        with self._free:
            step = 1.0 if self._shrunk_at < 0 else 1.0 / self._limit
            self._limit = min(float(self._most), self._limit + step)
            self._free.notify()

    def shrink(self, number: int) -> None:
        """The server asked call `number` for fewer calls; calls begun before the last shrinking do not count again."""
        with self._free:
            if number > self._shrunk_at:
                self._limit = max(1.0, self._limit * _SHRINK)
                self._shrunk_at = self._begun

    def hold(self, seconds: float) -> None:
        """Begin no call for so long: the server said when it will listen again (`Retry-After`)."""
        with self._free:
            self._held_until = max(self._held_until, self._clock() + seconds)


@dataclass(frozen=True)
class Vendor:
    """One model of one vendor. card: its row of `configs/providers.yaml`. own: it is called at the vendor's own
    address, which nobody had to name. what: what it is used as. The key is never shown."""

    provider: str
    model: str
    url: str
    variable: str
    card: Mapping[str, Any]
    key: str = field(repr=False)
    own: bool = False
    what: Asker = "judge"

    @property
    def reached(self) -> str:
        """Return how it is reached, without an address."""
        return "its vendor" if self.own else "this machine" if is_loopback(self.url) else "another server"

    @property
    def endpoint(self) -> str:
        """The address without scheme, names and queries."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"

    def require_served(self) -> None:
        """Refuse a model that its vendor has taken away; another address than the vendor's may serve it still.

        Raises:
            UsageError: it is gone; the day and the model to use instead are named.
        """
        end = ending(self.provider, self.model) if self.own else None
        if end is not None and end.past:
            raise UsageError(
                f"{self.provider} withdrew the model {self.model!r} on {end.date}; only what is kept of it is used.",
                hint=f"Use {self.provider}:{end.instead}, or name a server that has it still (base_url).",
            )

    def fault(self, error: Exception) -> Fault:
        """Return what an SDK's error means, with the key blotted out.

        Raises:
            UsageError: the key or the model is wrong. ModelError: the account has no credit left.
        """
        status = getattr(error, "status_code", getattr(error, "code", None))  # Google's SDK calls it code
        message = f"{type(error).__name__}: {error}".replace(self.key, "[key]")[:500]
        if not isinstance(status, int):
            return Fault("broken", message)
        if status in _UNAUTHORISED or any(words in message for words in _WRONG_KEY):
            raise UsageError(
                f"{self.provider} refused the key for {self.model!r} (HTTP {status}).", hint=f"Check {self.variable}."
            ) from None
        if status == 404:
            end = ending(self.provider, self.model)
            hint = f"It ended on {end.date}: use {end.instead}." if end is not None else "`katha doctor` lists models."
            raise UsageError(f"{self.provider} knows no model {self.model!r} at {self.endpoint}.", hint=hint) from None
        code = getattr(error, "code", None)
        if code == "insufficient_quota":
            raise ModelError(f"The {self.provider} account has no credit left.") from None
        headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", {})
        kind = "busy" if status in _BUSY else "broken" if status >= 500 or status in {408, 409} else "refused"
        kind = "unwilling" if code in _UNWILLING or _SENSITIVE in str(code) else kind
        return Fault(kind, f"HTTP {status}: {message}", status=status, wait=retry_after(headers))

    def rejects_schema(self, fault: Fault) -> bool:
        """Return whether the server said that it cannot be held to a schema."""
        return fault.status in {400, 422} and any(word in fault.message.lower() for word in _SCHEMA_WORDS)

    def cost(self, tokens: Mapping[str, int]) -> float | None:
        """Return US dollars for `tokens` by kind; None where there are none or a price is unknown."""
        return _dollars(tokens, self.card.get("price"))

    def usage(self, received: Received | None, retries: int, *, plain: bool) -> dict[str, Any]:
        """Return schema mode, retries, model, token counts, and the cost in US dollars (None where unknown)."""
        mode = {"schema_mode": "plain" if plain else "native", "retries": retries}
        if received is None:
            return {**mode, "cost": None}
        tokens = dict(received.tokens)
        return {**mode, "model": received.model, "tokens": tokens, "cost": self.cost(tokens)}


def _dollars(tokens: Mapping[str, int], price: Mapping[str, float] | None) -> float | None:
    if not tokens or not price or not tokens.keys() <= price.keys():
        return None
    return float(sum(tokens[kind] * price[kind] for kind in tokens)) / 1e6


_KEYLESS: ContextVar[bool] = ContextVar("katha_keyless", default=False)


@contextmanager
def keyless() -> Iterator[None]:
    """Let plug-ins be made without a key, to count and price what they would be asked; no call could succeed."""
    token = _KEYLESS.set(True)
    try:
        yield
    finally:
        _KEYLESS.reset(token)


def is_keyless() -> bool:
    """Return whether plug-ins are made to be counted and priced only (`keyless`)."""
    return _KEYLESS.get()


def find_vendor(
    provider: str,
    model: str,
    *,
    base_url: str | None = None,
    what: Literal["judge", "language model", "renderer"] = "judge",
) -> Vendor:
    """Return the vendor's data for `model` (its longest matching prefix), with the key from the environment.

    In a replay nobody is called: no key is needed, the address is nobody's, and a model that is gone is like any other.

    Raises:
        UsageError: the key's variable is not set; servers on this machine need none.
    """
    replayed = is_replayed()
    section = load_config("providers.yaml")[provider]
    data = section["pictures" if what == "renderer" else "text"]
    named = _NOWHERE if replayed else base_url or os.environ.get(data["url_variable"])
    url = named or str(data["base_url"])
    problem = url_problem(url)
    if problem is not None:
        place = "--base-url" if base_url else str(data["url_variable"])
        raise UsageError(f"The {what} {provider}:{model} cannot be called: {problem}.", hint=f"Correct {place}.")
    prefix = max((name for name in data["models"] if model.startswith(name)), key=len, default="")
    card: dict[str, Any] = data["default"] | data["models"].get(prefix, {})
    variable = next((name for name in section["key"] if os.environ.get(name)), section["key"][0])
    key = os.environ.get(variable) or ("unused" if is_loopback(url) or section.get("own") or is_keyless() else "")
    key = "unused" if replayed else key
    if not key:
        raise UsageError(f"The {what} {provider}:{model} needs a key.", hint=f"Set {variable}.")
    return Vendor(provider, model, url, variable, card, key, own=named is None, what=what)


@dataclass(frozen=True)
class RequestOutcome:
    """One request that was made as often as it took: the reply, or None when the server stayed broken (`error` says
    how). plain: the schema was told in words."""

    received: Received | None
    error: str | None
    usage: dict[str, Any]
    plain: bool


class ProviderClient(ABC):
    """One model of one vendor over the vendor's own SDK. Safe between threads."""

    def __init__(
        self,
        vendor: Vendor,
        *,
        timeout: float,
        backoff: Backoff | None = None,
        at_once: int = 16,
        plain: bool = False,
        patience: float | None = None,
    ) -> None:
        """Keep what is known; nothing is called yet. plain: never ask the server to hold the model to a schema.

        The calls go through the log that is set now (`calls_through`); threads that call later have no say in it.
        """
        self.calls = current_calls()
        self._patience = Patience(PATIENCE if patience is None else patience)
        self.vendor, self.timeout, self.backoff, self.plain = vendor, timeout, backoff or Backoff(), plain
        self._pacer = Pacer(most=at_once, sleep=self.backoff.sleep)
        self._lock = threading.Lock()

    @cached_property
    @abstractmethod
    def sdk(self) -> Any:
        """The SDK's client, with its own retries off."""

    @abstractmethod
    def offered(self) -> dict[str, str | None]:
        """Return the models that the vendor lists for this key, each with the day of its end where it names one."""

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        sdk = self.__dict__.pop("sdk", None)
        if sdk is not None:
            sdk.close()

    def typed(self, call: Callable[[], T]) -> T:
        """Return what `call` gives; whatever the SDK raises in it becomes a `Fault` or a `KathaError`."""
        try:
            return call()
        except (KathaError, Fault):
            raise
        except Exception as error:
            # The SDKs let half a body or another shape through as ValueError, TypeError, AttributeError or IndexError.
            raise self.vendor.fault(error) from None

    def patiently(self, call: Callable[[], T], failed: Counter[str] | None = None) -> T:
        """Return what `call` of the SDK gives, paced and tried again while `Backoff` allows; `failed` counts faults.

        Raises:
            UsageError: the key or the model is wrong. ModelError: the account has no credit left.
            Fault: the server stayed broken, or refused the call.
        """
        if self.calls is not None and self.calls.closed:
            raise ModelError(
                f"{self.vendor.provider}:{self.vendor.model} was to be called, and nobody is in a replay.",
                hint="A recording has replies in words, one a call: draw on this machine, and ask in no batches.",
            )
        self.vendor.require_served()
        failed = Counter() if failed is None else failed

        def once() -> T:
            with self._pacer.slot() as number:
                self._patience.check()
                try:
                    given = self.typed(call)
                except Fault as fault:
                    failed[fault.kind] += 1
                    self._patience.failed(fault)
                    if fault.kind == "busy":
                        self._pacer.shrink(number)
                    raise
            self._pacer.grow()
            self._patience.answered()
            return given

        def again(error: BaseException) -> bool:
            if not isinstance(error, Fault) or failed[error.kind] > self.backoff.allowed(error.kind):
                return False
            return self._patience.left(self.backoff.wait(error, failed[error.kind]))

        def wait(state: RetryCallState) -> float:
            """A wait that a busy server named holds for every call, the growing one for this call alone."""
            assert state.outcome is not None
            fault = state.outcome.exception()
            assert isinstance(fault, Fault)
            seconds = self._patience.bounded(self.backoff.wait(fault, failed[fault.kind]))
            if fault.kind == "busy" and fault.wait is not None:
                self._pacer.hold(seconds)
                return 0.0
            return seconds

        def sleep(seconds: float) -> None:
            if seconds > 0:
                self.backoff.sleep(seconds)

        return Retrying(retry=retry_if_exception(again), wait=wait, sleep=sleep)(once)


class ClientBatches:
    """Batches of one kind of request, over the client of a vendor."""

    def __init__(self, client: ProviderClient, api: BatchApi, terms: Mapping[str, float]) -> None:
        self._client, self.batches, self.batch_terms = client, api, terms

    def patiently(self, call: Callable[[], T]) -> T:
        """Make `call` through the vendor's SDK, tried again while the server is busy or broken (RenderError)."""
        try:
            return self._client.patiently(call)
        except Fault as fault:
            message = f"{self._client.vendor.provider} did not take the batch call: {fault.message[:400]}"
            raise TransientRenderError(message, hint="Give the same command again.") from None

    def rest(self, seconds: float) -> None:
        """Wait before the next look at a batch."""
        self._client.backoff.sleep(seconds)


Take = Callable[[str, Request], None]
"""Takes a call that is to be made in a batch: its key and body."""


class ChatClient(ProviderClient):
    """A client of language models: messages and a schema in, a text out."""

    PROVIDER: ClassVar[str]
    scope: str = ""
    """What else tells a model apart from another of its name at the same address."""
    _take: Take | None = None
    _waiting: Mapping[str, Call] = MappingProxyType({})

    @property
    @abstractmethod
    def batches(self) -> BatchApi:
        """The vendor's batches of such calls."""

    @abstractmethod
    def read_body(self, body: Mapping[str, Any]) -> Received:
        """Return the reply in a batch's result."""

    @contextmanager
    def collecting(self, take: Take) -> Iterator[None]:
        """Give each call that is not known to `take` instead of making it, from any thread; it then has no reply."""
        self._waiting = {}
        self._take = take
        try:
            yield
        finally:
            self._take = None

    def keep_batched(self, result: BatchResult) -> bool:
        """Keep a reply that a batch brought, at the batch's price, if the last `collecting` asked for it; return
        whether there is one."""
        call = self._waiting.get(result.key)
        if call is None or result.body is None or self.calls is None:
            return False
        try:
            received = self.typed(partial(self.read_body, result.body))
        except Fault:  # a body of another shape: the call is made by itself
            return False
        cost = self.vendor.cost(received.tokens)
        share = float(self.vendor.card["batch"]["price"])
        self.calls.keep(call, Reply(received, 0, None if cost is None else cost * share))
        return True

    @abstractmethod
    def picture(self, shown: str) -> dict[str, Any]:
        """Return the part of a message that shows a picture, given as a PNG in base64."""

    @abstractmethod
    def request(self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None, limit: int) -> Request:
        """Return the body of one call. schema: what the reply is held to (None: nothing). limit: its tokens."""

    @abstractmethod
    def send(self, request: Mapping[str, Any]) -> Any:
        """Make one call; the SDK's own errors pass through."""

    @abstractmethod
    def read(self, message: Any) -> Received:
        """Return what the SDK's object for a reply says."""

    def exchange(self, build: Callable[[bool], Request], draw: int = 0) -> RequestOutcome:
        """Make the call whose body `build` gives (for the schema in words: True), paced and tried again.

        A server that cannot be held to a schema is asked in words from then on, which counts as no failure. A reply
        that the log of calls knows is not asked for; its usage is what it was, and a language model's says `replayed`.

        draw: which of several drawn replies to this body is asked for.

        Raises:
            UsageError: the key or the model is wrong. ModelError: the account has no credit left, or a replay does not
            know the call.
        """
        plain, failed = self.plain, Counter[str]()
        received: Received | None = None
        error: str | None = None
        while received is None and error is None:
            known, plain = self._known(build, plain, draw)
            if known is not None:
                usage = self.vendor.usage(known.received, known.retries, plain=plain)
                # A judge's answer is the same bytes, however it came.
                mark = {} if self.vendor.what == "judge" else {"replayed": True}
                return RequestOutcome(known.received, None, {**usage, "cost": known.cost, **mark}, plain)
            request = build(plain)
            if (take := self._take) is not None:
                call = self._call(request, draw)
                with self._lock:
                    self._waiting = {**self._waiting, call.key: call}
                    take(call.key, request)
                return RequestOutcome(None, "it waits for a batch", self.vendor.usage(None, 0, plain=plain), plain)
            try:
                received = self.patiently(partial(self._answer, request), failed)
            except Fault as fault:
                if plain or not self.vendor.rejects_schema(fault):
                    error = fault.message
                else:
                    self.plain = plain = True
                    del failed[fault.kind]
        usage = self.vendor.usage(received, failed.total(), plain=plain)
        if received is not None and self.calls is not None:
            self.calls.keep(self._call(request, draw), Reply(received, failed.total(), usage["cost"]))
        return RequestOutcome(received, error, usage, plain)

    def _known(self, build: Callable[[bool], Request], plain: bool, draw: int) -> tuple[Reply | None, bool]:
        """Return the reply that the log of calls knows, and whether it is to the schema in words.

        Raises:
            ModelError: it knows none, and nobody may be called.
        """
        if self.calls is None:
            return None, plain
        call = self._call(build(plain), draw)
        found = self.calls.find(call)
        if found is None and self.calls.closed:
            if not plain:  # a server that could not be held to a schema is not asked whether it can
                found = self.calls.find(self._call(build(True), draw))
            if found is None:
                raise self.calls.missing(call)
            self.plain = plain = True
        return found, plain

    def _call(self, request: Request, draw: int) -> Call:
        vendor = self.vendor
        return Call(
            *(vendor.provider, vendor.model, body_of(request)),
            draw=draw,
            asker=vendor.what,
            scope=f"{vendor.endpoint} {self.scope}",
            reached=vendor.reached,
        )

    def _answer(self, request: Request) -> Received:
        return self.read(self.send(request))


@runtime_checkable
class TalksInBatches(Protocol):
    """A renderer, or its model, that holds conversations whose calls can be answered in a vendor's batches."""

    def batched_client(self) -> ChatClient | None:
        """Return the client of the model; None for one without batches, or whose replies are kept nowhere."""


class AnthropicClient(ChatClient):
    """Claude over the Messages API."""

    PROVIDER = "anthropic"

    @cached_property
    def sdk(self) -> Anthropic:
        """The SDK's client, with its own retries off."""
        from anthropic import Anthropic

        return Anthropic(api_key=self.vendor.key, base_url=self.vendor.url, max_retries=0, timeout=self.timeout)

    def offered(self) -> dict[str, str | None]:
        """Return the models that are listed as not retired."""
        listed = [item for item in self.sdk.models.list(limit=1000) if item.lifecycle != "retired"]
        return {item.id: item.retires_at.date().isoformat() if item.retires_at else None for item in listed}

    def picture(self, shown: str) -> dict[str, Any]:
        """Return an image block of the Messages API."""
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": shown}}

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every call: the version of the API, where the model needs one."""
        version = self.vendor.card.get("api_version")
        return {"anthropic-version": version} if version else {}

    @property
    def batches(self) -> AnthropicBatches:
        """Message Batches of this model."""
        return AnthropicBatches(self.sdk, self.headers)

    def read_body(self, body: Mapping[str, Any]) -> Received:
        """Return what a message in a batch's result says."""
        from anthropic.types import Message

        return self.read(Message.model_validate(body))

    def request(self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None, limit: int) -> Request:
        """Return the body of one call of the Messages API."""
        from anthropic import transform_schema

        request: Request = {"model": self.vendor.model, "max_tokens": limit, "messages": list(messages)}
        if schema is not None:
            request["output_config"] = {"format": {"type": "json_schema", "schema": transform_schema(dict(schema))}}
        if self.vendor.card.get("temperature") is not None:
            request["temperature"] = self.vendor.card["temperature"]
        return request

    def send(self, request: Mapping[str, Any]) -> Any:
        """Make one call. The SDK's own version of the API has no temperature, so that what draws travels beside it."""
        known = {name: value for name, value in request.items() if name not in _DRAWING}
        body = {name: request[name] for name in _DRAWING if name in request} or None
        return self.sdk.messages.create(**known, extra_headers=self.headers, extra_body=body)

    def read(self, message: Any) -> Received:
        """Return what a `Message` says."""
        usage = message.usage
        tokens = {
            "input": usage.input_tokens,
            "cache_write": usage.cache_creation_input_tokens or 0,
            "cached": usage.cache_read_input_tokens or 0,
            "output": usage.output_tokens,
        }
        text = "".join(block.text for block in message.content if block.type == "text")
        return Received(text, message.model, _ANTHROPIC_STOPS.get(message.stop_reason), tokens)


def _first_token(given: Any) -> dict[str, float] | None:
    """Return the likeliest first tokens with their probabilities; blanks before a token do not count."""
    if given is None or not given.content:
        return None
    first = given.content[0]
    found: dict[str, float] = {}
    for token in first.top_logprobs or [first]:
        word = token.token.strip()
        found[word] = found.get(word, 0.0) + math.exp(token.logprob)
    return found


class OpenAIClient(ChatClient):
    """Any server that speaks the Chat Completions protocol, by `base_url` or OPENAI_BASE_URL."""

    PROVIDER = "openai"

    @cached_property
    def sdk(self) -> OpenAI:
        """The SDK's client, with its own retries off."""
        from openai import OpenAI

        return OpenAI(api_key=self.vendor.key, base_url=self.vendor.url, max_retries=0, timeout=self.timeout)

    def offered(self) -> dict[str, str | None]:
        """Return the models that are listed; Google's names come without their folder."""
        return {item.id.removeprefix("models/"): item.shutdown_date for item in self.sdk.models.list()}

    def picture(self, shown: str) -> dict[str, Any]:
        """Return an image part of a chat message."""
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{shown}"}}

    @property
    def batches(self) -> OpenAIBatches:
        """The batch files of this server."""
        return OpenAIBatches(self.sdk, _CHAT)

    def read_body(self, body: Mapping[str, Any]) -> Received:
        """Return what a completion in a batch's result says."""
        from openai.types.chat import ChatCompletion

        return self.read(ChatCompletion.model_validate(body))

    def request(self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None, limit: int) -> Request:
        """Return the body of one chat completion."""
        card = self.vendor.card
        request: Request = {"model": self.vendor.model, "messages": list(messages), card["tokens_field"]: limit}
        if schema is not None:
            held = {"name": "reply", "strict": True, "schema": dict(schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": held}
        request |= {name: card[name] for name in ("temperature", "reasoning_effort") if card.get(name) is not None}
        return request

    def send(self, request: Mapping[str, Any]) -> Any:
        """Make one call."""
        return self.sdk.chat.completions.create(**request)

    def read(self, message: Any) -> Received:
        """Return what a `ChatCompletion` says."""
        choice = message.choices[0]
        stop = "refused" if choice.message.refusal else _OPENAI_STOPS.get(choice.finish_reason)
        tokens = _tokens(message.usage)
        try:
            text = choice.message.refusal or _words(choice.message)
        except (TypeError, AttributeError) as error:
            # Paid for, and it will be of this shape again: a reply that cannot be read, and no call that failed.
            return Received(f"{error}", str(message.model), "unparseable", tokens)
        return Received(text, message.model, stop, tokens, _first_token(choice.logprobs))


def _words(message: Any) -> str:
    """Return what a message says. Thoughts count only where a server put everything that was said among them."""
    words, thoughts = joined_parts(message.content)
    if words.strip():
        return words
    beside = (getattr(message, name, None) for name in ("reasoning_content", "reasoning"))
    return thoughts or next((said for said in beside if isinstance(said, str) and said.strip()), "")


def _tokens(usage: Any) -> dict[str, int]:
    if usage is None:
        return {}
    details = usage.prompt_tokens_details
    cached = (getattr(details, "cached_tokens", 0) or 0) if details is not None else 0
    # Some servers leave thoughts out of what was completed; the total has them, and so has the bill.
    output = max(usage.completion_tokens, (usage.total_tokens or 0) - usage.prompt_tokens)
    return {"input": usage.prompt_tokens - cached, "cached": cached, "output": output}
