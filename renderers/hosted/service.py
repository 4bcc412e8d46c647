"""What the image services share: their data, the key, the prompt, typed failures, and a receipt for every frame.

A service exposes no seed: the seed numbers the sample, and what came back is kept. Every frame is a call of its own and
may be asked for from several threads, so that nothing that was paid for is lost when one fails.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from katha.composing import compose, load_family
from katha.configs import load_config, load_prompt
from katha.errors import (
    InputFileError,
    RefusedFrameError,
    RenderError,
    TransientRenderError,
    UnfitFrameError,
    UsageError,
)
from katha.models.batches import BatchApi, Batcher, BatchResult, DrawsInBatches
from katha.models.client import Backoff, ClientBatches, Fault, ProviderClient, find_vendor
from katha.pictures import as_png, decode
from katha.protocols import BoardContext, FrameRequest, Renderer
from katha.renderers.hosted.prices import picture_price
from katha.renderers.references import CharacterPictures, at_most
from katha.schema import Character

_FAMILY = "services"
_PICTURES_SENT = 4
"""Two neighbours and two characters, for the price that a frame is expected to have at most."""


@dataclass(frozen=True, kw_only=True)
class HostedOptions:
    """What an image service can be told.

    base_url: another address than the vendor's. quality: as the service names it. price: US dollars of one picture, for
    a model whose price `configs/providers.yaml` does not know. timeout: seconds of one picture. patience: seconds that
    a server may fail. concurrency: calls under way at once, at most. characters: a folder with NAME.png of each
    character. reference: NAME=FILE. portraits: draw a picture of each character that has none, once, and draw its
    scenes from it. fidelity: how closely pictures are followed, for models that can be told; their highest unless told.
    """

    base_url: str | None = None
    quality: str | None = None
    retries: int = 4
    timeout: float = 300.0
    price: float | None = None
    patience: float | None = None
    concurrency: int = 8
    characters: Path | None = None
    reference: tuple[str, ...] = ()
    portraits: bool = True
    fidelity: Literal["high", "low"] | None = None


@dataclass(frozen=True)
class ServicePicture:
    """What a service sent: the picture's bytes, the model that says it drew it, tokens by kind, and US dollars, where
    it says what it charged."""

    data: bytes
    model: str
    tokens: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None


@dataclass(frozen=True)
class Asked:
    """One frame as it is asked for: prompt, the service's name for its size, pictures to draw from (PNG), its seed, and
    what it is in words."""

    prompt: str
    shape: str
    references: Sequence[bytes]
    seed: int
    what: str


class HostedRenderer(Renderer):
    """One frame a call. `SERVICE` names its section of `configs/providers.yaml`, `SHAPES` what the service calls the
    sizes that it draws: all that it has, unless the model draws any size (`free_sizes`), and longer by its `sides` at a
    quality that is a size. What comes in another size (newer models do so by a few pixels) is scaled and cut."""

    SERVICE: ClassVar[str]
    CLIENT: ClassVar[type[ProviderClient]]
    SHAPES: ClassVar[Mapping[str, tuple[int, int]]]
    options_class: ClassVar[type[HostedOptions]] = HostedOptions
    metered = True

    def __init__(self, argument: str | None = None, options: HostedOptions | None = None) -> None:
        """Read the service's data, the key and the characters' pictures; nothing is called yet. argument: the model.

        Raises:
            UsageError: no model is named, the key's variable is not set, or the model has no such quality or fidelity.
            InputFileError: a picture of a character cannot be used.
        """
        told = options or self.options_class()
        if not argument:
            example = load_config("providers.yaml")[self.SERVICE]["pictures"]["default"]["example"]
            raise UsageError(
                f"The renderer {self.SERVICE!r} needs a model.", hint=f"For example {self.SERVICE}:{example}."
            )
        self._vendor = find_vendor(self.SERVICE, argument, base_url=told.base_url, what="renderer")
        backoff = Backoff(max_retries=told.retries, busy_retries=told.retries)
        self.concurrency = max(1, told.concurrency)
        self._client = self.CLIENT(
            self._vendor, timeout=told.timeout, backoff=backoff, patience=told.patience, at_once=self.concurrency
        )
        self._quality: str | None = told.quality or self._vendor.card.get("quality")
        self._frame_dollars, self._portraits = told.price, told.portraits
        self._shapes = self._sized()
        self.frame_price = self.price_of(_PICTURES_SENT)
        highest = self._vendor.card["fidelity"]
        if told.fidelity is not None and highest is None:
            raise UsageError(f"{self.SERVICE}:{argument} cannot be told a fidelity.", hint="Leave fidelity out.")
        self._fidelity: str | None = told.fidelity or highest
        self._references = CharacterPictures(told.characters, told.reference)
        self.capabilities = replace(
            self.capabilities,
            pictures=self._vendor.card["references"] > 0,
            things=self._vendor.card["references"] > 0,
            guide=self._vendor.card["references"] > 1,
            prompt_family=_FAMILY,
            **self._drawn_sizes(),
        )
        self._own = threading.local()
        self._remarks: list[str] = []

    @abstractmethod
    def _send(self, asked: Asked) -> Any:
        """Make one call; the SDK's own errors pass through."""

    @abstractmethod
    def _read(self, answer: Any) -> ServicePicture:
        """Return what the SDK's object for an answer holds.

        Raises:
            Fault: no picture, `unwilling` where the service would not draw it.
        """

    def require_served(self) -> None:
        """Refuse a model that its vendor has taken away (UsageError); its pictures in the cache can still be used."""
        self._vendor.require_served()

    def spec(self) -> Mapping[str, Any]:
        """Model, endpoint's host, quality, pictures and the prompt templates; never the key, never the date."""
        return {
            "name": self.SERVICE,
            "model": self._vendor.model,
            "endpoint": self._vendor.endpoint,
            "quality": self._quality,
            "fidelity": self._fidelity,
            "portraits": self._portraits,
            **({"asks": dict(asks)} if (asks := self._vendor.card.get("asks")) else {}),
            "references": self._references.spec(),
            "prompts": [load_prompt(name).sha256 for name in ("image/frame", "image/inserted", "renderers/portrait")],
        }

    def guided_spec(self) -> Mapping[str, Any]:
        """Return the template of the sentence that says what a layout is."""
        return {"prompt": load_prompt("image/layout").sha256}

    def picture_of(self, character: Character, request: FrameRequest) -> bytes | FrameRequest | None:
        """Return the user's picture of a character, else the request of a portrait in the frame's style and size."""
        if character.name in self._references:
            return self._references[character.name]
        if not self._portraits or not self._vendor.card["references"]:
            return None
        prompt = load_prompt("renderers/portrait").render(
            anchor=character.anchor_prompt, appearance=character.appearance or character.kind, view="full body"
        )
        # No seed reaches a service, so that one portrait does for all seeds.
        return FrameRequest(prompt, 0, request.width, request.height, style=request.style, kind="extra")

    def remarks(self) -> Sequence[str]:
        """Return that none of the user's pictures was used, where that is so."""
        said, self._remarks = list(dict.fromkeys(self._remarks)), []
        return said

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order, each as soon as it is there.

        Raises:
            UsageError: the key or the model is wrong, or a prompt is too long. RefusedFrameError: the service would not
            draw it. TransientRenderError: the service or the network failed; the frames before are kept.
            ModelError: the account has no credit left.
        """
        for request in requests:
            yield self._draw(request, "image/frame", ())
        unused = self._references.unused(item for request in requests for item in request.characters)
        self._remarks += [unused] if unused else []

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return one PNG, drawn from the prompt, the frames on both sides of its place, and the layout it brings."""
        around = context.images[max(0, context.position - 1) : context.position + 1]
        return self._draw(request, "image/inserted", around)

    def price_of(self, pictures: int, size: tuple[int, int] | None = None) -> float | None:
        """Return the US dollars of a frame: the prompt, so many pictures that are sent, and one of this quality and
        size; the dearest quality, and the largest of the fixed sizes, where they are not told."""
        if self._frame_dollars is not None:
            return self._frame_dollars
        largest = max(self._shapes.values(), key=lambda one: one[0] * one[1])
        return picture_price(self._vendor, self._quality, pictures, size or largest)

    def _sized(self) -> Mapping[str, tuple[int, int]]:
        """Return what the service calls each size of this quality."""
        times = self._vendor.card["sides"].get(self._quality or "", 1)
        return {name: (width * times, height * times) for name, (width, height) in self.SHAPES.items()}

    def _drawn_sizes(self) -> dict[str, Any]:
        """Return the capabilities' fields about sizes."""
        free, times = self._vendor.card["free_sizes"], self._vendor.card["sides"].get(self._quality or "", 1)
        if free is not None:
            size = self._vendor.card.get("default_size") or self.capabilities.default_size
            return {"sizes": None, "size_multiple": int(free["multiple"]), "default_size": tuple(size)}
        width, height = self.capabilities.default_size
        return {"sizes": tuple(self._shapes.values()), "default_size": (width * times, height * times)}

    def _shape(self, size: tuple[int, int]) -> str:
        """Return what the service calls a size.

        Raises:
            UsageError: it does not draw it.
        """
        free = self._vendor.card["free_sizes"]
        known = next((name for name, fixed in self._shapes.items() if fixed == size), None)
        if known is not None or free is None:
            return known or "x".join(map(str, size))
        long, short, pixels = max(size), min(size), size[0] * size[1]
        if long > free["side"] or long > free["ratio"] * short or not free["fewest"] <= pixels <= free["most"]:
            able = f"sides to {free['side']}, one at most {free['ratio']} times the other, {free['fewest']:,} to"
            who = f"{self.SERVICE}:{self._vendor.model}"
            raise UsageError(f"{who} does not draw {size[0]}x{size[1]}.", hint=f"Use {able} {free['most']:,} pixels.")
        return f"{size[0]}x{size[1]}"

    def receipt(self) -> Mapping[str, Any]:
        """About this thread's last frame: model as asked and as served, date (UTC), tokens, dollars, size delivered."""
        return dict(getattr(self._own, "receipt", {}))

    def _draw(self, request: FrameRequest, template: str, neighbours: Sequence[bytes]) -> bytes:
        asked = self._asked(request, template, neighbours)
        return self._received(self._call(partial(self._send, asked), asked.what), request, len(asked.references))

    def _asked(self, request: FrameRequest, template: str, neighbours: Sequence[bytes]) -> Asked:
        layout = [request.guide] if request.guide is not None and self.capabilities.guide else []
        room = self._vendor.card["references"] - len(layout)
        # Its neighbours show the characters, too, where the layout takes the place of these pictures.
        pictures = [data for _, data in request.pictures] if not layout or room > len(neighbours) else []
        references = _fitted([*neighbours, *pictures], room)
        prompt = load_prompt(template).render(
            shown=[name for name, _ in request.pictures] if len(references) > len(neighbours) else [],
            neighbours=len(neighbours),
            prompt=request.prompt if request.composed else compose(request, load_family(_FAMILY), len).text,
            negative=request.negative_prompt,
        )
        if layout:
            portrait = request.kind == "extra" and request.scene is None and request.transition is None
            prompt = f"{prompt}\n{load_prompt('image/layout').render(figure=portrait)}"
        what, most = _named(request), self._vendor.card["prompt_letters"]
        if len(prompt) > most:
            limit = f"{len(prompt):,} letters; {self.SERVICE} takes {most:,}"
            raise UnfitFrameError(f"The prompt of {what} has {limit}.", hint="Shorten it in the plan.")
        shape = self._shape((request.width, request.height))
        return Asked(prompt, shape, [*references, *layout], request.seed, what)

    def _received(self, drawn: ServicePicture, request: FrameRequest, sent: int, share: float | None = None) -> bytes:
        """Return the PNG and keep the receipt. sent: how many pictures it was drawn from. share: of the usual price,
        where a batch brought it."""
        size = (request.width, request.height)
        png, delivered = as_frame(drawn.data, size, f"{self.SERVICE}:{self._vendor.model}")
        full = self._charged(drawn, sent, size)
        self._own.receipt = {
            "service": self.SERVICE,
            "model": self._vendor.model,
            "served": drawn.model,
            "date": datetime.now(UTC).date().isoformat(),
            "tokens": dict(drawn.tokens),
            "cost": full if full is None or share is None else full * share,
            "delivered": f"{delivered[0]}x{delivered[1]}",
            **({} if share is None else {"batch": True}),
        }
        return png

    def _charged(self, drawn: ServicePicture, sent: int, size: tuple[int, int]) -> float | None:
        """Return US dollars: what the service said, those of its tokens, or its price of such a picture."""
        known = self._vendor.cost(drawn.tokens) if drawn.cost is None else drawn.cost
        if known is None and self._vendor.card.get("dollars"):
            known = picture_price(self._vendor, self._quality, sent, size)
        return self._frame_dollars if known is None else known

    def _call(self, send: Callable[[], Any], what: str) -> ServicePicture:
        try:
            answer = self._client.patiently(send)
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


