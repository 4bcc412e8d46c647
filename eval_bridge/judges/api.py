"""What the API judges share: the model's data, retries with the same bytes, the schema fallback, and typed replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from katha.errors import JudgeError, ModelError, UsageError
from katha.eval_bridge.judges.pacing import Pacer
from katha.eval_bridge.judges.structured import parse_reply
from katha.models.failures import Backoff, Fault
from katha.models.vendors import Received, find_vendor
from katha.protocols import Evidence, JudgePrompt, JudgeReply

__all__ = ["LAYOUT", "ApiJudge"]

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
        backoff: Backoff | None = None,
    ) -> None:
        """Read the model's data and the key; nothing is called yet.

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
        self.concurrency = concurrency
        self._pacer = Pacer(most=concurrency, sleep=self._backoff.sleep)

    @abstractmethod
    def _send(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> Received:
        """One call; the SDK's own errors pass through."""

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
            return JudgeReply(received.stop, raw=received.text[:2_000], error="the server stopped early", usage=usage)
        return parse_reply(received.text, prompt, usage, plain=plain)

    def _falls_back(self, fault: Fault, *, plain: bool) -> bool:
        return not plain and self._vendor.rejects_schema(fault)

    def _call(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> Received:
        try:
            return self._send(evidence, prompt, plain=plain)
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
