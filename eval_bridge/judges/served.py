"""`vllm:MODEL` and `sglang:MODEL`: open vision-language models on a server of one's own, many questions at once."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from katha.config import cache_folder
from katha.errors import JudgeError, ModelError, UsageError
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.packets.instructions import grammar_schema
from katha.jsonio import sha256_hex, write_bytes_atomic
from katha.models.calls import remembered
from katha.models.client import Backoff, Request, is_keyless
from katha.models.served import Engine, ModelServer, reading
from katha.pictures import decode
from katha.protocols import Evidence, JudgePrompt, JudgeReply

Pictures = Literal["png", "jpeg", "file"]
# High, without chroma subsampling: a judge is to see the picture and not its compression.
_JPEG_QUALITY = 95
_KEPT = 256
"""Pictures that are kept as they are sent; those of a few dozen boards."""


class ServedJudge(OpenAIJudge):
    """A model that vLLM or SGLang serves. What the server tells of it (weights, revision, dtype) is in its `spec`."""

    ENGINE: ClassVar[Engine]
    asks_together = False
    """A server of one's own keeps the pictures, so that one question a call costs it little."""

    def __init__(
        self,
        argument: str | None = None,
        *,
        base_url: str | None = None,
        pictures: Pictures = "png",
        max_retries: int = 4,
        timeout: float = 600.0,
        structured: bool = True,
        concurrency: int = 128,
        patience: float | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """Read the server's address; nothing is called yet.

        pictures: `png` sends a picture as it is, `jpeg` at a quarter of the bytes or less (its pixels change a little),
        `file` names a file in katha's cache, which the server has to be allowed to read.

        Raises:
            UsageError: no model is named, or there is no such way to send pictures.
        """
        if pictures not in get_args(Pictures):
            raise UsageError(f"pictures is {', '.join(get_args(Pictures))}, not {pictures!r}.")
        super().__init__(
            argument,
            base_url=base_url,
            max_retries=max_retries,
            timeout=timeout,
            structured=structured,
            concurrency=concurrency,
            patience=patience,
            backoff=backoff,
        )
        self._pictures: Pictures = pictures
        # All questions of a board send the same pictures: each is encoded, or written, once.
        self._url = lru_cache(maxsize=_KEPT)({"png": _png, "jpeg": _jpeg, "file": _file}[pictures])
        self._counted: Callable[[], tuple[int, int] | None] | None = None

    @cached_property
    def _served(self) -> Mapping[str, str | int | None] | None:
        vendor = self._vendor
        server = ModelServer(self.ENGINE, vendor)
        asked = {"about": "server"}
        try:
            return remembered(self._client.calls, vendor.provider, vendor.model, asked, lambda: server.model().told())
        except ModelError as error:
            if is_keyless():
                return None  # a dry run asks nothing and needs no server
            raise JudgeError(error.message, hint=error.hint) from None

    def spec(self) -> Mapping[str, Any]:
        """Return model, decoding, how pictures are sent, and what the server tells of the model.

        The server's address is not part of it: a model is the same on every machine that serves it so.

        Raises:
            JudgeError: the server does not answer. UsageError: it does not serve the model.
        """
        told = {name: value for name, value in super().spec().items() if name != "endpoint"}
        sent = "jpeg" if self._pictures == "jpeg" else "png"  # a file holds the very bytes
        return {**told, "pictures": sent, "served": self._served}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order. May be called from `concurrency` threads and more.

        Raises:
            UsageError: the model is not served, or the key is wrong. JudgeError: the server cannot be used.
        """
        if not (self._client.calls is not None and self._client.calls.closed):
            with self._lock:
                self._counted = self._counted or reading(self.ENGINE, self._vendor)
        yield from super().ask(evidence, prompts)

    def prefix_hits(self) -> tuple[int, int] | None:
        """Return tokens that the server's prefix cache had and tokens looked up, since this judge's first question."""
        return self._counted() if self._counted is not None else None

    @property
    def batch_terms(self) -> Mapping[str, float]:
        """Nothing: such a server has no batches, and needs none."""
        return {}

    def _request(self, evidence: Evidence, prompt: JudgePrompt, plain: bool) -> Request:
        # Both servers compile the schema with xgrammar, whose patterns could otherwise end a string early.
        return super()._request(evidence, replace(prompt, schema=grammar_schema(prompt.schema)), plain)

    def _shown(self, png: bytes) -> str:
        return self._url(png)

    def _picture(self, shown: str) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": shown}}


def _png(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode('ascii')}"


def _jpeg(png: bytes) -> str:
    buffer = io.BytesIO()
    decode(png).convert("RGB").save(buffer, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    return f"data:image/jpeg;base64,{b64encode(buffer.getvalue()).decode('ascii')}"


def _file(png: bytes) -> str:
    path = served_folder() / f"{sha256_hex(png)}.png"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomic(path, png)
    return path.as_uri()


def served_folder() -> Path:
    """Return the folder of pictures that a server on this machine is allowed to read (`--allowed-local-media-path`)."""
    return (cache_folder() / "served").resolve()


class VllmJudge(ServedJudge):
    """A model that `vllm serve` serves, at --base-url, VLLM_BASE_URL or port 8000 of this machine."""

    PROVIDER = "vllm"
    ENGINE = "vllm"


class SglangJudge(ServedJudge):
    """A model that SGLang serves, at --base-url, SGLANG_BASE_URL or port 30000 of this machine."""

    PROVIDER = "sglang"
    ENGINE = "sglang"
