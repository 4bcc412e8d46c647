"""`bfl:MODEL`: FLUX.2 as Black Forest Labs serves it: a task is sent, asked after at the address that it is given, and
its picture fetched."""

from __future__ import annotations

import io
import time
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from katha.models.client import Fault
from katha.models.http import HttpClient, HttpError, words_of
from katha.pictures import as_png
from katha.protocols import Capabilities
from katha.renderers.hosted.service import Asked, HostedRenderer, ServicePicture

if TYPE_CHECKING:
    from httpx import Response

_ASKED_AFTER = 0.5
"""Seconds between two looks at a task."""
_UNWILLING = ("Request Moderated", "Content Moderated")
_UNDER_WAY = ("Pending", "Queued", "Processing")


class BflClient(HttpClient):
    """Black Forest Labs' tasks."""

    KEY_HEADER = "x-key"

    def failure(self, response: Response) -> HttpError:
        """Return what an answer that is none means; 402 is an account without credits."""
        return HttpError(response, words_of(response), "insufficient_quota" if response.status_code == 402 else None)

    def finished(self, address: str) -> Mapping[str, Any]:
        """Return the result of the task at `address` when it is there.

        Raises:
            Fault: it failed, would not be drawn, or takes longer than `timeout` seconds.
        """
        until = time.monotonic() + self.timeout
        while True:
            told = self.patiently(partial(self.call, "GET", address)).json()
            status = str(told.get("status"))
            if status == "Ready":
                result: Mapping[str, Any] = told["result"]
                return result
            if status in _UNWILLING:
                raise Fault("unwilling", status.lower())
            if status not in _UNDER_WAY:
                raise Fault("broken", f"its task ended as {status!r}")
            if time.monotonic() > until:
                raise Fault("broken", f"its task was not done in {self.timeout:.0f} s")
            self.backoff.sleep(_ASKED_AFTER)


class BflRenderer(HostedRenderer):
    """FLUX.2 at Black Forest Labs; the key is read from BFL_API_KEY. Scenes are drawn from their
    characters' pictures, a bridge from its neighbours' too."""

    SERVICE = "bfl"
    CLIENT = BflClient
    SHAPES = {"1248x832": (1248, 832), "832x1248": (832, 1248), "1024x1024": (1024, 1024)}
    capabilities = Capabilities(
        identity="bank", insertion="reference", default_size=(1248, 832), deterministic=False, guide=True
    )
    _client: BflClient

    def _send(self, asked: Asked) -> Any:
        width, height = map(int, asked.shape.split("x"))
        body = {
            "prompt": asked.prompt,
            "width": width,
            "height": height,
            "seed": asked.seed,
            **self._vendor.card["asks"],
        }
        for place, png in enumerate(asked.references, 1):
            shown = _small(png, self._vendor.card["sent_pixels"])
            body["input_image" if place == 1 else f"input_image_{place}"] = b64encode(shown).decode("ascii")
        return self._client.call("POST", f"/v1/{self._vendor.model}", json=body).json()

    def _read(self, answer: Any) -> ServicePicture:
        place = self._client.finished(str(answer["polling_url"])).get("sample")
        if not place:
            raise Fault("broken", "its task is done and names no picture")
        data = self._client.patiently(partial(self._client.picture_at, str(place)))
        cents = answer.get("cost")
        return ServicePicture(data, self._vendor.model, cost=None if cents is None else float(cents) / 100)


def _small(png: bytes, pixels: int) -> bytes:
    """Return a picture of at most so many pixels: each million of those that are sent is paid for."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png))
    share = (pixels / (picture.width * picture.height)) ** 0.5
    if share >= 1.0:
        return png
    size = max(1, int(picture.width * share)), max(1, int(picture.height * share))
    return as_png(picture.convert("RGB").resize(size, Image.Resampling.LANCZOS))
