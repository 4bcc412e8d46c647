"""`seedream:MODEL`: Seedream at BytePlus ModelArk, whose pictures are asked for in OpenAI's protocol, by its SDK."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from katha.models.client import Fault, OpenAIClient
from katha.protocols import Capabilities
from katha.renderers.hosted.service import Asked, HostedRenderer, ServicePicture


class SeedreamRenderer(HostedRenderer):
    """Seedream models; the key is read from ARK_API_KEY. Scenes are drawn from their characters'
    pictures, a bridge from its neighbours' too."""

    SERVICE = "seedream"
    CLIENT = OpenAIClient
    SHAPES = {"1536x1024": (1536, 1024), "1024x1536": (1024, 1536), "2048x2048": (2048, 2048)}
    capabilities = Capabilities(
        identity="bank", insertion="reference", default_size=(1536, 1024), deterministic=False, guide=True
    )

    def _send(self, asked: Asked) -> Any:
        more: dict[str, Any] = dict(self._vendor.card["asks"])
        if asked.references:
            more["image"] = [f"data:image/png;base64,{b64encode(png).decode('ascii')}" for png in asked.references]
        options: dict[str, Any] = {"model": self._vendor.model, "prompt": asked.prompt, "size": asked.shape}
        return self._client.sdk.images.generate(**options, response_format="b64_json", extra_body=more)

    def _read(self, answer: Any) -> ServicePicture:
        picture = answer.data[0].b64_json if answer.data else None
        if not picture:
            raise Fault("broken", "the reply holds no picture")
        tokens = {"output": answer.usage.output_tokens} if answer.usage is not None else {}
        return ServicePicture(b64decode(picture), getattr(answer, "model", None) or self._vendor.model, tokens)