class BatchedRenderer(HostedRenderer, DrawsInBatches):
    """A service whose vendor also draws whole files of requests."""

    @abstractmethod
    def _body(self, asked: Asked) -> tuple[str, dict[str, Any]]:
        """Return which of `_batch_apis` draws that in a batch, and the JSON that asks for it."""

    @abstractmethod
    def _batch_apis(self) -> Mapping[str, BatchApi]:
        """Return the vendor's batches by the kind of request that they take."""

    @abstractmethod
    def _answer(self, body: Mapping[str, Any]) -> Any:
        """Return the SDK's object for the answer that a batch brought."""

    def batchers(self) -> Mapping[str, Batcher]:
        """Return the vendor's batches by the kind of request that they take."""
        terms: dict[str, float] = dict(self._vendor.card["batch"])
        return {kind: ClientBatches(self._client, api, terms) for kind, api in self._batch_apis().items()}

    def batch_request(self, request: FrameRequest) -> tuple[str, Mapping[str, Any]]:
        """Return the kind and the body of the call that draws a scene or a portrait."""
        return self._body(self._asked(request, "image/frame", ()))

    def batch_frame(self, result: BatchResult, request: FrameRequest) -> bytes:
        """Return the PNG that a batch brought, at the batch's price.

        Raises:
            RefusedFrameError: the service would not draw it. RenderError: there is no picture in it.
        """
        who, what = f"{self.SERVICE}:{self._vendor.model}", _named(request)
        if result.body is None:
            raise TransientRenderError(f"{who} did not draw {what} in its batch: {result.error}.")
        try:
            drawn = self._read(self._answer(result.body))
        except Fault as fault:
            kind = RefusedFrameError if fault.kind == "unwilling" else TransientRenderError
            raise kind(f"{who} did not draw {what} in its batch: {fault.message[:400]}.") from None
        except ValueError as error:  # of pydantic and base64, for a body of another shape
            raise TransientRenderError(f"{who} sent a batch that cannot be read: {type(error).__name__}.") from None
        sent, share = len(request.pictures), float(self._vendor.card["batch"]["price"])
        return self._received(drawn, request, sent, share)


def _named(request: FrameRequest) -> str:
    return f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"


def _fitted(pictures: Sequence[bytes], most: int) -> list[bytes]:
    """Return `most` pictures at most: those that are too many stand together in the last one."""
    if len(pictures) <= most:
        return list(pictures)
    return [as_png(picture) for picture in at_most([decode(data) for data in pictures], most)] if most else []


def as_frame(data: bytes, size: tuple[int, int], who: str) -> tuple[bytes, tuple[int, int]]:
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
