"""What belongs to one actor: things it carries or wears, sits on, hides behind, climbs, or is caught in.

Each relation is a row of `_RELATIONS`: the actions it holds for, the props, and the function that puts the prop (and
moves the actor). A prop used by a relation is not placed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from katha.language import Actor, SceneReading
from katha.renderers.sketch.figures.data import drawing
from katha.renderers.sketch.pieces import Box, Piece, piece_of_prop, union
from katha.renderers.sketch.svg import el

__all__ = ["attach", "captor"]

_SMALLEST_HELD = 17.0
_WORN: Mapping[str, float] = {"crown": 0.9, "hat": 1.05}
"""Props that sit on the head unless the action is to carry or give them; width beside the head's diameter."""
_LONG = frozenset({"spear", "stick", "broom", "axe", "sword", "flag", "spade", "umbrella", "reed", "hammer", "ladder"})
"""Props held by a shaft: the hand is below the middle."""
_GIVING = frozenset({"carry", "give", "take", "throw", "look"})
_CLIMBERS = frozenset({"monkey", "squirrel", "cat", "bat", "lizard"})

Pair = tuple[list[Piece], set[str]]
Placer = Callable[[Actor, Piece, Piece, int], tuple[Piece, Piece]]


def attach(
    reading: SceneReading, actor: Actor, figures: Sequence[Piece], facing: int, phase: float, used: Set[str]
) -> Pair:
    """The actor's first figure (perhaps moved) with the props that belong to it, and those props' ids.

    A net or cage goes over all its `figures`, everything else belongs to the first.
    """
    piece = figures[0]
    taken: set[str] = set()
    props: list[Piece] = []
    others = {prop for other in reading.actors if other is not actor for prop in other.carries}
    for relation in _RELATIONS:
        prop = relation.pick(actor, reading.props, used | others)
        if prop is None:
            continue
        raw = piece_of_prop(prop, phase, depth=piece.depth)
        if relation.place is _caught:
            placed = _over(raw, union(figure.box for figure in figures))
        else:
            piece, placed = relation.place(actor, piece, raw, facing)
        props.append(placed)
        taken.add(prop)
        break
    for nth, prop in enumerate(actor.carries):
        if prop not in taken:
            props.append(_held(actor, piece, prop, nth, phase, facing))
            taken.add(prop)
    return [piece, *props], taken


def captor(reading: SceneReading, actor: Actor, used: Set[str]) -> str | None:
    """The prop of the picture that holds a trapped actor captive."""
    if actor.action != "trapped":
        return None
    others = {prop for other in reading.actors if other is not actor for prop in other.carries}
    picks = (relation.pick(actor, reading.props, used | others) for relation in _RELATIONS)
    return next((prop for prop in picks if prop is not None), None)


def _held(actor: Actor, piece: Piece, prop: str, nth: int, phase: float, facing: int) -> Piece:
    raw = piece_of_prop(prop, phase, depth=piece.depth + 0.02)
    wide, tall = raw.local[2] - raw.local[0], raw.local[3] - raw.local[1]
    if prop in _WORN and actor.action not in _GIVING and piece.head is not None:
        cx, cy, r = piece.head
        scale = _WORN[prop] * 2 * r / wide
        return _scaled(raw, scale).moved(cx, cy - r * 0.82)
    body = -piece.local[1]
    share = 0.95 if prop in _LONG else 0.46
    scale = min(1.0, max(share * body, _SMALLEST_HELD) / max(tall, wide))
    handed = drawing("characters", actor.concept).get("rig") == "upright"
    hx, hy = piece.anchor("hand" if handed else "mouth")
    grip = (0.32 if prop in _LONG else 0.5) if handed else 0.8
    held = _scaled(raw, scale).moved(hx + facing * 9.0 * nth, hy + grip * tall * scale - 3.0 * nth)
    return _off_face(held, piece, facing)


def _off_face(held: Piece, piece: Piece, facing: int) -> Piece:
    """`held` moved forward or down, whichever is less, until the middle of the face is free."""
    if piece.head is None:
        return held
    cx, cy, r = piece.head
    r *= 0.72
    x0, y0, x1, y1 = held.box
    if x1 <= cx - r or x0 >= cx + r or y1 <= cy - r or y0 >= cy + r:
        return held
    forward = cx + r - x0 if facing > 0 else x1 - (cx - r)
    down = cy + r - y0
    return held.moved(facing * forward, 0.0) if forward <= down else held.moved(0.0, down)


def _scaled(piece: Piece, scale: float) -> Piece:
    return replace(piece, scale=scale)


def _seat(actor: Actor, piece: Piece, prop: Piece, facing: int) -> tuple[Piece, Piece]:
    height = {"chair": 26.0, "throne": 34.0, "bed": 30.0, "table": 42.0, "log": 28.0, "stone": 22.0, "hay": 30.0,
              "box": 30.0, "cart": 26.0, "boat": 14.0, "nest": 12.0, "well": 34.0, "fence": 46.0}  # fmt: skip
    return piece.moved(0.0, -height.get(prop.concept, 20.0)), prop.moved(0.0, 0.0, depth=-0.05)


def _vessel(actor: Actor, piece: Piece, prop: Piece, facing: int) -> tuple[Piece, Piece]:
    """On board, both afloat where the setting has water."""
    afloat = prop.concept == "boat"
    lift = {"boat": 24.0, "cart": 22.0}[prop.concept]
    x0, _, x1, _ = prop.local
    rider = replace(piece.moved(-facing * 0.22 * (x1 - x0), -lift), swims=afloat)
    return rider, replace(prop, swims=afloat, depth=prop.depth - 0.05)


