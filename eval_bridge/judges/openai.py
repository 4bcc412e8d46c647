"""`openai:MODEL`: any server that speaks the Chat Completions protocol, by `base_url` or OPENAI_BASE_URL."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from katha.eval_bridge.judges.api import ApiJudge
from katha.eval_bridge.judges.openai_batches import OpenAIBatches
from katha.eval_bridge.judges.structured import question_text
from katha.models.vendors import Received
from katha.protocols import Evidence, JudgePrompt
from katha.schema import AnswerStatus

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["GeminiJudge", "OpenAIJudge"]

_STOPS: dict[str, AnswerStatus] = {"length": "truncated", "content_filter": "refused"}


class OpenAIJudge(ApiJudge):
    """A model behind the OpenAI protocol as a judge; the key is read from OPENAI_API_KEY (local servers need none)."""

    PROVIDER = "openai"

    @cached_property
    def _client(self) -> OpenAI:
        from openai import OpenAI

        return OpenAI(api_key=self._key, base_url=self._url, max_retries=0, timeout=self._timeout)

    def _content(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for number, png in enumerate(evidence.images, 1):
            url = "data:image/png;base64," + b64encode(png).decode("ascii")
            parts += [{"type": "text", "text": f"Picture {number}"}, {"type": "image_url", "image_url": {"url": url}}]
        texts = [evidence.text, prompt.instruction, question_text(prompt, plain=plain)]
        return parts + [{"type": "text", "text": text} for text in texts if text is not None]

    def _request(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> dict[str, Any]:
        messages = [{"role": "user", "content": self._content(evidence, prompt, plain=plain)}]
        request = {"model": self._model, "messages": messages, self._card["tokens_field"]: self._card["max_tokens"]}
        if not plain:
            schema = {"name": "reply", "strict": True, "schema": dict(prompt.schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        for name in ("temperature", "reasoning_effort"):
            if self._card.get(name) is not None:
                request[name] = self._card[name]
        return request

    def _send(self, request: Mapping[str, Any]) -> Any:
        return self._client.chat.completions.create(**request)

    def _read(self, completion: Any) -> Received:
        choice = completion.choices[0]
        stop = "refused" if choice.message.refusal else _STOPS.get(choice.finish_reason)
        text = choice.message.refusal or choice.message.content or ""
        return Received(text, completion.model, stop, _tokens(completion.usage))

    @property
    def batches(self) -> OpenAIBatches:
        """The batch files of this server."""
        return OpenAIBatches(self._client, self._read)


class GeminiJudge(OpenAIJudge):
    """Gemini as a judge, over its OpenAI-compatible endpoint; the key is read from GEMINI_API_KEY."""

    PROVIDER = "gemini"


def _tokens(usage: Any) -> dict[str, int]:
    if usage is None:
        return {}
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details is not None else 0
    return {"input": usage.prompt_tokens - cached, "cached": cached, "output": usage.completion_tokens}
