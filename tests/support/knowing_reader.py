"""A reader that knows what was drawn: it separates the judge's rules from how well the shipped weights read pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from katha.jsonio import sha256_hex
from katha.protocols import FrameRequest
from katha_sketch.drawing import rasterise
from katha_sketch.drawing.deeds import deed
from katha_sketch.drawing.scenes import Scene, SceneActor, frame_scene, tell
from katha_sketch.reader import Concepts, FigureReading, FrameReading, PropReading, Reader, load_concepts
from katha_sketch.reader.network import ACT
from katha_sketch.reader.words import load_words

ALIKE = {"person": "man", "child": "boy", "teen": "boy", "teen_boy": "boy", "teen_girl": "girl"}


class KnowingReader(Reader):
    """Reads pictures that `draw` made by their scenes, and every other picture as an empty sheet."""

    def __init__(self) -> None:
        self.concepts: Concepts = load_concepts()
        self._known: dict[str, FrameReading] = {}

    def draw(self, prompt: str, seed: int = 0) -> bytes:
        """The PNG of a prompt, known from now on."""
        return self.show(FrameRequest(prompt, seed, 768, 512))

    def show(self, request: FrameRequest) -> bytes:
        """The PNG of a request, known from now on."""
        scene = tell(request).scene
        frame = frame_scene(scene, request.width, request.height, request.seed)
        png = rasterise(frame.svg, request.width, request.height)
        self._known[sha256_hex(png)] = read_scene(scene)
        return png

    def spec(self) -> Mapping[str, Any]:
        return {"name": "knowing", "version": "1", "weights": "none"}

    def read_many(self, pictures: Iterable[bytes]) -> list[FrameReading]:
        empty = FrameReading((), (), {"none": 1.0}, {"day": 1.0}, 1.0)
        return [self._known.get(sha256_hex(picture), empty) for picture in pictures]


def read_scene(scene: Scene) -> FrameReading:
    """The reading of a scene by one who knows it."""
    words = load_words()
    figures, props = [], []
    for nth, actor in enumerate(scene.actors):
        mood = actor.mood or "none"
        feels = {(words.shown(mood)[0] if mood != "none" else mood): 1.0}
        if actor.kind == "pictogram":
            if actor.pictogram is not None:
                does = {f"{ACT}{words.acts[actor.deed]}": 1.0}
                props.append(PropReading(actor.pictogram, 1.0, 100.0 * nth, 0.0, 20.0, does, feels))
            continue
        does = {deed(actor.deed).seen or actor.deed: 1.0}
        figures.append(FigureReading(_concept(actor), 1.0, 100.0 * nth, 0.0, does, feels))
    shown = [thing.pictogram for thing in scene.things if thing.pictogram is not None]
    props += [PropReading(name, 1.0, 50.0, 0.0) for name in shown]
    settings = {scene.setting or "none": 1.0}
    return FrameReading(tuple(figures), tuple(props), settings, {scene.time or "day": 1.0}, 1.0)


def _concept(actor: SceneActor) -> str:
    if actor.kind == "figure":
        return actor.concept
    if actor.look.outfit in load_words().people:
        return actor.look.outfit
    return ALIKE.get(actor.look.base, actor.look.base)
