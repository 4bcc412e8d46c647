"""`consistory` (arXiv 2402.03286): the same subjects in every frame, by attention that frames share inside subject
masks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from katha.errors import UsageError
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.memory import Rung
from katha.renderers.diffusion.prompt_encoding import frame_prompt
from katha.renderers.shared_attention.attention import Anchor, Grid, StepRecord
from katha.renderers.shared_attention.coupling import Member, QueryBlend, SharingRules
from katha.renderers.shared_attention.denoise import Trajectory, lockstep
from katha.renderers.shared_attention.masks import otsu, word_positions
from katha.renderers.shared_attention.memory_estimate import Load
from katha.renderers.shared_attention.renderer import Drawing, Part, SharedRenderer, StoryBoard, frame_key

if TYPE_CHECKING:
    from torch import Tensor

# ---
# Feature injection along DIFT correspondences: a subject's tokens take part of the matching tokens' features.
#
# Correspondences come from the output of the first up block at a late timestep of a first pass. In the second pass,
# early on, the self-attention outputs of the layers on that grid are mixed: for a token inside its subject's mask
# whose best match in the anchors is near enough, `strength` of the match and the rest of its own.


DIFT_TIMESTEP = 261


@dataclass(frozen=True)
class Match:
    """For the tokens (T,) of one frame: the anchor that each matches best, and the position among its tokens."""

    tokens: Tensor
    anchors: Tensor
    places: Tensor


def smooth_features(features: Tensor) -> Tensor:
    """Unit vectors (F, h * w, C), float32, of feature maps (F, C, h, w) after a 3x3 gaussian of sigma 1."""
    from torch.nn.functional import normalize
    from torchvision.transforms.functional import gaussian_blur

    blurred = gaussian_blur(features.float(), [3, 3], [1.0, 1.0])
    return normalize(blurred.flatten(2).transpose(1, 2), dim=2)


def anchor_of(member: Member, features: Tensor, labels: Tensor) -> Anchor:
    """What a source shows: features (n, C) and labels (n, S) inside the masks of the subjects it stands for."""
    import torch

    subjects = labels & torch.tensor(member.shows, device=labels.device)
    tokens = subjects.any(1).nonzero()[:, 0]
    return Anchor(tokens, subjects[tokens], features[tokens])


def match_tokens(member: Member, features: Tensor, labels: Tensor, anchors: Mapping[int, Anchor]) -> Match | None:
    """The matches of one frame's tokens, features (n, C) and labels (n, S), or None where there are none.

    A token matches tokens of a common subject in the other anchors, by cosine distance; of the best distances those
    above Otsu's threshold are left out.
    """
    import torch

    others = {number: anchor for number, anchor in anchors.items() if number != member.source and len(anchor.tokens)}
    own = labels & torch.tensor(member.reads, device=labels.device)
    tokens = own.any(1).nonzero()[:, 0]
    if not others or not len(tokens):
        return None
    shown = torch.cat([anchor.subjects for anchor in others.values()])
    distances = 1 - features[tokens] @ torch.cat([anchor.features for anchor in others.values()]).T
    common = (own[tokens].float() @ shown.float().T) > 0
    best, place = distances.masked_fill(~common, float("inf")).min(1)
    found = best.isfinite()
    if not found.any():
        return None
    near = found & (best <= otsu(best[found].cpu().numpy()))
    numbers = torch.cat([torch.full_like(anchor.tokens, number) for number, anchor in others.items()])
    places = torch.cat([torch.arange(len(anchor.tokens), device=place.device) for anchor in others.values()])
    return Match(tokens[near], numbers[place[near]], places[place[near]])


class Injector:
    """Mixes the outputs of the layers on `grid` during the steps `window`; `Coupling.after` of one trajectory.

    Anchors show their outputs as they are before mixing, so the frames of a call do not depend on their order.
    """

    def __init__(
        self,
        members: Sequence[Member],
        matches: Sequence[Match | None],
        anchors: Mapping[int, Anchor],
        grid: Grid,
        window: range,
        strength: float,
    ) -> None:
        self._members, self._matches, self._anchors = members, matches, anchors
        self._tokens, self._window, self._strength = grid[0] * grid[1], window, strength

    def __call__(self, layer: str, output: Tensor, record: StepRecord, step: int) -> Tensor:
        """`output` (halves * F, n, C) of one layer, its positive half mixed."""
        import torch

        if step not in self._window or output.shape[1] != self._tokens:
            return output
        frames = len(self._members)
        mixed = output.clone()
        positive = output[-frames:]
        for number, member in enumerate(self._members):
            if member.source is not None and member.source in self._anchors:
                record.outputs[layer, member.source] = positive[number, self._anchors[member.source].tokens]
        for number, match in enumerate(self._matches):
            if match is None:
                continue
            taken = torch.empty_like(positive[number, match.tokens])
            for anchor in sorted(set(match.anchors.tolist())):
                here = match.anchors == anchor
                taken[here] = record.outputs[layer, anchor].to(output.device)[match.places[here]]
            row = len(output) - frames + number
            mixed[row, match.tokens] = self._strength * taken + (1 - self._strength) * positive[number, match.tokens]
        return mixed


# ---
# The two passes over a board: one that finds subjects and correspondences, one that injects features along them.


INJECTION = (1 / 10, 1 / 3)
"""From which share of the steps to which features are injected."""
STRENGTH = 0.8
"""The match's share of an injected feature."""


