"""Language models behind an API, through the vendors' own SDKs: what is known of each vendor, and what its errors
mean.
"""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from katha.errors import KathaError, ModelError, UsageError
from katha.models.base import Completion, Turn, strict_schema
from katha.schema import AnswerStatus

if TYPE_CHECKING:
    from anthropic import Anthropic
    from openai import OpenAI

# ---
# What can go wrong between katha and a server, as data: what is tried again, how often, and after what wait.


class Fault(Exception):
    """One failed call. kind: busy (429, 529), broken (5xx, timeout, cut connection), refused (another 4xx)."""

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
        """How many faults of `kind` one call survives."""
        return {"busy": self.busy_retries, "broken": self.max_retries}.get(kind, 0)

    def wait(self, fault: Fault, failures: int) -> float:
        """Seconds before another try: what the server asked for, else twice as long as last time."""
        grown = min(self.longest_wait, self.first_wait * 2 ** (failures - 1))
        return grown if fault.wait is None else min(self.longest_wait, max(0.0, fault.wait))


def retry_after(value: str | None) -> float | None:
    """The seconds in a `Retry-After` header; None when it holds none (a date is left to the backoff)."""
    try:
        return float(value) if value is not None else None
    except ValueError:
        return None


# ---
# What is known of a vendor of models, as data: address, key, a model's settings; and what its errors mean.


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


@dataclass(frozen=True)
class Vendor:
    """One model of one vendor. card: its section of `configs/judges.yaml`. The key is never shown."""

    provider: str
    model: str
    url: str
    variable: str
    card: Mapping[str, Any]
    key: str = field(repr=False)

    @property
    def endpoint(self) -> str:
        """The address without scheme, names and queries."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"

    def fault(self, error: Exception) -> Fault:
        """What an SDK's error means, with the key blotted out.

        Raises:
            UsageError: the key or the model is wrong. ModelError: the account has no credit left.
        """
        status = getattr(error, "status_code", None)
        message = f"{type(error).__name__}: {error}".replace(self.key, "[key]")[:500]
        if not isinstance(status, int):
            return Fault("broken", message)
        if status in _UNAUTHORISED:
            raise UsageError(
                f"{self.provider} refused the key for {self.model!r} (HTTP {status}).", hint=f"Check {self.variable}."
            ) from None
        if status == 404:
            raise UsageError(f"{self.provider} knows no model {self.model!r} at {self.endpoint}.") from None
        if getattr(error, "code", None) == "insufficient_quota":
            raise ModelError(f"The {self.provider} account has no credit left.") from None
        headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", {})
        kind = "busy" if status in _BUSY else "broken" if status >= 500 or status in {408, 409} else "refused"
        return Fault(kind, f"HTTP {status}: {message}", status=status, wait=retry_after(headers.get("retry-after")))

    def rejects_schema(self, fault: Fault) -> bool:
        """Whether the server said that it cannot be held to a schema."""
        return fault.status in {400, 422} and any(word in fault.message.lower() for word in _SCHEMA_WORDS)

    def usage(self, received: Received | None, retries: int, *, plain: bool) -> dict[str, Any]:
        """Schema mode, retries, model, token counts, and the cost in US dollars (None where a price is unknown)."""
        mode = {"schema_mode": "plain" if plain else "native", "retries": retries}
        if received is None:
            return {**mode, "cost": None}
        price, tokens = self.card.get("price"), dict(received.tokens)
        cost = sum(tokens[name] * price[name] for name in tokens) / 1e6 if price and tokens else None
        return {**mode, "model": received.model, "tokens": tokens, "cost": cost}


def find_vendor(provider: str, model: str, *, base_url: str | None = None, what: str = "judge") -> Vendor:
    """The vendor's data for `model` (its longest matching prefix), with the key from the environment.

    Raises:
        UsageError: the key's variable is not set; servers on this machine need none.
    """
    data = yaml.safe_load(files("katha.configs").joinpath("judges.yaml").read_text(encoding="utf-8"))[provider]
    url = base_url or os.environ.get(data["url_variable"]) or str(data["base_url"])
    names = sorted((name for name in data["models"] if model.startswith(name)), key=len)
    card: dict[str, Any] = data["default"] | (data["models"][names[-1]] if names else {})
    variable = str(data["key"])
    key = os.environ.get(variable) or ("unused" if urlsplit(url).hostname in _LOCAL else "")
    if not key:
        raise UsageError(f"The {what} {provider}:{model} needs a key.", hint=f"Set {variable}.")
    return Vendor(provider, model, url, variable, card, key)


# ---
# Language models behind an API, through the vendors' own SDKs and their own structured outputs.


_LONG = 16_000
_ANTHROPIC_STOPS: dict[str, AnswerStatus] = {
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}
_OPENAI_STOPS: dict[str, AnswerStatus] = {"length": "truncated", "content_filter": "refused"}


class ApiModel(ABC):
    """One completion a call. `PROVIDER` names the vendor's section of `configs/judges.yaml`."""

    PROVIDER: str

    def __init__(
        self,
        model: str | None,
        *,
        base_url: str | None = None,
        max_tokens: int = _LONG,
        timeout: float = 600.0,
        backoff: Backoff | None = None,
    ) -> None:
        """Read the model's data and the key; nothing is called yet.

        Raises:
            UsageError: no model is named, or the key's variable is not set.
        """
        if not model:
            raise UsageError(
                f"The language model {self.PROVIDER!r} needs a name.", hint=f"Write {self.PROVIDER}:MODEL."
            )
        self.vendor = find_vendor(self.PROVIDER, model, base_url=base_url, what="language model")
        self._max_tokens, self._timeout = max_tokens, timeout
        self._backoff, self._plain = backoff or Backoff(), False

    def spec(self) -> Mapping[str, Any]:
        """Model, endpoint and decoding; never the key."""
        return {
            "name": f"{self.PROVIDER}:{self.vendor.model}",
            "endpoint": self.vendor.endpoint,
            "decoding": {"temperature": self.vendor.card.get("temperature"), "max_tokens": self._max_tokens},
        }

    @abstractmethod
    def _send(self, turns: Sequence[Turn], schema: Mapping[str, Any], *, plain: bool) -> Received:
        """One call; the SDK's own errors pass through."""

    def complete(self, turns: Sequence[Turn], schema: Mapping[str, Any]) -> Completion:
        """The reply, tried again with the same bytes while the server is busy or broken.

        Raises:
            UsageError: the key or the model is wrong. ModelError: the account has no credit left.
        """
        failures: dict[str, int] = {}
        while True:
            try:
                received = self._call(turns, schema)
            except Fault as fault:
                if self.vendor.rejects_schema(fault) and not self._plain:
                    self._plain = True
                    continue
                failures[fault.kind] = failures.get(fault.kind, 0) + 1
                if failures[fault.kind] > self._backoff.allowed(fault.kind):
                    usage = self.vendor.usage(None, sum(failures.values()), plain=self._plain)
                    return Completion("transport_failed", error=fault.message, usage=usage)
                self._backoff.sleep(self._backoff.wait(fault, failures[fault.kind]))
            else:
                usage = self.vendor.usage(received, sum(failures.values()), plain=self._plain)
                error = f"the model stopped early ({received.stop})" if received.stop else None
                return Completion(received.stop or "ok", received.text, error, usage)

    def _call(self, turns: Sequence[Turn], schema: Mapping[str, Any]) -> Received:
        try:
            return self._send(_in_words(turns, schema) if self._plain else turns, schema, plain=self._plain)
        except (KathaError, Fault):
            raise
        except Exception as error:
            # The SDKs let half a body or another shape through as ValueError, TypeError, AttributeError or IndexError.
            raise self.vendor.fault(error) from None


