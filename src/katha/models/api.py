"""Language models behind an API: one completion a call, held to a JSON schema where the server can."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from katha.errors import UsageError
from katha.models.base import Completion, Turn, strict_schema
from katha.models.client import AnthropicClient, Backoff, ChatClient, OpenAIClient, Request, find_vendor

_LONG = 16_000


class ApiModel:
    """One completion a call. `CLIENT` is the vendor's."""

    CLIENT: ClassVar[type[ChatClient]]

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
        provider = self.CLIENT.PROVIDER
        if not model:
            raise UsageError(f"The language model {provider!r} needs a name.", hint=f"Write {provider}:MODEL.")
        self.vendor = find_vendor(provider, model, base_url=base_url, what="language model")
        self._client = self.CLIENT(self.vendor, timeout=timeout, backoff=backoff)
        self._max_tokens = max_tokens

    def spec(self) -> Mapping[str, Any]:
        """Return model, endpoint and decoding; never the key."""
        return {
            "name": f"{self.vendor.provider}:{self.vendor.model}",
            "endpoint": self.vendor.endpoint,
            "decoding": {"temperature": self.vendor.card.get("temperature"), "max_tokens": self._max_tokens},
        }

    def complete(self, turns: Sequence[Turn], schema: Mapping[str, Any]) -> Completion:
        """Return the reply, tried again with the same bytes while the server is busy or broken.

        Raises:
            UsageError: the key or the model is wrong. ModelError: the account has no credit left.
        """

        def build(plain: bool) -> Request:
            told = _in_words(turns, schema) if plain else turns
            messages = [{"role": turn.role, "content": turn.text} for turn in told]
            return self._client.request(messages, None if plain else self._held(schema), self._max_tokens)

        done = self._client.exchange(build)
        received = done.received
        if received is None:
            return Completion("transport_failed", error=done.error, usage=done.usage)
        error = f"the model stopped early ({received.stop})" if received.stop else None
        return Completion(received.stop or "ok", received.text, error, done.usage)

    def _held(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema in the words that the vendor takes."""
        return schema


class AnthropicModel(ApiModel):
    """Claude over the Messages API; the key is read from ANTHROPIC_API_KEY."""

    CLIENT = AnthropicClient


class OpenAIModel(ApiModel):
    """Any server that speaks the Chat Completions protocol, by `base_url` or OPENAI_BASE_URL."""

    CLIENT = OpenAIClient

    def _held(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        return strict_schema(schema)


def _in_words(turns: Sequence[Turn], schema: Mapping[str, Any]) -> list[Turn]:
    """The conversation with the schema in its first turn, for servers that cannot enforce it."""
    first = turns[0]
    text = json.dumps(schema, ensure_ascii=False)
    asked = f"{first.text}\n\nReturn one JSON object and nothing else. It must satisfy this JSON schema: {text}"
    return [Turn(first.role, asked), *turns[1:]]
