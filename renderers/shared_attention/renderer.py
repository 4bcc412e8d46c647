"""The base of the renderers that keep characters the same by shared self-attention."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from katha.errors import UsageError
from katha.jsonio import digest
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion.memory import Loaded, Work
from katha.renderers.diffusion.prompt_encoding import Encoded, frame_prompt
from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer
from katha.renderers.shared_attention.attention_processor import wired
from katha.renderers.shared_attention.coupling import Bank, Coupling, Grid, Member, SharingRules
from katha.renderers.shared_attention.denoise import (
    Conditioning,
    Denoiser,
    Trajectory,
    decode,
    latent_grid,
    make_scheduler,
    noise_of,
    size_conditioning,
)
from katha.renderers.shared_attention.masks import SubjectMaps, token_positions
from katha.renderers.shared_attention.memory_estimate import Load, sharing_work
from katha.schema import Character

if TYPE_CHECKING:
    from torch import Tensor

Part = tuple[FrameRequest, Member]
"""A frame and its part in the sharing."""
_GIB = 1 << 30


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
    """Return the board of `requests`. Its seed is the one most of its scenes have: a scene may have been drawn again
    with another.

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
    """Return the board that `request` is added to.

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
    """Return a hash of what is drawn: requests that differ only in their place or kind give the same picture."""
    characters = [item.model_dump(mode="json") for item in request.characters]
    fields = (request.prompt, request.seed, request.width, request.height, request.negative_prompt, request.style)
    return digest([*fields, characters])


@dataclass
class Session:
    """One drawing of a board: sources in groups that are denoised together, readers, and where the sources are kept.

    encode: the pipeline's arguments for a frame's prompts. finished: the latents (1, C, h, w) of each frame, by
    `frame_key`.
    """

    pipe: Any
    denoiser: Denoiser
    rules: SharingRules
    encode: Callable[[FrameRequest], Encoded]
    sources: Sequence[Sequence[Part]]
    readers: Sequence[Sequence[Part]]
    bank: Bank
    finished: dict[str, Tensor] = field(default_factory=dict)

    def trajectory(self, parts: Sequence[Part]) -> Trajectory:
        """Return `parts` from their first noise, to be denoised together and, where the places of subjects in their
        prompts are known, watched for where these are in the frame."""
        import torch

        members = [member for _, member in parts]
        texts = [self._text(request) for request, _ in parts]
        grid: Grid = latent_grid(self.pipe, parts[0][0].width, parts[0][0].height)
        maps = SubjectMaps() if any(any(member.words) for member in members) else None
        lengths = [text.embeds.shape[1] for text in texts]
        coupling = Coupling(members, self.rules, grid, maps, self.denoiser.halves, lengths)
        noise = [noise_of(self.pipe, request.seed, grid, texts[0].embeds.dtype) for request, _ in parts]
        return Trajectory(torch.cat(noise), texts, coupling)

    def first_pass(self, features_at: int | None = None) -> tuple[list[Trajectory], list[Trajectory]]:
        """Denoise sources (none where the bank has them) and readers, sources first at every step; both as they are."""
        sources = [] if self.bank.complete else [self.trajectory(parts) for parts in self.sources]
        readers = [self.trajectory(parts) for parts in self.readers]
        self.denoiser.run(sources, readers, self.bank, "first", features_at)
        return sources, readers

    def finish(self, sources: Sequence[Trajectory], readers: Sequence[Trajectory]) -> None:
        """Take the latents of the last pass; of the sources only where they were denoised."""
        groups = [*(self.sources if sources else ()), *self.readers]
        for parts, run in zip(groups, [*sources, *readers], strict=True):
            for (request, member), latents in zip(parts, run.latents[:, None], strict=True):
                self.finished[frame_key(request)] = latents
                if member.source is not None:
                    self.bank.latents[member.source] = latents.cpu()

    def _text(self, request: FrameRequest) -> Conditioning:
        import torch

        device, encoded = self.pipe._execution_device, self.encode(request)
        names = ("negative_", "")[-self.denoiser.halves :]
        return Conditioning(
            torch.cat([encoded[f"{name}prompt_embeds"] for name in names]).to(device),
            torch.cat([encoded[f"{name}pooled_prompt_embeds"] for name in names]).to(device),
        )


class SharedOptions(SdxlOptions):
    """What both renderers have, each where it belongs among its own options.

    sharing: false draws every frame alone. separate: a token of one subject reads that subject only. freeu: FreeU with
    the published factors. keep_gib: main memory in which the sources of the last board are kept for added frames;
    beyond it they are made again from their seed.
    """

    sharing: bool
    separate: bool
    freeu: bool
    keep_gib: float


class SharedRenderer(SdxlRenderer):
    """SDXL frames that read tokens of one another. A subclass says which frames are sources, by which rules the others
    read them, and in how many passes."""

    options: SharedOptions
    _kept: tuple[str, Bank] | None = None

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings and versions: everything that can change the pixels."""
        return {**super().spec(), "scheduler": "ddim"}

    @abstractmethod
    def rules(self, board: StoryBoard) -> SharingRules:
        """Return how the frames of `board` share."""

    @abstractmethod
    def sources(self, board: StoryBoard, pipe: Any) -> list[list[Part]]:
        """Return the frames that others read, in groups that are denoised together."""

    @abstractmethod
    def member(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> Member:
        """Return what a frame reads that is no source."""

    @abstractmethod
    def source_counts(self, board: StoryBoard) -> tuple[int, ...]:
        """Return how many frames each group of sources has at most; the pipeline is not in memory yet."""

    def passes(self, session: Session) -> None:
        """Denoise sources and readers."""
        session.finish(*session.first_pass())

    def load(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> Load:
        """Return how much a drawing of `wanted` shares, at most."""
        groups = self.source_counts(board) if self.options.sharing else ()
        return Load(
            sources=groups,
            readers=len(wanted),
            batch=self.options.batch,
            subjects=len(board.subjects),
            keep=self.rules(board).keep,
            halves=self.halves,
            steps=self.steps,
            keep_bytes=int(self.options.keep_gib * _GIB) if groups else 0,
        )

    def work(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> Work:
        """Return the bytes that drawing `wanted` holds beyond weights, at most."""
        return sharing_work(self.shapes, self.grid(wanted[0]), self.load(board, wanted))

    def words(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> tuple[tuple[int, ...], ...]:
        """Return, for each subject of the board, the positions of its words in the frame's prompt."""
        prompt = frame_prompt(request.prompt, request.style)
        names = {item.name for item in request.characters}
        return tuple(
            token_positions(pipe.tokenizer, prompt, subject) if subject.name in names else ()
            for subject in board.subjects
        )

    @property
    def at_once(self) -> int:
        """Frames are decoded one at a time."""
        return 1

    @property
    def halves(self) -> int:
        """Rows of the UNet's batch for a frame: two with guidance."""
        return 2 if self.guidance > 1 else 1

    @cached_property
    def shapes(self) -> Any:
        """The checkpoint's UNet without its weights."""
        import torch
        from diffusers import UNet2DConditionModel

        with torch.device("meta"):
            unet = UNet2DConditionModel.from_config(dict(self.checkpoint.config(self.family.denoiser)))
        return torch.nn.Module.to(unet, getattr(torch, self.dtype))

    def grid(self, request: FrameRequest) -> Grid:
        """Return the latent's grid of a frame; the pipeline is not in memory yet."""
        halvings = self.checkpoint.latent_halvings
        return request.height >> halvings, request.width >> halvings

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order; frames advance in step, so that they are ready together.

        Raises:
            UsageError: a size or prompt that the model cannot take, or too little memory, before anything is drawn.
            BlankFrameError: a frame is black or not a number. RenderError: the device failed.
        """
        if requests:
            yield from self._draw(board_of(requests), requests)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return the PNG of one frame drawn from the board's sources: those kept, or made again from their seed."""
        return next(self._draw(board_with(request, context), [request]))

    def _draw(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> Iterator[bytes]:
        self._check_board(board, wanted)
        with self.pipeline(wanted, self.work(board, wanted)) as loaded, self.device_failures():
            try:
                images = [decode(loaded.pipe, item).cpu() for item in self._denoise(loaded, board, wanted)]
            finally:
                loaded.pipe.maybe_free_model_hooks()
        for request, image in zip(wanted, images, strict=True):
            yield self.png(loaded.pipe, image, request)

    def _check_board(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> None:
        """Refuse a frame that cannot be drawn, and frames of different sizes (UsageError)."""
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
        """Return the latents (1, C, h, w) of `wanted`."""
        pipe, options = loaded.pipe, self.options
        sources = self.sources(board, pipe) if options.sharing else []
        bank = self._bank(board, sources)
        shown = {frame_key(request): member.source for parts in sources for request, member in parts}
        others = [(one, self.member(one, board, pipe)) for one in wanted if frame_key(one) not in shown]
        readers = [others[at : at + options.batch] for at in range(0, len(others), options.batch)]
        with wired(pipe.unet, options.freeu) as hub:
            time_ids = size_conditioning(pipe, wanted[0].width, wanted[0].height, pipe.unet.dtype)
            denoiser = Denoiser(pipe.unet, hub, make_scheduler(pipe, self.steps), self.guidance, time_ids)
            session = Session(pipe, denoiser, self.rules(board), partial(self.encode, loaded), sources, readers, bank)
            self.passes(session)
        for key, number in shown.items():
            if number is not None:
                session.finished[key] = bank.latents[number].to(pipe._execution_device)
        bank.finish()
        return [session.finished[frame_key(request)] for request in wanted]

    def _bank(self, board: StoryBoard, sources: Sequence[Sequence[Part]]) -> Bank:
        """Return the bank of these sources: the one that was kept, or a new one, which takes its place."""
        parts = [
            [frame_key(request), list(member.reads), list(member.shows), list(member.words)]
            for group in sources
            for request, member in group
        ]
        key = digest([board.seed, self._key(), dict(self.spec()), parts])
        if self._kept is None or self._kept[0] != key or not self._kept[1].complete:
            self._kept = (key, Bank(int(self.options.keep_gib * _GIB) if sources else 0))
        return self._kept[1]
