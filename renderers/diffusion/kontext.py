"""`kontext`: frames drawn from pictures. A bridge is drawn from both of its neighbours, a scene from its characters'
reference images; a character without one gets a portrait, drawn once from its anchor prompt."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.configs import load_prompt
from katha.pictures import decode
from katha.protocols import BoardContext, Capabilities, FrameRequest
from katha.renderers.diffusion.flux import FluxOptions, FluxRenderer
from katha.renderers.diffusion.memory import Encoded, Loaded, sibling
from katha.renderers.diffusion.renderer import DrawingJob
from katha.renderers.references import CharacterPictures, at_most
from katha.schema import Character

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


_PORTRAITS = 64
_NOT_IN_SPEC = ("reference", "characters", "portraits")
_SMALLEST_PICTURE = 64
"""Sides below this many pixels are refused by FLUX.2's own input check."""


def scaled(picture: Image, pixels: int, step: int, smallest: int = 0) -> Image:
    """Return `picture` at about `pixels` pixels, its shape kept, sides multiples of `step` and at least `smallest`."""
    from PIL import Image

    factor = (pixels / (picture.width * picture.height)) ** 0.5
    width, height = (max(step, smallest, round(side * factor / step) * step) for side in picture.size)
    return picture.resize((width, height), Image.Resampling.LANCZOS)


@dataclass(frozen=True, kw_only=True)
class KontextOptions(FluxOptions):
    """The options of `kontext`, which draws one frame at a time."""

    batch: int = field(default=1, init=False)
    strength: float | None = field(default=None, init=False)
    reference: tuple[str, ...] = ()
    """NAME=FILE, a picture of the plan's character NAME."""
    characters: Path | None = None
    """A folder with a picture of every character, NAME.png."""
    portraits: bool = True
    """Draw a picture of every character that has none, and use it in the same way."""