class AnthropicModel(ApiModel):
    """Claude over the Messages API; the key is read from ANTHROPIC_API_KEY."""

    PROVIDER = "anthropic"

    @cached_property
    def _client(self) -> Anthropic:
        from anthropic import Anthropic

        return Anthropic(api_key=self.vendor.key, base_url=self.vendor.url, max_retries=0, timeout=self._timeout)

    def _send(self, turns: Sequence[Turn], schema: Mapping[str, Any], *, plain: bool) -> Received:
        from anthropic import transform_schema

        card, options = self.vendor.card, dict[str, Any]()
        if not plain:
            options["output_config"] = {"format": {"type": "json_schema", "schema": transform_schema(dict(schema))}}
        if card.get("api_version"):
            options["extra_headers"] = {"anthropic-version": card["api_version"]}
        if card.get("temperature") is not None:
            options["extra_body"] = {"temperature": card["temperature"]}
        messages: Any = [{"role": turn.role, "content": turn.text} for turn in turns]
        message: Any = self._client.messages.create(
            model=self.vendor.model, max_tokens=self._max_tokens, messages=messages, **options
        )
        usage = message.usage
        tokens = {
            "input": usage.input_tokens,
            "cache_write": usage.cache_creation_input_tokens or 0,
            "cached": usage.cache_read_input_tokens or 0,
            "output": usage.output_tokens,
        }
        text = "".join(block.text for block in message.content if block.type == "text")
        return Received(text, message.model, _ANTHROPIC_STOPS.get(message.stop_reason), tokens)


class OpenAIModel(ApiModel):
    """Any server that speaks the Chat Completions protocol, by `base_url` or OPENAI_BASE_URL."""

    PROVIDER = "openai"

    @cached_property
    def _client(self) -> OpenAI:
        from openai import OpenAI

        return OpenAI(api_key=self.vendor.key, base_url=self.vendor.url, max_retries=0, timeout=self._timeout)

    def _send(self, turns: Sequence[Turn], schema: Mapping[str, Any], *, plain: bool) -> Received:
        card = self.vendor.card
        options: dict[str, Any] = {card["tokens_field"]: self._max_tokens}
        if not plain:
            held = {"name": "reply", "strict": True, "schema": strict_schema(schema)}
            options["response_format"] = {"type": "json_schema", "json_schema": held}
        if card.get("temperature") is not None:
            options["temperature"] = card["temperature"]
        messages: Any = [{"role": turn.role, "content": turn.text} for turn in turns]
        completion: Any = self._client.chat.completions.create(model=self.vendor.model, messages=messages, **options)
        choice = completion.choices[0]
        stop = "refused" if choice.message.refusal else _OPENAI_STOPS.get(choice.finish_reason)
        text = choice.message.refusal or choice.message.content or ""
        return Received(text, completion.model, stop, _tokens(completion.usage))


def _tokens(usage: Any) -> dict[str, int]:
    if usage is None:
        return {}
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details is not None else 0
    return {"input": usage.prompt_tokens - cached, "cached": cached, "output": usage.completion_tokens}


def _in_words(turns: Sequence[Turn], schema: Mapping[str, Any]) -> list[Turn]:
    """The conversation with the schema in its first turn, for servers that cannot enforce it."""
    first = turns[0]
    text = json.dumps(schema, ensure_ascii=False)
    asked = f"{first.text}\n\nReturn one JSON object and nothing else. It must satisfy this JSON schema: {text}"
    return [Turn(first.role, asked), *turns[1:]]
