"""Moments to draw: random ones with everybody, every deed, every pictogram and every place equally often, and those of
stories, as the program plans them.

Random training frames are fuller than the frames of a story, for the sake of what they teach; frames to measure on are
not.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from katha import KathaError, plan_story
from katha.agents.requests import panel_request
from katha_sketch.drawing import rasterise
from katha_sketch.drawing.deeds import Look, by_rig, deed, deed_ids, has_hands, people
from katha_sketch.drawing.pictograms import MOODS, draw_pictogram, nouns, pictograms
from katha_sketch.drawing.places import TIMES, WEATHERS, place_ids
from katha_sketch.drawing.scenes import Scene, SceneActor, SceneThing, tell
from katha_sketch.drawing.svg import el, group
from katha_sketch.vocabulary import load_vocabulary
from training.reader.told import Told
from training.reader.windows import CLOSE, ROOM

__all__ = [
    "creature_deeds",
    "creatures",
    "drawn_pictograms",
    "held_out",
    "pose_set",
    "random_scene",
    "tell_stories",
    "told_scenes",
]

_ONE_IN = 20
_ACTORS, _FULL_ACTORS = (0, 1, 1, 1, 2, 2, 3), (1, 2, 2, 3, 3, 4)
_THINGS, _FULL_THINGS = (0, 1, 1, 2, 2), (1, 2, 3, 3, 4)
_KINDS = ("person",) * 5 + ("figure",) * 3 + ("pictogram",) * 2
_COLOURS = ("#d8584f", "#5f8fc4", "#f0bf4c", "#7fae6a", "#8d6aa8", "#4a4852", "#fffdf6")
_SIZE = (768, 512)
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


def _moments(story: Told) -> list[Scene]:
    """The scenes of a story; none where it cannot be planned."""
    try:
        plan = plan_story(story.text(Random(story.name)))
    except KathaError:
        return []
    return [tell(panel_request(plan, panel, 0, _SIZE)).scene for panel in plan.panels]


def tell_stories(file: Path, stories: Sequence[Told], key: str, workers: int) -> None:
    """Save the scenes of read stories in `file`, unless it holds those of the same `key`."""
    key = f"{key}/{len(stories)}"
    if file.exists() and pickle.loads(file.read_bytes())[0] == key:
        return
    with ProcessPoolExecutor(workers) as pool:
        found = [scene for scenes in pool.map(_moments, stories, chunksize=4) for scene in scenes]
    file.write_bytes(pickle.dumps((key, found)))


@cache
def told_scenes(file: Path) -> Sequence[Scene]:
    """The scenes that `tell_stories` saved; none where it did not."""
    if not file.exists():
        return ()
    found: list[Scene] = pickle.loads(file.read_bytes())[1]
    return found


Bytes = NDArray[np.uint8]
_REACH = 1.25
_STEP = 40
_SHARE_TIPPED = 0.12
_EACH = 24
"""The most windows of each pictogram by itself."""


def _posed(rng: Random, name: str, frames: Bytes) -> Bytes:
    """One window (with room around it) on a pictogram of a random size before a piece of a random frame."""
    turn = rng.uniform(-70, 70) if rng.random() < _SHARE_TIPPED else 0.0
    drawn = draw_pictogram(
        name, rng.choice((13.0, 20.0, 30.0, 45.0, 65.0, 100.0)), facing=rng.choice((1, -1)), turn=turn
    )
    x0, y0, x1, y1 = drawn.bbox
    half = ROOM * _REACH * max(x1 - x0, y1 - y0) / 2
    u, v = (x0 + x1) / 2 - half, (y0 + y1) / 2 - half
    side = round(ROOM * _REACH * 2 ** rng.uniform(4.2, 7.2))
    svg = el(
        "svg",
        group(drawn.svg),
        xmlns="http://www.w3.org/2000/svg",
        width=side,
        height=side,
        viewBox=f"{u:.2f} {v:.2f} {2 * half:.2f} {2 * half:.2f}",
    )
    shape = Image.open(io.BytesIO(rasterise(svg, side, side))).convert("RGBA")
    frame = frames[rng.randrange(len(frames))]
    piece = min(max(8, side // 2), frame.shape[0] - 1)
    top, left = rng.randrange(frame.shape[0] - piece), rng.randrange(frame.shape[1] - piece)
    canvas = Image.fromarray(np.ascontiguousarray(frame[top : top + piece, left : left + piece])).resize((side, side))
    canvas.paste(shape, (0, 0), shape)
    return np.asarray(canvas.resize((CLOSE, CLOSE), Image.Resampling.BILINEAR))


def _chunk(frames: NDArray[np.uint8], names: Sequence[str], each: int) -> Bytes:
    return np.stack([_posed(Random(f"posed/{name}/{nth}"), name, frames) for name in names for nth in range(each)])


def pose_set(folder: Path, frames: Bytes, key: str, workers: int) -> None:
    """Save windows of every pictogram by itself in `folder`, with their names, before pieces of `frames`, unless they
    were made before under the same `key`."""
    names, each = drawn_pictograms(), max(1, min(_EACH, len(frames) // 100))
    made = f"{key}/{each}"
    if (folder / "posed.key").exists() and (folder / "posed.key").read_text() == made:
        return
    behind = np.stack([frames[nth] for nth in range(min(len(frames), 200))])
    parts = [names[start : start + _STEP] for start in range(0, len(names), _STEP)]
    if workers <= 1:
        windows = [_chunk(behind, part, each) for part in parts]
    else:
        with ProcessPoolExecutor(workers) as pool:
            jobs = [pool.submit(_chunk, behind, part, each) for part in parts]
            windows = [job.result() for job in jobs]
    np.save(folder / "posed.npy", np.concatenate(windows))
    (folder / "posed.txt").write_text("\n".join(name for name in names for _ in range(each)))
    (folder / "posed.key").write_text(made)
