"""Somebody in a boat, a car or a bathtub, alone or with passengers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from katha_sketch.drawing.deeds import Body, Deed, deed
from katha_sketch.drawing.scenes.record import Scene, SceneActor, SceneThing
from katha_sketch.drawing.scenes.things import Cluster, Sprite, put_thing, shrunk, sized
from katha_sketch.drawing.svg import circle, group, number

__all__ = ["Rider", "inside", "passengers_of"]

Rider = tuple[SceneActor, Body]

_LARGE = 120.0
"""A vehicle taller than this shows its driver in a window."""
_MOST, _APART, _WIDER = 3, 46.0, 0.45
"""At most so many sit in one thing, so far apart, and each more makes it so much larger."""
_FROM_THE_SIDE: Mapping[str, str] = {"train": "railway-car", "metro": "railway-car", "high-speed-train": "railway-car"}
"""What shows its passengers from the side only."""
_RIMS: Mapping[str, float] = {
    "canoe": 0.86, "wooden_rowboat": 0.66, "sailboat": 0.66,
    "vehicle water": 1.05, "vehicle ground": 0.96, "container ground": 0.9,
}  # fmt: skip
_GLAZED = 0.86
"""The share of a vehicle's length that has windows."""
_RIM = 0.68
"""How high the chin of somebody inside is, beside the height of the thing, by its kind and where it stands."""


def passengers_of(scene: Scene) -> Mapping[str, tuple[SceneActor, ...]]:
    """Who sits in the same thing as whom: by driver, those who do the same in the same or in no thing of their own."""
    found: dict[str, list[SceneActor]] = {}
    drivers: list[SceneActor] = []
    things = {thing.id for thing in scene.things}
    for actor in scene.actors:
        if deed(actor.deed).thing != "around" or actor.kind == "pictogram" or actor.count > 1:
            continue
        own = actor.target if actor.target in things else None
        same = [one for one in drivers if one.deed == actor.deed and (own is None or own == one.target)]
        if same:
            found[same[0].id].append(actor)
        else:
            drivers.append(actor)
            found[actor.id] = []
    return {driver: tuple(riders[: _MOST - 1]) for driver, riders in found.items() if riders}


def inside(riders: Sequence[Rider], row: Deed, thing: SceneThing, facing: int) -> Cluster | None:
    """In a boat or car from the waist up; in what is larger, faces in windows; None where the thing is not seen."""
    actor, body = riders[0]
    thing = replace(thing, pictogram=_FROM_THE_SIDE.get(thing.pictogram or "", thing.pictogram))
    height = sized(thing, "around", 100.0)
    drawn = put_thing(thing, "around", row, body, facing)
    if drawn is None:
        return None
    drawn = replace(drawn, key=True)
    if height > _LARGE or (thing.kind == "vehicle" and thing.stands == "ground"):
        windows = [_window(rider, drawn, facing, nth, len(riders)) for nth, rider in enumerate(riders)]
        return Cluster(actor, facing, [replace(drawn, depth=0.0), *windows], body, drawn.box)
    scale = 1.0 + _WIDER * (len(riders) - 1)
    drawn, height = replace(shrunk(drawn, scale), grounded=drawn.grounded), height * scale
    edge = _RIMS.get(thing.pictogram or "", _RIMS.get(f"{thing.kind} {thing.stands}", _RIM))
    figures = []
    for nth, (one, shape) in enumerate(riders):
        chin = shape.head[1] + 1.1 * shape.head[2]
        across = facing * (0.5 * (len(riders) - 1) - nth) * _APART
        figures.append(Sprite(one.id, shape.behind + shape.svg, shape.solid, -0.1 * nth, across, -edge * height - chin,
                              shape.head, acts=True, key=True, facing=facing, grounded=False))  # fmt: skip
    return Cluster(actor, facing, [*figures, drawn], body, drawn.box)


def _window(rider: Rider, vehicle: Sprite, facing: int, nth: int, many: int) -> Sprite:
    """A face in a round window of a large vehicle; several side by side, the driver foremost."""
    actor, body = rider
    x0, y0, x1, y1 = vehicle.box
    cx, cy, r = body.head
    large = y1 - y0 > _LARGE
    reach = max(13.0, (0.17 if large else 0.25) * (y1 - y0))
    reach = min(reach, _GLAZED * (x1 - x0) / (2.2 * many))
    ahead = (0.08 if many < _MOST else 0.0) * (x1 - x0) + (0.5 * (many - 1) - nth) * 2.2 * reach
    x, y = (x0 + x1) / 2 + facing * ahead, y0 + (0.42 if large else 0.3) * (y1 - y0)
    name, scale = f"window-{number(x)}-{number(y)}".replace(".", "_"), 0.8 * reach / r
    clip = f'<clipPath id="{name}">{circle(x, y, reach, fill="#ffffff", stroke=None)}</clipPath>'
    face = group(body.svg, transform=f"translate({number(x)} {number(y)}) scale({scale:.4f}) "
                 f"translate({number(-cx)} {number(-cy + 0.1 * r)})")  # fmt: skip
    svg = circle(x, y, reach, fill="#bfe0ea") + clip + f'<g clip-path="url(#{name})">{face}</g>' + circle(x, y, reach)
    box = (x - reach, y - reach, x + reach, y + reach)
    return Sprite(actor.id, svg, box, 0.2, face_local=(x, y, reach), acts=True, key=True, facing=facing, grounded=False)
