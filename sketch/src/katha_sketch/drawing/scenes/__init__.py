"""Scenes: a typed record of one moment, and the frame that shows it with places, people, pictograms and a camera."""

from katha_sketch.drawing.scenes.cast import actor_of, thing_of
from katha_sketch.drawing.scenes.draw import Frame, draw_scene, frame_scene
from katha_sketch.drawing.scenes.framing import Framing, Subject, choose_framing, keep_direction
from katha_sketch.drawing.scenes.record import Scene, SceneActor, SceneThing
from katha_sketch.drawing.scenes.told import Told, scene_of, tell

__all__ = [
    "Frame",
    "Framing",
    "Scene",
    "SceneActor",
    "SceneThing",
    "Subject",
    "Told",
    "actor_of",
    "choose_framing",
    "draw_scene",
    "frame_scene",
    "keep_direction",
    "scene_of",
    "tell",
    "thing_of",
]
