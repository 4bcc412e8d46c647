"""What people do to each other is seen: who holds whom, who sits beside whom, what they carry between them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from katha_sketch.drawing.deeds import Look
from katha_sketch.drawing.pictograms import find_noun
from katha_sketch.drawing.scenes import Scene, SceneActor, SceneThing, frame_scene
from katha_sketch.drawing.scenes.record import Beside
from katha_sketch.drawing.scenes.stage import arrange
from katha_sketch.drawing.scenes.things import Box

SIZE = (384, 288)


def person(name: str, deed: str, target: str | None = None, base: str = "man") -> SceneActor:
    return SceneActor(name, look=Look(base), deed=deed, target=target)


def boxes(*actors: SceneActor, things: tuple[SceneThing, ...] = ()) -> dict[str, Box]:
    """Where everybody and everything is in a medium shot."""
    return dict(frame_scene(Scene(actors=actors, things=things, shot="medium"), *SIZE, 3).boxes)


def test_several_sit_on_one_bench() -> None:
    bench = SceneThing("bench", "bench", "couch-and-lamp", "furniture", 90.0, "ground", "object", "a")
    drawn = boxes(person("a", "sit", "bench"), person("b", "sit"), things=(bench,))
    assert drawn["a"][3] - drawn["b"][3] == 0
    middle = (min(drawn["a"][0], drawn["b"][0]) + max(drawn["a"][2], drawn["b"][2])) / 2
    assert drawn["bench"][0] < middle < drawn["bench"][2]
    assert drawn["a"][3] < drawn["bench"][3]


def test_those_who_play_at_a_table_face_each_other_across_one() -> None:
    scene = Scene(actors=(person("a", "play_board", "b"), person("b", "play_board", "a"), person("c", "walk")))
    sprites = {sprite.id: sprite for sprite in arrange(scene, Random(0))}
    assert sum(sprite.id == "board" for sprite in arrange(scene, Random(0))) == 1
    one, other = sorted((sprites["a"], sprites["b"]), key=lambda sprite: sprite.x)
    left, _, right, _ = sprites["board"].box
    assert one.x < left < right < other.x
    assert (one.facing, other.facing) == (1, -1)


def test_a_puddle_lies_under_the_feet_of_all_who_stand_in_it() -> None:
    puddle = SceneThing("puddle", "puddle", "puddle", "landscape", 16.0, "ground", "object")
    actors = [replace(person(name, "laugh"), at="puddle", where="in") for name in "ab"]
    drawn = boxes(*actors, things=(puddle,))
    assert drawn["puddle"][0] < min(drawn[name][0] for name in "ab")
    assert drawn["puddle"][2] > max(drawn[name][2] for name in "ab")
    assert drawn["puddle"][1] > max(drawn[name][1] + drawn[name][3] for name in "ab") / 2


def test_what_is_put_on_a_table_is_no_wider_than_the_table() -> None:
    plank = SceneThing("plank", "board", "plank", "tool", 60.0, "hand", "object", "a")
    drawn = {
        sprite.id: sprite.box for sprite in arrange(Scene(actors=(person("a", "put"),), things=(plank,)), Random(0))
    }
    assert drawn["plank"][2] - drawn["plank"][0] <= 73


def test_who_sleeps_on_a_shoulder_leans_there() -> None:
    asleep = replace(person("a", "nod_off"), at="b", where="against")
    drawn = boxes(asleep, person("b", "sit"))
    left, right = sorted((drawn["a"], drawn["b"]))
    assert right[0] < left[2]


def test_each_of_many_leans_out_of_a_window_of_its_own() -> None:
    scene = Scene(actors=(replace(person("a", "lean_out"), count=3),))
    frame = [sprite.x for sprite in arrange(scene, Random(0)) if sprite.id == "window_sill"]
    assert len(set(frame)) == 3


def test_two_carry_a_large_thing_between_them() -> None:
    sofa = SceneThing("sofa", "sofa", "couch-and-lamp", "furniture", 90.0, "ground", "object", "a")
    drawn = boxes(person("a", "carry_together", "b"), person("b", "carry_together", "a"), things=(sofa,))
    left, right = sorted((drawn["a"], drawn["b"]))
    middle = (drawn["sofa"][0] + drawn["sofa"][2]) / 2
    assert left[0] < drawn["sofa"][0]
    assert drawn["sofa"][2] < right[2]
    assert left[2] < middle < right[0]


def test_who_is_lifted_is_above_and_who_is_pulled_is_reached() -> None:
    drawn = boxes(person("a", "raise_up", "b"), person("b", "stand", base="boy"))
    assert drawn["b"][1] < drawn["a"][1]
    drawn = boxes(person("a", "tug", "b"), person("b", "stand", base="girl"))
    left, right = sorted((drawn["a"], drawn["b"]))
    assert right[0] < left[2]


def test_who_dance_with_each_other_stand_together_whoever_watches() -> None:
    crowd = person("c", "look", "a")
    drawn = boxes(crowd, person("a", "dance", "b"), person("b", "dance", "a", "woman"))
    between = sorted((drawn["a"], drawn["b"]))
    assert not between[0][2] < (drawn["c"][0] + drawn["c"][2]) / 2 < between[1][0]


def test_without_a_place_nobody_is_small() -> None:
    wide = frame_scene(Scene(actors=(person("a", "walk"),), shot="wide"), *SIZE, 3)
    assert wide.framing.shot == "medium"
    there = frame_scene(Scene("park", actors=(person("a", "walk"),), shot="wide"), *SIZE, 3)
    assert there.framing.shot == "wide"


def test_what_is_looked_for_is_in_the_thoughts_and_what_is_held_meanwhile_in_the_hand() -> None:
    ring = SceneThing("ring", "ring", "ring", "thing", 4.0, "hand", "object", "a")
    drawn = boxes(person("a", "lose", "ring"), things=(ring,))
    x0, y0, x1, y1 = drawn["thought"]
    assert x0 < (drawn["ring"][0] + drawn["ring"][2]) / 2 < x1
    assert y0 < (drawn["ring"][1] + drawn["ring"][3]) / 2 < y1
    cake = SceneThing("cake", "cake", "shortcake", "food", 12.0, "hand", "instrument", "a")
    drawn = boxes(person("a", "hungry"), things=(cake,))
    assert drawn["cake"][1] > drawn["thought"][3]


def actor(name: str, where: Beside, at: str, deed: str = "stand", base: str = "boy") -> SceneActor:
    return SceneActor(name, look=Look(base), deed=deed, at=at, where=where)


def thing(word: str) -> SceneThing:
    noun = find_noun(word)
    assert noun is not None
    return SceneThing(word, word, noun.pictogram, noun.kind, noun.cm, noun.stands, "object")


@pytest.mark.parametrize(
    ("where", "word"), [("under", "table"), ("behind", "fence"), ("in", "basket"), ("on", "chair"), ("over", "fence")]
)
def test_who_is_under_behind_in_or_on_a_thing_is_drawn_there(where: Beside, word: str) -> None:
    drawn = boxes(actor("a", where, word), things=(thing(word),))
    (x0, y0, x1, y1), (t0, top, t1, foot) = drawn["a"], drawn[word]
    if where != "behind":
        assert t0 < (x0 + x1) / 2 < t1
    if where == "under":
        assert t0 < x0 < x1 < t1
        assert top < y0
    if where in ("behind", "in"):
        assert y0 < top < y0 + 0.75 * (y1 - y0)
    if where == "on":
        assert top < y1 < foot
    if where == "over":
        assert y1 < top


def test_nobody_has_feet_below_what_they_are_in_and_who_lies_is_seen() -> None:
    drawn = boxes(actor("a", "in", "canoe"), things=(thing("canoe"),))
    assert drawn["a"][3] < drawn["canoe"][3]
    drawn = boxes(actor("a", "in", "basket", "sleep"), things=(thing("basket"),))
    assert drawn["basket"][2] - drawn["basket"][0] > 0.9 * (drawn["a"][2] - drawn["a"][0])
    assert drawn["a"][3] < 0.4 * drawn["basket"][1] + 0.6 * drawn["basket"][3]


def test_who_is_between_two_has_one_to_each_side() -> None:
    drawn = boxes(person("a", "stand"), actor("b", "between", "a"), actor("c", "before", "b"))
    a, b, c = (0.5 * (drawn[name][0] + drawn[name][2]) for name in "abc")
    assert min(a, c) < b < max(a, c)
    group = replace(person("a", "stand"), count=2)
    sprites = arrange(Scene(actors=(group, actor("b", "between", "a"))), Random(3))
    sides = [sprite.x for sprite in sprites if sprite.id == "a"]
    assert min(sides) < next(sprite.x for sprite in sprites if sprite.id == "b") < max(sides)


def test_what_is_lower_stands_before_who_is_in_front_of_it_and_a_blanket_leaves_the_face() -> None:
    drawn = boxes(actor("a", "before", "bucket"), things=(thing("bucket"),))
    assert drawn["bucket"][0] >= drawn["a"][2] or drawn["bucket"][2] <= drawn["a"][0]
    frame = frame_scene(Scene(actors=(actor("a", "covered", "blanket"),), things=(thing("blanket"),)), *SIZE, 3)
    cover = next(sprite for sprite in frame.sprites if sprite.id == "blanket")
    face = next(sprite for sprite in frame.sprites if sprite.id == "a").face
    assert face is not None
    assert cover.box[1] > face[1]


def test_what_is_in_a_box_sticks_out_of_it() -> None:
    inside = replace(thing("ring"), at="box", where="in")
    drawn = boxes(things=(inside, replace(thing("box"), states=("open",))))
    assert drawn["ring"][1] < drawn["box"][1]
    assert drawn["ring"][3] - drawn["ring"][1] > 0.3 * (drawn["box"][3] - drawn["box"][1])


def test_a_bed_is_as_long_as_who_lies_on_it() -> None:
    bed = replace(thing("bed"), held_by="a")
    drawn = boxes(person("a", "lie", "bed"), things=(bed,))
    assert drawn["bed"][2] - drawn["bed"][0] > drawn["a"][2] - drawn["a"][0]


def test_from_behind_a_tall_thing_the_face_is_seen() -> None:
    frame = frame_scene(Scene(actors=(actor("a", "behind", "door"),), things=(thing("door"),)), *SIZE, 3)
    own = next(sprite for sprite in frame.sprites if sprite.id == "a")
    door = next(sprite for sprite in frame.sprites if sprite.id == "door")
    assert own.depth < door.depth
    assert own.face is not None
    cx, _, r = own.face
    covered = min(cx + r, door.box[2]) - max(cx - r, door.box[0])
    assert covered < r


def test_who_is_on_somebody_is_on_that_part_of_the_body() -> None:
    for where, above in (("head", True), ("lap", False)):
        drawn = boxes(person("a", "sit"), actor("b", where, "a"))  # type: ignore[arg-type]
        (_, a0, _, a1), (_, b0, _, b1) = drawn["a"], drawn["b"]
        assert b1 - b0 < 0.7 * (a1 - a0)
        assert (b1 < (a0 + a1) / 2) == above


def test_where_nobody_is_beside_anything_the_record_reads_as_it_did() -> None:
    """The camera's chance is drawn from the record's text."""
    assert "at=" not in repr(person("a", "stand"))
