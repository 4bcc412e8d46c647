"""The embedded renderer: prompts to PNG storyboard thumbnails, drawn as vectors, in milliseconds, on any machine."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any
from xml.sax.saxutils import quoteattr

from katha.errors import UsageError
from katha.protocols import Capabilities, FrameRequest, Renderer
from katha.schema import Character
from katha_sketch.drawing.rasters import MOST, shared_rasters
from katha_sketch.drawing.scenes import Told, frame_scene, tell
from katha_sketch.drawing.style import LOOKS, in_look
from katha_sketch.drawing.svg import canvas, rasterise

__all__ = ["LOOSE", "SketchRenderer", "layered_svg"]

_VERSION = "14"
LOOSE = "loose"
_SMALLEST, _LARGEST = 64, 4096
_MOST_READ = 256
_A_BOARD = 4
"""For so many frames a process of its own is worth its beginning."""
_TABLES = (
    "katha_sketch.vocabulary",
    "katha_sketch.english",
    "katha_sketch.drawing.deeds",
    "katha_sketch.drawing.pictograms",
    "katha_sketch.drawing.places",
    "katha_sketch.drawing.props",
    "katha_sketch.drawing.scenes",
)
"""Packages whose data say what words mean and how things are drawn."""


class SketchRenderer(Renderer):
    """Draws what each prompt and panel says and nothing else; the seed chooses the shot. Every frame stands alone.

    `argument` names a style (`sketch:ink`) used for requests that bring none, or `loose`: framing as careless as a
    text-to-image model's, with heads cut off and things left out, for experiments.
    """

    capabilities = Capabilities(
        identity="none",
        insertion="alone",
        sizes=None,
        size_multiple=8,
        default_size=(768, 512),
        prompt_tokens=None,
        deterministic=True,
        panel=True,
    )

    def __init__(self, argument: str | None = None) -> None:
        if argument is not None and argument not in (*LOOKS, LOOSE):
            styles = ", ".join((*LOOKS, LOOSE))
            raise UsageError(f"The sketch renderer has no style {argument!r}.", hint=f"Styles: {styles}.")
        self._loose = argument == LOOSE
        self._style = argument if argument is not None and not self._loose else "colour"
        self._unsaid: dict[str, None] = {}
        self._said: set[str] = set()
        self._read: dict[str, Told] = {}

    def spec(self) -> Mapping[str, Any]:
        """Name, version, default style and the hash of the vocabulary that says how everything is drawn."""
        import resvg_py

        return {
            "name": "sketch",
            "version": _VERSION,
            "style": self._style,
            "framing": "loose" if self._loose else "careful",
            "vocabulary": _vocabulary_hash(),
            "resvg": resvg_py.__version__,
        }

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order.

        Raises:
            UsageError: a size or style that the sketch does not draw.
        """
        if len(requests) < _A_BOARD:
            yield from map(self._draw, requests)
            return
        with ThreadPoolExecutor(MOST, thread_name_prefix="katha-rasters") as beside:
            ahead: deque[Future[bytes]] = deque()
            for request in requests:  # each is written while those before it are made into pixels
                ahead.append(beside.submit(shared_rasters().draw, *self._written(request)))
                if len(ahead) > MOST:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def vectors(self, request: FrameRequest) -> str | None:
        """Return what is drawn of a request in layers (`layered_svg`); None in a style that is not known."""
        try:
            return layered_svg(request, LOOSE if self._loose else self._style)
        except UsageError:
            return None

    def remarks(self) -> Sequence[str]:
        """What the frames since the last call asked for and the sketch cannot draw, once for each word."""
        words = list(self._unsaid)
        self._said |= set(words)
        self._unsaid.clear()
        return [f"The sketch has no picture for {', '.join(words)}: plain shapes or poses stand in."] if words else []

    def not_drawn(self, request: FrameRequest) -> Sequence[str]:
        """The words of `request` that a plain shape or a neutral pose stands for."""
        return self._told(request).not_drawn

    def _told(self, request: FrameRequest) -> Told:
        """What a request tells; the seed chooses the shot and changes nothing of it, so that it is read once."""
        key = repr(replace(request, seed=0, story_id="", style=""))
        if key not in self._read:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            self._read[key] = tell(request)
        return self._read[key]

    def undrawn(self, character: Character) -> Sequence[str]:
        """Return what of a character's kind, age, colour and looks the sketch has no drawing for."""
        told, kind = character.model_extra or {}, character.kind
        plain = _alone(kind, kind)
        if plain.not_drawn:
            return [kind]
        words = [str(told[name]) for name in ("age", "color") if told.get(name)]
        unseen = [word for word in words if _alone(kind, f"{word} {kind}").scene == plain.scene]
        worn = {name: str(told[name]) for name in _LOOKS if told.get(name)}
        return unseen + [
            word for name, word in worn.items() if _alone(kind, _LOOKS[name].format(kind, word)).scene == plain.scene
        ]

    def _draw(self, request: FrameRequest) -> bytes:
        rasters = shared_rasters()
        return (rasters.draw if rasters.begun else rasterise)(*self._written(request))

    def _written(self, request: FrameRequest) -> tuple[str, int, int]:
        """What a frame's pixels are made of: its drawing, width and height."""
        width, height = request.width, request.height
        if not (_SMALLEST <= width <= _LARGEST and _SMALLEST <= height <= _LARGEST):
            raise UsageError(
                f"The sketch cannot draw {width}x{height} pixels.",
                hint=f"Each side may be {_SMALLEST} to {_LARGEST}.",
            )
        told = self._told(request)
        self._unsaid |= dict.fromkeys(word for word in told.not_drawn if word not in self._said)
        frame = frame_scene(told.scene, width, height, request.seed, loose=self._loose, scene_number=request.scene)
        return in_look(frame.svg, request.style or self._style), width, height


