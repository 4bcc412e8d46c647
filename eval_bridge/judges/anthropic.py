"""`anthropic:MODEL`: Claude over the Messages API, with a cache breakpoint after the evidence."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from katha.eval_bridge.judges.anthropic_batches import AnthropicBatches
from katha.eval_bridge.judges.api import ApiJudge
from katha.eval_bridge.judges.structured import question_text
from katha.models.vendors import Received
from katha.protocols import Evidence, JudgePrompt
from katha.schema import AnswerStatus

if TYPE_CHECKING:
    from anthropic import Anthropic

__all__ = ["AnthropicJudge"]

_STOPS: dict[str, AnswerStatus] = {
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}


class AnthropicJudge(ApiJudge):
    """Claude as a judge; the key is read from ANTHROPIC_API_KEY."""

    PROVIDER = "anthropic"

    @cached_property
    def _client(self) -> Anthropic:
        from anthropic import Anthropic

        return Anthropic(api_key=self._key, base_url=self._url, max_retries=0, timeout=self._timeout)

    def _content(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        for number, png in enumerate(evidence.images, 1):
            source = {"type": "base64", "media_type": "image/png", "data": b64encode(png).decode("ascii")}
            blocks += [{"type": "text", "text": f"Picture {number}"}, {"type": "image", "source": source}]
        if evidence.text is not None:
            blocks.append({"type": "text", "text": evidence.text})
        if blocks:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
        question = question_text(prompt, plain=plain)
        return [*blocks, {"type": "text", "text": prompt.instruction}, {"type": "text", "text": question}]

    def _request(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> dict[str, Any]:
        from anthropic import transform_schema

        messages = [{"role": "user", "content": self._content(evidence, prompt, plain=plain)}]
        request = {"model": self._model, "max_tokens": self._card["max_tokens"], "messages": messages}
        if not plain:
            schema = transform_schema(dict(prompt.schema))
            request["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        if self._card.get("temperature") is not None:
            request["temperature"] = self._card["temperature"]
        return request

    @property
    def _headers(self) -> dict[str, str]:
        return {"anthropic-version": self._card["api_version"]} if self._card.get("api_version") else {}

    def _send(self, request: Mapping[str, Any]) -> Any:
        known = {name: value for name, value in request.items() if name != "temperature"}
        body = {"temperature": request["temperature"]} if "temperature" in request else None
        return self._client.messages.create(**known, extra_headers=self._headers, extra_body=body)

    def _read(self, message: Any) -> Received:
        usage = message.usage
        tokens = {
            "input": usage.input_tokens,
            "cache_write": usage.cache_creation_input_tokens or 0,
            "cached": usage.cache_read_input_tokens or 0,
            "output": usage.output_tokens,
        }
        text = "".join(block.text for block in message.content if block.type == "text")
        return Received(text, message.model, _STOPS.get(message.stop_reason), tokens)

    @property
    def batches(self) -> AnthropicBatches:
        """Message Batches of this model."""
        return AnthropicBatches(self._client, self._headers, self._read)
