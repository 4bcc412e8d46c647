"""Who belongs together on the stage: partners of a deed beside each other, others to both sides of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from katha_sketch.drawing.deeds import Deed, deed
from katha_sketch.drawing.figures.rig import Pose
from katha_sketch.drawing.scenes.record import Scene, SceneActor
from katha_sketch.drawing.scenes.things import Cluster, Sprite, shrunk, think_bubble, union
from katha_sketch.drawing.svg import path, trace

__all__ = [
    "BOARD",
    "FOR_TWO",
    "OWN_PLACE",
    "across",
    "at_board",
    "each",
    "groups_of",
    "join",
    "on_left",
    "paired",
    "resting",
    "settled",
    "spread",
]

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


def _board(one: Cluster) -> Sprite | None:
    """The table at which somebody sits; None where there is none, or it was put away for the one of a goal."""
    return next((sprite for sprite in one.sprites if sprite.id == one.board), None) if one.board is not None else None


def across(one: Cluster, others: Sequence[Cluster]) -> None:
    """Put the first of the others on the far side of the table at which one sits, and the next beside the two."""
    own = _board(one)
    for nth, other in enumerate(others):
        their = _board(other)
        if own is None or their is None:
            continue
        x0, _, x1, _ = own.box
        y0, _, y1, _ = their.box
        along = 0.5 * (x0 + x1 - y0 - y1) - other.facing * _ABREAST * ((nth + 1) // 2)
        other.sprites = [sprite for sprite in other.sprites if sprite is not their]
        other.move(along)
        other.deepen(_BACK * ((nth + 1) // 2))


FOR_TWO = frozenset({"fight", "dance", "hug", "kiss", "hold_hands", "shake_hands"})
_BETWEEN = "carry_together"
"""Deeds of which each partner has a pose of its own; in others a partner only answers while doing nothing."""
_GAP, _COMING = 14.0, 26.0
_MOST = 4
"""So many are drawn as one group."""
_CARRIED, _ON_BODY = 0.62, 0.5
_CLEAR = 1.02
"""Heads of those who go hand in hand are this many of their reaches apart."""
_NEAREST = 20.0
"""Two bodies that embrace are at least this far apart, however different their heights."""


def each(actor: SceneActor) -> tuple[SceneActor, ...]:
    """Two who do with each other what takes two are drawn as two; others stay together."""
    other = f"{actor.id} too"
    if at_board(actor) and actor.count > 1:
        far = actor.count // 2
        return (replace(actor, count=actor.count - far), replace(actor, id=other, count=far, target=actor.id))
    if actor.deed == _BETWEEN and actor.count > 1:  # those who carry a sofa are on both sides of it
        half = actor.count // 2
        return (replace(actor, count=actor.count - half, target=other),
                replace(actor, id=other, count=half, target=actor.id))  # fmt: skip
    if actor.count != 2 or actor.target is not None or actor.deed not in FOR_TWO:
        return (actor,)
    return (replace(actor, count=1, target=other), replace(actor, id=other, count=1, target=actor.id))


def groups_of(scene: Scene) -> list[list[SceneActor]]:
    """The actors in the order in which they are placed, each with the partner of its deed; the lead comes first."""
    by_id = {actor.id: actor for actor in scene.actors}
    things = {thing.id for thing in scene.things}
    lead = _lead(scene)
    groups: list[list[SceneActor]] = []
    placed: set[str] = set()
    for one_of in sorted(scene.actors, key=lambda one: one is not lead):
        if one_of.id in placed:
            continue
        actor = one_of
        while (host := by_id.get(actor.at or "")) is not None and host.id not in placed and host is not one_of:
            actor = host
        other = by_id.get(actor.target or "") or by_id.get(actor.tells or "")
        pair = [actor] if other is None or other.id in placed or other is actor else [actor, other]
        if len(pair) > 1 and deed(actor.deed).close is not None:
            pair += [one for one in scene.actors if one.target == actor.id and one not in pair and one.id not in placed]
        if actor.target in things and deed(actor.deed).thing == "under":
            pair = [actor, *(one for one in scene.actors if one.deed == actor.deed
                             and one.target in (None, actor.target) and one is not actor
                             and one.id not in placed)]  # fmt: skip
        if at_board(actor):
            pair += [one for one in scene.actors if one.target == actor.id and at_board(one) and one not in pair]
        beside = {one.id for one in pair} | ({actor.at, actor.target} & things)
        while more := [one for one in scene.actors if one.at in beside and one not in pair and one.id not in placed]:
            pair += more
            beside |= {one.id for one in more}
        groups.append(pair[:_MOST])
        placed |= {one.id for one in pair[:_MOST]}
    return groups


def paired(one: SceneActor, other: SceneActor) -> Deed:
    """The deed that says how two are beside each other: what one does to the other, else that one speaks to the
    other."""
    return deed("talk") if one.tells == other.id != one.target else deed(one.deed)


def on_left(nth: int, first: SceneActor) -> bool:
    """Whether the `nth` group stands to the left of the lead's."""
    return first.place == "left" or (first.place != "right" and nth % 2 == 1)