def _caught(actor: Actor, piece: Piece, prop: Piece, facing: int) -> tuple[Piece, Piece]:
    return piece, _over(prop, piece.box)


def _over(prop: Piece, box: Box) -> Piece:
    """Over all of `box`, its mesh or bars in front."""
    x0, y0, x1, y1 = box
    a0, b0, a1, b1 = prop.local
    scale = max(1.12 * (x1 - x0) / (a1 - a0), 1.08 * (y1 - y0) / (b1 - b0), 0.6)
    middle = (x0 + x1) / 2 - scale * (a0 + a1) / 2
    prop = replace(prop, svg=el("g", prop.svg, fill_opacity=0.12), veil=True)
    return _scaled(prop, scale).moved(middle, y1 + 3.0, depth=0.05)


def _clamped(actor: Actor, piece: Piece, prop: Piece, facing: int) -> tuple[Piece, Piece]:
    scale = min(1.0, max(0.6, 0.5 * -piece.local[1] / -prop.local[1]))
    return piece, _scaled(prop, scale).moved(facing * 0.18 * (piece.local[2] - piece.local[0]), 3.0, depth=0.05)


def _hidden(actor: Actor, piece: Piece, prop: Piece, facing: int) -> tuple[Piece, Piece]:
    """In front of the body's lower part, the face left free."""
    cx, cy, r = piece.head or (piece.x, piece.box[1], 0.0)
    room = -(cy + r * 0.9)
    if -prop.local[1] <= max(room, 1.0) * 1.05:
        return piece, prop.moved(cx - facing * r * 0.4, 4.0, depth=0.05)
    x0, _, x1, _ = prop.local
    edge = cx - facing * r * 0.9
    aside = (edge - x1 * 0.45) if facing > 0 else (edge - x0 * 0.45)
    if -prop.local[1] > 80:
        return piece, prop.moved(aside, 4.0, depth=0.05)
    scale = max(0.45, room / -prop.local[1])
    return piece, _scaled(prop, scale).moved(cx, 4.0, depth=0.05)


def _climbing(actor: Actor, piece: Piece, prop: Piece, facing: int) -> tuple[Piece, Piece]:
    tall = -prop.local[1]
    lift = min(0.42 * tall, 60.0)
    return piece.moved(0.0, -lift), prop.moved(facing * 0.22 * (piece.local[2] - piece.local[0]), 0.0, depth=-0.05)


def _inside(actor: Actor, piece: Piece, prop: Piece, facing: int) -> tuple[Piece, Piece]:
    """In a hole or well: it stands behind, as wide as the body, and its near side is a sign of the figure. Who falls is
    above it, and it is not smaller than usual."""
    falls = actor.action == "fall"
    x0, _, x1, _ = piece.box
    a0, _, a1, _ = prop.local
    scale = max(1.0 if falls else 0.5, 1.12 * (x1 - x0) / (a1 - a0))
    return piece.moved(0.0, 0.3 * scale * prop.local[1] * falls), _scaled(prop, scale).moved(
        (x0 + x1) / 2 - scale * (a0 + a1) / 2, 0.0, depth=-0.05
    )


def _perches(concept: str) -> bool:
    """Whether it sits in trees; others sit under them."""
    return concept in _CLIMBERS or drawing("characters", concept).get("rig") == "bird"


@dataclass(frozen=True)
class _Relation:
    actions: frozenset[str]
    props: frozenset[str]
    place: Placer
    needs_target: bool = False
    perching: bool = False

    def pick(self, actor: Actor, named: tuple[str, ...], used: Set[str]) -> str | None:
        """The first prop of this relation that the reading names, the actor's target before others."""
        if actor.action not in self.actions or (self.perching and not _perches(actor.concept)):
            return None
        choice = [actor.target] if actor.target in self.props else []
        if not self.needs_target:
            choice += [prop for prop in named if prop in self.props]
        return next((prop for prop in choice if prop is not None and prop not in used), None)


_REST = frozenset({"sit", "sleep", "sing"})
_RELATIONS: tuple[_Relation, ...] = (
    _Relation(frozenset({"trapped"}), frozenset({"net", "cage", "web"}), _caught),
    _Relation(frozenset({"trapped"}), frozenset({"trap", "rope"}), _clamped),
    _Relation(frozenset({"trapped", "fall"}), frozenset({"hole", "well", "vat"}), _inside),
    _Relation(frozenset({"sit", "sleep"}), frozenset({"chair", "throne", "bed", "nest", "hay", "log"}), _seat),
    _Relation(_REST, frozenset({"throne", "bed", "table", "stone", "box", "well", "fence", "log"}), _seat, True),
    _Relation(frozenset({"ride", "sit"}), frozenset({"boat", "cart"}), _vessel),
    _Relation(
        frozenset({"hide"}),
        frozenset({"bush", "tree", "log", "stone", "door", "box", "basket", "hay", "reed", "fence", "pot", "table"}),
        _hidden,
    ),
    _Relation(frozenset({"climb"}), frozenset({"tree", "ladder", "hay", "fence", "bed", "table", "stone"}), _climbing),
    _Relation(frozenset({"sit", "sleep", "sing"}), frozenset({"tree"}), _climbing, needs_target=True, perching=True),
)
