"""Where somebody is beside a thing: under the table, behind the door, in the basket, on the roof, over the fence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from katha_sketch.drawing.deeds import deed
from katha_sketch.drawing.pictograms import stage_height
from katha_sketch.drawing.scenes.record import SceneThing
from katha_sketch.drawing.scenes.senses import hollow_of, in_table, rim_of
from katha_sketch.drawing.scenes.things import Box, Cluster, Sprite, draw_thing, hung, seat_of, union
from katha_sketch.drawing.svg import group as gathered
from katha_sketch.drawing.svg import number, rect

__all__ = ["put_beside"]

_TALLEST, _LEAST = 150.0, 20.0
_ROOM, _ROOF = 1.3, 1.16
"""What somebody is under is so much wider and higher than they are, at least."""
_LOW, _RIM = 0.66, 0.5
"""Lower than the first share of somebody's height, a thing hides the body and not the face; in a thing, what is above
its rim is seen from the second share of the height up."""
_BOAT, _OVERTOPS = 0.62, 1.5
_AROUND, _CAUGHT = 1.2, 0.6
_SEVERAL = 1.4
"""What is so much wider than high are several."""
_LARGER, _LONG, _LAIN, _FLOOR = 1.7, 4.0, 0.1, 0.3
"""How many times a thing is enlarged at most to hold somebody, and who lies in it; how far down they lie, and how high
above the ground what they are in has its floor."""
_PITS, _HALF = frozenset({"hole"}), 0.62
"""Of who is in these the upper part is seen, so much of it."""
_ROOF_AT = 0.96
"""How high the roof of a thing is beside its height."""
_FENCE = 58.0
"""Over what is jumped or flown is no higher than this."""
_RUNGS: Mapping[str | None, float] = {"ladder": 0.4, "stairs": 0.4}
"""What one stands in the middle of and not on the top, and how high."""
_COUNTERS = frozenset({"shop_counter", "counter", "desk", "table", "bar", "reception_desk", "fence"})
"""Behind these people work, their faces above them."""
_FLAT, _PUDDLE, _SHALLOW = frozenset({"puddle", "rug", "hole"}), 1.4, 20.0
"""What lies on the ground, how much wider than those there it is at least, and how high it is drawn."""
_AIR, _APART, _ASLANT = 8.0, 5.0, 0.3


@dataclass(frozen=True)
class _Room:
    """Somebody's box, head and direction, and the natural height of the thing."""

    thing: SceneThing
    box: Box
    head: tuple[float, float, float]
    facing: int
    several: bool = False

    @property
    def wide(self) -> float:
        return self.box[2] - self.box[0]

    @property
    def tall(self) -> float:
        return self.box[3] - self.box[1]

    @property
    def middle(self) -> float:
        return (self.box[0] + self.box[2]) / 2

    def drawn(self, height: float, least_wide: float, depth: float, *, most: float = _LARGER) -> Sprite:
        """The thing so high on the ground, higher where it would be narrower than asked, at most so many times."""
        plain = draw_thing(self.thing, height, self.facing)
        wide = plain.bbox[2] - plain.bbox[0]
        if wide < least_wide:
            plain = draw_thing(self.thing, height * min(least_wide / wide, most), self.facing)
        return Sprite(self.thing.id, plain.svg, plain.bbox, depth, self.middle, 0.0, key=True)


def put_beside(cluster: Cluster, thing: SceneThing, group: Sequence[Cluster]) -> None:
    """Put the actor of a cluster where it is beside a thing, and the thing with it.

    group: who stands together, the cluster among them; a thing that is drawn there is not drawn again.
    """
    where = cluster.actor.where or "beside"
    own = next((sprite for sprite in cluster.sprites if sprite.id == cluster.actor.id), cluster.sprites[0])
    head = own.face or (own.box[0], own.box[1], 0.3 * (own.box[2] - own.box[0]))
    shared = thing.pictogram in _FLAT or where in ("in", "covered", "around")
    there = [one for one in group if one.actor.at == thing.id] if shared else []
    seen = [one.box for fellow in there for one in fellow.sprites if one.acts]
    many = [one.box for one in cluster.sprites if one.acts] if cluster.actor.count > 1 else []
    box = union(seen) if len(seen) > 1 else union(many) if many and where in ("on", "under", "in", "atop") else own.box
    room = _Room(thing, box, head, cluster.facing, several=len(seen) > 1 or bool(many))
    sprite, lift = _WAYS[where](room)
    others = [one.solid for one in group if one is not cluster]
    if where in ("beside", "against") and any(x0 < sprite.box[2] and x1 > sprite.box[0] for x0, _, x1, _ in others):
        sprite = replace(sprite, x=2 * room.middle - sprite.x)  # there is somebody on that side
    shown = [one for fellow in group for one in fellow.sprites]
    cluster.move(0.0, -lift)
    if lift:
        cluster.sprites = [replace(one, grounded=False) for one in cluster.sprites]
    if where == "in" and thing.pictogram in _PITS and not deed(cluster.actor.deed).pose.turn:
        cluster.sprites = [_sunk(one, own) if one.acts else one for one in cluster.sprites]
    if all(one.id != thing.id for one in shown):
        cluster.sprites = [*cluster.sprites, sprite]
        cluster.solid = union([cluster.solid, sprite.box])


