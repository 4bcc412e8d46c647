"""Who stands where: actors and props of one moment placed in stage units (an adult is 100 tall, y down, ground at 0).

Characters who act on each other stand side by side and face each other; a chased one runs ahead of its chaser; a rider
sits on the mount; carried things hang at the hand; what somebody sits on, hides behind, climbs or is caught in is put
there. Everything that the reading names is placed; only the camera may cut it off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from katha.language import Actor, SceneReading
from katha.renderers.sketch.figures import Figure, FigureSpec, draw_figure
from katha.renderers.sketch.pieces import Box, Piece, piece_of_figure, piece_of_prop, union
from katha.renderers.sketch.relations import attach, captor

__all__ = ["COPIES", "arrange"]

COPIES = 4
"""A crowd is drawn as at most this many."""

_TALL = 58.0
"""Props taller than this stand behind the actors, others in front of them."""
_ALOFT = 34.0
"""How much higher than its pose lifts it somebody flies above others."""
_APART, _NEAR = 14.0, 6.0
_GAPS: Mapping[str, float] = {"hug": -12.0, "fight": -2.0, "bite": -4.0, "free": 0.0, "chase": 16.0, "ride": 0.0}

_AHEAD = frozenset({"chase", "ride"})
"""Actions whose target looks the same way as the actor: the chased runs ahead, the mount goes where the rider goes."""


@dataclass
class _Token:
    """One place in the row: an actor (with its copies and what belongs to it) or a prop."""

    actor: int | None
    prop: str | None
    pieces: list[Piece]


def arrange(reading: SceneReading, rng: Random) -> tuple[Piece, ...]:
    """Every figure and prop of `reading`, farthest first. `rng` decides who stands left and small offsets."""
    order = _order(reading)
    if rng.random() < 0.5:
        order.reverse()
    used: set[str] = set()
    tokens = [_fill(reading, order, place, rng, used) for place in range(len(order))]
    _mount_riders(reading, tokens)
    row = [token for token in tokens if token.pieces and not (token.prop and token.prop in used)]
    _pack(reading, row)
    pieces = [piece for token in row for piece in token.pieces]
    return tuple(sorted(_scatter(reading, pieces, order, used, rng), key=lambda piece: piece.depth))


def target_of(reading: SceneReading, index: int) -> int | None:
    """The index of the actor that actor `index` acts on."""
    wanted = reading.actors[index].target
    for other, actor in enumerate(reading.actors):
        if other != index and wanted is not None and actor.concept == wanted:
            return other
    return None


def _order(reading: SceneReading) -> list[int | str]:
    """Actors (by index) and the props they act on (by id) in a row, partners next to each other."""
    row: list[int | str] = []
    carried = {prop for actor in reading.actors for prop in actor.carries}
    for index, actor in enumerate(reading.actors):
        other = target_of(reading, index)
        if index not in row:
            at = row.index(other) if other in row else len(row)
            row.insert(at if at == 0 else at + 1, index)
        if other is not None and other not in row:
            row.insert(row.index(index) + 1, other)
        elif actor.target in reading.props and actor.target not in row and actor.target not in carried:
            row.insert(row.index(index) + 1, actor.target)
    return row


def _facing(reading: SceneReading, order: Sequence[int | str], index: int) -> int:
    place = order.index(index)
    actor = reading.actors[index]
    hunters = [i for i, other in enumerate(reading.actors) if target_of(reading, i) == index]
    for hunter in hunters:
        if reading.actors[hunter].action in _AHEAD or actor.action == "run":
            return 1 if place > order.index(hunter) else -1
    other = target_of(reading, index)
    aim: int | str | None = other if other is not None else actor.target
    if aim not in order:
        aim = hunters[0] if hunters else None
    if aim is not None and aim in order:
        return 1 if order.index(aim) > place else -1
    if len(order) == 1:
        return 1
    return 1 if place < len(order) / 2 else -1


def _fill(reading: SceneReading, order: Sequence[int | str], place: int, rng: Random, used: set[str]) -> _Token:
    name = order[place]
    if isinstance(name, str):
        piece = piece_of_prop(name, rng.random(), depth=_prop_depth(name))
        return _Token(None, name, [piece.moved(0.0, piece.hang)])
    actor = reading.actors[name]
    facing = _facing(reading, order, name) if len(order) > 1 else rng.choice((1, -1))
    pieces: list[Piece] = []
    held_by = captor(reading, actor, used)
    for copy in range(min(max(actor.count, 1), COPIES)):
        figure = _draw(actor, facing, (0.29 * copy + 0.17 * name) % 1.0, held_by)
        piece = piece_of_figure(actor, figure, facing, name, depth=10.0 - 0.1 * name - 0.3 * copy)
        step = 0.62 * (figure.bbox[2] - figure.bbox[0])
        aloft = (_ALOFT if len(order) > 1 else 0.3 * _ALOFT) * (actor.action == "fly")
        piece = replace(piece, x=-facing * step * copy, y=-5.0 * (copy % 2) - aloft)
        pieces.append(piece)
    extra, taken = attach(reading, actor, pieces, facing, rng.random(), used)
    used |= taken
    return _Token(name, None, extra + pieces[1:])


def _draw(actor: Actor, facing: int, phase: float, held_by: str | None) -> Figure:
    return draw_figure(
        FigureSpec(
            concept=actor.concept,
            attributes=actor.attributes,
            action=actor.action,
            emotion=actor.emotion,
            carries=actor.carries,
            held_by=held_by,
            facing=facing,
            phase=phase,
        )
    )


def _prop_depth(name: str) -> float:
    tall = -piece_of_prop(name, 0.0, depth=0.0).local[1]
    return 2.0 if tall > _TALL else 15.0


def _mount_riders(reading: SceneReading, tokens: Sequence[_Token]) -> None:
    """Lift each rider of a character onto that character's shoulders; the rider's own place in the row goes."""
    by_actor = {token.actor: token for token in tokens if token.actor is not None}
    for index, token in by_actor.items():
        other = target_of(reading, index)
        if reading.actors[index].action != "ride" or other is None or not token.pieces:
            continue
        mount = by_actor[other]
        if not mount.pieces:
            continue
        base = mount.pieces[0]
        rider = next(piece for piece in token.pieces if piece.kind == "character")
        cx, cy, r = base.head or (base.x, base.box[1], 0.0)
        x = (base.anchor("back")[0] + cx) / 2
        y = cy - 1.05 * r - 0.42 * rider.local[1]
        moved = [piece.moved(x - rider.x, y - rider.y, base.depth - rider.depth - 0.05) for piece in token.pieces]
        mount.pieces.extend(moved)
        token.pieces = []


def _pack(reading: SceneReading, row: Sequence[_Token]) -> None:
    """Put the tokens side by side from left to right."""
    edge: float | None = None
    for place, token in enumerate(row):
        x0, _, x1, _ = _solid(token.pieces)
        shift = 0.0 if edge is None else edge + _gap(reading, row[place - 1], token) - x0
        token.pieces = [piece.moved(shift, 0.0) for piece in token.pieces]
        edge = x1 + shift


def _solid(pieces: Sequence[Piece]) -> Box:
    """What a token keeps free of others: a tall thing behind lets neighbours overlap its sides."""
    boxes = []
    for piece in pieces:
        x0, y0, x1, y1 = piece.box
        trim = 0.2 * (x1 - x0) if piece.depth < 5.0 else 0.0
        boxes.append((x0 + trim, y0, x1 - trim, y1))
    return union(boxes)


def _gap(reading: SceneReading, left: _Token, right: _Token) -> float:
    for token, other in ((left, right), (right, left)):
        if token.actor is None:
            continue
        actor = reading.actors[token.actor]
        if other.prop is not None and actor.target == other.prop:
            return _NEAR
        if other.actor is not None and target_of(reading, token.actor) == other.actor:
            return _GAPS.get(actor.action or "", _NEAR)
    return _APART


def _scatter(
    reading: SceneReading, pieces: list[Piece], order: Sequence[int | str], used: set[str], rng: Random
) -> list[Piece]:
    """Add the props that nobody acts on: at the ends of the row in turn, tall ones farther back."""
    carried = {prop for actor in reading.actors for prop in actor.carries}
    free = [prop for prop in dict.fromkeys(reading.props) if prop not in used | carried and prop not in order]
    side = rng.choice((-1, 1))
    for prop in free:
        piece = piece_of_prop(prop, rng.random(), depth=_prop_depth(prop))
        if pieces:
            x0, _, x1, _ = _solid(pieces)
            p0, _, p1, _ = _solid([piece])
            shift = x1 + _NEAR - p0 if side > 0 else x0 - _NEAR - p1
        else:
            shift = 0.0
        depth_shift = -9.0 if piece.depth < 5.0 else rng.uniform(0.0, 8.0)
        pieces.append(piece.moved(shift, depth_shift + piece.hang))
        side = -side
    return pieces
