"""`openai:MODEL`: any server that speaks the Chat Completions protocol, and its batches."""

from __future__ import annotations

from katha.eval_bridge.judges.api import ApiJudge
from katha.models.client import OpenAIClient, Request
from katha.protocols import Evidence, PlainPrompt

_MOST_WORDS = 20
"""Of how many first tokens the protocol gives the probability at most."""


class OpenAIJudge(ApiJudge):
    """A model behind the OpenAI protocol as a judge; the key is read from OPENAI_API_KEY (local servers need none)."""

    CLIENT = OpenAIClient
    PROVIDER = "openai"

    def _plain_request(self, evidence: Evidence, prompt: PlainPrompt) -> Request:
        request = super()._plain_request(evidence, prompt)
        return request | {"logprobs": True, "top_logprobs": _MOST_WORDS} if prompt.words else request


class GeminiJudge(OpenAIJudge):
    """Gemini as a judge, over its OpenAI-compatible endpoint; the key is read from GEMINI_API_KEY."""

    PROVIDER = "gemini"
