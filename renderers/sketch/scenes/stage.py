"""Who stands where: the actors of a scene with their things as sprites on a stage (an adult 100 units, ground at 0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from katha.renderers.sketch.deeds import (
    Body,
    Deed,
    deed,
    draw_creature,
    draw_person,
    has_hands,
    people,
    pieces,
    with_phase,
)
from katha.renderers.sketch.figures.rig import Pose
from katha.renderers.sketch.pictograms import act_pictogram, draw_stand_in, pictogram, stage_height
from katha.renderers.sketch.pictograms.acting import MOODS
from katha.renderers.sketch.props.shapes import read_shape
from katha.renderers.sketch.scenes.framing import Framing, keep_direction
from katha.renderers.sketch.scenes.record import Scene, SceneActor, SceneThing
from katha.renderers.sketch.scenes.things import Box, Sprite, bubble, draw_thing, put_thing, seat_of, sized, union
from katha.renderers.sketch.svg import circle, group, number

__all__ = ["arrange"]

_COPIES = 4
_GAP = 14.0
_ALOFT = -26.0
"""How far above the ground a bird of the rig flies."""
_BEAKS: Mapping[str, str] = dict.fromkeys(
    ("hand", "hands", "above", "above_front", "table", "body", "ear", "eyes", "staff", "foot", "flying"), "mouth"
)
"""Where those without hands have what others have there."""
_LARGE = 120.0
"""A vehicle taller than this shows its driver in a window."""
_CARRIED = 0.62
_RIMS: Mapping[str, float] = {"vehicle water": 1.05, "vehicle ground": 0.96, "container ground": 0.9}
_WATERY = frozenset({"under_water"})
"""Places where a swimmer has water all around and needs none drawn."""
_DOORS = frozenset({"doorstep", "stairs"})
"""Places that show a door to knock at."""
_RIM = 0.68
"""How high the chin of somebody inside is, beside the height of the thing, by its kind and where it stands."""


@dataclass
class _Cluster:
    """An actor with what belongs to it, its front at `facing`; `solid` is what others keep clear of."""

    actor: SceneActor
    facing: int
    sprites: list[Sprite]
    body: Body | None = None
    solid: Box = (0.0, 0.0, 0.0, 0.0)
    holds: bool = False
    marks: list[str] = field(default_factory=list)

    def move(self, dx: float, dy: float = 0.0) -> None:
        """Put the whole cluster elsewhere."""
        self.sprites = [sprite.moved(dx, dy) for sprite in self.sprites]
        x0, y0, x1, y1 = self.solid
        self.solid = (x0 + dx, y0 + dy, x1 + dx, y1 + dy)

    def deepen(self, depth: float) -> None:
        """Draw the whole cluster nearer."""
        self.sprites = [replace(sprite, depth=sprite.depth + depth) for sprite in self.sprites]


def arrange(scene: Scene, rng: Random, previous: Framing | None = None) -> list[Sprite]:
    """Every actor and thing of the scene as sprites, the farthest first."""
    groups = _groups(scene)
    turned = _directions(groups, rng, previous)
    lent = _lent(scene)
    clusters = {actor.id: _cluster(scene, actor, turned[actor.id], lent.get(actor.id)) for actor in scene.actors}
    row = [[clusters[actor.id] for actor in group_] for group_ in groups]
    for group_ in row:
        if len(group_) > 1:
            _join(*group_)
    _spread(row)
    sprites = [sprite for group_ in row for cluster in group_ for sprite in cluster.sprites]
    sprites += _scenery(scene, sprites, rng)
    return sorted(sprites, key=lambda sprite: sprite.depth)


def _groups(scene: Scene) -> list[list[SceneActor]]:
    """The actors in the order in which they are placed, each with the partner of its deed; the lead comes first."""
    by_id = {actor.id: actor for actor in scene.actors}
    lead = _lead(scene)
    groups: list[list[SceneActor]] = []
    placed: set[str] = set()
    for actor in sorted(scene.actors, key=lambda one: one is not lead):
        if actor.id in placed:
            continue
        other = by_id.get(actor.target or "")
        pair = [actor] if other is None or other.id in placed or other is actor else [actor, other]
        groups.append(pair)
        placed |= {one.id for one in pair}
    return groups


def _on_left(nth: int, first: SceneActor) -> bool:
    """Whether the `nth` group stands to the left of the lead's."""
    return first.place == "left" or (first.place != "right" and nth % 2 == 1)


