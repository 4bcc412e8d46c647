"""What the image services share: their data, the key, the prompt, typed failures, and a receipt for every frame.

A service exposes no seed: the seed numbers the sample, and what came back is kept. Frames are asked for one after the
other, so that nothing that was paid for is lost when one fails.
"""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from katha.configs import load_config, load_prompt
from katha.errors import KathaError, RefusedFrameError, RenderError, TransientRenderError, UnfitFrameError, UsageError
from katha.protocols import BoardContext, Capabilities, FrameRequest

_LOCAL = frozenset(("127.0.0.1", "localhost", "::1"))
_AGAIN = frozenset((408, 409, 429))
_PROMPT_TOKENS = 1_000


@dataclass(frozen=True)
class Service:
    """One section of `configs/image_services.yaml`."""

    key: tuple[str, ...]
    url_variable: str
    base_url: str
    example: str
    prompt_letters: int
    prices: Mapping[str, Mapping[str, Any]]

    def price(self, model: str) -> Mapping[str, Any] | None:
        """Dollars per million tokens, and the tokens of a picture by quality; None when unknown."""
        names = sorted((name for name in self.prices if model.startswith(name)), key=len)
        return self.prices[names[-1]] if names else None


@dataclass(frozen=True)
class Drawn:
    """What a service sent: the picture's bytes, the model that says it drew it, and tokens by kind."""

    data: bytes
    model: str
    tokens: Mapping[str, int] = field(default_factory=dict)


class Fault(Exception):
    """A failed call: `status` of HTTP (None: no answer came), and whether the service would not draw it."""

    def __init__(self, message: str, status: int | None = None, *, refused: bool = False) -> None:
        super().__init__(message)
        self.message, self.status, self.refused = message, status, refused


@cache
def load_service(name: str) -> Service:
    """The data of one service."""
    row = load_config("image_services.yaml")[name]
    return Service(**{**row, "key": tuple(row["key"])})


