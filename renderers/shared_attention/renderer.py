"""The base of the renderers that keep characters the same by shared self-attention."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from katha.errors import UsageError
from katha.jsonio import digest
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion.images import check_frame, to_png
from katha.renderers.diffusion.memory import Loaded, Work
from katha.renderers.diffusion.sdxl import SdxlRenderer
from katha.renderers.shared_attention.attention import Bank, Grid
from katha.renderers.shared_attention.coupling import Coupling, Member, SharingRules
from katha.renderers.shared_attention.denoise import (
    Conditioning,
    Denoiser,
    Trajectory,
    decode,
    latent_grid,
    make_scheduler,
    noise_of,
    size_conditioning,
    wired,
)
from katha.renderers.shared_attention.masks import SubjectMaps
from katha.renderers.shared_attention.memory_estimate import Load, sharing_work
from katha.schema import Character

if TYPE_CHECKING:
    from torch import Tensor

# ---
# A board as the sharing renderers see it: its scenes with one seed, and the characters that are to stay the same.


Part = tuple[FrameRequest, Member]
"""A frame and its part in the sharing."""


@dataclass(frozen=True)
class StoryBoard:
    """The distinct scenes of a board in order, all with its seed, and its characters in the order they come in."""

    scenes: tuple[FrameRequest, ...]
    subjects: tuple[Character, ...]

    @property
    def seed(self) -> int:
        """The seed of the board, the key of everything that is drawn by chance."""
        return self.scenes[0].seed


def board_of(requests: Sequence[FrameRequest]) -> StoryBoard:
    """The board of `requests`. Its seed is the one most of its scenes have: a scene may have been drawn again with
    another.

    Inserted frames are no part of the identity; without any scene all frames count as scenes.
    """
    scenes = [request for request in requests if request.kind == "scene"] or list(requests)
    seed = Counter(request.seed for request in scenes).most_common(1)[0][0]
    ordered = sorted(scenes, key=lambda request: request.scene or 0)
    subjects: dict[str, Character] = {}
    for request in ordered:
        subjects.update({item.name: item for item in request.characters if item.name not in subjects})
    seeded = [replace(request, seed=seed) for request in ordered]
    distinct = {frame_key(request): request for request in reversed(seeded)}
    return StoryBoard(tuple(reversed(distinct.values())), tuple(subjects.values()))


def board_with(request: FrameRequest, context: BoardContext) -> StoryBoard:
    """The board that `request` is added to.

    A scene that the board lacks is one drawn again: with the board's seed it was part of what the others were drawn
    from, so it counts as if it were still there. The board may be another renderer's, of a size that is not drawn here:
    its identity is made anew in the size of `request`.
    """
    scenes = [item for item in context.requests if item.kind == "scene"]
    others = [replace(item, width=request.width, height=request.height) for item in scenes]
    again = request.kind == "scene" and request.scene not in {item.scene for item in others}
    if not others:
        return board_of([request])
    return board_of([*others, replace(request, seed=board_of(others).seed)] if again else others)


def frame_key(request: FrameRequest) -> str:
    """A hash of what is drawn: requests that differ only in their place or kind give the same picture."""
    characters = [item.model_dump(mode="json") for item in request.characters]
    fields = (request.prompt, request.seed, request.width, request.height, request.negative_prompt, request.style)
    return digest([*fields, characters])


# ---
# What one drawing of a board works with: the pipeline, the denoiser, the rules, and encoded prompts.


Encode = Callable[[FrameRequest], Mapping[str, "Tensor"]]


class Studio:
    """Makes trajectories: frames with their first noise, their text and their part in the sharing."""

    def __init__(self, pipe: Any, denoiser: Denoiser, rules: SharingRules, guidance: float, encode: Encode) -> None:
        self.pipe, self.denoiser, self.rules = pipe, denoiser, rules
        self._halves = 2 if guidance > 1 else 1
        self._encode = encode

    def trajectory(self, parts: Sequence[Part], *, maps: bool) -> Trajectory:
        """`parts` to be denoised together, from their first noise; `maps`: watched for where their subjects are."""
        import torch

        texts = [self._text(request) for request, _ in parts]
        grid: Grid = latent_grid(self.pipe, parts[0][0].width, parts[0][0].height)
        dtype = texts[0].embeds.dtype
        coupling = Coupling(
            [member for _, member in parts], self.rules, grid, SubjectMaps() if maps else None, self._halves,
            [text.embeds.shape[1] for text in texts],
        )  # fmt: skip
        noise = [noise_of(self.pipe, request.seed, grid, dtype) for request, _ in parts]
        return Trajectory(torch.cat(noise), texts, coupling)

    def _text(self, request: FrameRequest) -> Conditioning:
        import torch

        device, encoded = self.pipe._execution_device, self._encode(request)
        names = ("negative_", "")[-self._halves :]
        return Conditioning(
            torch.cat([encoded[f"{name}prompt_embeds"] for name in names]).to(device),
            torch.cat([encoded[f"{name}pooled_prompt_embeds"] for name in names]).to(device),
        )


# ---
# The base of the renderers that keep characters the same by shared self-attention.


_GIB = 1 << 30


@dataclass
class Drawing:
    """One drawing of a board: sources in groups that are denoised together, readers, and where the sources are kept.

    finished: the latents (1, C, h, w) of each frame, by `frame_key`.
    """

    studio: Studio
    sources: Sequence[Sequence[Part]]
    readers: Sequence[Sequence[Part]]
    bank: Bank
    finished: dict[str, Tensor] = field(default_factory=dict)

    def finish(self, groups: Sequence[Sequence[Part]], runs: Sequence[Trajectory]) -> None:
        """Take the latents of `runs`, one for each of `groups`."""
        for parts, run in zip(groups, runs, strict=True):
            for (request, member), latents in zip(parts, run.latents[:, None], strict=True):
                self.finished[frame_key(request)] = latents
                if member.source is not None:
                    self.bank.latents[member.source] = latents.cpu()


class SharedRenderer(SdxlRenderer):
    """SDXL frames that read tokens of one another. A subclass says which frames are sources, by which rules the others
    read them, and in how many passes."""

    sharing: bool
    freeu: bool
    keep_gib: float
    _kept: tuple[str, Bank] | None = None

    @abstractmethod
    def rules(self, board: StoryBoard, pipe: Any) -> SharingRules:
        """How the frames of `board` share."""

    @abstractmethod
    def sources(self, board: StoryBoard, pipe: Any) -> list[list[Part]]:
        """The frames that others read, in groups that are denoised together."""

    @abstractmethod
    def member(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> Member:
        """What a frame reads that is no source."""

    @abstractmethod
    def load(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> Load:
        """How much a drawing of `wanted` shares, at most; the pipeline is not in memory yet."""

    def work(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> Work:
        """Bytes that drawing `wanted` holds beyond weights, at most."""
        return sharing_work(self._shapes, self._grid(wanted[0]), self.load(board, wanted))

    def load_of(
        self, groups: tuple[int, ...], board: StoryBoard, wanted: Sequence[FrameRequest], keep: float, **more: bool
    ) -> Load:
        """The load of sources in `groups` with the settings of this renderer; readers are at most all of `wanted`."""
        halves = 2 if self.guidance > 1 else 1
        limit = int(self.keep_gib * _GIB) if groups else 0
        return Load(
            groups, len(wanted), self.settings.batch, len(board.subjects), keep, halves, self.steps, keep_bytes=limit,
            **more,
        )  # fmt: skip

    @abstractmethod
    def passes(self, drawing: Drawing) -> None:
        """Denoise sources (unless the bank has them) and readers; `Drawing.finish` takes what comes out."""

    @property
    def at_once(self) -> int:
        """Frames are decoded one at a time."""
        return 1

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order; frames advance in step, so that they are ready together.

        Raises:
            UsageError: a size or prompt that the model cannot take, or too little memory, before anything is drawn.
            BlankFrameError: a frame is black or not a number. RenderError: the device failed.
        """
        if requests:
            yield from self._draw(board_of(requests), requests)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """The PNG of one frame drawn from the board's sources: those kept in memory, or made again from their seed."""
        return next(self._draw(board_with(request, context), [request]))

    def _draw(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> Iterator[bytes]:
        self._check_board(board, wanted)
        with self.pipeline(wanted, self.work(board, wanted)) as loaded, self.device_failures():
            try:
                latents = self._denoise(loaded, board, wanted)
                processor = loaded.pipe.image_processor
                images = [decode(loaded.pipe, item).cpu() for item in latents]
            finally:
                loaded.pipe.maybe_free_model_hooks()
        for request, image in zip(wanted, images, strict=True):
            check_frame(image, request, self.renderer_name)
            yield to_png(image, processor)

    @cached_property
    def _shapes(self) -> Any:
        """The checkpoint's UNet without its weights."""
        import torch
        from diffusers import UNet2DConditionModel

        with torch.device("meta"):
            unet = UNet2DConditionModel.from_config(dict(self.checkpoint.config(self.family.denoiser)))
        return torch.nn.Module.to(unet, getattr(torch, self.dtype))

    def _grid(self, request: FrameRequest) -> Grid:
        """The latent's grid of a frame."""
        halvings = len(self.checkpoint.config("vae").get("block_out_channels", [0] * 4)) - 1
        return request.height >> halvings, request.width >> halvings

    def _check_board(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> None:
        """Every frame can be drawn, and all have one size.

        Raises:
            UsageError: one cannot, or two differ.
        """
        for request in (*board.scenes, *wanted):
            self.check(request)
        sizes = sorted({(request.width, request.height) for request in (*board.scenes, *wanted)})
        if len(sizes) > 1:
            both = " and ".join(f"{width}x{height}" for width, height in sizes)
            raise UsageError(
                f"The renderer {self.renderer_name!r} cannot share between frames of {both}.",
                hint="Draw all frames of a board, and those added to it, in one size.",
            )

    def _denoise(self, loaded: Loaded, board: StoryBoard, wanted: Sequence[FrameRequest]) -> list[Tensor]:
        """The latents (1, C, h, w) of `wanted`."""
        pipe, first = loaded.pipe, wanted[0]
        sources = self.sources(board, pipe) if self.sharing else []
        bank = self._bank(board, sources)
        keys = {frame_key(request): member.source for parts in sources for request, member in parts}
        readers = [(request, self.member(request, board, pipe)) for request in wanted if frame_key(request) not in keys]
        with wired(pipe.unet, self.freeu) as hub:
            ids = size_conditioning(pipe, first.width, first.height, loaded.pipe.unet.dtype)
            denoiser = Denoiser(pipe.unet, hub, make_scheduler(pipe, self.steps), self.guidance, ids)
            rules = self.rules(board, pipe)
            studio = Studio(pipe, denoiser, rules, self.guidance, lambda request: self.encode(loaded, request))
            groups = [readers[at : at + self.settings.batch] for at in range(0, len(readers), self.settings.batch)]
            drawing = Drawing(studio, sources, groups, bank)
            self.passes(drawing)
        for key, number in keys.items():
            if number is not None:
                drawing.finished[key] = bank.latents[number].to(pipe._execution_device)
        bank.finish()
        return [drawing.finished[frame_key(request)] for request in wanted]

    def _bank(self, board: StoryBoard, sources: Sequence[Sequence[Part]]) -> Bank:
        """The bank of these sources: the one that was kept, or a new one, which takes its place."""
        parts = [[frame_key(request), *map(list, (member.reads, member.shows, member.words))]
                 for group in sources for request, member in group]  # fmt: skip
        key = digest([board.seed, self._key(), dict(self.spec()), parts])
        if self._kept is None or self._kept[0] != key or not self._kept[1].complete:
            self._kept = None
            bank = Bank(int(self.keep_gib * _GIB) if sources else 0)
            self._kept = (key, bank)
        return self._kept[1]
