"""`gemini:MODEL`: Gemini's image models (Nano Banana) through the google-genai SDK, which is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from katha.errors import MissingExtraError
from katha.protocols import Capabilities
from katha.renderers.hosted.service import Drawn, Fault, HostedRenderer

if TYPE_CHECKING:
    from google.genai import Client


_SHAPES = {
    "1:1": (1024, 1024),
    "3:2": (1248, 832),
    "2:3": (832, 1248),
    "4:3": (1184, 864),
    "3:4": (864, 1184),
    "5:4": (1152, 896),
    "4:5": (896, 1152),
    "16:9": (1344, 768),
    "9:16": (768, 1344),
    "21:9": (1536, 672),
}
_UNWILLING = ("SAFETY", "PROHIBITED", "BLOCKLIST", "RECITATION", "SPII")
_KEY_WORDS = ("API_KEY_INVALID", "API key not valid")


class GeminiRenderer(HostedRenderer):
    """Gemini image models; the key is read from GEMINI_API_KEY. A bridge is drawn from its neighbours' pictures."""

    SERVICE = "gemini"
    SHAPES = _SHAPES
    capabilities = Capabilities(
        insertion="reference", sizes=tuple(_SHAPES.values()), default_size=(1248, 832), deterministic=False
    )

    @cached_property
    def _client(self) -> Client:
        """The SDK's client.

        Raises:
            MissingExtraError: google-genai is not installed.
        """
        try:
            from google.genai import Client, types
        except ImportError as error:
            hint = "pip install 'katha[gemini]'"
            raise MissingExtraError("The renderer 'gemini' needs google-genai.", hint=hint) from error
        retries = types.HttpRetryOptions(attempts=self._retries + 1, initial_delay=min(1.0, self._timeout / 100))
        options = types.HttpOptions(base_url=self._url, timeout=int(self._timeout * 1000), retry_options=retries)
        return Client(api_key=self._key, http_options=options, vertexai=False)

    def _send(self, prompt: str, shape: str, references: Sequence[bytes]) -> Drawn:
        client = self._client
        from google.genai import errors, types

        parts: list[Any] = [types.Part.from_bytes(data=png, mime_type="image/png") for png in references]
        config = types.GenerateContentConfig(
            response_modalities=["IMAGE"],
            image_config=types.ImageConfig(aspect_ratio=shape, image_size=self._quality),
        )
        try:
            response: Any = client.models.generate_content(model=self._model, contents=[*parts, prompt], config=config)
        except errors.APIError as error:
            wrong_key = any(word in str(error) for word in _KEY_WORDS)  # a wrong key is HTTP 400 here
            raise Fault(str(error), 401 if wrong_key else error.code) from None
        data = _picture(response)
        return Drawn(data, response.model_version or self._model, _tokens(response.usage_metadata))


def _picture(response: Any) -> bytes:
    blocked = response.prompt_feedback.block_reason if response.prompt_feedback is not None else None
    if blocked is not None:
        raise Fault(f"the prompt was blocked ({blocked.value})", 200, refused=True)
    for part in response.parts or []:
        if part.inline_data is not None and part.inline_data.data:
            return bytes(part.inline_data.data)
    reason = response.candidates[0].finish_reason if response.candidates else None
    word = reason.value if reason is not None else "no reason"
    said = " ".join(part.text for part in response.parts or [] if part.text)[:200]
    message = f"no picture came ({word}){f': {said}' if said else ''}"
    raise Fault(message, None, refused=any(stem in word for stem in _UNWILLING))


def _tokens(usage: Any) -> dict[str, int]:
    if usage is None or usage.prompt_token_count is None:
        return {}
    by_kind = {detail.modality.value: detail.token_count or 0 for detail in usage.prompt_tokens_details or []}
    images = by_kind.get("IMAGE", 0)
    return {"text": usage.prompt_token_count - images, "image": images, "output": usage.candidates_token_count or 0}
