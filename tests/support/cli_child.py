"""The command line with doubles beside the real plug-ins: `--renderer block`, `--judge pixel`, and a pixel similarity.

`install` puts them into this process; run as a script it is `katha` itself: `cli_child.py run STORY --judge pixel`.
`SLOW` in the environment makes every frame take that many seconds, so that a test can interrupt a run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from doubles import BlockRenderer, PixelJudge, PixelSimilarity

from katha.protocols import FrameRequest
from katha.registry import default_registry
from katha_sketch.reader import similarity

if TYPE_CHECKING:
    import pytest


class SlowRenderer(BlockRenderer):
    """Blocks of colour, as slowly as a real renderer."""

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        for png in super().render_board(requests):
            time.sleep(float(os.environ.get("SLOW", "0")))
            yield png


def install(patch: pytest.MonkeyPatch | None = None) -> None:
    """Make the doubles known, and put the pixel similarity in the place of the reader's, until `patch` is undone."""
    default_registry("renderers").register("block")(SlowRenderer)
    default_registry("judges").register("pixel")(PixelJudge)
    default_registry("judges").register("second")(lambda: PixelJudge(name="second"))
    put = setattr if patch is None else patch.setattr
    put(similarity, "ReaderSimilarity", PixelSimilarity)


if __name__ == "__main__":
    from katha.app.cli.main import main

    install()
    main()
