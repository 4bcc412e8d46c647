"""The base of the renderers that keep characters the same by shared self-attention."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.configs import load_prompt
from katha.errors import UsageError
from katha.jsonio import digest, sha256_hex
from katha.models.checkpoints import free_bytes
from katha.pictures import decode as open_picture
from katha.protocols import BoardContext, FrameRequest, Renderer
from katha.renderers.diffusion.memory import Encoded, Loaded, unwarned
from katha.renderers.diffusion.options import at_least
from katha.renderers.diffusion.placement import MemoryNeed, halvings, unet_row_bytes
from katha.renderers.diffusion.renderer import ahead, frame_prompt
from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer
from katha.renderers.references import CharacterPictures
from katha.renderers.shared_attention.coupling import (
    WINDOW,
    Bank,
    Coupling,
    Grid,
    SharingFrame,
    SharingRules,
    SubjectMaps,
    token_positions,
)
from katha.renderers.shared_attention.denoise import (
    Conditioning,
    Denoiser,
    SharedLatents,
    attention_layers,
    decode,
    encode,
    make_scheduler,
    noise_of,
    shared_layers,
    size_conditioning,
    wired,
)
from katha.schema import Character

if TYPE_CHECKING:
    from torch import Tensor

Part = tuple[FrameRequest, SharingFrame]
"""A frame and its part in the sharing."""
VIEWS = ("full body, from the front", "close-up of the face", "full body, from the side", "walking")
"""The views of a character's portraits, in order; more portraits than views repeat them with other noise."""
_GIB = 1 << 30
_FLOAT = 4
# CLIP's window, with its two marks.
_WORDS = 77


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
    with another. Inserted frames are no part of the identity; without any scene all frames count as scenes."""
    scenes = [request for request in requests if request.kind == "scene"] or list(requests)
    seed = Counter(request.seed for request in scenes).most_common(1)[0][0]
    ordered = sorted(scenes, key=lambda request: request.scene or 0)
    subjects: dict[str, Character] = {}
    for request in ordered:
        subjects.update({item.name: item for item in request.characters if item.name not in subjects})
    seeded = [replace(request, seed=seed, pictures=()) for request in ordered]
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
    return digest([*fields, characters, *(sha256_hex(data) for _, data in request.pictures)])


def portrait_of(like: FrameRequest, character: Character, place: int = 0) -> FrameRequest:
    """Return a request that shows `character` alone, in the size and style of `like`, with noise of its own."""
    prompt = load_prompt("renderers/portrait").render(
        anchor=character.anchor_prompt, appearance=character.appearance, view=VIEWS[place % len(VIEWS)]
    )
    seed = (like.seed + place) % 2**32
    alone = replace(like, prompt=prompt, seed=seed, kind="extra", scene=None, characters=(character,))
    return replace(alone, composed=False, dropped=())


@dataclass
class Session:
    """One drawing of a board: sources in groups that are denoised together, readers, where the sources are kept, how a
    frame's prompts are encoded, and the finished latents (1, C, h, w) of each frame, by `frame_key`."""

    pipe: Any
    denoiser: Denoiser
    rules: SharingRules
    encode: Callable[[FrameRequest], Encoded]
    sources: Sequence[Sequence[Part]]
    readers: Sequence[Sequence[Part]]
    bank: Bank
    finished: dict[str, Tensor] = field(default_factory=dict)

    def trajectory(self, parts: Sequence[Part]) -> SharedLatents:
        """Return `parts` from their first noise, to be denoised together and, where the places of subjects in their
        prompts are known, watched for where these are in the frame."""
        import torch

        members = [member for _, member in parts]
        texts = [self._text(request) for request, _ in parts]
        first, factor = parts[0][0], self.pipe.vae_scale_factor
        grid = first.height // factor, first.width // factor
        maps = SubjectMaps() if any(any(member.words) for member in members) else None
        lengths = [text.embeds.shape[1] for text in texts]
        coupling = Coupling(members, self.rules, grid, maps, self.denoiser.halves, lengths)
        dtype = texts[0].embeds.dtype
        noise = [noise_of(self.pipe, request.seed, grid, dtype) for request, _ in parts]
        given = {at: self._read(request, dtype) for at, (request, _) in enumerate(parts) if request.pictures}
        return SharedLatents(torch.cat(noise), texts, coupling, given)

    def _read(self, request: FrameRequest, dtype: Any) -> Tensor:
        """Return the latents of the picture that stands for a frame, scaled and cut at its centre to the frame."""
        from PIL import Image, ImageOps

        picture = open_picture(request.pictures[0][1])
        fitted = ImageOps.fit(picture, (request.width, request.height), Image.Resampling.LANCZOS)
        return encode(self.pipe, fitted, dtype)

    def first_pass(self, features_at: int | None = None) -> tuple[list[SharedLatents], list[SharedLatents]]:
        """Denoise sources (none where the bank has them) and readers, sources first at every step; both as they are."""
        sources = [] if self.bank.complete else [self.trajectory(parts) for parts in self.sources]
        readers = [self.trajectory(parts) for parts in self.readers]
        self.denoiser.run(sources, readers, self.bank, "first", features_at)
        return sources, readers

    def finish(self, sources: Sequence[SharedLatents], readers: Sequence[SharedLatents]) -> None:
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