def collect(drawing: Drawing, *, features: bool) -> tuple[list[Trajectory], list[Trajectory]]:
    """The first pass over sources (none where the bank has them) and readers; with `features`, kept for matching."""
    studio, bank = drawing.studio, drawing.bank
    sources = [] if bank.complete else [studio.trajectory(parts, maps=True) for parts in drawing.sources]
    readers = [studio.trajectory(parts, maps=any(map(_reads, parts))) for parts in drawing.readers]
    at = studio.denoiser.nearest_step(DIFT_TIMESTEP) if features else None
    lockstep(studio.denoiser, sources, readers, bank, "collect", at)
    return sources, readers


def inject(drawing: Drawing, sources: Sequence[Trajectory], readers: Sequence[Trajectory]) -> None:
    """The second pass, from the same noise, for every frame that reads; the others are finished as they are."""
    studio, bank = drawing.studio, drawing.bank
    known = [_features(run) for run in sources]
    for parts, (features, labels, _) in zip(drawing.sources, known, strict=False):
        for number, (_, member) in enumerate(parts):
            if member.source is not None:
                bank.anchors[member.source] = anchor_of(member, features[number], labels[number])
    again = [_second(drawing, parts, *seen) for parts, seen in zip(drawing.sources, known, strict=False)]
    reading = [number for number, parts in enumerate(drawing.readers) if any(map(_reads, parts))]
    final = list(readers)
    for number in reading:
        final[number] = _second(drawing, drawing.readers[number], *_features(readers[number]))
    lockstep(studio.denoiser, again, [final[number] for number in reading], bank, "inject")
    drawing.finish(drawing.sources if sources else [], again)
    drawing.finish(drawing.readers, final)


def _reads(part: Part) -> bool:
    return any(part[1].reads)


def _features(run: Trajectory) -> tuple[Tensor, Tensor, Grid]:
    """Unit features (F, n, C) and the subjects' labels (F, n, S) at the end of the first pass, and their grid."""
    maps, features = run.coupling.maps, run.features
    assert maps is not None
    assert features is not None
    grid: Grid = (features.shape[-2], features.shape[-1])
    labels = maps.labels(grid)
    assert labels is not None
    return smooth_features(features), labels, grid


def _second(drawing: Drawing, parts: Sequence[Part], features: Tensor, labels: Tensor, grid: Grid) -> Trajectory:
    """A trajectory from the first noise, with the injection of its frames."""
    studio, anchors = drawing.studio, drawing.bank.anchors
    run = studio.trajectory(parts, maps=True)
    members = [member for _, member in parts]
    matches = [match_tokens(member, features[at], labels[at], anchors) for at, member in enumerate(members)]
    window = injection_window(studio.denoiser.steps)
    run.coupling.after = Injector(members, matches, anchors, grid, window, STRENGTH)
    return run


def injection_window(steps: int) -> range:
    """The steps at which features are injected; with few steps still the one after the first, which shares nothing."""
    first, last = (round(share * steps) for share in INJECTION)
    return range(max(1, first), max(2, last))


# ---
# `consistory`: the same subjects in every frame, by attention that frames share inside subject masks.


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