_LOOKS = {
    "build": "a {1} {0}",
    "skin": "a {0} with {1} skin",
    "hair": "a {0} with {1} hair",
    "clothing": "a {0} wearing {1}",
}
"""How a field of a sheet is said in a look."""


def _alone(kind: str, look: str) -> Told:
    """What is drawn of somebody of a kind that looks so, standing."""
    somebody = Character(name=kind, kind=kind, appearance=look)
    return tell(FrameRequest(f"The {kind} stands.", 0, _SMALLEST, _SMALLEST, characters=(somebody,)))


@cache
def _vocabulary_hash() -> str:
    digest = hashlib.sha256()
    for package in _TABLES:
        folder = resources.files(package)
        for name in sorted(entry.name for entry in folder.iterdir() if entry.name.endswith((".yaml", ".tsv", ".json"))):
            digest.update(name.encode() + b"\0" + folder.joinpath(name).read_bytes())
    return digest.hexdigest()


_INKSCAPE = "http://www.inkscape.org/namespaces/inkscape"
_OWN = "colour"


def layered_svg(request: FrameRequest, argument: str = "") -> str:
    """Return what the sketch (`sketch:argument`) draws of a request, each figure and thing in a group of its own, from
    the farthest to the nearest.

    The groups change no pixel. Inkscape shows them as layers and other programs as named groups: `background`, `fox`,
    `cheese`, and `fox 2` for a second one; their ids are `background`, `character-fox`, `prop-cheese`.

    Raises:
        UsageError: no such style.
    """
    width, height, loose = request.width, request.height, argument == LOOSE
    frame = frame_scene(tell(request).scene, width, height, request.seed, loose=loose, scene_number=request.scene)
    known, groups = Counter[str](), []
    for layer in frame.layers:
        known[layer.name] += 1
        name = layer.name + (f" {known[layer.name]}" if known[layer.name] > 1 else "")
        own = name.replace(" ", "-")
        key = f"{layer.kind}-{own}" if layer.kind in ("character", "prop") else own
        told = f'id={quoteattr(key)} inkscape:groupmode="layer" inkscape:label={quoteattr(name)}'
        groups.append(f"<g {told}>{layer.svg}</g>")
    drawing = in_look("".join(groups), request.style or ("" if loose else argument) or _OWN)
    return canvas(drawing, width, height, **{"xmlns:inkscape": _INKSCAPE})
