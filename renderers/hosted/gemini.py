"""`gemini:MODEL`: Gemini's image models (Nano Banana) through the google-genai SDK, which is an extra."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from katha.errors import MissingExtraError
from katha.installing import install_line
from katha.models.batches import LOOKED_AT, BatchApi, BatchResult, Sent
from katha.models.client import Fault, ProviderClient
from katha.protocols import Capabilities
from katha.renderers.hosted.service import Asked, BatchedRenderer, ServicePicture

if TYPE_CHECKING:
    from google.genai import Client

_UNWILLING = ("SAFETY", "PROHIBITED", "BLOCKLIST", "RECITATION", "SPII")


class GeminiClient(ProviderClient):
    """Gemini over its own protocol, which unlike the OpenAI-compatible one draws."""

    @cached_property
    def sdk(self) -> Client:
        """The SDK's client, with its own retries off.

        Raises:
            MissingExtraError: google-genai is not installed.
        """
        try:
            from google.genai import Client, types
        except ImportError as error:
            hint = install_line("gemini")
            raise MissingExtraError("The renderer 'gemini' needs google-genai.", hint=hint) from error
        once = types.HttpRetryOptions(attempts=1)
        options = types.HttpOptions(base_url=self.vendor.url, timeout=int(self.timeout * 1000), retry_options=once)
        return Client(api_key=self.vendor.key, http_options=options, vertexai=False)

    def offered(self) -> dict[str, str | None]:
        """Return the models that are listed, without their folder."""
        return {str(item.name).removeprefix("models/"): None for item in self.sdk.models.list()}


class GeminiBatches:
    """Batches of one model. A lost one is known by its name, which is the uploaded file's."""

    def __init__(self, client: Client, model: str) -> None:
        self._client, self._model = client, model

    def upload(self, requests: Path) -> str | None:
        """Upload the file of requests, which is a JSON Lines file as it stands."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "requests.jsonl"
            path.write_bytes(requests.read_bytes())
            return str(self._client.files.upload(file=path, config={"mime_type": "jsonl"}).name)

    def find(self, sent: Sent, known: frozenset[str]) -> str | None:
        """Return the batch that was made from the uploaded file."""
        listed = islice(self._client.batches.list(config={"page_size": 100}), LOOKED_AT)
        return next((str(job.name) for job in listed if sent.file_id and job.display_name == sent.file_id), None)

    def create(self, requests: Path, sent: Sent) -> str:
        """Make the batch from the uploaded file."""
        file_id = sent.file_id or self.upload(requests) or ""
        job = self._client.batches.create(model=self._model, src=file_id, config={"display_name": file_id})
        return str(job.name)

    def ended(self, batch_id: str) -> bool:
        """Return whether it has succeeded, failed, expired or been cancelled."""
        return bool(self._client.batches.get(name=batch_id).done)

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        """Yield the lines of the file of responses; none where the whole batch failed."""
        place = self._client.batches.get(name=batch_id).dest
        if place is None or place.file_name is None:
            return
        for line in self._client.files.download(file=place.file_name).splitlines():
            row = json.loads(line)
            error = row.get("error") or row.get("status") or {}
            reason = None if row.get("response") else str(error.get("message") or "no reason given")[:500]
            yield BatchResult(row["key"], row.get("response"), reason)


class GeminiRenderer(BatchedRenderer):
    """Gemini image models; the key is read from GEMINI_API_KEY. Scenes are drawn from their
    characters' pictures, a bridge from its neighbours' too."""

    SERVICE = "gemini"
    CLIENT = GeminiClient
    SHAPES = {
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
    capabilities = Capabilities(
        identity="bank",
        insertion="reference",
        sizes=tuple(SHAPES.values()),
        default_size=(1248, 832),
        deterministic=False,
        guide=True,
    )

    def _send(self, asked: Asked) -> Any:
        models = self._client.sdk.models
        from google.genai import types

        parts: list[Any] = [types.Part.from_bytes(data=png, mime_type="image/png") for png in asked.references]
        config = types.GenerateContentConfig(
            response_modalities=["IMAGE"],
            image_config=types.ImageConfig(aspect_ratio=asked.shape, image_size=self._quality),
        )
        return models.generate_content(model=self._vendor.model, contents=[*parts, asked.prompt], config=config)

    def _body(self, asked: Asked) -> tuple[str, dict[str, Any]]:
        encoded = [b64encode(png).decode("ascii") for png in asked.references]
        shown = [{"inlineData": {"mimeType": "image/png", "data": data}} for data in encoded]
        wanted = {"aspectRatio": asked.shape, **({"imageSize": self._quality} if self._quality is not None else {})}
        return "pictures", {
            "contents": [{"role": "user", "parts": [*shown, {"text": asked.prompt}]}],
            "generationConfig": {"responseModalities": ["IMAGE"], "imageConfig": wanted},
        }

    def _batch_apis(self) -> Mapping[str, BatchApi]:
        return {"pictures": GeminiBatches(self._client.sdk, self._vendor.model)}

    def _answer(self, body: Mapping[str, Any]) -> Any:
        from google.genai import types

        return types.GenerateContentResponse.model_validate_json(json.dumps(body))

    def _read(self, answer: Any) -> ServicePicture:
        parts, usage, tokens = answer.parts or [], answer.usage_metadata, {}
        pictures = [part for part in parts if part.inline_data and part.inline_data.data]
        if not pictures:
            raise _without_picture(answer, parts)
        # A model that thinks draws drafts first. Some servers pass them on, and not all of those mark them as thoughts.
        data = bytes(([part for part in pictures if not part.thought] or pictures)[-1].inline_data.data)
        if usage is not None and usage.prompt_token_count is not None:
            by_kind = {detail.modality.value: detail.token_count or 0 for detail in usage.prompt_tokens_details or []}
            images = by_kind.get("IMAGE", 0)
            text, output = usage.prompt_token_count - images, usage.candidates_token_count or 0
            thoughts = {"thoughts": usage.thoughts_token_count} if usage.thoughts_token_count else {}
            tokens = {"text": text, "image": images, "output": output, **thoughts}
        return ServicePicture(data, answer.model_version or self._vendor.model, tokens)


def _without_picture(answer: Any, parts: Sequence[Any]) -> Fault:
    """Return why no picture came."""
    blocked = answer.prompt_feedback.block_reason if answer.prompt_feedback is not None else None
    if blocked is not None:
        return Fault("unwilling", f"the prompt was blocked ({blocked.value})")
    reason = answer.candidates[0].finish_reason if answer.candidates else None
    word = reason.value if reason is not None else "no reason"
    said = " ".join(part.text for part in parts if part.text)[:200]
    kind = "unwilling" if any(stem in word for stem in _UNWILLING) else "broken"
    return Fault(kind, f"no picture came ({word}){f': {said}' if said else ''}")
