"""What all diffusion renderers share: a checkpoint, a place in memory, prompts read once, frames drawn in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from katha.errors import RenderError, UnfitFrameError, UsageError
from katha.jsonio import digest
from katha.models.checkpoints import process_tenants
from katha.protocols import BoardContext, Capabilities, FrameRequest
from katha.renderers.diffusion.checkpoint import Checkpoint, find_checkpoint
from katha.renderers.diffusion.images import check_frame, to_png
from katha.renderers.diffusion.loading import Lora, apply_loras, best_device, default_dtype, find_loras, load_pipeline
from katha.renderers.diffusion.memory import (
    DTYPES,
    Loaded,
    PipelinePool,
    Rung,
    Work,
    apply_rung,
    check_fits,
    need_of,
    process_pool,
)
from katha.renderers.diffusion.weights import Family, family_named, require_packages, schedulers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Settings:
    """The options that every diffusion renderer has; None means the model's own default."""

    revision: str | None = None
    variant: str | None = None
    base: str | None = None
    download: bool = False
    device: str | None = None
    dtype: str | None = None
    memory: Rung = "full"
    vae_tiling: bool = False
    steps: int | None = None
    guidance: float | None = None
    scheduler: str | None = None
    lora: tuple[str, ...] = ()
    batch: int = 1
    any_size: bool = False


@dataclass(frozen=True)
class Job:
    """One frame ready to be drawn: its request and its encoded prompt. Jobs with the same `kind` may share a batch."""

    request: FrameRequest
    encoded: Mapping[str, Tensor]

    @property
    def kind(self) -> tuple[Any, ...]:
        """Size in pixels and shapes of the embeddings."""
        shapes = tuple((name, tuple(value.shape[1:])) for name, value in sorted(self.encoded.items()))
        return (self.request.width, self.request.height, shapes)


