"""`consistory` (arXiv 2402.03286): the same subjects in every frame, by attention that frames share inside subject
masks.

A first pass finds subjects and correspondences: DIFT features from the output of the first up block at a late timestep.
In a second pass, early on, the self-attention outputs of the layers on that grid are mixed: for a token inside its
subject's mask whose best match in the anchors is near enough, `STRENGTH` of the match and the rest of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.errors import UsageError
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.options import at_least
from katha.renderers.shared_attention.coupling import (
    Anchor,
    Grid,
    QueryBlend,
    SharingFrame,
    SharingRules,
    StepRecord,
    otsu,
)
from katha.renderers.shared_attention.denoise import SharedLatents
from katha.renderers.shared_attention.renderer import (
    Part,
    Session,
    SharedOptions,
    SharedRenderer,
    SharingLoad,
    StoryBoard,
    frame_key,
)

if TYPE_CHECKING:
    from torch import Tensor

# Where DIFT's features match best (its paper, Sec. 4), as ConsiStory takes it.
DIFT_TIMESTEP = 261
INJECTION = (1 / 10, 1 / 3)
"""From which share of the steps to which features are injected."""
STRENGTH = 0.8
"""The match's share of an injected feature."""
_BLEND = QueryBlend(first=0.9, last=0.818, until=0.1)


@dataclass(frozen=True)
class Match:
    """For the tokens (T,) of one frame: the anchor that each matches best, and the position among its tokens."""

    tokens: Tensor
    anchors: Tensor
    places: Tensor


def smooth_features(features: Tensor) -> Tensor:
    """Return unit vectors (F, h * w, C), float32, of feature maps (F, C, h, w) after a 3x3 gaussian of sigma 1."""
    from torch.nn.functional import normalize
    from torchvision.transforms.functional import gaussian_blur

    blurred = gaussian_blur(features.float(), [3, 3], [1.0, 1.0])
    return normalize(blurred.flatten(2).transpose(1, 2), dim=2)


def anchor_of(member: SharingFrame, features: Tensor, labels: Tensor) -> Anchor:
    """Return what a source shows: features (n, C) and labels (n, S) inside the masks of the subjects it stands for."""
    import torch

    subjects = labels & torch.tensor(member.shows, device=labels.device)
    tokens = subjects.any(1).nonzero()[:, 0]
    return Anchor(tokens, subjects[tokens], features[tokens])


def match_tokens(member: SharingFrame, features: Tensor, labels: Tensor, anchors: Mapping[int, Anchor]) -> Match | None:
    """Return the matches of one frame's tokens, features (n, C) and labels (n, S), or None where there are none.

    A token matches tokens of a common subject in the other anchors, by cosine distance. Otsu's threshold is that of the
    best distances of the whole frame, so that it falls between subject and background; matches above it are left out.
    """
    import torch

    others = {number: anchor for number, anchor in anchors.items() if number != member.source and len(anchor.tokens)}
    own = labels & torch.tensor(member.reads, device=labels.device)
    tokens = own.any(1).nonzero()[:, 0]
    if not others or not len(tokens):
        return None
    shown = torch.cat([anchor.subjects for anchor in others.values()])
    distances = 1 - features @ torch.cat([anchor.features for anchor in others.values()]).T
    # Outside of the masks a token is of no subject: it is held against all that is shown.
    common = ((own.float() @ shown.float().T) > 0) | ~own.any(1, keepdim=True)
    everywhere, places_of = distances.masked_fill(~common, float("inf")).min(1)
    best, place = everywhere[tokens], places_of[tokens]
    found = best.isfinite()
    if not found.any():
        return None
    near = found & (best <= otsu(everywhere[everywhere.isfinite()].cpu().numpy()))
    numbers = torch.cat([torch.full_like(anchor.tokens, number) for number, anchor in others.items()])
    places = torch.cat([torch.arange(len(anchor.tokens), device=place.device) for anchor in others.values()])
    return Match(tokens[near], numbers[place[near]], places[place[near]])


