"""`anthropic:MODEL`: Claude over the Messages API, with a cache breakpoint after the evidence, and Message Batches."""

from __future__ import annotations

from typing import Any

from katha.eval_bridge.judges.api import ApiJudge
from katha.models.client import AnthropicClient, Request
from katha.protocols import Evidence, PlainPrompt


class AnthropicJudge(ApiJudge):
    """Claude as a judge; the key is read from ANTHROPIC_API_KEY."""

    CLIENT = AnthropicClient
    PROVIDER = "anthropic"

    def _evidence(self, evidence: Evidence) -> list[dict[str, Any]]:
        parts = super()._evidence(evidence)
        if parts:
            parts[-1]["cache_control"] = {"type": "ephemeral"}
        return parts

    def _plain_request(self, evidence: Evidence, prompt: PlainPrompt) -> Request:
        """Return the body of a call; this API has the system's words beside the messages, and no probabilities."""
        request = super()._plain_request(evidence, prompt)
        messages = [turn for turn in request["messages"] if turn["role"] != "system"]
        return {**request, "messages": messages, **({"system": prompt.system} if prompt.system else {})}
