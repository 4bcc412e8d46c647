"""A language model by its name: `local:PATH`, `anthropic:MODEL`, `openai:MODEL`; without a provider, a local one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from katha.errors import UsageError
from katha.models.api import AnthropicModel, OpenAIModel
from katha.models.base import TextModel
from katha.models.local import LocalModel

_PROVIDERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"anthropic": AnthropicModel, "openai": OpenAIModel, "local": LocalModel}
)
_LOCAL_ONLY = ("adapter", "device", "dtype", "revision")
_SERVED_ONLY = ("base_url",)


def make_model(
    name: str | None,
    *,
    adapter: Path | None = None,
    device: str | None = None,
    dtype: str | None = None,
    revision: str | None = None,
    base_url: str | None = None,
    max_tokens: int | None = None,
) -> TextModel:
    """The model behind `name`; nothing is loaded or called yet.

    Raises:
        UsageError: an option that this kind of model does not have. KathaError: it cannot be used.
    """
    provider, colon, rest = (name or "local").partition(":")
    if provider not in _PROVIDERS:
        provider, rest = "local", name or ""
    elif not colon:
        rest = ""
    given = {
        "adapter": adapter,
        "device": device,
        "dtype": dtype,
        "revision": revision,
        "base_url": base_url,
        "max_tokens": max_tokens,
    }
    wrong = _SERVED_ONLY if provider == "local" else _LOCAL_ONLY
    refused = next((option for option in wrong if given[option] is not None), None)
    if refused is not None:
        raise UsageError(f"A model of {provider!r} has no option {refused!r}.", hint="Leave it out.")
    options = {option: value for option, value in given.items() if value is not None}
    made: TextModel = _PROVIDERS[provider](rest or None, **options)
    return made
