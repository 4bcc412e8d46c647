"""A language model by its name: `local:PATH`, `anthropic:MODEL`, `openai:MODEL`, `vllm:MODEL`, `paste`; without a
provider, a local one."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from katha.errors import UsageError
from katha.jsonio import digest, sha256_hex
from katha.models.base import Completion, Heard, TextModel, Turn, grammar_schema, strict_schema
from katha.models.calls import Call, CallLog, Reply, body_of, current_calls, remembered
from katha.models.checkpoints import HoldsModel
from katha.models.client import AnthropicClient, Backoff, ChatClient, OpenAIClient, Received, Request, find_vendor
from katha.models.local import DEFAULT_MODEL, LocalModel
from katha.models.paste import PasteModel
from katha.models.served import ENGINES, ModelServer

_SERVED: Mapping[str, type[ChatClient]] = MappingProxyType(
    {
        "anthropic": AnthropicClient,
        "openai": OpenAIClient,
        "gemini": OpenAIClient,
        "vllm": OpenAIClient,
        "sglang": OpenAIClient,
    }
)
_MOST_TOKENS = 16_000
_OWN_TOKENS = 8192
"""Of a reply from a server of one's own, whose window also has to hold the prompt."""
_HELD: Mapping[str, Callable[[Mapping[str, Any]], Any]] = MappingProxyType(
    {"openai": strict_schema, "vllm": grammar_schema, "sglang": grammar_schema}
)
"""How a schema is written for a provider: OpenAI's strict subset, or xgrammar's, as for models on this machine."""
_HERE: Mapping[str, tuple[str, Callable[..., TextModel]]] = MappingProxyType(
    {
        "local": (DEFAULT_MODEL, lambda *given, **options: LocalModel(*given, **options)),
        "paste": ("paste", lambda *given, **options: PasteModel(*given, **options)),
    }
)
"""Models that no client of a vendor calls, each with the name that a recording has where none is given."""
_LOCAL_ONLY = ("adapter", "device", "dtype", "revision")
_LACKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"local": ("base_url", "timeout"), "paste": (*_LOCAL_ONLY, "base_url")}
)
"""Options that a kind of model does not have; models behind an API lack those of local ones."""


class ServedModel:
    """A language model behind the API of `provider`: one completion a call, held to a schema where the server can."""

    def __init__(
        self,
        provider: str,
        model: str | None,
        *,
        base_url: str | None = None,
        max_tokens: int | None = None,
        timeout: float = 600.0,
        backoff: Backoff | None = None,
    ) -> None:
        """Read the model's data and the key; nothing is called yet.

        Raises:
            UsageError: no model is named, or the key's variable is not set.
        """
        if not model:
            raise UsageError(f"The language model {provider!r} needs a name.", hint=f"Write {provider}:MODEL.")
        self.vendor = find_vendor(provider, model, base_url=base_url, what="language model")
        self._client = _SERVED[provider](self.vendor, timeout=timeout, backoff=backoff)
        self._engine = ENGINES.get(provider)
        self._max_tokens = max_tokens or (_MOST_TOKENS if self._engine is None else _OWN_TOKENS)

    @cached_property
    def _facts(self) -> Mapping[str, object]:
        """Return what is known of the model beyond its name: where it is, or what one's own server tells of it."""
        if self._engine is None:
            return {"endpoint": self.vendor.endpoint}
        server, vendor = ModelServer(self._engine, self.vendor), self.vendor
        asked = {"about": "server"}
        return {
            "served": remembered(
                self._client.calls, vendor.provider, vendor.model, asked, lambda: server.model().told()
            )
        }

    def spec(self) -> Mapping[str, Any]:
        """Return model, endpoint and decoding; never the key. Of one's own server, what it tells of the model.

        Raises:
            ModelError: such a server does not answer. UsageError: it does not serve the model.
        """
        return {
            "name": f"{self.vendor.provider}:{self.vendor.model}",
            **self._facts,
            "decoding": {"temperature": self.vendor.card.get("temperature"), "max_tokens": self._max_tokens},
        }

    def complete(
        self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: Heard | None = None
    ) -> Completion:
        """Return the reply, tried again with the same bytes while the server is busy or broken.

        Raises:
            UsageError: the key or the model is wrong. ModelError: the account has no credit left.
        """
        if heard is not None:  # a reply of a service comes in one piece: its limit is what can be told
            heard(0, self._max_tokens)
        if self._engine is not None and self._client.calls is not None:
            self._client.scope = digest(self._facts)  # other weights under the same name are another model
        held = None if schema is None else _HELD.get(self.vendor.provider, dict)(schema)

        def build(plain: bool) -> Request:
            told = _in_words(turns, schema) if plain and schema is not None else turns
            messages = [{"role": turn.role, "content": self._content(turn)} for turn in told]
            return self._client.request(messages, None if plain else held, self._max_tokens)

        done = self._client.exchange(build)
        received = done.received
        if received is None:
            return Completion("transport_failed", error=done.error, usage=done.usage)
        error = f"the model stopped early ({received.stop})" if received.stop else None
        return Completion(received.stop or "ok", received.text, error, done.usage)

    def batched_client(self) -> ChatClient | None:
        """Return the client, where its vendor has batches and what they bring can be kept."""
        calls = self._client.calls
        return self._client if self._engine is None and calls is not None and not calls.closed else None

    def _content(self, turn: Turn) -> str | list[dict[str, Any]]:
        """Return what a turn says: its text, or its pictures and then its text."""
        if not turn.images:
            return turn.text
        shown = [self._client.picture(b64encode(png).decode("ascii")) for png in turn.images]
        return [*shown, {"type": "text", "text": turn.text}]


