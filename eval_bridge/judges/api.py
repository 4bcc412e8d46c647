"""What the API judges share: retries with the same bytes, the schema fallback, typed failures, and pacing."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from katha.errors import JudgeError, KathaError, ModelError, UsageError
from katha.eval_bridge.judges.batches import BatchApi, BatchResult
from katha.eval_bridge.packets.instructions import parse_reply
from katha.models.api import Backoff, Fault, Received, find_vendor
from katha.protocols import Evidence, JudgePrompt, JudgeReply

# ---
# How many calls to one server may be under way: grows by one, shrinks by a fifth when the server is busy (AIMD).
#
# Until the server is busy for the first time every good call adds one, so that a run is at speed after a few calls;
# from then on a whole round of good calls adds one. Of the calls that were under way together only the first busy one
# shrinks the limit: the others say the same thing again.


_SHRINK = 0.8


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
            self._wait_out()
            with self._free:
                self._begun += 1
                number = self._begun
            yield number
        finally:
            with self._free:
                self._under_way -= 1
                self._free.notify()

    def grow(self) -> None:
        """A call went well."""
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

    def _wait_out(self) -> None:
        with self._free:
            until = self._held_until
        left = until - self._clock()
        if left > 0:
            self._sleep(left)


# ---
# What the API judges share: the model's data, retries with the same bytes, the schema fallback, and typed replies.


T = TypeVar("T")
_STOPPED = {"refused": "the judge refused to answer", "truncated": "the reply was cut at the limit of its length"}
LAYOUT = 1
"""Version of the order and wording of a request's parts."""
_DECODING = ("temperature", "max_tokens", "api_version", "reasoning_effort")