def _sunk(figure: Sprite, own: Sprite) -> Sprite:
    """The upper half of somebody who is in a hole, as much deeper as that leaves out."""
    x0, y0, x1, y1 = figure.local
    cut = y0 + _HALF * (y1 - y0)
    name = f"pit-{number(figure.x)}-{number(own.y)}-{number(cut)}".replace(".", "_").replace("--", "-m")
    shown = rect(x0 - 60, y0 - 60, x1 - x0 + 120, cut - y0 + 60, fill="#ffffff", stroke=None)
    svg = f'<clipPath id="{name}">{shown}</clipPath>' + f'<g clip-path="url(#{name})">{figure.svg}</g>'
    return replace(figure, svg=svg, local=(x0, y0, x1, cut), y=figure.y + (y1 - cut), grounded=False)


def _natural(room: _Room, least: float, most: float) -> float:
    return min(max(stage_height(room.thing.cm), least), most)


def _under(room: _Room) -> tuple[Sprite, float]:
    if room.thing.stands == "water":  # the boat over who swims
        sprite = room.drawn(_natural(room, _LEAST, _TALLEST), 0.8 * room.wide, -0.8)
        return replace(sprite, y=room.box[1] + 12.0, grounded=False), 0.0
    height = max(_natural(room, _LEAST, _TALLEST), _ROOF * room.tall)
    return room.drawn(height, _ROOM * room.wide, -0.8), 0.0


def _behind(room: _Room) -> tuple[Sprite, float]:
    """Behind what is low, face above it; from behind what is tall somebody peeps out at the side."""
    height = _natural(room, 0.45 * room.tall, _TALLEST)
    if height <= _LOW * room.tall or room.thing.pictogram in _COUNTERS:
        plain = room.drawn(height, 0.9 * room.wide, 1.8)
        tall = plain.local[3] - plain.local[1]
        return room.drawn(min(tall, _LOW * room.tall), 0.0, 1.8) if tall > _LOW * room.tall else plain, 0.0
    sprite = room.drawn(max(height, 0.95 * room.tall), 0.8 * room.wide, 1.8)
    edge = room.head[0] - room.facing * 0.45 * room.head[2]
    return replace(sprite, x=edge - room.facing * sprite.local[2]), 0.0


def _at_feet(room: _Room) -> tuple[Sprite, float]:
    """In or on what is flat (a puddle): it is under the feet, wider than those who stand there."""
    plain = draw_thing(room.thing, _SHALLOW, room.facing)
    by = max(1.0, _PUDDLE * room.wide / (plain.bbox[2] - plain.bbox[0]))
    half = 0.5 * by * (plain.bbox[2] - plain.bbox[0])
    svg = gathered(plain.svg, transform=f"scale({by:.3f} 1)")
    return Sprite(room.thing.id, svg, (-half, -_SHALLOW, half, 0.0), -0.8, room.middle, 0.4 * _SHALLOW, key=True), 0.0


def _stretched(sprite: Sprite, least_wide: float) -> Sprite:
    """A tub or basket longer, and no higher, so that several are in it."""
    x0, y0, x1, y1 = sprite.local
    by = max(1.0, least_wide / (x1 - x0))
    svg = gathered(sprite.svg, transform=f"scale({by:.3f} 1)") if by > 1.0 else sprite.svg
    return replace(sprite, svg=svg, local=(x0 * by, y0, x1 * by, y1))


def _inside(room: _Room) -> tuple[Sprite, float]:
    """In what is as tall as somebody they stand before its inside; of what is lower the rim hides the legs."""
    if in_table("captors", room.thing.word):
        return room.drawn(_CAUGHT * room.tall, _CAUGHT * room.wide, 2.5), 0.0
    if room.thing.pictogram in _FLAT:
        return _at_feet(room)
    height = _natural(room, 0.5 * room.tall, _TALLEST)
    share = rim_of(room.thing.pictogram) if hollow_of(room.thing.pictogram) is not None else 1.0
    if share is None or share * height > 1.05 * room.tall:
        return room.drawn(max(height, 1.1 * room.tall), _AROUND * room.wide, -0.8), 0.0
    lies = room.wide > room.tall and not room.several
    if room.thing.stands == "water":
        height = max(height, _BOAT * room.tall)  # all of the legs are in it
    sprite = room.drawn(height, (1.0 if lies else _AROUND) * room.wide, 1.5, most=_LONG if lies else _LARGER)
    if room.several:
        sprite = _stretched(sprite, _AROUND * room.wide)
    rim = -share * sprite.local[1]
    return sprite, max(_FLOOR * rim, rim - (_LAIN if lies else _RIM) * room.tall)  # no feet below what they are in


