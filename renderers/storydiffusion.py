"""`storydiffusion`: consistent self-attention with an identity bank of each character that holds one step at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from katha.errors import UsageError
from katha.prompting import load_prompt
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.memory import Rung
from katha.renderers.diffusion.prompt_encoding import frame_prompt
from katha.renderers.shared_attention.coupling import Member, SharingRules
from katha.renderers.shared_attention.denoise import lockstep, shown_bytes
from katha.renderers.shared_attention.masks import word_positions
from katha.renderers.shared_attention.memory_estimate import Load
from katha.renderers.shared_attention.renderer import Drawing, Part, SharedRenderer, StoryBoard, frame_key
from katha.schema import Character

# ---
# The identity images of each character: scenes in which it is alone, or portraits of it.


Identity = Literal["panels", "portraits"]
VIEWS = ("full body, from the front", "close-up of the face", "full body, from the side", "walking")
"""The views of a character's portraits, in order; more portraits than views repeat them with other noise."""


def identity_images(board: StoryBoard, number: int, images: int, kind: Identity) -> list[FrameRequest]:
    """The requests of at most `images` identity images of subject `number` of `board`.

    `panels`: the first scenes in which it is alone; where there is none, its portraits. `portraits`: always
    portraits, so that no scene depends on another.
    """
    character = board.subjects[number]
    alone = [scene for scene in board.scenes if [item.name for item in scene.characters] == [character.name]]
    if kind == "panels" and alone:
        return alone[:images]
    first = next(scene for scene in board.scenes if character.name in {item.name for item in scene.characters})
    return [_portrait(first, character, place) for place in range(images)]


def _portrait(like: FrameRequest, character: Character, place: int) -> FrameRequest:
    """A request that shows `character` alone, in the size and style of `like`, with noise of its own."""
    prompt = load_prompt("renderers/portrait").render(
        anchor=character.anchor_prompt, appearance=character.appearance, view=VIEWS[place % len(VIEWS)]
    )
    seed = (like.seed + place) % 2**32
    return replace(like, prompt=prompt, seed=seed, kind="extra", scene=None, characters=(character,))


def fitting_share(wanted: float, images: int, image_bytes: int, limit: int) -> float:
    """The share of tokens that is kept: `wanted`, or less where that share of `images` images exceeds `limit` bytes."""
    needed = images * image_bytes
    return min(wanted, limit / needed) if needed else wanted


# ---
# `storydiffusion`: consistent self-attention with an identity bank of each character that holds one step at a time.


_SKIP = ((0.4, 0.3), (1.0, 0.1))
"""A layer call shares nothing with probability 0.3 in the first 20 of 50 steps and 0.1 after."""
_MIB = 1 << 20


