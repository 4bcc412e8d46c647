"""The base of all diffusion renderers: a checkpoint, a place in memory, prompts read once, frames drawn in batches."""

from __future__ import annotations

import io
import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from katha.composing import left_out
from katha.errors import BlankFrameError, RenderError, UnfitFrameError, UsageError
from katha.jsonio import digest
from katha.models.checkpoints import best_device, device_models, free_bytes, require_local, sound_configuration
from katha.pictures import decode
from katha.protocols import Capabilities, FrameRequest, Renderer
from katha.renderers.diffusion.checkpoint import Checkpoint, find_checkpoint, packings_of
from katha.renderers.diffusion.memory import (
    Encoded,
    Loaded,
    Lora,
    PipelinePool,
    apply_loras,
    find_loras,
    load_pipeline,
    process_pool,
    sibling,
    unwarned,
)
from katha.renderers.diffusion.options import Calling, CheckpointFamily, DiffusionOptions, Rung, Variant, diffusion_data
from katha.renderers.diffusion.placement import Frames, MemoryNeed, apply_rung, check_fits, needs_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

T = TypeVar("T")
_FLAT = 2 / 255
_END = object()


def ahead(items: Generator[T, None, None], hurry: Callable[[], None] = lambda: None) -> Generator[T, None, None]:
    """Yield `items`; while one is used, the next is already in the making, in a thread of its own.

    The device draws while the processor writes the picture before. `items` runs in that thread from its beginning to
    its end. hurry: called when nobody waits for the next item any more, so that its making ends soon.
    """
    with ThreadPoolExecutor(1, "katha-draws") as maker:
        coming = maker.submit(next, items, _END)
        try:
            while (item := coming.result()) is not _END:
                coming = maker.submit(next, items, _END)
                yield item  # type: ignore[misc]  # the end is not an item
        finally:
            if not coming.done():
                hurry()
            maker.submit(items.close)


@cache
def installed_version(package: str) -> str:
    """Return the version of a package, looked up once: that takes a millisecond, and every frame's key asks for it."""
    return version(package)


def generator_of(seed: int) -> torch.Generator:
    """Return a private generator on the CPU: the same noise on every device, and torch's global one is not touched."""
    import torch

    return torch.Generator("cpu").manual_seed(seed)


def frame_name(request: FrameRequest) -> str:
    """Return what a request draws, in words."""
    return f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"


def frame_prompt(request: FrameRequest) -> str:
    """Return what is drawn: the prompt, then the board's style, which a composed one has in its place."""
    prompt, style = request.prompt, "" if request.composed else request.style
    return f"{prompt.rstrip().rstrip('.,')}, {style}" if style else prompt


def token_count(tokenizer: Any, text: str) -> int:
    """Return how many tokens `text` has, without start and end tokens."""
    return len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


@dataclass(frozen=True)
class DrawingJob:
    """One frame ready to be drawn: its request and its encoded prompt. Jobs with the same `kind` may share a batch."""

    request: FrameRequest
    encoded: Encoded

    @property
    def kind(self) -> tuple[object, ...]:
        """Size in pixels, shapes of the embeddings, and whether it follows a layout."""
        shapes = tuple((name, tuple(value.shape[1:])) for name, value in sorted(self.encoded.items()))
        return (self.request.width, self.request.height, shapes, self.request.guide is not None)