def _on(room: _Room) -> tuple[Sprite, float]:
    if room.thing.pictogram in _FLAT:
        return _at_feet(room)
    height = _natural(room, 12.0, _TALLEST)
    several = room.wide > _SEVERAL * room.tall and room.thing.kind == "furniture"
    sprite = room.drawn(
        height, (0.95 if several else 0.7) * room.wide, -3.0 if several else -0.5, most=_LONG if several else _LARGER
    )
    tall = sprite.local[3] - sprite.local[1]
    if room.thing.pictogram in _RUNGS:
        return sprite, _RUNGS[room.thing.pictogram] * tall
    return sprite, max(0.0, seat_of(room.thing, tall))


def _atop(room: _Room) -> tuple[Sprite, float]:
    """On the roof of what others are in."""
    sprite = room.drawn(_natural(room, 60.0, _TALLEST), 0.9 * room.wide, -0.5)
    return sprite, _ROOF_AT * (sprite.local[3] - sprite.local[1])


def _over(room: _Room) -> tuple[Sprite, float]:
    height = _natural(room, _LEAST, _FENCE)
    sprite = room.drawn(height, 0.5 * room.wide, -0.5)
    return sprite, max(0.0, height + _AIR + room.box[3])


def _beside(room: _Room) -> tuple[Sprite, float]:
    height = _natural(room, 24.0, _TALLEST)
    sprite = room.drawn(height, 0.0, -1.0 if height > 60 else 0.4)
    edge = room.box[0] if room.facing > 0 else room.box[2]
    return replace(sprite, x=edge - room.facing * (sprite.local[2] + _APART)), 0.0


def _between(room: _Room) -> tuple[Sprite, float]:
    """Among several of the same there is one on each side; a single one is at the back."""
    if room.thing.count < 2:
        return _beside(room)
    height = _natural(room, 24.0, _TALLEST)
    plain = draw_thing(room.thing, height, room.facing)
    x0, y0, x1, y1 = plain.bbox
    apart = 0.5 * room.wide + 0.5 * (x1 - x0) + _APART
    svg = gathered(plain.svg, transform=f"translate({number(-apart)} 0)")
    svg += gathered(plain.svg, transform=f"translate({number(apart)} 0)")
    box = (x0 - apart, y0, x1 + apart, y1)
    return Sprite(room.thing.id, svg, box, -1.0 if height > 60 else 0.4, room.middle, 0.0, key=True), 0.0


def _against(room: _Room) -> tuple[Sprite, float]:
    sprite, lift = _beside(room)
    return replace(sprite, x=sprite.x + room.facing * _ASLANT * room.wide, depth=-1.0), lift


def _before(room: _Room) -> tuple[Sprite, float]:
    """Before what is as tall as they are it stands behind them; what is lower they have in front of them."""
    height = _natural(room, 24.0, _TALLEST)
    sprite = room.drawn(height, 0.0, -3.0)
    if room.thing.stands == "wall":
        return replace(sprite, y=hung(room.thing, touched=True), grounded=False), 0.0
    if height > 0.9 * room.tall:
        return sprite, 0.0
    edge = room.box[2] if room.facing > 0 else room.box[0]
    return replace(sprite, depth=-0.4, x=edge + room.facing * (sprite.local[2] + 2 * _APART)), 0.0


def _covered(room: _Room) -> tuple[Sprite, float]:
    """Under a blanket: it hides them up to the chin, or from the shoulders to the feet of who lies."""
    lies = room.wide > room.tall
    cx, cy, r = room.head
    left, right = room.box[0] - 4, room.box[2] + 4
    if lies:
        left, right = (cx + 0.7 * r, right) if cx < room.middle else (left, cx - 0.7 * r)
    height = max(16.0, 0.8 * room.tall if lies else room.box[3] - cy - 0.8 * r)
    plain = draw_thing(room.thing, height, room.facing)
    across = (right - left) / (plain.bbox[2] - plain.bbox[0])
    svg = gathered(plain.svg, transform=f"scale({across:.3f} 1)")
    half = 0.5 * (right - left)
    return Sprite(room.thing.id, svg, (-half, -height, half, 0.0), 1.8, (left + right) / 2, 0.0, key=True), 0.0


def _around(room: _Room) -> tuple[Sprite, float]:
    """One goes around what stands ahead; several are around what is in their middle."""
    if room.wide < _SEVERAL * room.tall:
        height = _natural(room, _LEAST, 0.55 * max(room.tall, 50.0))
        sprite = room.drawn(height, 0.0, 2.2)
        return replace(sprite, x=room.middle + room.facing * 0.5 * (room.wide + sprite.local[2])), 0.0
    height = _natural(room, _LEAST, _TALLEST)
    if height > 0.8 * room.tall:
        return room.drawn(max(height, _OVERTOPS * room.tall), 0.0, -1.5), 0.0
    return replace(room.drawn(min(height, 0.5 * room.tall), 0.0, 2.2), y=8.0), 0.0


_WAYS: Mapping[str, Callable[[_Room], tuple[Sprite, float]]] = {
    "under": _under, "behind": _behind, "in": _inside, "on": _on, "atop": _atop, "over": _over, "beside": _beside,
    "against": _against, "before": _before, "around": _around, "covered": _covered, "between": _between,
}  # fmt: skip
"""The thing, and how far the actor is raised, by how the actor is beside it."""
