"""`consistory`: the same subjects in every frame, by attention that frames share inside subject masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from katha.errors import UsageError
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.consistory.passes import collect, inject
from katha.renderers.diffusion.memory import Rung
from katha.renderers.diffusion.prompts import frame_prompt
from katha.renderers.sharing.board import Part, StoryBoard, frame_key
from katha.renderers.sharing.need import Load
from katha.renderers.sharing.planning import Member
from katha.renderers.sharing.renderer import Drawing, SharedRenderer
from katha.renderers.sharing.rules import QueryBlend, SharingRules
from katha.renderers.sharing.words import word_positions

__all__ = ["ConsistoryRenderer"]

_BLEND = QueryBlend(first=0.9, last=0.818, until=0.1)


class ConsistoryRenderer(SharedRenderer):
    """ConsiStory on SDXL, implemented from its paper: `consistory:FOLDER`, `:FILE.safetensors` or `:OWNER/NAME`."""

    renderer_name = "consistory"
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
        anchors: int = 2,
        dropout: float = 0.5,
        sharing: bool = True,
        query_blend: bool = True,
        injection: bool = True,
        separate: bool = True,
        freeu: bool = True,
        keep_gib: float = 4.0,
    ) -> None:
        """Find the checkpoint; nothing is loaded yet.

        anchors: how many frames of each subject the others read, the first that name it. dropout: the probability
        that an anchor's token is left out at a step. sharing: false draws every frame alone. query_blend: early
        queries partly as without sharing, for varied layouts. injection: a second pass that carries features along
        correspondences. separate: a token of one subject reads that subject only. freeu: FreeU with the published
        factors. keep_gib: main memory in which the anchors of the last board are kept for added frames; beyond it
        they are made again from their seed.

        Raises:
            UsageError: no such checkpoint, adapter or option value. MissingExtraError: a package is missing.
        """
        super().__init__(
            argument, revision=revision, variant=variant, base=base, download=download, device=device, dtype=dtype,
            memory=memory, vae_tiling=vae_tiling, steps=steps, guidance=guidance, lora=lora, batch=batch,
            any_size=any_size, negative=negative, long_prompts=long_prompts,
        )  # fmt: skip
        if anchors < 1:
            raise UsageError(f"anchors is at least 1, not {anchors}.")
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout is at least 0 and below 1, not {dropout}.")
        if keep_gib < 0:
            raise UsageError(f"keep_gib is at least 0, not {keep_gib}.")
        self.anchors, self.dropout, self.sharing = anchors, dropout, sharing
        self.query_blend, self.injection, self.separate = query_blend, injection, separate
        self.freeu, self.keep_gib = freeu, keep_gib

    def spec(self) -> Mapping[str, Any]:
        """Weights, adapters, settings and versions: everything that can change the pixels."""
        return {
            **super().spec(),
            "scheduler": "ddim",
            "anchors": self.anchors,
            "dropout": self.dropout,
            "sharing": self.sharing,
            "query_blend": self.query_blend,
            "injection": self.injection,
            "separate": self.separate,
            "freeu": self.freeu,
        }

    def rules(self, board: StoryBoard, pipe: Any) -> SharingRules:
        """Subject-driven shared attention: inside the masks, each token with probability 1 - dropout."""
        blend = _BLEND if self.query_blend else None
        return SharingRules(board.seed, 1 - self.dropout, masked=True, separate=self.separate, blend=blend)

    def sources(self, board: StoryBoard, pipe: Any) -> list[list[Part]]:
        """The anchors: of each subject the first frames that name it, all in one group, since they read one another."""
        words = [self._words(request, board, pipe) for request in board.scenes]
        shows: dict[int, list[bool]] = {}
        for subject in range(len(board.subjects)):
            naming = [scene for scene, named in enumerate(words) if named[subject]]
            for scene in naming[: self.anchors]:
                shows.setdefault(scene, [False] * len(board.subjects))[subject] = True
        anchors = [
            (board.scenes[scene], _anchor(board.scenes[scene], words[scene], tuple(shown), number))
            for number, (scene, shown) in enumerate(sorted(shows.items()))
        ]
        return [anchors] if anchors else []

    def member(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> Member:
        """A frame reads the subjects that its prompt names."""
        words = self._words(request, board, pipe)
        reads = _named(words) if self.sharing else (False,) * len(words)
        return Member(reads, (False,) * len(words), words)

    def load(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> Load:
        """All anchors are denoised together; there are no more than `anchors` of each subject."""
        subjects = len(board.subjects)
        shown = min(len(board.scenes), self.anchors * subjects) if self.sharing else 0
        return self.load_of(
            (shown,) if shown else (), board, wanted, 1 - self.dropout, blend=self.query_blend, injection=self.injection
        )

    def passes(self, drawing: Drawing) -> None:
        """Two passes with injection, else one."""
        sources, readers = collect(drawing, features=self.injection)
        if self.injection:
            inject(drawing, sources, readers)
        else:
            drawing.finish(drawing.sources if sources else [], sources)
            drawing.finish(drawing.readers, readers)

    def _words(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> tuple[tuple[int, ...], ...]:
        """For each subject of the board, the positions of its words in the frame's prompt."""
        prompt = frame_prompt(request.prompt, request.style)
        names = {item.name for item in request.characters}
        return tuple(
            word_positions(pipe.tokenizer, prompt, subject) if subject.name in names else ()
            for subject in board.subjects
        )


def _anchor(request: FrameRequest, words: tuple[tuple[int, ...], ...], shows: tuple[bool, ...], number: int) -> Member:
    return Member(_named(words), shows, words, number, frame_key(request))


def _named(words: tuple[tuple[int, ...], ...]) -> tuple[bool, ...]:
    return tuple(map(bool, words))
