"""Who stands where: the actors of a scene with their things as sprites on a stage (an adult 100 units, ground at 0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Literal

from katha_sketch.drawing.deeds import (
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
from katha_sketch.drawing.figures.rig import Pose
from katha_sketch.drawing.pictograms import (
    Picture,
    act_pictogram,
    draw_pictogram,
    draw_stand_in,
    pictogram,
    put_states,
    stage_height,
)
from katha_sketch.drawing.pictograms.acting import MOODS
from katha_sketch.drawing.places import place_data
from katha_sketch.drawing.props.shapes import read_shape
from katha_sketch.drawing.scenes.beside import put_beside
from katha_sketch.drawing.scenes.framing import FEW, Framing, keep_direction, several, side_by_side
from katha_sketch.drawing.scenes.record import Scene, SceneActor, SceneThing
from katha_sketch.drawing.scenes.riding import inside, passengers_of
from katha_sketch.drawing.scenes.senses import hollow_of
from katha_sketch.drawing.scenes.things import (
    Box,
    Cluster,
    Sprite,
    draw_thing,
    fitted,
    hung,
    is_footwear,
    lay,
    plunge,
    put_thing,
    seat_of,
    shrunk,
    sized,
    speech_bubble,
    think_bubble,
    union,
)
from katha_sketch.drawing.scenes.together import (
    BOARD,
    FOR_TWO,
    OWN_PLACE,
    at_board,
    each,
    groups_of,
    join,
    on_left,
    paired,
    resting,
    settled,
    spread,
)
from katha_sketch.drawing.style import colour, darker
from katha_sketch.drawing.svg import group, number, rect

__all__ = ["arrange"]

_COPIES, _ROW, _STEP = 9, 4, 0.8
"""At most so many of the same are drawn, so many stand side by side, and so far apart beside their width."""
_ALOFT = -26.0
"""How far above the ground a bird of the rig flies."""
_BEAKS: Mapping[str, str] = dict.fromkeys(
    ("hand", "hands", "above", "above_front", "table", "body", "ear", "eyes", "staff", "foot", "flying"), "mouth"
)
"""Where those without hands have what others have there."""
_WATERY = frozenset({"under_water"})
"""Places where a swimmer has water all around and needs none drawn."""
_SPOKEN, _SMALL = 34.0, 60.0
_BENCH = 1.4
"""How much larger a thing is drawn on which several sit."""
_BED, _LONGEST, _BEHIND = 1.15, 2.4, -2.0
"""How much wider than who lies on it a bed is drawn, how much larger than by itself at most, and how far behind all."""
_MINDED = frozenset({"thought", "overhead"})
"""Places of signs that nobody holds."""
_BENT = 25.0
"""Who leans forward more has the bubble above the head."""
_OPEN_MOUTHS = frozenset({"grin", "shout", "o", "sing", "wail"})
_BUBBLES = frozenset({"thought", "speech"})
_VOICES = frozenset({"speech", "speech_over", "blast", "thought"})
"""Signs above a head that must not be cut off."""
_EMPTY_BUBBLES = frozenset({"speech", "speech_over", "blast"})
"""Signs of a voice in whose place a bubble stands with what is spoken of."""
_TRAILED = frozenset({"speed"})
_ALONG = "pass_along"
_WINDOW, _STOREY = "window_sill", 124.0
_WHEELED, _CHAIR = "wheelchair", "manual-wheelchair"
_SEATED: Mapping[str, Any] = {"leg_near": (84.0, 8.0), "leg_far": (90.0, 12.0), "turn": 0.0, "lift": 0.0}
"""Legs of who sits in a wheelchair, whatever the arms do; its wheels are drawn before them."""
_BEFORE, _OVER_TABLE = 0.6, 1.8
_GOAL, _GOAL_MOST, _LOW_GOAL, _GOAL_WIDE = 30.0, 110.0, 45.0, 50.0
"""How small and large a thing is drawn that an object goes to, and what is lower stands on a table indoors."""
_SPOUT = 20.0
"""How much farther away that stands which something is poured into."""
_OFFERED = 46.0
"""The height in centimetres of what somebody without hands offers or throws, at least."""
_FALLING = frozenset({"drop", "throw", "lose"})
"""Deeds after which a thing falls into what it goes to."""
_ON_BODY = frozenset({"lap", "shoulder", "head", "hand", "back"})
_BEDDING = frozenset({"pillow", "snore"})
"""Signs of a sleeper that hide on whom they sleep."""
_BARE = frozenset({
    "barn", "cave", "stable", "tunnel", "mine", "tomb", "swimming_pool", "tent_inside", "treehouse", "gym", "prison",
    "ice_rink", "skating_rink", "lift", "construction_site", "greenhouse", "church_outside", "changing_room",
})  # fmt: skip
"""Places under a roof where nobody sits on a chair."""
_SKY_HIGH = 66.0
"""Nothing in the sky over people is larger than this."""
_UPRIGHT = frozenset(
    {"stand", "walk", "run", "sneak", "enter", "leave", "follow", "chase", "look", "find", "fly", "go"}
)
"""Deeds that are done swimming under water."""
_OPEN = frozenset({"container", "drink", "landscape"})
_PANES = frozenset({"window", "door"})
"""What things are thrown at rather than into."""
_WINDOWS = 4
"""At most so many faces are seen in one vehicle."""
_STOOL = "stool"
_SEATS = (_STOOL, "chair")
"""Signs of what somebody sits on of whose seat nothing is told."""
_SHARED = frozenset({"furniture", "vehicle", "plant", "building", "container"})
"""Kinds of things on which several sit beside each other."""
_TABLES = frozenset({"table", "desk"})
_WITH_SIGNS = frozenset({"smoke", "ring", "glow", "flame", "halt", "skid", "sink", "bob", "grow", "flutter", "roll"})
"""Acts whose signs must be in the frame."""
_HOLLOW = frozenset({"container", "vehicle", "tool", "clothing"})
_TABLED = 52.0
"""What is taller does not stand on the table of a deed."""
_TABLE_TOP, _TABLE_MIDDLE = 37.0, 47.0
_TINY_ACTOR, _LEAST_LOOSE, _LEAST_TABLED = 34.0, 26.0, 30.0
"""Nobody without a rig is smaller than the first, and nothing that lies about or on a table smaller than the others."""
_FEW, _WIDEST = 46.0, 330.0
"""What is smaller than the first may lie before feet; more of the same are drawn up to the second, beyond which actors
would be small."""
_BROAD, _AT_FEET = 250.0, 1.9
"""How wide a group is before whose feet small things lie, and how near they are."""
_FLOOR = frozenset({"toy", "sport", "animal", "plant", "vehicle", "building", "landscape"})
"""Kinds of things that lie about on the floor."""
_FIRE = "fire"
_WAYS = frozenset({"doorway", "way_out"})
"""Doors in the wall of a room, which nobody goes through out of doors."""
_ROCKY = frozenset({"mountain", "cliff_top", "canyon", "cave", "quarry"})
"""Places where a rock is climbed and no tree."""
_DOORS = frozenset({"doorstep", "stairs"})
"""Places that show a door to knock at."""

_LOOKING = frozenset({"look", "point", "photograph", "find"})
"""Deeds that reach what is out of the window."""
_ROOMS = frozenset({
    "kitchen", "living_room", "bedroom", "bathroom", "classroom", "attic", "hospital", "office", "library",
    "restaurant", "cafe", "corridor", "stairs", "waiting_room", "dining_hall", "prison", "train_carriage", "lighthouse",
    "playroom",
})  # fmt: skip
_OUTSIDE, _OUT_OF_DOORS = frozenset({"vehicle", "building", "landscape", "sky"}), 130.0
"""Kinds of things that a room does not hold when they are larger than this (centimetres)."""
_PANE, _PANE_WIDE = 72.0, 84.0
_HUNG = -52.0
"""How high a thing hangs on the wall to which something is done or that does something (a clock that strikes)."""


def arrange(scene: Scene, rng: Random, previous: Framing | None = None, seed: int = 0) -> list[Sprite]:
    """Every actor and thing of the scene as sprites, the farthest first; the `seed` says who is on which side."""
    scene = replace(scene, actors=tuple(one for actor in scene.actors for one in each(actor)))
    if scene.setting in _DOORS and any(actor.deed == "knock" for actor in scene.actors):
        scene = replace(
            scene, things=tuple(one for one in scene.things if one.pictogram != "door" and one.kind != "building")
        )
    scene, seen = _looked_out(scene)
    aboard = passengers_of(scene)
    seated = {actor.id for riders in aboard.values() for actor in riders}
    scene = replace(scene, actors=tuple(actor for actor in scene.actors if actor.id not in seated))
    groups = groups_of(scene)
    turned = _directions(groups, seed, previous)
    scene = _faced(scene, groups, turned)
    groups = groups_of(scene)
    turned = _directions(groups, seed, previous)
    lent = _lent(scene)
    clusters = {
        actor.id: _cluster(scene, actor, turned[actor.id], lent.get(actor.id), aboard.get(actor.id, ()))
        for actor in scene.actors
    }
    row = [[clusters[actor.id] for actor in group_] for group_ in groups]
    things = {thing.id: thing for thing in scene.things}
    for group_ in row:
        if len(group_) > 1:
            join(*group_)
        for cluster in group_:
            if any(one.id == cluster.actor.at and _boarded(things[one.id], cluster.actor) for one in cluster.sprites):
                continue
            if (borne := _borne_on(cluster, group_)) is not None:
                _set_upon(cluster, borne, things[borne.id])
            elif cluster.actor.at in things and cluster.actor.where != "at":
                put_beside(cluster, things[cluster.actor.at], group_)
    spread(row)
    sprites = [sprite for group_ in row for cluster in group_ for sprite in cluster.sprites]
    sprites += _scenery(scene, sprites, rng)
    sprites += _view(seen, sprites, [turned[group_[0].id] for group_ in groups])
    return sorted(side_by_side(sprites, scene.things), key=lambda sprite: sprite.depth)


def _borne_on(guest: Cluster, among: Sequence[Cluster]) -> Sprite | None:
    """The sledge or pram that another of a group pulls or pushes and that somebody is on or in."""
    others = [one for one in among if one is not guest and one.actor.target == guest.actor.at is not None]
    drawn = (sprite for one in others for sprite in one.sprites if sprite.id == guest.actor.at)
    return next(drawn, None) if guest.actor.where in ("on", "in") else None


def _set_upon(guest: Cluster, there: Sprite, thing: SceneThing) -> None:
    x0, y0, x1, y1 = there.box
    a0, b0, a1, b1 = guest.solid
    inside = guest.actor.where == "in"
    low = y1 - seat_of(thing, y1 - y0) if not inside else y0 + 0.55 * (b1 - b0)
    guest.move((x0 + x1) / 2 - (a0 + a1) / 2, min(low, y1) - b1)
    guest.deepen(there.depth - 0.2 if inside else there.depth + 0.2)
    guest.sprites = [replace(one, grounded=False) for one in guest.sprites]


def _faced(scene: Scene, groups: Sequence[Sequence[SceneActor]], turned: Mapping[str, int]) -> Scene:
    """The scene in which who is spoken to stands before who speaks and does something else to somebody or something."""
    lead = groups[0][0] if groups else None
    others = {group_[0].id for group_ in groups[1:]}
    if lead is None or lead.tells not in others:
        return scene
    side: Literal["left", "right"] = "right" if turned[lead.id] > 0 else "left"
    placed = (replace(one, place=side) if one.id == lead.tells and one.place is None else one for one in scene.actors)
    return replace(scene, actors=tuple(placed))


def _looked_out(scene: Scene) -> tuple[Scene, tuple[SceneThing, ...]]:
    """The scene without what is seen through a window, and that: what is too large or far for a room where somebody
    only looks at it, and the moon that is seen through a window."""
    looking = {actor.id for actor in scene.actors if actor.deed in _LOOKING}
    through = any(thing.pictogram == "window" for thing in scene.things)
    room = scene.setting in _ROOMS
    seen = tuple(
        thing
        for thing in scene.things
        if thing.kind in _OUTSIDE
        and thing.cm > _OUT_OF_DOORS
        and (thing.held_by is None or thing.held_by in looking)
        and looking
        and (room or (through and thing.stands == "sky"))
        and thing.at is None
        and thing.id not in {*(one.at for one in scene.actors), *(one.at for one in scene.things)}
    )
    if not seen:
        return scene, ()
    gone = {thing.id for thing in seen}
    kept = tuple(thing for thing in scene.things if thing.id not in gone and thing.pictogram != "window")
    return replace(scene, things=kept), seen


def _view(seen: Sequence[SceneThing], sprites: Sequence[Sprite], turned: Sequence[int]) -> list[Sprite]:
    """A window on the wall before whom looks, with what is seen through it."""
    if not seen:
        return []
    left, _, right, _ = union([sprite.box for sprite in sprites] or [(-30.0, -60.0, 30.0, 0.0)])
    facing = turned[0] if turned else 1
    picture = draw_thing(seen[0], _PANE - 24.0, 1)
    scale = min(1.0, (_PANE_WIDE - 14.0) / max(picture.bbox[2] - picture.bbox[0], 1.0))
    inside = group(picture.svg, transform=f"translate(0 -10) scale({scale:.3f})")
    half = 0.5 * _PANE_WIDE
    svg = (
        rect(-half - 5, -_PANE - 5, _PANE_WIDE + 10, _PANE + 10, round_=3, fill=colour("brown"))
        + rect(-half, -_PANE, _PANE_WIDE, _PANE, fill=colour("navy" if seen[0].stands == "sky" else "sky"))
        + inside
        + rect(-half - 10, 3, _PANE_WIDE + 20, 6, round_=2, fill=colour("brown"))
    )
    box = (-half - 10, -_PANE - 5, half + 10, 9.0)
    x = right + half + 16 if facing > 0 else left - half - 16
    return [Sprite(seen[0].id, svg, box, -5.0, x, -58.0, key=True, grounded=False)]


def _directions(groups: Sequence[Sequence[SceneActor]], seed: int, previous: Framing | None) -> Mapping[str, int]:
    """Which way everybody looks: the lead as asked, as before or on its own side of the board, partners as the deed has
    it, others to the lead."""
    chosen: dict[str, int] = {}
    for nth, group_ in enumerate(groups):
        first = group_[0]
        kept = keep_direction(first.id, first.facing, previous if nth == 0 else None)
        if nth == 0:
            usual = {"left": 1, "right": -1}.get(first.place or "") or _side(group_, seed)
        elif deed(first.deed).pose.moving or first.deed == groups[0][0].deed == _ALONG:
            usual = chosen[groups[0][0].id]
        else:
            usual = 1 if on_left(nth, first) else -1
        chosen[first.id] = kept or usual
        for at, other in enumerate(group_[1:]):
            same = at > 0 or paired(first, other).partner in ("side", "ahead", "behind", "under", "carried")
            if at_board(first) and at_board(other):
                same = at % 2 == 1
            if other.where == "towards":
                same = False  # who comes to somebody faces them
            chosen[other.id] = other.facing or chosen[first.id] * (1 if same else -1)
    return chosen


def _side(group_: Sequence[SceneActor], seed: int) -> int:
    """Which way the lead looks, the same in all frames of a board: alone to one side, with a partner as the two always
    stand (who is left of whom does not change across a cut)."""
    if len(group_) > 1 and deed(group_[0].deed).partner == "front":
        one, other = (Random(f"{actor.id}/{seed}").random() for actor in group_[:2])
        return 1 if one < other else -1
    return 1 if Random(f"way/{seed}").random() < 0.5 else -1


def _lent(scene: Scene) -> Mapping[str, Pose]:
    """Poses of those to whom something is done that takes two, and who do nothing else."""
    found: dict[str, Pose] = {}
    for actor in scene.actors:
        other = next((one for one in scene.actors if one.id == actor.target), None)
        lends = deed(actor.deed).lends
        same = other is not None and other.deed == actor.deed and actor.deed in FOR_TWO
        mutual = same and actor.id not in found
        if other is not None and lends is not None and (other.deed == "stand" or mutual):
            found[other.id] = lends
    return found


def _where_it_is(row: Deed, scene: Scene, actor: SceneActor) -> Deed:
    """A deed as it is done where the actor is: under water, on a lap, without a tree in a house, with the voice."""
    row = _voiced(row, near=actor.target is not None) if actor.voice else row
    signs = row.pose.emanata
    if actor.where in _ON_BODY:
        signs = tuple(sign for sign in signs if sign not in _BEDDING)
    if scene.setting in _WATERY and row.id in _UPRIGHT and actor.kind == "person":
        row = replace(row, pose=deed("swim").pose)  # nobody stands on the seabed
        signs = row.pose.emanata
    if scene.setting in _WATERY:
        signs = tuple(sign for sign in signs if sign != "water")
    if row.id == "shelter" and actor.where == "under":
        row = replace(row, own=None, pose=replace(row.pose, arm_near=(-14.0, -6.0)))  # a roof is enough
    housed = scene.setting is not None and place_data(scene.setting).indoors
    roped = any("rope" in (one.pictogram or "") for one in scene.things)
    fellows = {one.target for one in scene.actors if one.deed == row.id and one.id != actor.id}
    roped = roped or any(one.id in fellows for one in scene.things)  # up what another climbs
    if row.id == "climb" and (housed or roped or actor.where in ("in", "on")):
        signs = ()  # no tree to climb in a house
    return replace(row, pose=replace(row.pose, emanata=signs))


def _cluster(
    scene: Scene, actor: SceneActor, facing: int, lent: Pose | None = None, riders: Sequence[SceneActor] = ()
) -> Cluster:
    """Return somebody with the things and furniture of what they do."""
    objects = [thing for thing in scene.things if _is_object(thing, actor)]
    tools = [thing for thing in scene.things if thing.held_by == actor.id and thing.role == "instrument"]
    row = _where_it_is(deed(actor.deed) if lent is None else replace(deed(actor.deed), pose=lent), scene, actor)
    if row.id == "climb" and scene.setting in _ROCKY and not objects and "pole" in row.pose.emanata:
        row = replace(row, pose=replace(row.pose, emanata=()), set="cliff")
    if row.insists and row.own is not None:
        found = pictogram(row.own)
        objects = [replace(thing, pictogram=found.id, cm=found.cm, stands=found.stands) for thing in objects]
    has_object = _has_object(scene, actor, objects)
    goals = [thing for thing in scene.things if thing.held_by == actor.id and thing.role == "goal"]
    if aboard := [thing for thing in scene.things if thing.id == actor.at and _boarded(thing, actor)]:
        row, objects, goals = replace(row, thing="around", own=None, set=None), aboard, []
    row = _laid_down(scene, actor, row, objects, tools, goals, has_object)
    row = _furnished(scene, row, objects, goals, has_object)
    row, goals = _over_fire(scene, actor, row, goals)
    if row.stock is not None and not has_object and not tools and actor.kind != "pictogram":
        objects = [replace(_implied(row.stock, actor), role="object")]
    if not objects and row.set is not None and _shares(scene, actor):
        row = replace(row, set=None, own=None)
    if row.partner == "under" and any(other.id == actor.target for other in scene.actors):
        row = replace(row, own=None)
    if row.own is not None and _brings_along(scene, row, objects, tools):
        tools = [_implied(row.own, actor), *tools]
    row, objects, tools = _by_body(actor, row, objects, tools)
    row = settled(row, actor)
    if actor.kind != "pictogram":
        bench = _bench(scene, actor)
        if bench is not None and any(other.target == bench.id for other in _before_in(scene, actor)):
            objects = [thing for thing in objects if thing is not bench]  # it is drawn with the first of them
        bare = _open_air(scene) or scene.setting in _BARE
        chair = not bare or BOARD in (row.set, deed(actor.posture or actor.deed).set)
        drawn = _person((actor, *riders), row, objects, tools, facing, has_object, bench, chair=chair)
        inside = not _open_air(scene)
        return _at_goal(drawn, goals[0], objects, row, indoors=inside) if goals and drawn.body is not None else drawn
    return _thing_actor(actor, row, [*objects, *(tool for tool in tools if tool.role == "instrument")], facing)


def _open_air(scene: Scene) -> bool:
    """Return whether a place is told that is out of doors."""
    return scene.setting is not None and not place_data(scene.setting).indoors


def _has_object(scene: Scene, actor: SceneActor, objects: Sequence[SceneThing]) -> bool:
    """Return whether somebody, or who does the same, does it to something or somebody."""
    fellows = {other.id for other in scene.actors if other.deed == actor.deed}
    return (
        bool(objects)
        or any(other.id == actor.target for other in scene.actors)
        or any(thing.role == "object" and thing.held_by in fellows for thing in scene.things)
    )


def _laid_down(
    scene: Scene,
    actor: SceneActor,
    row: Deed,
    objects: Sequence[SceneThing],
    tools: Sequence[SceneThing],
    goals: Sequence[SceneThing],
    has_object: bool,
) -> Deed:
    """Return the deed as what is put down has it: on the table of the deed, or on what it is told to be put on."""
    placed = settled(row, actor) is not row
    if row.id == "put" and objects and not tools and not placed:
        row = _put_down(row, goals, outdoors=_open_air(scene))
    laid = {thing.at for thing in objects} & {goal.id for goal in goals}
    if laid and row.set == "table" and goals[0].pictogram not in _TABLES:
        row = replace(row, set=None)  # it is seen on what it is put on, and not on a table beside that
    within = any(one.id == actor.target and one.at is not None for one in scene.actors)
    if row.id == "put" and (within or not has_object) and not goals and not tools and not placed:
        row = replace(row, set=None)  # nothing is laid on a table
    return row


def _furnished(
    scene: Scene, row: Deed, objects: Sequence[SceneThing], goals: Sequence[SceneThing], has_object: bool
) -> Deed:
    """Return the deed without furniture that the place has or has no room for."""
    if row.set in _WAYS and (_open_air(scene) or scene.setting is None or has_object or goals):
        row = replace(row, set=None)
    if row.set == "flight" and scene.setting in _DOORS:
        row = replace(row, set=None)  # there are stairs
    if row.set == "table" and row.thing == "table" and objects and all(_is_tall(thing) for thing in objects):
        row = replace(row, set=None, thing="front", gap=-3.0)  # a boat that is mended lies on no table
    return row


def _over_fire(scene: Scene, actor: SceneActor, row: Deed, goals: list[SceneThing]) -> tuple[Deed, list[SceneThing]]:
    """Return the deed and what its object goes to, over a fire where there is one or no stove can be."""
    if row.set != "stove" or not (_open_air(scene) or any(thing.pictogram == _FIRE for thing in goals)):
        return row, goals
    fires = [thing for thing in goals if thing.pictogram == _FIRE]
    return replace(row, set=None, thing="over_fire"), fires or [replace(_implied(_FIRE, actor), role="goal")]


def _by_body(
    actor: SceneActor, row: Deed, objects: list[SceneThing], tools: list[SceneThing]
) -> tuple[Deed, list[SceneThing], list[SceneThing]]:
    """Return the deed, its objects and its tools as who sits in a wheelchair or has no hands does it."""
    if _WHEELED in actor.look.features and not row.pose.lying and row.far != "under" and row.thing != "around":
        objects = [thing for thing in objects if thing.pictogram not in (_CHAIR, "wheel")]
        row = replace(row, pose=replace(row.pose, **_SEATED), far="under", set=None)
        tools = [replace(_implied(_CHAIR, actor), cm=130.0)]
    if actor.kind == "figure" and not has_hands(actor.concept):
        row = replace(row, thing=_BEAKS.get(row.thing, row.thing), far=_BEAKS.get(row.far, row.far), set=None)
        tools = [thing for thing in tools if thing.role == "instrument" and row.own != thing.word]
    return row, objects, tools


def _brings_along(scene: Scene, row: Deed, objects: Sequence[SceneThing], tools: Sequence[SceneThing]) -> bool:
    """Return whether the thing that a verb brings along by itself is drawn: no other is told, nor does a door stand
    there."""
    doored = row.own == "door" and scene.setting in _DOORS
    return (not tools or row.far in _MINDED) and not doored and not (objects and row.far == row.thing)


def _voiced(row: Deed, *, near: bool) -> Deed:
    """The deed of who speaks meanwhile: the mouth is open, and there is a bubble."""
    mouth = row.pose.mouth if row.pose.mouth in _OPEN_MOUTHS else "o"
    sign = "speech_over" if (row.close is not None and near) or row.pose.lean > _BENT else "speech"
    return replace(row, act="speak", pose=replace(row.pose, mouth=mouth, emanata=(*row.pose.emanata, sign)))


def _is_tall(thing: SceneThing) -> bool:
    """Whether a thing is too large for a table."""
    return sized(thing, "table", 100.0) > _TABLED


def _boarded(thing: SceneThing, actor: SceneActor) -> bool:
    """Whether somebody is in a vehicle that has windows, at which their face is seen."""
    return actor.where == "in" and thing.kind == "vehicle" and hollow_of(thing.pictogram) is None


def _in_vehicle(scene: Scene, actor: SceneActor) -> bool:
    return any(thing.id == actor.at and _boarded(thing, actor) for thing in scene.things)


def _put_down(row: Deed, goals: Sequence[SceneThing], *, outdoors: bool) -> Deed:
    """Into what is hollow things are put from above; out of doors there is no table to put them on."""
    if goals and goals[0].kind in _HOLLOW:
        return replace(deed("put_in"), thing="hands")
    return replace(deed("gather"), thing="ground_front") if outdoors else row


def _shares(scene: Scene, actor: SceneActor) -> bool:
    """Whether somebody before this one does the same at a table or counter: one is enough for both."""
    first = next((one for one in scene.actors if one.deed == actor.deed), actor)
    return first is not actor and deed(actor.deed).set in ("counter", "table", "stove", "sink")


def _bench(scene: Scene, actor: SceneActor) -> SceneThing | None:
    """The thing on which several sit or ride, None where each has its own."""
    fellows = [one for one in scene.actors if one.deed == actor.deed and deed(actor.deed).thing == "under"]
    seats = {one.target for one in fellows if one.target is not None}
    if len(fellows) <= 1 or len(seats) != 1:
        return None
    return next((thing for thing in scene.things if thing.id in seats and thing.kind in _SHARED), None)


def _before_in(scene: Scene, actor: SceneActor) -> Sequence[SceneActor]:
    """Those of a scene who do the same and are told before somebody."""
    first = next(nth for nth, one in enumerate(scene.actors) if one.id == actor.id)
    return [one for one in scene.actors[:first] if one.deed == actor.deed]


def _is_object(thing: SceneThing, actor: SceneActor) -> bool:
    return thing.id == actor.target or (thing.held_by == actor.id and thing.role == "object")


def _implied(name: str, actor: SceneActor) -> SceneThing:
    """The thing that a verb brings along by itself (a pencil to write with)."""
    found = pictogram(name)
    return SceneThing(f"{actor.id}:{name}", name, name, found.kind, found.cm, found.stands, "instrument", actor.id)


def _person(
    actors: Sequence[SceneActor],
    row: Deed,
    objects: Sequence[SceneThing],
    tools: Sequence[SceneThing],
    facing: int,
    holds: bool,
    bench: SceneThing | None = None,
    *,
    chair: bool = False,
) -> Cluster:
    """Return a person or an animal of the rig with the things and furniture of what they do."""
    actor = actors[0]
    pose = resting(replace(row.pose, tool=None if holds else row.tool), actor)
    if actor.kind == "person":  # each has a chair or stone of their own where no seat is told
        row = replace(row, set=None) if row.set == _STOOL else row
        signs = tuple("chair" if chair and sign == _STOOL else sign for sign in pose.emanata)
        pose = replace(pose, emanata=signs)
    sits_on = [thing for thing in (*objects, *tools) if _where(thing, row) == "under"]
    around = [thing for thing in (*objects, *tools) if _where(thing, row) == "around"]
    seats = [bench] if bench is not None else sits_on
    pose = _without_signs(actor, pose, row, objects, seats)
    body = _body(actor, actor.id, _led(pose) if actor.count > 1 else pose, facing)
    if actor.kind == "figure" and body.solid[3] - body.solid[1] < _SMALL:
        row = replace(row, set=None)  # nobody of a mouse's size works at a sink
    lift = _ALOFT if actor.kind == "figure" and actor.deed == "fly" else 0.0
    broad = _BENCH if bench is not None else 1.0
    many = min(actor.count, _ROW)
    if sits_on and (pose.lying or many > 1):
        broad = max(1.0, min(_LONGEST, _lain_on(sits_on[0], body) * (1 + _STEP * (many - 1))))
    lift -= max((seat_of(thing, broad * sized(thing, "under", 100.0)) - 8 for thing in seats), default=0.0)
    sprites = [_figure_sprite(actor, body, facing, lift, pose.emanata)]
    if around:
        names = [(one, f"{one.id}{nth or ''}") for one in actors for nth in range(min(one.count, _WINDOWS))]
        riders = [(one, _body(one, name, pose, facing)) for one, name in names[:_WINDOWS]]
        aboard = inside(riders, row, around[0], facing)
        return aboard or Cluster(actor, facing, sprites, body, body.solid)
    for thing in objects:
        under = broad if thing is bench or thing in sits_on else 1.0
        sprites += _objects_put(thing, row, body, facing, under, many)
    sprites += _tools_put(tools, row, body, facing, lift)
    if row.set is not None and not seats:
        piece = replace(_furniture(row.set, facing), key=row.set in OWN_PLACE)
        sprites.append(replace(piece, id=actor.at) if actor.at is not None and actor.where == "at" else piece)
    board = sprites[-1].id if row.set == BOARD and not seats else None
    if (row.thing == "thought" and objects) or (row.far == "thought" and tools):
        thought = (objects if row.thing == "thought" and objects else tools)[0].id
        sprites += [think_bubble(sprite, facing) for sprite in sprites if sprite.id == thought][:1]
    if actor.says is not None:
        sprites.append(_speech(actor.says, body, facing, loud="blast" in row.pose.emanata))
    sprites += _crowd(actor, pose, facing, lift, row.set if row.set == _WINDOW else None)
    held = _outfit_hold(actor, row, body, facing, objects, tools)
    sprites += [held] if held is not None else []
    solid = union(
        [body.solid, *(sprite.box for sprite in sprites[1:] if sprite.depth > -2 and sprite.id not in _BUBBLES)]
    )
    return Cluster(actor, facing, sprites, body, solid, holds=bool(objects), board=board)


def _without_signs(
    actor: SceneActor, pose: Pose, row: Deed, objects: Sequence[SceneThing], seats: Sequence[SceneThing]
) -> Pose:
    """Return the pose without the signs in whose place something is drawn: seats, trees and bubbles."""
    gone: set[str] = set()
    if seats:
        gone |= {*_SEATS, "saddle", "pillow"}
    if objects and row.thing == "climbed":
        gone |= {*pose.emanata}
    if row.set not in (None, BOARD):
        gone |= {*_SEATS}
    if actor.says is not None:
        gone |= _EMPTY_BUBBLES
    if (row.thing == "thought" and objects) or (row.partner == "thought" and actor.target is not None):
        gone |= {"thought", "speech"}
    return replace(pose, emanata=tuple(sign for sign in pose.emanata if sign not in gone))


def _objects_put(thing: SceneThing, row: Deed, body: Body, facing: int, broad: float, many: int) -> list[Sprite]:
    """Return each of the things that something is done to, at most three, as large as so many on it need it."""
    sprites = []
    for nth in range(1 if row.thing in ("worn", "cover") else min(thing.count, 3)):
        sprite = put_thing(thing, row.thing, row, body, facing, nth)
        if sprite is not None and broad > 1.0:
            middle = -0.5 * facing * _STEP * (body.solid[2] - body.solid[0]) * (many - 1)
            sprite = replace(shrunk(sprite, broad), grounded=True, depth=_BEHIND).moved(middle, 0.0)
        if sprite is not None:
            apart = 0.0 if row.thing == "table" else 9.0 * nth
            sprites.append(sprite.moved(apart, -0.25 * apart))
    return sprites


def _tools_put(tools: Sequence[SceneThing], row: Deed, body: Body, facing: int, lift: float) -> list[Sprite]:
    """Return what something is done with, where the deed has it."""
    sprites = []
    for thing in tools:
        sprite = put_thing(thing, _where(thing, row), row, body, facing)
        if sprite is not None:
            over = row.thing == "table" and _where(thing, row) == "hand"
            depth = _BEFORE if thing.pictogram == _CHAIR else _OVER_TABLE if over else sprite.depth
            sprites.append(replace(sprite, key=thing.stands == "wall", depth=depth).moved(0.0, lift))
    return sprites


def _lain_on(thing: SceneThing, body: Body) -> float:
    """How much larger a bed must be drawn for whoever lies on it."""
    plain = draw_thing(thing, sized(thing, "under", 100.0), 1)
    return _BED * (body.solid[2] - body.solid[0]) / (plain.bbox[2] - plain.bbox[0])


def _at_goal(
    cluster: Cluster, thing: SceneThing, objects: Sequence[SceneThing], row: Deed, *, indoors: bool
) -> Cluster:
    """The cluster with what its object goes to or comes from close before it: small things on a table under the hands,
    others on the ground."""
    assert cluster.body is not None
    f, body = cluster.facing, cluster.body
    height = min(max(stage_height(thing.cm), _GOAL), _GOAL_MOST if thing.stands != "sky" else 2 * _GOAL)
    drawn = draw_thing(thing, height, f)
    wide = drawn.bbox[2] - drawn.bbox[0]
    if wide > _GOAL_WIDE and height < _LOW_GOAL:
        drawn = draw_thing(thing, height * _GOAL_WIDE / wide, f)
        wide = _GOAL_WIDE
    flat = row.set in (None, "table", "desk", "counter", "stove", BOARD) and thing.pictogram in _TABLES
    if flat and row.set is not None:  # the deed's table is the one that is told
        named = [replace(one, id=thing.id) if one.id == row.set else one for one in cluster.sprites]
        return replace(cluster, sprites=named)
    hand = max(f * body.joints["hand"][0], f * body.joints["far"][0])
    x, y, more = f * (hand + 0.38 * wide), hung(thing), []
    on_table = thing.stands in ("hand", "table") and height < _LOW_GOAL and indoors and row.set is None
    if on_table:
        table = _furniture("table", f).moved(f * (hand + 0.38 * wide - _TABLE_MIDDLE), 0.0)
        more, y = [replace(table, depth=0.4)], -_TABLE_TOP
    elif row.set is not None:
        x += f * 44.0
    if row.trail == "drops":
        x += f * _SPOUT
    depth = 0.6 if (height < _LOW_GOAL or on_table) and not hung(thing) else -0.6
    sprite = Sprite(thing.id, drawn.svg, drawn.bbox, depth, x, y, key=True, grounded=y == 0.0)
    put = {one.id: lay(one, sprite, thing) for one in objects if one.at == thing.id}
    if row.id in _FALLING and (hollow_of(thing.pictogram) or thing.kind in _OPEN) and thing.pictogram not in _PANES:
        put = {one.id: _falling(one, sprite) for one in objects}
    kept = [one for one in cluster.sprites if one.id not in put]
    solid = union([cluster.solid, sprite.box, *(one.box for one in (*more, *put.values()))])
    return replace(cluster, sprites=[*kept, *more, sprite, *put.values()], solid=solid)


def _falling(thing: SceneThing, goal: Sprite) -> Sprite:
    """What is dropped or thrown into a thing, on its way down."""
    x0, top, x1, _ = goal.box
    drawn = draw_thing(thing, min(max(stage_height(thing.cm), 20.0), 34.0), 1)
    wide, tall = drawn.bbox[2] - drawn.bbox[0], drawn.bbox[3] - drawn.bbox[1]
    svg = plunge(wide, tall) + drawn.svg
    return Sprite(thing.id, svg, drawn.bbox, goal.depth + 0.2, (x0 + x1) / 2, top - 5.0, key=True, grounded=False)


def _body(actor: SceneActor, name: str, pose: Pose, facing: int) -> Body:
    if actor.kind == "figure":
        return draw_creature(actor.concept, actor.attributes, pose, actor.mood, facing, Random(name).random())
    return draw_person(actor.look, name, pose, actor.mood, facing)


def _where(thing: SceneThing, row: Deed) -> str:
    """Where a deed has a thing; what somebody has along while waiting is in the hand, not in the thoughts."""
    if thing.role == "instrument" and row.far in _MINDED and thing.pictogram != row.own:
        return "hand"
    return row.far if thing.role == "instrument" else row.thing


def _figure_sprite(actor: SceneActor, body: Body, facing: int, lift: float, signs: Sequence[str] = ()) -> Sprite:
    svg = body.behind + body.svg
    x0, y0, x1, y1 = body.solid
    top = min(y0, body.bbox[1]) if {*_VOICES} & {*signs} else y0  # bubbles are in the frame
    if actor.states:
        kind = "person" if actor.kind == "person" or has_hands(actor.concept) else "animal"
        svg = put_states(Picture(svg, body.solid, body.solid, body.head), kind, actor.states, facing).svg
    return Sprite(actor.id, svg, (x0, top, x1, y1), 0.0, 0.0, lift, body.head, acts=True, key=True,
                  facing=facing, grounded=lift == 0.0)  # fmt: skip


def _led(pose: Pose) -> Pose:
    """The pose without lines of speed, which would cross the faces of those who come behind."""
    return replace(pose, emanata=tuple(sign for sign in pose.emanata if sign not in _TRAILED))


def _crowd(actor: SceneActor, pose: Pose, facing: int, lift: float, place: str | None) -> list[Sprite]:
    """More of the same: each a little different, a little behind, or at a window of its own."""
    more, last = [], min(actor.count, _COPIES, _ROW) - 1
    for nth in range(1, min(actor.count, _COPIES)):
        signed = pose if nth == last else _led(pose)
        body = _body(actor, f"{actor.id}{nth}", with_phase(signed, 0.3 * nth), facing)
        step, back = _STEP * (body.solid[2] - body.solid[0]), nth // _ROW
        sprite = _figure_sprite(actor, body, facing, lift)
        if place is not None:
            own = _furniture(place, facing)
            across, up = -facing * (own.box[2] - own.box[0]) * (nth % _ROW), -_STOREY * back
            more += [replace(one, grounded=back == 0).moved(across, up) for one in (sprite, own)]
            continue
        across = -facing * step * (nth % _ROW + 0.5 * (back % 2))
        more.append(replace(sprite, depth=-0.3 * nth).moved(across, -4.0 * (nth % 2) - 20.0 * back))
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


def _speech(name: str, body: Body, facing: int, *, loud: bool) -> Sprite:
    """A speech bubble with the picture of what is spoken about; that of who shouts is jagged."""
    cx, cy, r = body.head
    mx, my = body.joints["mouth"]
    picture = draw_pictogram(name, _SPOKEN)
    wide = min(1.0, 1.4 * _SPOKEN / max(picture.bbox[2] - picture.bbox[0], 1.0))
    x, y = cx + facing * (r + 16), cy - r - 33
    put = f"translate({number(x)} {number(y + 0.5 * _SPOKEN * wide)}) scale({wide:.3f})"
    svg = speech_bubble(x, y, (mx + 3 * facing, my), 36.0, 27.0, jagged=loud) + group(picture.svg, transform=put)
    return Sprite("speech", svg, (x - 38, y - 29, x + 38, y + 29), 3.0, key=True, grounded=False)


def _thing_actor(actor: SceneActor, row: Deed, things: Sequence[SceneThing], facing: int) -> Cluster:
    """An actor without a rig, with its things before it."""
    cm = actor.cm or (pictogram(actor.pictogram).cm if actor.pictogram else 60.0)
    height = max(stage_height(cm), _TINY_ACTOR)
    sprites: list[Sprite] = []
    for nth in range(min(actor.count, _COPIES)):
        if actor.pictogram is None:
            plain = draw_stand_in(actor.kind_of, cm)
        else:
            mood = actor.mood if actor.mood in MOODS else None
            plain = act_pictogram(actor.pictogram, height, act=row.act, mood=mood, facing=facing)
        if actor.states:
            plain = put_states(plain, actor.kind_of, actor.states, facing)
        step = 0.85 * (plain.solid[2] - plain.solid[0])
        around = plain.bbox if row.act in _WITH_SIGNS or actor.states else plain.solid
        up = _HUNG if actor.pictogram and pictogram(actor.pictogram).stands == "wall" else 0.0
        drawn = Sprite(actor.id, plain.svg, around, -0.3 * nth, -facing * step * nth, up - 3.0 * (nth % 2), plain.head,
                       acts=True, key=True, facing=facing, grounded=plain.solid[3] > -2.0 and not up)  # fmt: skip
        sprites.append(drawn)
    x0, y0, x1, y1 = sprites[0].local
    for thing in things:
        implied = thing.id.endswith(f":{thing.word}") and thing.held_by == actor.id
        if implied and row.far not in ("eyes", "hand", "hands", "staff"):
            continue
        offers = (implied or row.thing in ("hand", "hands", "flying")) and stage_height(thing.cm) < _GOAL
        if offers:
            thing = replace(thing, stands="hand", cm=max(thing.cm, _OFFERED))
        size = min(stage_height(thing.cm), 0.7 * height) if thing.stands == "hand" else stage_height(thing.cm)
        sprites.append(_before(thing, size, (x0, y0, x1, y1), facing))
    solid = union([sprite.box for sprite in sprites])
    return Cluster(actor, facing, sprites, None, solid, holds=bool(things))


def _before(thing: SceneThing, size: float, box: Box, facing: int) -> Sprite:
    """A thing in front of an actor without hands: small ones at its mouth, large ones on the ground."""
    size = min(size, 2 * _GOAL) if thing.stands == "sky" else size
    drawn = draw_thing(thing, size, facing)
    wide = drawn.bbox[2] - drawn.bbox[0]
    edge = box[2] if facing > 0 else box[0]
    held = thing.stands == "hand"
    x = edge + facing * (0.3 * wide if held else 0.5 * wide + 5)
    y = box[3] - 0.3 * (box[3] - box[1]) + 0.4 * size if held else hung(thing)
    return Sprite(thing.id, drawn.svg, drawn.bbox, 0.6, x, y, key=True, grounded=y == 0.0)


def _scenery(scene: Scene, sprites: Sequence[Sprite], rng: Random) -> list[Sprite]:
    """Things that nobody acts on: tall ones behind the actors, small ones beside them, some on walls or in the sky."""
    used = {sprite.id for sprite in sprites}
    used |= {one.id for one in scene.things if one.role == "goal" and one.held_by and one.pictogram in _TABLES}
    unseen = {actor.id for actor in scene.actors if deed(actor.deed).thing == "none"}
    used |= {thing.id for thing in scene.things if thing.role == "object" and thing.held_by in unseen}
    used |= {actor.at for actor in scene.actors if actor.at is not None and actor.where == "at"}
    inside = {one.id for one in scene.actors if deed(one.deed).thing == "around" or _in_vehicle(scene, one)}
    used |= {thing.id for thing in scene.things if thing.held_by in inside and thing.kind in ("food", "drink")}
    drawn: list[Sprite] = []
    laid: list[tuple[SceneThing, Picture]] = []
    acting = [sprite.box for sprite in sprites if sprite.acts]
    left, _, right, _ = union([sprite.box for sprite in sprites] if acting else [(-30.0, -60.0, 30.0, 0.0)])
    loose = [thing for thing in scene.things if thing.id not in used]
    for thing in sorted(loose, key=lambda one: one.at is not None):
        there = next((one for one in (*sprites, *drawn) if one.id == thing.at), None)
        if there is not None:
            drawn.append(lay(thing, there, next((one for one in scene.things if one.id == thing.at), None)))
            continue
        tabled = bool(acting) and _on_table(scene, thing)
        size = max(stage_height(thing.cm), _LEAST_TABLED if tabled else _LEAST_LOOSE)
        size = min(size, _SKY_HIGH) if thing.stands == "sky" and acting else size
        for nth in range(thing.count if thing.count <= FEW else 1):
            picture = draw_thing(thing, size, rng.choice((1, -1)))
            if (slim := fitted(thing, size, picture)) < size:
                picture = draw_thing(thing, slim, 1)
            picture = several(picture, thing.count)
            wide = picture.bbox[2] - picture.bbox[0]
            if nth and acting and right - left + wide > _WIDEST:
                break
            lifted = {"sky": -max(130.0, 1.2 * size), "wall": -66.0}.get(thing.stands, 0.0)
            if size < _FEW and not lifted and right - left > _BROAD:
                # Beside a broad group they would make everybody small: they lie before its feet.
                before = [one for one in drawn if one.depth == _AT_FEET]
                x = (left + right) / 2 + (len(before) - 1) * 34.0
                drawn.append(Sprite(thing.id, picture.svg, picture.bbox, _AT_FEET, x, 7.0, key=thing.role == "object"))
                continue
            if tabled:
                laid.append((thing, picture))
                continue
            if size > 110 or (lifted and (thing.stands == "sky" or size > _LOW_GOAL or not acting)):
                x, depth = rng.uniform(left, right), -6.0
            else:
                on_left = rng.random() < 0.5
                x = left - 0.5 * wide - 8 if on_left else right + 0.5 * wide + 8
                left, right = (left - wide - 10, right) if on_left else (left, right + wide + 10)
                depth = -6.0 if lifted else -2.0 if size > 60 else 0.4
            drawn.append(Sprite(thing.id, picture.svg, picture.bbox, depth, x, lifted, key=thing.role == "object",
                                grounded=not lifted))  # fmt: skip
    return [*drawn, *_on_one_table(laid, left, right, on_left=rng.random() < 0.5)] if laid else drawn


def _on_one_table(
    laid: Sequence[tuple[SceneThing, Picture]], left: float, right: float, *, on_left: bool
) -> list[Sprite]:
    """Small things side by side on one table beside those who act."""
    widths = [picture.bbox[2] - picture.bbox[0] for _, picture in laid]
    whole = sum(widths) + 4.0 * (len(laid) - 1)
    x = left - 8 - whole if on_left else right + 8
    found = [_side_table(f"{laid[0][0].id} table", x + 0.5 * whole, whole)]
    for (thing, picture), wide in zip(laid, widths, strict=True):
        found.append(Sprite(thing.id, picture.svg, picture.bbox, 0.4, x + 0.5 * wide, -_TABLE_TOP,
                            key=thing.role == "object", grounded=False))  # fmt: skip
        x += wide + 4.0
    return found


def _on_table(scene: Scene, thing: SceneThing) -> bool:
    """Whether a thing lies on a table of its own: small, for the hand or table, and no toy, under a roof."""
    outdoors = scene.setting is not None and not place_data(scene.setting).indoors
    small = thing.stands in ("hand", "table") and stage_height(thing.cm) < _LOW_GOAL
    return small and not outdoors and thing.kind not in _FLOOR and not is_footwear(thing)


def _side_table(name: str, x: float, wide: float) -> Sprite:
    """A small table at x, as wide as what lies on it and a little more."""
    half = max(0.5 * wide + 5, 17.0)
    legs = "".join(rect(side * (half - 6) - 3, -32, 6, 32, round_=1, fill=darker("brown")) for side in (-1, 1))
    svg = legs + rect(-half, -_TABLE_TOP - 1, 2 * half, 7, round_=2, fill="brown")
    return Sprite(name, svg, (-half, -_TABLE_TOP - 1, half, 0.0), 0.3, x, 0.0, key=True)
