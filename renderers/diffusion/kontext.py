"""`kontext`: frames drawn from pictures. A bridge is drawn from both of its neighbours, a scene from its characters'
reference images; a character without one gets a portrait, drawn once from its anchor prompt."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.configs import load_prompt
from katha.errors import InputFileError, UsageError
from katha.jsonio import sha256_hex
from katha.pictures import decode, read_picture
from katha.protocols import BoardContext, Capabilities, FrameRequest
from katha.renderers.diffusion.flux import FluxOptions, FluxRenderer
from katha.renderers.diffusion.memory import Encoded, Loaded
from katha.renderers.diffusion.renderer import Job
from katha.schema import Character

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


_PORTRAITS = 64
_SMALLEST_PICTURE = 64
"""Sides below this many pixels are refused by FLUX.2's own input check."""
_SMALLEST = 16
_LONGEST = 8
"""The longest side over the shortest that FLUX.2's own input check takes."""


def find_references(given: Sequence[str]) -> dict[str, bytes]:
    """Return the pictures of `NAME=FILE`, as bytes, by character name; a name twice or no picture is a UsageError."""
    found: dict[str, bytes] = {}
    for item in given:
        name, equals, file = (part.strip() for part in item.partition("="))
        if not (name and equals and file):
            raise UsageError(f"The reference {item!r} is not NAME=FILE.", hint="For example reference=lion=lion.png.")
        if name in found:
            raise UsageError(f"The character {name!r} has two references.", hint="Give one picture a character.")
        found[name] = _read(name, Path(file).expanduser())
    return found


def _read(name: str, path: Path) -> bytes:
    where = f"The reference of {name!r} ({str(path)!r})"
    data = read_picture(path, where)
    picture = decode(data, where)
    hint = ""
    if min(picture.size) < _SMALLEST:
        hint = f"Give a picture of at least {_SMALLEST}x{_SMALLEST}."
    elif max(picture.size) > _LONGEST * min(picture.size):
        hint = f"Give a picture of which no side is more than {_LONGEST} times the other."
    if hint:
        size = f"{picture.width}x{picture.height} pixels"
        raise InputFileError(f"The reference of {name!r}, {str(path)!r}, has {size}.", hint=hint)
    return data


def joined(pictures: Sequence[Image]) -> Image:
    """Return one picture of all, each as tall as the first: in a row, from four on in rows, nearly a square."""
    from PIL import Image

    columns = len(pictures) if len(pictures) < 4 else math.ceil(len(pictures) ** 0.5)
    height = pictures[0].height
    fitted = [one.resize((max(1, round(one.width * height / one.height)), height)) for one in pictures]
    rows = [fitted[start : start + columns] for start in range(0, len(fitted), columns)]
    whole = Image.new("RGB", (max(sum(one.width for one in row) for row in rows), height * len(rows)), "white")
    for number, row in enumerate(rows):
        left = 0
        for one in row:
            whole.paste(one, (left, number * height))
            left += one.width
    return whole


def at_most(pictures: Sequence[Image], count: int) -> list[Image]:
    """Return `count` pictures at most: those that are too many stand together in the last one."""
    if len(pictures) <= count:
        return list(pictures)
    return [*pictures[: count - 1], joined(pictures[count - 1 :])]


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
    reference: tuple[str, ...] = ()
    """NAME=FILE, a picture of the plan's character NAME."""
    portraits: bool = True
    """Draw a picture of every character that has none, and use it in the same way."""


