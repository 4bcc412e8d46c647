"""What a planner fills and the drawing takes: one moment of a story as a small typed record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from katha_sketch.drawing.deeds import Look

__all__ = ["Beside", "Laid", "Scene", "SceneActor", "SceneThing", "Shot"]

Shot = Literal["wide", "medium", "close"]

Beside = Literal[
    "on", "in", "under", "covered", "behind", "over", "beside", "against", "before", "around", "between",
    "towards", "at", "atop", "head", "shoulder", "hand", "lap", "back",
]  # fmt: skip
"""How somebody is beside a thing or somebody else (`towards`: on the way to them, `at`: the table or bed of their
posture, `atop`: on the roof of what others are in); the last five are parts of
the other's body."""

Laid = Literal[
    "on", "in", "under", "above", "behind", "beside", "against", "before", "head", "below", "across", "out",
    "aloft", "neck",
]  # fmt: skip
"""How a thing is beside another; on somebody it is at the head, around the neck, or across the body. `below` hangs
down from a hook, `across` over the back of a chair, `out` of a window; `aloft` is over something and
does not touch it."""


@dataclass(frozen=True)
class SceneActor:
    """Somebody who does something. `id` is the character's name for the whole story and fixes its look.

    kind: a person is drawn by the rig in its `look`; a figure is the vocabulary's `concept` with its `attributes` (a
    lion, a king); anything else is drawn by its `pictogram` (None: a stand-in of `kind_of` and `cm`). deed: an id of
    deeds.yaml. target: the id of the actor or thing acted on. place: where in the frame. facing: 1 right, -1 left,
    None free. count: how many of them. says: the pictogram of what is spoken about. at: the id of the thing or actor
    that they are `where` of. posture: a deed of resting (sit) in which the hands do the deed.
    states: what became of it. voice: they speak while they do something else; tells: the id of whom they speak to then.
    """

    id: str
    kind: Literal["person", "figure", "pictogram"] = "person"
    look: Look = field(default_factory=Look)
    concept: str = ""
    attributes: tuple[str, ...] = ()
    pictogram: str | None = None
    kind_of: str = "animal"
    cm: float | None = None
    deed: str = "stand"
    mood: str | None = None
    target: str | None = None
    place: Literal["left", "middle", "right"] | None = None
    facing: Literal[1, -1] | None = None
    count: int = 1
    says: str | None = None
    # Left out of the record's text, from which the camera's chance is drawn: where nobody is beside anything, nothing
    # changes.
    at: str | None = field(default=None, repr=False)
    where: Beside | None = field(default=None, repr=False)
    posture: str | None = field(default=None, repr=False)
    states: tuple[str, ...] = field(default=(), repr=False)
    voice: bool = field(default=False, repr=False)
    tells: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SceneThing:
    """A thing: what a deed is done to or with, or what stands there.

    `pictogram` None draws a stand-in of its kind and size. role: the object of its holder's deed, its instrument, what
    the object goes to or comes from (the bowl that eggs are cracked into), or scenery. held_by: the id of the actor
    whose deed it belongs to. at: the id of another thing, or of an actor, that it is `where` of.
    states: what became of it. colour: the one that is told of it. shows: the pictogram of what a picture is of.
    """

    id: str
    word: str
    pictogram: str | None = None
    kind: str = "thing"
    cm: float = 30.0
    stands: str = "ground"
    role: Literal["object", "instrument", "goal", "scenery"] = "scenery"
    held_by: str | None = None
    count: int = 1
    at: str | None = None
    where: Laid = "on"
    states: tuple[str, ...] = field(default=(), repr=False)
    colour: str | None = field(default=None, repr=False)
    shows: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Scene:
    """One moment: where (an id of places.yaml) and what that place is in (`states`, of
    states.yaml), when, in what weather, who and what, and the shot if one is asked."""

    setting: str | None = None
    weather: str | None = None
    time: str | None = None
    actors: tuple[SceneActor, ...] = ()
    things: tuple[SceneThing, ...] = ()
    shot: Shot | None = None
    states: tuple[str, ...] = field(default=(), repr=False)
