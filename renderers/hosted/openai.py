"""`openai:MODEL`: GPT Image models through the openai SDK, and servers that speak its protocol."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from katha.protocols import Capabilities
from katha.renderers.hosted.service import Drawn, Fault, HostedRenderer

if TYPE_CHECKING:
    from openai import OpenAI


_REFUSALS = frozenset(("moderation_blocked", "content_policy_violation"))
_SHAPES = {"1024x1024": (1024, 1024), "1536x1024": (1536, 1024), "1024x1536": (1024, 1536)}


class OpenAIRenderer(HostedRenderer):
    """GPT Image models; the key is read from OPENAI_API_KEY. A bridge is drawn from its neighbours' pictures."""

    SERVICE = "openai"
    SHAPES = _SHAPES
    capabilities = Capabilities(
        insertion="reference", sizes=tuple(_SHAPES.values()), default_size=(1536, 1024), deterministic=False
    )

    @cached_property
    def _client(self) -> OpenAI:
        from openai import OpenAI

        return OpenAI(api_key=self._key, base_url=self._url, max_retries=self._retries, timeout=self._timeout)

    def _send(self, prompt: str, shape: str, references: Sequence[bytes]) -> Drawn:
        from openai import APIStatusError

        options: dict[str, Any] = {"model": self._model, "prompt": prompt, "n": 1, "size": shape}
        if self._quality is not None:
            options["quality"] = self._quality
        try:
            if references:
                named = [(f"frame{place}.png", png, "image/png") for place, png in enumerate(references, 1)]
                response: Any = self._client.images.edit(image=named, **options)
            else:
                response = self._client.images.generate(**options)
        except APIStatusError as error:
            raise Fault(str(error), error.status_code, refused=error.code in _REFUSALS) from None
        picture = response.data[0].b64_json if response.data else None
        if not picture:
            raise Fault("the reply holds no picture")
        return Drawn(b64decode(picture), getattr(response, "model", None) or self._model, _tokens(response.usage))


def _tokens(usage: Any) -> dict[str, int]:
    if usage is None:
        return {}
    details = usage.input_tokens_details
    return {"text": details.text_tokens, "image": details.image_tokens, "output": usage.output_tokens}
