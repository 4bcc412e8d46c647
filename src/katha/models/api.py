"""Language models behind an API, through the vendors' own SDKs and their own structured outputs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from katha.errors import KathaError, UsageError
from katha.models.failures import Backoff, Fault
from katha.models.schemas import strict_schema
from katha.models.types import Completion, Turn
from katha.models.vendors import Received, find_vendor
from katha.schema import AnswerStatus

if TYPE_CHECKING:
    from anthropic import Anthropic
    from openai import OpenAI

__all__ = ["AnthropicModel", "ApiModel", "OpenAIModel"]

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