def _lead(scene: Scene) -> SceneActor | None:
    """Who the moment is about: the first who acts on something, else the first."""
    acting = [actor for actor in scene.actors if actor.target is not None]
    return next(iter(acting or scene.actors), None)


def _directions(groups: Sequence[Sequence[SceneActor]], rng: Random, previous: Framing | None) -> Mapping[str, int]:
    """Which way everybody looks: the lead as asked or as before, partners as the deed has it, others to the lead."""
    chosen: dict[str, int] = {}
    for nth, group_ in enumerate(groups):
        first = group_[0]
        kept = keep_direction(first.id, first.facing, previous if nth == 0 else None)
        if nth == 0:
            usual = {"left": 1, "right": -1}.get(first.place or "") or rng.choice((1, -1))
        elif deed(first.deed).pose.moving:
            usual = chosen[groups[0][0].id]
        else:
            usual = 1 if _on_left(nth, first) else -1
        chosen[first.id] = kept or usual
        for other in group_[1:]:
            same = deed(first.deed).partner in ("side", "ahead", "behind", "under", "carried")
            chosen[other.id] = other.facing or chosen[first.id] * (1 if same else -1)
    return chosen


def _lent(scene: Scene) -> Mapping[str, Pose]:
    """Poses of those to whom something is done that takes two, and who do nothing else."""
    found: dict[str, Pose] = {}
    for actor in scene.actors:
        other = next((one for one in scene.actors if one.id == actor.target), None)
        lends = deed(actor.deed).lends
        if other is not None and lends is not None and other.deed == "stand":
            found[other.id] = lends
    return found


def _cluster(scene: Scene, actor: SceneActor, facing: int, lent: Pose | None = None) -> _Cluster:
    objects = [thing for thing in scene.things if _is_object(thing, actor)]
    tools = [thing for thing in scene.things if thing.held_by == actor.id and thing.role == "instrument"]
    row = deed(actor.deed)
    row = replace(row, pose=lent) if lent is not None else row
    if scene.setting in _WATERY:
        row = replace(row, pose=replace(row.pose, emanata=tuple(sign for sign in row.pose.emanata if sign != "water")))
    if row.insists and row.own is not None:
        found = pictogram(row.own)
        objects = [replace(thing, pictogram=found.id, cm=found.cm, stands=found.stands) for thing in objects]
    has_object = bool(objects) or any(other.id == actor.target for other in scene.actors)
    doored = row.own == "door" and scene.setting in _DOORS
    if not tools and row.own is not None and not doored and not (objects and row.far == row.thing):
        tools = [_implied(row.own, actor)]
    if actor.kind == "figure" and not has_hands(actor.concept):
        row = replace(row, thing=_BEAKS.get(row.thing, row.thing), far=_BEAKS.get(row.far, row.far), set=None)
        tools = [thing for thing in tools if thing.role == "instrument" and row.own != thing.word]
    if actor.kind != "pictogram":
        return _person(actor, row, objects, tools, facing, has_object)
    return _thing_actor(actor, row, [*objects, *(tool for tool in tools if tool.role == "instrument")], facing)


def _is_object(thing: SceneThing, actor: SceneActor) -> bool:
    return thing.id == actor.target or (thing.held_by == actor.id and thing.role == "object")


def _implied(name: str, actor: SceneActor) -> SceneThing:
    """The thing that a verb brings along by itself (a pencil to write with)."""
    found = pictogram(name)
    return SceneThing(f"{actor.id}:{name}", name, name, found.kind, found.cm, found.stands, "instrument", actor.id)


