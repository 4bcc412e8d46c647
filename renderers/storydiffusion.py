"""`storydiffusion`: consistent self-attention with an identity bank of each character that holds one step at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from katha.errors import UsageError
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.shared_attention.coupling import SharingFrame, SharingRules
from katha.renderers.shared_attention.denoise import shown_bytes
from katha.renderers.shared_attention.renderer import (
    Part,
    SharedOptions,
    SharedRenderer,
    StoryBoard,
    frame_key,
    portrait_of,
)

Identity = Literal["panels", "portraits"]
_SKIP = ((0.4, 0.3), (1.0, 0.1))
"""A layer call shares nothing with probability 0.3 in the first 20 of 50 steps and 0.1 after."""
_MIB = 1 << 20


def identity_images(board: StoryBoard, number: int, images: int, kind: Identity) -> list[FrameRequest]:
    """Return the requests of at most `images` identity images of subject `number` of `board`.

    `panels`: the first scenes in which it is alone; where there is none, its portraits. `portraits`: always
    portraits, so that no scene depends on another.
    """
    character = board.subjects[number]
    alone = [scene for scene in board.scenes if [item.name for item in scene.characters] == [character.name]]
    if kind == "panels" and alone:
        return alone[:images]
    first = next(scene for scene in board.scenes if character.name in {item.name for item in scene.characters})
    return [portrait_of(first, character, place) for place in range(images)]


def fitting_share(wanted: float, images: int, image_bytes: int, limit: int) -> float:
    """Return the share of tokens that is kept: `wanted`, or less where `images` images would exceed `limit` bytes."""
    needed = images * image_bytes
    return min(wanted, limit / needed) if needed else wanted


@dataclass(frozen=True, kw_only=True)
class StoryDiffusionOptions(SharedOptions):
    """The options of `storydiffusion`."""

    scheduler: str | None = field(default=None, init=False)
    identity: Identity = "panels"
    """`panels` takes the scenes in which a character is alone, and portraits where there is none; `portraits` always
    draws portraits, so that editing one scene changes no other."""
    identity_images: int = 4
    """How many of them a character has."""
    sampling: float = 0.5
    """The probability that a token of theirs is read at a step."""
    bank_mib: int = 2048
    """Device memory for what is read at one step; with many characters the sampling is lowered to fit."""
    characters: Path | None = None
    """A folder with a picture of every character, NAME.png: it is then the only identity image of that character."""
    reference: tuple[str, ...] = ()
    """NAME=FILE, a picture of the plan's character NAME."""
    sharing: bool = True
    separate: bool = True
    freeu: bool = True
    keep_gib: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.identity not in get_args(Identity):
            raise UsageError(f"There is no identity {self.identity!r}.", hint=f"Use {' or '.join(get_args(Identity))}.")
        if self.identity_images < 1 or self.bank_mib < 1:
            raise UsageError("identity_images and bank_mib are at least 1.")
        if not 0 < self.sampling <= 1:
            raise UsageError(f"sampling is above 0 and at most 1, not {self.sampling}.")


class StoryDiffusionRenderer(SharedRenderer):
    """Consistent self-attention on SDXL: `storydiffusion:FOLDER`, `:FILE.safetensors` or `:OWNER/NAME`."""

    renderer_name = "storydiffusion"
    options_class = StoryDiffusionOptions
    options: StoryDiffusionOptions
    capabilities = Capabilities(identity="batch", insertion="bank", default_size=(1024, 1024), size_multiple=8)

    def rules(self, board: StoryBoard) -> SharingRules:
        """Return sampled tokens of whole identity images, fewer where those of all would outgrow the bank."""
        one = shown_bytes(self.shapes, self.grid(board.scenes[0]), self.halves)
        images = sum(self.source_counts(board))
        keep = fitting_share(self.options.sampling, images, one, self.options.bank_mib * _MIB)
        return SharingRules(board.seed, keep, masked=False, separate=self.options.separate, skip=_SKIP)

    def sources(self, board: StoryBoard, pipe: Any) -> list[list[Part]]:
        """Return the identity images, a group for each character: only those of one character read one another."""
        groups: list[list[Part]] = []
        count = 0
        for number, requests in enumerate(self._identities(board)):
            only = tuple(place == number for place in range(len(board.subjects)))
            none, words = (False,) * len(only), ((),) * len(only)
            groups.append(
                [
                    (one, SharingFrame(none if one.pictures else only, only, words, count + at, frame_key(one)))
                    for at, one in enumerate(requests)
                ]
            )
            count += len(requests)
        return groups

    def member(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> SharingFrame:
        """Return what a frame reads: the characters it has; of several, their words tell which token is whose."""
        names = {item.name for item in request.characters}
        reads = tuple(self.options.sharing and subject.name in names for subject in board.subjects)
        tell = self.options.separate and sum(reads) > 1
        words = self.words(request, board, pipe) if tell else ((),) * len(reads)
        return SharingFrame(reads, (False,) * len(reads), words)

    def source_counts(self, board: StoryBoard) -> tuple[int, ...]:
        """Return the number of identity images by character: those of one are denoised together."""
        return tuple(map(len, self._identities(board)))

    def _identities(self, board: StoryBoard) -> list[list[FrameRequest]]:
        images, kind, given = self.options.identity_images, self.options.identity, self.pictured(board)
        return [
            [given[number]] if number in given else identity_images(board, number, images, kind)
            for number in range(len(board.subjects))
        ]