@dataclass(frozen=True)
class SharingLoad:
    """How much one drawing shares.

    sources: how many frames that others read are denoised together, group by group. readers: how many frames only read,
    `batch` of them in one call. keep: the probability that a token of a source is shown. halves: 2 with guidance.
    blend: queries without sharing are kept. injection: a second pass, along correspondences. keep_bytes: main memory in
    which the sources are kept.
    """

    sources: tuple[int, ...]
    readers: int
    batch: int
    subjects: int
    keep: float
    halves: int
    steps: int
    blend: bool = False
    injection: bool = False
    keep_bytes: int = 0

    @property
    def shown(self) -> int:
        """Frames that others read."""
        return sum(self.sources)

    @property
    def together(self) -> int:
        """The most frames in one call of the UNet."""
        return max(*self.sources, min(self.batch, self.readers), 1) if self.sources else max(1, self.batch)


def shown_share(tokens: int, keep: float) -> float:
    """Return the share of `tokens` tokens that is shown at most: `keep`, and four deviations of that."""
    return float(min(1.0, keep + 2 / tokens**0.5)) if keep < 1 else 1.0


def sharing_work(unet: Any, latent: Grid, load: SharingLoad) -> MemoryNeed:
    """Return the bytes of `load` on frames of the grid `latent`; of `unet` only shapes and dtype count."""
    layers, width = shared_layers(unet, latent).values(), unet.dtype.itemsize
    grids = {grid: math.prod(grid) for grid, _ in layers}
    whole = load.halves * width * sum(math.prod(grid) * channels for grid, channels in layers)
    record = load.shown * load.halves * width * sum(
        round(shown_share(math.prod(grid), load.keep) * math.prod(grid)) * channels for grid, channels in layers
    )  # fmt: skip
    outputs, held, matching = _injection(unet, latent, load, width) if load.injection else (0, 0, 0)
    queries = load.together * whole if load.blend and load.shown else 0
    read = max((4 * (load.shown + 1) * math.prod(grid) * channels for grid, channels in layers), default=0)
    call = load.together * load.halves * unet_row_bytes(unet.config, latent, width) + load.halves * width * read
    frames = load.shown + load.readers
    # Of one frame: a window of means on the deepest grid and labels on every grid that shares; and its embeddings, as
    # they came and side by side with the others'.
    maps = load.subjects * (_FLOAT * (WINDOW + 4) * min(grids.values(), default=0) + sum(grids.values()))
    held += frames * (maps + int(2 * load.halves * _WORDS * unet.config.cross_attention_dim * width))
    device = held + max(call + record + queries + outputs, matching)
    kept = (1 + load.injection) * load.steps * (record + outputs)
    return MemoryNeed(device, min(load.keep_bytes + record + outputs, kept) if load.keep_bytes else 0)


def _injection(unet: Any, latent: Grid, load: SharingLoad, width: int) -> tuple[int, int, int]:
    """Return the bytes of outputs that anchors show at one step, of features held between passes, and of matching."""
    levels = halvings(latent, len(unet.up_blocks) - 1)
    count = math.prod(levels[max(0, len(levels) - 2)])
    channels = unet.config.block_out_channels[-1]
    feature = count * channels
    outputs = sum(size for grid, size in attention_layers(unet, latent).values() if math.prod(grid) == count)
    held = (load.shown + load.readers) * feature * width + 2 * load.shown * feature * _FLOAT
    smoothing = 3 * load.together * feature * _FLOAT
    return load.shown * count * outputs * width, held, smoothing + 9 * count * load.shown * count


class SharedOptions(SdxlOptions):
    """What both renderers have, each where it belongs among its own options.

    sharing: false draws every frame alone. separate: a token of one subject reads that subject only. freeu: FreeU with
    the published factors. keep_gib: main memory in which the sources of the last board are kept for added frames, half
    of what is free unless told; where they would need more, they are made again from their seed. characters, reference:
    pictures of characters, a folder with NAME.png of each and NAME=FILE.
    """

    characters: Path | None
    reference: tuple[str, ...]
    sharing: bool
    separate: bool
    freeu: bool
    keep_gib: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, keep_gib=self.keep_gib)
        if not self.sharing and (self.characters or self.reference):
            hint = "Leave sharing=false out."
            raise UsageError("Pictures of characters are read by sharing: with sharing=false nothing reads.", hint=hint)


