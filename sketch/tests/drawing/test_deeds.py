"""Deeds and looks: every verb has a pose that the rig draws, names only what exists, and is the same bytes twice."""

from __future__ import annotations

from importlib import resources

import pytest
import yaml

from katha.errors import RenderError
from katha_sketch.drawing.deeds import (
    PARTNERS,
    THINGS,
    Look,
    base_of,
    deed,
    deed_ids,
    deed_words,
    draw_person,
    look_of,
    people,
    pieces,
)
from katha_sketch.drawing.deeds.figure import EMANATA
from katha_sketch.drawing.figures.face import EYES, MOUTHS
from katha_sketch.drawing.figures.tools import TOOLS
from katha_sketch.drawing.pictograms import ACTS, MOODS, pictograms
from katha_sketch.drawing.scenes import Scene, SceneActor, SceneThing, draw_scene

BASES = tuple(people()["bases"])


def test_there_are_deeds_enough_and_each_word_is_written_once_in_its_deed() -> None:
    assert len(deed_ids()) >= 90
    assert len(deed_words()) >= 450
    for name in deed_ids():
        words = deed(name).words
        assert len(set(words)) == len(words)
        assert any(deed_words()[word] == name for word in words), name


@pytest.mark.parametrize("name", deed_ids())
def test_every_deed_names_only_what_exists(name: str) -> None:
    row = deed(name)
    assert row.thing in THINGS
    assert row.far in THINGS
    assert row.partner in PARTNERS
    assert row.act in ACTS
    assert row.own is None or row.own in pictograms()
    assert row.set is None or row.set in pieces()
    assert row.tool is None or row.tool in TOOLS
    for pose in (row.pose, row.lends):
        if pose is not None:
            assert set(pose.emanata) <= set(EMANATA)
            assert pose.eyes is None or pose.eyes in EYES
            assert pose.mouth is None or pose.mouth in MOUTHS


@pytest.mark.parametrize("name", deed_ids())
def test_every_deed_draws_with_and_without_a_thing_and_a_partner(name: str) -> None:
    ball = SceneThing("ball", "ball", "soccer-ball", "sport", 22, "ground", "object", "Ivy")
    ivy, ben = SceneActor("Ivy", look=Look("girl"), deed=name), SceneActor("Ben", look=Look("boy"))
    both = SceneActor("Ivy", look=Look("girl"), deed=name, target="Ben")
    robot = SceneActor("Pip", kind="pictogram", pictogram="robot", deed=name, target="ball")
    scenes = [Scene(actors=(ivy,)), Scene(actors=(ivy,), things=(ball,)), Scene(actors=(both, ben)),
              Scene(actors=(robot,), things=(ball,))]  # fmt: skip
    drawn = [draw_scene(scene, 192, 128, 1) for scene in scenes]
    assert drawn == [draw_scene(scene, 192, 128, 1) for scene in scenes]
    assert all("nan" not in svg and "<text" not in svg for svg in drawn)
    if deed(name).thing != "none":
        assert drawn[0] != drawn[1]


def test_poses_differ_from_one_another() -> None:
    seen: dict[object, str] = {}
    for name in deed_ids():
        row = deed(name)
        key = (row.pose, row.own, row.set, row.thing, row.partner)
        assert key not in seen, (name, seen.get(key))
        seen[key] = name


@pytest.mark.parametrize("base", BASES)
def test_people_look_alike_in_every_frame_and_unlike_each_other(base: str) -> None:
    pose = deed("stand").pose
    drawn = {name: draw_person(Look(base), name, pose) for name in ("Ann", "Bo", "Cy", "Dee", "Eli")}
    assert drawn["Ann"] == draw_person(Look(base), "Ann", pose)
    assert len({body.svg for body in drawn.values()}) >= 4
    for body in drawn.values():
        x0, y0, x1, _ = body.solid
        assert x0 < body.head[0] < x1
        assert y0 <= body.head[1] - 0.9 * body.head[2]
        assert {"hand", "far", "foot", "mouth", "crown", "hip", "shoulder"} <= body.joints.keys()


def test_every_outfit_draws_and_what_the_story_says_wins() -> None:
    plain = draw_person(Look("woman"), "Mia", deed("stand").pose).svg
    for outfit in people()["outfits"]:
        assert outfit in pictograms()
        dressed = draw_person(Look(base_of(outfit), outfit), "Mia", deed("stand").pose, "happy")
        assert dressed.svg != plain
    yellow = look_of(Look("woman", dress="#f0bf4c", hair="#c78d4a"), "Mia")
    assert (yellow["dress"], yellow["sleeve"], yellow["hair"]) == ("#f0bf4c", "#f0bf4c", "#c78d4a")


def test_every_mood_shows_on_a_person() -> None:
    drawn = {draw_person(Look("girl"), "Ivy", deed("stand").pose, mood).svg for mood in MOODS}
    assert len(drawn) >= 11


def test_worn_things_are_pictograms_and_unknown_deeds_are_named() -> None:
    text = resources.files("katha_sketch.drawing.deeds").joinpath("worn.yaml").read_text(encoding="utf-8")
    assert {name for names in yaml.safe_load(text).values() for name in names} <= set(pictograms())
    with pytest.raises(RenderError, match="no deed 'yodel'"):
        deed("yodel")