class StoryDiffusionRenderer(SharedRenderer):
    """Consistent self-attention on SDXL: `storydiffusion:FOLDER`, `:FILE.safetensors` or `:OWNER/NAME`."""

    renderer_name = "storydiffusion"
    capabilities = Capabilities(identity="batch", insertion="bank", default_size=(1024, 1024), size_multiple=8)

    def __init__(
        self,
        argument: str | None = None,
        *,
        revision: str | None = None,
        variant: str | None = None,
        base: str | None = None,
        download: bool = False,
        device: str | None = None,
        dtype: str | None = None,
        memory: Rung = "full",
        vae_tiling: bool = False,
        steps: int | None = None,
        guidance: float | None = None,
        lora: tuple[str, ...] = (),
        batch: int = 1,
        any_size: bool = False,
        negative: str = "",
        long_prompts: Literal["chunk", "refuse"] = "chunk",
        identity: Identity = "panels",
        identity_images: int = 4,
        sampling: float = 0.5,
        bank_mib: int = 2048,
        sharing: bool = True,
        separate: bool = True,
        freeu: bool = True,
        keep_gib: float = 4.0,
    ) -> None:
        """Find the checkpoint; nothing is loaded yet.

        identity: `panels` takes the scenes in which a character is alone, and portraits where there is none;
        `portraits` always draws portraits, so that editing one scene changes no other. identity_images: how many of
        them a character has. sampling: the probability that a token of theirs is read at a step. bank_mib: device
        memory for what is read at one step; with many characters the sampling is lowered to fit. sharing: false draws
        every frame alone.
        separate: in frames of several characters, a token of one character reads that character only. freeu: FreeU with
        the published factors. keep_gib: main memory in which the identities of the last board are kept for added
        frames; beyond it they are made again from their seed.

        Raises:
            UsageError: no such checkpoint, adapter or option value. MissingExtraError: a package is missing.
        """
        super().__init__(
            argument, revision=revision, variant=variant, base=base, download=download, device=device, dtype=dtype,
            memory=memory, vae_tiling=vae_tiling, steps=steps, guidance=guidance, lora=lora, batch=batch,
            any_size=any_size, negative=negative, long_prompts=long_prompts,
        )  # fmt: skip
        if identity not in get_args(Identity):
            raise UsageError(f"There is no identity {identity!r}.", hint=f"Use {' or '.join(get_args(Identity))}.")
        if identity_images < 1 or bank_mib < 1:
            raise UsageError("identity_images and bank_mib are at least 1.")
        if not 0 < sampling <= 1:
            raise UsageError(f"sampling is above 0 and at most 1, not {sampling}.")
        if keep_gib < 0:
            raise UsageError(f"keep_gib is at least 0, not {keep_gib}.")
        self.identity, self.identity_images, self.sampling = identity, identity_images, sampling
        self.bank_mib, self.sharing, self.separate = bank_mib, sharing, separate
        self.freeu, self.keep_gib = freeu, keep_gib

    def spec(self) -> Mapping[str, Any]:
        """Weights, adapters, settings and versions: everything that can change the pixels."""
        return {
            **super().spec(),
            "scheduler": "ddim",
            "identity": self.identity,
            "identity_images": self.identity_images,
            "sampling": self.sampling,
            "bank_mib": self.bank_mib,
            "sharing": self.sharing,
            "separate": self.separate,
            "freeu": self.freeu,
        }

    def rules(self, board: StoryBoard, pipe: Any) -> SharingRules:
        """Sampled tokens of whole identity images, fewer where the bank would outgrow its limit."""
        return SharingRules(board.seed, self._keep(board), masked=False, separate=self.separate, skip=_SKIP)

    def sources(self, board: StoryBoard, pipe: Any) -> list[list[Part]]:
        """The identity images, a group for each character: only those of one character read one another."""
        groups: list[list[Part]] = []
        count = 0
        for number, requests in enumerate(self._identities(board)):
            only = tuple(place == number for place in range(len(board.subjects)))
            words = ((),) * len(only)
            groups.append(
                [
                    (request, Member(only, only, words, count + place, frame_key(request)))
                    for place, request in enumerate(requests)
                ]
            )
            count += len(requests)
        return groups

    def member(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> Member:
        """A frame reads the characters it has; where it has several, their words tell which token is whose."""
        names = {item.name for item in request.characters}
        reads = tuple(self.sharing and subject.name in names for subject in board.subjects)
        prompt = frame_prompt(request.prompt, request.style)
        tell = self.separate and sum(reads) > 1
        words = tuple(
            word_positions(pipe.tokenizer, prompt, subject) if tell and read else ()
            for subject, read in zip(board.subjects, reads, strict=True)
        )
        return Member(reads, (False,) * len(reads), words)

    def load(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> Load:
        """The identity images of one character are denoised together, and those of all are read."""
        groups = tuple(map(len, self._identities(board))) if self.sharing else ()
        return self.load_of(groups, board, wanted, self._keep(board))

    def _keep(self, board: StoryBoard) -> float:
        """The share of tokens that is shown: less than `sampling` where all identity images would outgrow the bank."""
        one = shown_bytes(self._shapes, self._grid(board.scenes[0]), 2 if self.guidance > 1 else 1)
        images = sum(map(len, self._identities(board)))
        return fitting_share(self.sampling, images, one, self.bank_mib * _MIB)

    def passes(self, drawing: Drawing) -> None:
        """One pass, identities first at every step."""
        studio, bank = drawing.studio, drawing.bank
        groups = [] if bank.complete else drawing.sources
        sources = [studio.trajectory(parts, maps=False) for parts in groups]
        readers = [
            studio.trajectory(parts, maps=any(any(member.words) for _, member in parts)) for parts in drawing.readers
        ]
        lockstep(studio.denoiser, sources, readers, bank, "only")
        drawing.finish(groups, sources)
        drawing.finish(drawing.readers, readers)

    def _identities(self, board: StoryBoard) -> list[list[FrameRequest]]:
        """The identity images' requests, by character."""
        return [
            identity_images(board, number, self.identity_images, self.identity) for number in range(len(board.subjects))
        ]
