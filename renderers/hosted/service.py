"""What the image services share: their data, the key, the prompt, typed failures, and a receipt for every frame.

A service exposes no seed: the seed numbers the sample, and what came back is kept. Frames are asked for one after the
other, so that nothing that was paid for is lost when one fails.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar

from katha.configs import load_config, load_prompt
from katha.errors import (
    InputFileError,
    RefusedFrameError,
    RenderError,
    TransientRenderError,
    UnfitFrameError,
    UsageError,
)
from katha.models.client import Backoff, Fault, ProviderClient, find_vendor
from katha.pictures import as_png, decode
from katha.protocols import BoardContext, Capabilities, FrameRequest
from katha.schema import Character

_PROMPT_TOKENS = 1_000


@dataclass(frozen=True)
class Drawn:
    """What a service sent: the picture's bytes, the model that says it drew it, and tokens by kind."""

    data: bytes
    model: str
    tokens: Mapping[str, int] = field(default_factory=dict)


class HostedRenderer(ABC):
    """One frame a call. `SERVICE` names its section of `configs/providers.yaml`, `SHAPES` what the service calls the
    sizes that it draws; what comes in another size (newer models do so by a few pixels) is scaled and cut."""

    SERVICE: ClassVar[str]
    CLIENT: ClassVar[type[ProviderClient]]
    SHAPES: ClassVar[Mapping[str, tuple[int, int]]]
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
        patience: float | None = None,
    ) -> None:
        """Read the service's data and the key; nothing is called yet.

        price: US dollars of one picture, for a model whose price `configs/providers.yaml` does not know.

        Raises:
            UsageError: no model is named, or the key's variable is not set.
        """
        if not argument:
            example = load_config("providers.yaml")[self.SERVICE]["pictures"]["default"]["example"]
            raise UsageError(
                f"The renderer {self.SERVICE!r} needs a model.", hint=f"For example {self.SERVICE}:{example}."
            )
        self._vendor = find_vendor(self.SERVICE, argument, base_url=base_url, what="renderer")
        backoff = Backoff(max_retries=retries, busy_retries=retries)
        self._client = self.CLIENT(self._vendor, timeout=timeout, backoff=backoff, patience=patience)
        self._quality, self._frame_dollars = quality, price
        self._receipt: dict[str, Any] = {}

    @abstractmethod
    def _send(self, prompt: str, shape: str, references: Sequence[bytes]) -> Any:
        """Make one call; the SDK's own errors pass through."""

    @abstractmethod
    def _read(self, answer: Any) -> Drawn:
        """Return what the SDK's object for an answer holds.

        Raises:
            Fault: no picture, `unwilling` where the service would not draw it.
        """

    def spec(self) -> Mapping[str, Any]:
        """Model, endpoint's host, quality and the prompt templates; never the key, never the date."""
        return {
            "name": self.SERVICE,
            "model": self._vendor.model,
            "endpoint": self._vendor.endpoint,
            "quality": self._quality,
            "prompts": [load_prompt(name).sha256 for name in ("image/frame", "image/inserted")],
        }

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order, each as soon as it is there.

        Raises:
            UsageError: the key or the model is wrong, or a prompt is too long. RefusedFrameError: the service would not
            draw it. TransientRenderError: the service or the network failed; the frames before are kept.
            ModelError: the account has no credit left.
        """
        for request in requests:
            yield self._draw(request, "image/frame", ())

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return one PNG, drawn from the prompt and the frames on both sides of its place."""
        around = context.images[max(0, context.position - 1) : context.position + 1]
        return self._draw(request, "image/inserted", around)

    @property
    def frame_price(self) -> float | None:
        """US dollars that one frame is expected to cost at most: the largest picture of its quality, the prompt and
        two pictures sent with it; None when unknown."""
        sizes: Mapping[str, int] = self._vendor.card["picture_tokens"]
        if self._frame_dollars is not None or not sizes:
            return self._frame_dollars
        largest = max(sizes.values())
        sent = {"text": _PROMPT_TOKENS, "image": 2 * largest}
        return self._vendor.cost({**sent, "output": sizes.get(self._quality or "", largest)})

    def receipt(self) -> Mapping[str, Any]:
        """About the frame given last: model as asked and as served, date (UTC), tokens, dollars, size delivered."""
        return dict(self._receipt)

    def _draw(self, request: FrameRequest, template: str, references: Sequence[bytes]) -> bytes:
        prompt = load_prompt(template).render(
            prompt=request.prompt,
            looks="; ".join(f"{item.name}, {item.appearance}" for item in _unsaid(request)),
            style=request.style,
            negative=request.negative_prompt,
        )
        what = f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"
        most, size = self._vendor.card["prompt_letters"], (request.width, request.height)
        if len(prompt) > most:
            limit = f"{len(prompt):,} letters; {self.SERVICE} takes {most:,}"
            raise UnfitFrameError(f"The prompt of {what} has {limit}.", hint="Shorten it in the plan.")
        shape = next(name for name, known in self.SHAPES.items() if known == size)
        drawn = self._call(prompt, shape, references, what)
        png, delivered = _as_png(drawn.data, size, f"{self.SERVICE}:{self._vendor.model}")
        cost = self._vendor.cost(drawn.tokens)
        self._receipt = {
            "service": self.SERVICE,
            "model": self._vendor.model,
            "served": drawn.model,
            "date": datetime.now(UTC).date().isoformat(),
            "tokens": dict(drawn.tokens),
            "cost": self._frame_dollars if cost is None else cost,
            "delivered": f"{delivered[0]}x{delivered[1]}",
        }
        return png

    def _call(self, prompt: str, shape: str, references: Sequence[bytes], what: str) -> Drawn:
        try:
            answer = self._client.patiently(partial(self._send, prompt, shape, references))
            # Outside of the tries: an answer without a picture has been paid for.
            return self._client.typed(partial(self._read, answer))
        except Fault as fault:
            who, message = f"{self.SERVICE}:{self._vendor.model}", fault.message[:400].rstrip(".")
            if fault.kind == "unwilling":
                error = f"{who} would not draw {what}: {message}."
                raise RefusedFrameError(error, hint="Change its prompt in the plan.") from None
            if fault.kind == "refused":
                reason = message.removeprefix(f"HTTP {fault.status}: ")
                raise RenderError(f"{who} rejected {what} (HTTP {fault.status}): {reason}.") from None
            hint = "The frames so far are kept: give the same command again to go on."
            raise TransientRenderError(f"{who} failed at {what}: {message}.", hint=hint) from None


def _as_png(data: bytes, size: tuple[int, int], who: str) -> tuple[bytes, tuple[int, int]]:
    """Return an RGB PNG of `size`, scaled and cut at its centre where it came otherwise, and the size it came in."""
    from PIL import Image, ImageOps

    try:
        picture = decode(data, "it")
    except InputFileError as error:
        raise TransientRenderError(f"{who} sent a picture that cannot be read: {error.message}") from error
    delivered = picture.size
    if delivered != size:
        picture = ImageOps.fit(picture, size, Image.Resampling.LANCZOS)
    return as_png(picture), delivered


def _unsaid(request: FrameRequest) -> list[Character]:
    """The characters of whose looks the prompt says nothing yet."""
    said = request.prompt.lower()
    return [one for one in request.characters if one.appearance and one.appearance.lower() not in said]
