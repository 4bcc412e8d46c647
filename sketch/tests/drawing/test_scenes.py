"""Scenes: the record draws as it says, in every size, with the thing in hand and the partner where the deed has it."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from katha.errors import RenderError
from katha.protocols import FrameRequest
from katha_sketch.drawing.deeds import Look
from katha_sketch.drawing.pictograms import find_noun
from katha_sketch.drawing.places import draw_place
from katha_sketch.drawing.scenes import (
    Frame,
    Scene,
    SceneActor,
    SceneThing,
    actor_of,
    draw_scene,
    frame_scene,
    tell,
    thing_of,
)
from katha_sketch.drawing.style import in_look
from katha_sketch.drawing.svg import rasterise

Box = tuple[float, float, float, float]


def person(name: str, base: str = "girl", deed: str = "stand", target: str | None = None) -> SceneActor:
    """Somebody of the rig."""
    return SceneActor(name, look=Look(base), deed=deed, target=target)


def thing(word: str, holder: str | None = None) -> SceneThing:
    """A thing of the noun table."""
    noun = find_noun(word)
    assert noun is not None
    role = "object" if holder else "scenery"
    return SceneThing(word, word, noun.pictogram, noun.kind, noun.cm, noun.stands, role, holder)  # type: ignore[arg-type]


def boxes(frame: Frame, name: str) -> list[Box]:
    """Where something is in the frame."""
    return [box for found, box in frame.boxes if found == name]


def middle(box: Box) -> tuple[float, float]:
    """The centre of a box."""
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


KICK = Scene("park", actors=(person("Ivy", deed="kick", target="ball"),), things=(thing("ball", "Ivy"),))


@pytest.mark.parametrize("size", [(768, 512), (512, 768), (512, 512), (960, 400)])
def test_the_same_scene_is_the_same_bytes_and_fills_every_size(size: tuple[int, int]) -> None:
    svg = draw_scene(KICK, *size, 7)
    assert svg == draw_scene(KICK, *size, 7)
    ElementTree.fromstring(svg)
    seen = np.asarray(Image.open(io.BytesIO(rasterise(svg, *size))).convert("RGB"))
    assert seen.shape == (size[1], size[0], 3)
    assert seen.std() > 20
    frame = frame_scene(KICK, *size, 7)
    for box in (*boxes(frame, "Ivy"), *boxes(frame, "ball")):
        assert box[0] > -1
        assert box[2] < size[0] + 1
        assert box[3] < size[1]


def test_the_ball_is_before_the_foot_and_the_partner_faces_the_actor() -> None:
    for facing in (1, -1):
        ivy = SceneActor("Ivy", look=Look("girl"), deed="kick", target="ball", facing=facing)  # type: ignore[arg-type]
        frame = frame_scene(Scene(actors=(ivy,), things=(thing("ball", "Ivy"),)), 768, 512, 1)
        [figure], [ball] = boxes(frame, "Ivy"), boxes(frame, "ball")
        assert (middle(ball)[0] - middle(figure)[0]) * facing > 0
        assert middle(ball)[1] > middle(figure)[1]
    talk = Scene(actors=(person("Ann", deed="talk", target="Bo"), person("Bo", "boy")))
    frame = frame_scene(talk, 768, 512, 1)
    sides = frame.framing.facing
    assert sides["Ann"] == -sides["Bo"]
    assert (middle(boxes(frame, "Bo")[0])[0] - middle(boxes(frame, "Ann")[0])[0]) * sides["Ann"] > 0


def test_riders_sit_on_what_they_ride_and_drivers_are_in_it() -> None:
    ride = Scene(actors=(person("Ivy", deed="ride", target="horse"),), things=(thing("horse", "Ivy"),))
    frame = frame_scene(ride, 768, 512, 1)
    assert boxes(frame, "Ivy")[0][3] < boxes(frame, "horse")[0][3] - 40
    mount = SceneActor("Star", kind="pictogram", pictogram="horse", cm=210)
    frame = frame_scene(Scene(actors=(person("Ivy", deed="ride", target="Star"), mount)), 768, 512, 1)
    assert boxes(frame, "Ivy")[0][3] < boxes(frame, "Star")[0][3] - 40
    for word in ("car", "bus", "rowing boat"):
        drive = Scene(actors=(person("Ivy", deed="drive", target=word),), things=(thing(word, "Ivy"),))
        frame = frame_scene(drive, 768, 512, 1)
        x0, _, x1, _ = boxes(frame, word)[0]
        assert x0 < middle(boxes(frame, "Ivy")[0])[0] < x1


def test_sizes_beside_a_person_are_those_of_life() -> None:
    cast = (person("Ann", "woman"), SceneActor("rex", kind="pictogram", pictogram="dog", cm=60),
            SceneActor("jumbo", kind="pictogram", pictogram="elephant", cm=300))  # fmt: skip
    frame = frame_scene(Scene(actors=cast), 768, 512, 1)
    dog, ann, jumbo = (boxes(frame, name)[0][3] - boxes(frame, name)[0][1] for name in ("rex", "Ann", "jumbo"))
    assert dog < 0.6 * ann < ann < jumbo


def test_what_has_no_pictogram_is_a_plain_shape_and_copies_are_drawn() -> None:
    widget = SceneThing("widget", "widget", None, "thing", 60.0, "ground", "object", "Ivy")
    frame = frame_scene(Scene(actors=(person("Ivy", deed="look", target="widget"),), things=(widget,)), 768, 512, 1)
    assert len(boxes(frame, "widget")) == 1
    crowd = Scene(actors=(SceneActor("kids", look=Look("child"), count=3), SceneActor("blob", kind="pictogram")))
    frame = frame_scene(crowd, 768, 512, 1)
    assert len(boxes(frame, "kids")) == 3
    assert len(boxes(frame, "blob")) == 1


def test_a_board_keeps_direction_and_changes_its_pictures() -> None:
    scene = Scene("street", actors=(person("Ann", "woman", "walk"), person("Bo", "boy", "walk")))
    frames: list[Frame] = []
    for seed in range(4):
        frames.append(frame_scene(scene, 768, 512, seed, frames[-1].framing if frames else None))
    for before, after in pairwise(frames):
        assert before.framing.facing == after.framing.facing
        assert before.framing.shot != after.framing.shot or abs(before.framing.k / after.framing.k - 1) > 0.1


def test_looks_and_light_change_the_colours() -> None:
    svg = draw_scene(KICK, 192, 128, 1)
    assert in_look(svg, "ink") != svg
    night = draw_scene(Scene("park", None, "night", KICK.actors, KICK.things), 192, 128, 1)
    assert night != svg


def test_what_does_not_exist_is_named() -> None:
    for scene in (Scene("narnia"), Scene(actors=(person("Ivy", deed="yodel"),)),
                  Scene(actors=(SceneActor("x", kind="pictogram", pictogram="mongoose"),))):  # fmt: skip
        with pytest.raises(RenderError):
            draw_scene(scene, 192, 128, 1)


def test_words_become_actors_and_things() -> None:
    teacher = actor_of("Ms Roe", "teacher", base="woman")
    assert (teacher.kind, teacher.look) == ("person", Look("woman", "teacher"))
    assert actor_of("Sam", "son").look.base == "boy"
    assert actor_of("Ariel", "mermaid").kind == "pictogram"
    robot = actor_of("Pip", "robot")
    assert (robot.kind, robot.pictogram, robot.cm) == ("pictogram", "robot", 170)
    unknown = actor_of("Rik", "mongoose", kind_of="animal", cm=30)
    assert (unknown.pictogram, unknown.cm) == (None, 30)
    assert thing_of("k", "kettle", held_by="Pip", role="object").pictogram == "kettle"
    assert thing_of("g", "gizmo", kind="tool", cm=12).pictogram is None
    scene = Scene("kitchen", actors=(teacher, robot, unknown), things=(thing_of("k", "kettle"), thing_of("g", "gizmo")))
    assert [name for name, _ in frame_scene(scene, 384, 256, 1).boxes if name.endswith(" table")] == ["k table"]
    assert len(frame_scene(scene, 384, 256, 1).boxes) == 6


def test_an_embrace_brings_heads_together_and_a_third_from_the_other_side() -> None:
    cast = (person("Gran", "old_woman", "hug", "Ann"), person("Ann"), person("Tom", "boy", "hug", "Gran"))
    frame = frame_scene(Scene(actors=cast), 768, 512, 1)
    gran, ann, tom = (boxes(frame, name)[0] for name in ("Gran", "Ann", "Tom"))
    assert gran[0] < ann[2]
    assert ann[0] < gran[2]
    assert gran[0] < tom[2]
    assert tom[0] < gran[2]
    assert (middle(ann)[0] < middle(gran)[0]) != (middle(tom)[0] < middle(gran)[0])


def test_two_who_shake_hands_are_two_who_face_each_other() -> None:
    frame = frame_scene(Scene(actors=(SceneActor("friends", deed="shake_hands", count=2),)), 768, 512, 1)
    one, other = boxes(frame, "friends"), boxes(frame, "friends too")
    assert len(one) == len(other) == 1
    assert one[0] != other[0]


def test_passengers_sit_in_one_car() -> None:
    cast = (person("Ann", "woman", "drive", "car"), person("Ben", "man", "drive"))
    frame = frame_scene(Scene("street", actors=cast, things=(thing("car", "Ann"),)), 768, 512, 1)
    (car,) = [box for name, box in frame.boxes if "car" in name or "automobile" in name]
    for name in ("Ann", "Ben"):
        (face,) = boxes(frame, name)
        assert car[0] < middle(face)[0] < car[2]
        assert car[1] < middle(face)[1] < car[3]


def test_smoke_is_above_what_it_comes_from_and_the_kitchen_has_one_oven() -> None:
    oven, smoke = thing("oven"), SceneThing("smoke", "smoke", "smoke", "sky", 100, "sky", at="oven", where="above")
    frame = frame_scene(Scene("kitchen", things=(oven, smoke)), 768, 512, 1)
    below, above = boxes(frame, "oven")[0], boxes(frame, "smoke")[0]
    assert above[1] < below[1]
    assert below[0] < middle(above)[0] < below[2]
    whole = draw_place("kitchen", None, None, 768, 512, 1).back
    assert len(draw_place("kitchen", None, None, 768, 512, 1, frozenset({"oven"})).back) < len(whole)


def test_neighbours_that_tell_the_same_are_not_the_same_picture() -> None:
    one, other = (frame_scene(KICK, 768, 512, 7, scene_number=number) for number in (1, 2))
    assert one.svg != other.svg
    assert one.framing.facing == other.framing.facing, "the direction is kept across the cut"


def test_what_a_thing_goes_to_is_in_touch_with_it() -> None:
    eggs = replace(thing("egg", "Ivy"), count=2)
    bowl = replace(thing("bowl", "Ivy"), role="goal")
    cook = person("Ivy", deed="tear", target="egg")
    frame = frame_scene(Scene("kitchen", actors=(cook,), things=(eggs, bowl)), 768, 512, 3)
    (held, *_), (under,) = boxes(frame, "egg"), boxes(frame, "bowl")
    ivy = boxes(frame, "Ivy")[0]
    assert abs(middle(held)[0] - middle(under)[0]) < ivy[2] - ivy[0]
    assert 0.08 < (under[3] - under[1]) / (ivy[3] - ivy[1]) < 0.5


def test_what_hangs_on_a_wall_or_in_the_sky_is_not_on_the_ground_and_a_car_is_out_of_the_window() -> None:
    for word in ("clock", "painting", "moon", "window"):
        scene = Scene("bedroom", actors=(person("Ivy", deed="look", target=word),), things=(thing(word, "Ivy"),))
        frame = frame_scene(scene, 768, 512, 1)
        [seen], [figure] = boxes(frame, word), boxes(frame, "Ivy")
        assert seen[3] < figure[3] - 0.2 * (figure[3] - figure[1]), word
    look = Scene("hospital", actors=(person("Ivy", deed="look", target="car"),), things=(thing("car", "Ivy"),))
    out = frame_scene(look, 768, 512, 1)
    street = frame_scene(replace(look, setting="street"), 768, 512, 1)
    assert boxes(out, "car")[0][3] < boxes(out, "Ivy")[0][3] - 20
    assert boxes(street, "car")[0][3] > boxes(street, "Ivy")[0][3] - 20


def test_a_shoe_in_the_hand_is_no_larger_than_the_head() -> None:
    frame = frame_scene(
        Scene(actors=(person("Ivy", deed="take", target="shoe"),), things=(thing("shoe", "Ivy"),)), 768, 512, 1
    )
    [shoe], [figure] = boxes(frame, "shoe"), boxes(frame, "Ivy")
    assert shoe[2] - shoe[0] < 0.5 * (figure[3] - figure[1])


def test_a_number_is_that_of_the_whole_word() -> None:
    told = tell(FrameRequest(prompt="The two fishermen talk to the three fishes.", seed=1, width=768, height=512))
    assert sorted(actor.count for actor in told.scene.actors) == [2, 3]
