"""psi of Eqs. 25 and 26 by any open_clip model, SigLIP included; features are kept by the hash of what they are of.

`open-clip:NAME@WEIGHTS`: a model of open_clip's list with its weights' tag, or with a checkpoint's path.
`hf-hub:ORG/REPO` and `local-dir:FOLDER` name model and weights at once (`open-clip:hf-hub:timm/ViT-B-16-SigLIP`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.eval_bridge.metrics.encoders import OpenClipEncoder
from katha.eval_bridge.metrics.features import Features
from katha.jsonio import sha256_hex
from katha.protocols import Similarity

Vector = NDArray[np.float64]


class OpenClipSimilarity(Similarity):
    """`Similarity` by a model that sees pictures and text in one space. Safe between threads; loads on first use.

    A text that is longer than the model's context is encoded sentence by sentence, and the mean is taken.
    """

    def __init__(self, argument: str | None = None, *, device: str | None = None, cache: Path | None = None) -> None:
        """Read the model's name; nothing is loaded yet. device: the accelerator if there is one, unless told."""
        self._encoder, self._cache = OpenClipEncoder(argument, device=device), cache
        self._kept: dict[tuple[str, str], Vector] = {}

    def spec(self) -> Mapping[str, Any]:
        """Name, weights (by the hash of their values), package version, and the kind of device where it is
        not a CPU."""
        return self._encoder.spec()

    def encode_image(self, png: bytes) -> Vector:
        """Return a unit vector of shape (D,) for one frame."""
        return self._unit("image", png, lambda: self._features.images(self._encoder, [png])[0])

    def encode_images(self, pngs: Sequence[bytes]) -> Vector:
        """Return unit vectors of shape (N, D); frames that are not known yet are encoded in batches."""
        fresh = list(dict.fromkeys(png for png in pngs if ("image", sha256_hex(png)) not in self._kept))
        for png, vector in zip(fresh, self._features.images(self._encoder, fresh), strict=True):
            self._keep(("image", sha256_hex(png)), vector)
        return np.stack([self.encode_image(png) for png in pngs])

    def encode_text(self, text: str) -> Vector:
        """Return a unit vector of shape (D,) for a transition's text."""
        return self._unit("text", text, lambda: self._features.texts(self._encoder, [text])[0])

    @cached_property
    def _features(self) -> Features:
        return Features(self._cache)

    def _unit(self, kind: str, content: bytes | str, make: Callable[[], Vector]) -> Vector:
        key = (kind, content if isinstance(content, str) else sha256_hex(content))
        return self._kept[key] if key in self._kept else self._keep(key, make())

    def _keep(self, key: tuple[str, str], vector: Vector) -> Vector:
        self._kept[key] = vector / (float(np.linalg.norm(vector)) or 1.0)
        return self._kept[key]
