"""Random moments to draw: everybody, every deed, every pictogram and every place equally often.

Training frames are fuller than the frames of a story, for the sake of what they teach; frames to measure on are not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random
from zlib import crc32

from katha.renderers.sketch.deeds import Look, by_rig, deed, deed_ids, has_hands, people
from katha.renderers.sketch.pictograms import MOODS, nouns, pictograms
from katha.renderers.sketch.places import TIMES, WEATHERS, place_ids
from katha.renderers.sketch.scenes import Scene, SceneActor, SceneThing
from katha.vocabulary import load_vocabulary

__all__ = ["creature_deeds", "creatures", "drawn_pictograms", "held_out", "random_scene"]

_ONE_IN = 20
_ACTORS, _FULL_ACTORS = (0, 1, 1, 1, 2, 2, 3), (1, 2, 2, 3, 3, 4)
_THINGS, _FULL_THINGS = (0, 1, 1, 2, 2), (1, 2, 3, 3, 4)
_KINDS = ("person",) * 5 + ("figure",) * 3 + ("pictogram",) * 2
_COLOURS = ("#d8584f", "#5f8fc4", "#f0bf4c", "#7fae6a", "#8d6aa8", "#4a4852", "#fffdf6")
_FEW = ("crawl", "kneel", "lie", "wake", "smell", "listen", "celebrate", "shiver", "faint")
"""What creatures without hands do beside the older actions, which every rig draws."""


@cache
def drawn_pictograms() -> tuple[str, ...]:
    """The pictograms that the sketch draws as such: all but the people whom its rig draws."""
    return tuple(name for name, one in pictograms().items() if one.kind != "person" or not by_rig(name))


def held_out(name: str) -> bool:
    """Whether the namer never learns from a pictogram: one in twenty, to measure what the gallery alone can do."""
    return crc32(name.encode()) % _ONE_IN == 0


@cache
def creatures() -> tuple[str, ...]:
    """The characters of the vocabulary that the sketch draws by their own rig."""
    people_ = {*people()["bases"], *people()["outfits"]}
    return tuple(one.id for one in load_vocabulary().concepts("character") if one.id not in people_)


@cache
def creature_deeds(concept: str) -> tuple[str, ...]:
    """The deeds that can be told apart when a creature does them."""
    if has_hands(concept):
        return deed_ids()
    older = {action.id for action in load_vocabulary().concepts("action")}
    return tuple(name for name in deed_ids() if name in older or name in ("stand", *_FEW))


@cache
def _acting() -> tuple[str, ...]:
    return tuple(name for name in drawn_pictograms() if pictograms()[name].acts == "yes")


@cache
def _sizes() -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for noun in nouns().values():
        found.setdefault(noun.pictogram, []).append(noun.cm)
    return found


def _actor(rng: Random, nth: int) -> SceneActor:
    kind, name = rng.choice(_KINDS), f"a{nth} {rng.randrange(10**6)}"
    mood = rng.choice(MOODS) if rng.random() < 0.7 else None
    many = rng.choice((2, 3)) if rng.random() < 0.06 else 1
    if kind == "person":
        look = Look(rng.choice(list(people()["bases"])), None)
        if rng.random() < 0.5:
            look = Look(look.base, rng.choice(list(people()["outfits"])))
        elif rng.random() < 0.3:
            look = Look(look.base, None, dress=rng.choice(_COLOURS), hair=rng.choice((None, *_COLOURS[2:])))
        if rng.random() < 0.3:
            worn = rng.sample(list(people()["features"]), rng.choice((1, 1, 2)))
            look = replace(look, features=tuple(f"{one}:{rng.choice(_COLOURS)}" for one in worn))
        return SceneActor(name, "person", look=look, deed=rng.choice(deed_ids()), mood=mood, count=many)
    if kind == "figure":
        concept = rng.choice(creatures())
        looks: tuple[str, ...] = ()
        if rng.random() < 0.25:
            looks = (rng.choice([one.id for one in load_vocabulary().concepts("attribute")]),)
        act = rng.choice(creature_deeds(concept))
        return SceneActor(name, "figure", concept=concept, attributes=looks, deed=act, mood=mood, count=many)
    shown = rng.choice(_acting() if rng.random() < 0.85 else drawn_pictograms())
    cm = rng.choice(_sizes()[shown])
    return SceneActor(
        name, "pictogram", pictogram=shown, kind_of="animal", cm=cm, deed=rng.choice(deed_ids()), mood=mood, count=many
    )


def _thing(rng: Random, name: str, holder: str | None = None, tool: bool = False) -> SceneThing:
    shown = pictograms()[rng.choice(drawn_pictograms())]
    cm = rng.choice(_sizes()[shown.id]) * rng.uniform(0.85, 1.2)
    if rng.random() < 0.02:
        return SceneThing(name, "something", None, shown.kind, cm, "ground", "scenery", None)
    role = "scenery" if holder is None else "instrument" if tool else "object"
    many = 2 if rng.random() < 0.06 else 1
    return SceneThing(name, shown.id, shown.id, shown.kind, cm, shown.stands, role, holder, many)  # type: ignore[arg-type]


def _placed(rng: Random, things: list[SceneThing]) -> list[SceneThing]:
    """The scenery, now and then one thing on, in or under another."""
    if len(things) > 1 and rng.random() < 0.2:
        where = rng.choice(("on", "in", "under", "above"))
        things[0] = replace(things[0], at=things[1].id, where=where)  # type: ignore[arg-type]
    return things


def random_scene(rng: Random, full: bool = False) -> Scene:
    """One random moment, `full` or not. Ids are drawn uniformly: rare ones are learnt as well as common ones."""
    actors = [_actor(rng, nth) for nth in range(rng.choice(_FULL_ACTORS if full else _ACTORS))]
    things = _placed(rng, [_thing(rng, f"t{nth}") for nth in range(rng.choice(_FULL_THINGS if full else _THINGS))])
    cast = []
    for nth, actor in enumerate(actors):
        others = [one.id for one in actors if one is not actor]
        target = rng.choice(others) if others and rng.random() < 0.35 else None
        if target is None and deed(actor.deed).thing != "none" and rng.random() < 0.6:
            things.append(_thing(rng, f"o{nth}", actor.id))
            target = things[-1].id
        if rng.random() < 0.1:
            things.append(_thing(rng, f"i{nth}", actor.id, tool=True))
        facing = rng.choice((1, -1, None))
        place = rng.choice(("left", "middle", "right", None, None))
        cast.append(SceneActor(**{**vars(actor), "target": target, "facing": facing, "place": place}))
    return Scene(
        rng.choice(place_ids()) if rng.random() < 0.95 else None,
        rng.choice(WEATHERS) if rng.random() < 0.15 else None,
        rng.choice(list(TIMES)) if rng.random() < 0.7 else None,
        tuple(cast),
        tuple(things),
        rng.choice(("wide", "medium", "close")) if rng.random() < 0.3 else None,
    )