class SharedRenderer(SdxlRenderer):
    """SDXL frames that read tokens of one another. A subclass says which frames are sources, by which rules the others
    read them, and in how many passes."""

    options: SharedOptions
    inpaint_frame = Renderer.inpaint_frame  # none: a part alone would read nothing of the other frames
    _kept: tuple[str, Bank] | None = None

    def __init__(self, argument: str | None = None, options: SharedOptions | None = None) -> None:
        """Find the checkpoint and read the characters' pictures; nothing is loaded."""
        super().__init__(argument, options)
        self.cast = CharacterPictures(self.options.characters, self.options.reference)

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings, pictures and versions: everything that can change the pixels."""
        spec = {**super().spec(), "scheduler": "ddim"}
        return {**spec, "pictures": self.cast.spec()} if self.cast else spec

    def pictured(self, board: StoryBoard) -> dict[int, FrameRequest]:
        """Return, by the number of the subject, those that a picture stands for: a frame that is read and not drawn.

        Its prompt names the subject, whose place in the picture is found by that.
        """
        found = {}
        for number, subject in enumerate(board.subjects):
            if subject.name in self.cast:
                plain = portrait_of(board.scenes[0], subject)
                worded = replace(plain, prompt=f"{subject.name}, {plain.prompt}")
                found[number] = replace(worded, pictures=((subject.name, self.cast[subject.name]),))
        return found

    @abstractmethod
    def rules(self, board: StoryBoard) -> SharingRules:
        """Return how the frames of `board` share."""

    @abstractmethod
    def sources(self, board: StoryBoard, pipe: Any) -> list[list[Part]]:
        """Return the frames that others read, in groups that are denoised together."""

    @abstractmethod
    def member(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> SharingFrame:
        """Return what a frame reads that is not a source."""

    @abstractmethod
    def source_counts(self, board: StoryBoard) -> tuple[int, ...]:
        """Return how many frames each group of sources has at most; the pipeline is not in memory yet."""

    @property
    def rounds(self) -> int:
        """Return how often the frames of a board are denoised."""
        return 1

    def passes(self, session: Session) -> None:
        """Denoise sources and readers."""
        session.finish(*session.first_pass())

    def load(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> SharingLoad:
        """Return how much a drawing of `wanted` shares, at most."""
        groups = self.source_counts(board) if self.options.sharing else ()
        return SharingLoad(
            sources=groups,
            readers=len(wanted),
            batch=self.options.batch,
            subjects=len(board.subjects),
            keep=self.rules(board).keep,
            halves=self.halves,
            steps=self.steps,
            keep_bytes=int((self.options.keep_gib or 0) * _GIB) if groups else 0,
        )

    def work(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> MemoryNeed:
        """Return the bytes that drawing `wanted` holds beyond weights, at most."""
        return sharing_work(self.shapes, self.grid(wanted[0]), self.load(board, wanted))

    def words(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> tuple[tuple[int, ...], ...]:
        """Return, for each subject of the board, the positions of its words in the frame's prompt."""
        prompt = frame_prompt(request)
        names = {item.name for item in request.characters}
        return tuple(
            token_positions(pipe.tokenizer, prompt, subject) if subject.name in names else ()
            for subject in board.subjects
        )

    @property
    def at_once(self) -> int:
        """Frames are decoded one at a time."""
        return 1

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
        """Yield one PNG per request, in order; frames advance in step, so that they are ready together."""
        unused = self.cast.unused(item for request in requests for item in request.characters)
        self._remarks += [unused] if unused else []
        self.tell(requests)
        if requests:
            yield from self._draw(board_of(requests), requests)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return the PNG of one frame drawn from the board's sources: those kept, or made again from their seed."""
        return next(self.insert_frames([request], context))

    def insert_frames(self, requests: Sequence[FrameRequest], context: BoardContext) -> Iterator[bytes]:
        """Yield the PNG of each of `requests`, the same frame with other noise or words: what it would be alone, but
        the sources are denoised once for all."""
        yield from self._draw(board_with(requests[0], context), requests)

    def _draw(self, board: StoryBoard, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield the PNGs. Pictures that a request carries are not drawn from: the renderer has its own of the cast."""
        wanted = [replace(request, pictures=()) for request in requests]
        for request in (*board.scenes, *wanted):
            self.check(request)
        sizes = sorted({(request.width, request.height) for request in (*board.scenes, *wanted)})
        if len(sizes) > 1:
            both = " and ".join(f"{width}x{height}" for width, height in sizes)
            raise UsageError(
                f"The renderer {self.renderer_name!r} cannot share between frames of {both}.",
                hint="Draw all frames of a board, and those added to it, in one size.",
            )
        with closing(ahead(self._decoded(board, wanted))) as images:
            for request, image in zip(wanted, images, strict=True):
                yield self.png(image, request)

    def _decoded(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> Generator[Tensor, None, None]:
        """Yield the images (3, H, W) of `wanted`, on the CPU."""
        with (
            self.pipeline(wanted, self.work(board, wanted)) as loaded,
            self.device_failures(),
            unwarned("diffusers"),
        ):
            for latents in self._denoise(loaded, board, wanted):
                yield decode(loaded.pipe, latents).cpu()

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
            self._kept = (key, Bank(self._room() if sources else 0, self.steps * self.rounds))
        return self._kept[1]

    def _room(self) -> int:
        """Return the bytes of main memory in which sources may be kept."""
        given = self.options.keep_gib
        return (free_bytes("cpu") or 0) // 2 if given is None else int(given * _GIB)
