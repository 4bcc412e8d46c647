"""Message Batches of Anthropic: made in one step, results streamed when all of them have ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.eval_bridge.judges.batches import BatchResult, Read, Sent
from katha.models.vendors import Received

if TYPE_CHECKING:
    from anthropic import Anthropic

__all__ = ["AnthropicBatches"]

_LOOKED_AT = 200
_CLOCKS = timedelta(minutes=5)
"""How far the vendor's clock may be off."""


class AnthropicBatches:
    """Batches of one client. A batch has no name of ours, so a lost one is known by its time and its size."""

    def __init__(self, client: Anthropic, headers: Mapping[str, str], read: Read) -> None:
        self._client, self._headers, self._read = client, dict(headers), read

    def upload(self, requests: Path) -> str | None:
        """Nothing: requests travel with the batch."""
        return None

    def find(self, sent: Sent, known: frozenset[str]) -> str | None:
        """The oldest batch of this size made since then that belongs to nothing else.

        If it should be another's after all, its results have other keys and nothing of it is used.
        """
        found: str | None = None
        for batch in islice(self._client.messages.batches.list(limit=100), _LOOKED_AT):
            counts = batch.request_counts
            size = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
            if batch.created_at < sent.since - _CLOCKS:
                break
            if size == sent.count and batch.id not in known:
                found = batch.id
        return found

    def create(self, requests: Path, sent: Sent) -> str:
        """Make the batch."""
        rows: Any = [json.loads(line) for line in requests.read_bytes().splitlines()]
        entries: Any = [{"custom_id": row["key"], "params": row["request"]} for row in rows]
        return self._client.messages.batches.create(requests=entries, extra_headers=self._headers).id

    def ended(self, batch_id: str) -> bool:
        """Whether processing has ended (it does within 24 hours)."""
        return self._client.messages.batches.retrieve(batch_id).processing_status == "ended"

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        """Succeeded requests with their message; errored, canceled and expired ones with the reason."""
        for row in self._client.messages.batches.results(batch_id):
            outcome: Any = row.result
            if outcome.type == "succeeded":
                yield BatchResult(row.custom_id, outcome.message.model_dump(mode="json"))
            else:
                words = f"{outcome.type}: {outcome.error.error.message}" if outcome.type == "errored" else outcome.type
                yield BatchResult(row.custom_id, None, words)

    def read(self, body: Mapping[str, Any]) -> Received:
        """The message in a result."""
        from anthropic.types import Message

        return self._read(Message.model_validate(body))
