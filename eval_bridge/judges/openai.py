"""`openai:MODEL`: any server that speaks the Chat Completions protocol, and its batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from katha.eval_bridge.judges.api import ApiJudge
from katha.eval_bridge.judging.abilities import BatchResult, Sent
from katha.models.client import OpenAIClient, Received, Request
from katha.protocols import Evidence, PlainPrompt

if TYPE_CHECKING:
    from openai import OpenAI

_ENDPOINT = "/v1/chat/completions"
_ENDED = frozenset(("completed", "failed", "expired", "cancelled"))
_LOOKED_AT = 200
_MOST_WORDS = 20
"""Of how many first tokens the protocol gives the probability at most."""


class OpenAIBatches:
    """Batches of one client. A lost one is known by the file that it was made from."""

    def __init__(self, client: OpenAI) -> None:
        self._client = client

    def upload(self, requests: Path) -> str | None:
        """Upload the file of requests."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "requests.jsonl"
            with requests.open("rb") as source, path.open("wb") as target:
                for line in source:
                    row = json.loads(line)
                    entry = {"custom_id": row["key"], "method": "POST", "url": _ENDPOINT, "body": row["request"]}
                    target.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
            return self._client.files.create(file=path, purpose="batch").id

    def find(self, sent: Sent, known: frozenset[str]) -> str | None:
        """Return the batch that was made from the uploaded file."""
        listed = islice(self._client.batches.list(limit=100), _LOOKED_AT)
        return next((batch.id for batch in listed if batch.input_file_id == sent.file_id), None)

    def create(self, requests: Path, sent: Sent) -> str:
        """Make the batch from the uploaded file."""
        file_id = sent.file_id or self.upload(requests) or ""
        endpoint: Any = _ENDPOINT
        return self._client.batches.create(input_file_id=file_id, endpoint=endpoint, completion_window="24h").id

    def ended(self, batch_id: str) -> bool:
        """Whether it has completed, failed, expired or been cancelled; the last three may have part of the results."""
        return self._client.batches.retrieve(batch_id).status in _ENDED

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        """Yield the lines of the output file and of the error file."""
        batch = self._client.batches.retrieve(batch_id)
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id:
                with self._client.files.with_streaming_response.content(file_id) as response:
                    yield from (_result(json.loads(line)) for line in response.iter_lines() if line.strip())


def _result(row: Mapping[str, Any]) -> BatchResult:
    response, error = row.get("response") or {}, row.get("error") or {}
    if response.get("status_code") == 200:
        return BatchResult(row["custom_id"], response["body"])
    inner = (response.get("body") or {}).get("error") or {}
    words = error.get("message") or inner.get("message") or "no reason given"
    code = error.get("code") or inner.get("code") or response.get("status_code") or "failed"
    return BatchResult(row["custom_id"], None, f"{code}: {words}"[:500])


class OpenAIJudge(ApiJudge):
    """A model behind the OpenAI protocol as a judge; the key is read from OPENAI_API_KEY (local servers need none)."""

    CLIENT = OpenAIClient
    PROVIDER = "openai"
    _client: OpenAIClient

    def _picture(self, png: str) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}

    def _plain_request(self, evidence: Evidence, prompt: PlainPrompt) -> Request:
        request = super()._plain_request(evidence, prompt)
        return request | {"logprobs": True, "top_logprobs": _MOST_WORDS} if prompt.words else request

    def _received(self, body: Mapping[str, Any]) -> Received:
        from openai.types.chat import ChatCompletion

        return self._client.read(ChatCompletion.model_validate(body))

    @property
    def batches(self) -> OpenAIBatches:
        """The batch files of this server."""
        return OpenAIBatches(self._client.sdk)


class GeminiJudge(OpenAIJudge):
    """Gemini as a judge, over its OpenAI-compatible endpoint; the key is read from GEMINI_API_KEY."""

    PROVIDER = "gemini"