class DiffusionRenderer(ABC):
    """Base of the renderers that draw with a diffusers pipeline on this machine.

    A subclass names its `family` and says how a prompt is checked and encoded, and how a batch is drawn.
    """

    family_name: ClassVar[str]
    renderer_name: ClassVar[str]
    capabilities: Capabilities = Capabilities(default_size=(1024, 1024))

    def __init__(self, argument: str | None, settings: Settings) -> None:
        """Find the checkpoint and check the options; nothing is loaded.

        Raises:
            MissingExtraError: a package is missing. UsageError: no such checkpoint, adapter or option value.
        """
        require_packages(self.renderer_name)
        self.settings = settings
        _check_settings(settings)
        self.family: Family = family_named(self.family_name)
        self.checkpoint: Checkpoint = find_checkpoint(
            self.family, argument, revision=settings.revision, variant=settings.variant, base=settings.base,
            download=settings.download,
        )  # fmt: skip
        self.loras: tuple[Lora, ...] = find_loras(settings.lora)
        own = self.family.variant(self._facts())
        self.steps = own.steps if settings.steps is None else settings.steps
        self.guidance = own.guidance if settings.guidance is None else settings.guidance
        self.prompt_tokens = own.prompt_tokens
        side = self._native_side()
        self.capabilities = replace(
            type(self).capabilities, size_multiple=self.family.size_multiple, default_size=(side, side)
        )
        self._pool: PipelinePool = process_pool()
        self._remarks: list[str] = []

    @cached_property
    def device(self) -> str:
        """Where it draws."""
        return self.settings.device or best_device()

    @cached_property
    def dtype(self) -> str:
        """What it computes in."""
        return self.settings.dtype or default_dtype(self.device, self.family_name)

    def spec(self) -> Mapping[str, Any]:
        """Weights, adapters, settings and versions: everything that can change the pixels."""
        settings = self.settings
        return {
            "name": self.renderer_name,
            "pipeline": self.checkpoint.pipeline,
            "revision": self.checkpoint.revision,
            "variant": settings.variant,
            "device": self.device.split(":")[0],
            "dtype": self.dtype,
            "quantized": settings.memory == "quantized",
            "vae_tiling": settings.vae_tiling,
            "steps": self.steps,
            "guidance": self.guidance,
            "scheduler": settings.scheduler,
            "lora": [dict(lora.spec()) for lora in self.loras],
            "batch": settings.batch,
            "versions": {name: version(name) for name in ("torch", "diffusers", "transformers")},
        }

    def remarks(self) -> Sequence[str]:
        """That the model fits, once it was loaded."""
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
        for request in requests:
            self.check(request)
        with self.pipeline(requests) as loaded:
            jobs = [Job(request, self.encode(loaded, request)) for request in requests]
        for group in _grouped(jobs, self.settings.batch):
            with self.pipeline(requests) as loaded, self.device_failures():
                images = self.draw(loaded.pipe, group)
                processor = loaded.pipe.image_processor
            for job, image in zip(group, images, strict=True):
                check_frame(image, job.request, self.renderer_name)
                yield to_png(image, processor)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """The PNG of one more frame, drawn from its prompt as any frame is; the others are not needed."""
        return next(iter(self.render_board([request])))

    @abstractmethod
    def check_prompt(self, request: FrameRequest) -> None:
        """Refuse a prompt that would be cut (UsageError)."""

    @abstractmethod
    def encode(self, loaded: Loaded, request: FrameRequest) -> Mapping[str, Tensor]:
        """The embeddings that `draw` needs, by name, each of shape (1, ...), on the CPU."""

    @abstractmethod
    def draw(self, pipe: Any, jobs: Sequence[Job]) -> Tensor:
        """One batch: images of shape (B, 3, H, W) with values 0 to 1."""

    def check(self, request: FrameRequest) -> None:
        """Refuse a frame that the model cannot draw.

        Raises:
            UsageError: its size. UnfitFrameError: its prompt, which another frame does not have; the limit is named.
        """
        self._check_size(request.width, request.height)
        try:
            self.check_prompt(request)
        except UsageError as error:
            raise UnfitFrameError(error.message, hint=error.hint) from error

    @contextmanager
    def pipeline(self, requests: Sequence[FrameRequest], work: Work | None = None) -> Iterator[Loaded]:
        """Context manager: the pipeline as `Loaded`, in memory and on its rung, for nobody else meanwhile.

        work: what denoising holds beyond weights.

        Raises:
            UsageError: too little memory for these frames; the number of bytes missing is named.
        """
        pixels = max(request.width * request.height for request in requests)
        asked = (pixels * self.at_once, work.device if work is not None else 0)
        with self._pool.use(self._key(), self.device, lambda: self._load(pixels, work)) as loaded:
            if loaded.checked is None:
                loaded.checked = asked
            elif any(new > old for new, old in zip(asked, loaded.checked, strict=True)):
                self._check(pixels, work, loaded=True)
                loaded.checked = (max(asked[0], loaded.checked[0]), max(asked[1], loaded.checked[1]))
            yield loaded

    @property
    def at_once(self) -> int:
        """How many frames are decoded at once."""
        return self.settings.batch

    def device_failures(self) -> AbstractContextManager[None]:
        """Context manager: a device that runs out of memory is a `RenderError` that says what to do."""
        return _device_failures(self.settings.memory)

    def _check(self, pixels: int, work: Work | None, *, loaded: bool) -> None:
        """Say that drawing fits into memory, other models let go if need be, or refuse."""
        settings = self.settings
        needs = {
            rung: need_of(
                self.checkpoint, rung, self.dtype, pixels, batch=self.at_once, tiling=settings.vae_tiling, work=work,
                loaded=loaded and rung == settings.memory,
            )
            for rung in get_args(Rung)
        }  # fmt: skip
        try:
            fits = check_fits(needs[settings.memory], self.device, needs)
        except UsageError:
            if not process_tenants().make_room(self.device, self._pool):
                raise
            fits = check_fits(needs[settings.memory], self.device, needs)
        self._remarks.append(fits)

    def _load(self, pixels: int, work: Work | None) -> Any:
        settings = self.settings
        self._check(pixels, work, loaded=False)
        pipe = load_pipeline(self.checkpoint, dtype=self.dtype, scheduler=settings.scheduler)
        apply_loras(pipe, self.loras)
        apply_rung(pipe, settings.memory, self.device, self.dtype, self.family.denoiser, tiling=settings.vae_tiling)
        return pipe

    def _key(self) -> str:
        """What a pipeline in memory must have in common with this renderer to be shared."""
        settings, checkpoint = self.settings, self.checkpoint
        return digest(
            [
                checkpoint.pipeline, checkpoint.revision, str(checkpoint.file or checkpoint.folder), settings.variant,
                self.device, self.dtype, settings.memory, settings.vae_tiling, settings.scheduler,
                [dict(lora.spec()) for lora in self.loras],
            ]
        )  # fmt: skip

    def _facts(self) -> dict[str, Any]:
        """What tells variants of the family apart."""
        config = self.checkpoint.config(self.family.denoiser)
        return {
            "pipeline": self.checkpoint.pipeline,
            "guidance_embeds": config.get("guidance_embeds"),
            "is_distilled": self.checkpoint.settings.get("is_distilled", False),
        }

    def _native_side(self) -> int:
        """The side in pixels of the square that the weights were trained for."""
        if self.family.native is not None:
            return self.family.native
        levels = len(self.checkpoint.config("vae").get("block_out_channels", [0] * 4))
        side: int = self.checkpoint.config(self.family.denoiser).get("sample_size", 128)
        return side << (levels - 1)

    def _check_size(self, width: int, height: int) -> None:
        step, native = self.family.size_multiple, self._native_side() ** 2
        who = f"The renderer {self.renderer_name!r} cannot draw {width}x{height}"
        if width < step or height < step or width % step or height % step:
            raise UsageError(f"{who}.", hint=f"Sides are multiples of {step}.")
        if self.settings.any_size:
            return
        low, high = (round(share * native) for share in self.family.pixels)
        if not low <= width * height <= high:
            raise UsageError(
                f"{who}: the model was trained for about {native:,} pixels.",
                hint=f"Choose {low:,} to {high:,} pixels, or give any_size=true.",
            )
        if max(width, height) > self.family.aspect * min(width, height):
            raise UsageError(
                f"{who}: one side is more than {self.family.aspect:g} times the other.",
                hint="Choose a squarer size, or give any_size=true.",
            )