def _person(
    actor: SceneActor, row: Deed, objects: Sequence[SceneThing], tools: Sequence[SceneThing], facing: int, holds: bool
) -> _Cluster:
    pose = replace(row.pose, tool=None if holds else row.tool)
    sits_on = [thing for thing in objects if row.thing == "under"]
    around = [thing for thing in (*objects, *tools) if _where(thing, row) == "around"]
    if sits_on:
        pose = replace(pose, emanata=tuple(sign for sign in pose.emanata if sign not in ("stool", "saddle", "pillow")))
    if objects and row.thing == "climbed":
        pose = replace(pose, emanata=())
    if row.set is not None:
        pose = replace(pose, emanata=tuple(sign for sign in pose.emanata if sign != "stool"))
    body = _body(actor, actor.id, pose, facing)
    lift = _ALOFT if actor.kind == "figure" and actor.deed == "fly" else 0.0
    lift -= max((seat_of(thing, sized(thing, "under", 100.0)) - 8 for thing in sits_on), default=0.0)
    sprites = [_figure_sprite(actor, body, facing, lift)]
    if around:
        return _driver(actor, row, around[0], body, facing)
    for thing in objects:
        for nth in range(min(thing.count, 3)):
            sprite = put_thing(thing, row.thing, row, body, facing, nth)
            if sprite is not None:
                apart = 0.0 if row.thing == "table" else 9.0 * nth
                sprites.append(sprite.moved(apart, -0.25 * apart))
    for thing in tools:
        sprite = put_thing(thing, row.far, row, body, facing)
        if sprite is not None:
            sprites.append(replace(sprite, key=False).moved(0.0, lift))
    if row.set is not None and not sits_on:
        sprites.append(_furniture(row.set, facing))
    if row.thing == "thought" and objects:
        sprites.append(_bubble(sprites[-1], facing))
    sprites += _crowd(actor, pose, facing, lift)
    held = _outfit_hold(actor, row, body, facing, objects, tools)
    sprites += [held] if held is not None else []
    solid = union([body.solid, *(sprite.box for sprite in sprites[1:] if sprite.depth > -2 and sprite.id != "thought")])
    return _Cluster(actor, facing, sprites, body, solid, holds=bool(objects))


def _body(actor: SceneActor, name: str, pose: Pose, facing: int) -> Body:
    if actor.kind == "figure":
        return draw_creature(actor.concept, actor.attributes, pose, actor.mood, facing, Random(name).random())
    return draw_person(actor.look, name, pose, actor.mood, facing)


def _where(thing: SceneThing, row: Deed) -> str:
    return row.far if thing.role == "instrument" else row.thing


def _figure_sprite(actor: SceneActor, body: Body, facing: int, lift: float) -> Sprite:
    return Sprite(actor.id, body.behind + body.svg, body.solid, 0.0, 0.0, lift, body.head, acts=True, key=True,
                  facing=facing, grounded=lift == 0.0)  # fmt: skip


def _crowd(actor: SceneActor, pose: Pose, facing: int, lift: float) -> list[Sprite]:
    """More of the same: each a little different, a little behind."""
    more = []
    for nth in range(1, min(actor.count, _COPIES)):
        body = _body(actor, f"{actor.id}{nth}", with_phase(pose, 0.3 * nth), facing)
        step = 0.8 * (body.solid[2] - body.solid[0])
        sprite = _figure_sprite(actor, body, facing, lift)
        more.append(replace(sprite, depth=-0.3 * nth).moved(-facing * step * nth, -4.0 * (nth % 2)))
    return more


def _outfit_hold(
    actor: SceneActor, row: Deed, body: Body, facing: int, objects: Sequence[SceneThing], tools: Sequence[SceneThing]
) -> Sprite | None:
    """What a trade has in the hand when it is doing nothing with anything."""
    name = people()["outfits"].get(actor.look.outfit or "", {}).get("hold")
    if name is None or objects or tools or actor.deed not in ("stand", "walk", "talk", "point"):
        return None
    sprite = put_thing(_implied(name, actor), "hand", row, body, facing)
    return replace(sprite, key=False) if sprite is not None else None


def _furniture(name: str, facing: int) -> Sprite:
    entry = pieces()[name]
    drawn = [read_shape(head, str(geometry)).at(0.0) for row in entry["shapes"] for head, geometry in row.items()]
    x0, y0, x1, y1 = union([box for _, box in drawn])
    svg = group(*(svg for svg, _ in drawn), transform=f"scale({facing} 1)" if facing < 0 else None)
    box = (x0, y0, x1, y1) if facing > 0 else (-x1, y0, -x0, y1)
    return Sprite(name, svg, box, 0.8 if entry.get("before", True) and name != "stool" else -0.8)


def _bubble(thought: Sprite, facing: int) -> Sprite:
    x0, y0, x1, y1 = thought.box
    x, y, reach = (x0 + x1) / 2, (y0 + y1) / 2, 0.72 * max(x1 - x0, y1 - y0) + 4
    box = (x - 1.3 * reach, y - reach, x + 1.3 * reach, y + reach + 12)
    return Sprite("thought", bubble(x, y, reach, facing), box, thought.depth - 0.1, grounded=False)