@dataclass(frozen=True)
class Injector:
    """Mixes the outputs of the layers on `grid` during the steps `window`; `Coupling.after` of one trajectory.

    Anchors show their outputs as they are before mixing, so the frames of a call do not depend on their order.
    """

    members: Sequence[SharingFrame]
    matches: Sequence[Match | None]
    anchors: Mapping[int, Anchor]
    grid: Grid
    window: range

    def __call__(self, layer: str, output: Tensor, record: StepRecord, step: int) -> Tensor:
        """Return `output` (halves * F, n, C) of one layer, its positive half mixed."""
        import torch

        if step not in self.window or output.shape[1] != math.prod(self.grid):
            return output
        frames = len(self.members)
        mixed = output.clone()
        positive = output[-frames:]
        for number, member in enumerate(self.members):
            if member.source is not None and member.source in self.anchors:
                record.outputs[layer, member.source] = positive[number, self.anchors[member.source].tokens]
        for number, match in enumerate(self.matches):
            if match is None:
                continue
            taken = torch.empty_like(positive[number, match.tokens])
            for anchor in sorted(set(match.anchors.tolist())):
                here = match.anchors == anchor
                taken[here] = record.outputs[layer, anchor].to(output.device)[match.places[here]]
            row = len(output) - frames + number
            mixed[row, match.tokens] = STRENGTH * taken + (1 - STRENGTH) * positive[number, match.tokens]
        return mixed


def inject(session: Session, sources: Sequence[SharedLatents], readers: Sequence[SharedLatents]) -> None:
    """Denoise anew, from the same noise, every frame that reads; the others are finished as they are."""
    anchors, final = session.bank.anchors, list(readers)
    known = [_features(run) for run in sources]
    for parts, (features, labels, _) in zip(session.sources, known, strict=False):
        for number, (_, member) in enumerate(parts):
            if member.source is not None:
                anchors[member.source] = anchor_of(member, features[number], labels[number])

    def second(parts: Sequence[Part], features: Tensor, labels: Tensor, grid: Grid) -> SharedLatents:
        """Return a trajectory from the first noise, with the injection of its frames."""
        run, members = session.trajectory(parts), [member for _, member in parts]
        matches = [match_tokens(member, features[at], labels[at], anchors) for at, member in enumerate(members)]
        run.coupling.after = Injector(members, matches, anchors, grid, injection_window(session.denoiser.steps))
        return run

    again = [second(parts, *seen) for parts, seen in zip(session.sources, known, strict=False)]
    reading = [number for number, parts in enumerate(session.readers) if any(any(part[1].reads) for part in parts)]
    for number in reading:
        final[number] = second(session.readers[number], *_features(readers[number]))
    session.denoiser.run(again, [final[number] for number in reading], session.bank, "inject")
    session.finish(again, final)


def _features(run: SharedLatents) -> tuple[Tensor, Tensor, Grid]:
    """Return unit features (F, n, C) and the subjects' labels (F, n, S) after the first pass, and their grid."""
    maps, features = run.coupling.maps, run.features
    assert maps is not None
    assert features is not None
    grid: Grid = (features.shape[-2], features.shape[-1])
    labels = maps.labels(grid)
    assert labels is not None
    return smooth_features(features), labels, grid


def injection_window(steps: int) -> range:
    """Return the steps at which features are injected; with few steps still the one after the first, which shares
    nothing."""
    first, last = (round(share * steps) for share in INJECTION)
    return range(max(1, first), max(2, last))


