"""A board as the sharing renderers see it: its scenes with one seed, and the characters that are to stay the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from katha.jsonio import digest
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.sharing.planning import Member
from katha.schema import Character

__all__ = ["Part", "StoryBoard", "board_of", "board_with", "frame_key"]

Part = tuple[FrameRequest, Member]
"""A frame and its part in the sharing."""


@dataclass(frozen=True)
class StoryBoard:
    """The distinct scenes of a board in order, all with its seed, and its characters in the order they come in."""

    scenes: tuple[FrameRequest, ...]
    subjects: tuple[Character, ...]

    @property
    def seed(self) -> int:
        """The seed of the board, the key of everything that is drawn by chance."""
        return self.scenes[0].seed


def board_of(requests: Sequence[FrameRequest]) -> StoryBoard:
    """The board of `requests`. Its seed is the one most of its scenes have: a scene may have been drawn again with
    another.

    Inserted frames are no part of the identity; without any scene all frames count as scenes.
    """
    scenes = [request for request in requests if request.kind == "scene"] or list(requests)
    seed = Counter(request.seed for request in scenes).most_common(1)[0][0]
    ordered = sorted(scenes, key=lambda request: request.scene or 0)
    subjects: dict[str, Character] = {}
    for request in ordered:
        subjects.update({item.name: item for item in request.characters if item.name not in subjects})
    seeded = [replace(request, seed=seed) for request in ordered]
    distinct = {frame_key(request): request for request in reversed(seeded)}
    return StoryBoard(tuple(reversed(distinct.values())), tuple(subjects.values()))


def board_with(request: FrameRequest, context: BoardContext) -> StoryBoard:
    """The board that `request` is added to.

    A scene that the board lacks is one drawn again: with the board's seed it was part of what the others were drawn
    from, so it counts as if it were still there. The board may be another renderer's, of a size that is not drawn here:
    its identity is made anew in the size of `request`.
    """
    scenes = [item for item in context.requests if item.kind == "scene"]
    others = [replace(item, width=request.width, height=request.height) for item in scenes]
    again = request.kind == "scene" and request.scene not in {item.scene for item in others}
    if not others:
        return board_of([request])
    return board_of([*others, replace(request, seed=board_of(others).seed)] if again else others)


def frame_key(request: FrameRequest) -> str:
    """A hash of what is drawn: requests that differ only in their place or kind give the same picture."""
    characters = [item.model_dump(mode="json") for item in request.characters]
    fields = (request.prompt, request.seed, request.width, request.height, request.negative_prompt, request.style)
    return digest([*fields, characters])
