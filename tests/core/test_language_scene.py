"""Reading a prompt: one moment, with nothing lost of what katha itself writes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.language import Actor, SceneReading, describe_actor, describe_scene, load_vocabulary, read_scene

HANDLED = ("give", "take", "throw", "carry")


def one(text: str) -> Actor:
    (actor,) = read_scene(text).actors
    return actor


def test_the_prompt_of_the_design() -> None:
    reading = read_scene(
        "Meadow by day. The small grey mouse gives the cheese to the old lion. The lion is grateful. A net, a tree."
    )
    mouse = Actor("mouse", attributes=("small", "grey"), action="give", target="lion", carries=("cheese",))
    assert reading == SceneReading(
        (mouse, Actor("lion", attributes=("old",), emotion="grateful")), ("net", "tree"), "meadow", "day"
    )


def test_a_free_generation_prompt() -> None:
    reading = read_scene("A wide shot of a small grey mouse gnawing the ropes that bind a lion, forest at dusk")
    assert reading.actors == (
        Actor("mouse", attributes=("small", "grey"), action="bite", target="rope"),
        Actor("lion", action="trapped", target="rope"),
    )
    assert (reading.setting, reading.time, reading.shot, reading.props) == ("forest", "evening", "wide", ("rope",))


@pytest.mark.parametrize(
    ("text", "actor"),
    [
        ("The fox was chased by the dogs.", Actor("dog", action="chase", target="fox", count=3)),
        ("A lion trapped in a net", Actor("lion", action="trapped", target="net")),
        ("A bird in a cage", Actor("sparrow", action="trapped", target="cage")),
        ("Three happy mice dance", Actor("mouse", action="dance", emotion="happy", count=3)),
        ("The crow with a green cap is angry", Actor("crow", attributes=("green_cap",), emotion="angry")),
        ("An old woman holding a basket", Actor("old_woman", action="carry", target="basket", carries=("basket",))),
        ("The fox looks at the grapes", Actor("fox", action="look", target="grapes")),
        ("The king trembled", Actor("king", emotion="afraid")),
        ("The monkey roared in rage", Actor("monkey", action="shout", emotion="angry")),
    ],
)
def test_constructions(text: str, actor: Actor) -> None:
    assert actor in read_scene(text).actors


def test_a_denied_action_is_not_drawn() -> None:
    assert one("The wolf does not sleep.").action is None


def test_looks_tell_two_of_a_kind_apart() -> None:
    reading = read_scene(
        "The mouse with a red scarf bites the mouse with a blue scarf. The mouse with a blue scarf is sad."
    )
    assert [(actor.attributes, actor.action, actor.emotion) for actor in reading.actors] == [
        (("red_scarf",), "bite", None),
        (("blue_scarf",), None, "sad"),
    ]


def test_nothing_is_dropped_silently() -> None:
    reading = read_scene("The fox drives a tractor past the zeppelin.")
    assert set(reading.unread) == {"tractor", "zeppelin"}


@pytest.mark.parametrize(
    "text", ["", " ", "...", '"', "'s", "the the the", "and", "to to", "who that", "\u7345\u5b50", "with a red scarf"]
)
def test_odd_text_never_fails(text: str) -> None:
    assert read_scene(text).actors == ()


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text_is_read(text: str) -> None:
    read_scene(text)


def _ids(kind: str) -> list[str]:
    return [concept.id for concept in load_vocabulary().concepts(kind)]  # type: ignore[arg-type]


@st.composite
def readings(draw: st.DrawFn) -> SceneReading:
    """Any moment that a prompt can say: characters of different kinds, things each in one place."""
    kinds = draw(st.lists(st.sampled_from(_ids("character")), max_size=3, unique=True))
    props = draw(st.lists(st.sampled_from(_ids("prop")), max_size=3, unique=True))
    free, actors = list(props), []
    order = _ids("attribute")
    for kind in kinds:
        looks = {
            draw(st.sampled_from(group))
            for group in (["small", "big"], ["old"], ["black", "grey"], ["crowned", "green_cap"])
        }
        looks = {look for look in looks if draw(st.booleans())}
        action = draw(st.none() | st.sampled_from(_ids("action")))
        targets = [other for other in kinds if other != kind]
        carries: tuple[str, ...] = ()
        target = None
        if action in HANDLED and free:
            carries = (free.pop(),)
            target = draw(st.sampled_from([*carries, *targets])) if action != "carry" else carries[0]
        elif action is not None and action not in HANDLED and targets:
            target = draw(st.none() | st.sampled_from(targets))
        actors.append(
            Actor(
                kind,
                attributes=tuple(sorted(looks, key=order.index)),
                action=action,
                target=target,
                emotion=draw(st.none() | st.sampled_from(_ids("emotion"))),
                carries=carries,
                count=draw(st.sampled_from([1, 1, 2, 5])),
            )
        )
    where = [draw(st.none() | st.sampled_from(_ids(kind))) for kind in ("setting", "time", "weather", "shot")]
    return SceneReading(tuple(actors), tuple(free), *where)


@given(readings())
@settings(max_examples=300, deadline=None)
def test_a_described_scene_reads_back(reading: SceneReading) -> None:
    back = read_scene(describe_scene(reading))
    assert sorted(map(repr, back.actors)) == sorted(map(repr, reading.actors))
    assert sorted(back.props) == sorted(reading.props)
    assert (back.setting, back.time, back.weather, back.shot) == (
        reading.setting,
        reading.time,
        reading.weather,
        reading.shot,
    )
    assert back.unread == ()


@pytest.mark.parametrize("kind", ["character", "prop", "setting", "action", "emotion"])
def test_every_concept_reads_back(kind: str) -> None:
    for concept in _ids(kind):
        readings_of = {
            "character": SceneReading((Actor(concept),)),
            "prop": SceneReading((), (concept,)),
            "setting": SceneReading((), (), concept),
            "action": SceneReading((Actor("fox", action=concept),)),
            "emotion": SceneReading((Actor("fox", emotion=concept),)),
        }
        assert read_scene(describe_scene(readings_of[kind])) == readings_of[kind]


def test_the_storys_own_noun() -> None:
    reading = SceneReading((Actor("rabbit", action="run"),))
    assert describe_scene(reading, {"rabbit": "hare"}) == "The hare runs."
    assert describe_actor(Actor("elephant", attributes=("old", "red_scarf")), "a") == "an old elephant with a red scarf"
