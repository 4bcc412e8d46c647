"""Batches of a vendor: requests in a file, an id to come back with, results by each request's own key."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from katha.protocols import FrameRequest, Renderer

if TYPE_CHECKING:
    from anthropic import Anthropic
    from openai import OpenAI

T = TypeVar("T")
LOOKED_AT = 200
"""How many of an account's latest batches are looked through for a lost one."""
_CLOCKS = timedelta(minutes=5)
"""How far a vendor's clock may be off."""
_ENDED = frozenset(("completed", "failed", "expired", "cancelled"))


@dataclass(frozen=True)
class BatchResult:
    """One request's outcome: the reply's body as JSON, or (None) why there is none."""

    key: str
    body: Mapping[str, Any] | None
    error: str | None = None


@dataclass(frozen=True)
class Sent:
    """What is known of a batch that is about to be made: how many requests, since when, and the uploaded file's id."""

    count: int
    since: datetime
    file_id: str | None = None


class BatchApi(Protocol):
    """One vendor's batches, over its own SDK. The SDK's errors pass through."""

    def upload(self, requests: Path) -> str | None:
        """Bring the requests to the vendor, where that is a step of its own: its id. Costs nothing."""
        ...

    def find(self, sent: Sent, known: frozenset[str]) -> str | None:
        """Return the id of a batch that was made although the answer never came; `known` belong elsewhere."""
        ...

    def create(self, requests: Path, sent: Sent) -> str:
        """Make the batch: from here on it costs money. Its id."""
        ...

    def ended(self, batch_id: str) -> bool:
        """Return whether all that will come of it is there."""
        ...

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        """Yield what came of it, request by request, in any order."""
        ...


class Batcher(Protocol):
    """Who sends requests in batches: a vendor's interface with its terms, and how to wait for it."""

    @property
    def batches(self) -> BatchApi:
        """The vendor's batches."""
        ...

    @property
    def batch_terms(self) -> Mapping[str, float]:
        """Of one batch: most `requests` and `bytes`, its `price` (a share of the usual), `poll` in seconds."""
        ...

    def patiently(self, call: Callable[[], T]) -> T:
        """Return what a call of `batches` gives, tried again while the server is busy or broken."""
        ...

    def rest(self, seconds: float) -> None:
        """Wait before the next look at a batch."""
        ...


class DrawsInBatches(Renderer):
    """A renderer whose vendor also draws whole files of requests, within a day and at a lower price."""

    @abstractmethod
    def batchers(self) -> Mapping[str, Batcher]:
        """Return the vendor's batches by the kind of request that they take."""

    @abstractmethod
    def batch_request(self, request: FrameRequest) -> tuple[str, Mapping[str, Any]]:
        """Return the kind and the body of one call: the same picture as a call of its own would ask for."""

    @abstractmethod
    def batch_frame(self, result: BatchResult, request: FrameRequest) -> bytes:
        """Return the PNG that a batch brought; its receipt has the batch's price.

        Raises:
            RenderError: there is none in it.
        """


class OpenAIBatches:
    """Batches of one client of OpenAI's protocol for one endpoint. A lost one is known by the file it was made from."""

    def __init__(self, client: OpenAI, endpoint: str) -> None:
        self._client, self._endpoint = client, endpoint

    def upload(self, requests: Path) -> str | None:
        """Upload the file of requests."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "requests.jsonl"
            with requests.open("rb") as source, path.open("wb") as target:
                for line in source:
                    row = json.loads(line)
                    entry = {"custom_id": row["key"], "method": "POST", "url": self._endpoint, "body": row["request"]}
                    target.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
            return self._client.files.create(file=path, purpose="batch").id

    def find(self, sent: Sent, known: frozenset[str]) -> str | None:
        """Return the batch that was made from the uploaded file."""
        listed = islice(self._client.batches.list(limit=100), LOOKED_AT)
        return next((batch.id for batch in listed if batch.input_file_id == sent.file_id), None)

    def create(self, requests: Path, sent: Sent) -> str:
        """Make the batch from the uploaded file."""
        file_id = sent.file_id or self.upload(requests) or ""
        endpoint: Any = self._endpoint
        return self._client.batches.create(input_file_id=file_id, endpoint=endpoint, completion_window="24h").id

    def ended(self, batch_id: str) -> bool:
        """Return whether it has completed, failed, expired or been cancelled; the last three may have part of the
        results."""
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


class AnthropicBatches:
    """Batches of one client. A batch has no name of ours, so a lost one is known by its time and its size."""

    def __init__(self, client: Anthropic, headers: Mapping[str, str]) -> None:
        self._client, self._headers = client, dict(headers)

    def upload(self, requests: Path) -> str | None:
        """Do nothing: requests travel with the batch."""
        return None

    def find(self, sent: Sent, known: frozenset[str]) -> str | None:
        """Return the oldest batch of this size made since then that belongs to nothing else.

        If it should be another's after all, its results have other keys and nothing of it is used.
        """
        found: str | None = None
        for batch in islice(self._client.messages.batches.list(limit=100), LOOKED_AT):
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
        """Return whether processing has ended (it does within 24 hours)."""
        return self._client.messages.batches.retrieve(batch_id).processing_status == "ended"

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        """Yield succeeded requests with their message; errored, canceled and expired ones with the reason."""
        for row in self._client.messages.batches.results(batch_id):
            outcome: Any = row.result
            if outcome.type == "succeeded":
                yield BatchResult(row.custom_id, outcome.message.model_dump(mode="json"))
            else:
                words = f"{outcome.type}: {outcome.error.error.message}" if outcome.type == "errored" else outcome.type
                yield BatchResult(row.custom_id, None, words)