def _lead(scene: Scene) -> SceneActor | None:
    """Who the moment is about: the first who acts on something, else the first."""
    acting = [actor for actor in scene.actors if actor.target is not None]
    targets = {actor.id: actor.target for actor in scene.actors}
    mutual = [actor for actor in acting if targets.get(actor.target or "") == actor.id]
    return next(iter(mutual or acting or scene.actors), None)


def join(one: Cluster, other: Cluster, *others: Cluster) -> None:
    """Put the other actor where the first one's deed has its partner; a third embraces from the other side. Those
    who are beside somebody of the group come last."""
    near = [guest for guest in (other, *others) if guest.actor.at is not None and _host(guest, (one, other, *others))]
    rest = [cluster for cluster in (other, *others) if cluster not in near]
    dining = [cluster for cluster in rest if _board(one) is not None and _board(cluster) is not None]
    if dining:
        across(one, dining)
    elif rest:
        _partners(one, *rest)
    for guest in sorted(near, key=lambda one: _host(one, near) is not None):
        host = _host(guest, (one, other, *others))
        if host is not None:
            _perch(host, guest)


def _host(guest: Cluster, among: Sequence[Cluster]) -> Cluster | None:
    """Who of a group somebody is beside."""
    return next((one for one in among if one.actor.id == guest.actor.at and one is not guest), None)


def _perch(host: Cluster, guest: Cluster) -> None:
    """Put somebody on a part of another's body, or behind or beside them."""
    where, f = guest.actor.where or "beside", host.facing
    x0, y0, x1, y1 = host.sprites[0].box
    if where in ("between", "before", "towards"):
        _between(host, guest)
        return
    if where in ("behind", "beside", "against", "around"):
        a0, _, a1, _ = guest.sprites[0].box
        wide, back = a1 - a0, x0 if f > 0 else x1
        apart = -0.1 * wide if where == "behind" else 0.5 * wide + 6
        if where == "beside" and guest.actor.deed != "nod_off":  # an easel or desk of the guest's hides nobody
            front = guest.solid[2] if f > 0 else guest.solid[0]
            guest.move(back - f * 6.0 - front)
            guest.deepen(-0.05)
            return
        apart -= 0.34 * wide if guest.actor.deed == "nod_off" else 0.0
        guest.move(back - f * apart - (a0 + a1) / 2)
        guest.deepen(-0.6 if where == "behind" else -0.05)
        return
    tall = guest.solid[3] - guest.solid[1]
    share = min(1.0, _ON_BODY * (y1 - y0) / tall)
    guest.sprites = [shrunk(sprite, share) for sprite in guest.sprites]
    x, y = _spot(host, where)
    if where == "shoulder" and guest.actor.kind == "person" and host.body is not None:
        x, y, where = host.body.head[0], host.body.head[1] - 0.45 * host.body.head[2], "back"  # rides on the neck
    b0, _, b1, b3 = guest.sprites[0].box
    guest.move(x - (b0 + b1) / 2, y - b3)
    guest.solid = union([sprite.box for sprite in guest.sprites])
    guest.deepen(-0.6 if where == "back" else 0.6)


