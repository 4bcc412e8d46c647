"""`openai:MODEL`: GPT Image models through the openai SDK, and servers that speak its protocol."""

from __future__ import annotations

import io
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from katha.models.batches import BatchApi, OpenAIBatches
from katha.models.client import Fault, OpenAIClient
from katha.pictures import as_png
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.hosted.service import Asked, BatchedRenderer, ServicePicture

_ENDPOINTS = {"from words": "/v1/images/generations", "from pictures": "/v1/images/edits"}
"""What draws in batches; a batch has one of them."""


class OpenAIRenderer(BatchedRenderer):
    """GPT Image models; the key is read from OPENAI_API_KEY. Scenes are drawn from their
    characters' pictures, a bridge from its neighbours' too, and a part of a frame inside a mask."""

    SERVICE = "openai"
    CLIENT = OpenAIClient
    SHAPES = {"1024x1024": (1024, 1024), "1536x1024": (1536, 1024), "1024x1536": (1024, 1536)}
    capabilities = Capabilities(
        identity="bank",
        insertion="reference",
        sizes=tuple(SHAPES.values()),
        default_size=(1536, 1024),
        deterministic=False,
        guide=True,
    )

    def _send(self, asked: Asked) -> Any:
        options = self._options(asked)
        if not asked.references:
            return self._client.sdk.images.generate(**options)
        named = [(f"frame{place}.png", png, "image/png") for place, png in enumerate(asked.references, 1)]
        return self._client.sdk.images.edit(image=named, **options)

    def inpaint_frame(self, request: FrameRequest, picture: bytes, mask: bytes) -> bytes:
        """Return one PNG: the picture with what the request says where the mask is white. Characters' pictures are not
        sent with it: the picture shows what they look like."""
        asked = self._asked(replace(request, pictures=()), "image/frame", ())
        options = self._options(replace(asked, references=[picture]))
        shown = ("frame.png", picture, "image/png")
        hole = ("mask.png", _see_through(mask), "image/png")
        send = partial(self._client.sdk.images.edit, image=shown, mask=hole, **options)
        return self._received(self._call(send, asked.what), request, 1)

    def _options(self, asked: Asked) -> dict[str, Any]:
        options: dict[str, Any] = {"model": self._vendor.model, "prompt": asked.prompt, "n": 1, "size": asked.shape}
        if self._quality is not None:
            options["quality"] = self._quality
        if asked.references and self._fidelity is not None:
            options["input_fidelity"] = self._fidelity
        return options

    def _body(self, asked: Asked) -> tuple[str, dict[str, Any]]:
        options = self._options(asked)
        if not asked.references:
            return "from words", options
        shown = [f"data:image/png;base64,{b64encode(png).decode('ascii')}" for png in asked.references]
        return "from pictures", {**options, "images": [{"image_url": url} for url in shown]}

    def _batch_apis(self) -> Mapping[str, BatchApi]:
        return {kind: OpenAIBatches(self._client.sdk, endpoint) for kind, endpoint in _ENDPOINTS.items()}

    def _answer(self, body: Mapping[str, Any]) -> Any:
        from openai.types import ImagesResponse

        return ImagesResponse.model_validate(body)

    def _read(self, answer: Any) -> ServicePicture:
        picture = answer.data[0].b64_json if answer.data else None
        if not picture:
            raise Fault("broken", "the reply holds no picture")
        tokens: dict[str, int] = {}
        if answer.usage is not None:
            sent = answer.usage.input_tokens_details
            tokens = {"text": sent.text_tokens, "image": sent.image_tokens, "output": answer.usage.output_tokens}
        return ServicePicture(b64decode(picture), getattr(answer, "model", None) or self._vendor.model, tokens)


def _see_through(mask: bytes) -> bytes:
    """The service's form of a mask: a PNG that is transparent where the picture is to change."""
    from PIL import Image, ImageChops

    grey = Image.open(io.BytesIO(mask)).convert("L")
    shown = Image.new("RGBA", grey.size)
    shown.putalpha(ImageChops.invert(grey))
    return as_png(shown)