def _check_settings(settings: Settings) -> None:
    if settings.memory not in get_args(Rung):
        raise UsageError(f"There is no memory rung {settings.memory!r}.", hint=f"Use {', '.join(get_args(Rung))}.")
    if settings.dtype is not None and settings.dtype not in DTYPES:
        raise UsageError(f"There is no dtype {settings.dtype!r}.", hint=f"Use {', '.join(DTYPES)}.")
    if settings.scheduler is not None and settings.scheduler not in schedulers():
        raise UsageError(f"There is no scheduler {settings.scheduler!r}.", hint=f"Known: {', '.join(schedulers())}.")
    for name, value, least in (("steps", settings.steps, 1), ("batch", settings.batch, 1)):
        if value is not None and value < least:
            raise UsageError(f"{name} is at least {least}, not {value}.")


def _grouped(jobs: Sequence[Job], size: int) -> Iterator[list[Job]]:
    """Neighbouring jobs that may share a batch, at most `size` together."""
    group: list[Job] = []
    for job in jobs:
        if group and (len(group) == size or job.kind != group[0].kind):
            yield group
            group = []
        group.append(job)
    yield group


@contextmanager
def _device_failures(rung: Rung) -> Iterator[None]:
    import torch

    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise RenderError(
            f"The device ran out of memory on the rung {rung!r}.",
            hint="Give a lower --memory rung, vae_tiling=true, a smaller batch or smaller frames.",
        ) from error
