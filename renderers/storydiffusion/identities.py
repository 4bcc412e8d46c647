"""The identity images of each character: scenes in which it is alone, or portraits of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from katha.prompting import load_prompt
from katha.protocols import FrameRequest
from katha.renderers.sharing.board import StoryBoard
from katha.schema import Character

__all__ = ["VIEWS", "Identity", "fitting_share", "identity_images"]

Identity = Literal["panels", "portraits"]
VIEWS = ("full body, from the front", "close-up of the face", "full body, from the side", "walking")
"""The views of a character's portraits, in order; more portraits than views repeat them with other noise."""


def identity_images(board: StoryBoard, number: int, images: int, kind: Identity) -> list[FrameRequest]:
    """The requests of at most `images` identity images of subject `number` of `board`.

    `panels`: the first scenes in which it is alone; where there is none, its portraits. `portraits`: always
    portraits, so that no scene depends on another.
    """
    character = board.subjects[number]
    alone = [scene for scene in board.scenes if [item.name for item in scene.characters] == [character.name]]
    if kind == "panels" and alone:
        return alone[:images]
    first = next(scene for scene in board.scenes if character.name in {item.name for item in scene.characters})
    return [_portrait(first, character, place) for place in range(images)]


def _portrait(like: FrameRequest, character: Character, place: int) -> FrameRequest:
    """A request that shows `character` alone, in the size and style of `like`, with noise of its own."""
    prompt = load_prompt("renderers/portrait").render(
        anchor=character.anchor_prompt, appearance=character.appearance, view=VIEWS[place % len(VIEWS)]
    )
    seed = (like.seed + place) % 2**32
    return replace(like, prompt=prompt, seed=seed, kind="extra", scene=None, characters=(character,))


def fitting_share(wanted: float, images: int, image_bytes: int, limit: int) -> float:
    """The share of tokens that is kept: `wanted`, or less where that share of `images` images exceeds `limit` bytes."""
    needed = images * image_bytes
    return min(wanted, limit / needed) if needed else wanted
