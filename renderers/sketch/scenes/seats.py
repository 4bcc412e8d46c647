"""Who sits at a table or in bed, kneels or leans out, while the hands do a deed of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from katha.renderers.sketch.deeds import Deed, deed
from katha.renderers.sketch.figures.rig import Pose
from katha.renderers.sketch.scenes.record import SceneActor
from katha.renderers.sketch.scenes.things import Cluster

__all__ = ["BOARD", "OWN_PLACE", "across", "at_board", "resting", "settled"]

BOARD = "board"
"""The table at which people sit (pieces.yaml)."""
OWN_PLACE = frozenset({"window_sill", "bed", BOARD})
"""Furniture of a posture, which goes before what the deed of the hands would bring along."""
_ABREAST, _BACK = 44.0, -0.1


def at_board(actor: SceneActor) -> bool:
    """Whether somebody sits at a table."""
    return BOARD in (deed(actor.posture or actor.deed).set, deed(actor.deed).set)


def settled(row: Deed, actor: SceneActor) -> Deed:
    """The deed at the furniture of the actor's posture: what is written in bed needs no desk."""
    own = deed(actor.posture).set if actor.posture is not None else None
    return replace(row, set=own) if own in OWN_PLACE else row


def resting(pose: Pose, actor: SceneActor) -> Pose:
    """The pose with the legs of who sits or kneels meanwhile."""
    if actor.posture is None:
        return pose
    rest = deed(actor.posture).pose
    signs = (*pose.emanata, *(sign for sign in rest.emanata if actor.where != "on"))
    return replace(pose, leg_near=rest.leg_near, leg_far=rest.leg_far, turn=0.0, lift=0.0, emanata=signs)


def across(one: Cluster, others: Sequence[Cluster]) -> None:
    """Put the first of the others on the far side of the table at which one sits, and the next beside the two."""
    own = next(sprite for sprite in one.sprites if sprite.id == one.board)
    for nth, other in enumerate(others):
        their = next(sprite for sprite in other.sprites if sprite.id == other.board)
        x0, _, x1, _ = own.box
        y0, _, y1, _ = their.box
        along = 0.5 * (x0 + x1 - y0 - y1) - other.facing * _ABREAST * ((nth + 1) // 2)
        other.sprites = [sprite for sprite in other.sprites if sprite is not their]
        other.move(along)
        other.deepen(_BACK * ((nth + 1) // 2))
