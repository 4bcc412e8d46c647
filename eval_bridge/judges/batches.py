"""What a vendor's batches are: requests in a file, an id to come back with, results by each request's own key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from katha.models.client import Received


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
        """The id of a batch that was made although the answer never came; `known` are ids that belong elsewhere."""
        ...

    def create(self, requests: Path, sent: Sent) -> str:
        """Make the batch: from here on it costs money. Its id."""
        ...

    def ended(self, batch_id: str) -> bool:
        """Whether all that will come of it is there."""
        ...

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        """What came of it, request by request, in any order."""
        ...

    def read(self, body: Mapping[str, Any]) -> Received:
        """A result's body as a reply."""
        ...


Read = Callable[[Any], Received]
"""A judge's reading of its SDK's reply object."""
