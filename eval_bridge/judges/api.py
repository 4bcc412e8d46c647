"""What the API judges share: the model's data, retries with the same bytes, the schema fallback, and typed replies."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import yaml

from katha.errors import JudgeError, UsageError
from katha.eval_bridge.judges.failures import Backoff, Fault, retry_after
from katha.eval_bridge.judges.pacing import Pacer
from katha.eval_bridge.judges.structured import parse_reply
from katha.protocols import Evidence, JudgePrompt, JudgeReply
from katha.schema import AnswerStatus

__all__ = ["LAYOUT", "ApiJudge", "Received"]

LAYOUT = 1
"""Version of the order and wording of a request's parts."""
_LOCAL = frozenset(("127.0.0.1", "localhost", "::1"))
_BUSY = frozenset((429, 529))
_UNAUTHORISED = frozenset((401, 403))
_SCHEMA_WORDS = ("response_format", "output_config", "json_schema", "schema", "structured")


@dataclass(frozen=True)
class Received:
    """A server's reply: its text, `stop` when it is not an answer, the model that gave it, and token counts."""

    text: str
    model: str
    stop: AnswerStatus | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)


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
        text = files("katha.configs").joinpath("judges.yaml").read_text(encoding="utf-8")
        vendor = yaml.safe_load(text)[self.PROVIDER]
        if not argument:
            raise UsageError(f"The judge {self.PROVIDER!r} needs a model.", hint=f"Write {self.PROVIDER}:MODEL.")
        self._model, self._variable = argument, str(vendor["key"])
        self._url = base_url or os.environ.get(vendor["url_variable"]) or str(vendor["base_url"])
        names = sorted((name for name in vendor["models"] if argument.startswith(name)), key=len)
        self._card: dict[str, Any] = vendor["default"] | (vendor["models"][names[-1]] if names else {})
        local = urlsplit(self._url).hostname in _LOCAL
        self._key = os.environ.get(self._variable) or ("unused" if local else "")
        if not self._key:
            raise UsageError(f"The judge {self.PROVIDER}:{argument} needs a key.", hint=f"Set {self._variable}.")
        self._backoff = backoff or Backoff(max_retries=max_retries)
        self._timeout, self._structured, self._plain = timeout, structured, not structured
        self.concurrency = concurrency
        self._pacer = Pacer(most=concurrency, sleep=self._backoff.sleep)

    @abstractmethod
    def _send(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> Received:
        """One call; the SDK's own errors pass through."""

    def spec(self) -> Mapping[str, Any]:
        """Model, endpoint's host, decoding, schema mode and layout; never the key."""
        parts = urlsplit(self._url)
        decoding = {name: self._card.get(name) for name in ("temperature", "max_tokens", "api_version")}
        return {
            "name": f"{self.PROVIDER}:{self._model}",
            "model": self._model,
            "endpoint": f"{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}",
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
        rejected = fault.status in {400, 422} and any(word in fault.message.lower() for word in _SCHEMA_WORDS)
        return rejected and not plain

    def _call(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> Received:
        try:
            return self._send(evidence, prompt, plain=plain)
        except (UsageError, JudgeError, Fault):
            raise
        except Exception as error:
            # The SDKs let half a body or another shape through as ValueError, TypeError, AttributeError or IndexError.
            raise self._fault(error) from None

    def _fault(self, error: Exception) -> Fault:
        status = getattr(error, "status_code", None)
        message = f"{type(error).__name__}: {error}".replace(self._key, "[key]")[:500]
        if not isinstance(status, int):
            return Fault("broken", message)
        if status in _UNAUTHORISED:
            raise UsageError(
                f"{self.PROVIDER} refused the key for {self._model!r} (HTTP {status}).", hint=f"Check {self._variable}."
            ) from None
        if status == 404:
            raise UsageError(f"{self.PROVIDER} knows no model {self._model!r} at {self.spec()['endpoint']}.") from None
        if getattr(error, "code", None) == "insufficient_quota":
            raise JudgeError(f"The {self.PROVIDER} account has no credit left.") from None
        headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", {})
        kind = "busy" if status in _BUSY else "broken" if status >= 500 or status in {408, 409} else "refused"
        return Fault(kind, f"HTTP {status}: {message}", status=status, wait=retry_after(headers.get("retry-after")))

    def _usage(self, received: Received | None, failures: Mapping[str, int], plain: bool) -> dict[str, Any]:
        mode = {"schema_mode": "plain" if plain else "native", "retries": sum(failures.values())}
        if received is None:
            return {**mode, "cost": None}
        price = self._card.get("price")
        tokens = dict(received.tokens)
        cost = sum(tokens[name] * price[name] for name in tokens) / 1e6 if price and tokens else None
        return {**mode, "model": received.model, "tokens": tokens, "cost": cost}
