"""Doubles that implement the real interfaces and fail loudly when their script is used up."""

from __future__ import annotations

import hashlib
import io
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from katha.errors import PlanError, RenderError
from katha.protocols import BoardContext, Capabilities, FrameRequest, PlanRequest
from katha.schema import Plan, StoryRecord


def picture(key: str, size: tuple[int, int]) -> bytes:
    """A PNG of 4x3 blocks of colour that depend on `key` alone."""
    from PIL import Image

    blocks = Image.frombytes("RGB", (4, 3), hashlib.shake_128(key.encode("utf-8")).digest(36))
    out = io.BytesIO()
    blocks.resize(size, Image.Resampling.NEAREST).save(out, "PNG")
    return out.getvalue()


class ScriptedRenderer:
    """Draws each frame with the next entry of `script`: PNG bytes, a text (a picture that depends on it), or an error
    to raise. `asked` keeps the requests, `contexts` the boards around inserted frames."""

    def __init__(
        self,
        script: Iterable[bytes | str | BaseException],
        *,
        capabilities: Capabilities | None = None,
        name: str = "scripted",
    ) -> None:
        self.capabilities = capabilities or Capabilities(default_size=(96, 64))
        self._queue, self._name = deque(script), name
        self.asked: list[FrameRequest] = []
        self.contexts: list[BoardContext] = []

    def spec(self) -> Mapping[str, Any]:
        """The name as given."""
        return {"name": self._name}

    def remaining(self) -> int:
        """How many entries are left."""
        return len(self._queue)

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield the next entry for each request.

        Raises:
            RenderError: the script is used up.
        """
        for request in requests:
            yield self._next(request)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """The next entry.

        Raises:
            RenderError: the script is used up.
        """
        self.contexts.append(context)
        return self._next(request)

    def _next(self, request: FrameRequest) -> bytes:
        self.asked.append(request)
        if not self._queue:
            raise RenderError(f"The scripted renderer has no frame left for {request.prompt!r}.")
        entry = self._queue.popleft()
        if isinstance(entry, BaseException):
            raise entry
        return picture(entry, (request.width, request.height)) if isinstance(entry, str) else entry


class ScriptedPlanner:
    """Gives the next plan of `script`, or raises the next error. `asked` keeps what was asked."""

    def __init__(self, script: Iterable[Plan | BaseException], *, name: str = "scripted") -> None:
        self._queue, self._name = deque(script), name
        self.asked: list[tuple[StoryRecord, PlanRequest]] = []

    def spec(self) -> Mapping[str, Any]:
        """The name as given."""
        return {"name": self._name}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """The next plan.

        Raises:
            PlanError: the script is used up.
        """
        self.asked.append((story, request))
        if not self._queue:
            raise PlanError(f"The scripted planner has no plan left for {story.story_id!r}.")
        entry = self._queue.popleft()
        if isinstance(entry, BaseException):
            raise entry
        return entry