class KontextRenderer(FluxRenderer):
    """Frames drawn from pictures: `kontext:FOLDER` or `kontext:OWNER/NAME` (Kontext, FLUX.2, Qwen-Image-Edit-Plus)."""

    family_name = "kontext"
    renderer_name = "kontext"
    options_class = KontextOptions
    options: KontextOptions
    capabilities = Capabilities(
        identity="bank",
        insertion="reference",
        default_size=(1024, 1024),
        size_multiple=16,
        prompt_tokens=416,
        pictures=True,
        things=True,
    )
    wording_tokens = 96

    def __init__(self, argument: str | None = None, options: KontextOptions | None = None) -> None:
        """Find the checkpoint and read the reference images; nothing is loaded."""
        super().__init__(argument, options)
        self.references = CharacterPictures(self.options.characters, self.options.reference)
        self._drawn: OrderedDict[tuple[object, ...], Image] = OrderedDict()

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings, references and versions: everything that can change the pixels."""
        spec = {name: value for name, value in super().spec().items() if name not in _NOT_IN_SPEC}
        return {
            **spec,
            "references": self.references.spec(),
            "portraits": self.options.portraits,
            "prompts": [load_prompt(f"renderers/kontext_{kind}").sha256 for kind in ("scene", "bridge")],
        }

    @property
    def pictures(self) -> int:
        """Return how many pictures a frame is drawn from, at most."""
        return self.calling.pictures

    def check_prompt(self, request: FrameRequest) -> None:
        """Refuse a prompt that is too long once it says what the pictures are (UnfitFrameError)."""
        names = [*(item.name for item in request.characters), *(item.name for item in request.props)]
        for kind in ("scene", "bridge"):
            super().check_prompt(replace(request, prompt=_worded(kind, request.prompt, names, 2)))

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Draw as every diffusion renderer does; portraits of earlier boards are dropped where there are many."""
        unused = self.references.unused(item for request in requests for item in request.characters)
        self._remarks += [unused] if unused else []
        while len(self._drawn) > _PORTRAITS:
            self._drawn.popitem(last=False)
        return super().render_board(requests)

    def encode(self, loaded: Loaded, request: FrameRequest) -> Encoded:
        """Return the embeddings of a scene's prompt; portraits that it needs are drawn first."""
        names = [character.name for character in request.characters if self._has_picture(character, request)]
        names += self._things(request)
        for character in request.characters:
            if self.options.portraits and self._given(character, request) is None:
                self._draw_portrait(loaded, character, request)
        worded = _worded("scene", request.prompt, names) if names else request.prompt
        return self.encode_with(loaded, replace(request, prompt=worded), self._characters(request))

    def draw(self, pipe: Any, jobs: Sequence[DrawingJob]) -> Tensor:
        """Draw scenes, one at a time, each from its characters' pictures."""
        import torch

        return torch.cat([self._draw_from(pipe, job, self._characters(job.request)) for job in jobs])

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return the PNG of a frame drawn from the pictures on both sides of it and from the characters' references."""
        around = context.images[max(0, context.position - 1) : context.position + 1]
        if not around:
            return next(iter(self.render_board([request])))
        self.check(request)
        given = {item.name: self._given(item, request) for item in request.characters}
        known = {name: data for name, data in given.items() if data is not None} | self._things(request)
        worded = _worded("bridge", request.prompt, list(known), len(around))
        pictures = [*map(decode, around), *map(decode, known.values())]
        shown = at_most(pictures, self.calling.pictures)
        with self.pipeline([request]) as loaded, self.device_failures():
            encoded = self.encode_with(loaded, replace(request, prompt=worded), shown)
            return self.png(self._draw_from(loaded.pipe, DrawingJob(request, encoded), shown)[0], request)

    def _draw_from(self, pipe: Any, job: DrawingJob, pictures: Sequence[Image]) -> Tensor:
        """Draw one frame, of shape (1, 3, H, W), conditioned on `pictures` (none: from its prompt alone)."""
        if not pictures and self.calling.unseeing:
            return self.call(sibling(pipe, self.calling.unseeing), [job])
        pixels = job.request.width * job.request.height
        shown = _CONDITIONS[self.checkpoint.pipeline](pictures, pixels, self.family.size_multiple)
        return self.call(pipe, [job], **shown)

    def _characters(self, request: FrameRequest) -> list[Image]:
        given = [(item, self._given(item, request)) for item in request.characters if self._has_picture(item, request)]
        pictures = [
            decode(data) if data is not None else self._drawn[_portrait_key(item, request)] for item, data in given
        ]
        return at_most([*pictures, *map(decode, self._things(request).values())], self.calling.pictures)

    def _things(self, request: FrameRequest) -> dict[str, bytes]:
        """The pictures that a request brings of its props."""
        return {name: data for name, data in request.pictures if name in {item.name for item in request.props}}

    def _given(self, character: Character, request: FrameRequest) -> bytes | None:
        """The picture that a person gave of a character: the one on its sheet, else the renderer's own."""
        return dict(request.pictures).get(character.name) or self.references.get(character.name)

    def _has_picture(self, character: Character, request: FrameRequest) -> bool:
        return self.options.portraits or self._given(character, request) is not None

    def _draw_portrait(self, loaded: Loaded, character: Character, request: FrameRequest) -> None:
        """Draw `character` alone, from its anchor prompt, with the frame's seed, style and size."""
        key = _portrait_key(character, request)
        if key in self._drawn:
            self._drawn.move_to_end(key)
            return
        alone = replace(request, prompt=character.anchor_prompt or character.appearance, characters=(), composed=False)
        with self.device_failures():
            job = DrawingJob(alone, self.encode_with(loaded, alone, ()))
            image = self._draw_from(loaded.pipe, job, ())[0]
        self._drawn[key] = decode(self.png(image, alone))


def _one_picture(pictures: Sequence[Image], pixels: int, step: int) -> dict[str, object]:
    """FLUX Kontext: one picture of about the frame's number of pixels."""
    one = scaled(pictures[0], pixels, step) if pictures else None
    return {"image": one, "max_area": pixels, "_auto_resize": False}


def _several_pictures(pictures: Sequence[Image], pixels: int, step: int) -> dict[str, object]:
    """FLUX.2: pictures of about the frame's number of pixels each."""
    return {"image": [scaled(picture, pixels, step, _SMALLEST_PICTURE) for picture in pictures] or None}


def _pictures_as_they_are(pictures: Sequence[Image], pixels: int, step: int) -> dict[str, object]:
    """Qwen-Image-Edit-Plus: the pipeline scales them to the sizes that the model was trained with."""
    return {"image": list(pictures) or None}


_CONDITIONS: Mapping[str, Callable[[Sequence[Image], int, int], dict[str, object]]] = {
    "FluxKontextPipeline": _one_picture,
    "Flux2Pipeline": _several_pictures,
    "Flux2KleinPipeline": _several_pictures,
    "Flux2KleinKVPipeline": _several_pictures,
    "QwenImageEditPlusPipeline": _pictures_as_they_are,
}


def _portrait_key(character: Character, request: FrameRequest) -> tuple[object, ...]:
    prompt = character.anchor_prompt or character.appearance
    return (prompt, request.style, request.negative_prompt, request.seed, request.width, request.height)


def _worded(kind: str, prompt: str, names: Sequence[str], neighbours: int = 0) -> str:
    """Return `prompt` with what the pictures are."""
    return load_prompt(f"renderers/kontext_{kind}").render(prompt=prompt, names=list(names), neighbours=neighbours)