def _driver(actor: SceneActor, row: Deed, thing: SceneThing, body: Body, facing: int) -> _Cluster:
    """In a boat or car from the waist up; in what is larger, a face in a window."""
    height = stage_height(thing.cm)
    drawn = put_thing(thing, "around", row, body, facing)
    if drawn is None:
        return _Cluster(actor, facing, [_figure_sprite(actor, body, facing, 0.0)], body, body.solid)
    drawn = replace(drawn, key=True)
    closed = thing.kind == "vehicle" and thing.stands == "ground"
    if height > _LARGE or closed:
        return _Cluster(
            actor, facing, [replace(drawn, depth=0.0), _window(actor, body, drawn, facing)], body, drawn.box
        )
    edge = _RIMS.get(f"{thing.kind} {thing.stands}", _RIM)
    chin = body.head[1] + 1.1 * body.head[2]
    figure = _figure_sprite(actor, body, facing, 0.0).moved(0.0, -edge * height - chin)
    cluster = _Cluster(actor, facing, [replace(figure, grounded=False), drawn], body, drawn.box)
    return cluster


def _window(actor: SceneActor, body: Body, vehicle: Sprite, facing: int) -> Sprite:
    """The driver's face in a round window of a large vehicle."""
    x0, y0, x1, y1 = vehicle.box
    cx, cy, r = body.head
    large = y1 - y0 > _LARGE
    reach = max(13.0, (0.11 if large else 0.24) * (y1 - y0))
    x, y = (x0 + x1) / 2 + facing * 0.08 * (x1 - x0), y0 + (0.42 if large else 0.3) * (y1 - y0)
    name, scale = f"window-{number(x)}-{number(y)}".replace(".", "_"), 0.8 * reach / r
    clip = f'<clipPath id="{name}">{circle(x, y, reach, fill="#ffffff", stroke=None)}</clipPath>'
    face = group(body.svg, transform=f"translate({number(x)} {number(y)}) scale({scale:.4f}) "
                 f"translate({number(-cx)} {number(-cy + 0.1 * r)})")  # fmt: skip
    svg = circle(x, y, reach, fill="#bfe0ea") + clip + f'<g clip-path="url(#{name})">{face}</g>' + circle(x, y, reach)
    box = (x - reach, y - reach, x + reach, y + reach)
    return Sprite(actor.id, svg, box, 0.2, face_local=(x, y, reach), acts=True, key=True, facing=facing, grounded=False)


def _thing_actor(actor: SceneActor, row: Deed, things: Sequence[SceneThing], facing: int) -> _Cluster:
    """An actor without a rig, with its things before it."""
    cm = actor.cm or (pictogram(actor.pictogram).cm if actor.pictogram else 60.0)
    height = stage_height(cm)
    sprites: list[Sprite] = []
    for nth in range(min(actor.count, _COPIES)):
        if actor.pictogram is None:
            plain = draw_stand_in(actor.kind_of, cm)
        else:
            mood = actor.mood if actor.mood in MOODS else None
            plain = act_pictogram(actor.pictogram, height, act=row.act, mood=mood, facing=facing)
        step = 0.85 * (plain.solid[2] - plain.solid[0])
        drawn = Sprite(actor.id, plain.svg, plain.solid, -0.3 * nth, -facing * step * nth, -3.0 * (nth % 2), plain.head,
                       acts=True, key=True, facing=facing, grounded=plain.solid[3] > -2.0)  # fmt: skip
        sprites.append(drawn)
    x0, y0, x1, y1 = sprites[0].local
    for thing in things:
        if thing.id.endswith(f":{thing.word}") and thing.held_by == actor.id:
            continue
        size = min(stage_height(thing.cm), 0.7 * height) if thing.stands == "hand" else stage_height(thing.cm)
        sprites.append(_before(thing, size, (x0, y0, x1, y1), facing))
    solid = union([sprite.box for sprite in sprites])
    return _Cluster(actor, facing, sprites, None, solid, holds=bool(things))


def _before(thing: SceneThing, size: float, box: Box, facing: int) -> Sprite:
    """A thing in front of an actor without hands: small ones at its mouth, large ones on the ground."""
    drawn = draw_thing(thing, size, facing)
    wide = drawn.bbox[2] - drawn.bbox[0]
    edge = box[2] if facing > 0 else box[0]
    held = thing.stands == "hand"
    x = edge + facing * (0.3 * wide if held else 0.5 * wide + 5)
    y = box[3] - 0.3 * (box[3] - box[1]) + 0.4 * size if held else 0.0
    return Sprite(thing.id, drawn.svg, drawn.bbox, 0.6, x, y, key=True, grounded=not held)


