"""Where each subject is: cross-attention maps cut by Otsu's threshold, at the positions of its words in the prompt."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from katha.renderers.diffusion.prompt_encoding import chunk_tokens
from katha.renderers.shared_attention.coupling import Grid, bytes_of
from katha.schema import Character

if TYPE_CHECKING:
    from torch import Tensor

WINDOW = 20
"""Steps whose maps are averaged."""


def otsu(values: ArrayLike) -> float:
    """Return the threshold whose two classes, `<= threshold` and `> threshold`, have the largest variance between them.

    Otsu, IEEE Transactions on Systems, Man, and Cybernetics 9(1), 1979, but exact: over every split of the sorted
    values instead of a histogram's bins. Equal values have no split: their value is returned, and nothing lies above.

    Raises:
        ValueError: no values.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=None)
    if not ordered.size:
        raise ValueError("no values to split")
    ends = np.flatnonzero(np.diff(ordered))
    if not ends.size:
        return float(ordered[-1])
    below = ends + 1
    sums = np.cumsum(ordered)[ends]
    above = ordered.size - below
    between = below * above * ((ordered.sum() - sums) / above - sums / below) ** 2
    return float(ordered[ends[np.argmax(between)]])


class SubjectMaps:
    """Where S subjects are in F frames: cross-attention maps on one grid, averaged and cut by Otsu's threshold.

    Only one map a step is kept, the mean over its layers, and `WINDOW` steps: every layer has one map a step, so the
    mean is the same as over every layer's last `WINDOW` maps.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._steps: deque[Tensor] = deque(maxlen=window)
        self._sum: Tensor | None = None
        self._layers = 0
        self._grid: Grid = (0, 0)
        self._labels: dict[Grid, Tensor] = {}

    def add(self, maps: Tensor, grid: Grid) -> None:
        """Add one layer's maps, (F, S, n) on `grid`."""
        self._sum = maps if self._sum is None else self._sum + maps
        self._layers += 1
        self._grid = grid

    def close_step(self) -> None:
        """End a step: from now on its maps count."""
        if self._sum is not None:
            self._steps.append(self._sum / self._layers)
            self._labels.clear()
        self._sum, self._layers = None, 0

    def labels(self, grid: Grid) -> Tensor | None:
        """Return the subjects that each token shows, bool (F, n, S) on `grid`; None before the first step has ended."""
        import torch

        if not self._steps:
            return None
        if grid not in self._labels:
            self._labels[grid] = _labels(torch.stack(list(self._steps)).mean(0), self._grid, grid)
        return self._labels[grid]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return bytes_of((*self._steps, *self._labels.values(), *([] if self._sum is None else [self._sum])))


def _labels(mean: Tensor, grid: Grid, wanted: Grid) -> Tensor:
    """Return the maps (F, S, n) of `grid`, resized to `wanted` and cut: bool of shape (F, n', S)."""
    import torch
    from torch.nn.functional import interpolate

    frames, subjects, _ = mean.shape
    maps = mean.view(frames, subjects, *grid)
    if grid != wanted:
        maps = interpolate(maps, size=wanted, mode="bilinear", align_corners=False)
    flat = maps.flatten(2).cpu()
    cuts = torch.tensor([[otsu(item.numpy()) for item in frame] for frame in flat], dtype=flat.dtype)
    return (flat > cuts[..., None]).transpose(1, 2).contiguous().to(mean.device)


def token_positions(tokenizer: Any, prompt: str, character: Character) -> tuple[int, ...]:
    """Return the positions of the words that name `character` in the encoders' sequence; empty where it is not named.

    The words are its kind inside its appearance phrase, else its name, else its kind, else the last word of its kind. A
    prompt of several pieces (of 77 positions, each with a start token) is counted piece by piece.
    """
    ids = _ids(tokenizer, prompt)
    last = character.kind.split()[-1] if character.kind.split() else ""
    looks = _spans(ids, _ids(tokenizer, character.appearance))
    kinds = _spans(ids, _ids(tokenizer, character.kind))
    within = [span for span in kinds if any(set(span) <= set(look) for look in looks)]
    phrases = (character.name, character.kind, last)
    choices = [within, *(_spans(ids, _ids(tokenizer, phrase)) for phrase in phrases)]
    found = next((spans for spans in choices if spans), [])
    where = list(_layout(tokenizer, ids))
    return tuple(where[place] for span in found for place in span)


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] if text.strip() else []
    return ids


def _spans(ids: Sequence[int], wanted: Sequence[int]) -> list[range]:
    """Return every place where `wanted` stands in `ids`."""
    size = len(wanted)
    starts = range(len(ids) - size + 1) if size else range(0)
    return [range(at, at + size) for at in starts if list(ids[at : at + size]) == list(wanted)]


def _layout(tokenizer: Any, ids: Sequence[int]) -> Iterator[int]:
    """Yield the position in the sequence of each of `ids`."""
    length = tokenizer.model_max_length
    pieces = tokenizer.convert_ids_to_tokens(ids)
    for number, (start, stop) in enumerate(chunk_tokens(pieces, length - 2)):
        yield from range(number * length + 1, number * length + 1 + stop - start)