@dataclass(frozen=True, kw_only=True)
class ConsistoryOptions(SharedOptions):
    """The options of `consistory`."""

    scheduler: str | None = field(default=None, init=False)
    anchors: int = 2
    """How many frames of each subject the others read, the first that name it."""
    dropout: float = 0.5
    """The probability that an anchor's token is left out at a step."""
    characters: Path | None = None
    """A folder with a picture of every character, NAME.png: it is then the only anchor of that character."""
    reference: tuple[str, ...] = ()
    """NAME=FILE, a picture of the plan's character NAME."""
    sharing: bool = True
    query_blend: bool = True
    """Early queries partly as without sharing, for varied layouts."""
    injection: bool = True
    """A second pass that carries features along correspondences."""
    separate: bool = True
    freeu: bool = True
    keep_gib: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, anchors=self.anchors)
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout is at least 0 and below 1, not {self.dropout}.")


class ConsistoryRenderer(SharedRenderer):
    """ConsiStory on SDXL, implemented from its paper: `consistory:FOLDER`, `:FILE.safetensors` or `:OWNER/NAME`."""

    renderer_name = "consistory"
    options_class = ConsistoryOptions
    options: ConsistoryOptions
    capabilities = Capabilities(identity="batch", insertion="bank", default_size=(1024, 1024), size_multiple=8)

    def spec(self) -> Mapping[str, Any]:
        """Return everything that can change the pixels: over what matches are cut, too."""
        return {**super().spec(), **({"cut": "frame"} if self.options.injection else {})}

    def rules(self, board: StoryBoard) -> SharingRules:
        """Return subject-driven shared attention: inside the masks, each token with probability 1 - dropout."""
        options, blend = self.options, _BLEND if self.options.query_blend else None
        return SharingRules(board.seed, 1 - options.dropout, masked=True, separate=options.separate, blend=blend)

    def sources(self, board: StoryBoard, pipe: Any) -> list[list[Part]]:
        """Return the anchors in one group, as they read one another: of each subject the first frames that name it, or
        the user's picture, which reads nothing."""
        words = [self.words(request, board, pipe) for request in board.scenes]
        shows: dict[int, list[bool]] = {}
        given = self.pictured(board)
        for subject in (number for number in range(len(board.subjects)) if number not in given):
            naming = [scene for scene, named in enumerate(words) if named[subject]]
            for scene in naming[: self.options.anchors]:
                shows.setdefault(scene, [False] * len(board.subjects))[subject] = True
        anchors: list[Part] = []
        for number, (scene, shown) in enumerate(sorted(shows.items())):
            reads, key = tuple(map(bool, words[scene])), frame_key(board.scenes[scene])
            anchors.append((board.scenes[scene], SharingFrame(reads, tuple(shown), words[scene], number, key)))
        for subject, request in given.items():
            only = tuple(number == subject for number in range(len(board.subjects)))
            own = self.words(request, board, pipe)
            anchors.append((request, SharingFrame((False,) * len(only), only, own, len(anchors), frame_key(request))))
        return [anchors] if anchors else []

    def member(self, request: FrameRequest, board: StoryBoard, pipe: Any) -> SharingFrame:
        """Return what a frame reads: the subjects that its prompt names."""
        none = ((),) * len(board.subjects)
        words = self.words(request, board, pipe) if self.options.sharing else none
        return SharingFrame(tuple(map(bool, words)), tuple(map(bool, none)), words)

    def source_counts(self, board: StoryBoard) -> tuple[int, ...]:
        """Return the number of anchors, all denoised together: of each subject its picture, or at most `anchors`."""
        given = len(self.pictured(board))
        shown = given + min(len(board.scenes), self.options.anchors * (len(board.subjects) - given))
        return (shown,) if shown else ()

    def load(self, board: StoryBoard, wanted: Sequence[FrameRequest]) -> SharingLoad:
        """Return how much a drawing of `wanted` shares, at most: queries and a second pass count."""
        return replace(super().load(board, wanted), blend=self.options.query_blend, injection=self.options.injection)

    @property
    def rounds(self) -> int:
        """Return how often the frames of a board are denoised."""
        return 1 + self.options.injection

    def passes(self, session: Session) -> None:
        """Denoise twice with injection, else once."""
        if self.options.injection:
            inject(session, *session.first_pass(session.denoiser.nearest_step(DIFT_TIMESTEP)))
        else:
            super().passes(session)
