"""`ideogram:MODEL`: Ideogram's models over the second version of its API, which draws from words and from pictures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from katha.models.client import Fault
from katha.models.http import HttpClient, HttpError, words_of
from katha.protocols import Capabilities
from katha.renderers.hosted.service import Asked, HostedRenderer, ServicePicture

if TYPE_CHECKING:
    from httpx import Response

_SEEDS = 2**31
_BUSY = "inflight_limit"


class IdeogramClient(HttpClient):
    """Ideogram's calls, each of which waits for its picture."""

    KEY_HEADER = "Api-Key"

    def failure(self, response: Response) -> HttpError:
        """Return what an answer that is none means: 402 is an account without credits or with too many calls under way,
        422 a prompt or picture that is not allowed."""
        words, status = words_of(response), response.status_code
        code = {402: "insufficient_quota", 422: "content_policy_violation"}.get(status)
        failure = HttpError(response, words, code)
        if status == 402 and _BUSY in response.text:
            failure.status_code, failure.code = 429, None
        return failure


class IdeogramRenderer(HostedRenderer):
    """Ideogram models; the key is read from IDEOGRAM_API_KEY. Scenes are drawn from their characters' pictures, a
    bridge from its neighbours' too."""

    SERVICE = "ideogram"
    CLIENT = IdeogramClient
    # Of the sizes that it draws from words those whose sides divide by 32: it refuses others where pictures are sent.
    SHAPES = {
        f"{width}x{height}": (width, height)
        for width, height in (
            *((1248, 832), (832, 1248), (1024, 1024), (1152, 864), (864, 1152), (1120, 896), (896, 1120)),
            *((1280, 800), (800, 1280), (2048, 2048), (2496, 1664), (1664, 2496), (2560, 1440), (1440, 2560)),
            *((2304, 1728), (1728, 2304), (2240, 1792), (1792, 2240), (2560, 1600), (1600, 2560)),
        )
    }
    capabilities = Capabilities(
        identity="bank",
        insertion="reference",
        sizes=tuple(SHAPES.values()),
        default_size=(1248, 832),
        deterministic=False,
        guide=True,
    )
    _client: IdeogramClient

    def _send(self, asked: Asked) -> Any:
        told = {
            "prompt": asked.prompt,
            "size": asked.shape,
            "quality": self._quality,
            "seed": asked.seed % _SEEDS,
            **self._vendor.card["asks"],
        }
        form: list[tuple[str, Any]] = [(name, (None, str(value))) for name, value in told.items()]
        for place, png in enumerate(asked.references, 1):
            form.append(("images", (f"picture{place}.png", png, "image/png")))
        return self._client.call("POST", f"/v2/image/generate/{self._vendor.model}", files=form).json()

    def _read(self, answer: Any) -> ServicePicture:
        drawn = next(iter(answer.get("data") or ()), None)
        if drawn is None:
            raise Fault("broken", "the reply holds no picture")
        if drawn.get("is_image_safe") is False or not drawn.get("url"):
            raise Fault("unwilling", "the picture did not pass its safety check")
        data = self._client.patiently(partial(self._client.picture_at, str(drawn["url"])))
        return ServicePicture(data, self._vendor.model)
