"""The two views of the index that a run uses: answers by their key, and frames by what was asked of the renderer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from katha.jsonio import canonical, loads
from katha.schema import Answer
from katha.store.blobs import Blobs
from katha.store.index import Index

__all__ = ["AnswerCache", "FrameIndex"]


class AnswerCache:
    """Answers by the hash of everything that can change them. A typed failure is never kept as an answer."""

    def __init__(self, index: Index, owner: str = "") -> None:
        self._index = index
        self._owner = owner

    def get(self, key: str) -> Answer | None:
        """The answer of that key, or None when it has to be asked (again)."""
        data = self._index.get("answer", key)
        if data is None:
            return None
        try:
            return Answer.model_validate_json(data)
        except ValidationError:
            self._index.drop("answer", key)  # written by an older katha: ask again
            return None

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer as soon as it is there; anything but `ok` is dropped, so that it is asked again next time."""
        if answer.status == "ok":
            self._index.put("answer", key, canonical(answer.model_dump(mode="json")), self._owner)

    def asked(self) -> int:
        """How many kept answers this run has paid for, over all its processes."""
        return self._index.count("answer", self._owner) if self._owner else 0


class FrameIndex:
    """Which image a request to a renderer gave. A hit whose bytes are gone or corrupted is no hit."""

    def __init__(self, index: Index, blobs: Blobs, owner: str = "") -> None:
        self._index = index
        self._blobs = blobs
        self._owner = owner

    def get(self, key: str) -> str | None:
        """The image's sha256, its bytes verified; None when the frame has to be drawn (again)."""
        found = self._index.get("frame", key)
        if found is None:
            return None
        sha256 = found.decode("ascii")
        if self._blobs.find(sha256) is None:
            self._index.drop("frame", key)
            return None
        return sha256

    def put(self, key: str, sha256: str) -> str:
        """Remember the image of a request and return the one that counts: the first writer's."""
        self._index.put("frame", key, sha256.encode("ascii"), self._owner)
        return self.get(key) or sha256

    def put_receipt(self, sha256: str, receipt: Mapping[str, Any]) -> None:
        """Remember how the image came about: which service and version drew it, when, and for how much."""
        self._index.put("receipt", sha256, canonical(dict(receipt)), self._owner)

    def receipt(self, sha256: str) -> dict[str, Any] | None:
        """How the image came about, if its renderer said."""
        data = self._index.get("receipt", sha256)
        value = loads(data.decode("utf-8")) if data is not None else None
        return value if isinstance(value, dict) else None

    def rendered(self) -> int:
        """How many remembered frames this run has paid for, over all its processes."""
        return self._index.count("frame", self._owner) if self._owner else 0
