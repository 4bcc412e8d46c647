"""The similarity where none is chosen: no coverage is measured, and only what is the very same picture is a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.config import UNMEASURED
from katha.jsonio import sha256_hex
from katha.protocols import Similarity

# So many that two texts are as good as orthogonal: their cosine is 0 within 0.06.
_DIMENSIONS = 256


class NoSimilarity(Similarity):
    """Knows no picture and no text: coverage is 0, and a frame is like another only where it is the same picture."""

    def spec(self) -> Mapping[str, Any]:
        """Return its name."""
        return {"name": UNMEASURED}

    def encode_image(self, png: bytes) -> NDArray[np.float64]:
        """Return a unit vector by the hash of the file: those of two pictures stand nearly at right angles."""
        seed = int(sha256_hex(png), 16)
        vector = np.random.default_rng(seed).standard_normal(_DIMENSIONS)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float64)

    def encode_text(self, text: str) -> NDArray[np.float64]:
        """Return the zero vector, as of a text in which nothing is known."""
        return np.zeros(_DIMENSIONS)
