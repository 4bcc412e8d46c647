"""`kontext`: frames drawn from pictures. A bridge is drawn from both of its neighbours, a scene from its characters'
reference images; a character without one gets a portrait, drawn once from its anchor prompt."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from katha.configs import load_prompt
from katha.errors import SplitFrameError
from katha.pictures import decode
from katha.protocols import BoardContext, Capabilities, FrameRequest
from katha.renderers.diffusion.flux import FluxOptions, FluxRenderer
from katha.renderers.diffusion.memory import Encoded, Loaded, sibling
from katha.renderers.diffusion.options import at_least
from katha.renderers.diffusion.renderer import Job
from katha.renderers.references import CharacterPictures, at_most
from katha.schema import Character

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


_PORTRAITS = 64
_OTHER_SEED = 1_000_003
"""Between the seeds of one bridge's attempts, so that they are nobody else's."""
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
    redraws: int = 2
    """How often a bridge that came out as two pictures is drawn again, each time with another seed; 0: never looked."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, redraws=self.redraws)


class KontextRenderer(FluxRenderer):
    """Frames drawn from pictures: `kontext:FOLDER` or `kontext:OWNER/NAME` (Kontext, FLUX.2, Qwen-Image-Edit-Plus and
    2.1, JoyImage-Edit-Plus)."""

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
        """How many pictures a frame is drawn from, at most."""
        return self.calling.pictures

    def check_prompt(self, request: FrameRequest) -> None:
        """Refuse a prompt that is too long once it says what the pictures are (UnfitFrameError)."""
        names = [character.name for character in request.characters]
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
        for character in request.characters:
            if self.options.portraits and self._given(character, request) is None:
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
        given = {item.name: self._given(item, request) for item in request.characters}
        known = {name: data for name, data in given.items() if data is not None}
        worded = _worded("bridge", request.prompt, list(known), len(around))
        pictures = [*map(decode, around), *map(decode, known.values())]
        stitched = len(pictures) > self.calling.pictures
        shown = at_most(pictures, self.calling.pictures)
        with self.pipeline([request]) as loaded, self.device_failures():
            encoded = self.encode_with(loaded, replace(request, prompt=worded), shown)
            # Only a model that was shown a stitched picture is known to stitch: others draw once.
            for attempt in range((self.options.redraws if stitched else 0) + 1):
                job = Job(replace(request, seed=(request.seed + attempt * _OTHER_SEED) % 2**32), encoded)
                png = self.png(self._draw_from(loaded.pipe, job, shown)[0], job.request)
                fault = _split(decode(png), pictures) if stitched and self.options.redraws else None
                if fault is None:
                    return png
                self._remarks.append(f"A bridge with seed {job.request.seed} came out as {fault}.")
        raise SplitFrameError(
            f"The bridge came out as {fault} with each of {self.options.redraws + 1} seeds.",
            hint="FLUX.2 and Qwen-Image-Edit take both neighbours apart: kontext:MODEL. redraws=0 takes it as it is.",
        )

    def _draw_from(self, pipe: Any, job: Job, pictures: Sequence[Image]) -> Tensor:
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
        return at_most(pictures, self.calling.pictures)

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
            job = Job(alone, self.encode_with(loaded, alone, ()))
            image = self._draw_from(loaded.pipe, job, ())[0]
        self._drawn[key] = decode(self.png(image, alone))


def _split(picture: Image, pictures: Sequence[Image]) -> str | None:
    """Return how a frame that was drawn from neighbours is more than one picture, None where it is one."""
    if len(pictures) > 1 and repeats(picture, pictures[0], pictures[1]):
        return "its two neighbours side by side"
    seam = find_seam(picture)
    return f"two pictures {seam}" if seam is not None else None


def _one_picture(pictures: Sequence[Image], pixels: int, step: int) -> dict[str, object]:
    """FLUX Kontext: one picture of about the frame's number of pixels."""
    one = scaled(pictures[0], pixels, step) if pictures else None
    return {"image": one, "max_area": pixels, "_auto_resize": False}


def _several_pictures(pictures: Sequence[Image], pixels: int, step: int) -> dict[str, object]:
    """FLUX.2: pictures of about the frame's number of pixels each."""
    return {"image": [scaled(picture, pixels, step, _SMALLEST_PICTURE) for picture in pictures] or None}


def _pictures_as_they_are(pictures: Sequence[Image], pixels: int, step: int) -> dict[str, object]:
    """Qwen-Image-Edit-Plus and 2.1: the pipeline scales them to the sizes that the model was trained with."""
    return {"image": list(pictures) or None}


def _pictures_of_a_sample(pictures: Sequence[Image], pixels: int, step: int) -> dict[str, object]:
    """JoyImage-Edit-Plus: the same, and the argument has another name."""
    return {"images": list(pictures) or None}


_CONDITIONS: Mapping[str, Callable[[Sequence[Image], int, int], dict[str, object]]] = {
    "FluxKontextPipeline": _one_picture,
    "Flux2Pipeline": _several_pictures,
    "Flux2KleinPipeline": _several_pictures,
    "Flux2KleinKVPipeline": _several_pictures,
    "QwenImageEditPlusPipeline": _pictures_as_they_are,
    "QwenImage21Pipeline": _pictures_as_they_are,
    "JoyImageEditPlusPipeline": _pictures_of_a_sample,
}


