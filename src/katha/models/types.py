"""What a language model is to katha: instructions and a JSON schema in, one typed completion out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from katha.schema import AnswerStatus

__all__ = ["Completion", "TextModel", "Turn"]


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Completion:
    """What a model wrote. Only `status == "ok"` is a whole reply; `error` says what happened otherwise.

    usage: model, token counts, schema mode, and cost where a price is known.
    """

    status: AnswerStatus
    text: str = ""
    error: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class TextModel(Protocol):
    """A language model that is held to a schema."""

    def spec(self) -> Mapping[str, Any]:
        """Model, revision, decoding and everything else that can change a reply; never a key."""
        ...

    def complete(self, turns: Sequence[Turn], schema: Mapping[str, Any]) -> Completion:
        """The reply to `turns`, one JSON object of `schema` where the model can be held to it.

        Raises:
            UsageError: the model or the key is wrong. ModelError: it cannot be used (memory, credit).
        """
        ...
