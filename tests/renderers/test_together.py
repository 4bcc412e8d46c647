"""What people do to each other is seen: who holds whom, who sits beside whom, what they carry between them."""

from __future__ import annotations

from katha.renderers.sketch.deeds import Look
from katha.renderers.sketch.scenes import Scene, SceneActor, SceneThing, frame_scene
from katha.renderers.sketch.scenes.things import Box

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


def test_what_is_looked_for_is_in_the_thoughts_and_what_is_held_while_waiting_in_the_hand() -> None:
    ring = SceneThing("ring", "ring", "ring", "thing", 4.0, "hand", "object", "a")
    drawn = boxes(person("a", "lose", "ring"), things=(ring,))
    x0, y0, x1, y1 = drawn["thought"]
    assert x0 < (drawn["ring"][0] + drawn["ring"][2]) / 2 < x1
    assert y0 < (drawn["ring"][1] + drawn["ring"][3]) / 2 < y1
    cake = SceneThing("cake", "cake", "shortcake", "food", 12.0, "hand", "instrument", "a")
    drawn = boxes(person("a", "wait"), things=(cake,))
    assert drawn["cake"][1] > drawn["thought"][3]