class HostedRenderer(ABC):
    """One frame a call. `SERVICE` names its section of `configs/image_services.yaml`, `SHAPES` what the service calls
    the sizes that it draws; what comes in another size (newer models do so by a few pixels) is scaled and cut."""

    SERVICE: str
    SHAPES: Mapping[str, tuple[int, int]]
    capabilities: Capabilities

    def __init__(
        self,
        argument: str | None = None,
        *,
        base_url: str | None = None,
        quality: str | None = None,
        retries: int = 4,
        timeout: float = 300.0,
        price: float | None = None,
    ) -> None:
        """Read the service's data and the key; nothing is called yet.

        price: US dollars of one picture, for a model whose price `configs/image_services.yaml` does not know.

        Raises:
            UsageError: no model is named, or the key's variable is not set.
        """
        self._service = load_service(self.SERVICE)
        if not argument:
            example = f"{self.SERVICE}:{self._service.example}"
            raise UsageError(f"The renderer {self.SERVICE!r} needs a model.", hint=f"For example {example}.")
        self._model, self._quality, self._retries, self._timeout = argument, quality, retries, timeout
        self._frame_dollars = price
        self._url = base_url or os.environ.get(self._service.url_variable) or self._service.base_url
        names = self._service.key
        self._variable = next((name for name in names if os.environ.get(name)), names[0])
        local = urlsplit(self._url).hostname in _LOCAL
        self._key = os.environ.get(self._variable) or ("unused" if local else "")
        if not self._key:
            raise UsageError(f"The renderer {self.SERVICE}:{argument} needs a key.", hint=f"Set {self._variable}.")
        self._receipt: dict[str, Any] = {}

    @abstractmethod
    def _send(self, prompt: str, shape: str, references: Sequence[bytes]) -> Drawn:
        """One call.

        Raises:
            Fault: it failed, with the status. Other exceptions of the SDK pass through.
        """

    def spec(self) -> Mapping[str, Any]:
        """Model, endpoint's host, quality and the prompt templates; never the key, never the date."""
        parts = urlsplit(self._url)
        names = ("image/frame", "image/inserted")
        return {
            "name": self.SERVICE,
            "model": self._model,
            "endpoint": f"{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}",
            "quality": self._quality,
            "prompts": [load_prompt(name).sha256 for name in names],
        }

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order, each as soon as it is there.

        Raises:
            UsageError: the key or the model is wrong, or a prompt is too long. RefusedFrameError: the service would not
            draw it. TransientRenderError: the service or the network failed; the frames before are kept.
        """
        for request in requests:
            yield self._draw(request, "image/frame", ())

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """One PNG, drawn from the prompt and the frames on both sides of its place."""
        around = context.images[max(0, context.position - 1) : context.position + 1]
        return self._draw(request, "image/inserted", around)

    @property
    def frame_price(self) -> float | None:
        """US dollars that one frame is expected to cost at most: the largest picture of its quality, the prompt and
        two pictures sent with it; None when unknown."""
        price = self._service.price(self._model)
        if self._frame_dollars is not None or price is None:
            return self._frame_dollars
        sizes: Mapping[str, int] = price["picture_tokens"]
        largest = max(sizes.values())
        sent = {"text": _PROMPT_TOKENS, "image": 2 * largest}
        return self._cost({**sent, "output": sizes.get(self._quality or "", largest)})

    def receipt(self) -> Mapping[str, Any]:
        """About the frame given last: model as asked and as served, date (UTC), tokens, dollars, size delivered."""
        return dict(self._receipt)

    def _draw(self, request: FrameRequest, template: str, references: Sequence[bytes]) -> bytes:
        prompt = load_prompt(template).render(
            prompt=request.prompt,
            looks="; ".join(f"{item.name}, {item.appearance}" for item in request.characters if item.appearance),
            style=request.style,
            negative=request.negative_prompt,
        )
        what = f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"
        if len(prompt) > self._service.prompt_letters:
            limit = f"{len(prompt):,} letters; {self.SERVICE} takes {self._service.prompt_letters:,}"
            raise UnfitFrameError(f"The prompt of {what} has {limit}.", hint="Shorten it in the plan.")
        size = (request.width, request.height)
        shape = next(name for name, known in self.SHAPES.items() if known == size)
        drawn = self._call(prompt, shape, references, what)
        png, delivered = _as_png(drawn.data, size, f"{self.SERVICE}:{self._model}")
        self._receipt = {
            "service": self.SERVICE,
            "model": self._model,
            "served": drawn.model,
            "date": datetime.now(UTC).date().isoformat(),
            "tokens": dict(drawn.tokens),
            "cost": self._cost(drawn.tokens),
            "delivered": f"{delivered[0]}x{delivered[1]}",
        }
        return png

    def _call(self, prompt: str, shape: str, references: Sequence[bytes], what: str) -> Drawn:
        try:
            return self._send(prompt, shape, references)
        except KathaError:
            raise
        except Fault as fault:
            raise self._typed(fault, what) from None
        except Exception as error:
            raise self._typed(Fault(f"{type(error).__name__}: {error}"), what) from None

    def _typed(self, fault: Fault, what: str) -> KathaError:
        who, message = f"{self.SERVICE}:{self._model}", fault.message.replace(self._key, "[key]")[:400].rstrip(".")
        if fault.refused:
            return RefusedFrameError(f"{who} would not draw {what}: {message}.", hint="Change its prompt in the plan.")
        if fault.status in (401, 403):
            return UsageError(f"{who} refused the key (HTTP {fault.status}).", hint=f"Check {self._variable}.")
        if fault.status == 404:
            return UsageError(f"{self.SERVICE} knows no model {self._model!r} at {self.spec()['endpoint']}.")
        if fault.status is None or fault.status >= 500 or fault.status in _AGAIN:
            hint = "The frames so far are kept: give the same command again to go on."
            return TransientRenderError(f"{who} failed at {what}: {message}.", hint=hint)
        return RenderError(f"{who} rejected {what} (HTTP {fault.status}): {message}.")

    def _cost(self, tokens: Mapping[str, int]) -> float | None:
        price = self._service.price(self._model)
        if not price or not tokens:
            return self._frame_dollars
        return float(sum(tokens[kind] * price[kind] for kind in tokens)) / 1e6


def _as_png(data: bytes, size: tuple[int, int], who: str) -> tuple[bytes, tuple[int, int]]:
    """The picture as an RGB PNG of `size`, scaled and cut at its centre where it came otherwise, and how it came."""
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data)) as image:
            picture, delivered = image.convert("RGB"), image.size
    except (OSError, SyntaxError, ValueError) as error:
        raise TransientRenderError(f"{who} sent a picture that cannot be read: {error}.") from error
    if delivered != size:
        picture = ImageOps.fit(picture, size, Image.Resampling.LANCZOS)
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue(), delivered