class DiffusionRenderer(Renderer):
    """Base of the renderers that draw with a diffusers pipeline on this machine: a subclass names its `family_name` and
    its options, counts a prompt's tokens and encodes it."""

    family_name: ClassVar[str]
    renderer_name: ClassVar[str]
    options_class: ClassVar[type[DiffusionOptions]] = DiffusionOptions
    options: DiffusionOptions
    capabilities: Capabilities = Capabilities(default_size=(1024, 1024))

    def __init__(self, argument: str | None = None, options: DiffusionOptions | None = None) -> None:
        """Find the checkpoint; nothing is loaded.

        argument: a diffusers folder, a single file, or OWNER/NAME of the hub; the family's own model unless told.

        Raises:
            MissingExtraError: a package is missing. UsageError: no such checkpoint, adapter or option value.
        """
        require_local(f"The renderer {self.renderer_name!r}", diffusion_data().packages)
        self.options = options or self.options_class()
        self.family: CheckpointFamily = diffusion_data().families[self.family_name]
        self.checkpoint: Checkpoint = find_checkpoint(self.family, argument, self.options)
        if self.family.denoiser not in self.checkpoint.components and "unet" in self.checkpoint.components:
            self.family = replace(self.family, denoiser="unet")
        self.packings = packings_of(self.checkpoint, self.options)
        self._check_device()
        self.loras: tuple[Lora, ...] = find_loras(self.options.lora)
        with sound_configuration(self.checkpoint.name):
            self.facts = self.checkpoint.facts(self.family.denoiser)
            own, side = self.variant(), self._native_side()
        self.steps = own.steps if self.options.steps is None else self.options.steps
        self.guidance = own.guidance if self.options.guidance is None else self.options.guidance
        self.scheduler = self.options.scheduler or own.scheduler
        self.prompt_tokens = own.prompt_tokens
        self.calling: Calling = self.calling_of()
        self.capabilities = replace(
            type(self).capabilities,
            size_multiple=self.family.size_multiple,
            default_size=(side, side),
            prompt_family=own.prompt_family,
            guide=type(self).capabilities.guide and bool(self.calling.layout) and self.steps > 1,
        )
        self._pool: PipelinePool = process_pool()
        self._remarks: list[str] = []
        if own.when.keys() & {"name", "trailing"} and (self.options.steps, self.options.guidance) == (None, None):
            told = f"{self.steps} steps and guidance {self.guidance:g}"
            self._remarks.append(f"{self.checkpoint.name!r} is drawn with {told}, as a checkpoint of its kind.")
        self._told: set[str] = set()

    def variant(self) -> Variant:
        """Return the settings of the checkpoint's kind."""
        return self.family.variant(self.facts)

    def calling_of(self) -> Calling:
        """Return how the pipeline's class is called."""
        return diffusion_data().calls[self.checkpoint.pipeline]

    @cached_property
    def device(self) -> str:
        """Return where it draws."""
        return self.options.device or best_device()

    @cached_property
    def dtype(self) -> str:
        """Return what it computes in: float32 on a CPU, else bfloat16, and float16 for SDXL, which was published in it;
        packed weights may have a dtype of their own."""
        own = "float16" if self.family_name == "sdxl" else "bfloat16"
        packed = next((packing.dtype for packing in self.packings if packing.dtype), None)
        return self.options.dtype or packed or ("float32" if self.device.startswith("cpu") else own)

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings and versions: everything that can change the pixels."""
        options = self.options
        packed = {"packing": dict(self.checkpoint.packing)} if self.packings else {}
        packages = ("torch", "diffusers", "transformers", *sorted({one.package for one in self.packings}))
        return {
            "name": self.renderer_name,
            "pipeline": self.checkpoint.pipeline,
            "revision": self.checkpoint.revision,
            "variant": options.variant,
            "device": self.device.split(":")[0],
            "dtype": self.dtype,
            "quantized": options.memory == "quantized",
            "vae_tiling": options.vae_tiling,
            "steps": self.steps,
            "guidance": self.guidance,
            "scheduler": self.scheduler,
            "lora": [dict(lora.spec()) for lora in self.loras],
            "batch": options.batch,
            "versions": {name: installed_version(name) for name in packages},
            "negative": options.negative,
            **packed,
            **options.of_the_family(),
        }

    @property
    def strength(self) -> float | None:
        """The share of the steps that are drawn over a layout, None for the model's own default."""
        return None

    def guided_spec(self) -> Mapping[str, Any]:
        """Return which class begins with a layout, and how many steps are drawn over it."""
        drawn, _ = self.calling.begun(self.steps, self.strength)
        return {"pipeline": self.calling.layout, "steps": drawn}

    def tell(self, requests: Sequence[FrameRequest]) -> None:
        """Remember to say, once, what the prompts of these frames have no room for, and what they have no use for."""
        idle = self.strength is not None and all(request.guide is None for request in requests)
        said = [*left_out(requests), *(["The option strength changes nothing without --guide."] if idle else [])]
        fresh = [text for text in said if text not in self._told]
        self._told.update(fresh)
        self._remarks += fresh

    def remarks(self) -> Sequence[str]:
        """Return that the model fits, once it was loaded, and what prompts have no room for."""
        said, self._remarks = self._remarks, []
        return said

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order; those of a batch come together.

        Raises:
            UsageError: a size or prompt that the model cannot take, or too little memory, before anything is drawn.
            BlankFrameError: a frame is black or not a number. RenderError: the device failed.
        """
        if not requests:
            return
        self.tell(requests)
        for request in requests:
            self.check(request)
        with self.pipeline(requests) as loaded:
            jobs = [DrawingJob(request, self.encode(loaded, request)) for request in requests]
        groups = list(_grouped(jobs, self.options.batch))
        images = self._images(requests, groups)
        with closing(images if len(groups) == 1 else ahead(images, self._pool.interrupt)) as drawn:
            for group, batch in zip(groups, drawn, strict=True):
                for job, image in zip(group, batch, strict=True):
                    yield self.png(image, job.request)

    def _images(
        self, requests: Sequence[FrameRequest], groups: Sequence[Sequence[DrawingJob]]
    ) -> Generator[Tensor, None, None]:
        """Yield the images of each group, on the CPU."""
        for group in groups:
            with self.pipeline(requests) as loaded, self.device_failures(), unwarned("diffusers"):
                images = self.draw(loaded.pipe, group).cpu()
            yield images

    def prepare(self, pipe: Any) -> None:
        """Add what is drawn with to a pipeline that was just loaded, LoRA adapters on it; it is on the host still."""

    @abstractmethod
    def count_tokens(self, text: str) -> int:
        """Return how many of the model's `prompt_tokens` a prompt takes."""

    @abstractmethod
    def encode(self, loaded: Loaded, request: FrameRequest) -> Encoded:
        """Return the pipeline's arguments for the frame's prompts, each of shape (1, ...), on the CPU."""

    def draw(self, pipe: Any, jobs: Sequence[DrawingJob]) -> Tensor:
        """Draw one batch: images of shape (B, 3, H, W) with values 0 to 1."""
        return self.call(pipe, jobs)

    def call(self, pipe: Any, jobs: Sequence[DrawingJob], **more: object) -> Tensor:
        """Return what the pipeline makes of the jobs' embeddings, each frame with its own noise: images of shape
        (B, 3, H, W) with values 0 to 1. more: arguments of the pipeline."""
        request = jobs[0].request
        if request.guide is not None and self.capabilities.guide:
            pipe, more = sibling(pipe, self.calling.layout), {**more, **self._layouts(jobs)}
        stacked = self.stacked(jobs, self.device)
        told = {"width": request.width, "height": request.height, "num_inference_steps": self.steps}
        generators = [generator_of(job.request.seed) for job in jobs]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`upcast_vae` is deprecated")  # the pipeline's own call
            given = {**stacked, **told, **self.guiding(jobs), **more}
            return self.taken(pipe(**given, generator=generators, output_type="pt"))

    def taken(self, called: Any) -> Tensor:
        """Return the frames of what a pipeline gave, images of shape (B, 3, H, W)."""
        images: Tensor = called.images
        return images

    def _layouts(self, jobs: Sequence[DrawingJob]) -> dict[str, object]:
        """The arguments by which frames begin with their layouts: pictures of their size, under so much noise."""
        from PIL import Image, ImageOps

        sized = [(job.request, (job.request.width, job.request.height)) for job in jobs]
        shown = [ImageOps.fit(decode(one.guide or b""), size, Image.Resampling.LANCZOS) for one, size in sized]
        return {"image": shown, "strength": self.calling.begun(self.steps, self.strength)[1]}

    def stacked(self, jobs: Sequence[DrawingJob], device: Any) -> dict[str, object]:
        """Return the pipeline's arguments for the jobs' embeddings, on `device`: each of shape (B, ...)."""
        import torch

        return {name: torch.cat([job.encoded[name] for job in jobs]).to(device) for name in jobs[0].encoded}

    def guiding(self, jobs: Sequence[DrawingJob]) -> dict[str, float]:
        """Return the pipeline's arguments for guidance."""
        return {"guidance_scale": self.guidance}

    def png(self, image: Tensor, request: FrameRequest) -> bytes:
        """Return the PNG of an image of shape (3, H, W) and values 0 to 1, rounded to 8 bits as diffusers rounds.

        Raises:
            BlankFrameError: it holds NaN (an overflow in half precision), or is black or another colour all over.
        """
        import torch
        from diffusers.image_processor import VaeImageProcessor as Processor

        what = f"The renderer {self.renderer_name!r} drew {frame_name(request)} with seed {request.seed} as"
        if not bool(torch.isfinite(image).all()):
            hint = "Another seed may do; if all fail, set dtype=bfloat16 or float32."
            raise BlankFrameError(f"{what} NaN.", hint=hint)
        low, high = image.amin(dim=(1, 2)), image.amax(dim=(1, 2))
        if float((high - low).max()) <= _FLAT:
            raise BlankFrameError(f"{what} one colour.", hint="Another seed or prompt may do.")
        buffer = io.BytesIO()
        Processor.numpy_to_pil(Processor.pt_to_numpy(image[None]))[0].save(buffer, "PNG")
        return buffer.getvalue()

    def negative_of(self, request: FrameRequest) -> str | None:
        """Return what the frame shall not show, None where the model is not asked for that."""
        return ", ".join(part for part in (request.negative_prompt, self.options.negative) if part)

    def check(self, request: FrameRequest) -> None:
        """Refuse a frame that the model cannot draw: its size (UsageError), or its prompt, which another frame does not
        have (UnfitFrameError); the limit is named."""
        width, height = request.width, request.height
        step, native = self.family.size_multiple, self._native_side() ** 2
        who = f"The renderer {self.renderer_name!r} cannot draw {width}x{height}"
        if width < step or height < step or width % step or height % step:
            raise UsageError(f"{who}.", hint=f"Sides are multiples of {step}.")
        low, high = (round(share * native) for share in self.family.pixels)
        if not self.options.any_size and not low <= width * height <= high:
            raise UsageError(
                f"{who}: the model was trained for about {native:,} pixels.",
                hint=f"Choose {low:,} to {high:,} pixels, or give any_size=true.",
            )
        if not self.options.any_size and max(width, height) > self.family.aspect * min(width, height):
            raise UsageError(
                f"{who}: one side is more than {self.family.aspect:g} times the other.",
                hint="Choose a squarer size, or give any_size=true.",
            )
        self.check_prompt(request)

    def check_prompt(self, request: FrameRequest) -> None:
        """Refuse a prompt that would be cut (UnfitFrameError); both numbers are named."""
        for text in filter(None, (frame_prompt(request), self.negative_of(request))):
            count = self.count_tokens(text)
            if count > self.prompt_tokens:
                raise UnfitFrameError(
                    f"The prompt of {frame_name(request)} has {count} tokens; the model reads {self.prompt_tokens}.",
                    hint=f"Shorten it; it begins {text[:60]!r}.",
                )

    @contextmanager
    def pipeline(self, requests: Sequence[FrameRequest], work: MemoryNeed | None = None) -> Iterator[Loaded]:
        """Context manager: the pipeline in memory and on its rung, for nobody else meanwhile (UsageError where these
        frames do not fit). work: what denoising holds beyond weights."""
        pixels = max(request.width * request.height for request in requests)
        asked = (pixels * self.at_once, work.device if work is not None else 0)
        with self._pool.use(self._key(), self.device, lambda: self._load(pixels, work)) as loaded:
            known = loaded.checked or asked  # what was loaded just now was checked for these frames
            if asked[0] > known[0] or asked[1] > known[1]:
                self._check_memory(pixels, work, loaded=True)
            loaded.checked = (max(asked[0], known[0]), max(asked[1], known[1]))
            yield loaded

    @property
    def at_once(self) -> int:
        """Return how many frames are denoised at once; they are decoded one by one."""
        return self.options.batch

    @property
    def halves(self) -> int:
        """Rows of the denoiser's batch for a frame."""
        return 1

    @property
    def pictures(self) -> int:
        """Return how many pictures a frame is drawn from, at most."""
        return 0

    @property
    def beside(self) -> tuple[Sequence[Path], Sequence[Path]]:
        """Files of weights that are no part of the checkpoint: adapters on the denoiser, and what reads pictures on the
        host."""
        return [lora.file for lora in self.loras], ()

    @contextmanager
    def device_failures(self) -> Iterator[None]:
        """Context manager: a device that runs out of memory is a `RenderError` that says what to do."""
        import torch

        try:
            yield
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise RenderError(
                f"The device ran out of memory on the rung {self.options.memory!r}.",
                hint="Give a lower --memory rung, vae_tiling=true, a smaller batch or smaller frames.",
            ) from error

    def _check_memory(self, pixels: int, work: MemoryNeed | None, *, loaded: bool) -> Mapping[Rung, MemoryNeed]:
        """Say that drawing fits into memory, other models let go if need be, or refuse; gives what each rung needs."""
        options = self.options
        frames = Frames(
            pixels,
            batch=self.at_once,
            halves=self.halves,
            pictures=self.pictures,
            tokens=self.prompt_tokens,
            tiling=options.vae_tiling,
            work=work,
        )
        rung = options.memory if loaded else None
        added, read = self.beside
        denoiser = self.family.denoiser
        with sound_configuration(self.checkpoint.name):
            needs = needs_of(
                self.checkpoint, self.dtype, frames, denoiser=denoiser, loaded=rung, added=added, read=read
            )
        try:
            fits = check_fits(needs, options.memory, self.device)
        except UsageError:
            if not device_models().make_room(self.device, self._pool):
                raise
            fits = check_fits(needs, options.memory, self.device)
        self._remarks.append(fits)
        return needs

    def _load(self, pixels: int, work: MemoryNeed | None) -> Loaded:
        options, device = self.options, self.device
        needs = self._check_memory(pixels, work, loaded=False)[options.memory]
        stays = needs.resident <= (free_bytes(device) or 0)
        pipe = load_pipeline(self.checkpoint, dtype=self.dtype, scheduler=self.scheduler)
        apply_loras(pipe, self.loras)
        self.prepare(pipe)
        denoiser, tiling = self.family.denoiser, options.vae_tiling
        with unwarned("diffusers"):
            parking = apply_rung(pipe, options.memory, device, self.dtype, denoiser, tiling=tiling, resident=stays)
        return Loaded(pipe, parking)

    def _check_device(self) -> None:
        """Refuse packed weights that diffusers reads on another kind of device only (UsageError)."""
        for (part, method), packing in zip(self.checkpoint.packing.items(), self.packings, strict=True):
            if packing.device is not None and self.device not in (packing.device, f"{packing.device}:0"):
                raise UsageError(
                    f"{self.checkpoint.name!r} holds a {part} that is packed by {method}, which diffusers "
                    f"reads on {packing.device} only, not on {self.device!r}.",
                    hint="Give the checkpoint of plain floats, or its GGUF file; CUDA_VISIBLE_DEVICES chooses a card.",
                )

    def _key(self) -> str:
        """Return what a pipeline in memory must have in common with this renderer to be shared, hashed."""
        options, checkpoint = self.options, self.checkpoint
        weights = [checkpoint.pipeline, checkpoint.revision, str(checkpoint.file or checkpoint.folder), options.variant]
        place = [self.device, self.dtype, options.memory, options.vae_tiling, self.scheduler]
        return digest([*weights, *place, [dict(lora.spec()) for lora in self.loras], self.spec().get("speed")])

    def _native_side(self) -> int:
        """Return the side in pixels of the square that the weights were trained for."""
        if self.family.native is not None:
            return self.family.native
        side: int = self.checkpoint.config(self.family.denoiser).get("sample_size", 128)
        return side << self.checkpoint.latent_halvings


def _grouped(jobs: Sequence[DrawingJob], size: int) -> Iterator[list[DrawingJob]]:
    """Yield neighbouring jobs that may share a batch, at most `size` together."""
    for _, alike in groupby(jobs, key=lambda job: job.kind):
        group = list(alike)
        yield from (group[at : at + size] for at in range(0, len(group), size))
