"""Feature injection along DIFT correspondences: a subject's tokens take part of the matching tokens' features.

Correspondences come from the output of the first up block at a late timestep of a first pass. In the second pass, early
on, the self-attention outputs of the layers on that grid are mixed: for a token inside its subject's mask whose best
match in the anchors is near enough, `strength` of the match and the rest of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from katha.renderers.sharing.bank import Anchor, StepRecord
from katha.renderers.sharing.grids import Grid
from katha.renderers.sharing.otsu import otsu
from katha.renderers.sharing.planning import Member

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DIFT_TIMESTEP", "Injector", "Match", "anchor_of", "match_tokens", "smooth_features"]

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