def _join(one: _Cluster, other: _Cluster) -> None:
    """Put the other actor where the first one's deed has its partner."""
    row, f = deed(one.actor.deed), one.facing
    where = row.partner
    if where == "under":
        lift = 0.62 * (other.solid[3] - other.solid[1])
        one.move(0.0, -lift + 8)
        one.deepen(0.5)
        return
    if where == "carried" and one.body is not None:
        (ax, ay), (bx, by) = one.body.joints["hand"], one.body.joints["far"]
        tall = other.solid[3] - other.solid[1]
        shrink = min(1.0, _CARRIED * 100.0 / tall)
        other.sprites = [_shrunk(sprite, shrink) for sprite in other.sprites]
        other.move((ax + bx) / 2 + f * 8, (ay + by) / 2 + 0.45 * tall * shrink)
        other.deepen(1.0)
        return
    if where == "thought" and one.body is not None:
        cx, cy, r = one.body.head
        other.sprites = [replace(_shrunk(sprite, 0.5), acts=False, face_local=None) for sprite in other.sprites]
        other.move(cx + f * (r + 44), cy - 4)
        box = union([sprite.box for sprite in other.sprites])
        other.sprites.append(_bubble(Sprite("b", "", box, -0.2), f))
        return
    gap = min(row.gap, 8.0) if one.holds and where == "front" else row.gap
    if where in ("side", "behind"):
        edge, near = (one.solid[0], other.solid[2]) if f > 0 else (one.solid[2], other.solid[0])
        other.move(edge - near - f * gap)
    else:
        edge, near = (one.solid[2], other.solid[0]) if f > 0 else (one.solid[0], other.solid[2])
        other.move(edge - near + f * gap)
    other.deepen(-0.05)


def _shrunk(sprite: Sprite, scale: float) -> Sprite:
    x0, y0, x1, y1 = (value * scale for value in sprite.local)
    face = None
    if sprite.face_local is not None:
        cx, cy, r = sprite.face_local
        face = (cx * scale, cy * scale, r * scale)
    return replace(sprite, svg=group(sprite.svg, transform=f"scale({scale:.4f})"), local=(x0, y0, x1, y1),
                   x=sprite.x * scale, y=sprite.y * scale, face_local=face, grounded=False)  # fmt: skip


def _spread(row: Sequence[list[_Cluster]]) -> None:
    """The lead's group in the middle, others to both sides of it as their places say."""
    left = right = 0.0
    for nth, group_ in enumerate(row):
        x0, _, x1, _ = union([cluster.solid for cluster in group_])
        if nth == 0:
            left, right = x0, x1
            continue
        if _on_left(nth, group_[0].actor):
            shift = left - _GAP - x1
            left += -_GAP - (x1 - x0)
        else:
            shift = right + _GAP - x0
            right += _GAP + (x1 - x0)
        for cluster in group_:
            cluster.move(shift)


def _scenery(scene: Scene, sprites: Sequence[Sprite], rng: Random) -> list[Sprite]:
    """Things that nobody acts on: tall ones behind the actors, small ones beside them, some on walls or in the sky."""
    used = {sprite.id for sprite in sprites}
    drawn: list[Sprite] = []
    boxes = [sprite.box for sprite in sprites if sprite.acts] or [(-30.0, -60.0, 30.0, 0.0)]
    left, _, right, _ = union(boxes)
    for thing in (thing for thing in scene.things if thing.id not in used):
        size = stage_height(thing.cm)
        for _ in range(min(thing.count, 3)):
            picture = draw_thing(thing, size, rng.choice((1, -1)))
            wide = picture.bbox[2] - picture.bbox[0]
            lifted = {"sky": -max(130.0, 1.2 * size), "wall": -66.0}.get(thing.stands, 0.0)
            if lifted or size > 110:
                x, depth = rng.uniform(left, right), -6.0
            else:
                on_left = rng.random() < 0.5
                x = left - 0.5 * wide - 8 if on_left else right + 0.5 * wide + 8
                left, right = (left - wide - 10, right) if on_left else (left, right + wide + 10)
                depth = -2.0 if size > 60 else 0.4
            drawn.append(Sprite(thing.id, picture.svg, picture.bbox, depth, x, lifted, key=thing.role == "object",
                                grounded=not lifted))  # fmt: skip
    return drawn