class KontextRenderer(FluxRenderer):
    """Frames drawn from pictures: `kontext:FOLDER` or `kontext:OWNER/NAME` (Kontext, FLUX.2, Qwen-Image-Edit-Plus)."""

    family_name = "kontext"
    renderer_name = "kontext"
    options_class = KontextOptions
    options: KontextOptions
    capabilities = Capabilities(
        identity="bank", insertion="reference", default_size=(1024, 1024), size_multiple=16, prompt_tokens=448
    )
    wording_tokens = 64

    def __init__(self, argument: str | None = None, options: KontextOptions | None = None) -> None:
        """Find the checkpoint and read the reference images; nothing is loaded."""
        super().__init__(argument, options)
        self.references = find_references(self.options.reference)
        self._drawn: OrderedDict[tuple[object, ...], Image] = OrderedDict()

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings, references and versions: everything that can change the pixels."""
        spec = {name: value for name, value in super().spec().items() if name not in ("reference", "portraits")}
        return {
            **spec,
            "references": {name: sha256_hex(data) for name, data in sorted(self.references.items())},
            "portraits": self.options.portraits,
            "prompts": [load_prompt(f"renderers/kontext_{kind}").sha256 for kind in ("scene", "bridge")],
        }

    @property
    def pictures(self) -> int:
        """How many pictures a frame is drawn from, at most."""
        return self.calling.pictures

    def check_prompt(self, request: FrameRequest) -> None:
        """Refuse a prompt that is too long once it says what the pictures are (UnfitFrameError)."""
        names = [character.name for character in request.characters]
        for kind in ("scene", "bridge"):
            super().check_prompt(replace(request, prompt=_worded(kind, request.prompt, names, 2)))

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Draw as every diffusion renderer does; portraits of earlier boards are dropped where there are many."""
        while len(self._drawn) > _PORTRAITS:
            self._drawn.popitem(last=False)
        return super().render_board(requests)

    def encode(self, loaded: Loaded, request: FrameRequest) -> Encoded:
        """Return the embeddings of a scene's prompt; portraits that it needs are drawn first."""
        names = [character.name for character in request.characters if self._has_picture(character)]
        for character in request.characters:
            if self.options.portraits and character.name not in self.references:
                self._draw_portrait(loaded, character, request)
        worded = _worded("scene", request.prompt, names) if names else request.prompt
        return self.encode_with(loaded, replace(request, prompt=worded), self._characters(request))

    def draw(self, pipe: Any, jobs: Sequence[Job]) -> Tensor:
        """Draw scenes, one at a time, each from its characters' pictures."""
        import torch

        return torch.cat([self._draw_from(pipe, job, self._characters(job.request)) for job in jobs])

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return the PNG of a frame drawn from the pictures on both sides of it and from the characters' references."""
        around = context.images[max(0, context.position - 1) : context.position + 1]
        if not around:
            return next(iter(self.render_board([request])))
        self.check(request)
        known = [character for character in request.characters if character.name in self.references]
        worded = _worded("bridge", request.prompt, [character.name for character in known], len(around))
        pictures = [*map(decode, around), *(decode(self.references[item.name]) for item in known)]
        pictures = at_most(pictures, self.calling.pictures)
        with self.pipeline([request]) as loaded, self.device_failures():
            job = Job(request, self.encode_with(loaded, replace(request, prompt=worded), pictures))
            image = self._draw_from(loaded.pipe, job, pictures)[0]
            return self.png(image, request)

    def _draw_from(self, pipe: Any, job: Job, pictures: Sequence[Image]) -> Tensor:
        """Draw one frame, of shape (1, 3, H, W), conditioned on `pictures` (none: from its prompt alone)."""
        if not pictures and self.calling.unseeing:
            return self.call(_sibling(pipe, self.calling.unseeing), [job])
        pixels = job.request.width * job.request.height
        shown = _CONDITIONS[self.checkpoint.pipeline](pictures, pixels, self.family.size_multiple)
        return self.call(pipe, [job], **shown)

    def _characters(self, request: FrameRequest) -> list[Image]:
        pictures = [
            decode(self.references[item.name])
            if item.name in self.references
            else self._drawn[_portrait_key(item, request)]
            for item in request.characters
            if self._has_picture(item)
        ]
        return at_most(pictures, self.calling.pictures)

    def _has_picture(self, character: Character) -> bool:
        return self.options.portraits or character.name in self.references

    def _draw_portrait(self, loaded: Loaded, character: Character, request: FrameRequest) -> None:
        """Draw `character` alone, from its anchor prompt, with the frame's seed, style and size."""
        key = _portrait_key(character, request)
        if key in self._drawn:
            self._drawn.move_to_end(key)
            return
        alone = replace(request, prompt=character.anchor_prompt or character.appearance, characters=())
        with self.device_failures():
            job = Job(alone, self.encode_with(loaded, alone, ()))
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
    return {"image": list(pictures)}


_CONDITIONS: Mapping[str, Callable[[Sequence[Image], int, int], dict[str, object]]] = {
    "FluxKontextPipeline": _one_picture,
    "Flux2Pipeline": _several_pictures,
    "Flux2KleinPipeline": _several_pictures,
    "Flux2KleinKVPipeline": _several_pictures,
    "QwenImageEditPlusPipeline": _pictures_as_they_are,
}


def _sibling(pipe: Any, kind: str) -> Any:
    """Return a pipeline of the class called `kind` with the components (and so the place in memory) of `pipe`."""
    import diffusers

    wanted = getattr(diffusers, kind)
    names, _ = wanted._get_signature_keys(wanted)
    sibling = wanted(**{name: getattr(pipe, name) for name in names})
    sibling.set_progress_bar_config(disable=True)
    return sibling


def _portrait_key(character: Character, request: FrameRequest) -> tuple[object, ...]:
    prompt = character.anchor_prompt or character.appearance
    return (prompt, request.style, request.negative_prompt, request.seed, request.width, request.height)


def _worded(kind: str, prompt: str, names: Sequence[str], neighbours: int = 0) -> str:
    """Return `prompt` with what the pictures are."""
    return load_prompt(f"renderers/kontext_{kind}").render(prompt=prompt, names=list(names), neighbours=neighbours)