class ApiJudge(ABC):
    """One question a call over a vendor's own SDK. `PROVIDER` names its section of `configs/judges.yaml`."""

    PROVIDER: str

    def __init__(
        self,
        argument: str | None = None,
        *,
        base_url: str | None = None,
        max_retries: int = 4,
        timeout: float = 120.0,
        structured: bool = True,
        concurrency: int = 16,
        poll: float | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """Read the model's data and the key; nothing is called yet. poll: seconds between two looks at a batch.

        Raises:
            UsageError: no model is named, or the key's variable is not set.
        """
        if not argument:
            raise UsageError(f"The judge {self.PROVIDER!r} needs a model.", hint=f"Write {self.PROVIDER}:MODEL.")
        self._vendor = find_vendor(self.PROVIDER, argument, base_url=base_url)
        self._model, self._url, self._key = argument, self._vendor.url, self._vendor.key
        self._card = self._vendor.card
        self._backoff = backoff or Backoff(max_retries=max_retries)
        self._timeout, self._structured, self._plain = timeout, structured, not structured
        self.concurrency, self._poll = concurrency, poll
        self._pacer = Pacer(most=concurrency, sleep=self._backoff.sleep)

    @abstractmethod
    def _request(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> dict[str, Any]:
        """The body of one call, as JSON."""

    @abstractmethod
    def _send(self, request: Mapping[str, Any]) -> Any:
        """One call; the SDK's own errors pass through."""

    @abstractmethod
    def _read(self, message: Any) -> Received:
        """What the SDK's object for a reply says."""

    @property
    @abstractmethod
    def batches(self) -> BatchApi:
        """The vendor's batches: asked within a day, at a lower price."""

    def spec(self) -> Mapping[str, Any]:
        """Model, endpoint's host, decoding, schema mode and layout; never the key."""
        decoding = {name: self._card.get(name) for name in _DECODING}
        return {
            "name": f"{self.PROVIDER}:{self._model}",
            "model": self._model,
            "endpoint": self._vendor.endpoint,
            "decoding": decoding,
            "schema_mode": "native" if self._structured else "plain",
            "layout": LAYOUT,
        }

    @property
    def amended(self) -> Mapping[str, str]:
        """What of `spec` does not hold for calls from now on: the schema mode, once the server has rejected one."""
        return {"schema_mode": "plain"} if self._plain and self._structured else {}

    @property
    def price(self) -> Mapping[str, float] | None:
        """US dollars per million tokens by kind; None when unknown."""
        prices: Mapping[str, float] | None = self._card.get("price")
        return prices

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order. May be called from `concurrency` threads and more: calls are paced.

        Raises:
            UsageError: the key or the model is wrong; nothing more is asked.
            JudgeError: the account has no credit left.
        """
        for prompt in prompts:
            yield self._ask_one(evidence, prompt)

    def batch_request(self, evidence: Evidence, prompt: JudgePrompt) -> dict[str, Any]:
        """The body of one call for a batch: the same as a call of its own would have."""
        return self._request(evidence, prompt, plain=not self._structured)

    def batch_reply(self, result: BatchResult, prompt: JudgePrompt) -> JudgeReply:
        """The reply that a batch brought, at the batch's price; a call that failed in it is `transport_failed`."""
        plain = not self._structured
        if result.body is None:
            usage = self._vendor.usage(None, 0, plain=plain)
            return JudgeReply("transport_failed", error=f"batch: {result.error}", usage=usage | {"batch": True})
        try:
            received = self.batches.read(result.body)
        except Exception as error:  # pydantic and the SDKs raise many kinds for a body of another shape
            message = f"batch: the reply cannot be read: {type(error).__name__}"
            return JudgeReply("transport_failed", error=message, usage={"batch": True, "cost": None})
        usage = self._vendor.usage(received, 0, plain=plain) | {"batch": True}
        if usage["cost"] is not None:
            usage["cost"] *= self._card["batch"]["price"]
        return self._reply(received, prompt, usage, plain=plain)

    @property
    def batch_terms(self) -> Mapping[str, float]:
        """Of one batch: most `requests` and `bytes`, its `price` (a share of the usual), `poll` in seconds."""
        terms: dict[str, float] = dict(self._card["batch"])
        return terms if self._poll is None else terms | {"poll": self._poll}

    def patiently(self, call: Callable[[], T]) -> T:
        """`call` through the vendor's SDK, tried again while the server is busy or broken.

        Raises:
            UsageError: the key is wrong. JudgeError: the server stayed broken or refused the call.
        """
        failures: dict[str, int] = {}
        while True:
            try:
                return call()
            except KathaError:
                raise
            except Exception as error:
                fault = self._fault(error)
            failures[fault.kind] = failures.get(fault.kind, 0) + 1
            if failures[fault.kind] > self._backoff.allowed(fault.kind):
                raise JudgeError(
                    f"{self.PROVIDER} did not take the batch call: {fault.message}", hint="Give the same command again."
                )
            self._backoff.sleep(self._backoff.wait(fault, failures[fault.kind]))

    def rest(self, seconds: float) -> None:
        """Wait before the next look at a batch."""
        self._backoff.sleep(seconds)

    def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    def _ask_one(self, evidence: Evidence, prompt: JudgePrompt) -> JudgeReply:
        failures: dict[str, int] = {}
        plain = self._plain
        while True:
            try:
                with self._pacer.slot() as number:
                    received = self._call(evidence, prompt, plain=plain)
            except Fault as fault:
                if self._falls_back(fault, plain=plain):
                    self._plain = plain = True
                    continue
                failures[fault.kind] = failures.get(fault.kind, 0) + 1
                if fault.kind == "busy":
                    self._pacer.shrink(number)
                if failures[fault.kind] > self._backoff.allowed(fault.kind):
                    return JudgeReply("transport_failed", error=fault.message, usage=self._usage(None, failures, plain))
                self._wait(fault, failures[fault.kind])
            else:
                self._pacer.grow()
                return self._reply(received, prompt, self._usage(received, failures, plain), plain=plain)

    def _wait(self, fault: Fault, failures: int) -> None:
        """Before another try: a wait that the server named holds for every call, the growing one for this call."""
        seconds = self._backoff.wait(fault, failures)
        if fault.kind == "busy" and fault.wait is not None:
            self._pacer.hold(seconds)
        else:
            self._backoff.sleep(seconds)

    def _reply(self, received: Received, prompt: JudgePrompt, usage: dict[str, Any], *, plain: bool) -> JudgeReply:
        if received.stop is not None:
            return JudgeReply(received.stop, raw=received.text[:2_000], error=_STOPPED[received.stop], usage=usage)
        return parse_reply(received.text, prompt, usage, plain=plain)

    def _falls_back(self, fault: Fault, *, plain: bool) -> bool:
        return not plain and self._vendor.rejects_schema(fault)

    def _call(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> Received:
        try:
            return self._read(self._send(self._request(evidence, prompt, plain=plain)))
        except (UsageError, JudgeError, Fault):
            raise
        except Exception as error:
            # The SDKs let half a body or another shape through as ValueError, TypeError, AttributeError or IndexError.
            raise self._fault(error) from None

    def _fault(self, error: Exception) -> Fault:
        try:
            return self._vendor.fault(error)
        except ModelError as found:
            raise JudgeError(found.message) from None

    def _usage(self, received: Received | None, failures: Mapping[str, int], plain: bool) -> dict[str, Any]:
        return self._vendor.usage(received, sum(failures.values()), plain=plain)