def _between(host: Cluster, guest: Cluster) -> None:
    """Put somebody into the middle of a group, whose halves make room, or before the one who stands alone."""
    a0, _, a1, _ = guest.sprites[0].box
    several = sorted((sprite for sprite in host.sprites if sprite.acts), key=lambda one: one.x)
    if len(several) == 1 or guest.actor.where != "between":
        x0, _, x1, _ = host.sprites[0].box
        edge = x1 if host.facing > 0 else x0
        gap = _COMING if guest.actor.where == "towards" else 6.0
        guest.move(edge + host.facing * (0.5 * (a1 - a0) + gap) - (a0 + a1) / 2)
        return
    left = several[: len(several) // 2]
    middle = 0.5 * (max(one.box[2] for one in left) + min(one.box[0] for one in several[len(left) :]))
    apart = 0.5 * (a1 - a0) + 4
    host.sprites = [
        one if not one.acts else one.moved(-apart if any(one is other for other in left) else apart, 0.0)
        for one in host.sprites
    ]
    host.solid = union([host.solid, *(sprite.box for sprite in host.sprites if sprite.acts)])
    guest.move(middle - (a0 + a1) / 2)
    guest.deepen(0.1)


def _spot(host: Cluster, where: str) -> tuple[float, float]:
    """Where on a body somebody is; on what has no limbs they are on the top of it."""
    own, f = host.sprites[0], host.facing
    x0, y0, x1, y1 = own.box
    if host.body is None or where in ("under", "over"):
        return (x0 + x1) / 2, {"under": y1, "over": y0 - 8}.get(where, y0 + 3)
    cx, cy, r = host.body.head
    (hx, hy), (sx, sy) = host.body.joints["hip"], host.body.joints["shoulder"]
    spots = {
        "head": (cx, cy - 0.85 * r),
        "shoulder": (sx - f * 14, sy),
        "hand": host.body.joints["far"],
        "lap": (hx + f * 16, hy - 2),
        "back": (sx - f * 20, hy),
    }
    x, y = spots.get(where, spots["shoulder"])
    return x + own.x, y + own.y


def _partners(one: Cluster, other: Cluster, *others: Cluster) -> None:
    if one.holds and deed(one.actor.deed).thing == "under" and other.actor.deed == one.actor.deed:
        _seat(one, (other, *others))
        return
    _pair(one, other)
    for third in others:
        _embrace(one, third, deed(one.actor.deed), -one.facing)


def _seat(one: Cluster, others: Sequence[Cluster]) -> None:
    """Put those who sit on one thing beside each other over its middle."""
    wide = 0.8 * max(cluster.sprites[0].local[2] - cluster.sprites[0].local[0] for cluster in (one, *others))
    for nth, other in enumerate(others, 1):
        other.move(-one.facing * wide * nth)
        other.deepen(-0.05 * nth)
    seats = [sprite for sprite in one.sprites if sprite.id == one.actor.target]
    one.sprites = [
        sprite.moved(-0.5 * one.facing * wide * len(others), 0.0) if sprite in seats else sprite
        for sprite in one.sprites
    ]


def _pair(one: Cluster, other: Cluster) -> None:
    row, f = paired(one.actor, other.actor), one.facing
    where = row.partner
    if where == "under":
        lift = 0.62 * (other.solid[3] - other.solid[1])
        one.move(0.0, -lift + 8)
        one.deepen(0.5)
        return
    if where == "above":
        cx, cy, r = _head(one)
        other.move(cx - _head(other)[0], cy - 0.55 * r)
        other.deepen(-0.4)
        return
    if where == "carried" and one.body is not None:
        (ax, ay), (bx, by) = one.body.joints["hand"], one.body.joints["far"]
        tall = other.solid[3] - other.solid[1]
        shrink = min(1.0, _CARRIED * 100.0 / tall)
        other.sprites = [shrunk(sprite, shrink) for sprite in other.sprites]
        other.move((ax + bx) / 2 + f * 8, (ay + by) / 2 + 0.45 * tall * shrink)
        other.deepen(1.0)
        return
    if where == "thought" and one.body is not None:
        cx, cy, r = one.body.head
        other.sprites = [replace(shrunk(sprite, 0.5), acts=False, face_local=None) for sprite in other.sprites]
        other.move(cx + f * (r + 44), cy - 4)
        box = union([sprite.box for sprite in other.sprites])
        other.sprites.append(think_bubble(Sprite("b", "", box, -0.2), f))
        return
    if row.clasp and one.body is not None and other.body is not None:
        hand = one.body.joints["far" if where == "front" else "hand"]
        (ax, _, ar), (bx, _, br) = one.body.head, other.body.head
        side = f if where == "front" else -f
        least = side * (ax - bx) + _CLEAR * (ar + br)
        other.move(side * max(side * (hand[0] - other.body.joints["far"][0]), least))
        other.deepen(-0.05)
        return
    if row.close is not None:
        _embrace(one, other, row, f)
        return
    gap = min(row.gap, 8.0) if one.holds and where == "front" else row.gap
    if where in ("side", "behind"):
        edge, near = (one.solid[0], other.solid[2]) if f > 0 else (one.solid[2], other.solid[0])
        other.move(edge - near - f * gap)
    else:
        edge, near = (one.solid[2], other.solid[0]) if f > 0 else (one.solid[0], other.solid[2])
        other.move(edge - near + f * gap)
    other.deepen(-0.05)
    if row.id == "walk_dog" and one.body is not None:
        one.sprites.append(_leash(one, other))


def _leash(one: Cluster, other: Cluster) -> Sprite:
    """The line from the hand to the neck of who is led."""
    assert one.body is not None
    (x0, y0), led = one.body.joints["far"], other.sprites[0]
    (x1, y1, r) = led.face or (led.x, led.y - 30.0, 10.0)
    y1 = min(-6.0, y1 + 0.8 * r)
    box = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    sag = trace("M", (x0, y0), "Q", ((x0 + x1) / 2, max(y0, y1) + 8), (x1, y1))
    return Sprite("leash", path(sag, stroke="#7a4f35", width=2.6), box, 1.2, grounded=False)


def _embrace(one: Cluster, other: Cluster, row: Deed, side: int) -> None:
    """Put the other at that side of the first, so near that arms go around and neither face is covered."""
    (ax, ay, ar), (bx, by, br) = _head(one), _head(other)
    reach = (row.close or 1.0) * (ar + br)
    apart = max(_NEAREST, math.sqrt(max(0.0, reach**2 - (ay - by) ** 2)))
    other.move(ax + side * apart - bx)
    other.deepen(-0.05)


def _head(cluster: Cluster) -> tuple[float, float, float]:
    if cluster.body is not None:
        return cluster.body.head
    face = cluster.sprites[0].face
    x0, y0, x1, y1 = cluster.solid
    return face or ((x0 + x1) / 2, y0 + 0.3 * (y1 - y0), 0.3 * (x1 - x0))


def spread(row: Sequence[list[Cluster]]) -> None:
    """The lead's group in the middle, others to both sides of it as their places say."""
    left = right = 0.0
    for nth, group_ in enumerate(row):
        x0, _, x1, _ = union([cluster.solid for cluster in group_])
        if nth == 0:
            left, right = x0, x1
            continue
        if on_left(nth, group_[0].actor):
            shift = left - _GAP - x1
            left += -_GAP - (x1 - x0)
        else:
            shift = right + _GAP - x0
            right += _GAP + (x1 - x0)
        for cluster in group_:
            cluster.move(shift)