class RecordedModel:
    """A model on this machine whose calls are recorded; in a replay, one that need not be here."""

    def __init__(self, name: str, log: CallLog, options: Mapping[str, Any], make: Callable[[], TextModel]) -> None:
        """make: gives the model, whose errors are its own; it is not called in a replay."""
        self._name, self._log = name, log
        given = {option: value.name if isinstance(value, Path) else value for option, value in options.items()}
        self._asked = {"about": "model", "options": given}
        self._model = None if log.closed else make()

    @cached_property
    def _spec(self) -> Mapping[str, Any]:
        model = self._model
        return remembered(self._log, "local", self._name, self._asked, lambda: dict(model.spec() if model else {}))

    def spec(self) -> Mapping[str, Any]:
        """Return the model's own specification, or the recorded one."""
        return self._spec

    def complete(
        self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: Heard | None = None
    ) -> Completion:
        """Return the model's reply, or the recorded one.

        Raises:
            ModelError: a replay does not know the call; see the model's own.
        """
        body = {"messages": [_told_here(turn) for turn in turns], "schema": schema, "spec": dict(self._spec)}
        call = Call("local", self._name, body_of(body), reached="this machine")
        found = self._log.find(call)
        if found is not None:
            received = found.received
            error = f"the model stopped early ({received.stop})" if received.stop else None
            told = {"model": received.model, "tokens": dict(received.tokens), "cost": found.cost, "replayed": True}
            return Completion(received.stop or "ok", received.text, error, told)
        if self._model is None:
            raise self._log.missing(call)
        reply = self._model.complete(turns, schema, heard)
        if reply.status in ("ok", "truncated"):
            usage, stop = reply.usage, None if reply.status == "ok" else reply.status
            received = Received(reply.text, str(usage.get("model", self._name)), stop, usage.get("tokens", {}))
            self._log.keep(call, Reply(received, cost=usage.get("cost")))
        return reply

    def close(self) -> None:
        """Let go of the model and its memory."""
        if isinstance(self._model, HoldsModel):
            self._model.close()


def _told_here(turn: Turn) -> dict[str, Any]:
    """Return a turn as a recording has it."""
    if not turn.images:
        return {"role": turn.role, "content": turn.text}
    shown = [{"type": "picture", "picture": f"sha256:{sha256_hex(png)}"} for png in turn.images]
    return {"role": turn.role, "content": [*shown, {"type": "text", "text": turn.text}]}


def _in_words(turns: Sequence[Turn], schema: Mapping[str, Any]) -> list[Turn]:
    """Return the conversation with the schema in its first turn, for servers that cannot enforce it."""
    first = turns[0]
    text = json.dumps(schema, ensure_ascii=False)
    asked = f"{first.text}\n\nReturn one JSON object and nothing else. It must satisfy this JSON schema: {text}"
    return [replace(first, text=asked), *turns[1:]]


class ModelOptions(TypedDict, total=False):
    """What a language model can be told; None is its own default."""

    adapter: Path | None
    device: str | None
    dtype: str | None
    revision: str | None
    base_url: str | None
    max_tokens: int | None
    timeout: float | None


def served_by_own(name: str | None) -> bool:
    """Return whether `name` is a model on a server of one's own, which may be an adapter that the server has loaded."""
    return (name or "").partition(":")[0] in ENGINES


def make_model(name: str | None, **given: Unpack[ModelOptions]) -> TextModel:
    """Return the model behind `name`; nothing is loaded or called yet.

    Raises:
        UsageError: an option that this kind of model does not have. KathaError: it cannot be used.
    """
    provider, colon, rest = (name or "local").partition(":")
    if provider not in (*_SERVED, *_HERE):
        provider, rest = "local", name or ""
    elif not colon:
        rest = ""
    options: dict[str, Any] = {option: value for option, value in given.items() if value is not None}
    refused = next((option for option in _LACKS.get(provider, _LOCAL_ONLY) if option in options), None)
    if refused is not None:
        raise UsageError(f"A model of {provider!r} has no option {refused!r}.", hint="Leave it out.")
    if provider in _SERVED:
        return ServedModel(provider, rest or None, **options)
    usual, kind = _HERE[provider]
    log = current_calls()
    if log is not None and log.everything:
        return RecordedModel(rest or usual, log, options, lambda: kind(rest or None, **options))
    return kind(rest or None, **options)
