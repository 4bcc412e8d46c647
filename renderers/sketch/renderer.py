"""The embedded renderer: prompts to PNG storyboard thumbnails, drawn as vectors, in milliseconds, on any machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from katha.errors import UsageError
from katha.language import read_scene
from katha.protocols import BoardContext, Capabilities, FrameRequest
from katha.renderers.sketch.compose import compose, rasterise
from katha.renderers.sketch.looks import LOOKS, in_look
from katha.schema import Character

__all__ = ["SketchRenderer"]

_VERSION = "2"
_SMALLEST, _LARGEST = 64, 4096


class SketchRenderer:
    """Draws what each prompt says and nothing else; the seed chooses the camera. Every frame stands alone.

    `argument` names a style (`sketch:ink`) used for requests that bring none.
    """

    capabilities = Capabilities(
        identity="none",
        insertion="alone",
        sizes=None,
        size_multiple=8,
        default_size=(768, 512),
        prompt_tokens=None,
        deterministic=True,
    )

    def __init__(self, argument: str | None = None) -> None:
        if argument is not None and argument not in LOOKS:
            raise UsageError(f"The sketch renderer has no style {argument!r}.", hint=f"Styles: {', '.join(LOOKS)}.")
        self._style = argument or "colour"

    def spec(self) -> Mapping[str, Any]:
        """Name, version, default style and the hash of the vocabulary that says how everything is drawn."""
        import resvg_py

        return {
            "name": "sketch",
            "version": _VERSION,
            "style": self._style,
            "vocabulary": _vocabulary_hash(),
            "resvg": resvg_py.__version__,
        }

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order.

        Raises:
            UsageError: a size or style that the sketch does not draw.
        """
        for request in requests:
            yield self._draw(request)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """The PNG of one more frame; the others are not needed and do not change."""
        return self._draw(request)

    def undrawn(self, character: Character) -> Sequence[str]:
        """Return what of a character's kind, age and colour the vocabulary has no drawing for."""
        told, kind = character.model_extra or {}, character.kind
        plain = read_scene(f"The {kind} stands.").actors
        if not plain:
            return [kind]
        words = [str(told[name]) for name in ("age", "color") if told.get(name)]
        return [word for word in words if read_scene(f"The {word} {kind} stands.").actors == plain]

    def _draw(self, request: FrameRequest) -> bytes:
        width, height = request.width, request.height
        if not (_SMALLEST <= width <= _LARGEST and _SMALLEST <= height <= _LARGEST):
            raise UsageError(
                f"The sketch cannot draw {width}x{height} pixels.",
                hint=f"Each side may be {_SMALLEST} to {_LARGEST}.",
            )
        frame = compose(request.prompt, request.seed, width, height)
        return rasterise(in_look(frame.svg, request.style or self._style), width, height)


@cache
def _vocabulary_hash() -> str:
    folder = resources.files("katha.language.vocabulary")
    digest = hashlib.sha256()
    for name in sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml")):
        digest.update(name.encode() + b"\0" + folder.joinpath(name).read_bytes())
    return digest.hexdigest()
