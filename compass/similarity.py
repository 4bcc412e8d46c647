"""The embedded psi of Eqs. 25 and 26: frames and transitions in the space of the vocabulary's concepts.

An image is what the embedded reader sees in it, a text is what the same vocabulary reads in it. Both are vectors over
the reader's concepts, scaled to length 1, so that the inner product is the cosine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from katha.jsonio import sha256_hex

if TYPE_CHECKING:
    from katha.eval_bridge.reader import FrameReading, Reader

__all__ = ["ReaderSimilarity"]
