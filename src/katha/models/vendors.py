"""What is known of a vendor of models, as data: address, key, a model's settings; and what its errors mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import yaml

from katha.errors import ModelError, UsageError
from katha.models.failures import Fault, retry_after
from katha.schema import AnswerStatus

__all__ = ["Received", "Vendor", "find_vendor"]

_LOCAL = frozenset(("127.0.0.1", "localhost", "::1"))
_BUSY = frozenset((429, 529))
_UNAUTHORISED = frozenset((401, 403))
_SCHEMA_WORDS = ("response_format", "output_config", "json_schema", "schema", "structured")


@dataclass(frozen=True)
class Received:
    """A server's reply: its text, `stop` when it is not an answer, the model that gave it, and token counts."""

    text: str
    model: str
    stop: AnswerStatus | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Vendor:
    """One model of one vendor. card: its section of `configs/judges.yaml`. The key is never shown."""

    provider: str
    model: str
    url: str
    variable: str
    card: Mapping[str, Any]
    key: str = field(repr=False)

    @property
    def endpoint(self) -> str:
        """The address without scheme, names and queries."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"

    def fault(self, error: Exception) -> Fault:
        """What an SDK's error means, with the key blotted out.

        Raises:
            UsageError: the key or the model is wrong. ModelError: the account has no credit left.
        """
        status = getattr(error, "status_code", None)
        message = f"{type(error).__name__}: {error}".replace(self.key, "[key]")[:500]
        if not isinstance(status, int):
            return Fault("broken", message)
        if status in _UNAUTHORISED:
            raise UsageError(
                f"{self.provider} refused the key for {self.model!r} (HTTP {status}).", hint=f"Check {self.variable}."
            ) from None
        if status == 404:
            raise UsageError(f"{self.provider} knows no model {self.model!r} at {self.endpoint}.") from None
        if getattr(error, "code", None) == "insufficient_quota":
            raise ModelError(f"The {self.provider} account has no credit left.") from None
        headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", {})
        kind = "busy" if status in _BUSY else "broken" if status >= 500 or status in {408, 409} else "refused"
        return Fault(kind, f"HTTP {status}: {message}", status=status, wait=retry_after(headers.get("retry-after")))

    def rejects_schema(self, fault: Fault) -> bool:
        """Whether the server said that it cannot be held to a schema."""
        return fault.status in {400, 422} and any(word in fault.message.lower() for word in _SCHEMA_WORDS)

    def usage(self, received: Received | None, retries: int, *, plain: bool) -> dict[str, Any]:
        """Schema mode, retries, model, token counts, and the cost in US dollars (None where a price is unknown)."""
        mode = {"schema_mode": "plain" if plain else "native", "retries": retries}
        if received is None:
            return {**mode, "cost": None}
        price, tokens = self.card.get("price"), dict(received.tokens)
        cost = sum(tokens[name] * price[name] for name in tokens) / 1e6 if price and tokens else None
        return {**mode, "model": received.model, "tokens": tokens, "cost": cost}


def find_vendor(provider: str, model: str, *, base_url: str | None = None, what: str = "judge") -> Vendor:
    """The vendor's data for `model` (its longest matching prefix), with the key from the environment.

    Raises:
        UsageError: the key's variable is not set; servers on this machine need none.
    """
    data = yaml.safe_load(files("katha.configs").joinpath("judges.yaml").read_text(encoding="utf-8"))[provider]
    url = base_url or os.environ.get(data["url_variable"]) or str(data["base_url"])
    names = sorted((name for name in data["models"] if model.startswith(name)), key=len)
    card: dict[str, Any] = data["default"] | (data["models"][names[-1]] if names else {})
    variable = str(data["key"])
    key = os.environ.get(variable) or ("unused" if urlsplit(url).hostname in _LOCAL else "")
    if not key:
        raise UsageError(f"The {what} {provider}:{model} needs a key.", hint=f"Set {variable}.")
    return Vendor(provider, model, url, variable, card, key)