def _portrait_key(character: Character, request: FrameRequest) -> tuple[object, ...]:
    prompt = character.anchor_prompt or character.appearance
    return (prompt, request.style, request.negative_prompt, request.seed, request.width, request.height)


def _worded(kind: str, prompt: str, names: Sequence[str], neighbours: int = 0) -> str:
    """Return `prompt` with what the pictures are."""
    return load_prompt(f"renderers/kontext_{kind}").render(prompt=prompt, names=list(names), neighbours=neighbours)


# A model that draws from two pictures stitched into one may stitch what it draws. Such a picture is told by its pixels,
# the same way every time: a line from edge to edge in the middle, which nearly every row crosses by a jump far above
# those of its surroundings; a narrow band of one colour; or halves that are the two pictures that it was given.

_SIDE = 256
"""Pixels across which a picture is looked at: noise is averaged away, a line stays a line."""
_SMALLEST = 128
"""A picture with a side below this is too coarse to be told."""
_MIDDLE = (0.3, 0.7)
"""Where a seam is looked for, as a share of the side."""
_STEP = 10.0
"""Levels of 255 that a row jumps by at a seam."""
_ROWS = 0.93
"""The share of all rows that have to jump in one place."""
_ABOVE = 2.0
"""How many times the jumps there exceed those of the columns around, at their median and at their lower quartile."""
_QUIET = 1.5
"""Levels that are added to the jumps around, so that a picture without texture has no infinite ratio."""
_FLAT = 4.0
"""The deviation in levels below which a line of pixels is one colour."""
_BANDS = 10
"""The widest band between two pictures, in pixels of _SIDE."""

_HALF = 24
"""Pixels across which a half is compared with a picture."""
_ALIKE = 0.75
"""The correlation from which a half is that picture."""

Seam = Literal["side by side", "one over the other"]


def find_seam(picture: Image) -> Seam | None:
    """Return how a picture falls into two, or None where it is one."""
    from PIL import Image as Pillow

    if min(picture.size) < _SMALLEST:
        return None
    small = picture.convert("RGB").resize((_SIDE, _SIDE), Pillow.Resampling.BOX)
    pixels = np.asarray(small, dtype=np.float64)
    if _falls_apart(pixels):
        return "side by side"
    return "one over the other" if _falls_apart(pixels.transpose(1, 0, 2)) else None


def _falls_apart(pixels: NDArray[np.float64]) -> bool:
    """Return whether a column divides `pixels` of shape (H, W, 3) into a left and a right picture."""
    first, last = (round(share * pixels.shape[1]) for share in _MIDDLE)
    return _has_step(pixels, first, last) or _has_band(pixels, first, last)


def _has_step(pixels: NDArray[np.float64], first: int, last: int) -> bool:
    """Return whether nearly every row jumps at one column, by far more than at the columns around it."""
    jumps = np.abs(pixels[:, 2:] - pixels[:, :-2]).max(axis=2)  # over two pixels, because a decoder softens an edge
    places = np.flatnonzero((jumps > _STEP).mean(axis=0) >= _ROWS)
    quarters = np.quantile(jumps, (0.25, 0.5), axis=0)
    for at in places[(first <= places) & (places < last)]:
        beside = np.r_[max(0, at - 24) : at - 3, at + 4 : min(jumps.shape[1], at + 25)]
        if (quarters[:, at] >= _ABOVE * (np.median(quarters[:, beside], axis=1) + _QUIET)).all():
            return True
    return False


def _has_band(pixels: NDArray[np.float64], first: int, last: int) -> bool:
    """Return whether a narrow run of columns is of one colour from top to bottom, and the columns around it are not."""
    flat = pixels.std(axis=0).max(axis=1) < _FLAT
    at = first
    while at < last:
        if not flat[at]:
            at += 1
            continue
        end = at
        while end < len(flat) and flat[end]:
            end += 1
        sides = (pixels[:, max(0, at - 4)], pixels[:, min(pixels.shape[1] - 1, end + 3)])
        if end - at <= _BANDS and all(float(side.std(axis=0).max()) > 3 * _FLAT for side in sides):
            return True
        at = end
    return False


def repeats(picture: Image, first: Image, second: Image) -> bool:
    """Return whether the left half of a picture is `first` and the right half `second`, cut or squeezed."""
    width, height = picture.size
    halves = (picture.crop((0, 0, width // 2, height)), picture.crop((width - width // 2, 0, width, height)))
    return all(
        max(_likeness(half, given), _likeness(half, _cut(given, half.width / half.height))) >= _ALIKE
        for half, given in zip(halves, (first, second), strict=True)
    )


def _cut(picture: Image, shape: float) -> Image:
    """Return the middle of a picture, of another width over height."""
    from PIL import ImageOps

    height = 256
    return ImageOps.fit(picture, (max(1, round(height * shape)), height))


def _likeness(one: Image, other: Image) -> float:
    """Return the correlation of two pictures' brightness, -1 to 1; 0 where one of them has none to compare."""
    from PIL import Image as Pillow

    small = [item.convert("L").resize((_HALF, _HALF), Pillow.Resampling.BOX) for item in (one, other)]
    first, second = (np.asarray(item, dtype=np.float64).ravel() for item in small)
    if min(first.std(), second.std()) < 1:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])
